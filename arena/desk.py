"""The desk: the one thread in which a server does what would block its loop.

All use of the store goes through it, so that there is one writer, and writes happen in the order in which they
were asked for.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

from arena.store import Store
from games.errors import ArenaError

T = TypeVar("T")
A = TypeVar("A")


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
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, work: Callable[[Store], T]) -> T:
        """Do `work` with the store, after all that was asked for before; return or raise what it does."""
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)
        finally:
            self.waiting -= 1

    async def close(self) -> None:
        """Do what is left, then let go of the store and the thread."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
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


class Together(Generic[A, T]):
    """Work of one kind: what is asked for while the desk is at it is done in one go, which costs less.

    Args:
        desk: does it.
        work: takes what was asked for and returns as many answers; one that is an error is raised for its asker.
    """

    def __init__(self, desk: Desk, work: Callable[[Store, Sequence[A]], Sequence[T | ArenaError]]) -> None:
        self._desk = desk
        self._work = work
        self._asked: list[tuple[A, asyncio.Future[T]]] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, item: A) -> T:
        """Have `item` done, and return or raise what becomes of it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._asked.append((item, answer))
        if self._task is None:
            self._task = loop.create_task(self._go())
            self._desk._tasks.add(self._task)
            self._task.add_done_callback(self._desk._tasks.discard)
        return await answer

    async def _go(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, []
            items = [item for item, _ in asked]
            found: Sequence[T | BaseException]
            try:
                found = await self._desk.run(lambda store, items=items: self._work(store, items))  # type: ignore[misc]
            except Exception as error:
                found = [error] * len(asked)
            for (_, answer), result in zip(asked, found, strict=True):
                if answer.done():
                    continue
                if isinstance(result, BaseException):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)
        self._task = None
