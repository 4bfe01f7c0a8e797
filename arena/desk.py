"""The desk: the one thread in which a server does what would block its loop.

All use of the store goes through it, so that there is one writer, and writes happen in the order in which they
were asked for.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from arena.store import Store

T = TypeVar("T")


class Desk:
    """One thread and the store it holds; the store is opened at the first use.

    Args:
        home: the directory of the store.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="arena-desk")
        self._store: Store | None = None
        self.waiting = 0
        """How much was asked for and is not done."""

    async def run(self, work: Callable[[Store], T]) -> T:
        """Do `work` with the store, after all that was asked for before; return or raise what it does."""
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)
        finally:
            self.waiting -= 1

    async def close(self) -> None:
        """Do what is left, then let go of the store and the thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=False)

    def _work(self, work: Callable[[Store], T]) -> T:
        if self._store is None:
            self._store = Store(self.home)
        return work(self._store)

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()
