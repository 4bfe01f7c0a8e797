"""Standings: what each player did in each game, as one table.

A seat's result falls into exactly one of five columns, so that

    played = won + drawn + lost + walkovers + forfeits

counts every seat once, also where one player holds several seats of a match:

- `forfeits`: the seat itself forfeited, whatever became of its side;
- `walkovers`: it did not, its side came first alone, and a seat of another side forfeited: no win by play;
- `won`, `drawn`, `lost`: its side came first alone, first together with others, or behind. Where there is
  only one side, the sign of the return decides.

`score` is (won + drawn / 2) over these last three alone. `won_forced` says how many of `won` had a move of
another side played by the referee: wins by play, but not by play alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import Any

from scipy.special import ndtri, stdtrit

from arena.ratings import ANCHOR, LEVEL, Fit, SideEffect, fit
from arena.results import RatedMatch, RatedSeat

EQUAL = "equal"
BY_PLAY = ("won", "drawn", "lost")
COLUMNS = (*BY_PLAY, "walkovers", "forfeits")


@dataclass(slots=True)
class Tally:
    """Results of one player's seats, over a game or over one role of it."""

    won: int = 0
    drawn: int = 0
    lost: int = 0
    walkovers: int = 0
    forfeits: int = 0
    sides: int = 0
    """Sides held in matches decided by play: the seats of one side share their result and count as one."""

    @property
    def played(self) -> int:
        """Seats held."""
        return self.won + self.drawn + self.lost + self.walkovers + self.forfeits

    @property
    def score(self) -> float | None:
        """Share of the points by play, None where nothing was decided by play."""
        decided = self.won + self.drawn + self.lost
        return (self.won + self.drawn / 2) / decided if decided else None

    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """Return the 95 % interval of the score."""
        score = self.score
        return (None, None) if score is None else wilson(score, n=self.sides)

    def as_dict(self) -> dict[str, Any]:
        """Return the columns as JSON-compatible data."""
        low, high = self.interval()
        columns = {name: getattr(self, name) for name in COLUMNS}
        return {"played": self.played, **columns, "score": self.score, "score_low": low, "score_high": high}


@dataclass(slots=True)
class Standing:
    """One row of the table: a player in a game. `rating` is 1500 without interval where nothing was rated."""

    player: str
    game: str
    tally: Tally = field(default_factory=Tally)
    by_role: dict[str, Tally] = field(default_factory=dict)
    rating: float = ANCHOR
    low: float | None = None
    high: float | None = None
    determined: bool = False
    group: int = 0
    matches: int = 0
    """Distinct matches, also those not rated."""
    rated: int = 0
    won_forced: int = 0
    forced: int = 0
    illegal: int = 0
    mean_return: tuple[float, float | None, float | None] | None = None
    """Mean return per seat by play, with its 95 % interval."""
    plain: bool = True
    """Whether every return by play was 1, 0 or -1, so that the mean return says no more than the score."""
    credit: float | None = None
    """Mean share of its team's result, a seat: equal shares, unless another method of credit has said."""
    shared: bool = False
    """Whether it ever shared a team with another seat."""
    accusation: str | None = None
    """What a method that can tell found: `free rider` or `saboteur`."""

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON-compatible data."""
        mean, low, high = self.mean_return or (None, None, None)
        return {
            "player": self.player,
            "game": self.game,
            **self.tally.as_dict(),
            "rating": self.rating,
            "low": self.low,
            "high": self.high,
            "by_role": {role: self.by_role[role].as_dict() for role in sorted(self.by_role)},
            "forced": self.forced,
            "illegal": self.illegal,
            "credit": self.credit,
            "accusation": self.accusation,
            "matches": self.matches,
            "rated": self.rated,
            "group": self.group,
            "determined": self.determined,
            "won_forced": self.won_forced,
            "mean_return": mean,
            "return_low": low,
            "return_high": high,
        }


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The table, best first within each game, and the fits that it stands on."""

    standings: tuple[Standing, ...]
    fits: tuple[Fit, ...]
    credit: str = EQUAL
    """By which method the rows' credit was found."""

    def as_dict(self) -> dict[str, Any]:
        """Return `standings`, `side_effect` by game, `credit` and `warnings` as JSON-compatible data."""
        return {
            "credit": self.credit,
            "standings": [row.as_dict() for row in self.standings],
            "side_effect": {found.game: side_effect(found) for found in self.fits if found.sides},
            "warnings": self.warnings(),
        }

    def warnings(self) -> list[str]:
        """Return in words what the ratings cannot tell."""
        return [line for found in self.fits for line in _warnings(found)]


def leaderboard(
    matches: Iterable[RatedMatch],
    *,
    players: Iterable[str] = (),
    sides: Mapping[str, Sequence[str]] | None = None,
    anchor: str | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> Leaderboard:
    """Count and rate the matches of any number of games.

    Args:
        matches: finished matches in any order.
        players: names to list in every game even if they have no match there.
        sides: by game, the names of its sides, first the one whose effect is spoken of; none where sides differ by
            name alone.
        anchor, bootstrap, seed: see `arena.ratings.fit`. An anchor holds in the games that know it.

    Raises `RatingError` for contradictory results.
    """
    by_game: dict[str, list[RatedMatch]] = defaultdict(list)
    for match in matches:
        by_game[match.game].append(match)
    listed, rows, fits = sorted(set(players)), [], []
    for game in sorted(by_game):
        known = {seat.player for match in by_game[game] for seat in match.seats} | set(listed)
        found = fit(
            by_game[game],
            players=listed,
            sides=(sides or {}).get(game),
            anchor=anchor if anchor in known else None,
            bootstrap=bootstrap,
            seed=seed,
        )
        fits.append(found)
        rows += _count(game, by_game[game], found)
    rows.sort(key=lambda row: (row.game, row.group, -row.rating, row.player))
    return Leaderboard(tuple(rows), tuple(fits))


def side_effect(found: Fit) -> dict[str, Any]:
    """Return the first side's effect in Elo with interval and share of wins; `sides` has each side's."""

    def line(effect: SideEffect) -> dict[str, Any]:
        return {
            "value": effect.value,
            "low": effect.low,
            "high": effect.high,
            "share": effect.share,
            "matches": effect.matches,
            "determined": effect.determined,
        }

    return {
        "side": found.sides[0].side,
        **line(found.sides[0]),
        "sides": {effect.side: line(effect) for effect in found.sides},
    }


def wilson(share: float, *, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share among `n` (JASA 22, 1927); with draws it is a little wide."""
    z = float(ndtri((1 + LEVEL) / 2))
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def _count(game: str, matches: Sequence[RatedMatch], found: Fit) -> list[Standing]:
    rows = {
        rating.player: Standing(
            rating.player,
            game,
            rating=rating.value,
            low=rating.low,
            high=rating.high,
            determined=rating.determined,
            group=rating.group,
            rated=rating.matches,
        )
        for rating in found.ratings
    }
    returns: dict[str, dict[object, list[float]]] = defaultdict(lambda: defaultdict(list))
    shares: dict[str, list[float]] = defaultdict(list)
    for index, match in enumerate(matches):
        ranking = match.ranking()
        values: dict[str, list[float]] = defaultdict(list)
        held: set[tuple[str, str | None, str]] = set()
        teams: dict[str, list[float]] = defaultdict(list)
        for seat in match.seats:
            teams[seat.team].append(seat.value)
        for seat in match.seats:
            row = rows[seat.player]
            column = _column(seat, match, ranking)
            by_play = column in BY_PLAY
            shares[seat.player].append(fsum(teams[seat.team]) / len(teams[seat.team]) ** 2)
            row.shared = row.shared or len(teams[seat.team]) > 1
            row.forced += seat.forced
            row.illegal += seat.illegal
            for role, tally in ((None, row.tally), (seat.role, row.by_role.setdefault(seat.role, Tally()))):
                setattr(tally, column, getattr(tally, column) + 1)
                if by_play and (seat.player, role, seat.team) not in held:
                    held.add((seat.player, role, seat.team))
                    tally.sides += 1
            if column == "won":
                row.won_forced += any(other.forced for other in match.seats if other.team != seat.team)
            if by_play:
                values[seat.player].append(seat.value)
                row.plain = row.plain and seat.value in (-1, 0, 1)
        for player in {seat.player for seat in match.seats}:
            rows[player].matches += 1
        for player, got in values.items():
            returns[player][("alone", index) if match.deal is None else ("deal", match.deal)] += got
    for player, got in shares.items():
        rows[player].credit = fsum(got) / len(got)
    for player, deals in returns.items():
        rows[player].mean_return = _mean(sorted((fsum(got), len(got)) for got in deals.values()))
    return list(rows.values())


def _column(seat: RatedSeat, match: RatedMatch, ranking: tuple[tuple[str, ...], ...]) -> str:
    if seat.forfeited:
        return "forfeits"
    if len(ranking[0]) == 1 and len(ranking) == 1:
        return "won" if seat.value > 0 else "lost" if seat.value < 0 else "drawn"
    if seat.team not in ranking[0]:
        return "lost"
    if len(ranking[0]) > 1:
        return "drawn"
    given = any(other.forfeited for other in match.seats if other.team != seat.team)
    return "walkovers" if given else "won"


def _mean(pairs: Sequence[tuple[float, int]]) -> tuple[float, float | None, float | None]:
    """Return the mean of (sum, number) per deal, with Student's interval of the ratio, deals as clusters."""
    n, seats = len(pairs), sum(number for _, number in pairs)
    mean = fsum(total for total, _ in pairs) / seats
    if n < 2:
        return mean, None, None
    spread = fsum((total - mean * number) ** 2 for total, number in pairs)
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * sqrt(n / (n - 1) * spread) / seats
    return mean, mean - half, mean + half


def _warnings(found: Fit) -> list[str]:
    lines = []
    rated = [group for group in found.groups if any(found.rating(player).matches for player in group)]
    if len(rated) > 1:
        named = "; ".join(", ".join(group[:5]) + (", …" if len(group) > 5 else "") for group in rated[:5])
        lines.append(
            f"{found.game}: {len(rated)} groups of players never met on opposite sides ({named}); "
            "ratings can be compared within a group only"
        )
    open_ended = [r.player for r in found.ratings if r.matches and not r.determined and r.low is not None]
    if open_ended:
        named = ", ".join(open_ended[:5]) + (", …" if len(open_ended) > 5 else "")
        lines.append(
            f"{found.game}: the matches do not tell the rating of {named} apart from a side or a teammate; "
            "the interval is the prior's"
        )
    return lines
