"""How fast a match is played back."""

from collections.abc import Callable, Collection
from typing import Protocol

from games.base import Event

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
FIRST_SPEED = SPEEDS.index(1.0)
STEP_S = 0.7
"""Seconds that a step stays at speed 1, and how many each character of a speech adds, up to the longest stay."""
CHARACTER_S = 0.02
LONGEST_S = 3.5


class Alarm(Protocol):
    """A call that is to come."""

    def stop(self) -> None:
        """Call it off."""


Later = Callable[[float, Callable[[], None]], Alarm]
"""Makes a call after so many seconds: the clock by which a match is played back."""


class Pace:
    """A speed out of `SPEEDS`, and how long each step stays at it."""

    def __init__(self) -> None:
        self._index = FIRST_SPEED

    @property
    def speed(self) -> float:
        """How many times as fast as speed 1."""
        return SPEEDS[self._index]

    def shift(self, by: int) -> None:
        """Go to a faster speed, or with a negative number to a slower one; the fastest and slowest stay."""
        self._index = min(max(self._index + by, 0), len(SPEEDS) - 1)

    def stay_s(self, event: Event | None, *, speech: Collection[str]) -> float:
        """Return for how many seconds a step stays.

        Args:
            event: of the step; None before the first one.
            speech: kinds of event whose `text` is to be read.
        """
        stay = STEP_S
        if event is not None:
            text = event.data.get("text") if event.kind in speech else None
            stay += CHARACTER_S * len(text) if isinstance(text, str) else 0
        return min(stay, LONGEST_S) / self.speed
