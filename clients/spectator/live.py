"""A match on a server, watched over a websocket: snapshot, then frames; taken up again after a lost connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import stamina
from websockets.asyncio.client import ClientConnection as Socket
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from clients.dial import check_address
from clients.errors import Disconnected, ProtocolError, Refused
from clients.protocol.client import ClientConnection
from clients.protocol.codec import MSGPACK
from clients.protocol.messages import MAX_SERVER_BYTES, Error, Frames, Message, Snapshot
from clients.spectator.source import Batch, EventSource, MatchInfo
from games.errors import ArenaError
from games.referee import Entry
from replays.record import SeatInfo, entry_from_data
from replays.visitors import OMNISCIENT, PUBLIC, Perspective

GIVE_UP_S = 300.0
"""Seconds of trying to connect again before the source gives up."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0

_LOST = (OSError, TimeoutError, WebSocketException)


class LiveSource(EventSource):
    """A match on a server.

    Args:
        url: of the server, `ws://` or `wss://`.
        match: which match.
        token: shown to the server; empty for none.
        perspective: who looks first; the server may refuse it.
        give_up_s: how long a lost connection is tried again.
    """

    def __init__(
        self,
        url: str,
        *,
        match: str,
        token: str = "",
        perspective: Perspective = PUBLIC,
        give_up_s: float = GIVE_UP_S,
    ) -> None:
        self.url = check_address(url)
        self.match = match
        self.name = match
        self._give_up_s = give_up_s
        self._perspective = perspective
        self._protocol = ClientConnection(subprotocol=MSGPACK, token=token, client="arena watch")
        self._socket: Socket | None = None
        self._wanted = asyncio.Event()
        self._closed = False
        self._started = False
        self._over = False
        self._seen = 0
        self._fresh: MatchInfo | None = None

    async def batches(self) -> AsyncIterator[Batch]:
        self._ask()
        while not self._closed:
            self._socket = await self._connect()
            if self._started:
                yield Batch(notice="", over=self._over)
            try:
                await self._send()
                async for frame in self._socket:
                    batches = [self._told(message) for message in self._protocol.receive(frame)]
                    await self._send()
                    for batch in batches:
                        if batch is not None:
                            yield batch
            except _LOST:
                await self._drop()
            except ProtocolError as error:
                await self._drop()
                if error.wire != "out_of_order":
                    raise  # it would come again; a gap is mended as a lost connection is
            self._socket = None
            if self._over and not self._closed:
                self._wanted.clear()
                await self._wanted.wait()  # nothing is missed: connect only to look through other eyes
            elif not self._closed:
                yield Batch(notice="The connection is lost, trying again …", over=self._over)

    async def switch(self, perspective: Perspective) -> None:
        self._perspective = perspective
        self._ask()
        self._wanted.set()
        try:
            await self._send()
        except _LOST:
            await self._drop()

    async def close(self) -> None:
        self._closed = True
        self._wanted.set()
        await self._drop()

    def _ask(self) -> None:
        seat = self._perspective if isinstance(self._perspective, int) else None
        perspective = "seat" if seat is not None else self._perspective
        self._protocol.watch(match=self.match, perspective=perspective, seat=seat)

    async def _connect(self) -> Socket:
        self._protocol.start()
        attempts = stamina.retry_context(
            on=_LOST,
            attempts=None if self._started else 1,
            timeout=self._give_up_s,
            wait_initial=FIRST_WAIT_S,
            wait_max=LONGEST_WAIT_S,
        )
        try:
            async for attempt in attempts:
                with attempt:
                    return await connect(
                        self.url,
                        subprotocols=[Subprotocol(MSGPACK)],
                        max_size=MAX_SERVER_BYTES,
                        open_timeout=10,
                    )
        except _LOST as error:
            raise Disconnected(
                f"{self.url}: cannot connect: {str(error)[:200] or type(error).__name__}"
            ) from None
        raise Disconnected(f"{self.url}: cannot connect")

    async def _send(self) -> None:
        if self._socket is not None:
            for frame in self._protocol.frames_to_send():
                await self._socket.send(frame)

    async def _drop(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    def _told(self, message: Message) -> Batch | None:
        match message:
            case Snapshot(match=self.match):
                self._fresh = _info(message)
                self._seen = 0
                self._over = False
                delay = f"Shown {message.delay_s:g} s late." if message.delay_s else ""
                self._started = True
                return Batch(info=self._fresh, notice=delay, over=not message.live and not message.entries)
            case Frames(match=self.match):
                return self._frames(message)
            case Error():
                if not self._started:
                    raise Refused(message.code, message.message)
                return Batch(notice=f"The server refused: {message.message}", over=self._over)
        return None

    def _frames(self, message: Frames) -> Batch:
        if message.first > self._seen:
            raise ProtocolError(
                "out_of_order", f"entries: {self._seen} are known, the next came as {message.first}"
            )
        try:
            entries = tuple(map(_entry, message.entries[self._seen - message.first :]))
            clocks = {int(seat): left for seat, left in (message.clocks or {}).items()}
        except (ValueError, ArenaError) as error:
            raise ProtocolError("bad_message", f"entries: {error}") from None
        self._seen += len(entries)
        self._over = self._over or message.over
        return Batch(entries, over=self._over, clocks=clocks)


def _entry(row: list[Any]) -> Entry:
    """Read an entry as it is told: what everyone may know is addressed to null, which a record leaves out."""
    return entry_from_data(row[:-1] if row[:1] == ["e"] and row[-1] is None else row)


def _info(snapshot: Snapshot) -> MatchInfo:
    perspective: Perspective = PUBLIC
    if snapshot.perspective == "all":
        perspective = OMNISCIENT
    elif snapshot.perspective == "seat" and snapshot.seat is not None:
        perspective = snapshot.seat
    allowed: list[Perspective] = []
    if "public" in snapshot.allowed:
        allowed.append(PUBLIC)
    if "all" in snapshot.allowed:
        allowed.append(OMNISCIENT)
    if "seat" in snapshot.allowed:
        allowed += range(len(snapshot.names))
    elif isinstance(perspective, int):
        allowed.append(perspective)
    return MatchInfo(
        snapshot.match,
        snapshot.game,
        snapshot.rules,
        snapshot.options,
        tuple(SeatInfo(name, "") for name in snapshot.names),
        perspective,
        tuple(allowed) or (perspective,),
        live=snapshot.live,
        ended=not snapshot.live,
    )
