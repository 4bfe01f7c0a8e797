"""REST, health, metrics and pages, on a port of their own. Everything is read; nothing is changed here.

A token is taken from the header `Authorization: Bearer …` alone. What is wrong is answered as JSON,
`{"code", "message"}`, with the codes of the wire protocol. Names are cleaned before they leave.
"""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from arena import archive, pages
from arena.auth import ADMIN, WATCH, Gate, Identity
from arena.config import ServerSettings
from arena.desk import Desk
from arena.errors import RequestRefused, ServeError
from arena.hub import Hub
from arena.limits import REQUEST, address_key, is_loopback
from arena.metrics import CONTENT_TYPE, Metrics
from arena.server import cannot_listen
from games.errors import ArenaError
from games.registry import game_names, load_game
from replays.export_html import to_html
from replays.reader import read_bytes, read_record
from replays.visitors import PUBLIC

RATINGS_S = 30.0
"""Seconds for which standings are not worked out again."""
MAX_BOARDS = 64
"""Standings that are kept, by game and tournament."""
MAX_RECORD_BYTES = 64 * 1024 * 1024

STATUS = {
    "bad_message": 400,
    "unauthorised": 401,
    "forbidden": 403,
    "not_found": 404,
    "unknown_match": 404,
    "unknown_game": 404,
    "unknown_tournament": 404,
    "rate_limited": 429,
    "internal": 500,
    "shutdown": 503,
}

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "evoke-arena",
}

IDENTITY = web.RequestKey[Identity | None]("identity")
"""Who asks, by the token that came with a request."""

log = logging.getLogger("arena.http")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """The HTTP side of a server.

    Args:
        lobbies: returns who waits, see `arena.host.Host.lobbies`.
        tournaments: returns those over connected agents, see `arena.host.Host.tournaments`.
        hub: matches that go on.
        desk: the store, and the thread that reads it.
        gate: tokens and rates.
        metrics: what `/metrics` shows.
        settings: where to listen.
        websocket: returns the URL of the websocket side, for the pages.
        tls: None speaks plain HTTP.
    """

    def __init__(
        self,
        *,
        lobbies: Callable[[], list[dict[str, Any]]],
        tournaments: Callable[[], list[dict[str, Any]]],
        hub: Hub,
        desk: Desk,
        gate: Gate,
        metrics: Metrics,
        settings: ServerSettings,
        websocket: Callable[[], str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.ready = False
        """Whether matches are taken; `/ready` says so."""
        self._list_lobbies = lobbies
        self._list_tournaments = tournaments
        self._hub = hub
        self._desk = desk
        self._gate = gate
        self._metrics = metrics
        self._settings = settings
        self._websocket = websocket
        self._tls = tls
        self._local = is_loopback(settings.host)
        self._runner: web.AppRunner | None = None
        self._ratings: dict[tuple[str | None, int | None], tuple[float, int, Any]] = {}
        self._ratings_lock = asyncio.Lock()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that are listened on."""
        assert self._runner is not None
        name = self._runner.addresses[0]
        return str(name[0]), int(name[1])

    async def start(self) -> None:
        """Listen. Raises `ServeError` where the address cannot be had."""
        app = web.Application(middlewares=[self._guard], client_max_size=1024)
        for path, handler in {
            "/": self._front,
            "/matches/{match}": self._match_page,
            "/health": self._health,
            "/ready": self._ready,
            "/metrics": self._show_metrics,
            "/api/games": self._games,
            "/api/matches": self._matches,
            "/api/matches/{match}": self._match,
            "/api/matches/{match}/record": self._record,
            "/api/ratings": self._show_ratings,
            "/api/lobbies": self._lobbies,
            "/api/tournaments": self._tournaments,
        }.items():
            app.router.add_get(path, handler)
        self._runner = web.AppRunner(
            app,
            handle_signals=False,
            access_log=None,
            keepalive_timeout=15.0,
            shutdown_timeout=2.0,
            max_line_size=4096,
        )
        await self._runner.setup()
        settings = self._settings
        try:
            site = web.TCPSite(self._runner, settings.host, settings.http_port, ssl_context=self._tls)
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise ServeError(cannot_listen(settings.host, settings.http_port, error)) from None

    def not_ready(self) -> None:
        """Say from now on that no matches are taken."""
        self.ready = False

    async def close(self) -> None:
        """Stop."""
        self.ready = False
        if self._runner is not None:
            await self._runner.cleanup()

    # Around every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            response = await handler(request)
        except RequestRefused as error:
            response = _error(error.wire, str(error))
        except web.HTTPException as error:
            code = "not_found" if error.status == 404 else "bad_message"
            response = _error(code, error.reason.lower(), status=error.status)
        except ArenaError as error:
            log.error("%s: %s", request.path, error)
            response = _error("internal", "the server failed; it has been logged")
        except Exception:
            log.exception("%s failed", request.path)
            response = _error("internal", "the server failed; it has been logged")
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Content-Security-Policy", pages.POLICY)
        self._metrics.requests.labels(str(response.status)).inc()
        return response

    def _check(self, request: web.Request) -> None:
        if "token" in request.query:
            raise RequestRefused(
                "bad_message", "token: it goes into the header Authorization, never into an address"
            )
        if self._local and not is_loopback(request.url.host or ""):
            # A page elsewhere that made its name lead here must not read what is meant for this machine.
            raise RequestRefused("forbidden", "host: this server is for this machine alone")
        identity = request[IDENTITY] = self._identity(request)
        whose = address_key(request.remote or "") if identity is None else identity.key
        if not self._gate.allow(f"{REQUEST}:{whose}"):
            raise RequestRefused("rate_limited", "too many requests; slow down")

    def _identity(self, request: web.Request) -> Identity | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer":
            raise RequestRefused("unauthorised", "Authorization: allowed is a bearer token")
        return self._gate.authenticate(token.strip(), address=address_key(request.remote or ""))

    def _require(self, request: web.Request, scope: str) -> None:
        identity = request[IDENTITY]
        if scope in self._gate.anonymous or (identity is not None and identity.may(scope)):
            return
        if identity is None:
            raise RequestRefused("unauthorised", f"a token with the scope {scope} is needed")
        raise RequestRefused("forbidden", f"the scope {scope} is needed, the token has {_scopes(identity)}")

    # Health and metrics

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _ready(self, request: web.Request) -> web.Response:
        if not self.ready:
            raise RequestRefused("shutdown", "the server takes no matches now")
        return web.json_response({"status": "ready"})

    async def _show_metrics(self, request: web.Request) -> web.Response:
        if not self._local:
            self._require(request, ADMIN)
        return web.Response(body=self._metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    # REST

    async def _games(self, request: web.Request) -> web.Response:
        from arena.cli.games import describe

        self._require(request, WATCH)
        return _json([describe(load_game(name)) for name in game_names()])

    async def _matches(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        limit = _number(request, "limit", 50, low=1, high=archive.MAX_LISTED)
        before = _number(request, "before", 0, low=0, high=2**53) or None
        game = request.query.get("game")
        if game is not None and game not in game_names():
            raise RequestRefused("unknown_game", f"game: got {game[:80]!r}, see /api/games")
        over = await self._desk.run(
            lambda store: archive.recent(store, limit=limit, game=game, before=before)
        )
        live = [{**row, "live": True} for row in self._hub.live() if game in (None, row["game"])]
        return _json({"live": live, "recent": over})

    async def _match(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        return _json(await self._find(request.match_info["match"]))

    async def _record(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        match = request.match_info["match"]
        home = self._desk.home
        if match in self._hub:
            identity = request[IDENTITY]
            if identity is None or not identity.may(ADMIN):
                text = "record: the match goes on; until it is over the record is for administrators"
                raise RequestRefused("forbidden", text)
            path = await self._desk.run(lambda store: archive.live_record_path(store, match, home=home))
        else:
            path = await self._desk.run(lambda store: archive.record_path(store, match, home=home))
        if path is None:
            raise _unknown(match)
        return web.Response(
            body=await asyncio.to_thread(read_bytes, path),
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{_file_name(match)}"'},
        )

    async def _show_ratings(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        game = request.query.get("game")
        if game is not None and game not in game_names():
            raise RequestRefused("unknown_game", f"game: got {game[:80]!r}, see /api/games")
        name = request.query.get("tournament")
        return _json(await self._standings(game, None if name is None else await self._tournament(name)))

    async def _tournament(self, name: str) -> int:
        """Return the number in the store of a tournament that is called `tN`."""
        number = name[1:]
        if name[:1] == "t" and number.isascii() and number.isdigit() and len(number) < 16:
            if await self._desk.run(
                lambda store: store.rows("select 1 from tournaments where id = ?", (int(number),))
            ):
                return int(number)
        raise RequestRefused("unknown_tournament", f"tournament: got {name[:80]!r}, see /api/tournaments")

    async def _lobbies(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        return _json(self._list_lobbies())

    async def _tournaments(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        over = await self._desk.run(archive.contests_over)
        return _json([*self._list_tournaments(), *over])

    # Pages

    async def _front(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        recent = await self._desk.run(lambda store: archive.recent(store, limit=50))
        text = pages.front(
            live=self._hub.live(),
            recent=recent,
            lobbies=self._list_lobbies(),
            websocket=self._websocket(),
        )
        return web.Response(text=text, content_type="text/html")

    async def _match_page(self, request: web.Request) -> web.Response:
        self._require(request, WATCH)
        match = request.match_info["match"]
        for row in self._hub.live():
            if row["match"] == match:
                text = pages.live_match(row, websocket=self._websocket())
                return web.Response(text=text, content_type="text/html")
        home = self._desk.home
        path = await self._desk.run(lambda store: archive.record_path(store, match, home=home))
        if path is None:
            raise _unknown(match)
        text = await asyncio.to_thread(lambda: to_html(read_record(path), PUBLIC))
        headers = {"Content-Security-Policy": pages.policy_of(text)}
        return web.Response(text=text, content_type="text/html", headers=headers)

    # What they share

    async def _find(self, match: str) -> dict[str, Any]:
        for row in self._hub.live():
            if row["match"] == match:
                return {**row, "live": True}
        found = await self._desk.run(lambda store: archive.find(store, match))
        if found is None:
            raise _unknown(match)
        return found

    async def _standings(self, game: str | None, tournament: int | None = None) -> Any:
        key = (game, tournament)
        async with self._ratings_lock:  # one at a time: working them out takes a processor
            made = self._ratings.get(key)
            if made is not None and time.monotonic() - made[0] < RATINGS_S:
                return made[2]
            played = await self._desk.run(archive.count)
            if made is None or made[1] != played:
                matches = await self._desk.run(
                    lambda store: store.rated_matches(game=game, tournament=tournament)
                )
                value = await asyncio.to_thread(archive.board, matches)
            else:
                value = made[2]
            if len(self._ratings) >= MAX_BOARDS:
                self._ratings.clear()
            self._ratings[key] = (time.monotonic(), played, value)
            return value


def _json(value: Any) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return web.Response(text=text, content_type="application/json")


def _error(code: str, message: str, *, status: int | None = None) -> web.Response:
    response = web.json_response({"code": code, "message": message}, status=status or STATUS.get(code, 400))
    if response.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if response.status == 429:
        response.headers["Retry-After"] = "1"
    return response


def _number(request: web.Request, name: str, default: int, *, low: int, high: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 16 or not low <= int(text) <= high:
        raise RequestRefused(
            "bad_message", f"{name}: got {text[:40]!r}, allowed are whole numbers from {low} to {high}"
        )
    return int(text)


def _unknown(match: str) -> RequestRefused:
    return RequestRefused("unknown_match", f"match: none has the id {match[:80]!r}")


def _scopes(identity: Identity) -> str:
    return ", ".join(sorted(identity.scopes))


def _file_name(match: str) -> str:
    safe = "".join(c for c in match if c.isascii() and (c.isalnum() or c in "-_."))
    return f"{safe[:80] or 'match'}.arena"
