"""A game of one's own: odd or even, two seats, one simultaneous throw.

Run it with `python examples/own_game.py`. A distribution registers such a class under the entry point group
`evoke_arena.games`; then it is played, recorded, verified and rated like any other.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from games.base import Event, Game, GameOptions, Outcome, State, View
from games.spaces import Action, ActionSpace, Choice

FINGERS = Choice(("1", "2"), "throw")
TEAMS = ("odd", "even")


class NoOptions(GameOptions):
    """Odd or even has no options."""


@dataclass(slots=True)
class OddView(View):
    """The throws, once both are down."""

    seat: int | None
    throws: list[str] = field(default_factory=list)

    def update(self, event: Event) -> None:
        if event.kind == "throws":
            self.throws = list(event.data["throws"])


class OddState(State):
    """One throw."""

    __slots__ = ("throws",)

    def _start(self) -> None:
        self.throws: tuple[str, ...] = ()

    def turns(self) -> Mapping[int, ActionSpace]:
        return {} if self.throws else {0: FINGERS, 1: FINGERS}

    def _apply(self, actions: Mapping[int, Action]) -> None:
        self.throws = (str(actions[0]), str(actions[1]))
        self._emit("throws", {"throws": list(self.throws)})
        self._emit("end", {"returns": list(self._returns())})

    def _returns(self) -> tuple[float, float]:
        return (1.0, -1.0) if self.throws[0] != self.throws[1] else (-1.0, 1.0)

    def outcome(self) -> Outcome | None:
        return Outcome("thrown", self._returns(), TEAMS, TEAMS) if self.throws else None

    def teams(self) -> tuple[str, ...]:
        return TEAMS

    def roles(self) -> tuple[str, ...]:
        return TEAMS

    def resample(self, seat: int, rng: random.Random) -> Self:
        return self._redealt([], self.plies, rng)


class OddOrEven(Game):
    """Odd or even."""

    name = "odd-or-even"
    title = "Odd or even"
    version = "1"
    seats = (2, 2)
    default_seats = 2
    team_names = TEAMS
    role_names = TEAMS
    simultaneous = True
    rules = (
        "# Odd or even\n\n"
        "Both throw one or two fingers at once. An odd sum wins for seat 0.\n\n"
        "Source: old as hands.\n"
    )
    options_type = NoOptions
    state_type = OddState
    view_type = OddView

    def max_plies(self, seats: int, options: Any) -> int:
        return 1

    def narrate(self, event: Event) -> str | None:
        if event.kind == "throws":
            return "The throws are {} and {}.".format(*event.data["throws"])
        return None


def main() -> None:
    state = OddOrEven().new(seed=0)
    rng = random.Random(0)
    state.apply({seat: space.sample(rng) for seat, space in state.turns().items()})
    for event in state.history:
        if sentence := state.game.narrate(event):
            print(sentence)
    print(state.outcome())


if __name__ == "__main__":
    main()
