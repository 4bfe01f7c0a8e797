"""Credit over many matches: what each player contributed, and who rides free or works against its team.

Players of one team are compared within each match, role for role: the contributions of a role are taken relative to
that role's mean, and a player's to its team-mates' of the same match. Were all of a team equals, the difference would
be zero in the mean; a player is behind where it is shown to be below, by Student's one-sided test over deals, at a
level that Holm's procedure holds for all players together ("A simple sequentially rejective multiple test procedure",
1979).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import fsum, sqrt
from typing import Any, Literal

from scipy.special import stdtr

from agents.credit.estimate import student

FREE_RIDER: Literal["free rider"] = "free rider"
SABOTEUR: Literal["saboteur"] = "saboteur"
Mean = tuple[float, float | None, float | None]
"""A mean and its 95 % interval."""

LEVEL = 0.025
"""Of all accusations in a game together. Equals may see anyone accused in 5 % of tables at most; contributions are far
from normal, and half of that is left for it."""
LEAST_DEALS = 8
"""Deals below which nobody is accused."""
LITTLE = 0.5
"""A player that is behind rides free where it contributes at most this share of what its team-mates do."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one seat contributed in one match."""

    game: str
    deal: str
    """Matches of one deal share their luck, and count as one."""
    match: str
    team: str
    player: str
    role: str
    credit: float
    contribution: float


@dataclass(frozen=True, slots=True)
class PlayerCredit:
    """One player in one game. The intervals are of 95 %, over deals."""

    player: str
    game: str
    matches: int
    credit: float
    contribution: float
    low: float | None
    high: float | None
    behind: float | None
    """Its contribution less that of its team-mates in the same matches, role for role; None without team-mates."""
    behind_low: float | None
    behind_high: float | None
    p: float | None
    """Of the one-sided test that it is not behind, corrected for the number of players."""
    accusation: Literal["free rider", "saboteur"] | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return asdict(self)


def summarise(
    rows: Iterable[Contribution], *, idle_reference: bool, level: float = LEVEL
) -> list[PlayerCredit]:
    """Return the players' credits by game, the largest contribution first.

    Args:
        rows: one for each seat of each team that was divided.
        idle_reference: whether the reference does nothing for a team, as `random`: only then is it sabotage to
            contribute less than it. Against a reference that plays well, less is no more than riding free.
        level: of all accusations in a game together.
    """
    by_game: dict[str, list[Contribution]] = defaultdict(list)
    for row in rows:
        by_game[row.game].append(row)
    found: list[PlayerCredit] = []
    for game in sorted(by_game):
        found += _game(game, by_game[game], idle_reference, level)
    return found


def _game(game: str, rows: Sequence[Contribution], idle: bool, level: float) -> list[PlayerCredit]:
    own: dict[str, list[Contribution]] = defaultdict(list)
    for row in rows:
        own[row.player].append(row)
    compared, mates = _differences(rows)
    tests = {player: _below(values) for player, values in compared.items() if len(values) >= LEAST_DEALS}
    corrected = holm(tests)
    made = []
    for player in sorted(own):
        worth = _by_deal((row.deal, row.contribution) for row in own[player])
        mean, low, high = _mean(worth)
        behind: Mean | tuple[None, None, None] = (None, None, None)
        if player in compared:
            behind = _mean(compared[player])
        p = corrected.get(player)
        accusation: Literal["free rider", "saboteur"] | None = None
        if p is not None and p <= level:
            below = _below(worth) <= level
            if idle and below:
                accusation = SABOTEUR
            elif below or mean <= LITTLE * mates[player]:
                accusation = FREE_RIDER
        credit = fsum(row.credit for row in own[player]) / len(own[player])
        matches = len({row.match for row in own[player]})
        made.append(
            PlayerCredit(
                player, game, matches, credit, mean, low, high, behind[0], behind[1], behind[2], p, accusation
            )
        )
    return sorted(made, key=lambda row: (-row.contribution, row.player))


def _differences(rows: Sequence[Contribution]) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return, by player, the difference to its team-mates in each deal, and what these contributed in the mean."""
    by_role: dict[str, list[float]] = defaultdict(list)
    teams: dict[tuple[str, str], list[Contribution]] = defaultdict(list)
    for row in rows:
        by_role[row.role].append(row.contribution)
        teams[(row.match, row.team)].append(row)
    usual = {role: fsum(values) / len(values) for role, values in by_role.items()}
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    mates: dict[str, list[float]] = defaultdict(list)
    for seats in teams.values():
        for row in seats:
            others = [other for other in seats if other.player != row.player]
            if others:
                level = fsum(other.contribution - usual[other.role] for other in others) / len(others)
                found[row.player].append((row.deal, row.contribution - usual[row.role] - level))
                mates[row.player].append(fsum(other.contribution for other in others) / len(others))
    return (
        {player: _by_deal(values) for player, values in found.items()},
        {player: fsum(values) / len(values) for player, values in mates.items()},
    )


def _by_deal(values: Iterable[tuple[str, float]]) -> list[float]:
    deals: dict[str, list[float]] = defaultdict(list)
    for deal, value in values:
        deals[deal].append(value)
    return [fsum(got) / len(got) for got in deals.values()]


def _error(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    n = len(values)
    mean = fsum(values) / n
    return mean, sqrt(fsum((value - mean) ** 2 for value in values) / (n * (n - 1)))


def _mean(values: Sequence[float]) -> Mean:
    if len(values) < 2:
        return fsum(values) / len(values), None, None
    mean, error = _error(values)
    half = student(len(values) - 1) * error
    return mean, mean - half, mean + half


def below_zero(rows: Iterable[Contribution], *, game: str, player: str) -> float:
    """Return the p-value of the one-sided test, over deals, that a player does not contribute less than nothing."""
    own = ((row.deal, row.contribution) for row in rows if (row.game, row.player) == (game, player))
    return _below(_by_deal(own))


def _below(values: Sequence[float]) -> float:
    """Return the p-value of the one-sided test that the mean is not below zero."""
    if len(values) < 2:
        return 1.0
    mean, error = _error(values)
    if error <= 1e-12 * max(1.0, abs(mean)):
        return 0.0 if mean < -1e-12 else 1.0
    return float(stdtr(len(values) - 1, mean / error))


def holm(tests: dict[str, float]) -> dict[str, float]:
    """Return the p-values corrected for their number: at most `level` of all families see one at or below `level`."""
    found: dict[str, float] = {}
    least = 0.0
    for place, name in enumerate(sorted(tests, key=lambda name: (tests[name], name))):
        least = max(least, min(1.0, (len(tests) - place) * tests[name]))
        found[name] = least
    return found
