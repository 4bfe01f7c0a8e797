"""What a home directory can tell the spectator's screens, without a server."""

import asyncio
from pathlib import Path
from typing import Any

from arena import archive
from arena.store import Store
from clients.spectator.rest import Facts


class HomeFacts(Facts):
    """The facts of a home: ratings, and what was played. Nobody waits there, and nothing goes on.

    Args:
        home: the directory that holds `arena.db`.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.name = str(home)

    async def matches(self, *, game: str | None = None) -> dict[str, list[dict[str, Any]]]:
        return {"live": [], "recent": await asyncio.to_thread(self._recent, game)}

    async def lobbies(self) -> list[dict[str, Any]]:
        return []

    async def ratings(self, *, tournament: str | None = None) -> dict[str, Any]:
        return await asyncio.to_thread(self._ratings)

    async def tournaments(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._tournaments)

    def _recent(self, game: str | None) -> list[dict[str, Any]]:
        with Store(self.home, create=False) as store:
            return archive.recent(store, game=game)

    def _ratings(self) -> dict[str, Any]:
        with Store(self.home, create=False) as store:
            return archive.board(store.rated_matches())

    def _tournaments(self) -> list[dict[str, Any]]:
        with Store(self.home, create=False) as store:
            return archive.contests_over(store)
