"""Live matches: a server of the protocol, snapshots and frames, lost connections, other eyes."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from clients.errors import BadAddress, Disconnected, ProtocolError, Refused
from clients.protocol.codec import MSGPACK, SUBPROTOCOLS, decode, encode
from clients.protocol.messages import (
    Authenticate,
    Authenticated,
    Error,
    Frames,
    Message,
    Snapshot,
    Watch,
    Welcome,
)
from clients.spectator.app import SpectatorApp
from clients.spectator.live import LiveSource
from clients.spectator.screens.match import MatchScreen
from clients.spectator.source import Batch
from games.base import Event
from replays.record import entry_to_data
from replays.visitors import visible
from tests.clients.spectator.showing import NAMES, SIZE, entries, named, opened, screen_text, until

pytestmark = pytest.mark.asyncio

HEAD = named("werewolf", seats=12, seed=3)
MADE = [entry for entry in entries(HEAD)[0] if isinstance(entry, Event)]


def told(event: Event) -> list[Any]:
    """Return an event as a server tells it: what is for everyone is addressed to null."""
    row = entry_to_data(event)
    return row if event.audience is not None else [*row, None]


class Host:
    """A server of one match that tells each watcher the first `told` events, and more on demand."""

    def __init__(self, *, told: int = 30, allowed: tuple[str, ...] = ("public", "seat", "all")) -> None:
        self.told = told
        self.allowed = allowed
        self.sockets: list[ServerConnection] = []
        self.tokens: list[str] = []
        self.refuse = False
        self.live = True
        self._seen: dict[ServerConnection, Callable[[Event], bool]] = {}
        self._sent: dict[ServerConnection, int] = {}
        self.url = ""

    async def handle(self, socket: ServerConnection) -> None:
        try:
            async for frame in socket:
                message = decode(frame, sender="client", subprotocol=MSGPACK)
                match message:
                    case Authenticate():
                        self.tokens.append(message.token)
                        await self.send(socket, Authenticated(name="me", scopes=["watch"]))
                    case Watch():
                        await self.watch(socket, message)
                    case _:
                        await self.send(socket, Welcome(version=1, server="test"))
        except ConnectionClosed:
            pass

    async def watch(self, socket: ServerConnection, asked: Watch) -> None:
        if self.refuse or asked.perspective not in self.allowed:
            await self.send(socket, Error(code="forbidden", message="not for you", id=asked.id))
            return
        everything = asked.perspective == "all"
        self._seen[socket] = lambda event: everything or event.visible_to(asked.seat)
        self._sent[socket] = 0
        self.sockets = [one for one in self.sockets if one is not socket] + [socket]
        snapshot: dict[str, Any] = {
            "id": asked.id, "match": asked.match, "game": "werewolf", "rules": "1", "options": {},
            "names": list(NAMES[:12]), "perspective": asked.perspective, "seat": asked.seat,
            "allowed": list(self.allowed), "entries": len(self.seen(socket)), "live": self.live,
        }  # fmt: skip
        await self.send(socket, Snapshot(**snapshot))
        await self.tell(socket)

    def seen(self, socket: ServerConnection) -> list[Event]:
        return [event for event in MADE[: self.told] if self._seen[socket](event)]

    async def tell(self, socket: ServerConnection, *, size: int = 8) -> None:
        """Send what the watcher has not been told, some entries to a message."""
        rows = [told(event) for event in self.seen(socket)]
        while (first := self._sent[socket]) < len(rows):
            part = rows[first : first + size]
            self._sent[socket] += len(part)
            over = self.told == len(MADE) and self._sent[socket] == len(rows)
            frames = Frames(
                match="m", first=first, entries=part, clocks=None if over else {"2": 47.0}, over=over
            )
            await self.send(socket, frames)

    async def tell_all(self, told: int) -> None:
        self.told = told
        for socket in self.sockets:
            await self.tell(socket)

    async def send(self, socket: ServerConnection, message: Message) -> None:
        await socket.send(encode(message, subprotocol=MSGPACK))

    async def drop(self) -> None:
        sockets, self.sockets = self.sockets, []
        for socket in sockets:
            await socket.close()


@asynccontextmanager
async def hosting(host: Host, *, port: int = 0) -> AsyncIterator[Host]:
    async with serve(host.handle, "127.0.0.1", port, subprotocols=list(SUBPROTOCOLS)) as server:
        address = next(iter(server.sockets)).getsockname()
        host.url = f"ws://127.0.0.1:{address[1]}"
        yield host


async def gather(batches: AsyncIterator[Batch], enough: Callable[[list[Event]], bool]) -> list[Event]:
    """Return the entries told, a fresh start forgetting what was before."""
    told: list[Event] = []
    async for batch in batches:
        if batch.info is not None:
            told = []
        told += [entry for entry in batch.entries if isinstance(entry, Event)]
        if enough(told):
            break
    return told


def public(count: int) -> list[Event]:
    return [event for event in MADE[:count] if visible(event, "public")]


async def test_a_match_is_told_from_its_snapshot_on() -> None:
    async with hosting(Host()) as host:
        source = LiveSource(host.url, match="m", token="secret")
        batches = source.batches()
        first = await anext(batches)
        assert first.info is not None and first.info.live and not first.info.ended
        assert [seat.name for seat in first.info.seats] == list(NAMES[:12])
        assert set(first.info.allowed) == {"public", "all", *range(12)}
        assert await gather(batches, lambda told: len(told) == len(public(30))) == public(30)
        await host.tell_all(60)
        assert await gather(batches, lambda told: len(told) == len(public(60)) - len(public(30)))
        assert host.tokens == ["secret"]
        await source.close()


async def test_a_lost_connection_is_said_and_taken_up_again_without_loss() -> None:
    async with hosting(Host()) as host:
        source = LiveSource(host.url, match="m")
        batches = source.batches()
        await gather(batches, lambda told: len(told) == len(public(30)))
        host.told = 60
        await host.drop()
        lost = await anext(batches)
        assert lost.notice is not None and "lost" in lost.notice
        back = await anext(batches)
        assert back.notice == ""
        assert await gather(batches, lambda told: len(told) == len(public(60))) == public(60)
        await source.close()


async def test_a_gap_in_the_frames_is_mended_by_starting_over() -> None:
    async with hosting(Host()) as host:
        source = LiveSource(host.url, match="m")
        batches = source.batches()
        await gather(batches, lambda told: len(told) == len(public(30)))
        row = entry_to_data(MADE[40])
        await host.send(host.sockets[0], Frames(match="m", first=500, entries=[row]))
        assert await gather(batches, lambda told: len(told) == len(public(30))) == public(30)
        await source.close()


async def test_a_repeated_frame_is_told_once() -> None:
    async with hosting(Host()) as host:
        source = LiveSource(host.url, match="m")
        batches = source.batches()
        await gather(batches, lambda told: len(told) == len(public(30)))
        rows = [entry_to_data(event) for event in public(30)[-3:]]
        await host.send(host.sockets[0], Frames(match="m", first=len(public(30)) - 3, entries=rows))
        assert (await anext(batches)).entries == ()
        await source.close()


async def test_entries_that_cannot_be_read_are_named_and_not_asked_for_again() -> None:
    async with hosting(Host()) as host:
        source = LiveSource(host.url, match="m")
        batches = source.batches()
        await gather(batches, lambda told: len(told) == len(public(30)))
        await host.send(host.sockets[0], Frames(match="m", first=len(public(30)), entries=[["x"]], over=True))
        with pytest.raises(ProtocolError, match="entries: no input or event"):
            await anext(batches)
        await source.close()


async def test_a_server_that_is_not_there_or_refuses_is_named() -> None:
    async with hosting(Host()) as host:
        host.refuse = True
        with pytest.raises(Refused, match="not for you"):
            await anext(LiveSource(host.url, match="m").batches())
        gone = host.url
    with pytest.raises(Disconnected, match="cannot connect"):
        await anext(LiveSource(gone, match="m", give_up_s=1.0).batches())


@pytest.mark.parametrize("url", ["http://h", "ws://", "ws://me:pw@h", "ws://h/?token=x", "ws://h:99999", "h"])
async def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(BadAddress) as error:
        LiveSource(url, match="m")
    assert "\n" not in str(error.value) and "pw" not in str(error.value)


async def test_the_screen_follows_live_shows_clocks_and_the_loss_of_the_connection() -> None:
    async with hosting(Host()) as host:
        source = LiveSource(host.url, match="m")
        app = SpectatorApp({"match": lambda: MatchScreen(source)})
        async with app.run_test(size=SIZE) as pilot:
            screen = await opened(pilot)
            await until(pilot, lambda: screen.position == len(public(30)))
            assert "● LIVE" in screen_text(pilot) and re.search(r" 0:[0-4]\d", screen_text(pilot))
            await host.tell_all(60)
            await until(pilot, lambda: screen.position == len(public(60)))
            said: list[str] = []
            told = screen.take
            screen.take = lambda batch: (said.append(batch.notice or ""), told(batch))[1]  # type: ignore[method-assign]
            await host.drop()
            await until(pilot, lambda: any("trying again" in text for text in said))
            await until(pilot, lambda: bool(host.sockets) and screen.position == len(public(60)))
            await pilot.press("3")
            await until(pilot, lambda: screen.info is not None and screen.info.perspective == 3)
            await host.tell_all(len(MADE))
            await until(pilot, lambda: screen.over)
            assert "■ end" in screen_text(pilot) and "trying again" not in screen_text(pilot)


async def test_eyes_that_are_not_allowed_are_not_asked_for() -> None:
    async with hosting(Host(allowed=("public",))) as host:
        source = LiveSource(host.url, match="m")
        app = SpectatorApp({"match": lambda: MatchScreen(source)})
        async with app.run_test(size=SIZE, notifications=True) as pilot:
            screen = await opened(pilot)
            await pilot.press("a")
            await pilot.pause()
            assert "Not open to you" in screen_text(pilot)
            assert screen.info is not None and screen.info.perspective == "public"


async def test_a_finished_match_on_a_server_opens_at_its_start_and_stays_when_the_server_goes() -> None:
    host = Host(told=len(MADE))
    host.live = False
    async with hosting(host):
        source = LiveSource(host.url, match="m")
        app = SpectatorApp({"match": lambda: MatchScreen(source)})
        async with app.run_test(size=SIZE) as pilot:
            screen = await opened(pilot)
            await until(pilot, lambda: screen.over)
            assert screen.timeline is not None and 0 < screen.position < len(screen.timeline) // 2
            await host.drop()
            await until(pilot, lambda: source._socket is None)
            await pilot.press("end")
            assert "■ end" in screen_text(pilot) and "trying again" not in screen_text(pilot)
            await pilot.press("a")
            await until(pilot, lambda: screen.info is not None and screen.info.perspective == "all")
