"""What advice is worth: attempts with it beside attempts without it, from draws that chance alone decides.

An estimate is a difference of two shares, over strata within which an attempt had the advice by chance. Each share
has one success and one failure added (Agresti and Caffo 2000), so that small and lopsided counts claim little.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

Z95 = 1.959963984540054


class Arms(NamedTuple):
    """Attempts and successes, with the advice and without it."""

    with_attempts: int = 0
    with_successes: int = 0
    without_attempts: int = 0
    without_successes: int = 0

    def add(self, *, advised: bool, success: bool, count: int = 1) -> "Arms":
        """Return the arms with so many more attempts."""
        won = count if success else 0
        if advised:
            return self._replace(
                with_attempts=self.with_attempts + count, with_successes=self.with_successes + won
            )
        return self._replace(
            without_attempts=self.without_attempts + count, without_successes=self.without_successes + won
        )

    def plus(self, other: "Arms") -> "Arms":
        """Return both together."""
        return Arms(*(a + b for a, b in zip(self, other, strict=True)))


class Gain(NamedTuple):
    """By how much advice raises the share of success, with its standard error."""

    value: float
    error: float

    def at_most(self, z: float) -> float:
        """Return the one-sided upper bound at `z` standard errors."""
        return self.value + z * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """At 95 %."""
        return max(-1.0, self.value - Z95 * self.error), min(1.0, self.value + Z95 * self.error)


def gain(strata: Iterable[Arms]) -> Gain | None:
    """Return the gain over some strata, weighed as Mantel and Haenszel do; None where nothing can be compared."""
    total = value = variance = 0.0
    for arms in strata:
        n1, n0 = arms.with_attempts, arms.without_attempts
        if not n1 or not n0:
            continue
        weight = n1 * n0 / (n1 + n0)
        p1, p0 = (arms.with_successes + 1) / (n1 + 2), (arms.without_successes + 1) / (n0 + 2)
        total += weight
        value += weight * (p1 - p0)
        variance += weight**2 * (p1 * (1 - p1) / (n1 + 2) + p0 * (1 - p0) / (n0 + 2))
    return Gain(value / total, math.sqrt(variance) / total) if total else None
