"""Websocket clients that do as little as can be, so that it is the server that is measured and not they.

They are of the standard library: their side of RFC 6455 is a masked frame whose mask is zero, and whole frames in.
"""

import asyncio
import random
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import msgpack

from clients.protocol.codec import MSGPACK
from games.spaces import ActionSpace, space_from_data

_BINARY = 0x82
_UPGRADE = (
    "GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n{more}\r\n"
)
_KIND_AT = 7
"""Where the type of a msgpack message begins: behind the map's head, the key `type` and the head of its value."""


def masked(message: bytes) -> bytes:
    """Return a message of less than 64 KiB as a client's frame."""
    size = len(message)
    head = bytes((0x80 | size,)) if size < 126 else bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    return bytes((_BINARY,)) + head + bytes(4) + message


class Bare(asyncio.Protocol):
    """One connection. `open` resolves when the server has agreed; then every message goes to `took`."""

    def __init__(self) -> None:
        self.open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = b""
        self.transport: Any
        """Not always an `asyncio.Transport`: that of uvloop is of no such class."""

    @classmethod
    async def connect(cls, url: str, *words: Any, subprotocol: str = "") -> Any:
        """Return an open connection."""
        place = urlsplit(url)
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: cls(*words), place.hostname, place.port)
        more = f"Sec-WebSocket-Protocol: {subprotocol}\r\n" if subprotocol else ""
        made.transport.write(_UPGRADE.format(host=place.netloc, more=more).encode())
        await made.open
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if not self.open.done():
            self.open.set_exception(ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        at, size = 0, len(data)
        if not self.open.done():
            at = data.find(b"\r\n\r\n") + 4
            if at < 4:
                self._buffer = data
                return
            if not data.startswith(b"HTTP/1.1 101"):
                self.open.set_exception(ConnectionError(data[:80].decode("ascii", "replace")))
                return
            self.open.set_result(None)
        while at + 4 <= size or (at + 2 <= size and data[at + 1] < 126):
            length, start = data[at + 1], at + 2
            if length == 126:
                length, start = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
            if start + length > size:
                break
            if data[at] == _BINARY:
                self.took(data[start : start + length])
            at = start + length
        self._buffer = data[at:]

    def took(self, message: bytes) -> None:
        """Take a message."""
        raise NotImplementedError


class BareEchoer(Bare):
    """Sends a frame and waits for it to come back, over and over, until `stop`."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.going = False
        self.done: asyncio.Future[None]
        self.frame = b""

    def start(self, size: int) -> None:
        """Begin with frames of so many bytes."""
        self.frame, self.count, self.going = masked(bytes(size)), 0, True
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(self.frame)

    def took(self, message: bytes) -> None:
        self.count += 1
        if self.going:
            self.transport.write(self.frame)
        else:
            self.done.set_result(None)


class BareAgent(Bare):
    """Plays matches at random, and answers at once."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__()
        self.name = name
        self.rng = random.Random(seed)
        self.matches = self.actions = 0
        self.trouble: Counter[str] = Counter()
        self._spaces: dict[bytes, ActionSpace] = {}
        self._joins = 0
        self._over: asyncio.Future[None]

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.transport.write(masked(msgpack.packb(message)))

    async def play(self, game: str, seats: int) -> None:
        """Play one match."""
        self._over = asyncio.get_running_loop().create_future()
        self._joins += 1
        self.say(type="join", id=f"{self.name} {self._joins}", game=game, seats=seats, name=self.name)
        await self._over

    def took(self, message: bytes) -> None:
        kind = message[_KIND_AT : _KIND_AT + (message[_KIND_AT - 1] & 0x1F)]
        if kind == b"turn":
            turn = msgpack.unpackb(message)
            action = self._space(turn["space"]).sample(self.rng)
            answer = action if isinstance(action, str) else list(action)
            self.say(type="act", match=turn["match"], request=turn["request"], action=answer)
            self.actions += 1
            if turn.get("failure"):
                self.trouble[f"refused: {turn['failure']}"] += 1
        elif kind == b"over":
            counts = msgpack.unpackb(message)["counts"]
            for what in ("timeout", "disconnect", "forced", "error", "forfeit"):
                if counts.get(what):
                    self.trouble[what] += counts[what]
            self.matches += 1
            self._over.set_result(None)
        elif kind in (b"error", b"left", b"stale"):
            self.trouble[kind.decode()] += 1

    def _space(self, data: dict[str, Any]) -> ActionSpace:
        key = msgpack.packb(data)
        if key not in self._spaces:
            self._spaces[key] = space_from_data(data)
        return self._spaces[key]


async def bare_agent(url: str, number: int) -> BareAgent:
    """Return an agent that has said hello."""
    agent: BareAgent = await BareAgent.connect(url, f"bare {number}", number, subprotocol=MSGPACK)
    agent.say(type="hello")
    return agent
