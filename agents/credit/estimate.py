"""Means with intervals, from replays of few outcomes."""

from collections.abc import Sequence
from functools import lru_cache
from math import fsum, sqrt

from scipy.special import stdtrit

LEVEL = 0.95


@lru_cache(maxsize=1024)
def student(freedom: int) -> float:
    """Return the 97.5 % point of Student's distribution."""
    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def half_width(values: Sequence[float], *, spread: float = 0.0) -> float | None:
    """Return half the 95 % interval of a mean, None for fewer than two values.

    A few replays that all end alike do not prove that all would: one more, half of `spread` away from the mean, is
    counted in the variance, so that the interval closes with the number of values and not at once.
    """
    n = len(values)
    if n < 2:
        return None
    mean = fsum(values) / n
    squares = fsum((value - mean) ** 2 for value in values) + (spread / 2) ** 2
    return student(n - 1) * sqrt(squares / (n * (n - 1)))


def interval(
    values: Sequence[float], *, spread: float = 0.0, centre: float | None = None
) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a mean, moved to `centre` where one is given."""
    half = half_width(values, spread=spread)
    if half is None:
        return None, None
    middle = fsum(values) / len(values) if centre is None else centre
    return middle - half, middle + half
