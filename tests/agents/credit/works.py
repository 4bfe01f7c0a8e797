"""A game made for credit: a crew whose common return is a known function of who gave, round by round."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from agents.base import Agent, Bot, Decision, Seat
from agents.match import play
from games.base import Event, Game, GameOptions, Outcome, State, View
from games.referee import Entry, Referee, Turn
from games.registry import load_game
from games.spaces import Action, ActionSpace, Choice
from replays.record import Footer, Header, Record, SeatInfo
from tests.replays.recording import encode, read

NAME = "works"
GIVE = Choice(("keep", "give"), "give", "keep")


class WorksOptions(GameOptions):
    """What gifts are worth: of each seat, of pairs of seats in one round, and to begin with."""

    weights: list[float] = Field(default_factory=list)
    pairs: list[tuple[int, int, float]] = Field(default_factory=list)
    start: float = 0.0
    rounds: int = 1


class WorksView(View):
    """Counts gifts."""

    def __init__(self, seat: int | None) -> None:
        self.seat = seat
        self.rounds = 0

    def update(self, event: Event) -> None:
        self.rounds += event.kind == "gifts"


class WorksState(State):
    """One match."""

    __slots__ = ("gifts",)

    def _start(self) -> None:
        self.gifts: tuple[tuple[int, ...], ...] = ()
        self._emit("start", {"seats": self.seats})

    def turns(self) -> Mapping[int, ActionSpace]:
        return dict.fromkeys(range(self.seats), GIVE) if len(self.gifts) < self.options.rounds else {}

    def _apply(self, actions: Mapping[int, Action]) -> None:
        given = tuple(seat for seat in sorted(actions) if actions[seat] == "give")
        self.gifts = (*self.gifts, given)
        self._emit("gifts", {"seats": list(given)})

    def outcome(self) -> Outcome | None:
        if self.turns():
            return None
        value = worth(self.options, self.gifts)
        return Outcome("done", (value,) * self.seats, self.teams(), self.roles())

    def resample(self, seat: int, rng: random.Random) -> Self:
        return self._redealt(self.draws(), self.plies, rng)

    def teams(self) -> tuple[str, ...]:
        return ("crew",) * self.seats

    def roles(self) -> tuple[str, ...]:
        return ("hand",) * self.seats


def worth(options: WorksOptions, gifts: Sequence[Sequence[int]]) -> float:
    """Return the common return."""
    value = options.start
    for given in gifts:
        value += sum(options.weights[seat] for seat in given)
        value += sum(bonus for a, b, bonus in options.pairs if a in given and b in given)
    return value


class Works(Game):
    """The game."""

    name = NAME
    title = "Works"
    version = "1"
    seats = (2, 8)
    default_seats = 3
    team_names = ("crew",)
    role_names = ("hand",)
    simultaneous = True
    rules = "Give or keep."
    options_type = WorksOptions
    state_type = WorksState
    view_type = WorksView

    def max_plies(self, seats: int, options: Any) -> int:
        return int(options.rounds)

    def narrate(self, event: Event) -> str | None:
        return None


class Fixed(Bot):
    """Gives or keeps, always."""

    does = "give"

    def decide(self, turn: Turn) -> Decision:
        return Decision(self.does if turn.space.contains(self.does) else turn.space.default)


class Keeper(Fixed):
    """Keeps."""

    does = "keep"


class Coin(Bot):
    """Gives half the time."""

    def decide(self, turn: Turn) -> Decision:
        return Decision(turn.space.sample(self.rng()))


BOTS: dict[str, type[Agent]] = {"giver": Fixed, "keeper": Keeper, "coin": Coin}


def make(spec: str, seat: Seat) -> Agent:
    """Make one of this game's bots."""
    return BOTS[spec](seat)


def played(
    specs: Sequence[str],
    *,
    game: str = NAME,
    options: Mapping[str, Any] | None = None,
    seed: int = 3,
    make: Any = make,
) -> Record:
    """Play a match among bots and return its record."""
    rules = load_game(game)
    state = rules.new(seed=seed, seats=len(specs), options=dict(options or {}))
    agents = [
        make(spec, Seat(rules, state.seats, state.options, seat, 100 * seed + seat))
        for seat, spec in enumerate(specs)
    ]
    header = Header(
        game,
        rules.version,
        state.options.model_dump(mode="json"),
        seed,
        tuple(
            SeatInfo(f"p{seat}", spec, f"{type(agent).__name__} {agent.version}")
            for seat, (spec, agent) in enumerate(zip(specs, agents, strict=True))
        ),
        2,
        "m",
    )
    entries: list[Entry] = []
    result = asyncio.run(play(Referee(state, retries=2), agents, emit=entries.extend))
    return read(encode(header, entries, Footer(result.outcome, result.ended, result.counts, 0)))
