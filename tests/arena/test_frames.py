"""The frames that are put together from parts are those that the codec makes of the same message."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.frames import SharedEvent, acted_frame, events_frame, turn_frame
from clients.protocol.codec import (
    MAX_BATCH,
    MAX_BATCH_BYTES,
    SUBPROTOCOLS,
    decode,
    encode,
    event_batches,
)
from clients.protocol.messages import Acted, Turn
from games import referee
from games.spaces import ActionSpace, Choice, Subset, Text

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
names = texts.filter(bool)
events = st.tuples(texts, st.dictionaries(texts, values, max_size=3)).map(list)
wordings = st.lists(texts.filter(bool), min_size=2, max_size=6, unique=True).map(tuple)
spaces = st.one_of(
    wordings.map(Choice),
    wordings.map(lambda options: Choice(options, "vote", options[-1])),
    wordings.map(lambda options: Subset(options, 2)),
    st.builds(Text, st.integers(0, 1000)),
)
encodings = st.sampled_from(SUBPROTOCOLS)


@given(names, st.lists(events, min_size=1, max_size=40), st.integers(0, 2**53 - 1), encodings, st.booleans())
def test_events(match: str, told: list[Any], first: int, subprotocol: str, shared: bool) -> None:
    message = next(event_batches(match, told, first=first))
    held = [SharedEvent(event) for event in told] if shared else told
    for _ in range(2):
        frame = events_frame(match, held, first=first, subprotocol=subprotocol)
        assert frame == (len(told), encode(message, subprotocol=subprotocol))


@given(st.lists(events, min_size=3, max_size=5), st.data(), encodings)
def test_seats_that_saw_other_events_are_sent_their_own(
    told: list[Any], data: st.DataObject, subprotocol: str
) -> None:
    held = [SharedEvent(event) for event in told]
    for _ in range(4):
        # Any of the events but the last may be another seat's secret.
        seen = [event for event in held[:-1] if data.draw(st.booleans())] + held[-1:]
        first = data.draw(st.integers(0, 2))
        message = next(event_batches("m", [list(event) for event in seen], first=first))
        frame = events_frame("m", seen, first=first, subprotocol=subprotocol)
        assert frame == (len(seen), encode(message, subprotocol=subprotocol))


@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
@pytest.mark.parametrize("length", [0, MAX_BATCH_BYTES // 3, MAX_BATCH_BYTES + 1])
def test_long_histories_come_in_the_same_batches(length: int, subprotocol: str) -> None:
    told: list[Any] = [["said", {"text": "x" * length}]] * (MAX_BATCH + 5 if length == 0 else 7)
    at = 0
    for message in event_batches("m", told, first=0):
        count, frame = events_frame("m", told[at:], first=at, subprotocol=subprotocol)
        assert frame == encode(message, subprotocol=subprotocol)
        assert count == len(message.events)
        at += count
    assert at == len(told)


@given(
    names,
    st.integers(1, 2**53 - 1),
    spaces,
    st.none() | st.sampled_from(referee.RETRIED),
    texts,
    st.integers(0, 9) | st.floats(0, 1e6),
    st.booleans(),
    encodings,
)
def test_turns(
    match: str,
    request: int,
    space: ActionSpace,
    failure: str | None,
    reason: str,
    seconds: float,
    schema: bool,
    subprotocol: str,
) -> None:
    turn = referee.Turn(0, 5, space, 0 if failure is None else 1, failure, reason)
    frame = turn_frame(
        match, request, turn, deadline_s=seconds, bank_s=1, schema=schema, subprotocol=subprotocol
    )
    data = space.to_data()
    if not isinstance(space, Text):
        data["default"] = space.default
    message = Turn(
        match=match,
        request=request,
        space=data,
        schema=space.schema() if schema else None,
        describe=space.describe(),
        attempt=turn.attempt,
        failure=failure,
        reason=reason,
        deadline_s=seconds,
        bank_s=1,
    )
    assert frame == encode(message, subprotocol=subprotocol)
    assert isinstance(decode(frame, sender="server", subprotocol=subprotocol), Turn) or len(match) > 80


@given(names, st.integers(0, 2**53 - 1), encodings)
def test_receipts(match: str, request: int, subprotocol: str) -> None:
    frame = acted_frame(match, request, subprotocol=subprotocol)
    assert frame == encode(Acted(match=match, request=request), subprotocol=subprotocol)
