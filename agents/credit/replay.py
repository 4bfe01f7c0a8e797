"""Playing on from a recorded line: who decides when play leaves it, and a light driver for it.

Some seats' decisions are replaced by those of a reference. Every other seat does what it did for as long as it sees
what it saw: an agent is a function of its seat's events, so a seat that cannot yet know of the change decides as
recorded. From the first turn at which its events differ, the seat is played on by an agent like the recorded one,
rebuilt by feeding it all that the seat has seen. The reference, too, is fed all that its seat has seen.
"""

import asyncio
import random
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from agents.base import Agent, Decision, Seat
from agents.credit.line import Line
from agents.errors import PolicyError
from games.base import Event, Outcome, State
from games.referee import RETRIED, Turn
from games.rng import derive_seed
from games.spaces import Action, ActionSpace

Make = Callable[[Seat], Agent]


class Span(NamedTuple):
    """The plies at which a seat's decisions are the reference's: from `first`, up to and without `stop`."""

    first: int = 0
    stop: int | None = None

    def holds(self, ply: int) -> bool:
        """Whether a ply lies within."""
        return ply >= self.first and (self.stop is None or ply < self.stop)


class RandomReference(Agent):
    """Any legal action, each as likely, told of nothing: the reference by default, as the bot `random` plays."""

    instant: ClassVar[bool] = True
    observes: ClassVar[bool] = False

    def observe(self, events: Sequence[Event]) -> None:
        return

    async def act(self, turn: Turn) -> Decision:
        return Decision(turn.space.sample(random.Random(derive_seed(self.seat.seed, turn.ply))))


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays on: for each seat an agent like the recorded one, and the reference for any seat."""

    own: tuple[Make, ...]
    reference: Make
    instant: bool = True
    """Whether every one of them answers at once."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Counts:
    """What replays took."""

    replays: int = 0
    model_calls: int = 0
    failures: int = 0
    """Turns of agents that failed, at which the default was played."""


@dataclass(slots=True)
class _Chair:
    """One seat of a replay."""

    seat: int
    info: Seat
    own: Make
    reference: Make
    span: Span | None
    on_line: bool = True
    matched: int = 0
    """How many of its recorded events it has seen again."""
    agents: dict[bool, tuple[Agent, list[int]]] = field(default_factory=dict)
    """By whether it is the reference, an agent and up to where of the history it was told."""

    def agent(self, reference: bool, history: Sequence[Event]) -> Agent:
        """Return the agent that decides now, told all that its seat has seen."""
        known = self.agents.get(reference)
        if known is None:
            agent = self.reference(self.info) if reference else self.own(self.info)
            known = self.agents[reference] = (agent, [0])
        agent, told = known
        if agent.observes and told[0] < len(history):
            seat = self.seat
            fresh = [
                event for event in history[told[0] :] if event.audience is None or seat in event.audience
            ]
            told[0] = len(history)
            if fresh:
                agent.observe(fresh)
        return agent


class Replay:
    """One match played on from a line.

    Args:
        line: the recorded match.
        cast: who plays on.
        spans: by seat, when its decisions are replaced.
        seed: of everyone who plays on; the same seed gives the same agent at the same seat, whoever else is replaced.
        start: the ply at which to begin; by default the first at which a replaced seat acts.
        world: a state to begin from in place of the recorded one at `start`.
        retries: how often an answer that cannot be read is asked again.
    """

    def __init__(
        self,
        line: Line,
        cast: Cast,
        *,
        spans: Mapping[int, Span],
        seed: int,
        start: int | None = None,
        world: State | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.line = line
        self.counts = counts or Counts()
        self.retries = line.header.retries
        begin = leaves(line, spans) if start is None else start
        assert begin is not None, "nothing is replaced"
        self.state = (line.states[begin] if world is None else world).clone()
        self._read = len(self.state.history) if world is None else 0
        options, seats, game = self.state.options, self.state.seats, line.game
        self.chairs = [
            _Chair(
                seat,
                Seat(game, seats, options, seat, derive_seed(seed, seat)),
                cast.own[seat],
                cast.reference,
                spans.get(seat),
            )
            for seat in range(seats)
        ]
        if world is None:
            for chair in self.chairs:
                chair.matched = sum(
                    event.audience is None or chair.seat in event.audience for event in self.state.history
                )

    def run(self) -> Outcome:
        """Play to the end; everyone must answer at once."""
        state = self.state
        while turns := state.turns():
            self._follow()
            ply = len(state.plies)
            actions = {}
            for seat, space in turns.items():
                found = self._recorded(seat, ply, space)
                if found is None:
                    agent = self._agent(seat, ply)
                    found = _settled(self._ask(agent, Turn(seat, ply, space)))
                actions[seat] = found
            state.apply(actions)
        for chair in self.chairs:
            for agent, _ in chair.agents.values():
                if type(agent).close is not Agent.close:
                    _settled(agent.close())
        return self._outcome()

    async def play(self) -> Outcome:
        """Play to the end, seats that have a turn at once asked at once."""
        state = self.state
        try:
            while turns := state.turns():
                self._follow()
                ply = len(state.plies)
                actions: dict[int, Action] = {}
                asked: dict[int, Awaitable[Action]] = {}
                for seat, space in turns.items():
                    found = self._recorded(seat, ply, space)
                    if found is None:
                        asked[seat] = self._ask(self._agent(seat, ply), Turn(seat, ply, space))
                    else:
                        actions[seat] = found
                answers = await asyncio.gather(*asked.values())
                actions.update(zip(asked, answers, strict=True))
                state.apply({seat: actions[seat] for seat in turns})
        finally:
            for chair in self.chairs:
                for agent, _ in chair.agents.values():
                    await agent.close()
        return self._outcome()

    def _outcome(self) -> Outcome:
        outcome = self.state.outcome()
        assert outcome is not None
        self.counts.replays += 1
        return outcome

    def _follow(self) -> None:
        """Compare what each seat saw since with what it saw in the record."""
        history, seen = self.state.history, self.line.seen
        for index in range(self._read, len(history)):
            event = history[index]
            audience = event.audience
            for chair in self.chairs if audience is None else [self.chairs[seat] for seat in audience]:
                if chair.on_line:
                    own, at = seen[chair.seat], chair.matched
                    if at < len(own) and own[at] == event:
                        chair.matched = at + 1
                    else:
                        chair.on_line = False
        self._read = len(history)

    def _recorded(self, seat: int, ply: int, space: ActionSpace) -> Action | None:
        """Return what the seat does as it did, None where somebody must decide."""
        chair = self.chairs[seat]
        if not chair.on_line or (chair.span is not None and chair.span.holds(ply)):
            return None
        before = self.line.seen_before[seat]
        at = bisect_left(before, chair.matched)
        if at == len(before) or before[at] != chair.matched:
            return None
        action = self.line.taken[seat][at].action
        return action if space.contains(action) else None

    def _agent(self, seat: int, ply: int) -> Agent:
        chair = self.chairs[seat]
        return chair.agent(chair.span is not None and chair.span.holds(ply), self.state.history)

    async def _ask(self, agent: Agent, turn: Turn) -> Action:
        """Return the agent's action as a referee would take it: asked again, and in the end the default."""
        while True:
            if not agent.instant:
                self.counts.model_calls += 1
            try:
                decision = await agent.act(turn)
            except PolicyError:
                raise
            except Exception:  # as in a match: it costs the agent its turn
                break
            failure, reason = decision.failure, decision.reason
            if failure is None:
                action: Any = turn.space.from_json(decision.action)
                if turn.space.contains(action):
                    taken: Action = action
                    return taken
                failure = "unparsed" if decision.action is None else "illegal"
                reason = f"answer with {turn.space.describe()}"[:300]
            if failure not in RETRIED or turn.attempt >= self.retries:
                break
            turn = turn._replace(attempt=turn.attempt + 1, failure=failure, reason=reason)
        self.counts.failures += 1
        return turn.space.default


def _settled(asked: Any) -> Any:
    """Return what a coroutine that never waits returns."""
    try:
        asked.send(None)
    except StopIteration as done:
        return done.value
    asked.close()
    raise RuntimeError("an agent that is said to be instant waited")


def leaves(line: Line, spans: Mapping[int, Span]) -> int | None:
    """Return the first ply at which a replaced decision stands, None where none does."""
    plies = [
        ply
        for seat, span in spans.items()
        if (ply := line.decides_from(seat, span.first)) is not None and span.holds(ply)
    ]
    return min(plies, default=None)
