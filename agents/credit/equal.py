"""Equal shares: what everyone uses who does not ask who did it."""

import time
from typing import ClassVar

from agents.credit.base import Cost, Credit, SeatCredit, StepCredit, exact
from agents.credit.line import Line, read_line
from replays.record import Record


class Equal:
    """Gives each seat of a team the same share, and each of a seat's decisions the same part of it."""

    name: ClassVar[str] = "equal"
    efficient: ClassVar[bool] = True

    async def credit(self, record: Record, *, team: str) -> Credit:
        began = time.perf_counter()
        return equal_credit(read_line(record), team, began=began)


def equal_credit(line: Line, team: str, *, began: float) -> Credit:
    """Return the equal shares of a line; `began` is when the work on it began, in seconds of `perf_counter`."""
    members, result = line.members(team), line.result(team)
    shares = exact([result / len(members)] * len(members), total=result)
    seats, steps = [], []
    for seat, share in zip(members, shares, strict=True):
        info = line.header.seats[seat]
        seats.append(SeatCredit(seat, info.name, line.outcome.roles[seat], share))
        made = line.taken[seat]
        parts = exact([share / len(made)] * len(made), total=share) if made else []
        steps += [StepCredit(taken.ply, seat, part) for taken, part in zip(made, parts, strict=True)]
    steps.sort(key=lambda step: (step.ply, step.seat))
    return Credit(
        Equal.name, team, result, tuple(seats), tuple(steps), Cost(seconds=time.perf_counter() - began)
    )
