"""Results that the store is still to be given."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from arena import hosted
from arena.desk import Desk
from arena.report import MatchReport
from arena.store import Store
from games.errors import ArenaError

logger = logging.getLogger("arena.host")


class Owed:
    """Hands results to the store, those that come together in one transaction.

    Args:
        desk: holds the store.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._owed: deque[tuple[MatchReport, Callable[[Store], None]]] = deque()
        self._settling = asyncio.Lock()

    async def add(self, report: MatchReport, finish: Callable[[Store], None]) -> None:
        """Have a result stored by `finish`, which may be called twice; now, or when the store takes it."""
        self._owed.append((report, finish))
        await self.settle()

    async def settle(self) -> None:
        """Store the results that are owed, all or none. What is refused is tried again with the next one, and at the
        end. Where it is called off it is not known whether it was done, and doing it twice changes nothing.
        """
        async with self._settling:
            if not self._owed:
                return
            owed = list(self._owed)

            def work(store: Store) -> None:
                with store.write():
                    for _, finish in owed:
                        finish(store)
                for report, _ in owed:
                    if report.error is not None and report.record is not None:
                        hosted.forget_failure(report.record)

            try:
                await self._desk.run(work)
            except ArenaError as error:
                # Killed now, nothing is lost: the records are the truth, and the next host goes on with them.
                matches = ", ".join(report.match for report, _ in owed)
                logger.error("matches that are not in the store yet: %s: %s", matches, error)
                return
            for _ in owed:
                self._owed.popleft()
