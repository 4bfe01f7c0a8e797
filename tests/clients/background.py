"""A whole server in a thread of its own, for tests of clients that block or live in another process."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from arena.serving import ArenaServer
from tests.arena.connected import serving

T = TypeVar("T")


@contextmanager
def background_server(home: Path, **settings: Any) -> Iterator[ArenaServer]:
    """Run a server on loopback, with settings of the section `server`, until the block ends."""
    with in_background(lambda: serving(home, **settings)) as server:
        yield server


@contextmanager
def in_background(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Enter an asynchronous context in a thread of its own until the block ends."""
    started = threading.Event()
    found: list[Any] = []

    async def main() -> None:
        stop = asyncio.Event()
        async with make() as entered:
            found.extend((entered, stop))
            started.set()
            await stop.wait()

    loop = asyncio.new_event_loop()

    def work() -> None:
        try:
            loop.run_until_complete(main())
        except BaseException as error:
            found.append(error)
            raise
        finally:
            started.set()
            loop.close()

    thread = threading.Thread(target=work, name="server of a test")
    thread.start()
    started.wait()
    try:
        if len(found) != 2:
            raise found[0]
        yield found[0]
    finally:
        if len(found) == 2:
            loop.call_soon_threadsafe(found[1].set)
        thread.join()
