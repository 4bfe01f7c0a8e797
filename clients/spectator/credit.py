"""Who is credited with a finished match, as plain data: read, summed up to a ply, and drawn.

The data are what `arena credit --json` prints, for one team or a list of several. Nothing here knows how credit
comes about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple, Self

from clients.errors import BadCreditSheet
from clients.spectator.drawing import Line, crop, fit
from clients.spectator.panels.base import seat_span
from clients.spectator.timeline import Step
from games.text import clean_name

GOOD, BAD = "good", "bad"
MARKS = {GOOD: ("▲", "good"), BAD: ("▼", "evil"), None: ("·", "dim")}
"""How a decision looks by its label."""
MIXED = ("◆", "warn")
"""Several decisions of which as many helped as harmed."""
BAR_CELLS = 11
MAX_STEPS = 200_000


class StepShare(NamedTuple):
    """What one decision is credited with; `label` is good, bad or None."""

    ply: int
    seat: int
    credit: float
    label: str | None


class SeatShare(NamedTuple):
    """A seat's share of its team's result, with its 95 % interval where there is one."""

    seat: int
    player: str
    credit: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class TeamCredit:
    """The credit of one team's result."""

    team: str
    method: str
    result: float
    seats: tuple[SeatShare, ...]
    steps: tuple[StepShare, ...]
    """In the order of plies."""

    def until(self, ply: int) -> dict[int, float]:
        """Return by seat what its decisions up to `ply`, that one included, are credited with."""
        sums = dict.fromkeys((seat.seat for seat in self.seats), 0.0)
        for step in self.steps:
            if step.ply > ply:
                break
            sums[step.seat] += step.credit
        return sums


@dataclass(frozen=True, slots=True)
class CreditSheet:
    """The credit of a match: one entry for each team that is credited."""

    teams: tuple[TeamCredit, ...]

    @classmethod
    def from_data(cls, data: object, *, players: Sequence[str]) -> Self:
        """Read what `arena credit --json` printed, or a list of it.

        Args:
            data: decoded JSON.
            players: the match's players by seat; credit of other players is refused.

        Raises `BadCreditSheet` in one line.
        """
        documents = data if isinstance(data, list) else [data]
        if not documents:
            raise BadCreditSheet("credit: the data name no team")
        teams = tuple(_team(document, players) for document in documents)
        seats = [seat.seat for team in teams for seat in team.seats]
        if len(set(seats)) != len(seats):
            raise BadCreditSheet("credit: a seat is credited twice; give each team once, by one method")
        return cls(teams)

    def at(self, ply: int) -> list[StepShare]:
        """Return the decisions of a ply, in seat order."""
        found = [step for team in self.teams for step in team.steps if step.ply == ply]
        return sorted(found, key=lambda step: step.seat)

    def marks(self, steps: Sequence[Step]) -> list[tuple[int, int]]:
        """Return, for each ply with labelled decisions, the timeline's step that ends it and what its labels sum to."""
        sums: dict[int, int] = {}
        for team in self.teams:
            for step in team.steps:
                if step.label is not None:
                    sums[step.ply] = sums.get(step.ply, 0) + (1 if step.label == GOOD else -1)
        last = {step.ply: at for at, step in enumerate(steps) if step.ply in sums}
        return sorted((last[ply], value) for ply, value in sums.items() if ply in last)


def draw_credit(sheet: CreditSheet, *, names: Sequence[str], ply: int, over: bool, width: int) -> list[Line]:
    """Return the credit panel after `ply`; a team's result is told where the match is `over`."""
    now = {step.seat: step for step in sheet.at(ply)}
    sums = [team.until(ply) for team in sheet.teams]
    # A whole bar is the largest share, and no less than an equal share of a result: what is next to nothing looks so.
    shares = [seat.credit for team in sheet.teams for seat in team.seats]
    shares += [value for found in sums for value in found.values()]
    shares += [team.result / len(team.seats) for team in sheet.teams if team.seats]
    scale = max(map(abs, shares), default=0.0)
    lines: list[Line] = []
    for team, found in zip(sheet.teams, sums, strict=True):
        head: Line = [(f"Credit, {team.method} ", "dim"), (team.team, "text bold")]
        head.append((f" {team.result:+.2f}" if over else " so far", "dim"))
        lines.append(head)
        for seat in team.seats:
            mark = MARKS[now[seat.seat].label] if seat.seat in now else (" ", "")
            value = seat.credit if over else found[seat.seat]
            cells = max(min(width - BAR_CELLS - 14, 16), 4)
            lines.append(
                [
                    mark,
                    (" ", ""),
                    seat_span(seat.seat),
                    (" ", ""),
                    (fit(names[seat.seat], cells), f"seat{seat.seat}"),
                    (" ", ""),
                    *_bar(value, scale),
                    (f" {value:+.2f}", "good" if value > 0 else "evil" if value < 0 else "dim"),
                ]
            )
    return [crop(line, width) for line in lines]


def _bar(value: float, scale: float) -> Line:
    """Return a bar that grows to the right for a gain and to the left for a loss."""
    half = BAR_CELLS // 2
    filled = min(round(half * abs(value) / scale), half) if scale else 0
    if round(value, 2) and not filled:
        filled = 1
    left, right = (filled, 0) if value < 0 else (0, filled)
    return [
        ("─" * (half - left), "dim"),
        ("█" * left, "evil"),
        ("┃", "text"),
        ("█" * right, "good"),
        ("─" * (half - right), "dim"),
    ]


def _team(data: object, players: Sequence[str]) -> TeamCredit:
    try:
        if not isinstance(data, Mapping):
            raise TypeError("an object is needed")
        seats = tuple(_seat(row, players) for row in data["seats"])
        known = {seat.seat for seat in seats}
        rows = data["steps"]
        if len(rows) > MAX_STEPS:
            raise ValueError(f"{len(rows)} steps, at most {MAX_STEPS} are read")
        steps = sorted((_step(row, known) for row in rows), key=lambda step: (step.ply, step.seat))
        return TeamCredit(
            clean_name(str(data["team"])),
            clean_name(str(data["method"])),
            _number(data["result"]),
            seats,
            tuple(steps),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)[:100]
        raise BadCreditSheet(f"credit: the data are not what `arena credit --json` prints ({what})") from None


def _seat(row: Any, players: Sequence[str]) -> SeatShare:
    seat, player = row["seat"], row["player"]
    if type(seat) is not int or not 0 <= seat < len(players):
        raise BadCreditSheet(
            f"credit: it speaks of seat {str(seat)[:20]}, the match has {len(players)} seats"
        )
    if player != players[seat]:
        raise BadCreditSheet(
            f"credit: it is of another match: seat {seat} is {str(player)[:40]!r} there and {players[seat][:40]!r} here"
        )
    low, high = row.get("low"), row.get("high")
    both = low is not None and high is not None
    return SeatShare(
        seat,
        player,
        _number(row["credit"]),
        _number(low) if both else None,
        _number(high) if both else None,
    )


def _step(row: Any, seats: set[int]) -> StepShare:
    ply, seat, label = row["ply"], row["seat"], row.get("label")
    if type(ply) is not int or ply < 0 or seat not in seats or label not in (GOOD, BAD, None):
        raise ValueError(f"step {str(row)[:60]}")
    return StepShare(ply, seat, _number(row["credit"]), label)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"number {str(value)[:20]}")
    return float(value)
