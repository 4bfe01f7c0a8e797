"""Processes for bots that think: the attempts of a generation are shared out among the processors.

What a bot does depends on its attempt alone, so it is the same wherever it is done. Processes are begun once the bot
has thought for so long that they pay; a short run never has any. Who dies with its parent leaves nothing behind.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

PATIENCE_S = 3.0
"""Seconds of thinking before processes are begun: several times what that takes."""

J = TypeVar("J")
R = TypeVar("R")


class Workers:
    """Runs a function over jobs, in this process or in several; both must be picklable.

    Args:
        processes: how many there may be; with 1 everything is done in this one.
        patience_s: seconds of thinking before they are begun.
    """

    def __init__(self, processes: int = 1, *, patience_s: float = PATIENCE_S) -> None:
        self.processes = processes
        self._left_s = patience_s
        self._pool: ProcessPoolExecutor | None = None

    @property
    def begun(self) -> bool:
        """Whether there are processes."""
        return self._pool is not None

    async def map(self, function: Callable[[J], R], jobs: Sequence[J]) -> list[R]:
        """Return the results, in order."""
        if self.processes > 1 and self._left_s <= 0 and len(jobs) > 1:
            try:
                return await self._spread(function, jobs)
            except BrokenProcessPool:  # something ended a process; what it was at is done here, and alike
                self.close()
                self.processes = 1
        found = []
        for job in jobs:
            began = time.monotonic()
            found.append(function(job))
            self._left_s -= time.monotonic() - began
            await asyncio.sleep(0)
        return found

    async def _spread(self, function: Callable[[J], R], jobs: Sequence[J]) -> list[R]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.processes, mp_context=_context(), initializer=_begin)
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*(loop.run_in_executor(self._pool, function, job) for job in jobs)))

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def processes_for(concurrency: int) -> int:
    """Return how many processes attempts may be shared out among: one a processor, at most `concurrency`."""
    return max(1, min(concurrency, os.cpu_count() or 1))


def _context() -> Any:
    methods = multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which gets it too, decides
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
