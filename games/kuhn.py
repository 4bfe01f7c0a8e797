"""Kuhn poker, the small game whose truth is known.

Source: H. W. Kuhn, "A simplified two-person poker", Contributions to the Theory of Games 1 (1950).
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from games.base import Event, Game, GameOptions, Outcome, State, View
from games.spaces import Action, ActionSpace, Choice

CARDS = ("jack", "queen", "king")
CHECK, BET, FOLD, CALL = "check", "bet", "fold", "call"

OPEN = Choice((CHECK, BET), "open", CHECK)
ANSWER = Choice((FOLD, CALL), "answer", FOLD)

TURNS: dict[tuple[str, ...], Mapping[int, ActionSpace]] = {
    (): {0: OPEN},
    (CHECK,): {1: OPEN},
    (BET,): {1: ANSWER},
    (CHECK, BET): {0: ANSWER},
}
"""The lines that go on, with who moves next."""

TERMINAL = {
    (CHECK, CHECK): 1,
    (BET, FOLD): 1,
    (CHECK, BET, FOLD): 1,
    (BET, CALL): 2,
    (CHECK, BET, CALL): 2,
}
"""The lines that end the hand, with what the loser pays."""

TEAMS = ("first", "second")

RULES = """\
# Kuhn poker

Two players, three cards: jack, queen, king (king highest). Both put one chip in the pot and get one card,
seen by its owner alone. One hand is played.

1. The first player checks or bets one chip.
2. After a check, the second player checks (showdown for 1 chip) or bets; after that bet the first player
   folds (loses 1 chip) or calls (showdown for 2 chips).
3. After a bet by the first player, the second folds (loses 1 chip) or calls (showdown for 2 chips).

At a showdown the higher card wins. The return is the number of chips won or lost. With best play the first
player loses 1/18 of a chip a hand.

A player who gives no legal answer checks, or folds to a bet.

Source: H. W. Kuhn, "A simplified two-person poker" (1950).
"""


class KuhnOptions(GameOptions):
    """Kuhn poker has no options."""


@dataclass(slots=True)
class KuhnView(View):
    """What a reader knows: cards seen (by seat), the line so far, and how it ended."""

    seat: int | None
    cards: dict[int, str] = field(default_factory=dict)
    line: list[str] = field(default_factory=list)
    returns: tuple[float, ...] | None = None

    def update(self, event: Event) -> None:
        data = event.data
        if event.kind == "card":
            self.cards[data["seat"]] = data["card"]
        elif event.kind == "move":
            self.line.append(data["move"])
        elif event.kind == "showdown":
            self.cards = dict(enumerate(data["cards"]))
        elif event.kind == "end":
            self.returns = tuple(data["returns"])

    def asked(self, options: Any) -> tuple[int, ...]:
        return () if self.returns is not None else (len(self.line) % 2,)


class KuhnState(State):
    """One hand."""

    __slots__ = ("cards", "line")

    def _start(self) -> None:
        self.line: tuple[str, ...] = ()
        first = self._draw("card 0", 3)
        second = self._draw("card 1", 2)
        self.cards = (first, second + (second >= first))
        self._emit("card", {"seat": 0, "card": CARDS[self.cards[0]]}, (0,))
        self._emit("card", {"seat": 1, "card": CARDS[self.cards[1]]}, (1,))

    def turns(self) -> Mapping[int, ActionSpace]:
        return TURNS.get(self.line, {})

    def _apply(self, actions: Mapping[int, Action]) -> None:
        ((seat, move),) = actions.items()
        self.line = (*self.line, str(move))
        self._emit("move", {"seat": seat, "move": move})
        if self.line in TERMINAL:
            if self.line[-1] != FOLD:
                self._emit("showdown", {"cards": [CARDS[card] for card in self.cards]})
            reason, returns = self._result()
            self._emit("end", {"reason": reason, "returns": returns})

    def _result(self) -> tuple[str, list[float]]:
        stake = float(TERMINAL[self.line])
        if self.line[-1] == FOLD:
            winner, reason = len(self.line) % 2, "fold"
        else:
            winner, reason = int(self.cards[1] > self.cards[0]), "showdown"
        return reason, [stake, -stake] if winner == 0 else [-stake, stake]

    def outcome(self) -> Outcome | None:
        if self.line not in TERMINAL:
            return None
        reason, returns = self._result()
        return Outcome(reason, tuple(returns), TEAMS, TEAMS)

    def teams(self) -> tuple[str, ...]:
        return TEAMS

    def roles(self) -> tuple[str, ...]:
        return TEAMS

    def resample(self, seat: int, rng: random.Random) -> Self:
        own, other = self.cards[seat], self.cards[1 - seat]
        if not self.line or self.line not in TERMINAL or self.line[-1] == FOLD:
            other = rng.choice([card for card in range(3) if card != own])
        first, second = (own, other) if seat == 0 else (other, own)
        draws = [first, second - (second > first)]
        return self._redealt(draws, self.plies, rng)


class Kuhn(Game):
    """Kuhn poker: two seats, one hand."""

    name = "kuhn"
    title = "Kuhn poker"
    version = "1"
    seats = (2, 2)
    default_seats = 2
    team_names = TEAMS
    role_names = TEAMS
    simultaneous = False
    rules = RULES
    options_type = KuhnOptions
    state_type = KuhnState
    view_type = KuhnView

    def max_plies(self, seats: int, options: Any) -> int:
        return 3

    def narrate(self, event: Event) -> str | None:
        data = event.data
        match event.kind:
            case "card":
                return f"Seat {data['seat']} holds the {data['card']}."
            case "move":
                return f"Seat {data['seat']}: {data['move']}."
            case "showdown":
                return f"Showdown: seat 0 shows the {data['cards'][0]}, seat 1 the {data['cards'][1]}."
            case "end":
                winner = 0 if data["returns"][0] > 0 else 1
                return f"Seat {winner} wins {data['returns'][winner]:.0f} by {data['reason']}."
        return None
