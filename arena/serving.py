"""The whole server in one place: the host of the matches, its websockets, its HTTP side, and its end."""

import asyncio
import gc
import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from arena import archive
from arena.auth import PLAY, WATCH, Gate
from arena.config import ServerSettings, Settings
from arena.contest import OnlineTournament
from arena.desk import Desk
from arena.errors import ServeError
from arena.host import Host, HostSettings
from arena.http import HttpServer
from arena.hub import Found, Hub
from arena.limits import AUTH, CONNECT, DEFAULT_RATES, JOIN, MESSAGE, REQUEST, Rate, is_loopback
from arena.lock import hold
from arena.metrics import Metrics
from arena.server import WebSocketServer, read_tls, url
from arena.session import Session
from arena.store import Store
from replays.reader import read_record
from replays.record import Record

LOCK_NAME = ".server.lock"
BURST_S = 5.0
"""Seconds' worth of a rate that may come at once."""
COLLECT_AFTER = (50_000, 20, 100)
"""Allocations until the youngest garbage is collected, and collections of each generation until the next one's."""

log = logging.getLogger("arena.server")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a server listens, as URLs."""

    websocket: str
    http: str


class ArenaServer:
    """A server of one home. `start` it in a running loop, and `close` it.

    Args:
        settings: the whole configuration.
        tournaments: opened for registration at the start, unless one of that name goes on.
    """

    def __init__(self, settings: Settings, *, tournaments: Sequence[OnlineTournament] = ()) -> None:
        self.settings = settings
        self._tournaments = tournaments
        self._stack = AsyncExitStack()
        self._addresses: Addresses | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._desk: Desk
        self.host: Host
        self.hub: Hub
        self.gate: Gate
        self.metrics: Metrics
        self.http: HttpServer

    @property
    def addresses(self) -> Addresses:
        """Where the server listens."""
        assert self._addresses is not None
        return self._addresses

    async def start(self) -> Addresses:
        """Take up what an earlier server left, then listen.

        Raises `ServeError`, `StoreError` or `TournamentError` in one line; nothing is left open then.
        """
        try:
            return await self._start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Take no more, tell the clients, and end the matches where they stand: the next server goes on with them."""
        await self._stack.aclose()

    async def _start(self) -> Addresses:
        server = self.settings.server
        tls = await asyncio.to_thread(read_tls, server.tls_cert, server.tls_key)
        self.metrics = Metrics()
        held = _hold(self.settings.home)
        await asyncio.to_thread(held.__enter__)
        self._stack.callback(held.__exit__, None, None, None)
        self.gate = await asyncio.to_thread(self._make_gate)
        self._stack.callback(self.gate.close)
        desk = self._desk = Desk(self.settings.home)
        loop = asyncio.get_running_loop()
        self.hub = Hub(
            clock=loop.time,
            call_later=loop.call_later,
            find=lambda match: find_record(self.settings.home, match),
            offload=self._at_desk,
            max_behind=server.max_behind,
            max_watchers=server.max_watchers,
        )
        self.host = Host(
            self.settings.home,
            clock=loop,
            hub=self.hub,
            settings=host_settings(self.settings),
            desk=desk,
            observe=self._observe,
        )
        self._stack.push_async_callback(self.host.stop)
        await self.host.start()
        for asked in self._tournaments:
            if asked.name in self.host.contests.open:
                log.warning("tournament %s goes on from where it was", asked.name)
            else:
                self.host.add_tournament(asked)
        websockets = WebSocketServer(
            self._open_session, settings=server, gate=self.gate, metrics=self.metrics, tls=tls
        )
        self._gauges(websockets)
        http = self.http = HttpServer(
            lobbies=self.host.lobbies,
            tournaments=self.host.tournaments,
            hub=self.hub,
            desk=desk,
            gate=self.gate,
            metrics=self.metrics,
            settings=server,
            websocket=lambda: self.addresses.websocket,
            tls=tls,
        )
        await http.start()
        self._stack.push_async_callback(http.close)
        await websockets.start()
        self._stack.push_async_callback(websockets.close)
        self._addresses = _addresses(websockets, http, tls)
        http.ready = True
        self._stack.callback(http.not_ready)
        return self._addresses

    def _make_gate(self) -> Gate:
        return Gate(
            self.settings.home,
            anonymous=anonymous_scopes(self.settings.server),
            rates=rates(self.settings.server),
        )

    def _open_session(
        self, *, subprotocol: str, address: str, wake: Callable[[], None], clock: Callable[[], float]
    ) -> Session:
        return Session(
            self.host,
            subprotocol=subprotocol,
            address=address,
            gate=self.gate,
            wake=wake,
            clock=clock,
            http_port=self.http.address[1],
        )

    def _at_desk(self, function: Callable[[], Record | None], done: Callable[[Found], None]) -> None:
        async def work() -> None:
            try:
                done(await self._desk.run(lambda store: function()))
            except Exception as error:
                log.error("a record could not be read", exc_info=error)
                done(error)

        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)  # a loop holds its tasks only weakly
        task.add_done_callback(self._tasks.discard)

    def _observe(self, name: str, value: float) -> None:
        match name:
            case "turnaround_s":
                self.metrics.turn_seconds.observe(value)
            case "match_finished":
                self.metrics.matches.labels("finished").inc()
            case "match_failed":
                self.metrics.matches.labels("failed").inc()

    def _gauges(self, websockets: WebSocketServer) -> None:
        gauge = self.metrics.gauge
        gauge("arena_connections", "Open connections.", lambda: websockets.connections)
        gauge("arena_matches", "Matches that go on.", lambda: len(self.host.tables))
        gauge("arena_watchers", "Spectators.", lambda: self.hub.watchers)
        gauge(
            "arena_watcher_restarts", "Spectators that fell behind and started over.", lambda: self.hub.drops
        )
        gauge("arena_lobbies", "Lobbies that wait.", lambda: len(self.host.waiting.open))


def find_record(home: Path, match: str) -> Record | None:
    """Return the whole record of a finished match, None where there is none. Blocks."""
    with Store(home) as store:
        path = archive.record_path(store, match, home=home)
    if path is None:
        return None
    record = read_record(path)
    return record if record.footer is not None else None


def host_settings(settings: Settings) -> HostSettings:
    """Return what the host needs of the configuration."""
    server = settings.server
    return HostSettings(
        deadline_s=server.deadline_s,
        bank_s=server.bank_s,
        grace_s=server.grace_s,
        heartbeat_s=server.heartbeat_s,
        fill_after_s=server.fill_after_s,
        fill_with=server.fill_with,
        delay_s=server.delay_s,
        retries=settings.match.retries,
        max_matches=server.max_matches,
        max_lobbies=server.max_lobbies,
    )


def anonymous_scopes(server: ServerSettings) -> tuple[str, ...]:
    """Return what needs no token: what the configuration says, else play and watch on this machine alone."""
    if server.anonymous is not None:
        return server.anonymous
    return (PLAY, WATCH) if is_loopback(server.host) else (WATCH,)


def rates(server: ServerSettings) -> dict[str, Rate]:
    """Return the rates that the configuration allows."""
    per_s = {
        MESSAGE: server.messages_per_s,
        JOIN: server.joins_per_s,
        CONNECT: server.connects_per_s,
        REQUEST: server.requests_per_s,
    }
    found = {kind: Rate(rate, max(1.0, rate * BURST_S)) for kind, rate in per_s.items()}
    return {**found, AUTH: DEFAULT_RATES[AUTH]}


def warnings(server: ServerSettings) -> Iterator[str]:
    """Yield what a user should know before the server is reached from elsewhere."""
    if is_loopback(server.host):
        return
    if server.tls_cert is None:
        yield (
            f"listening on {server.host} without TLS: tokens and games can be read on the way; "
            "give --tls-cert and --tls-key, or put a proxy with TLS before it"
        )
    if PLAY in anonymous_scopes(server):
        yield "anyone who reaches this address may play without a token (server.anonymous)"


def prepare_process() -> None:
    """Set this process up for serving: as many connections as the system allows, and garbage collected less often.

    What a match keeps lives until its end and makes few cycles, so looking through all of it again and again is
    time lost; what was there before the first connection is not looked through at all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            log.warning("at most %d files can be open, and no more connections", soft)


def _addresses(websockets: WebSocketServer, http: HttpServer, tls: ssl.SSLContext | None) -> Addresses:
    secure = "s" if tls is not None else ""
    return Addresses(url(f"ws{secure}", websockets.address), url(f"http{secure}", http.address))


def _hold(home: Path) -> AbstractContextManager[None]:
    """Keep a home for this server alone."""

    def unusable(error: OSError) -> ServeError:
        reason = "it is a file" if home.is_file() else error.strerror or error
        return ServeError(f"--home {home}: cannot be written: {reason}")

    taken = ServeError(f"--home {home}: another server uses it")
    return hold(home, name=LOCK_NAME, mode=0o600, taken=taken, unusable=unusable)
