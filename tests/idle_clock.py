"""A loop whose clock goes on only where there is nothing else to do.

Deadlines and heartbeats then fall by what has happened, and on a slow machine where they do on a fast one: nobody's
time is over while a message to or from it is still on its way within this process.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
ON_ITS_WAY_S = 0.001
"""Real seconds for what a socket was given to come out at its other end."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


class _Selector(selectors.DefaultSelector):
    """Waits for nothing that is not there, and counts for how long it would have waited."""

    waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        found = super().select(ON_ITS_WAY_S)
        if not found:
            self.waited_s += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        return self._waits.waited_s
