"""Ratings: side-aware maximum likelihood over the matches of one game.

The strength of a side is the **mean** of its members' ratings (a sum would make three weak players a strong
side) plus an effect of the side itself, and of its roles where their mix differs between matches. Two sides
are compared by Bradley, Terry and Davidson, several by Plackett and Luce, both with ties: see
`arena.plackett_luce`. Ratings are on the Elo scale, 400 / ln 10 to a unit of log-strength. `docs/ratings.md`
states the model and what an interval means.

A match in which a seat forfeited is counted and never rated: it was not decided by play. Nothing depends on
the order of matches, seats or players: everything is sorted first, and equal rows are merged.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, log, sqrt

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from arena.errors import RatingError
from arena.plackett_luce import Floats, Ranking, Stages, maximise, scores, stages, tie_sizes
from arena.results import RatedMatch
from games.rng import check_seed

ELO = 400 / log(10)
"""Elo points in one natural unit of log-strength."""
ANCHOR = 1500.0
PLAYER_SD_ELO = 800.0
SIDE_SD_ELO = 800.0
ROLE_SD_ELO = 200.0
"""Standard deviations of the Gaussian priors around zero: weak, there to keep separable data finite."""
TIE_SD = 3.0
"""Standard deviation of the prior of log δ, the propensity to tie."""
LEVEL = 0.95
MIN_DEALS = 20
"""Deals with several matches from which on their shared luck is estimated; from fewer it would be a guess."""
MIN_DEAL_FACTOR = 0.1
"""The least that shared luck may leave of a variance: perfectly mirrored luck would leave nothing."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value in Elo with its 95 % interval; `low` and `high` are None where there is none to give."""

    value: float
    low: float | None
    high: float | None
    determined: bool = True
    """False where the data leave the value open and the width is the prior's."""


@dataclass(frozen=True, slots=True)
class Rating(Estimate):
    """A player's rating. `group` numbers the set of players among whom it can be compared."""

    player: str = ""
    group: int = 0
    matches: int = 0
    """Rated matches."""


@dataclass(frozen=True, slots=True)
class SideEffect(Estimate):
    """How much stronger a side is than the mean of the other sides when all players are equal, in Elo."""

    side: str = ""
    share: float = 0.0
    """Share of the rated matches with this side that it won, a tie for the first place shared."""
    matches: int = 0


@dataclass(frozen=True, slots=True)
class RoleEffect(Estimate):
    """How much stronger a side all of this role would be than one of the other varying roles, in Elo."""

    role: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted for one game."""

    game: str
    ratings: tuple[Rating, ...]
    """Sorted by player."""
    groups: tuple[tuple[str, ...], ...]
    """Players that met, directly or through others. Ratings of different groups cannot be compared."""
    sides: tuple[SideEffect, ...]
    roles: tuple[RoleEffect, ...]
    ties: tuple[tuple[int, float], ...]
    """δ by the number of tied sides."""
    rated: int
    unrated: int
    covariance: tuple[tuple[float, ...], ...]
    """Of the players' log-strengths times `ELO` before anchoring, in the order of `ratings`."""
    reference: str
    """What 1500 stands for: the mean of the group, or the anchor's name."""

    @property
    def connected(self) -> bool:
        """Whether all players can be compared."""
        return len(self.groups) <= 1

    def rating(self, player: str) -> Rating:
        """Return `player`'s rating. Raises `RatingError` for a name that is not there."""
        for rating in self.ratings:
            if rating.player == player:
                return rating
        raise RatingError(f"ratings: got player {player[:80]!r}, not among those of {self.game}")

    def difference(self, first: str, *, second: str) -> Estimate | None:
        """Return how much stronger `first` is than `second`, None where they were never compared.

        Its interval is not that of the two ratings subtracted: they are measured against a common mean.
        """
        a, b = self.rating(first), self.rating(second)
        if a.group != b.group:
            return None
        i, j = self.ratings.index(a), self.ratings.index(b)
        variance = self.covariance[i][i] + self.covariance[j][j] - 2 * self.covariance[i][j]
        return Estimate(*_around(a.value - b.value, variance), a.determined and b.determined)


Side = tuple[int, str, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
"""Rank, team, (player, seats) sorted, (role, seats) sorted."""
Row = tuple[Side, ...]


def fit(
    matches: Iterable[RatedMatch],
    *,
    players: Iterable[str] = (),
    sides: Sequence[str] | None = None,
    anchor: str | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> Fit:
    """Fit the matches of one game.

    Args:
        matches: finished matches of one game, in any order.
        players: names to list even if they have no match.
        sides: names of the sides, first the one whose effect is spoken of; those seen and not named follow.
            None takes those seen, an empty sequence fits no side effect.
        anchor: the player whose rating is 1500 in its group; None makes it the mean of each group.
        bootstrap: resamples for percentile intervals (200 or more make sense); 0 takes Laplace's.
        seed: of the bootstrap.

    Raises `RatingError` for matches of several games, contradictory results or an unknown anchor.
    """
    given = list(matches)
    games = sorted({match.game for match in given})
    if len(games) > 1:
        raise RatingError(f"ratings: got matches of {', '.join(games)[:200]}; a fit is of one game")
    names = tuple(sorted({seat.player for match in given for seat in match.seats} | set(players)))
    if anchor is not None and anchor not in names:
        raise RatingError(f"ratings anchor: got {anchor[:80]!r}, players are {', '.join(names)[:200]}")
    clusters: dict[object, list[Row]] = defaultdict(list)
    for index, match in enumerate(given):
        if match.rated:
            clusters[("alone", index) if match.deal is None else ("deal", match.deal)].append(_row(match))
    counts = Counter(row for cluster in clusters.values() for row in cluster)
    model = _Model(names, counts, sides)
    weights = np.array([float(counts[row]) for row in model.rows])
    point, covariance = maximise(model.stages, weights, model.precision)
    covariance = model.with_deals(covariance, point, clusters.values())
    samples = None
    if bootstrap and len(clusters) > 1:
        samples = model.resampled(
            sorted(tuple(sorted(cluster)) for cluster in clusters.values()),
            bootstrap,
            check_seed(seed),
            point,
        )
    contrasts = model.contrasts(anchor)
    estimates = model.estimates(contrasts, weights, point, covariance, samples)
    size = len(names)
    group_of = {player: number for number, group in enumerate(model.groups) for player in group}
    played = Counter[str]()
    for row in model.rows:
        played.update(dict.fromkeys({name for side in row for name, _ in side[2]}, counts[row]))
    ratings = []
    for player, found in zip(names, estimates[:size], strict=True):
        alone = len(model.groups[group_of[player]]) == 1
        ratings.append(
            Rating(
                _tidy(ANCHOR + found.value),
                None if alone or found.low is None else _tidy(ANCHOR + found.low),
                None if alone or found.high is None else _tidy(ANCHOR + found.high),
                found.determined and not alone,
                player,
                group_of[player],
                played[player],
            )
        )
    effects = estimates[size : size + len(model.sides)]
    return Fit(
        game=games[0] if games else "",
        ratings=tuple(ratings),
        groups=model.groups,
        sides=tuple(
            SideEffect(e.value, e.low, e.high, e.determined, side, *_share(side, counts))
            for side, e in zip(model.sides, effects, strict=True)
        ),
        roles=tuple(
            RoleEffect(e.value, e.low, e.high, e.determined, role)
            for role, e in zip(model.roles, estimates[size + len(model.sides) :], strict=True)
        ),
        ties=tuple((d, float(np.exp(point[model.first_tie + i]))) for i, d in enumerate(model.ties)),
        rated=sum(counts.values()),
        unrated=len(given) - sum(counts.values()),
        covariance=tuple(tuple(float(x) for x in line) for line in covariance[:size, :size] * ELO**2),
        reference="mean" if anchor is None else anchor,
    )


def _row(match: RatedMatch) -> Row:
    ranks = {team: rank for rank, group in enumerate(match.ranking()) for team in group}
    return tuple(
        sorted(
            (
                ranks[team],
                team,
                tuple(sorted(Counter(s.player for s in match.seats if s.team == team).items())),
                tuple(sorted(Counter(s.role for s in match.seats if s.team == team).items())),
            )
            for team in ranks
        )
    )


def _share(side: str, counts: Mapping[Row, int]) -> tuple[float, int]:
    won, played = [], 0
    for row, count in sorted(counts.items()):
        rank = next((rank for rank, team, _, _ in row if team == side), None)
        if rank is not None:
            played += count
            won.append(count / sum(other[0] == 0 for other in row) if rank == 0 else 0.0)
    return (fsum(won) / played if played else 0.0), played


def _around(value: float, variance: float) -> tuple[float, float, float]:
    half = float(ndtri((1 + LEVEL) / 2)) * sqrt(max(variance, 0.0))
    return _tidy(value), _tidy(value - half), _tidy(value + half)


def _tidy(elo: float) -> float:
    """Round to a millionth of a point, so that equal stays equal whatever the order of summation."""
    return round(float(elo), 6) + 0.0


class _Model:
    """Columns of the linear predictor: players, sides, roles whose mix varies, then one per tie size."""

    def __init__(
        self, names: tuple[str, ...], counts: Mapping[Row, int], sides: Sequence[str] | None
    ) -> None:
        self.rows = sorted(counts)
        self.names = names
        seen = sorted({side[1] for row in self.rows for side in row})
        listed = seen if sides is None else list(sides)
        self.sides = (*listed, *(s for s in seen if s not in listed)) if listed else ()
        if len(self.sides) < 2:
            self.sides = ()
        shares = self._varying_roles(counts)
        self.roles = tuple(sorted({role for _, role in shares}))
        # Shares of a side sum to one, so a role can be told only from the others that vary beside it.
        self.beside = {
            role: {other for team, other in shares if other != role and (team, role) in shares}
            for role in self.roles
        }
        self.first_side = len(names)
        self.first_role = self.first_side + len(self.sides)
        self.first_tie = self.first_role + len(self.roles)
        column = {("player", name): i for i, name in enumerate(names)}
        column |= {("side", side): self.first_side + i for i, side in enumerate(self.sides)}
        column |= {("role", role): self.first_role + i for i, role in enumerate(self.roles)}
        rankings = []
        self.design: list[Floats] = []
        for row in self.rows:
            features = np.zeros((len(row), self.first_tie))
            for index, (_, team, members, roles) in enumerate(row):
                total = sum(number for _, number in members)
                for player, number in members:
                    features[index, column["player", player]] = number / total
                if self.sides:
                    features[index, column["side", team]] = 1.0
                here = dict(roles)
                for (name, role), mean in shares.items():
                    if name == team:
                        features[index, column["role", role]] = here.get(role, 0) / total - mean
            groups = tuple(
                tuple(i for i, side in enumerate(row) if side[0] == rank)
                for rank in sorted({side[0] for side in row})
            )
            rankings.append(Ranking(features, groups))
            self.design.append(features[1:] - features[0])
        self.ties = tie_sizes(rankings)
        self.stages: list[Stages] = stages(rankings, self.ties)
        deviations = [PLAYER_SD_ELO] * len(names) + [SIDE_SD_ELO] * len(self.sides)
        deviations += [ROLE_SD_ELO] * len(self.roles) + [TIE_SD * ELO] * len(self.ties)
        self.precision = (ELO / np.array(deviations)) ** 2
        self.groups = self._components()

    def _varying_roles(self, counts: Mapping[Row, int]) -> dict[tuple[str, str], float]:
        """Return the mean share of each (team, role) whose share is not the same in every match."""
        found: dict[str, list[tuple[dict[str, float], int]]] = defaultdict(list)
        for row in self.rows:
            for _, team, members, roles in row:
                total = sum(number for _, number in members)
                found[team].append(({role: number / total for role, number in roles}, counts[row]))
        means: dict[tuple[str, str], float] = {}
        for team, mixes in sorted(found.items()):
            weight = sum(count for _, count in mixes)
            for role in sorted({role for mix, _ in mixes for role in mix}):
                if len({mix.get(role, 0.0) for mix, _ in mixes}) > 1:
                    means[team, role] = fsum(mix.get(role, 0.0) * count for mix, count in mixes) / weight
        return means

    def _components(self) -> tuple[tuple[str, ...], ...]:
        """Return players linked by a match that weighs them differently on two sides."""
        size = len(self.names)
        if not size:
            return ()
        links = {
            (int(a), int(b))
            for difference in self.design
            for line in difference
            for weighed in [np.flatnonzero(line[:size])]
            for a, b in pairwise(weighed)
        }
        ends = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
        graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
        _, labels = connected_components(graph, directed=False)
        groups: dict[int, list[str]] = defaultdict(list)
        for name, label in zip(self.names, labels, strict=True):
            groups[int(label)].append(name)
        return tuple(sorted((tuple(group) for group in groups.values()), key=lambda g: (-len(g), g)))

    def contrasts(self, anchor: str | None) -> Floats:
        """Return the linear functions to be reported: each player against its group, each side, each role."""
        lines = np.zeros((self.first_tie, self.first_tie + len(self.ties)))
        place = {name: i for i, name in enumerate(self.names)}
        for group in self.groups:
            against = [anchor] if anchor in group else group
            for name in group:
                lines[place[name], place[name]] += 1.0
                for other in against:
                    lines[place[name], place[other]] -= 1 / len(against)
        for i in range(self.first_side, self.first_role):
            lines[i, self.first_side : self.first_role] = -1 / (len(self.sides) - 1)
            lines[i, i] = 1.0
        for i, role in enumerate(self.roles, self.first_role):
            others = [j for j, other in enumerate(self.roles, self.first_role) if other in self.beside[role]]
            lines[i, others] = -1 / len(others)
            lines[i, i] = 1.0
        return lines

    def with_deals(self, covariance: Floats, point: Floats, clusters: Iterable[Sequence[Row]]) -> Floats:
        """Return Laplace's covariance with that between matches of one deal, which share their luck.

        To H⁻¹ comes H⁻¹ X H⁻¹, where X sums the products of the scores of different matches on a deal; it is
        the part of the sandwich estimator (K.-Y. Liang, S. L. Zeger, Biometrika 73, 1986) that clusters add, and
        nothing where each match has a deal of its own.
        """
        index = {row: i for i, row in enumerate(self.rows)}
        deals = Counter(
            tuple(sorted(index[row] for row in cluster)) for cluster in clusters if len(cluster) > 1
        )
        if sum(deals.values()) < MIN_DEALS:
            return covariance
        own = scores(point, self.stages, rankings=len(self.rows))
        between = np.zeros_like(covariance)
        for rows, times in sorted(deals.items()):
            here = own[list(rows)]
            total = here.sum(axis=0)
            between += times * (np.outer(total, total) - here.T @ here)
        root = np.linalg.cholesky(covariance)
        values, vectors = np.linalg.eigh(np.eye(len(root)) + root.T @ between @ root)
        adjusted = root @ vectors
        found: Floats = adjusted * np.maximum(values, MIN_DEAL_FACTOR) @ adjusted.T
        return found

    def resampled(self, clusters: Sequence[tuple[Row, ...]], times: int, seed: int, start: Floats) -> Floats:
        """Return estimates (times, p) from clusters of matches drawn with replacement."""
        index = {row: i for i, row in enumerate(self.rows)}
        owner = np.repeat(np.arange(len(clusters)), [len(cluster) for cluster in clusters])
        rows = np.array([index[row] for cluster in clusters for row in cluster])
        rng = np.random.default_rng(seed)
        found = np.empty((times, len(start)))
        for sample in range(times):
            drawn = np.bincount(rng.integers(len(clusters), size=len(clusters)), minlength=len(clusters))
            weights = np.bincount(rows, weights=drawn[owner], minlength=len(self.rows)).astype(np.float64)
            found[sample], _ = maximise(self.stages, weights, self.precision, start=start)
        return found

    def estimates(
        self, contrasts: Floats, weights: Floats, point: Floats, covariance: Floats, samples: Floats | None
    ) -> list[Estimate]:
        """Return each contrast in Elo with its interval and whether the data determine it."""
        values = contrasts @ point * ELO
        variances = np.einsum("ij,jk,ik->i", contrasts, covariance, contrasts) * ELO**2
        determined = self._determined(contrasts[:, : self.first_tie], weights)
        if samples is None:
            return [
                Estimate(*_around(float(v), float(s)), bool(d))
                for v, s, d in zip(values, variances, determined, strict=True)
            ]
        tails = np.quantile(samples @ contrasts.T * ELO, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        return [
            Estimate(_tidy(v), _tidy(low), _tidy(high), bool(d))
            for v, low, high, d in zip(values, *tails, determined, strict=True)
        ]

    def _determined(self, contrasts: Floats, weights: Floats) -> list[bool]:
        """Return whether each contrast lies in the row space of the design, prior aside."""
        if not self.first_tie:
            return []
        gram = np.zeros((self.first_tie, self.first_tie))
        for difference, weight in zip(self.design, weights, strict=True):
            gram += weight * difference.T @ difference
        values, vectors = np.linalg.eigh(gram)
        null = vectors[:, values <= 1e-9 * max(values.max(initial=0.0), 1.0)]
        return [bool(np.abs(line @ null).max(initial=0.0) < 1e-6) for line in contrasts]
