"""What the store is told of tournaments over connected agents, away from the loop.

Whatever is said of a tournament is in the store first: a registration before its player is told, the schedule's
players before the first match. So a host that is killed loses none of it.
"""

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from arena import hosted
from arena.contest import Contest
from arena.desk import Desk
from arena.schedule import MatchPlan
from arena.store import FAILED, FINISHED, Store
from games.errors import ArenaError

logger = logging.getLogger("arena.host")


class DeskLedger:
    """An `arena.online.Ledger` that works at a desk.

    Args:
        desk: where blocking work is done, in the order in which it was asked for.
        spawn: runs a coroutine in the loop.
    """

    def __init__(self, desk: Desk, *, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._desk = desk
        self._spawn = spawn

    def keep(self, contest: Contest, then: Callable[[bool], None]) -> None:
        """Store who has registered; tell `then` whether the store took it."""
        self._spawn(self._keep(contest, then))

    def enrol(self, contest: Contest, then: Callable[[int | None], None]) -> None:
        """Enter a tournament that begins; tell `then` its row, None where the store refuses it."""
        self._spawn(self._enrol(contest, then))

    def pair(self, contest: Contest, then: Callable[[tuple[MatchPlan, ...] | None], None]) -> None:
        """Find the next round of a Swiss tournament; tell `then` its matches, None where that did not work."""
        self._spawn(self._pair(contest, then))

    def finish(self, contest: Contest) -> None:
        """Store that a tournament is over."""
        self._spawn(self._finish(contest))

    async def _keep(self, contest: Contest, then: Callable[[bool], None]) -> None:
        kept = True
        if contest.open:
            config, starts_on = contest.config(), contest.starts_on
            try:
                await self._desk.run(
                    lambda store: hosted.keep_open(store, contest.asked.name, config, starts_on=starts_on)
                )
            except ArenaError as error:
                logger.error("tournament %s: a registration is not stored: %s", contest.asked.name, error)
                kept = False
        then(kept)

    async def _enrol(self, contest: Contest, then: Callable[[int | None], None]) -> None:
        name, config = contest.asked.name, contest.config()
        row = None
        try:
            row = await self._desk.run(
                lambda store: store.add_tournament(config, config_hash=f"online/{name}", opened=name)
            )
        except ArenaError as error:
            logger.error("tournament %s cannot begin yet: %s", name, error)
        then(row)

    async def _pair(self, contest: Contest, then: Callable[[tuple[MatchPlan, ...] | None], None]) -> None:
        found = None
        try:
            found = await self._desk.run(lambda store: contest.next_round())
        except ArenaError as error:
            logger.error("tournament %s cannot go on yet: %s", contest.asked.name, error)
        then(found)

    async def _finish(self, contest: Contest) -> None:
        row = contest.row
        assert row is not None

        def finish(store: Store) -> None:
            store.set_status(row, status=FAILED if store.failures(row) else FINISHED)

        try:
            await self._desk.run(finish)
        except ArenaError as error:
            logger.error("tournament %s: its end is not in the store: %s", contest.asked.name, error)
