"""A connection to a server that comes back by itself: one socket after another, under one state machine."""

import asyncio
import contextlib
import logging
import ssl as tls
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from clients.dial import Unreachable, dial
from clients.errors import BadAddress, Disconnected, ProtocolError
from clients.protocol.client import ClientConnection
from clients.protocol.messages import Authenticated, Error, Message, Welcome
from games.text import neutralise

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection as Socket

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 2.0
"""Between two attempts to come back."""

Status = Literal["connected", "reconnecting", "closed"]


class Link:
    """The sockets of one connection.

    Args:
        url: a server's, checked.
        connection: the protocol; what it wants sent is sent, what it makes of frames is handed on.
        reconnect_s: seconds after a loss within which it tries to come back; None is the server's grace.
        heartbeat_s: seconds between two pings, and until a silent socket is given up.
        open_timeout_s: seconds that one attempt to connect may take.
        ssl: for `wss://`; None trusts what the system trusts.
        on_messages: given what came, in order.
        on_status: told of a new status, and why.
    """

    def __init__(
        self,
        url: str,
        *,
        connection: ClientConnection,
        reconnect_s: float | None,
        heartbeat_s: float,
        open_timeout_s: float,
        ssl: tls.SSLContext | None,
        on_messages: Callable[[list[Message]], None],
        on_status: Callable[[Status, str], None],
    ) -> None:
        self.url = url
        self.status: Status = "reconnecting"
        self._connection = connection
        self._reconnect_s = reconnect_s
        self._heartbeat_s = heartbeat_s
        self._open_timeout_s = open_timeout_s
        self._ssl = ssl
        self._on_messages = on_messages
        self._on_status = on_status
        self._due = asyncio.Event()
        self._ever_ready = False
        self._heard = False
        """Whether this socket brought more than the handshake."""
        self._grace_s = 0.0

    async def run(self) -> None:
        """Hold the connection until it ends for good: raises the `ClientError` that says why, never returns."""
        try:
            await self._session()
        except Unreachable as error:
            if not self._ever_ready:
                raise Disconnected(str(error)) from None
        while True:
            await self._come_back()

    def wake(self) -> None:
        """Take note that there is something to send."""
        self._due.set()

    def say(self, status: Status, why: str) -> None:
        """Tell of a new status, or why it stays what it was."""
        if status != self.status or why:
            self.status = status
            self._on_status(status, why)

    async def _come_back(self) -> None:
        """Have one session that hears more than the handshake, however often it takes."""
        import stamina

        # Stamina tells its log of every wait; that is this program's log, and nobody may have set it up.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        grace_s = self._grace_s if self._reconnect_s is None else self._reconnect_s
        try:
            async for attempt in stamina.retry_context(
                on=Unreachable,
                attempts=None,
                timeout=grace_s,
                wait_initial=FIRST_WAIT_S,
                wait_max=LONGEST_WAIT_S,
                wait_jitter=FIRST_WAIT_S,
            ):
                with attempt:
                    try:
                        await self._session()
                    except Unreachable:
                        if not self._heard:
                            raise
        except Unreachable as error:
            raise Disconnected(f"{error}; it was tried for {grace_s:g} s") from None

    async def _session(self) -> None:
        """Have one socket until it is lost. Raises `Unreachable` then, and `ClientError` where it ends for good."""
        from websockets.exceptions import ConnectionClosed

        self._heard = False
        try:
            socket = await dial(
                self.url,
                subprotocol=self._connection.subprotocol,
                heartbeat_s=self._heartbeat_s,
                open_timeout_s=self._open_timeout_s,
                ssl=self._ssl,
            )
        except BadAddress as error:
            # It was good before: what answers now may stand in for a server that is being started again.
            raise Unreachable(str(error)) if self._ever_ready else error from None
        self._connection.start()
        writer = asyncio.create_task(self._write(socket))
        late = asyncio.get_running_loop().call_later(self._open_timeout_s, self._give_up_handshake, socket)
        why = ""
        try:
            async for frame in socket:
                self._take(self._connection.receive(frame))
                self._due.set()
        except ConnectionClosed:
            pass
        except ProtocolError as error:
            if not self._ever_ready:
                raise
            why = str(error)
            self._heard = False
        finally:
            late.cancel()
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
                await writer
            self._connection.welcome = None
            await socket.close(1002 if why else 1000, why.encode()[:100].decode(errors="ignore"))
        why = why or neutralise(socket.close_reason or "").strip()[:200] or "the connection was lost"
        self.say("reconnecting", why)
        raise Unreachable(f"{self.url}: {why}")

    def _give_up_handshake(self, socket: "Socket") -> None:
        if not self._connection.ready:
            socket.transport.abort()

    async def _write(self, socket: "Socket") -> None:
        while True:
            for frame in self._connection.frames_to_send():
                await socket.send(frame)
            await self._due.wait()
            self._due.clear()

    def _take(self, messages: list[Message]) -> None:
        if self._ever_ready and not all(isinstance(one, Welcome | Authenticated | Error) for one in messages):
            self._heard = True
        self._on_messages(messages)
        if self._connection.ready and self.status != "connected":
            self._ever_ready = True
            assert self._connection.welcome is not None
            self._grace_s = self._connection.welcome.grace_s
            self.say("connected", "")
