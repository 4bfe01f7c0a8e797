"""One match in asyncio: real tasks, agents that misbehave in every way, deadlines that have passed already."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from agents.base import Agent, Bot, Decision, Gone, Seat
from agents.match import MatchResult, play
from games.base import Event, Game
from games.referee import Entry, Input, Referee, Turn
from games.registry import game_names, load_game
from games.rng import derive_seed

GAMES = game_names()


class Sampler(Bot):
    def decide(self, turn: Turn) -> Decision:
        return Decision(turn.space.sample(self.rng()), thought="a guess")


class Waiting(Sampler):
    """The same decisions, after a trip through the event loop."""

    instant = False

    async def act(self, turn: Turn) -> Decision:
        await asyncio.sleep(0)
        return self.decide(turn)


class Never(Sampler):
    instant = False

    async def act(self, turn: Turn) -> Decision:
        await asyncio.Event().wait()
        raise AssertionError("nothing sets the event")


class Cancelled(Sampler):
    """What it waited for was called off, but not by the match."""

    instant = False

    async def act(self, turn: Turn) -> Decision:
        raise asyncio.CancelledError


class CancelledAtOnce(Cancelled):
    instant = True


class Raising(Sampler):
    def decide(self, turn: Turn) -> Decision:
        raise RuntimeError("two\nlines")


class OwnTimeout(Sampler):
    def decide(self, turn: Turn) -> Decision:
        raise TimeoutError("a socket of its own")


class Blind(Sampler):
    def observe(self, events: Sequence[Event]) -> None:
        raise ValueError("cannot read")


class Silent(Sampler):
    def decide(self, turn: Turn) -> Decision:
        return Decision(None, failure="ambiguous", reason="two options") if turn.attempt else Decision(None)


class Leaving(Sampler):
    """Plays two turns, then is gone."""

    turns = 0

    def decide(self, turn: Turn) -> Decision:
        self.turns += 1
        if self.turns > 2:
            raise Gone("the line\nis dead")
        return super().decide(turn)


class OwnClock(Waiting):
    keeps_time = True


class Closing(Sampler):
    closed = 0

    async def close(self) -> None:
        type(self).closed += 1


def seat_agents(game: Game, kinds: Sequence[type[Agent]], seed: int) -> tuple[Referee, list[Agent]]:
    referee = Referee(game.new(seed=seed, seats=max(game.seats[0], len(kinds))))
    count = referee.state.seats
    agents = [
        kinds[seat % len(kinds)](
            Seat(game, count, referee.state.options, seat, derive_seed(seed, "seat", seat))
        )
        for seat in range(count)
    ]
    return referee, agents


def run(
    game: Game, kinds: Sequence[type[Agent]], seed: int = 0, *, deadline_s: float = 60.0
) -> tuple[MatchResult, list[Entry], list[Agent]]:
    referee, agents = seat_agents(game, kinds, seed)
    entries: list[Entry] = []
    result = asyncio.run(play(referee, agents, emit=entries.extend, deadline_s=deadline_s))
    return result, entries, agents


@pytest.mark.parametrize("name", GAMES)
def test_instant_and_waiting_agents_play_the_same_match(name: str) -> None:
    game = load_game(name)
    for seed in range(3):
        instant, waiting = run(game, [Sampler], seed), run(game, [Waiting], seed)
        assert instant[0] == waiting[0]
        assert instant[1] == waiting[1]


@pytest.mark.parametrize("name", GAMES)
def test_agents_are_told_exactly_what_their_seat_may_see(name: str) -> None:
    game = load_game(name)
    told: dict[int, list[Event]] = {}

    class Noting(Sampler):
        def observe(self, events: Sequence[Event]) -> None:
            told.setdefault(self.seat.seat, []).extend(events)
            super().observe(events)

    _, entries, agents = run(game, [Noting], 4)
    events = [entry for entry in entries if isinstance(entry, Event)]
    for seat in range(len(agents)):
        assert told[seat] == [event for event in events if event.visible_to(seat)]


def test_an_agent_that_does_not_observe_is_told_nothing() -> None:
    class Deaf(Sampler):
        observes = False

        def observe(self, events: Sequence[Event]) -> None:
            raise AssertionError("it was told of events")

    result, _, _ = run(load_game("kuhn"), [Deaf, Sampler], 4)
    assert not result.counts.get("error")


@pytest.mark.parametrize(
    "kind, failure",
    [
        (Raising, "error"),
        (OwnTimeout, "error"),
        (Cancelled, "error"),
        (CancelledAtOnce, "error"),
        (Blind, "error"),
        (Silent, "unparsed"),
        (Never, "timeout"),
    ],
)
@pytest.mark.parametrize("name", GAMES)
def test_a_bad_agent_costs_its_own_turns_and_never_the_match(
    name: str, kind: type[Agent], failure: str
) -> None:
    game = load_game(name)
    result, entries, _ = run(game, [kind, Sampler], deadline_s=0.0 if kind is Never else 60.0)
    assert result.outcome.returns
    assert result.seat_counts[0][failure] > 0
    assert result.seat_counts[0]["forced"] > 0
    assert all(not counts for counts in result.seat_counts[1::2])
    reasons = [entry.reason for entry in entries if isinstance(entry, Input)]
    assert all("\n" not in reason for reason in reasons)


@pytest.mark.parametrize("kind", [Sampler, Waiting])
def test_an_agent_that_is_gone_forfeits_its_seat_and_no_other(kind: type[Agent]) -> None:
    result, entries, _ = run(load_game("avalon"), [Leaving, kind, kind, kind, kind], 5)
    assert result.ended[0] == "forfeit" and "forfeit" not in result.ended[1:]
    (given,) = [entry for entry in entries if isinstance(entry, Input) and entry.failure is not None]
    assert (given.seat, given.failure, given.reason) == (0, "forfeit", "the line\\nis dead")


def test_an_agent_that_keeps_time_itself_has_no_deadline() -> None:
    result, _, _ = run(load_game("kuhn"), [OwnClock], deadline_s=0.0)
    assert result.seat_counts == ({}, {})


def test_failures_are_counted_apart_and_retried_within_the_turn() -> None:
    result, _, _ = run(load_game("kuhn"), [Silent, Sampler])
    counts = result.seat_counts[0]
    turns = counts["forced"]
    assert counts == {"unparsed": turns, "ambiguous": 2 * turns, "forced": turns}


def test_agents_are_closed_also_when_the_record_fails() -> None:
    Closing.closed = 0
    run(load_game("kuhn"), [Closing])
    assert Closing.closed == 2

    def full_disk(entries: Sequence[Entry]) -> None:
        raise OSError("no space left")

    referee, agents = seat_agents(load_game("kuhn"), [Closing, Never], 0)
    with pytest.raises(OSError, match="no space"):
        asyncio.run(play(referee, agents, emit=full_disk))
    assert Closing.closed == 3


def test_an_agent_that_cannot_close_costs_nobody_anything() -> None:
    class Stuck(Closing):
        async def close(self) -> None:
            raise RuntimeError("still busy")

    Closing.closed = 0
    result, _, _ = run(load_game("kuhn"), [Stuck, Closing])
    assert result.outcome.returns
    assert Closing.closed == 1


def test_a_cancelled_match_leaves_no_task_behind() -> None:
    async def scenario() -> None:
        referee, agents = seat_agents(load_game("kuhn"), [Never], 0)
        match = asyncio.create_task(play(referee, agents))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        match.cancel()
        with pytest.raises(asyncio.CancelledError):
            await match
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


@pytest.mark.parametrize("name", GAMES)
def test_a_match_goes_on_from_any_point_with_rebuilt_agents(name: str) -> None:
    game = load_game(name)
    whole_result, whole, _ = run(game, [Sampler], 9)
    cuts = [i for i, entry in enumerate(whole) if isinstance(entry, Input)]
    for cut in random.Random(0).sample(cuts, min(6, len(cuts))):
        referee, agents = seat_agents(game, [Sampler], 9)
        past: list[Entry] = list(referee.opening())
        for entry in whole[:cut]:
            if isinstance(entry, Input):
                past += referee.feed(entry)
        assert past == whole[:cut]
        rest: list[Entry] = []
        events = [entry for entry in past if isinstance(entry, Event)]
        result = asyncio.run(play(referee, agents, emit=rest.extend, past=events))
        assert past + rest == whole
        assert result == whole_result
