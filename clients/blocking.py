"""The client without `await`, for programs that have no event loop.

    with connect("ws://127.0.0.1:8765", token=…) as arena:
        match = arena.join(game="avalon", name="me")
        for turn in match:
            turn.play(choose(match.view, turn.space))
        print(match.ended)

The connection lives in a thread of its own, so it answers heartbeats and comes back after a loss while the
program thinks. One `Arena` may be used from several threads, one match from one at a time.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from clients import match as waiting
from clients import sdk
from clients.errors import ClientError
from clients.protocol import messages as wire
from games.base import Event
from games.spaces import Action

T = TypeVar("T")


def connect(url: str, **options: Any) -> "Arena":
    """Return a connection, to be entered with `with`; the options are those of `clients.sdk.Arena`."""
    return Arena(url, **options)


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="arena client", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do `work` there and wait for it; it is cancelled where the wait is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Turn:
    """The seat must act: `clients.match.Turn`, whose attributes it has, without `await`."""

    def __init__(self, match: "Match", turn: waiting.Turn, loop: _Loop) -> None:
        self.match = match
        self.request = turn.request
        self.space = turn.space
        self.describe = turn.describe
        self.attempt = turn.attempt
        self.failure = turn.failure
        self.reason = turn.reason
        self._turn, self._loop = turn, loop

    def play(self, action: Action, *, thought: str | None = None) -> waiting.Receipt:
        """Answer with an action and wait for the receipt."""
        return self._loop.do(self._turn.play(action, thought=thought))

    def pass_(self, *, thought: str | None = None) -> waiting.Receipt:
        """Answer with the space's default."""
        return self._loop.do(self._turn.pass_(thought=thought))

    def decline(self, reason: str = "", *, thought: str | None = None) -> waiting.Receipt:
        """Say that there is no answer, and why."""
        return self._loop.do(self._turn.decline(reason, thought=thought))

    def seconds_left(self) -> float:
        """Return the seconds until the default is played."""

        async def left() -> float:
            return self._turn.seconds_left()

        return self._loop.do(left())


class Match:
    """A seat at a match: iterate it for turns. `view` and `events` stand where the iteration stands."""

    def __init__(self, match: waiting.Match, loop: _Loop) -> None:
        self.id = match.id
        self.game = match.game
        self.seat, self.seats = match.seat, match.seats
        self.options, self.names = match.options, match.names
        self.view: Any = match.game.view(match.seat)
        self.events: list[Event] = []
        self.over: wire.Over | None = None
        self._match, self._loop = match, loop
        self._updates: AsyncIterator[waiting.Update] = match.updates()

    @property
    def ended(self) -> str | None:
        """How it ended for this seat, or None while it goes on."""
        return None if self.over is None else self.over.ended[self.seat]

    def updates(self) -> Iterator[Event | Turn | wire.Over]:
        """Give everything that the seat is told, in order, going on where the last iteration stood."""
        while self.over is None:
            update = self._loop.do(anext_of(self._updates))
            match update:
                case Event():
                    self.view.update(update)
                    self.events.append(update)
                    yield update
                case waiting.Turn():
                    yield Turn(self, update, self._loop)
                case wire.Over():
                    self.over = update
                    yield update

    def __iter__(self) -> Iterator[Turn]:
        for update in self.updates():
            if isinstance(update, Turn) and update._turn.open:
                yield update

    def leave(self) -> None:
        """Give the seat up; it is then forfeited."""

        async def leave() -> None:
            self._match.leave()

        self._loop.do(leave())


class Arena:
    """A connection to a server that comes back by itself; see `clients.sdk.Arena` for its arguments."""

    def __init__(self, url: str, **options: Any) -> None:
        self._arena = sdk.Arena(url, **options)
        self._loop: _Loop | None = None

    def __enter__(self) -> Self:
        self._loop = _Loop()
        try:
            self._loop.do(self._arena.__aenter__())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def join(self, **what: Any) -> Match:
        """Take a seat and wait until it is there; the arguments are those of `clients.sdk.Arena.ask`."""
        loop = self._running()
        return Match(loop.do(self._arena.join(**what)), loop)

    def tournament(self, tournament: str, /, **what: Any) -> Iterator[Match]:
        """Take part in a tournament: give its matches as they come, until it is over; `name` is the player's."""
        loop = self._running()

        async def ask() -> AsyncIterator[waiting.Match]:
            return aiter(self._arena.ask(tournament=tournament, **what))

        matches = loop.do(ask())
        while True:
            try:
                found = loop.do(anext_of(matches))
            except StopAsyncIteration:
                return
            yield Match(found, loop)

    def close(self) -> None:
        """Close the connection and end its thread."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.do(self._arena.close())
            finally:
                loop.stop()

    def _running(self) -> _Loop:
        if self._loop is None:
            raise ClientError("the connection is not open: use it in `with connect(…) as arena:`")
        return self._loop


async def anext_of(iterator: AsyncIterator[T]) -> T:
    """Return the next item, as a coroutine."""
    return await anext(iterator)
