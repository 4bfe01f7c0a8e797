"""A small model of the server, for tests of the clients: true to the protocol, and nothing else a server is.

`ModelArena` is a state machine without sockets; `serve` puts it behind websockets on loopback, and `Cutter` is a
proxy in front of that, which cuts connections on command.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed

from agents.base import Bot, Seat
from agents.players import make_agent
from clients.errors import ProtocolError
from clients.protocol.codec import MSGPACK, SUBPROTOCOLS, decode, encode, event_batches
from clients.protocol.messages import (
    MAX_SERVER_BYTES,
    Act,
    Acted,
    Authenticate,
    Authenticated,
    Challenge,
    Error,
    Frames,
    Hello,
    Join,
    Leave,
    Left,
    Message,
    Over,
    Ping,
    Pong,
    Respond,
    Resume,
    Seated,
    Snapshot,
    Stale,
    Turn,
    Unwatch,
    Waiting,
    Watch,
    Welcome,
)
from games.base import Event
from games.errors import ArenaError
from games.referee import Input, Referee
from games.registry import load_game
from games.rng import derive_seed

REMOTE = 0
"""The seat that the client of a lobby gets; bots have the others."""


class ModelMatch:
    """One match: a remote seat among bots."""

    def __init__(self, name: str, join: Join, *, seed: int, retries: int, deadline_s: float) -> None:
        self.name = name
        self.player = join.name
        self.game = load_game(join.game)
        self.state = self.game.new(seed=seed, seats=join.seats, options=join.options)
        self.referee = Referee(self.state, retries=retries)
        self.retries, self.deadline_s = retries, deadline_s
        self.resume = f"resume-{name}-{seed}"
        self.session: ModelSession | None = None
        self.told: list[Event] = []
        self.public: list[Event] = []
        self.turn: Any = None
        self.request = 0
        self.answered: set[int] = set()
        self.inputs: list[Input] = []
        self.over: Over | None = None
        self.bots: dict[int, Bot] = {}
        for seat in range(self.state.seats):
            if seat != REMOTE:
                where = Seat(self.game, self.state.seats, self.state.options, seat, derive_seed(seed, seat))
                bot = make_agent("random", where)
                assert isinstance(bot, Bot)
                self.bots[seat] = bot
        self._tell(self.referee.opening())
        self.advance()

    def seated(self, identity: str) -> Seated:
        return Seated(
            id=identity,
            match=self.name,
            game=self.game.name,
            rules=self.game.version,
            options=self.state.options.model_dump(mode="json"),
            seats=self.state.seats,
            seat=REMOTE,
            names=[self.player or "you", *("random" for _ in self.bots)],
            resume=self.resume,
            events=len(self.told),
            retries=self.retries,
            deadline_s=self.deadline_s,
        )

    def attach(self, session: "ModelSession", identity: str, seen: int) -> None:
        """Give the seat to a session and tell it all that it has not seen."""
        if self.session not in (None, session):
            assert self.session is not None
            self.session.send(Error(code="taken", message="taken over", match=self.name))
        self.session = session
        session.send(self.seated(identity))
        self._events(seen)
        if self.turn is not None:
            session.send(self._turn())
        if self.over is not None:
            session.send(self.over)

    def act(self, message: Act) -> Message:
        if message.request in self.answered:
            return Stale(match=self.name, request=message.request, reason="answered")
        if self.turn is None or message.request != self.request:
            reason: Any = "deadline" if 0 < message.request <= self.request else "unknown"
            return Stale(match=self.name, request=message.request, reason=reason)
        self.answered.add(message.request)
        given = Input(REMOTE, self.turn.ply, None, message.failure, message.reason, message.thought)
        self.inputs.append(given if message.failure else given._replace(action=message.action))
        return Acted(match=self.name, request=message.request)

    def feed(self) -> None:
        """Play what was answered."""
        while self.inputs:
            self.turn = None
            self._tell(self.referee.feed(self.inputs.pop(0)))
            self.advance()

    def timeout(self) -> None:
        self.turn = None
        self._tell(self.referee.timeout(REMOTE))
        self.advance()

    def forfeit(self) -> None:
        self.turn = None
        self._tell(self.referee.forfeit(REMOTE))
        self.session = None
        self.advance()

    def advance(self) -> None:
        """Let the bots play until the remote seat must act, or all is over."""
        while bots := [seat for seat in self.referee.turns() if seat != REMOTE]:
            turn = self.referee.turns()[bots[0]]
            decision = self.bots[bots[0]].decide(turn)
            self._tell(self.referee.feed(Input(bots[0], turn.ply, decision.action)))
        turns = self.referee.turns()
        if turns:
            self.turn = turns[REMOTE]
            self.request += 1
            if self.session is not None:
                self.session.send(self._turn())
            return
        outcome = self.referee.outcome()
        assert outcome is not None
        self.over = Over(
            match=self.name,
            reason=outcome.reason,
            returns=list(outcome.returns),
            teams=list(outcome.teams),
            roles=list(outcome.roles),
            ended=[self.referee.ended(seat) for seat in range(self.state.seats)],
            counts=dict(self.referee.counts),
        )
        if self.session is not None:
            self.session.send(self.over)

    def _turn(self) -> Turn:
        schema = None
        if self.session is not None and "schema" in self.session.capabilities:
            schema = self.turn.space.schema()
        return Turn(
            match=self.name,
            request=self.request,
            space=self.turn.space.to_data(),
            json_schema=schema,
            describe=self.turn.space.describe(),
            attempt=self.turn.attempt,
            failure=self.turn.failure,
            reason=self.turn.reason,
            deadline_s=self.deadline_s,
        )

    def _tell(self, entries: Any) -> None:
        start = len(self.told)
        for entry in entries:
            if isinstance(entry, Event):
                for seat, bot in self.bots.items():
                    if entry.visible_to(seat):
                        bot.observe([entry])
                if entry.visible_to(REMOTE):
                    self.told.append(entry)
                if entry.visible_to(None):
                    self.public.append(entry)
        self._events(start)

    def _events(self, start: int) -> None:
        if self.session is not None:
            wire = [[event.kind, event.data] for event in self.told[start:]]
            for message in event_batches(self.name, wire, first=start):
                self.session.send(message)


@dataclass
class ModelArena:
    """The model of a server: its sessions and matches.

    Args:
        token: the one that is known; empty asks for none.
        hold: whether a lobby waits for `fill` before it seats anybody.
        refuse: code of the error that answers every `join`, if any.
    """

    token: str = ""
    hold: bool = False
    refuse: str = ""
    name: str = "model"
    retries: int = 2
    deadline_s: float = 60.0
    grace_s: float = 30.0
    matches: dict[str, ModelMatch] = field(default_factory=dict)
    joined: dict[str, str] = field(default_factory=dict)
    """Match by the id of the join that led to it."""
    waiting: dict[str, tuple["ModelSession", Join]] = field(default_factory=dict)
    closed: bool = False

    def connect(self, subprotocol: str = MSGPACK, wake: Callable[[], None] = lambda: None) -> "ModelSession":
        return ModelSession(self, subprotocol, wake)

    def fill(self) -> None:
        """Seat everybody who waits."""
        waiting, self.waiting = self.waiting, {}
        for session, join in waiting.values():
            self.seat(session, join)

    def seat(self, session: "ModelSession", join: Join) -> None:
        name = self.joined.get(join.id)
        if name is None:
            name = f"m{len(self.matches) + 1}"
            self.matches[name] = ModelMatch(
                name, join, seed=len(self.matches), retries=self.retries, deadline_s=self.deadline_s
            )
            self.joined[join.id] = name
        self.matches[name].attach(session, join.id, 0)


class ModelSession:
    """The model of one connection."""

    def __init__(self, arena: ModelArena, subprotocol: str, wake: Callable[[], None]) -> None:
        self.arena, self.subprotocol, self.wake = arena, subprotocol, wake
        self.state = "new"
        self.capabilities: list[str] = []
        self.closing: tuple[int, str] | None = None
        self.outbox: list[Message] = []
        self.received: list[Message] = []

    def send(self, message: Message) -> None:
        self.outbox.append(message)
        self.wake()

    def frames_to_send(self) -> list[bytes | str]:
        due, self.outbox = self.outbox, []
        return [encode(message, subprotocol=self.subprotocol) for message in due]

    def lost(self) -> None:
        for match in self.arena.matches.values():
            if match.session is self:
                match.session = None

    def receive(self, frame: bytes | str) -> None:
        try:
            message = decode(frame, sender="client", subprotocol=self.subprotocol)
            self.received.append(message)
            self._take(message)
        except ProtocolError as error:
            self._error(error.wire, str(error))
            self.closing = (1002, error.wire)

    def _error(self, code: str, text: str, identity: str = "") -> None:
        self.send(Error(code=code, message=text, id=identity))

    def _take(self, message: Message) -> None:
        arena = self.arena
        match message:
            case Hello() if self.state == "new":
                self.capabilities = message.capabilities
                self.state = "greeted" if arena.token else "ready"
                self.send(Welcome(version=1, server=arena.name, grace_s=arena.grace_s))
            case Authenticate() if self.state == "greeted":
                if message.token != arena.token:
                    self._error("unauthorised", "no such token")
                    self.closing = (1008, "unauthorised")
                    return
                self.state = "ready"
                self.send(Authenticated(name="me", scopes=["play", "watch"]))
            case _ if self.state != "ready":
                raise ProtocolError("out_of_order", f"{message.type} in state {self.state}")
            case Join():
                self._join(message)
            case Challenge():
                self.send(Waiting(id=message.id, ticket="c1", game=message.game, filled=1, seats=2))
                self.send(Left(id=message.id, ticket="c1", reason="declined"))
            case Respond():
                self.send(Left(id=message.id, ticket=message.ticket, reason="declined"))
            case Leave():
                if message.match in arena.matches:
                    arena.matches[message.match].forfeit()
                for identity, (_, join) in list(arena.waiting.items()):
                    if message.ticket == f"t-{join.id[-20:]}":
                        del arena.waiting[identity]
                self.send(Left(id=message.id, ticket=message.ticket, match=message.match))
            case Act():
                found = arena.matches.get(message.match)
                if found is None or found.session is not self:
                    self.send(Stale(match=message.match, request=message.request, reason="unknown"))
                    return
                self.send(found.act(message))
                found.feed()
            case Resume():
                for held in arena.matches.values():
                    if held.resume == message.resume:
                        held.attach(self, message.id, message.seen)
                        return
                self._error("bad_resume", "no seat is held for it", message.id)
            case Watch():
                self._watch(message)
            case Unwatch():
                pass
            case Ping():
                self.send(Pong(id=message.id))
            case _:
                raise ProtocolError("out_of_order", f"{message.type} in state {self.state}")

    def _join(self, message: Join) -> None:
        arena = self.arena
        if arena.refuse:
            self._error(arena.refuse, "not now", message.id)
            return
        if arena.hold and message.id not in arena.joined:
            arena.waiting[message.id] = (self, message)
            ticket = f"t-{message.id[-20:]}"
            self.send(Waiting(id=message.id, ticket=ticket, game=message.game, filled=1, seats=2))
            return
        try:
            arena.seat(self, message)
        except ArenaError as error:
            code = "unknown_game" if error.code == "unknown_game" else "bad_setup"
            self._error(code, str(error), message.id)

    def _watch(self, message: Watch) -> None:
        match = self.arena.matches.get(message.match)
        if match is None:
            self._error("unknown_match", "no such match", message.id)
            return
        self.send(
            Snapshot(
                id=message.id,
                match=match.name,
                game=match.game.name,
                rules=match.game.version,
                options={},
                names=["you"],
                perspective="public",
                allowed=["public"],
                entries=len(match.public),
                live=match.over is None,
            )
        )
        entries = [["e", event.kind, event.data, None] for event in match.public]
        self.send(Frames(match=match.name, first=0, entries=entries, over=match.over is not None))


@asynccontextmanager
async def serve(arena: ModelArena, *, port: int = 0, ssl: Any = None) -> AsyncIterator[int]:
    """Serve the model on loopback; gives the port."""

    async def handle(socket: ServerConnection) -> None:
        more = asyncio.Event()
        session = arena.connect(str(socket.subprotocol), more.set)

        async def write() -> None:
            while True:
                for frame in session.frames_to_send():
                    await socket.send(frame)
                if session.closing is not None:
                    await socket.close(*session.closing)
                    return
                await more.wait()
                more.clear()

        writer = asyncio.create_task(write())
        try:
            async for frame in socket:
                session.receive(frame)
                more.set()
        except ConnectionClosed:
            pass
        finally:
            session.lost()
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await writer

    async with serve_websockets(
        handle, "127.0.0.1", port, subprotocols=SUBPROTOCOLS, max_size=MAX_SERVER_BYTES, ssl=ssl
    ) as server:
        yield server.sockets[0].getsockname()[1]


class Cutter:
    """A proxy on loopback that counts the messages going through it to the client, and cuts on command.

    Args:
        cuts: for each connection in turn, after how many messages from the server it is cut, the answer to the
            handshake being the first of them; a half cuts within the next message. None never, and no entry never.
    """

    def __init__(self, upstream: int, cuts: Sequence[float | None] = ()) -> None:
        self.upstream = upstream
        self.cuts = cuts
        self.connections = 0
        self.refuse = False
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._handlers: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def run(self) -> AsyncIterator["Cutter"]:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*self._handlers)
            # An aborted transport lets go of its socket in the loop's next round.
            await asyncio.sleep(0)

    def cut(self) -> None:
        """Cut every connection now, without a word."""
        for writer in list(self._open):
            writer.transport.abort()

    def cut_one(self, rng: random.Random) -> None:
        """Cut one connection now, without a word."""
        for writer in rng.sample(list(self._open), min(1, len(self._open))):
            writer.transport.abort()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        index, self.connections = self.connections, self.connections + 1
        limit = self.cuts[index] if index < len(self.cuts) else None
        if self.refuse:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, up_writer}
        self._open |= pair

        async def up() -> None:
            while data := await reader.read(2**16):
                up_writer.write(data)
                await up_writer.drain()

        async def down() -> None:
            passed = 0.0
            async for data, whole in _messages(up_reader):
                if limit is not None and whole and passed + 1 > limit:
                    writer.write(data[: len(data) // 2 if passed < limit else 0])
                    return
                passed += whole
                writer.write(data)
                await writer.drain()

        async def pump(direction: Coroutine[Any, Any, None]) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await direction
            for each in pair:
                each.transport.abort()

        try:
            await asyncio.gather(pump(up()), pump(down()))
        finally:
            self._open -= pair


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bool]]:
    """Yield what a websocket server says: its answer to the handshake, then frame by frame.

    With each comes whether it is a message; frames that keep the connection alive are none, and come by the clock.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    yield head, True
    while b" 101 " in head:
        frame = start = await reader.readexactly(2)
        size = start[1] & 0x7F
        if size > 125:
            frame += (more := await reader.readexactly(2 if size == 126 else 8))
            size = int.from_bytes(more)
        yield frame + await reader.readexactly(size), not start[0] & 0x08
    while data := await reader.read(2**16):
        yield data, False
