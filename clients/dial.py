"""Opening a websocket to a server, and saying in one line why there is none."""

import socket
import ssl as tls
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clients.errors import BadAddress, ClientError, Disconnected, Refused
from clients.protocol.messages import MAX_SERVER_BYTES, VERSION
from games.text import neutralise

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection as Socket


class Unreachable(Disconnected):
    """No connection just now: it may be tried again."""


def check_address(url: str) -> str:
    """Return `url` where it can be a server's. Raises `BadAddress`."""
    shown = neutralise(url)[:200]
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadAddress(f"URL: got {shown!r}, which is none ({error})") from None
    if parts.scheme not in ("ws", "wss"):
        other = {"http": "ws", "https": "wss"}.get(parts.scheme)
        hint = "" if other is None else f"; try {other}://{neutralise(parts.netloc)[:100]}"
        raise BadAddress(f"URL: got {shown!r}, the form is ws://HOST:PORT or wss://HOST:PORT{hint}")
    if not host:
        raise BadAddress(f"URL: got {shown!r}, a host is needed as in ws://127.0.0.1:8765")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadAddress(
            f"URL: got {parts.scheme}://{neutralise(host)[:100]} with more than host, port and path; "
            "nothing secret belongs into it, a token is given apart"
        )
    return url


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def dial(
    url: str,
    *,
    subprotocol: str,
    heartbeat_s: float,
    open_timeout_s: float,
    ssl: tls.SSLContext | None,
) -> "Socket":
    """Return an open websocket.

    Raises `Unreachable` where it may be tried again, `Refused` where the server wants nobody, `BadAddress` where
    what answers is no such server.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException
    from websockets.typing import Subprotocol

    trust: dict[str, Any] = {} if ssl is None else {"ssl": ssl}
    try:
        opened = await connect(
            url,
            subprotocols=[Subprotocol(subprotocol)],
            max_size=MAX_SERVER_BYTES,
            compression=None,
            ping_interval=heartbeat_s,
            ping_timeout=heartbeat_s,
            open_timeout=open_timeout_s,
            close_timeout=2,
            proxy=None if is_loopback(url) else True,
            process_exception=lambda error: error,
            **trust,
        )
    except (OSError, WebSocketException) as error:
        raise explain(url, error, open_timeout_s=open_timeout_s) from None
    if opened.subprotocol != subprotocol:
        await opened.close()
        raise Refused("version", f"{url} does not speak the arena's protocol, version {VERSION}")
    return opened


def explain(url: str, error: Exception, *, open_timeout_s: float) -> ClientError:
    """Return why no websocket was opened, in one line."""
    from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, ProxyError

    hint = "" if url.startswith("wss:") else "; if TLS is spoken there, use wss://"
    text = neutralise(str(error))[:200]
    match error:
        case InvalidURI():
            return BadAddress(
                f"URL: got {neutralise(url)[:200]!r}, the form is ws://HOST:PORT or wss://HOST:PORT"
            )
        case InvalidStatus():
            status = error.response.status_code
            if status in (401, 403):
                return Refused("forbidden", f"{url} answers HTTP {status}")
            if status == 429 or status >= 500:
                return Unreachable(f"{url}: the server takes no connections just now (HTTP {status})")
            return BadAddress(f"{url}: what answers there is no arena server (HTTP {status})")
        case ProxyError():
            return Unreachable(f"{url}: no connection through the proxy: {text}")
        case InvalidHandshake() if isinstance(error.__cause__, EOFError | OSError):
            return Unreachable(f"{url}: the connection was closed before there was an answer{hint}")
        case InvalidHandshake():
            return BadAddress(f"{url}: what answers there is no websocket server{hint}")
        case tls.SSLCertVerificationError():
            why = neutralise(error.verify_message or str(error))[:200]
            return BadAddress(f"{url}: the server's certificate is not trusted: {why}")
        case tls.SSLError():
            return BadAddress(f"{url}: what answers there speaks no TLS; use ws:// or another port")
        case socket.gaierror():
            return Unreachable(f"{url}: the host is not known")
        case TimeoutError():
            return Unreachable(f"{url}: no answer within {open_timeout_s:g} s")
        case OSError() if isinstance(error, ConnectionRefusedError) or "refused" in text.lower():
            return Unreachable(f"{url}: nothing listens there (connection refused)")
    return Unreachable(f"{url}: no connection: {text or type(error).__name__}")
