"""The contract of an agent.

An agent's memory is a fold of its seat's events, like a view: feed the same events to a fresh agent and it
stands where the old one stood. So a match resumes after a crash, and counterfactual play starts anywhere.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from games.base import Event, Game
from games.referee import Turn
from games.rng import derive_seed
from games.spaces import Action


@dataclass(frozen=True, slots=True)
class Decision:
    """What an agent answers to a turn.

    `action` is None where no answer could be read; `failure` then says why (`unparsed` or `ambiguous`), and
    `reason` in words. `thought` is private: recorded, shown in the omniscient view only, never sent to seats.
    `trace` is what a learner needs of how the action was sampled.
    """

    action: Action | None
    thought: str | None = None
    trace: dict[str, Any] | None = None
    failure: str | None = None
    reason: str = ""


class Gone(Exception):
    """Raised by `Agent.act` where whoever plays the seat is gone for good: the seat forfeits, the match goes on."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where an agent sits: the match as the agent may know it before the first event."""

    game: Game
    seats: int
    options: Any
    seat: int
    seed: int
    """The agent's own seed in this match, derived from the match's; never the match's itself."""
    names: tuple[str, ...] = ()


class Agent(ABC):
    """Sits at one seat of one match."""

    version: str = "1"
    """Recorded in the header; changes whenever the agent may decide otherwise on the same events."""
    policy: str = ""
    """What computes for the agent, where that is not the agent itself: a model and its version. Recorded too."""
    instant: ClassVar[bool] = False
    """Whether `act` never waits, so that it needs no task and no deadline of its own."""
    keeps_time: ClassVar[bool] = False
    """Whether `act` always ends by itself, in time, so that the match sets it no deadline."""

    observes: ClassVar[bool] = True
    """Whether it is to be told of events through `observe`."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    @abstractmethod
    def observe(self, events: Sequence[Event]) -> None:
        """Fold new events, all of which this seat may see, into memory. Must not block."""

    @abstractmethod
    async def act(self, turn: Turn) -> Decision:
        """Answer a turn. `Gone` forfeits the seat; anything else raised costs it the turn, never the match."""

    def begin(self, turn: Turn) -> asyncio.Future[Decision]:
        """Begin to answer a turn and return where the answer will be; what `act` says holds for it.

        By default it is a task of `act`. An agent that waits for somebody else needs none.
        """
        return asyncio.get_running_loop().create_task(self.act(turn))

    async def close(self) -> None:
        """Let go of what the agent holds; called once, also after a failure. By default there is nothing."""
        return


class Bot(Agent):
    """Base of scripted agents: folds events into the game's view and decides at once.

    The generator of a decision depends only on the seat's seed and on how many events were seen, so a bot
    rebuilt from its events decides as the old one would have.
    """

    instant = True

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.view: Any = seat.game.view(seat.seat)
        self.events_seen = 0

    def observe(self, events: Sequence[Event]) -> None:
        self.events_seen += len(events)
        update = self.view.update
        for event in events:
            update(event)

    def rng(self) -> random.Random:
        """Return the generator for the decision at hand."""
        return random.Random(derive_seed(self.seat.seed, self.events_seen))

    async def act(self, turn: Turn) -> Decision:
        return self.decide(turn)

    @abstractmethod
    def decide(self, turn: Turn) -> Decision:
        """Return the decision for this turn from `self.view` and `self.rng()`."""
