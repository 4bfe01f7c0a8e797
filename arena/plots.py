"""Small plots as inline SVG, for pages that need nothing beside themselves."""

import html
import math
from collections.abc import Mapping, Sequence

COLORS = ("#3b6fd4", "#d9822b", "#2f9e6e", "#c2417c", "#8a63d2", "#5b8a9c", "#b3492d", "#7a8b2f")
"""Of the series, by their place."""

WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 26
LEAST, TINY = 0.02, 1e-7
"""The shortest vertical axis, as a part of its largest value, and what counts as zero."""


def legend(names: Sequence[str]) -> str:
    """Return the names of series with their colours, by place, as in the plots."""
    items = "".join(
        f'<span><i style="background:{color(i)}"></i>{html.escape(name)}</span>'
        for i, name in enumerate(names)
    )
    return f'<div class="legend">{items}</div>'


def color(place: int) -> str:
    """Return the colour of the series at a place."""
    return COLORS[place % len(COLORS)]


def lines(
    at: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    *,
    y: str,
    x: str = "generation",
    low: float | None = None,
    high: float | None = None,
    band: tuple[float, float] | None = None,
) -> str:
    """Return a plot of lines; a value of None leaves a gap.

    Args:
        at: where the values are, on the horizontal axis, rising.
        series: values by name; their order gives the colours.
        y: what the vertical axis shows.
        x: what the horizontal axis shows.
        low, high: ends of the vertical axis; by default those of the values.
        band: a stretch of the vertical axis that is marked.
    """
    values = [value for one in series.values() for value in one if value is not None]
    bottom = min(values, default=0.0) if low is None else low
    top = max(values, default=1.0) if high is None else high
    lacking = LEAST * max(abs(bottom), abs(top)) - (top - bottom)
    if top - bottom < TINY and max(abs(bottom), abs(top)) < TINY:
        top = bottom + 1.0
    elif lacking > 0:
        bottom, top = (bottom - lacking / 2, top + lacking / 2) if low is None else (bottom, top + lacking)
    ticks = _ticks(bottom, top)
    bottom, top = min(bottom, ticks[0]), max(top, ticks[-1])
    first, last = (at[0], at[-1]) if at else (0.0, 1.0)

    def place(x: float, value: float) -> tuple[float, float]:
        share = (x - first) / (last - first) if last > first else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT), _height(value, bottom, top)

    parts = [_axes(ticks, bottom, top, y)]
    if band is not None:
        upper, lower = _height(band[1], bottom, top), _height(band[0], bottom, top)
        parts.append(
            f'<rect x="{LEFT}" y="{upper:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{lower - upper:.1f}" '
            'fill="currentColor" opacity=".07"/>'
        )
    for i, one in enumerate(series.values()):
        for stretch in _stretches(at, one):
            points = [place(x, value) for x, value in stretch]
            if len(points) == 1:
                (cx, cy), *_ = points
                parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="2" fill="{color(i)}"/>')
            else:
                path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
                parts.append(
                    f'<polyline points="{path}" fill="none" stroke="{color(i)}" stroke-width="1.8" '
                    'stroke-linejoin="round"/>'
                )
    parts += [
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{first:g}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(x)}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{last:g}</text>',
    ]
    return _svg(parts)


def bars(
    names: Sequence[str], series: Mapping[str, Sequence[float]], *, y: str, high: float | None = None
) -> str:
    """Return a plot of bars, those of one name beside each other; the order of the series gives the colours."""
    values = [value for one in series.values() for value in one]
    top = max(values, default=1.0) if high is None else high
    ticks = _ticks(0.0, max(top, 1e-9))
    top = max(top, ticks[-1])
    room = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    width = room * 0.8 / max(1, len(series))
    parts = [_axes(ticks, 0.0, top, y)]
    for i, one in enumerate(series.values()):
        for j, value in enumerate(one):
            x = LEFT + j * room + room * 0.1 + i * width
            upper = _height(value, 0.0, top)
            parts.append(
                f'<rect x="{x:.1f}" y="{upper:.1f}" width="{width:.1f}" '
                f'height="{HEIGHT - BOTTOM - upper:.1f}" fill="{color(i)}"/>'
            )
    for j, name in enumerate(names):
        x = LEFT + (j + 0.5) * room
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(name)}</text>')
    return _svg(parts)


def _svg(parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'


def _axes(ticks: Sequence[float], bottom: float, top: float, y: str) -> str:
    parts = [f"<title>{html.escape(y)}</title>"]
    for tick in ticks:
        at = _height(tick, bottom, top)
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
    return "".join(parts)


def _height(value: float, bottom: float, top: float) -> float:
    share = (min(max(value, bottom), top) - bottom) / (top - bottom)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _ticks(low: float, high: float) -> list[float]:
    """Return three to six round numbers that cover a range."""
    rough = (high - low) / 4
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _stretches(at: Sequence[float], values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Return the values with their places, in stretches without a gap."""
    found: list[list[tuple[float, float]]] = [[]]
    for x, value in zip(at, values, strict=True):
        if value is None:
            if found[-1]:
                found.append([])
        else:
            found[-1].append((x, value))
    return [one for one in found if one]
