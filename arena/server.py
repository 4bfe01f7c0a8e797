"""The websockets transport: a thin shell around sessions, which know no socket.

One task reads a connection. What its session has due is pulled and written once per round of the loop, for all
connections that have something; a connection whose socket has not drained is left out until it has, so a slow
client holds up nobody, and what waits for it is bounded. A client that takes nothing for a heartbeat, or answers
no ping, is cut off.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Origin, Subprotocol

from arena.auth import Gate, Identity
from arena.config import ServerSettings
from arena.errors import ServeError
from arena.limits import CONNECT, Places, address_key
from arena.metrics import Metrics
from arena.wire import Link, framed
from clients.protocol.codec import SUBPROTOCOLS
from clients.protocol.messages import MAX_CLIENT_BYTES

CLOSE_TIMEOUT_S = 2.0
SHUTDOWN_S = 5.0
"""Seconds that clients have to take what is left when the server stops."""
WRITE_LIMIT = 64 * 1024
"""Bytes that may wait in a connection's buffer before its writer waits."""
READ_QUEUE = 8
"""Frames that may wait to be taken from one connection."""
PEERS_A_ROUND = 100
"""Connections that are written in one round of the loop: a crowd of spectators must not hold up a match."""
MAX_SWEEP_S = 1.0

SERVICE_RESTART, POLICY_VIOLATION, TRY_AGAIN_LATER, INTERNAL_ERROR = 1012, 1008, 1013, 1011
"""Close codes (RFC 6455 and its registry)."""

log = logging.getLogger("arena.server")

Frame = bytes | str


class Connection(Protocol):
    """What the transport needs of the server's side of one connection; `arena.session.Session` is one."""

    closing: tuple[int, str] | None
    identity: Identity | None
    greeted: bool
    opened_at: float

    def receive(self, frame: Frame, /) -> None:
        """Take a frame. Never raises."""

    def frames_to_send(self) -> list[Frame]:
        """Return what is due; called again until it returns nothing."""
        ...

    def shutdown(self) -> None:
        """Tell the client that the server stops, and close."""

    def lost(self) -> None:
        """The socket is gone."""


class Open(Protocol):
    """Makes the server's side of a connection."""

    def __call__(
        self, *, subprotocol: str, address: str, wake: Callable[[], None], clock: Callable[[], float]
    ) -> Connection:
        """Return it; `wake` is to be called when there is something to send."""
        ...


@dataclass(eq=False, slots=True)
class _Peer:
    """One connection: its socket, its session, and since when the socket takes nothing."""

    link: ServerConnection
    session: Connection
    due: bool = False
    """Whether it will be asked for what is due."""
    waiting: asyncio.Task[None] | None = None
    """Waits until the socket has drained, or is closed."""
    waiting_since: float | None = None
    cut: bool = False


class WebSocketServer:
    """Listens, and runs a session for each connection.

    Args:
        open_session: makes the sessions.
        settings: where to listen, and the limits.
        gate: tokens and rates.
        metrics: counts.
        tls: None speaks plain `ws`.
    """

    def __init__(
        self,
        open_session: Open,
        *,
        settings: ServerSettings,
        gate: Gate,
        metrics: Metrics,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._open = open_session
        self._settings = settings
        self._gate = gate
        self._metrics = metrics
        self._tls = tls
        self._places = Places(total=settings.max_connections, per_key=settings.max_connections_per_address)
        self._peers: set[_Peer] = set()
        self._server: Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._stopping = False
        self._due: list[_Peer] = []
        self._loop: asyncio.AbstractEventLoop
        self.received = self.sent = self.sent_bytes = 0
        """Messages from and to clients, and the bytes of the latter."""
        metrics.count("arena_messages_received", "Messages from clients.", lambda: self.received)
        metrics.count("arena_messages_sent", "Messages to clients.", lambda: self.sent)
        metrics.count("arena_sent_bytes", "Bytes of messages to clients.", lambda: self.sent_bytes)
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that are listened on."""
        assert self._server is not None
        name = next(iter(self._server.sockets)).getsockname()
        return str(name[0]), int(name[1])

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._peers)

    async def start(self) -> None:
        """Listen. Raises `ServeError` where the address cannot be had."""
        self._loop = asyncio.get_running_loop()
        settings = self._settings
        heartbeat = settings.heartbeat_s / 2
        origins: list[Origin | None] = [None, *map(Origin, settings.origins)]
        quiet = logging.getLogger("arena.websockets")
        # Every stranger that speaks no websocket would leave a traceback; refusals are counted instead.
        quiet.setLevel(logging.CRITICAL)
        try:
            self._server = await serve(
                self._handle,
                settings.host,
                settings.port,
                origins=origins,
                subprotocols=[Subprotocol(name) for name in SUBPROTOCOLS],
                compression=None,
                process_request=self._at_the_door,
                process_response=self._count_refusals,
                server_header=None,
                open_timeout=min(10.0, settings.heartbeat_s),
                ping_interval=heartbeat,
                ping_timeout=heartbeat,
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=MAX_CLIENT_BYTES,
                max_queue=READ_QUEUE,
                write_limit=WRITE_LIMIT,
                logger=quiet,
                ssl=self._tls,
                create_connection=Link,
            )
        except OSError as error:
            raise ServeError(cannot_listen(settings.host, settings.port, error)) from None
        self._sweeper = self._loop.create_task(self._sweep())

    async def close(self) -> None:
        """Stop: take no more connections, tell the clients, and cut off who does not leave in time."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeper
        if self._server is None:
            return
        self._server.close(close_connections=False)
        for peer in list(self._peers):
            peer.session.shutdown()
            self._wake(peer)
        try:
            async with asyncio.timeout(SHUTDOWN_S):
                await self._server.wait_closed()
        except TimeoutError:
            for peer in list(self._peers):
                self._cut(peer, "shutdown")
            await self._server.wait_closed()

    def _at_the_door(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse before there is a connection what needs none."""
        path, question, _ = request.path.partition("?")
        address = _address(connection)
        if self._stopping:
            return self._refuse(connection, "shutdown", HTTPStatus.SERVICE_UNAVAILABLE, "the server stops")
        if question:
            text = "no query is taken; a token goes into the message `authenticate`, never into an address"
            return self._refuse(connection, "query", HTTPStatus.BAD_REQUEST, text)
        if path not in ("/", "/ws"):
            return self._refuse(connection, "path", HTTPStatus.NOT_FOUND, "websockets are taken at /")
        if not self._gate.allow(f"{CONNECT}:{address}"):
            text = "too many connections in a short time; slow down"
            return self._refuse(connection, "rate_limited", HTTPStatus.TOO_MANY_REQUESTS, text)
        if not self._places.free(address):
            text = "too many connections at the same time"
            return self._refuse(connection, "limit", HTTPStatus.SERVICE_UNAVAILABLE, text)
        return None

    def _refuse(self, connection: ServerConnection, cause: str, status: HTTPStatus, text: str) -> Response:
        self._metrics.refused.labels(cause).inc()
        return connection.respond(status, f"{text}\n")

    def _count_refusals(
        self, connection: ServerConnection, request: Request, response: Response
    ) -> Response | None:
        if response.status_code == HTTPStatus.FORBIDDEN:
            self._metrics.refused.labels("origin").inc()
        elif response.status_code == HTTPStatus.BAD_REQUEST:
            self._metrics.refused.labels("handshake").inc()
        return None

    async def _handle(self, link: ServerConnection) -> None:
        address = _address(link)
        if self._stopping or not self._places.take(address):
            await link.close(TRY_AGAIN_LATER, "too many connections at the same time")
            return
        self._metrics.opened.inc()
        peer: _Peer
        session = self._open(
            subprotocol=str(link.subprotocol),
            address=address,
            wake=lambda: self._wake(peer),
            clock=self._loop.time,
        )
        peer = _Peer(link, session)
        self._peers.add(peer)

        def take(frame: Frame) -> None:
            self.received += 1
            try:
                session.receive(frame)
            except Exception:
                self._fail(peer)

        assert isinstance(link, Link)
        link.take = take
        try:
            async for frame in link:
                take(frame)
        except ConnectionClosed:
            pass  # how it ended is the session's to make good: a lost seat has its grace
        finally:
            self._peers.discard(peer)
            self._places.give_back(address)
            session.lost()
            if peer.waiting is not None:
                peer.waiting.cancel()
                with suppress(asyncio.CancelledError):
                    await peer.waiting

    def _wake(self, peer: _Peer) -> None:
        """Note that a session has something due."""
        if peer.due:
            return
        peer.due = True
        if not self._due:
            # In the next round: what a move leads to, events and the turns that they open, goes out together.
            self._loop.call_soon(self._flush)
        self._due.append(peer)

    def _flush(self) -> None:
        due, self._due = self._due[:PEERS_A_ROUND], self._due[PEERS_A_ROUND:]
        if self._due:
            self._loop.call_soon(self._flush)
        for peer in due:
            peer.due = False
            if peer.waiting is None and peer in self._peers:
                self._push(peer)

    def _push(self, peer: _Peer) -> None:
        """Write what is due, as far as the socket takes it."""
        link, session = peer.link, peer.session
        try:
            while frames := session.frames_to_send():
                if left := self._write(link, frames):
                    peer.waiting = self._loop.create_task(self._wait(peer, left))
                    return
        except Exception:
            self._fail(peer)
            return
        if session.closing is not None:
            peer.waiting = self._loop.create_task(link.close(*session.closing))

    def _fail(self, peer: _Peer) -> None:
        """Close a connection whose session raised, which none should."""
        log.exception("a connection failed")
        if peer.waiting is None:
            peer.waiting = self._loop.create_task(peer.link.close(INTERNAL_ERROR, "the server failed"))

    def _write(self, link: ServerConnection, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Write frames, several in one go, and return those that the socket does not take now."""
        protocol, transport = link.protocol, link.transport
        at, count = 0, len(frames)
        while at < count and protocol.state is State.OPEN:
            if transport.get_write_buffer_size() > WRITE_LIMIT:
                self.sent += at
                return frames[at:]
            size = 0
            parts: list[bytes] = []
            while at < count and size <= WRITE_LIMIT:
                parts += framed(frames[at])
                size += len(frames[at])
                at += 1
            # A write is a system call, and those cost more than all else here.
            transport.write(b"".join(parts))
            self.sent_bytes += size
        self.sent += at
        return ()

    async def _wait(self, peer: _Peer, frames: Sequence[Frame]) -> None:
        """Write frames as the socket takes them, then go on with whatever is due."""
        try:
            for frame in frames:
                peer.waiting_since = self._loop.time()
                await peer.link.send(frame)
                self.sent += 1
                self.sent_bytes += len(frame)
        except ConnectionClosed:
            return
        finally:
            peer.waiting_since = None
        peer.waiting = None
        self._wake(peer)

    async def _sweep(self) -> None:
        """Now and then cut off who takes nothing, and close the connections of tokens that were revoked."""
        pause = min(MAX_SWEEP_S, self._settings.heartbeat_s / 4)
        clock = self._loop.time
        while True:
            await asyncio.sleep(pause)
            late = clock() - self._settings.heartbeat_s
            for peer in list(self._peers):
                if peer.waiting_since is not None and peer.waiting_since < late:
                    self._cut(peer, "stalled")
                elif not peer.session.greeted and peer.session.opened_at < late:
                    self._cut(peer, "silent")
            try:
                self._close_revoked()
            except Exception:
                log.exception("tokens could not be checked")

    def _close_revoked(self) -> None:
        known = [peer for peer in self._peers if peer.session.identity is not None]
        if not known:
            return
        valid = self._gate.valid_keys()
        for peer in known:
            identity = peer.session.identity
            if identity is not None and identity.key not in valid and not peer.cut:
                peer.cut = True
                self._metrics.dropped.labels("revoked").inc()
                closing = peer.link.close(POLICY_VIOLATION, "the token is no longer valid")
                task = self._loop.create_task(closing)
                self._closing.add(task)  # a loop holds its tasks only weakly
                task.add_done_callback(self._closing.discard)

    def _cut(self, peer: _Peer, cause: str) -> None:
        if not peer.cut:
            peer.cut = True
            self._metrics.dropped.labels(cause).inc()
        peer.link.transport.abort()


def _address(connection: ServerConnection) -> str:
    remote = connection.remote_address
    return address_key(str(remote[0])) if remote else "unknown"


def cannot_listen(host: str, port: int, error: OSError) -> str:
    """Return in one line why an address cannot be listened on."""
    if isinstance(error, socket.gaierror):
        return f"--host {host[:80]}: no such address on this machine"
    reasons = {
        errno.EADDRINUSE: "the port is in use; take another, or 0 for a free one",
        errno.EADDRNOTAVAIL: "no such address on this machine",
        errno.EACCES: "not allowed; ports below 1024 need rights, take another",
    }
    why = reasons.get(error.errno or 0)
    if why is None and isinstance(error.__cause__, OSError):
        why = reasons.get(error.__cause__.errno or 0)
    return f"{host[:80]} port {port}: cannot listen: {why or error.strerror or error}"


def read_tls(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the context for a certificate, None where there is none. Raises `ServeError` in one line."""
    if cert is None:
        if key is not None:
            raise ServeError("--tls-key: it goes with --tls-cert, which is missing")
        return None
    for flag, path in (("--tls-cert", cert), ("--tls-key", key)):
        if path is not None and not path.is_file():
            raise ServeError(f"{flag}: {path}: there is no such file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as error:
        wrong = (
            "the key is not the certificate's"
            if "MISMATCH" in str(error)
            else "no certificate and key in PEM"
        )
        raise ServeError(f"--tls-cert: {cert}: {wrong}") from None
    except (OSError, ValueError) as error:
        raise ServeError(
            f"--tls-cert: {cert}: cannot be used: {getattr(error, 'strerror', None) or error}"
        ) from None
    return context


def _no_password() -> str:
    raise ValueError("the key is locked by a password; unlock it with openssl first")


def url(scheme: str, address: tuple[str, int]) -> str:
    """Return an address as a URL; IPv6 stands in brackets."""
    host, port = address
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
