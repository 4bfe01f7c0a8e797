"""textual-serve with bounds: whose pages may open a session, how many there are, and how each ends (see `web`)."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server

from clients.spectator.web import STOP_S

log = logging.getLogger("arena.web")

SMALLEST, LARGEST = (20, 8), (500, 200)
"""Columns and rows that a window may ask for."""
MAX_MESSAGE_BYTES = 256 * 1024

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="/static/css/xterm.css">
<style>
@font-face {{ font-family: "Roboto Mono"; src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf"); }}
html, body {{ margin: 0; height: 100%; background: #121212; color: #e0e0e0; font: 16px "Roboto Mono", monospace; }}
#over {{ display: none; padding: 2rem; }}
#over a {{ color: inherit; }}
body.-closed #over {{ display: block; }}
body.-closed #terminal {{ display: none; }}
#terminal {{ height: 100vh; }}
</style>
<script src="/static/js/textual.js"></script>
</head>
<body>
<div id="over">This session has ended. <a href="/">Begin another</a>.</div>
<div id="terminal" class="textual-terminal" data-session-websocket-url="{socket}" data-font-size="{size}"></div>
</body>
</html>
"""
FULL = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><p>{sessions} windows are open, and no more are served. Close one and reload.</p></body></html>
"""


def make_server(
    command: str, *, url: str, title: str, sessions: int, environment: Mapping[str, str]
) -> "WebServer":
    """Return a server for `command`, at `url`, for so many windows."""
    return WebServer(command, url=url, title=title, sessions=sessions, environment=environment)


class Service(AppService):
    """One window's process."""

    def __init__(self, command: str, *, environment: Mapping[str, str], **more: Any) -> None:
        super().__init__(command, **more)
        self._extra = dict(environment)

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        return {**super()._build_environment(width, height), **self._extra}

    async def stop(self) -> None:
        """Ask the process to end, and end it where it does not."""
        try:
            async with asyncio.timeout(STOP_S):
                await super().stop()
        except TimeoutError:
            log.warning("a session did not end by itself within %g s", STOP_S)
        finally:
            process = self._process
            if process is not None and process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


class WebServer(Server):
    """Serves one command to at most `sessions` windows of browsers on this machine."""

    def __init__(
        self, command: str, *, url: str, title: str, sessions: int, environment: Mapping[str, str]
    ) -> None:
        parts = urlsplit(url)
        super().__init__(
            command, host=parts.hostname or "", port=parts.port or 0, title=title, public_url=url
        )
        self.sessions = sessions
        self.open = 0
        """How many windows there are."""
        self._environment = environment
        self._hosts = {f"{name}:{parts.port}" for name in (parts.hostname, "localhost")}
        self._sockets: set[web.WebSocketResponse] = set()

    async def application(self) -> web.Application:
        """Return what aiohttp is to run."""
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/", self.index),
                web.get("/ws", self.handle_websocket),
                web.static("/static", self.statics_path),
            ]
        )
        return app

    async def close(self) -> None:
        """Close every window."""
        for one in list(self._sockets):
            await one.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.host not in self._hosts:
            raise web.HTTPForbidden(text="this page is for this machine alone\n")
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    async def index(self, request: web.Request) -> web.Response:
        """Return the page."""
        if self.open >= self.sessions:
            text = FULL.format(title=escape(self.title), sessions=self.sessions)
            return web.Response(text=text, content_type="text/html", status=503)
        socket = f"ws://{request.host}/ws"
        size = _whole(request.query.get("fontsize"), 16, low=8, high=40)
        page = PAGE.format(title=escape(self.title), socket=escape(socket), size=size)
        # The terminal sets styles of its own, on elements; scripts and fonts come from here alone.
        policy = (
            f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
            f"img-src 'self' data:; connect-src {socket}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store"}
        return web.Response(text=page, content_type="text/html", headers=headers)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run the command for one window."""
        if request.headers.get("Origin") not in {f"http://{host}" for host in self._hosts}:
            raise web.HTTPForbidden(text="only this page opens a session\n")
        if self.open >= self.sessions:
            raise web.HTTPServiceUnavailable(text=f"{self.sessions} windows are open, no more are served\n")
        self.open += 1
        websocket = web.WebSocketResponse(heartbeat=15, max_msg_size=MAX_MESSAGE_BYTES)
        self._sockets.add(websocket)
        service: Service | None = None
        try:
            await websocket.prepare(request)
            service = Service(
                self.command,
                environment=self._environment,
                write_bytes=websocket.send_bytes,
                write_str=websocket.send_str,
                close=websocket.close,
                download_manager=self.download_manager,
            )
            await service.start(
                _whole(request.query.get("width"), 80, low=SMALLEST[0], high=LARGEST[0]),
                _whole(request.query.get("height"), 24, low=SMALLEST[1], high=LARGEST[1]),
            )
            await self._process_messages(websocket, service)
        except (
            ConnectionError,
            json.JSONDecodeError,
            AssertionError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            log.info("a session ended: %s", type(error).__name__)
        finally:
            if service is not None:
                await service.stop()
            await websocket.close()
            self._sockets.discard(websocket)
            self.open -= 1
        return websocket


def _whole(text: str | None, default: int, *, low: int, high: int) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 6:
        return default
    return min(max(int(text), low), high)
