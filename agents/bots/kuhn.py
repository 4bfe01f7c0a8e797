"""A Nash equilibrium of Kuhn poker, exactly.

Source: H. W. Kuhn, "A simplified two-person poker", Contributions to the Theory of Games 1 (1950). The first
player's equilibria are a family with one parameter, alpha, how often the jack is bet; the second player's
equilibrium is unique. Against it the first player loses 1/18 of a chip a hand, whatever alpha is.
"""

from collections.abc import Sequence
from math import isfinite

from agents.base import Bot, Decision, Seat
from agents.errors import BadParameter
from games.kuhn import BET, CALL, CARDS, CHECK, FOLD
from games.referee import Turn

MAX_ALPHA = 1 / 3
DEFAULT_ALPHA = 1 / 6
"""The middle of the family: every decision that any member mixes is mixed."""

JACK, QUEEN, KING = CARDS


def aggression(card: str, line: Sequence[str], *, alpha: float = DEFAULT_ALPHA) -> float:
    """Return the probability that the equilibrium bets or calls.

    Args:
        card: the card held.
        line: the moves so far; whose turn it is follows from them.
        alpha: how often the first player bets the jack, 0 … 1/3.
    """
    mixed = {
        (): {JACK: alpha, QUEEN: 0.0, KING: 3 * alpha},
        (CHECK,): {JACK: 1 / 3, QUEEN: 0.0, KING: 1.0},
        (BET,): {JACK: 0.0, QUEEN: 1 / 3, KING: 1.0},
        (CHECK, BET): {JACK: 0.0, QUEEN: alpha + 1 / 3, KING: 1.0},
    }
    return mixed[tuple(line)][card]


class EquilibriumBot(Bot):
    """Plays an equilibrium of Kuhn poker from either seat.

    Raises `BadParameter` where `alpha` is outside 0 … 1/3.
    """

    def __init__(self, seat: Seat, *, alpha: float = DEFAULT_ALPHA) -> None:
        super().__init__(seat)
        if not (isfinite(alpha) and 0 <= alpha <= MAX_ALPHA):
            raise BadParameter(f"alpha: got {alpha}, allowed are numbers from 0 to 1/3")
        self.alpha = alpha

    def probabilities(self, turn: Turn) -> dict[str, float]:
        """Return how likely each legal move is."""
        pushed = aggression(self.view.cards[self.seat.seat], self.view.line, alpha=self.alpha)
        hold, push = (CHECK, BET) if turn.space.contains(BET) else (FOLD, CALL)
        return {hold: 1 - pushed, push: pushed}

    def decide(self, turn: Turn) -> Decision:
        (hold, held), (push, _) = self.probabilities(turn).items()
        return Decision(hold if self.rng().random() < held else push)
