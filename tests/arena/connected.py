"""A whole server on the loopback, and clients with sockets, for tests."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from arena.auth import create_token
from arena.config import Settings
from arena.serving import ArenaServer
from arena.store import Store
from clients.protocol.client import ClientConnection
from clients.protocol.codec import MSGPACK
from clients.protocol.messages import Message, Over, Turn
from games.spaces import space_from_data

FAST = {
    "port": 0,
    "http_port": 0,
    "connects_per_s": 1e6,
    "joins_per_s": 1e6,
    "messages_per_s": 1e6,
    "bank_s": 0.0,
}


@asynccontextmanager
async def serving(home: Path, **server: Any) -> AsyncIterator[ArenaServer]:
    """Run a server with settings of the section `server`, without limits on rates unless they are given."""
    made = ArenaServer(Settings(home=home, server={**FAST, **server}))
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def token(home: Path, name: str, *scopes: str) -> str:
    """Make a token; blocks."""
    with Store(home) as store:
        return create_token(store, name, scopes=scopes, life_s=None, now=0)


class Client:
    """A client with a socket; `messages` holds all that it was told."""

    def __init__(
        self, url: str, *, token: str = "", subprotocol: str = MSGPACK, seed: int = 0, **more: Any
    ) -> None:
        self.connection = ClientConnection(subprotocol=subprotocol, token=token)
        self.messages: list[Message] = []
        self.plays = True
        """Whether it answers its turns."""
        self._url = url
        self._more = more
        self._rng = random.Random(seed)

    async def __aenter__(self) -> "Client":
        protocol: Any = [self.connection.subprotocol]
        self.socket = await connect(self._url, subprotocols=protocol, compression=None, **self._more)
        self.connection.start()
        await self.flush()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.socket.close()

    async def flush(self) -> None:
        """Send what is due."""
        for frame in self.connection.frames_to_send():
            await self.socket.send(frame)

    async def until(self, kind: type[Message]) -> Any:
        """Answer turns at random until a message of this kind comes, and return it."""
        while True:
            for message in self.connection.receive(await self.socket.recv()):
                self.messages.append(message)
                if isinstance(message, Turn) and self.plays:
                    action = space_from_data(message.space).sample(self._rng)
                    self.connection.act(message.match, request=message.request, action=action, thought="hm")
                if isinstance(message, kind):
                    await self.flush()
                    return message
            await self.flush()

    async def play(self, game: str, **what: Any) -> Over:
        """Play one match of a lobby."""
        self.connection.join(game=game, **what)
        await self.flush()
        return await self.until(Over)


async def play_match(server: ArenaServer, *, game: str = "kuhn", players: int = 2, **what: Any) -> str:
    """Let connected players play one match of a lobby, and return its id."""
    clients = [Client(server.addresses.websocket, seed=number, **what) for number in range(players)]

    async def one(client: Client, name: str) -> Over:
        async with client:
            return await client.play(game, seats=players, name=name)

    overs = await asyncio.gather(*(one(client, f"p{number}") for number, client in enumerate(clients)))
    (match,) = {over.match for over in overs}
    return match
