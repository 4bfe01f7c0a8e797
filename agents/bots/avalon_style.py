"""How the scripted Avalon player plays, as numbers that its own posterior knows too."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Style:
    """The player's dispositions; the defaults were chosen in self-play with refitted tables."""

    approve_from: tuple[float, ...] = (0.85, 0.75, 0.65, 0.5)
    """By proposal: from what share of the best team's chance on a seat rather approves than not."""
    approve_width: float = 0.06
    """How gradually that turns (the scale of a logistic curve)."""
    merlin_speaks: float = 0.05
    merlin_proposes: float = 0.4
    merlin_votes: float = 0.3
    """How often merlin acts on what it knows once evil has two quests, else as an uninformed seat would."""
    merlin_calm: float = 0.05
    """How often, compared with that, before."""
    bluff: float = 1.0
    """How often, compared with that, the others act on a guess as if they knew."""
    merlin_share: float = 0.9
    """Share of knowledge in the mixture of both when it does."""
    lenience: float = 0.8
    strictness: float = 0.4
    """Once a side has two quests: how much less evil asks of a team that it can sink, how much more else."""
    first_fail: float = 0.4
    later_fail: float = 0.9
    lone_fail: float = 0.85
    """How often evil fails a first quest, a later one, and oberon any."""
    suspect_from: float = 1.35
    trust_to: float = 0.65
    """Spoken opinions: from and up to which multiple of the prior."""
    most_named: int = 2

    def approval(
        self, ratio: NDArray[np.float64], chance: NDArray[np.float64], attempt: int, pressed: bool
    ) -> NDArray[np.float64]:
        """Return how likely an uninformed good seat approves.

        Args:
            ratio: the team's chance to be safe over the best team's, in the seat's eyes.
            chance: the team's chance to be safe.
            attempt: number of the proposal on this quest, from 1, not the last.
            pressed: whether evil has two quests.
        """
        considered = 1 / (
            1 + np.exp(np.minimum((self.approve_from[attempt - 1] - ratio) / self.approve_width, 50))
        )
        guessing = self.merlin_votes * self.bluff * (1.0 if pressed else self.merlin_calm)
        return np.asarray((1 - guessing) * considered + guessing * chance)
