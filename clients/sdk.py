"""Write an agent: connect to a server, take a seat, answer turns.

    async with connect("ws://127.0.0.1:8765", token=…) as arena:
        match = await arena.join(game="avalon", name="me")
        async for turn in match:
            await turn.play(choose(match.view, turn.space))
        print(match.ended)

A lost connection is taken up again without the program's doing: seats are resumed, nothing is told twice, an
answer under way is sent again. It gives up after the server's grace, or at once where the server says no.
`clients.blocking` is the same without `await`.
"""

import asyncio
import contextlib
import logging
import ssl as tls
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Literal, Self

from clients.dial import check_address
from clients.errors import ClientError, Disconnected, ProtocolError, Refused, SeatLost
from clients.link import Link, Status
from clients.match import Challenge, Line, Match, Ticket, Turn, Watching
from clients.protocol import codec
from clients.protocol import messages as wire
from clients.protocol.client import ClientConnection
from games.errors import ArenaError
from games.text import neutralise

__all__ = ["Arena", "Challenge", "Match", "Ticket", "Turn", "connect"]

logger = logging.getLogger("arena.client")


def connect(url: str, **options: Any) -> "Arena":
    """Return a connection, to be entered with `async with`; the options are those of `Arena`."""
    return Arena(url, **options)


class Arena(Line):
    """A connection to a server that comes back by itself; any number of matches at once.

    Args:
        url: `ws://HOST:PORT` or `wss://HOST:PORT`.
        token: shown to the server; empty shows none.
        subprotocol: `codec.MSGPACK` or `codec.JSON`.
        client: name and version of the program, for the server's log.
        capabilities: such as `schema` (a JSON schema with every turn).
        reconnect_s: seconds after a loss within which it tries to come back; None is the server's grace.
        heartbeat_s: seconds between two pings, and until a silent socket is given up.
        open_timeout_s: seconds that one attempt to connect may take.
        ssl: for `wss://`; None trusts what the system trusts.
        on_status: called with `connected`, `reconnecting` or `closed`, and why.

    Entering raises `BadAddress`, `Refused` or `Disconnected`: the first attempt is not repeated.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        subprotocol: str = codec.MSGPACK,
        client: str = "evoke-arena sdk",
        capabilities: tuple[str, ...] = (),
        reconnect_s: float | None = None,
        heartbeat_s: float = 20.0,
        open_timeout_s: float = 10.0,
        ssl: tls.SSLContext | None = None,
        on_status: Callable[[Status, str], None] | None = None,
    ) -> None:
        self.url = check_address(url)
        self._connection = ClientConnection(
            subprotocol=subprotocol, token=token, client=client, capabilities=capabilities
        )
        self._link = Link(
            self.url,
            connection=self._connection,
            reconnect_s=reconnect_s,
            heartbeat_s=heartbeat_s,
            open_timeout_s=open_timeout_s,
            ssl=ssl,
            on_messages=self._take,
            on_status=self._turned,
        )
        self._on_status = on_status
        self._matches: dict[str, Match] = {}
        self._tickets: dict[str, Ticket] = {}
        self._watching: dict[str, Watching] = {}
        self._challenges: asyncio.Queue[Challenge | None] = asyncio.Queue()
        self._ready: asyncio.Future[None] | None = None
        self._error: ClientError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name=f"arena connection to {self.url}")
        self._ready = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait([self._task, self._ready], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            raise
        if self._error is not None:
            raise self._error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def status(self) -> Status:
        """Whether the connection is there just now: `connected`, `reconnecting` or `closed`."""
        return self._link.status

    @property
    def server(self) -> wire.Welcome | None:
        """What the server said of itself: its name and limits; None while the connection is down."""
        return self._connection.welcome

    @property
    def identity(self) -> wire.Authenticated | None:
        """Whom the server knows by the token, and its scopes."""
        return self._connection.identity

    @property
    def matches(self) -> Mapping[str, Match]:
        """The seats held now, by match."""
        return self._matches

    async def join(self, **what: Any) -> Match:
        """Take a seat and wait until it is there; the arguments are those of `ask`."""
        ticket = self.ask(**what)
        try:
            return await ticket.match()
        except asyncio.CancelledError:
            ticket.withdraw()
            raise

    def ask(
        self,
        *,
        game: str = "",
        match: str = "",
        tournament: str = "",
        seats: int | None = None,
        options: Mapping[str, Any] | None = None,
        name: str = "",
        agent: str = "",
        on_waiting: Callable[[wire.Waiting], None] | None = None,
    ) -> Ticket:
        """Ask for a seat: in a lobby of `game`, in the named `match`, or in every match of a `tournament`.

        Args:
            game, seats, options: what a lobby plays; the game's own numbers where they are left out.
            match: a match that waits for players.
            tournament: one that is open; iterate the ticket for its matches.
            name: to be shown; the token's where it is left out.
            agent: kind and version of the agent, for the record.
            on_waiting: told how a waiting place fills.
        """
        where = "tournament" if tournament else "match" if match else "lobby"
        return self._ticket(
            self._connection.join,
            on_waiting,
            where=where,
            game=game,
            match=match,
            tournament=tournament,
            seats=seats,
            options=dict(options or {}),
            name=name,
            agent=agent,
        )

    def challenge(
        self,
        opponent: str,
        *,
        game: str,
        options: Mapping[str, Any] | None = None,
        name: str = "",
        agent: str = "",
        on_waiting: Callable[[wire.Waiting], None] | None = None,
    ) -> Ticket:
        """Ask a player who is connected for a match; a refusal comes as `SeatLost`, reason `declined`."""
        return self._ticket(
            self._connection.challenge,
            on_waiting,
            opponent=opponent,
            game=game,
            options=dict(options or {}),
            name=name,
            agent=agent,
        )

    async def challenges(self) -> AsyncIterator[Challenge]:
        """Give the challenges to this player as they come. Raises `Disconnected`."""
        while (challenge := await self._challenges.get()) is not None:
            yield challenge
        if self._error is not None:
            raise self._error

    async def watch(
        self, match: str, *, perspective: Literal["public", "seat", "all"] = "public", seat: int | None = None
    ) -> AsyncIterator[wire.Snapshot | wire.Frames]:
        """Watch a match: a snapshot, then frames, to its end; a new snapshot means: forget what was before.

        Raises `Refused` or `Disconnected`.
        """
        self._check()
        watching = self._watching[match] = Watching()
        watching.id = self._connection.watch(match=match, perspective=perspective, seat=seat)
        self._link.wake()
        try:
            while True:
                told = await watching.queue.get()
                if isinstance(told, ClientError):
                    raise told
                yield told
                if isinstance(told, wire.Frames) and told.over:
                    return
        finally:
            if self._watching.get(match) is watching:
                del self._watching[match]
                self._connection.unwatch(match=match)
                self._link.wake()

    async def close(self) -> None:
        """Close the connection. A seat that is not over is held for the server's grace, then forfeited."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._end(Disconnected(f"{self.url}: the connection was closed here"))

    # What seats call

    def act(self, match: str, **answer: Any) -> bool:
        """Send an answer; False where its turn is no longer open. See `ClientConnection.act`."""
        self._check()
        sent = self._connection.act(match, **answer)
        self._link.wake()
        return sent

    def leave(self, match: str) -> None:
        """Give up a seat, which forfeits it."""
        self._check()
        self._connection.leave(match=match)
        self._link.wake()

    def _respond(self, ticket: str, accept: bool) -> Ticket:
        return self._ticket(self._connection.respond, None, ticket=ticket, accept=accept)

    def _ticket(
        self,
        ask: Callable[..., str],
        on_waiting: Callable[[wire.Waiting], None] | None,
        **what: Any,
    ) -> Ticket:
        self._check()
        try:
            identity = ask(**what)
        except ValueError as error:
            first = (
                error.errors()[0] if hasattr(error, "errors") else {"loc": ("request",), "msg": str(error)}
            )
            where = ".".join(map(str, first["loc"]))
            raise ProtocolError("bad_message", f"{where}: {first['msg']}"[:300]) from None
        ticket = self._tickets[identity] = Ticket(
            identity,
            withdraw=self._withdraw,
            on_waiting=on_waiting,
            lasting=what.get("where") == "tournament",
        )
        self._link.wake()
        return ticket

    def _withdraw(self, identity: str) -> None:
        self._tickets.pop(identity, None)
        if self._error is None:
            self._connection.withdraw(identity)
            self._link.wake()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        if self._task is None:
            raise ClientError("the connection is not open: use it in `async with connect(…) as arena:`")

    # The connection

    async def _run(self) -> None:
        try:
            await self._link.run()
        except ClientError as error:
            self._end(error)
        except ModuleNotFoundError as error:
            self._end(ClientError(f"the package {error.name} is missing: pip install 'evoke-arena[client]'"))
        except Exception as error:
            text = f"{self.url}: unexpected {type(error).__name__}: {neutralise(str(error))[:200]}"
            made = error if isinstance(error, ArenaError) else text
            failed = ClientError(str(made))
            failed.__cause__ = error
            self._end(failed)

    def _take(self, messages: list[wire.Message]) -> None:
        for message in messages:
            self._dispatch(message)
        for identity, held in self._connection.seats.items():
            match = self._matches.get(identity)
            if match is not None and held.turn is not None and match.turn is not None:
                if match.turn.request == held.turn.request and held.turn is not match.turn.asked:
                    match.turn.wind(held.turn)

    def _turned(self, status: Status, why: str) -> None:
        if status == "connected" and self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        if self._on_status is not None:
            self._on_status(status, why)

    def _dispatch(self, message: wire.Message) -> None:
        match message:
            case wire.Waiting():
                if message.id in self._tickets:
                    self._tickets[message.id].take_waiting(message)
            case wire.Seated():
                self._seated(message)
            case wire.Events() | wire.Turn() | wire.Acted() | wire.Stale() | wire.Over():
                self._played(message)
            case wire.Left():
                self._left(message)
            case wire.Challenged():
                self._challenges.put_nowait(Challenge(message, self._respond))
            case wire.Snapshot() | wire.Frames():
                if message.match in self._watching:
                    self._watching[message.match].queue.put_nowait(message)
            case wire.Error():
                self._refused(message)

    def _seated(self, message: wire.Seated) -> None:
        if message.match in self._matches:
            return
        ticket = self._tickets.get(message.id)
        try:
            match = self._matches[message.match] = Match(self, message)
        except Exception as error:
            # Another game's code may raise anything; it costs this seat, not the connection.
            self._connection.leave(match=message.match)
            if ticket is not None:
                ticket.fail(error)
            return
        if ticket is not None:
            ticket.take_match(match)
            if not ticket.lasting:
                del self._tickets[message.id]

    def _played(self, message: wire.Message) -> None:
        match = self._matches.get(getattr(message, "match", ""))
        if match is None:
            return
        try:
            match.take(message)
        except Exception as error:
            # The game here cannot read what the server's game says: that is the end of this seat, of no other.
            text = f"the seat in {match.id} cannot be played: {neutralise(f'{type(error).__name__}: {error}')[:200]}"
            match.fail(SeatLost("unreadable", text))
            self._connection.leave(match=match.id)
        if match.over is not None:
            del self._matches[match.id]

    def _left(self, message: wire.Left) -> None:
        for identity, ticket in list(self._tickets.items()):
            waiting = ticket.waiting
            if identity == message.id or (waiting and message.ticket and waiting.ticket == message.ticket):
                del self._tickets[identity]
                ticket.fail(SeatLost(message.reason, "no seat comes of the request"))
        match = self._matches.pop(message.match, None)
        if match is not None:
            match.fail(SeatLost(message.reason, f"the seat in {match.id} is gone"))

    def _refused(self, message: wire.Error) -> None:
        text = neutralise(message.message)[:500]
        refused = Refused(message.code, text)
        ticket = self._tickets.pop(message.id, None)
        if ticket is not None:
            ticket.fail(refused)
            return
        for watching in self._watching.values():
            if message.id and watching.id == message.id:
                watching.queue.put_nowait(refused)
                return
        match = self._matches.get(message.match)
        if match is not None and message.code in ("taken", "internal"):
            del self._matches[message.match]
            match.fail(SeatLost(message.code, text))
            return
        logger.info("%s: %s (%s)", self.url, text, message.code)

    def _end(self, error: ClientError) -> None:
        """Tell everybody who waits that there is no connection any more, once."""
        if self._error is not None:
            return
        self._error = error
        for ticket in self._tickets.values():
            ticket.fail(error)
        for match in self._matches.values():
            match.fail(error)
        for watching in self._watching.values():
            watching.queue.put_nowait(error)
        self._challenges.put_nowait(None)
        self._link.say("closed", str(error))
