"""Small bars for a table's cells: an interval on a scale."""

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
