"""The referee as a script of inputs and expected entries; no sockets, no clock."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.base import Event
from games.errors import BadOption, IllegalAction
from games.referee import FAILURES, RETRIED, Entry, Input, Referee, tally
from games.registry import game_names, load_game
from games.rng import RecordedChance

KUHN = load_game("kuhn")


def kuhn(*, retries: int = 2) -> Referee:
    """Seat 0 holds the king, seat 1 the jack."""
    return Referee(KUHN.start(RecordedChance([2, 0])), retries=retries)


def kinds(entries: list[Entry]) -> list[str]:
    return [entry.kind if isinstance(entry, Event) else "input" for entry in entries]


def test_a_hand_without_trouble() -> None:
    referee = kuhn()
    assert [event.kind for event in referee.opening()] == ["chance", "chance", "card", "card"]
    assert kinds(referee.submit(0, "bet")) == ["input", "move"]
    assert list(referee.turns()) == [1]
    assert kinds(referee.submit(1, "call")) == ["input", "move", "showdown", "end"]
    assert referee.over
    assert referee.turns() == {}
    assert [referee.ended(seat) for seat in (0, 1)] == ["won", "lost"]
    assert referee.counts == {"turns": 2}


@pytest.mark.parametrize("failure", RETRIED)
def test_retries_then_the_default(failure: str) -> None:
    referee = kuhn(retries=2)
    for attempt in (1, 2):
        entries = referee.fail(0, failure, "why")
        assert kinds(entries) == ["input", "rejected"]
        event = entries[1]
        assert isinstance(event, Event)
        assert event.audience == (0,)
        assert event.data == {"seat": 0, "failure": failure, "reason": "why", "attempt": attempt}
        turn = referee.turns()[0]
        assert (turn.attempt, turn.failure, turn.reason) == (attempt, failure, "why")
    entries = referee.fail(0, failure, "why")
    assert kinds(entries) == ["input", "forced", "move"]
    assert entries[2] == Event("move", {"seat": 0, "move": "check"})
    assert referee.counts == {failure: 3, "forced": 1, "turns": 1}


@pytest.mark.parametrize("failure", sorted(set(FAILURES) - set(RETRIED) - {"forfeit"}))
def test_lost_time_is_not_asked_again(failure: str) -> None:
    referee = kuhn()
    assert kinds(referee.fail(0, failure)) == ["input", "forced", "move"]
    assert referee.counts == {failure: 1, "forced": 1, "turns": 1}
    assert list(referee.turns()) == [1]
    assert referee.turns()[1].attempt == 0


def test_an_illegal_action_is_told_what_is_legal_and_nobody_else_learns_of_it() -> None:
    referee = kuhn()
    entries = referee.submit(0, "all-in")
    event = entries[1]
    assert isinstance(event, Event)
    assert event.data["reason"] == "'all-in' is not legal; answer with one of: check, bet"
    assert not event.visible_to(1)
    assert not event.visible_to(None)
    assert kinds(referee.submit(0, "bet")) == ["input", "move"]
    assert referee.counts == {"illegal": 1, "turns": 1}


@pytest.mark.parametrize("action", [None, 7, ["check"], ("check",), {"a": 1}, "", "x" * 100_000, True, 1.5])
def test_any_value_is_an_action_or_illegal(action: Any) -> None:
    referee = kuhn()
    entries = referee.feed(Input(0, 0, action))
    assert kinds(entries) == ["input", "rejected"]
    assert len(str(entries[1])) < 1000


def test_late_and_stale_answers_change_nothing() -> None:
    referee = kuhn()
    referee.submit(0, "check")
    for late in (Input(0, 0, "bet"), Input(0, 1, "bet"), Input(1, 0, "bet"), Input(1, 5, "bet")):
        entries = referee.feed(late)
        assert kinds(entries) == ["input", "late"]
        assert list(referee.turns()) == [1]
    assert referee.counts == {"turns": 1, "late": 4}


def test_a_forfeit_costs_that_seat_only_and_the_match_goes_on() -> None:
    referee = kuhn()
    assert kinds(referee.forfeit(0)) == ["input", "forfeit", "forced", "move"]
    assert kinds(referee.submit(1, "bet")) == ["input", "move", "forced", "move", "end"]
    assert [referee.ended(seat) for seat in (0, 1)] == ["forfeit", "won"]
    assert referee.counts == {"forfeit": 1, "forced": 2, "turns": 3}
    assert kinds(referee.forfeit(1)) == ["input", "late"]
    assert referee.ended(1) == "won"


def test_a_forfeit_while_another_seat_acts_takes_effect_at_its_turn() -> None:
    referee = kuhn()
    assert kinds(referee.forfeit(1)) == ["input", "forfeit"]
    assert kinds(referee.submit(0, "bet")) == ["input", "move", "forced", "move", "end"]


@pytest.mark.parametrize("name", game_names())
def test_all_seats_gone_at_once_still_ends(name: str) -> None:
    game = load_game(name)
    played = 0
    for seats in range(game.seats[0], game.seats[1] + 1):
        try:
            referee = Referee(game.new(seed=3, seats=seats))
        except BadOption:  # so many play with other options only
            continue
        for seat in range(seats):
            referee.forfeit(seat)
        assert referee.over
        assert {referee.ended(seat) for seat in range(seats)} == {"forfeit"}
        played += 1
    assert played


def test_nonsense_inputs_are_refused() -> None:
    referee = kuhn()
    with pytest.raises(IllegalAction, match="seats 0 to 1"):
        referee.submit(2, "bet")
    with pytest.raises(IllegalAction, match="seats 0 to 1"):
        referee.forfeit(-1)
    with pytest.raises(IllegalAction, match="allowed are unparsed"):
        referee.fail(0, "bored")
    with pytest.raises(IllegalAction, match="goes on"):
        referee.ended(0)


def random_input(referee: Referee, rng: random.Random) -> Input:
    seat = rng.choice(list(referee.turns()))
    dice = rng.random()
    if dice < 0.5:
        return Input(seat, referee.ply, referee.turns()[seat].space.sample(rng))
    if dice < 0.6:
        return Input(rng.randrange(referee.state.seats), rng.randrange(5), "anything")
    if dice < 0.62:
        return Input(rng.randrange(referee.state.seats), referee.ply, None, "forfeit")
    return Input(seat, referee.ply, None, rng.choice([f for f in FAILURES if f != "forfeit"]), "reason")


@settings(max_examples=40)
@given(st.sampled_from(game_names()), st.integers(0, 2**32), st.integers(0, 3))
def test_the_same_inputs_give_the_same_entries_and_the_counts_can_be_read_off(
    name: str, seed: int, retries: int
) -> None:
    game = load_game(name)
    rng = random.Random(seed)
    referee = Referee(game.new(seed=seed), retries=retries)
    inputs, entries = [], list[Entry](referee.opening())
    while not referee.over:
        given_input = random_input(referee, rng)
        inputs.append(given_input)
        entries += referee.feed(given_input)
    again = Referee(game.new(seed=seed), retries=retries)
    repeated = list[Entry](again.opening())
    for given_input in inputs:
        repeated += again.feed(given_input)
    assert repeated == entries
    assert again.outcome() == referee.outcome()
    counts = type(referee.counts)(turns=referee.counts["turns"])
    for entry in entries:
        if isinstance(entry, Event):
            tally(counts, entry)
    assert counts == referee.counts


@pytest.mark.parametrize("name", game_names())
def test_simultaneous_turns_take_answers_in_any_order(name: str) -> None:
    game = load_game(name)
    for seed in range(5):
        rng = random.Random(seed)
        one, other = (Referee(game.new(seed=seed)) for _ in range(2))
        while not one.over:
            actions = {seat: turn.space.sample(rng) for seat, turn in one.turns().items()}
            for seat in actions:
                one.submit(seat, actions[seat])
            for seat in reversed(actions):
                other.submit(seat, actions[seat])
        assert one.state.history == other.state.history
