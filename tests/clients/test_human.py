"""What a person is told of a turn, and which key picks what."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clients.human import (
    RESERVED,
    action_title,
    default_title,
    is_seat,
    option_keys,
    option_title,
    question,
    result_title,
    trouble_of,
)
from clients.match import Match
from clients.protocol import messages as wire
from games.base import Event
from games.spaces import Choice, Subset, Text

NAMES = ("Ada", "Bors", "\x1b[31mCai", "", "Elaine")


class Line:
    """A connection that goes nowhere, and remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left: list[str] = []

    def act(self, match: str, **answer: Any) -> bool:
        self.sent.append(answer)
        return True

    def leave(self, match: str) -> None:
        self.left.append(match)


def seat(game: str = "kuhn", *, seats: int = 2, at: int = 0, names: tuple[str, ...] = ()) -> Match:
    from games.registry import load_game

    rules = load_game(game)
    return Match(
        Line(),
        wire.Seated(
            match="m", game=game, rules=rules.version, options={}, seats=seats, seat=at, names=list(names),
            resume="r", events=0, retries=2, deadline_s=60,
        ),
    )  # fmt: skip


def turn(match: Match, space: Any, **more: Any) -> wire.Turn:
    return wire.Turn(
        match=match.id,
        space=space.to_data(),
        describe=space.describe(),
        **{"request": 1, "deadline_s": 60.0} | more,
    )  # type: ignore[call-arg]


options = st.lists(
    st.one_of(st.integers(0, 14).map(str), st.text("abcqfgvn ", min_size=1, max_size=6)),
    min_size=1,
    max_size=14,
    unique=True,
).map(tuple)


@given(options, st.integers(1, 12))
def test_every_key_picks_one_option_and_a_seat_is_picked_by_its_number(
    options: tuple[str, ...], seats: int
) -> None:
    keys = option_keys(options, seats=seats)
    assert set(keys.values()) <= set(options) and len(set(keys.values())) == len(keys)
    assert not set(keys) & RESERVED and all(len(key) == 1 for key in keys)
    there = [option for option in options if is_seat(option, seats=seats)]
    for option in there:
        assert len(option) > 1 or keys[option] == option
    if there:
        assert all(not key.isdigit() or option == key for key, option in keys.items())
    else:
        assert list(keys.values()) == list(options[:9])


def test_options_are_named_for_people() -> None:
    assert option_title("1", names=NAMES, seats=5) == "seat 1 Bors"
    assert option_title("2", names=NAMES, seats=5) == "seat 2 \\u001b[31mCai"
    assert option_title("3", names=NAMES, seats=5) == "seat 3"
    assert option_title("7", names=NAMES, seats=5) == "7", "no such seat: a number"
    assert option_title("check", names=(), seats=2) == "check"
    assert action_title(("0", "4"), names=NAMES, seats=5) == "seat 0 Ada, seat 4 Elaine"
    assert action_title((), names=NAMES, seats=5) == "nobody"
    assert option_keys(("1", "2", "abstain", "none"), seats=5) == {
        "1": "1", "2": "2", "a": "abstain", "o": "none",
    }  # fmt: skip


async def _turns() -> None:
    match = seat("avalon", seats=5, names=NAMES)
    for space, asked, otherwise in (
        (Choice(("approve", "reject"), label="vote"), "Vote: choose one", "approve"),
        (Subset(("0", "1", "2"), 2, label="propose"), "Propose: choose exactly 2", "seat 0 Ada, seat 1 Bors"),
        (Text(300, label="wolf_talk"), "Wolf talk: at most 300 characters", "you say nothing"),
    ):
        match.take(turn(match, space))
        assert match.turn is not None
        assert (question(match.turn), default_title(match.turn)) == (asked, otherwise)


def test_a_turn_says_what_is_asked_and_what_happens_otherwise() -> None:
    asyncio.run(_turns())


async def _results() -> None:
    for ended, value, teams, text in (
        ("won", 1.0, ["first", "second"], "You won (+1): fold"),
        ("forfeit", -1.0, ["a", "b"], "You have forfeited as first (-1): fold"),
    ):
        match = seat()
        match.take(
            wire.Over(
                match="m", reason="fold", returns=[value, -value], teams=teams, roles=["first", "second"],
                ended=[ended, "lost"], counts={},
            )
        )  # fmt: skip
        assert result_title(match) == text


def test_a_result_says_how_it_ended_for_the_seat() -> None:
    asyncio.run(_results())


def test_what_the_referee_did_is_told_of_the_own_seat_alone() -> None:
    match = seat(at=1)
    assert "default" in trouble_of(match, Event("forced", {"seat": 1}))
    assert "too late" in trouble_of(match, Event("late", {"seat": 1}))
    assert "forfeited" in trouble_of(match, Event("forfeit", {"seat": 1}))
    assert trouble_of(match, Event("forced", {"seat": 0})) == ""
    assert trouble_of(match, Event("move", {"seat": 1, "move": "bet"})) == ""
