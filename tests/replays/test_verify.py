"""Verifying: a record that was forged with all its hashes right is found by playing it again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from games.base import Event
from games.errors import UnknownGame
from games.referee import Entry, Input
from games.registry import load_game
from replays.codec import pack, unpack
from replays.errors import RecordDamaged
from replays.record import Header
from replays.verify import Verdict, rebuild, start, verify, verify_file
from tests.replays.recording import (
    bodies,
    encode,
    entries,
    footer,
    forge,
    forged_footer,
    header,
    make,
    read,
    seal,
    swap,
    turns,
)
from tests.replays.recording import referee as new_referee

SEATS = {"kuhn": 2, "avalon": 6, "werewolf": 7}
RECORDS = {game: make(game, seats=seats, seed=11, messy=True) for game, seats in SEATS.items()}


@pytest.mark.parametrize("game", SEATS)
@pytest.mark.parametrize("messy", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_honest_record_verifies(game: str, messy: bool, seed: int) -> None:
    record = read(make(game, seats=SEATS[game], seed=seed, messy=messy))
    assert verify(record) == Verdict(True, sum(1 for _ in record.events()))


def other(value: Any) -> Any:
    """Return a value of the same shape that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if value is None:
        return 0
    if isinstance(value, dict):
        return {**value, "x": 1}
    return [other(value[0]), *value[1:]] if value else [0]


def index_of(made: list[Entry], at: int) -> int:
    return sum(isinstance(entry, Event) for entry in made[:at])


@pytest.mark.parametrize("game", SEATS)
def test_an_event_that_was_changed_and_hashed_anew_is_named(game: str) -> None:
    data = RECORDS[game]
    made = read(data).entries
    tried = 0
    for at, entry in enumerate(made):
        if not isinstance(entry, Event) or (len(made) > 60 and at % 9):
            continue
        forgeries = [swap(entry, **{key: other(value)}) for key, value in entry.data.items()]
        forgeries += [
            entry._replace(kind="other"),
            entry._replace(audience=(0,) if entry.audience != (0,) else None),
            entry._replace(audience=None if entry.audience is not None else ()),
            swap(entry, extra=1),
        ]
        for forged in forgeries:
            verdict = verify(read(forge(data, [*made[:at], forged, *made[at + 1 :]])))
            assert (verdict.ok, verdict.first_bad) == (False, index_of(made, at)), forged
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("game", SEATS)
def test_an_event_that_was_taken_out_doubled_or_moved_is_named(game: str) -> None:
    data = RECORDS[game]
    made = read(data).entries
    for at, entry in enumerate(made):
        if not isinstance(entry, Event) or (len(made) > 60 and at % 5):
            continue
        index = index_of(made, at)
        gone = verify(read(forge(data, [*made[:at], *made[at + 1 :]])))
        assert (gone.ok, gone.first_bad) == (False, index)
        twice = verify(read(forge(data, [*made[: at + 1], entry, *made[at + 1 :]])))
        assert (twice.ok, twice.first_bad) == (False, index + 1)
        after = made[at + 1] if at + 1 < len(made) else None
        if isinstance(after, Event) and after != entry:
            moved = verify(read(forge(data, [*made[:at], after, entry, *made[at + 2 :]])))
            assert (moved.ok, moved.first_bad) == (False, index)


@pytest.mark.parametrize("game", SEATS)
def test_an_action_that_was_changed_is_found_at_the_first_event_it_would_have_changed(game: str) -> None:
    head = header(game, seats=SEATS[game], seed=4)
    made, end = entries(head)
    tried = 0
    table = new_referee(head)
    for at, entry in enumerate(made):
        if isinstance(entry, Event):
            continue
        space = table.turns()[entry.seat].space
        options = getattr(space, "options", ())
        change = next((o for o in options if o != entry.action and space.contains(o)), None)
        table.feed(entry)
        if change is None:
            continue
        forged = [*made[:at], entry._replace(action=change), *made[at + 1 :]]
        verdict = verify(read(encode(head, forged, end)))
        # a secret answer may show later than the next event, never earlier than its own
        assert not verdict.ok and verdict.first_bad is not None
        assert verdict.first_bad >= index_of(made, at)
        tried += 1
    assert tried > 0


@pytest.mark.parametrize("game", SEATS)
def test_inputs_that_were_taken_out_or_added_are_found(game: str) -> None:
    data = RECORDS[game]
    made = read(data).entries
    for at, entry in enumerate(made):
        if isinstance(entry, Event) or (len(made) > 60 and at % 5):
            continue
        assert not verify(read(forge(data, [*made[:at], *made[at + 1 :]]))).ok
        for extra in (
            entry,
            Input(0, 99, "late"),
            Input(1, 0, None, "forfeit"),
            Input(0, 0, None, "nonsense"),
        ):
            assert not verify(read(forge(data, [*made[:at], extra, *made[at:]]))).ok
    late = verify(read(forge(data, [*made, Input(0, 0, "after the end")])))
    assert (late.ok, late.first_bad) == (False, index_of(made, len(made)))
    assert "'late'" in late.reason


@pytest.mark.parametrize("seat", [-1, 2, 2**70])
def test_an_input_from_a_seat_that_is_not_there(seat: int) -> None:
    made = read(RECORDS["kuhn"]).entries
    verdict = verify(read(forge(RECORDS["kuhn"], [*made[:4], Input(seat, 0, "check"), *made[4:]])))
    assert not verdict.ok and "seat" in verdict.reason


def test_a_forged_deal_is_found_at_the_draw_itself() -> None:
    """All that follows from the other draw is consistent with it; the seed is not."""
    head = header("kuhn", seed=7)
    made, end = entries(replace(head, seed=8), seed=7)
    assert [e for e in made if isinstance(e, Event) and e.kind == "chance"] != [
        e for e in entries(head)[0] if isinstance(e, Event) and e.kind == "chance"
    ]
    verdict = verify(read(encode(head, made, end)))
    assert not verdict.ok and verdict.first_bad in (0, 1)
    assert verdict.reason == "'chance' differs from what the rules emit"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ended": ("won", "won")}, "ended"),
        ({"ended": ("lost",)}, "ended"),
        ({"counts": {"turns": 99}}, "counts"),
        ({"counts": {}}, "counts"),
        ({"events": 3}, "counts 3 events"),
        ({"chain": bytes(32)}, "chain"),
    ],
)
def test_a_forged_footer_is_found(changes: dict[str, Any], words: str) -> None:
    data = RECORDS["kuhn"]
    verdict = verify(read(forged_footer(data, **changes)))
    assert (verdict.ok, verdict.first_bad) == (False, verdict.events)
    assert words in verdict.reason


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": "x"},
        {"returns": (0.0, 0.0)},
        {"teams": ("second", "first")},
        {"roles": ("", "")},
        {"turn_limit": True},
    ],
)
def test_a_forged_outcome_is_found(changes: dict[str, Any]) -> None:
    data = RECORDS["kuhn"]
    record = read(data)
    assert record.footer is not None
    verdict = verify(read(forged_footer(data, outcome=record.footer.outcome._replace(**changes))))
    assert (verdict.ok, verdict.reason) == (False, "the footer's outcome is not that of the match")


def test_a_footer_before_the_end_of_the_match() -> None:
    head = header("avalon", seats=5)
    made, end = entries(head)
    cut = next(at for at in range(len(made) // 2, len(made)) if isinstance(made[at], Input))
    verdict = verify(read(encode(head, made[:cut], end)))
    assert (verdict.ok, verdict.reason) == (False, "the footer stands before the end of the match")


def head_changed(data: bytes, **changes: Any) -> bytes:
    parts = bodies(data)
    raw = unpack(parts[0])[1]
    record = seal([pack(["h", {**raw, **changes}]), *parts[1:-1]])
    chain = read(record)
    assert chain.damage is not None and chain.damage.truncated
    made = read(data)
    assert made.footer is not None
    return encode(Header.from_data({**raw, **changes}), chain.entries, made.footer)


@pytest.mark.parametrize(
    ("changes", "words", "first_bad"),
    [
        ({"rules": "999"}, "recorded under kuhn rules 999, installed are rules", None),
        ({"game": "no such game"}, "known are", None),
        ({"game": "avalon", "rules": load_game("avalon").version}, "seats", 0),
        ({"options": {"colour": "red"}}, "unknown", 0),
        ({"options": {"x" * 9: {"deep": [[[]]]}}}, "unknown", 0),
        ({"seed": 13}, "chance", 0),
        ({"seed": -1}, "seed", 0),
        ({"seed": 2**80}, "seed", 0),
        ({"seats": []}, "seats", 0),
        ({"seats": [{"name": "a", "spec": "b", "agent": "", "policy": ""}] * 3}, "seats", 0),
        ({"seats": [{"name": "a", "spec": "b", "agent": "", "policy": ""}] * 5000}, "seats", 0),
        ({"retries": 0}, "", None),
    ],
)
def test_a_forged_header_is_found(changes: dict[str, Any], words: str, first_bad: int | None) -> None:
    verdict = verify(read(head_changed(RECORDS["kuhn"], **changes)))
    assert not verdict.ok
    assert words in verdict.reason
    if words:
        assert verdict.first_bad == first_bad or (words == "chance" and verdict.first_bad in (0, 1))


def test_who_sat_there_is_not_part_of_the_simulation_but_of_the_hashes() -> None:
    data = RECORDS["kuhn"]
    seats = [{"name": "x", "spec": "y", "agent": "", "policy": ""}] * 2
    assert verify(read(head_changed(data, seats=seats))).ok
    assert head_changed(data, seats=seats)[-40:] != data[-40:]


def test_a_file_is_verified_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "m.arena"
    path.write_bytes(RECORDS["kuhn"])
    assert verify_file(path).ok


@pytest.mark.parametrize("game", SEATS)
def test_start_needs_no_seed(game: str) -> None:
    record = read(head_changed(RECORDS[game], seed=0))
    made = entries(header(game, seats=SEATS[game], seed=11), messy=True)[0]
    again: list[Entry] = []
    table = start(record)
    again += table.opening()
    for entry in record.entries:
        if isinstance(entry, Input):
            again += table.feed(entry)
    assert again == made
    with pytest.raises(UnknownGame):
        start(read(head_changed(RECORDS[game], game="none")))


@pytest.mark.parametrize("game", SEATS)
def test_a_record_cut_anywhere_is_rebuilt_and_finished_to_the_same_bytes(game: str) -> None:
    head = header(game, seats=SEATS[game], seed=5)
    made, end = entries(head)
    whole = encode(head, made, end)
    script = [entry for entry in made if isinstance(entry, Input)]
    for cut in range(0, len(made) + 1, 1 if len(made) < 60 else 11):
        record = read(encode(head, made[:cut], None))
        table, missing = rebuild(record)
        again = [*record.entries, *missing]
        assert again == made[: len(again)]
        given = sum(isinstance(entry, Input) for entry in again)
        for entry in script[given:]:
            again += table.feed(entry)
        assert table.over and encode(head, again, footer(table)) == whole


def test_a_rebuilt_match_asks_for_the_same_turns() -> None:
    head = header("werewolf", seats=6, seed=2)
    table = new_referee(head)
    made: list[Entry] = list(table.opening())
    for given in turns(table, seed=2, messy=True):
        rebuilt, missing = rebuild(read(encode(head, made, None)))
        assert not missing
        assert rebuilt.turns() == table.turns() and rebuilt.counts == table.counts
        made += table.feed(given)


def test_a_record_that_is_not_what_the_rules_give_is_not_rebuilt() -> None:
    data = RECORDS["kuhn"]
    made = read(data).entries
    first = made[0]
    assert isinstance(first, Event)
    head = read(data).header
    with pytest.raises(RecordDamaged, match="event 0 is bad: 'chance' differs"):
        rebuild(read(encode(head, [swap(first, value=2 - first.data["value"] or 1), *made[1:6]], None)))
    with pytest.raises(RecordDamaged, match="chain breaks"):
        rebuild(read(data[:-5] + b"?????"))
