"""A foreign program that loses its connection again and again, at frames drawn from a seed, and comes back at once.

It drives the protocol's state machine over a socket of its own. After an answer it sometimes sends the same again,
and sometimes the answer is lost with the connection. At every seat it prints `seated MATCH` and waits for a line on its
stdin, so that whoever runs it can watch the match from its start.
"""

import asyncio
import random
import sys

from websockets.asyncio.client import ClientConnection as Socket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from clients.protocol.client import ClientConnection
from clients.protocol.codec import JSON, decode
from clients.protocol.messages import Act, Left, Message, Over, Seated, Turn
from games.spaces import space_from_data

LONGEST = 25
"""Frames after which a connection is lost at the latest."""


class Flaky:
    """One player of a tournament, over as many connections as it takes."""

    def __init__(self, cup: str, name: str, seed: str) -> None:
        self.rng = random.Random(seed)
        self.connection = ClientConnection(subprotocol=JSON, client="flaky.py")
        self.connection.join(where="tournament", tournament=cup, name=name)
        self.over = False
        """Whether the tournament is over; the end of a match may still have to be told."""
        self.losses = 0

    @property
    def done(self) -> bool:
        """Whether nothing will follow."""
        return self.over and not self.connection.seats

    async def play(self, url: str) -> None:
        """Play to the tournament's end."""
        while not self.done:
            try:
                socket = await connect(url, subprotocols=[JSON], compression=None)
            except (OSError, WebSocketException):
                await asyncio.sleep(0.05)
                continue
            self.connection.start()
            try:
                await self.session(socket, self.rng.randrange(4, LONGEST))
            except ConnectionClosed:
                self.losses += 1
            finally:
                socket.transport.abort()
        print("losses", self.losses, flush=True)

    async def session(self, socket: Socket, frames: int) -> None:
        """Have one connection, lost after so many frames in and out."""
        while not self.done:
            for frame in self.connection.frames_to_send():
                if not frames:
                    self.losses += 1
                    return
                frames -= 1
                await socket.send(frame)
                again = isinstance(decode(frame, sender="client", subprotocol=JSON), Act)
                if again and self.rng.random() < 0.2:
                    await socket.send(frame)
            if not frames:
                self.losses += 1
                return
            frames -= 1
            for message in self.connection.receive(await socket.recv()):
                self.take(message)

    def take(self, message: Message) -> None:
        """Answer a turn at random; end with the tournament."""
        match message:
            case Seated():
                print("seated", message.match, flush=True)
                sys.stdin.readline()
            case Turn():
                action = space_from_data(message.space).sample(self.rng)
                self.connection.act(message.match, request=message.request, action=action)
            case Over():
                print("over", message.match, flush=True)
            case Left(reason="over"):
                self.over = True


if __name__ == "__main__":
    asyncio.run(Flaky(*sys.argv[2:]).play(sys.argv[1]))
