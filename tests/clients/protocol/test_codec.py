"""Frames: both encodings, bounds, and what a hostile frame comes to."""

import json
import math
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import jsonschema
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.errors import ProtocolError
from clients.protocol import messages
from clients.protocol.codec import (
    JSON,
    MAX_BATCH,
    MAX_BATCH_BYTES,
    MAX_DEPTH,
    MSGPACK,
    SUBPROTOCOLS,
    decode,
    encode,
    event_batches,
)
from clients.protocol.messages import (
    CLIENT_MESSAGES,
    MAX_CLIENT_BYTES,
    MAX_SERVER_BYTES,
    SERVER_MESSAGES,
    Act,
    Error,
    Events,
    Hello,
    Message,
    Ping,
    Turn,
    WireEvent,
    schema,
)

VALID_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SENDERS = ("client", "server")

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | VALID_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(VALID_TEXT, inner, max_size=3),
    max_leaves=8,
)
OPTIONS = st.dictionaries(VALID_TEXT, VALUES, max_size=3)
EVENT = st.builds(
    lambda kind, data, audience: [kind, data, *audience],
    VALID_TEXT,
    OPTIONS,
    st.sampled_from([[], [None], [[0, 2]], [[]]]),
)


def _strategy(kind: type[Message]) -> st.SearchStrategy[Message]:
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: _values(hints[name]) for name in kind.model_fields if name != "type"}
    if kind is Act:
        answer = st.one_of(
            st.fixed_dictionaries({"action": VALID_TEXT | st.lists(VALID_TEXT, max_size=3)}),
            st.fixed_dictionaries({"failure": st.sampled_from(["unparsed", "ambiguous", "error"])}),
        )
        del fields["action"], fields["failure"]
        return st.builds(lambda rest, given: Act(**rest, **given), st.fixed_dictionaries(fields), answer)
    return st.builds(kind, **fields)


def _values(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values of a field's type."""
    if annotation is WireEvent:
        return EVENT
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _values(arguments[0])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of(*map(_values, arguments))
    if origin is list:
        return st.lists(_values(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(VALID_TEXT, _values(arguments[1]), max_size=3)
    return {
        str: VALID_TEXT.map(lambda found: found or "x"),
        int: st.integers(1, 64),
        float: st.floats(0, 1e9),
        bool: st.booleans(),
        type(None): st.none(),
        Any: VALUES,
    }[annotation]


@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
@pytest.mark.parametrize("kind", CLIENT_MESSAGES + SERVER_MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_round_trips_and_fits_the_schema(kind: type[Message], subprotocol: str) -> None:
    validator = jsonschema.Draft202012Validator(schema() | {"$ref": f"#/$defs/{kind.__name__}"})

    @settings(max_examples=25, deadline=None)
    @given(_strategy(kind))
    def check(message: Message) -> None:
        frame = encode(message, subprotocol=subprotocol)
        assert isinstance(frame, str if subprotocol == JSON else bytes)
        assert decode(frame, sender=kind.sender, subprotocol=subprotocol) == message
        value = json.loads(frame) if isinstance(frame, str) else msgpack.unpackb(frame)
        validator.validate(value)

    check()


def test_a_message_is_refused_from_the_wrong_sender() -> None:
    frame = encode(Hello(), subprotocol=MSGPACK)
    with pytest.raises(ProtocolError, match="type") as caught:
        decode(frame, sender="server", subprotocol=MSGPACK)
    assert caught.value.wire == "bad_message"


@given(
    st.binary(max_size=200) | st.text(max_size=200), st.sampled_from(SENDERS), st.sampled_from(SUBPROTOCOLS)
)
def test_any_frame_is_a_message_or_a_protocol_error(frame: Any, sender: Any, subprotocol: str) -> None:
    _decode_or_code(frame, sender, subprotocol)


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.binary(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = sorted({name for kind in CLIENT_MESSAGES + SERVER_MESSAGES for name in kind.model_fields})
TYPES = [kind.model_fields["type"].default for kind in CLIENT_MESSAGES + SERVER_MESSAGES]


@settings(max_examples=300)
@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(KEYS), HOSTILE, max_size=5))
def test_any_map_is_a_message_or_a_protocol_error(kind: str, rest: dict[str, Any]) -> None:
    value = rest | {"type": kind}
    for sender in SENDERS:
        try:
            packed = msgpack.packb(value)
        except (ValueError, UnicodeEncodeError):
            packed = b"\xc1"
        _decode_or_code(packed, sender, MSGPACK)
        _decode_or_code(json.dumps(value, default=str, skipkeys=True), sender, JSON)


def _decode_or_code(frame: Any, sender: Any, subprotocol: str) -> str | None:
    try:
        message = decode(frame, sender=sender, subprotocol=subprotocol)
    except ProtocolError as error:
        assert error.wire in messages.ERROR_CODES
        assert "\n" not in str(error)
        str(error).encode()
        return error.wire
    # What was accepted can be said again, in either encoding.
    for other in SUBPROTOCOLS:
        assert decode(encode(message, subprotocol=other), sender=sender, subprotocol=other) == message
    return None


NEST = b"\xdd\x00\x00\x27\x10"
SLOW = {
    "nested arrays that claim many items": b"\x81\xa1a" + NEST * 13_000,
    "an array of wrong items": msgpack.packb(
        {"type": "act", "match": "m", "request": 1, "action": [1] * 60_000}
    ),
    "a map of many keys": msgpack.packb({"type": "ping", "id": "1", **{str(i): 0 for i in range(8000)}}),
    "deep arrays": b"\x91" * MAX_CLIENT_BYTES,
    "many versions": msgpack.packb({"type": "hello", "versions": ["1"] * 9000}),
    "deep JSON": "[" * MAX_CLIENT_BYTES,
    "deep JSON maps": '{"a":' * 10_000,
    "a long number": "1" * MAX_CLIENT_BYTES,
    "many numbers": '{"type":"act","action":[' + "1," * 30_000 + "1]}",
    "a large exponent": '{"type":"ping","id":"1","x":1e' + "9" * 60_000 + "}",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("frame", SLOW.values(), ids=SLOW)
def test_no_frame_costs_more_than_its_size_deserves(frame: Any) -> None:
    subprotocol = JSON if isinstance(frame, str) else MSGPACK
    _decode_or_code(frame, "client", subprotocol)


def test_the_error_of_a_long_list_names_one_item() -> None:
    frame = msgpack.packb({"type": "act", "match": "m", "request": 1, "action": [1] * 9000})
    with pytest.raises(ProtocolError) as caught:
        decode(frame, sender="client", subprotocol=MSGPACK)
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"", "bad_frame"),
        ("text in a msgpack connection", "bad_frame"),
        (b"\x01", "bad_message"),
        (msgpack.packb({"type": "ping"}), "bad_message"),
        (msgpack.packb({"type": "no such"}), "bad_message"),
        (msgpack.packb({"type": 7}), "bad_message"),
        (msgpack.packb({"type": "ping", "id": "1"}) + b"\x00", "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "1", "x": b"bytes"}), "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "1", b"x": 1}), "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "1", "x": math.inf}), "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "1", "x": 2**64 - 1}), "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "1", "x": msgpack.Timestamp(1)}), "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "1", "x": msgpack.ExtType(4, b"")}), "bad_frame"),
        (msgpack.packb({"type": "ping", "id": "x" * MAX_CLIENT_BYTES}), "too_large"),
        (msgpack.packb({"type": "ping", "id": "x" * 81}), "bad_message"),
        (msgpack.packb({"type": "act", "match": "m", "request": "1", "action": "a"}), "bad_message"),
        (msgpack.packb({"type": "act", "match": "m", "request": True, "action": "a"}), "bad_message"),
        (msgpack.packb({"type": "act", "match": "m", "request": -1, "action": "a"}), "bad_message"),
        (msgpack.packb({"type": "act", "match": "m", "request": 1}), "bad_message"),
        (msgpack.packb({"type": "act", "match": "m", "request": 1, "action": "a", "failure": "error"}), "bad_message"),
    ],
)  # fmt: skip
def test_bad_frames_have_their_code(frame: Any, code: str) -> None:
    assert _decode_or_code(frame, "client", MSGPACK) == code


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "bad_frame"),
        (b'{"type":"ping","id":"1"}', "bad_frame"),
        ('{"type":"ping","id":"1","x":NaN}', "bad_frame"),
        ('{"type":"ping","id":"1","x":-Infinity}', "bad_frame"),
        ('{"type":"ping","id":"1","x":1e999}', "bad_frame"),
        ('{"type":"ping","id":"1","x":9223372036854775808}', "bad_frame"),
        ('{"type":"ping","id":"1","x":"\\ud800"}', "bad_frame"),
        ('{"type":"ping","id":"1","\\udfff":1}', "bad_frame"),
        ('{"type":"ping","id":"\ud800"}', "bad_frame"),
        ('{"type":"ping","id":"1"} {}', "bad_frame"),
        ("é" * MAX_CLIENT_BYTES, "too_large"),
        ("é" * (MAX_CLIENT_BYTES // 2 + 1), "too_large"),
        ("null", "bad_message"),
    ],
)
def test_bad_json_frames_have_their_code(frame: Any, code: str) -> None:
    assert _decode_or_code(frame, "client", JSON) == code


@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
def test_depth_is_bounded(subprotocol: str) -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value]
        frame = {"type": "ping", "id": "1", "x": value}
        return json.dumps(frame) if subprotocol == JSON else msgpack.packb(frame)

    assert _decode_or_code(nested(MAX_DEPTH - 1), "client", subprotocol) is None
    assert _decode_or_code(nested(MAX_DEPTH), "client", subprotocol) == "bad_frame"


@pytest.mark.parametrize(("sender", "limit"), [("client", MAX_CLIENT_BYTES), ("server", MAX_SERVER_BYTES)])
@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
def test_the_size_limit_is_exact(sender: Any, limit: int, subprotocol: str) -> None:
    def frame(extra: int) -> Any:
        rest = {"type": "ping", "id": "1"} if sender == "client" else {"type": "pong", "id": "1"}
        value = rest | {"x": "y" * 70_000}
        size = len(json.dumps(value)) if subprotocol == JSON else len(msgpack.packb(value))
        value["x"] = "y" * (70_000 + limit - size + extra)
        return json.dumps(value) if subprotocol == JSON else msgpack.packb(value)

    # msgpack writes a shorter head for a string under 64 KiB, two bytes of it.
    short = 2 if subprotocol == MSGPACK and sender == "client" else 0
    assert len(frame(short)) == limit
    assert _decode_or_code(frame(short), sender, subprotocol) is None
    assert _decode_or_code(frame(short + 1), sender, subprotocol) == "too_large"


def test_unknown_keys_are_ignored() -> None:
    frame = msgpack.packb({"type": "ping", "id": "1", "newer": {"than": ["this"]}})
    assert decode(frame, sender="client", subprotocol=MSGPACK) == Ping(id="1")


def test_nothing_within_a_message_is_left_out() -> None:
    events = Events(match="m", first=0, events=[["vote", {"by": None, "votes": [None, 1]}, None]])
    assert '"by":null' in str(encode(events, subprotocol=JSON))
    assert '"name"' not in str(encode(Error(code="limit", message="full"), subprotocol=JSON)).replace(
        '"name":""', ""
    )


def test_the_schema_of_a_turn_is_called_schema_on_the_wire() -> None:
    turn = Turn(
        match="m", request=1, space={"kind": "text"}, json_schema={"enum": ["a"]}, describe="", deadline_s=1
    )
    assert json.loads(encode(turn, subprotocol=JSON))["schema"] == {"enum": ["a"]}


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 50))
def test_batches_are_the_events_in_order(sizes: list[int], first: int) -> None:
    lengths = {0: 1, 1: 1000, 2: MAX_BATCH_BYTES // 2, 3: MAX_BATCH_BYTES + 1}
    events = [["say", {"text": "\x01" * lengths[size], "n": n}] for n, size in enumerate(sizes)]
    batches = list(event_batches("m", events, first=first))
    assert [event for batch in batches for event in batch.events] == events
    at = first
    for batch in batches:
        assert batch.first == at and batch.events
        at += len(batch.events)
        for subprotocol in SUBPROTOCOLS:
            frame = encode(batch, subprotocol=subprotocol)
            assert decode(frame, sender="server", subprotocol=subprotocol) == batch


def test_a_batch_has_a_length_too() -> None:
    events = [["a", {}]] * (2 * MAX_BATCH + 1)
    assert [len(batch.events) for batch in event_batches("m", events, first=0)] == [MAX_BATCH, MAX_BATCH, 1]
