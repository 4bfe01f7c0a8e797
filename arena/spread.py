"""How a figure that was measured several times is told: its median, its least and its greatest."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of a figure over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of `values`, one at least."""
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])

    def show(self, form: str = ",.0f", unit: str = "") -> str:
        """Return `median (low to high)`."""
        return f"{self.median:{form}}{unit} ({self.low:{form}} to {self.high:{form}})"

    def as_dict(self) -> dict[str, float]:
        """Return it as JSON-compatible data."""
        return {"median": self.median, "low": self.low, "high": self.high}
