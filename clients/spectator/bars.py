"""Small bars and plots that fit into a line: an interval on a scale, values over time."""

from collections.abc import Sequence

from clients.spectator.drawing import Line


def interval(
    low: float | None, value: float, high: float | None, *, scale: tuple[float, float], cells: int
) -> Line:
    """Return an interval and the value within it as a bar of `cells` cells from one end of `scale` to the other.

    Without both ends the value stands alone; what lies beyond the scale is drawn at its end.
    """
    if cells <= 0:
        return []
    start, end = scale
    whole = end - start

    def cell(at: float) -> int:
        share = (at - start) / whole if whole > 0 else 0.5
        return min(max(int(share * cells), 0), cells - 1)

    here = cell(value)
    first, last = (here, here) if low is None or high is None else (cell(low), cell(high))
    line: Line = []
    for at in range(cells):
        if at == here:
            line.append(("●", "accent bold"))
        elif first <= at <= last:
            line.append(("━", "accent"))
        else:
            line.append(("·", "dim"))
    return line


STEPS = "▁▂▃▄▅▆▇█"


def spark(values: Sequence[float | None], *, scale: tuple[float, float], cells: int) -> str:
    """Return values over time as a row of at most `cells` small columns, the newest at the right.

    More values than cells are drawn as the means of neighbours. Where there is no value stands a dot; what lies
    beyond the scale is drawn at its end.
    """
    count = len(values)
    if cells <= 0 or not count:
        return ""
    width = min(cells, count)
    drawn = []
    for at in range(width):
        part = [one for one in values[at * count // width : (at + 1) * count // width] if one is not None]
        drawn.append(_column(sum(part) / len(part), scale) if part else "·")
    return "".join(drawn)


def _column(value: float, scale: tuple[float, float]) -> str:
    low, high = scale
    share = (value - low) / (high - low) if high > low else 0.5
    return STEPS[min(max(int(share * len(STEPS)), 0), len(STEPS) - 1)]
