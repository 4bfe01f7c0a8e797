"""`arena serve` in a process of its own, which can really be killed, and whose disk can really be full."""

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NO_LIMITS = {
    "ARENA_SERVER__CONNECTS_PER_S": "1000000",
    "ARENA_SERVER__JOINS_PER_S": "1000000",
    "ARENA_SERVER__MESSAGES_PER_S": "1000000",
    "ARENA_SERVER__HEARTBEAT_S": "3600",
}
FULL_BYTES = 1
"""No file of a server whose disk is full may grow beyond this."""


class ServerProcess:
    """A server on a free port of the loopback; started again, it has another.

    Args:
        home: the directory of its state.
        words: more words of the command line.
    """

    def __init__(self, home: Path, *words: object) -> None:
        self.home = home
        self.port = 0
        self.http = ""
        self.log = home.with_name(f"{home.name}.log")
        self._words = ("--port", "0", "--http-port", "0", "--home", home, "--json", *words)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where its websockets are."""
        return f"ws://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ServerProcess"]:
        """Have it run until the block ends."""
        await self.start()
        try:
            yield self
        finally:
            await self.kill()

    async def start(self) -> None:
        """Start it and wait until it listens."""
        with self.log.open("a") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "evoke_arena", "serve", *map(str, self._words)),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **NO_LIMITS, "PYTHONPATH": str(ROOT)},
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line, self.log.read_text()
        ready: dict[str, Any] = json.loads(line)
        self.port = int(ready["websocket"].rpartition(":")[2])
        self.http = ready["http"]

    async def kill(self) -> None:
        """Kill it: SIGKILL, which it cannot notice."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        return await self._end(signal.SIGTERM)

    def fill_disk(self) -> None:
        """Let every file refuse to grow, as on a full disk (Linux)."""
        self._limit(FULL_BYTES)

    def make_room(self) -> None:
        """Let files grow again."""
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        assert self._process is not None
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size, hard))

    async def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.returncode is None:
            process.send_signal(number)
        assert process.stdout is not None
        await process.stdout.read()
        return await process.wait()
