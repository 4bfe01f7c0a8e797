"""What a server says of itself over HTTP: matches, who waits, ratings, tournaments. Read only, and polled.

The screens ask for `Facts` and know nothing of where they come from. A token goes into the header
`Authorization` and nowhere else; a redirect is not followed, for it would carry the token along.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

from clients.dial import Unreachable, check_address, dial
from clients.errors import BadAddress, Disconnected, ProtocolError, Refused
from clients.protocol.client import ClientConnection
from games.text import neutralise

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_S = 10.0
MAX_BYTES = 8 * 1024 * 1024
"""Bytes of one answer that are read."""


class Facts(ABC):
    """What a server, or a home directory, can tell. Every method may raise a `ClientError`.

    Rows are those of the server's REST; unknown keys are ignored by whoever shows them.
    """

    name: str
    """Where they are from, for a title."""

    @abstractmethod
    async def matches(self, *, game: str | None = None) -> dict[str, list[dict[str, Any]]]:
        """Return `live` and `recent` matches."""

    @abstractmethod
    async def lobbies(self) -> list[dict[str, Any]]:
        """Return who waits for players."""

    @abstractmethod
    async def ratings(self, *, tournament: str | None = None) -> dict[str, Any]:
        """Return `standings` and `warnings`, over everything or over one tournament (by its id)."""

    @abstractmethod
    async def tournaments(self) -> list[dict[str, Any]]:
        """Return the tournaments, those that run first."""

    async def close(self) -> None:
        """Let go of what is held."""
        return


class RestClient(Facts):
    """The facts of a server.

    Args:
        url: of the server's websocket side; it says where HTTP is spoken.
        token: shown to the server; empty shows none.
        http: where HTTP is spoken, where the server cannot know, as behind a proxy.
    """

    def __init__(self, url: str, *, token: str = "", http: str = "") -> None:
        self.url = check_address(url)
        self.name = urlsplit(url).netloc
        self._base = check_http(http).rstrip("/") if http else ""
        self._token = token
        self._session: aiohttp.ClientSession | None = None

    async def matches(self, *, game: str | None = None) -> dict[str, list[dict[str, Any]]]:
        query = "" if game is None else f"&game={quote(game, safe='')}"
        found = _kind(await self.get(f"/api/matches?limit=50{query}"), dict)
        return {key: _rows(found.get(key, [])) for key in ("live", "recent")}

    async def lobbies(self) -> list[dict[str, Any]]:
        return _rows(await self.get("/api/lobbies"))

    async def ratings(self, *, tournament: str | None = None) -> dict[str, Any]:
        query = "" if tournament is None else f"?tournament={quote(tournament, safe='')}"
        found = _kind(await self.get(f"/api/ratings{query}"), dict)
        return {**found, "standings": _rows(found.get("standings", []))}

    async def tournaments(self) -> list[dict[str, Any]]:
        return _rows(await self.get("/api/tournaments"))

    async def get(self, path: str) -> Any:
        """Return what the server answers at a path, as JSON.

        Raises `Disconnected` where it does not answer just now, `Refused` where it says no, `ProtocolError` for an
        answer that is none.
        """
        import aiohttp

        if not self._base:
            self._base = await self._find()
        if self._session is None:
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            self._session = aiohttp.ClientSession(
                headers=headers, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
            )
        try:
            async with self._session.get(f"{self._base}{path}", allow_redirects=False) as answer:
                text = await answer.content.read(MAX_BYTES + 1)
                while len(text) <= MAX_BYTES and (more := await answer.content.read(MAX_BYTES + 1)):
                    text += more
                status = answer.status
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            why = neutralise(str(error))[:200] or f"no answer within {TIMEOUT_S:g} s"
            raise Disconnected(f"{self._base}: {why}") from None
        if len(text) > MAX_BYTES:
            raise ProtocolError("too_large", f"{self._base}{path}: an answer of more than {MAX_BYTES} bytes")
        return self._read(path, status, text)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _read(self, path: str, status: int, text: bytes) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if status == 200 and value is not None:
            return value
        if isinstance(value, dict) and isinstance(value.get("code"), str):
            said = neutralise(str(value.get("message", "")))[:300]
            if status in (429, 503):
                raise Unreachable(f"{self._base}: {said}")
            raise Refused(neutralise(value["code"])[:40], said)
        if status == 429 or status >= 500:
            raise Unreachable(f"{self._base}: the server answers HTTP {status} just now")
        raise ProtocolError(
            "bad_message", f"{self._base}: what answers there is no arena server (HTTP {status})"
        )

    async def _find(self) -> str:
        """Ask the websocket side where HTTP is spoken."""
        from websockets.exceptions import ConnectionClosed

        hello = ClientConnection(client="arena watch")
        hello.start()
        socket = await dial(
            self.url,
            subprotocol=hello.subprotocol,
            heartbeat_s=TIMEOUT_S,
            open_timeout_s=TIMEOUT_S,
            ssl=None,
        )
        try:
            async with asyncio.timeout(TIMEOUT_S):
                for frame in hello.frames_to_send():
                    await socket.send(frame)
                while hello.welcome is None:
                    hello.receive(await socket.recv())
        except (ConnectionClosed, TimeoutError):
            raise Unreachable(f"{self.url}: the connection was closed before there was an answer") from None
        finally:
            await socket.close()
        port = hello.welcome.http_port
        if not port:
            raise BadAddress(
                f"{self.url}: it does not say where it speaks HTTP; give the address with --http"
            )
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{'https' if parts.scheme == 'wss' else 'http'}://{host}:{port}"


def check_http(url: str) -> str:
    """Return `url` where it can be the HTTP side of a server. Raises `BadAddress`."""
    shown = neutralise(url)[:200]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadAddress(f"--http: got {shown!r}, which is no URL ({error})") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadAddress(f"--http: got {shown!r}, the form is http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadAddress("--http: nothing but host, port and path goes there; a token is given apart")
    return url


def _kind(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ProtocolError("bad_message", "what the server answers is not what an arena server says")
    return value


def _rows(value: Any) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", [_kind(row, dict) for row in _kind(value, list)])
