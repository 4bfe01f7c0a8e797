"""Difficulty as levels, and how success depends on it: by skill, and by each dimension.

A task's level is 0 to 10 (more for what lies beyond the scales): ten times the weighted mean of its dimensions,
each laid on its scale. A skill's ability is the level at which half of the attempts succeed. It is fitted to the
skill's newest attempts by a one-parameter logistic curve (Rasch, "Probabilistic models for some intelligence and
attainment tests", 1960), older attempts counting less and less, with a normal prior. At a target of one half the
assumed slope hardly matters: tasks at the fitted ability are those that succeed half the time, whatever it is.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from agents.curriculum.config import Curve, Scale, Scales
from agents.curriculum.rows import AttemptRow
from games.tasks.spec import DIMENSIONS

TOP_LEVEL = 10.0
Draw = Callable[[], float]
"""A source of numbers from 0 up to 1."""


def expected(ability: float, level: float, *, slope: float) -> float:
    """Return the chance of success at `level`."""
    return sigmoid(slope * (ability - level))


def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


class Axes:
    """The scales, ready for use."""

    def __init__(self, scales: Scales) -> None:
        self.source = scales
        self.scales: tuple[Scale, ...] = tuple(getattr(scales, name) for name in DIMENSIONS)
        total = sum(scale.weight for scale in self.scales)
        self.weights = tuple(scale.weight / total for scale in self.scales)

    def places(self, difficulty: Sequence[float]) -> list[float]:
        """Return where each dimension lies on its scale: 0 at its low end, 1 at its high end."""
        return [
            (value - scale.low) / (scale.high - scale.low)
            for value, scale in zip(difficulty, self.scales, strict=True)
        ]

    def level(self, difficulty: Sequence[float]) -> float:
        """Return a task's level."""
        places = self.places(difficulty)
        return TOP_LEVEL * sum(w * p for w, p in zip(self.weights, places, strict=True))

    def values(self, places: Sequence[float]) -> tuple[float, ...]:
        """Return the difficulty whose dimensions lie at `places`."""
        return tuple(
            scale.low + place * (scale.high - scale.low)
            for place, scale in zip(places, self.scales, strict=True)
        )

    def balanced(self, level: float) -> tuple[float, ...]:
        """Return the difficulty of that level whose dimensions all lie equally high."""
        return self.values([min(1.0, max(0.0, level / TOP_LEVEL))] * len(self.scales))

    def spread(self, level: float, draw: Draw) -> tuple[float, ...]:
        """Return a difficulty of that level, its dimensions drawn freely."""
        drawn = [draw() for _ in self.scales]
        wanted = min(1.0, max(0.0, level / TOP_LEVEL))
        low, high = -1.0, 1.0
        for _ in range(16):
            shift = (low + high) / 2
            mean = sum(w * min(1.0, max(0.0, d + shift)) for w, d in zip(self.weights, drawn, strict=True))
            low, high = (shift, high) if mean < wanted else (low, shift)
        return self.values([min(1.0, max(0.0, d + high)) for d in drawn])

    def moved(
        self, difficulty: Sequence[float], by: float, draw: Draw
    ) -> tuple[tuple[float, ...], tuple[tuple[str, int], ...]]:
        """Return a difficulty whose level differs by `by`, and which dimensions moved, each up (+1) or down (-1).

        One dimension moves, drawn by the room it has; the next one takes what it has no room for.
        """
        places = self.places(difficulty)
        sign = 1 if by > 0 else -1
        left, moves = abs(by) / TOP_LEVEL, []
        open_to = [i for i, weight in enumerate(self.weights) if weight > 0]
        while left > 1e-9 and open_to:
            room = [max(0.0, (1 - places[i]) if sign > 0 else places[i]) for i in open_to]
            at = pick(room, draw)
            i = open_to.pop(at)
            change = min(left / self.weights[i], room[at])
            if change > 0:
                places[i] += sign * change
                left -= change * self.weights[i]
                moves.append((DIMENSIONS[i], sign))
        return self.values(places), tuple(moves)

    def combination(self, skill: str, difficulty: Sequence[float], *, bins: int = 3) -> tuple[str | int, ...]:
        """Return the cell of a task: its skill, and in which part of its scale each dimension lies."""
        return (skill, *(min(bins - 1, max(0, int(place * bins))) for place in self.places(difficulty)))


def pick(weights: Sequence[float], draw: Draw) -> int:
    """Return an index drawn by weight; any index, evenly, if all weights are 0."""
    total = sum(weights)
    if total <= 0:
        return min(len(weights) - 1, int(draw() * len(weights)))
    left = draw() * total
    for i, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return i
    return max(i for i, weight in enumerate(weights) if weight > 0)


class Ability(NamedTuple):
    """The level at which half of a skill's attempts succeed, with its standard error in levels."""

    level: float
    error: float


def ability(
    levels: Sequence[float], successes: Sequence[bool], config: Curve, *, fade: bool = True
) -> Ability:
    """Return the ability behind attempts, the oldest first: the mode of its posterior, found by Newton's method.

    The prior lies at `start` while there are no attempts, and then at the mean level of what was attempted.
    """
    slope, prior = config.slope, 1 / config.start_spread**2
    count = len(levels)
    base = 0.5 ** (1 / config.half_life) if fade else 1.0
    weights = [base ** (count - 1 - i) for i in range(count)]
    centre = (config.start + sum(w * x for w, x in zip(weights, levels, strict=True))) / (1 + sum(weights))
    theta, precision = centre, prior
    for _ in range(12):
        gradient, precision = prior * (centre - theta), prior
        for weight, level, success in zip(weights, levels, successes, strict=True):
            p = sigmoid(slope * (theta - level))
            gradient += weight * slope * (success - p)
            precision += weight * slope * slope * p * (1 - p)
        change = max(-2.0, min(2.0, gradient / precision))
        theta += change
        if abs(change) < 1e-3:
            break
    return Ability(theta, precision**-0.5)


def is_flat(levels: Sequence[float], successes: Sequence[bool], config: Curve) -> bool:
    """Whether the later half of a skill's last `flat_rows` attempts shows too little gain over the earlier half."""
    if len(levels) < config.flat_rows:
        return False
    levels, successes = levels[-config.flat_rows :], successes[-config.flat_rows :]
    half = len(levels) // 2
    before = ability(levels[:half], successes[:half], config, fade=False)
    after = ability(levels[half:], successes[half:], config, fade=False)
    return after.level - before.level < config.flat_gain


class Bin(NamedTuple):
    """A stretch of one dimension: its ends, how many attempts (or tasks) lie there, how many succeeded."""

    low: float
    high: float
    tasks: int
    successes: int


def by_dimension(rows: Iterable[AttemptRow], scales: Scales, *, bins: int = 5) -> dict[str, tuple[Bin, ...]]:
    """Return, for each dimension, how attempts and successes lie along its scale: its curve and its histogram.

    What lies beyond an end counts in the last stretch there.
    """
    axes = Axes(scales)
    counts = [[[0, 0] for _ in range(bins)] for _ in DIMENSIONS]
    for row in rows:
        for cells, place in zip(counts, axes.places(row.difficulty), strict=True):
            cell = cells[min(bins - 1, max(0, int(place * bins)))]
            cell[0] += 1
            cell[1] += row.success
    found = {}
    for name, scale, cells in zip(DIMENSIONS, axes.scales, counts, strict=True):
        width = (scale.high - scale.low) / bins
        found[name] = tuple(
            Bin(scale.low + i * width, scale.low + (i + 1) * width, count, successes)
            for i, (count, successes) in enumerate(cells)
        )
    return found
