"""Groups of trajectories that may be compared: the same game, options, seats, role and stratum, and, where there are
enough matches of it, the same deal. So no baseline mixes roles."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.errors import BadCheckpoint
from agents.training.trajectories import Trajectory


@dataclass(frozen=True, slots=True)
class Group:
    """Trajectories that share a baseline.

    Args:
        game, options, seats, role, stratum: what they have in common.
        deal: that of all of them, None where they are of several.
        members: their places among the trajectories that were given.
        matches: how many matches they are of.
    """

    game: str
    options: str
    seats: int
    role: str
    stratum: str
    deal: str | None
    members: tuple[int, ...]
    matches: int

    @property
    def kind(self) -> tuple[str, str, int, str, str]:
        """Return what the group is whatever the deal: whose running baseline stands in for it."""
        return self.game, self.options, self.seats, self.role, self.stratum


def form_groups(trajectories: Sequence[Trajectory], *, by_deal: bool = True, least: int = 2) -> list[Group]:
    """Return groups in which every trajectory is exactly once.

    Args:
        trajectories: of any games and roles.
        by_deal: compare those of one deal among themselves where they are of at least `least` matches; what is left
            over is compared whatever the deal.
        least: matches of one deal that make a group.
    """
    kinds: dict[tuple[str, str, int, str, str], list[int]] = defaultdict(list)
    for place, one in enumerate(trajectories):
        kinds[one.game, one.options, one.seats, one.role, one.stratum].append(place)
    groups: list[Group] = []
    for kind, members in kinds.items():
        rest = members
        if by_deal:
            deals: dict[str, list[int]] = defaultdict(list)
            for place in members:
                deals[trajectories[place].deal].append(place)
            rest = []
            for deal, same in deals.items():
                if _matches(trajectories, same) >= least:
                    groups.append(Group(*kind, deal, tuple(same), _matches(trajectories, same)))
                else:
                    rest += same
        if rest:
            groups.append(Group(*kind, None, tuple(rest), _matches(trajectories, rest)))
    return groups


def _matches(trajectories: Sequence[Trajectory], members: Sequence[int]) -> int:
    # Matches without a name are each their own.
    return len({trajectories[place].match or f"?{place}" for place in members})


class Baselines:
    """Running means and standard deviations of outcomes by kind of group, for groups of a single match.

    Whoever uses them reads before adding: an outcome never stands in its own baseline.
    """

    def __init__(self, momentum: float = 0.9) -> None:
        self.momentum = momentum
        self._known: dict[tuple[str, str, int, str, str], tuple[float, float]] = {}
        """By kind: the mean outcome and the mean square."""

    def of(self, group: Group) -> tuple[float, float] | None:
        """Return the mean and the standard deviation for a kind of group, None before any is known."""
        found = self._known.get(group.kind)
        if found is None:
            return None
        mean, square = found
        return mean, math.sqrt(max(square - mean * mean, 0.0))

    def add(self, group: Group, outcomes: Sequence[float]) -> None:
        """Take a group's outcomes in."""
        mean = sum(outcomes) / len(outcomes)
        square = sum(one * one for one in outcomes) / len(outcomes)
        old = self._known.get(group.kind)
        if old is not None:
            kept = self.momentum
            mean, square = kept * old[0] + (1 - kept) * mean, kept * old[1] + (1 - kept) * square
        self._known[group.kind] = mean, square

    def state(self) -> dict[str, Any]:
        """Return what is known as plain data."""
        return {"known": [[*kind, *values] for kind, values in self._known.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take what `state` returned. Raises `BadCheckpoint`."""
        try:
            self._known = {
                (str(game), str(options), int(seats), str(role), str(stratum)): (float(mean), float(square))
                for game, options, seats, role, stratum, mean, square in state["known"]
            }
        except (KeyError, TypeError, ValueError):
            raise BadCheckpoint("the running baselines of the checkpoint cannot be read") from None
