"""The decisions of a record: every one of them, with its turn and what came of it."""

from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.policy_moments import read_moments
from games.base import Event
from games.errors import ArenaError
from games.referee import Input
from replays.errors import RecordDamaged
from tests.arena.policy_records import play_bots
from tests.replays.recording import encode, entries, header, make, read


@given(game=st.sampled_from(["kuhn", "avalon", "werewolf"]), seed=st.integers(0, 40))
@settings(max_examples=20, deadline=None)
def test_every_answer_to_a_turn_is_a_decision(
    game: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seats = {"kuhn": 2, "avalon": 5, "werewolf": 6}[game]
    path = tmp_path_factory.mktemp("r") / "m.arena"
    path.write_bytes(make(game, seats=seats, seed=seed, messy=True))
    record = read(path.read_bytes())
    moments = read_moments(path)
    kinds = [entry.kind for entry in record.entries if isinstance(entry, Event)]
    fates = [moment.fate for moment in moments.all]
    assert fates.count("asked again") == kinds.count("rejected")
    inputs = [entry for entry in record.entries if isinstance(entry, Input)]
    ignored = kinds.count("late") + sum(one.failure == "forfeit" for one in inputs)
    assert len(inputs) - ignored <= len(moments.all) <= len(inputs)
    for moment in moments.all:
        assert moment.given in inputs and moment.turn.seat == moment.given.seat
        assert (moment.turn.attempt > 0) == bool(moment.turn.failure)
        assert all(event.visible_to(moment.turn.seat) for event in moments.before(moment))
        played = moment.fate == "played"
        assert not played or moment.turn.space.contains(moment.turn.space.from_json(moment.given.action))


def test_a_decision_is_found_by_ply_seat_and_attempt(tmp_path: Path) -> None:
    moments = read_moments(play_bots(tmp_path, messy=True))
    assert moments.find() is moments.all[0]
    again = next(moment for moment in moments.all if moment.turn.attempt == 1)
    ply, seat = again.turn.ply, again.turn.seat
    assert moments.find(ply=ply, seat=seat).turn.attempt == 0
    assert moments.find(ply=ply, seat=seat, attempt=1) is again
    assert moments.attempts(again) >= 2
    for seat in range(moments.state.seats):
        listed = moments.listed(seat=seat)
        assert all(moment.turn.seat == seat for moment in listed)
        assert not listed or moments.find(seat=seat) is listed[0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"ply": 10_000}, "ply: got 10000, this record has plies 0 to"),
        ({"ply": -1}, "ply: got -1"),
        ({"seat": 6}, "seat: got 6, this match has seats 0 to 5"),
        ({"attempt": 7}, "attempt: got 7"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(asked: dict[str, int], said: str, tmp_path: Path) -> None:
    moments = read_moments(play_bots(tmp_path))
    with pytest.raises(ArenaError, match=said) as caught:
        moments.find(**asked)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def test_a_seat_that_was_not_asked_at_a_ply(tmp_path: Path) -> None:
    moments = read_moments(play_bots(tmp_path))
    at_zero = {moment.turn.seat for moment in moments.all if moment.turn.ply == 0}
    other = next(seat for seat in range(6) if seat not in at_zero)
    with pytest.raises(ArenaError, match=f"seat: got {other}, at ply 0 decided: "):
        moments.find(ply=0, seat=other)


def test_a_record_that_was_cut_short_and_one_that_is_no_match(tmp_path: Path) -> None:
    whole = make("avalon", seats=5, seed=1)
    cut = tmp_path / "cut.arena"
    cut.write_bytes(whole[: len(whole) // 2])
    assert 0 < len(read_moments(cut).all) < len(read_moments(_written(tmp_path / "w.arena", whole)).all)
    head = header("avalon", seats=5)
    made, _ = entries(head)
    odd = [one._replace(seat=99) if isinstance(one, Input) else one for one in made]
    with pytest.raises(RecordDamaged, match="not a match of these rules"):
        read_moments(_written(tmp_path / "odd.arena", encode(head, odd, None)))


def test_a_record_in_which_nobody_decided(tmp_path: Path) -> None:
    head = header("kuhn")
    made, _ = entries(head)
    deal = list(takewhile(lambda one: isinstance(one, Event), made))
    moments = read_moments(_written(tmp_path / "k.arena", encode(head, deal, None)))
    with pytest.raises(ArenaError, match="nobody has decided"):
        moments.find()
    with pytest.raises(RecordDamaged, match="its deal is not whole"):
        read_moments(_written(tmp_path / "k.arena", encode(head, deal[:1], None)))


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
