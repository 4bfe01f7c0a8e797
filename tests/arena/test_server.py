"""The websockets transport, over real sockets on the loopback, with a session that only echoes."""

import asyncio
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus

from arena.auth import Gate, Identity, create_token, revoke_token
from arena.config import ServerSettings
from arena.errors import ServeError
from arena.metrics import Metrics
from arena.server import WebSocketServer, read_tls, url
from arena.serving import rates
from arena.store import Store
from clients.protocol.codec import JSON, MSGPACK
from clients.protocol.messages import MAX_CLIENT_BYTES
from tests.idle_clock import run

pytestmark = pytest.mark.usefixtures("no_blocking")


class Echo:
    """A session that sends back what it gets; some frames make it do something else."""

    def __init__(
        self, *, gate: Gate, wake: Callable[[], None], clock: Callable[[], float], **what: Any
    ) -> None:
        self.closing: tuple[int, str] | None = None
        self.identity: Identity | None = None
        self.greeted = True
        self.opened_at = clock()
        self.what = what
        self.received: list[bytes | str] = []
        self.endless = False
        self.pulled_bytes = 0
        self.gone = asyncio.Event()
        self._gate = gate
        self._wake = wake
        self._due: list[bytes | str] = []

    def receive(self, frame: bytes | str) -> None:
        self.received.append(frame)
        match frame:
            case "block":
                time.sleep(0.001)
            case "close":
                self.closing = (4000, "as you like")
            case "fail":
                self._due = [None]  # type: ignore[list-item]
            case "silent":
                self.greeted = False
            case "endless":
                self.endless = True
            case str() if frame.startswith("arena_"):
                self.identity = self._gate.authenticate(frame)
                self._due.append("known")
            case _:
                self._due.append(frame)
        self._wake()

    def frames_to_send(self) -> list[bytes | str]:
        if self.endless:
            self.pulled_bytes += 2**16
            return ["x" * 2**16]
        due, self._due = self._due, []
        return due

    def shutdown(self) -> None:
        self._due.append("the server stops")
        self.closing = (1012, "the server stops")

    def lost(self) -> None:
        self.gone.set()


class Running:
    """A server of echoes, and what a test asks of it."""

    def __init__(self, home: Path, tls: ssl.SSLContext | None, **settings: Any) -> None:
        # Without its table no token can be looked up; a server makes it before it listens.
        self.settings = ServerSettings(port=0, **{"connects_per_s": 1000.0} | settings)
        self.gate = Gate(home, rates=rates(self.settings))
        self.metrics = Metrics()
        self.sessions: list[Echo] = []
        self.tls = tls
        self.server = WebSocketServer(
            self._open, settings=self.settings, gate=self.gate, metrics=self.metrics, tls=tls
        )

    def _open(self, **what: Any) -> Echo:
        self.sessions.append(Echo(gate=self.gate, **what))
        return self.sessions[-1]

    def url(self, path: str = "") -> str:
        return url("wss" if self.tls else "ws", self.server.address) + path

    def connect(self, path: str = "", *, subprotocol: str = JSON, **more: Any) -> connect:
        return connect(self.url(path), subprotocols=[subprotocol], **more)  # type: ignore[list-item]

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def running(
    home: Path, *, tls: ssl.SSLContext | None = None, **settings: Any
) -> AsyncIterator[Running]:
    made = await asyncio.to_thread(Running, home, tls, **settings)
    await made.server.start()
    try:
        yield made
    finally:
        await made.server.close()
        made.gate.close()


async def half_open(address: tuple[str, int]) -> socket.socket:
    """Return a socket that has shaken hands, and whose peer will neither read nor answer from now on."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(raw, address)
    request = (
        f"GET / HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {JSON}\r\n\r\n"
    )
    await loop.sock_sendall(raw, request.encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += await loop.sock_recv(raw, 1)
    assert answer.startswith(b"HTTP/1.1 101")
    return raw


def masked(text: str) -> bytes:
    """Return a text frame as a client sends it, under a mask of zeros."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


async def closed(client: ClientConnection) -> tuple[int | None, str | None]:
    await client.wait_closed()
    return client.close_code, client.close_reason


@pytest.mark.parametrize(("subprotocol", "frame"), [(JSON, "ä text"), (MSGPACK, b"\x00\xff")])
def test_frames_go_in_and_out_in_both_encodings(tmp_path: Path, subprotocol: str, frame: bytes | str) -> None:
    async def main() -> None:
        async with running(tmp_path) as server, server.connect(subprotocol=subprotocol) as client:
            await client.send(frame)
            assert await client.recv() == frame
            (session,) = server.sessions
            assert session.what == {"subprotocol": subprotocol, "address": "127.0.0.1"}
            assert client.protocol.extensions == [], "no compression"
        assert session.gone.is_set() and server.server.connections == 0

    run(main())


def test_what_is_no_connection_for_agents_is_refused_before_there_is_one(tmp_path: Path) -> None:
    async def status(server: Running, path: str = "", **more: Any) -> int:
        try:
            async with connect(server.url(path), **({"subprotocols": [JSON]} | more)):
                return 101
        except InvalidStatus as error:
            return error.response.status_code

    async def main() -> None:
        async with running(tmp_path, origins=("https://good.example",)) as server:
            assert await status(server) == 101
            assert await status(server, "/ws") == 101
            assert await status(server, origin="https://good.example") == 101
            assert await status(server, origin="https://evil.example") == 403
            assert await status(server, origin="https://good.example.evil.example") == 403
            assert await status(server, origin="null") == 403
            assert await status(server, "/?token=x") == 400
            assert await status(server, "/admin") == 404
            assert await status(server, subprotocols=["arena.2.msgpack"]) == 400
            assert await status(server, subprotocols=None) == 400
            assert len(server.sessions) == 3
            assert server.counted("arena_connections_refused_total", cause="origin") == 3
            assert server.counted("arena_connections_refused_total", cause="query") == 1

    run(main())


def test_connections_are_limited_and_200_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, max_connections_per_address=3) as server:
            for _ in range(50):
                async with AsyncExitStack() as stack:
                    clients = [await stack.enter_async_context(server.connect()) for _ in range(3)]
                    with pytest.raises(InvalidStatus) as caught:
                        await server.connect()
                    assert caught.value.response.status_code == 503
                    await clients[0].send("x")
                    assert await clients[0].recv() == "x"
                # The server's side of a closed connection ends a moment after the client's.
                await asyncio.gather(*(session.gone.wait() for session in server.sessions))
                await until(lambda: not server.server.connections)
            assert len(server.sessions) == 150
            assert len(server.server._places) == 0

    run(main())


def test_200_connections_at_once_each_get_their_own(tmp_path: Path) -> None:
    async def one(server: Running, number: int) -> str:
        async with server.connect() as client:
            await client.send(str(number))
            return str(await client.recv())

    async def main() -> None:
        async with running(tmp_path) as server:
            got = await asyncio.gather(*(one(server, number) for number in range(200)))
            assert got == [str(number) for number in range(200)]

    asyncio.run(main())  # the kernel takes up to a second of its own to let so many in


def test_new_connections_of_one_address_are_slowed_down(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, connects_per_s=0.001) as server:
            async with server.connect():
                pass
            with pytest.raises(InvalidStatus) as caught:
                await server.connect()
            assert caught.value.response.status_code == 429

    run(main())


def test_an_oversized_frame_closes_its_connection_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server, server.connect() as big, server.connect() as other:
            await big.send("x" * MAX_CLIENT_BYTES)
            assert len(await big.recv()) == MAX_CLIENT_BYTES
            await big.send("x" * (MAX_CLIENT_BYTES + 1))
            assert (await closed(big))[0] == 1009
            await server.sessions[0].gone.wait()
            await other.send("still here")
            assert await other.recv() == "still here"

    run(main())


def test_text_that_is_no_utf8_and_fragments_without_end_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server, server.connect() as client:
            await client.send(b"\xff\xfe", text=True)
            assert (await closed(client))[0] == 1007
            async with server.connect() as other:
                with suppress(ConnectionClosed):
                    await other.send("x" * 1000 for _ in range(1000))
                assert (await closed(other))[0] == 1009

    run(main())


def test_a_half_open_connection_is_noticed_by_its_missing_heartbeat(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, heartbeat_s=0.4) as server, server.connect() as healthy:
            raw = await half_open(server.server.address)
            await until(lambda: len(server.sessions) == 2)
            await server.sessions[1].gone.wait()
            assert not server.sessions[0].gone.is_set()
            await healthy.send("x")
            assert await healthy.recv() == "x"
            raw.close()

    run(main())


def test_a_client_that_never_reads_is_cut_off_holds_up_nobody_and_fills_no_memory(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, heartbeat_s=2) as server, server.connect() as healthy:
            raw = await half_open(server.server.address)
            await asyncio.get_running_loop().sock_sendall(raw, masked("endless"))
            await until(lambda: len(server.sessions) == 2 and server.sessions[1].endless)
            slow = server.sessions[1]
            served = 0
            while not slow.gone.is_set():
                await healthy.send("x")
                assert await healthy.recv() == "x"
                served += 1
                await asyncio.sleep(0.01)
            assert served > 10
            assert slow.pulled_bytes < 2**25, "what the kernel took, and no more"
            raw.close()

    run(main())


def test_the_session_says_how_its_connection_closes(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server, server.connect() as client:
            await client.send("x")
            await client.send("close")
            assert await client.recv() == "x"
            assert await closed(client) == (4000, "as you like")

    run(main())


def test_a_session_that_fails_costs_its_own_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with running(tmp_path) as server, server.connect() as bad, server.connect() as good:
            await bad.send("fail")
            assert await closed(bad) == (1011, "the server failed")
            await good.send("x")
            assert await good.recv() == "x"

    run(main())
    assert "a connection failed" in caplog.text


def test_these_tests_notice_what_blocks_the_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server, server.connect() as client:
            await client.send("block")
            assert (await closed(client))[0] == 1011

    run(main())


def test_who_says_nothing_is_cut_off(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, heartbeat_s=0.4) as server, server.connect() as client:
            await client.send("silent")
            await client.wait_closed()
            assert server.counted("arena_connections_dropped_total", cause="silent") == 1

    run(main())


def test_a_revoked_token_closes_its_connections_and_no_others(tmp_path: Path) -> None:
    def tokens() -> list[str]:
        with Store(tmp_path) as store:
            return [create_token(store, n, scopes=["play"], life_s=None, now=0) for n in ("a", "b")]

    def revoke() -> None:
        with Store(tmp_path) as store:
            revoke_token(store, "a", now=0)

    async def main() -> None:
        first, second = await asyncio.to_thread(tokens)
        async with running(tmp_path, heartbeat_s=1) as server, server.connect() as a, server.connect() as b:
            await a.send(first)
            await b.send(second)
            assert [await a.recv(), await b.recv()] == ["known", "known"]
            await asyncio.to_thread(revoke)
            assert await closed(a) == (1008, "the token is no longer valid")
            await b.send("x")
            assert await b.recv() == "x"

    run(main())


def test_a_server_that_stops_tells_its_clients_and_takes_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server:
            client = await server.connect()
            where = server.url()
            await server.server.close()
            assert await client.recv() == "the server stops"
            assert await closed(client) == (1012, "the server stops")
            assert server.sessions[0].gone.is_set()
            with pytest.raises(OSError):
                await connect(where, subprotocols=[JSON])  # type: ignore[list-item]

    run(main())


def test_a_stopping_server_does_not_wait_for_who_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.SHUTDOWN_S", 0.2)

    async def main() -> None:
        async with running(tmp_path) as server:
            raw = await half_open(server.server.address)
            await asyncio.get_running_loop().sock_sendall(raw, masked("endless"))
            await until(lambda: bool(server.sessions) and server.sessions[0].pulled_bytes >= 2**18)
            await server.server.close()
            assert server.server.connections == 0
            raw.close()

    run(main())


def test_an_address_that_cannot_be_had_is_one_clear_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server:
            port = server.server.address[1]
            for settings, told in [
                (ServerSettings(port=port), f"127.0.0.1 port {port}: cannot listen: the port is in use"),
                (
                    ServerSettings(host="192.0.2.1", port=0),
                    "192.0.2.1 port 0: cannot listen: no such address",
                ),
                (
                    ServerSettings(host="no.such.host.invalid", port=0),
                    "no.such.host.invalid: no such address",
                ),
            ]:
                other = WebSocketServer(
                    server._open, settings=settings, gate=server.gate, metrics=server.metrics
                )
                with pytest.raises(ServeError) as caught:
                    await other.start()
                assert told in str(caught.value) and "\n" not in str(caught.value)
                assert caught.value.exit_code == 2

    run(main())


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a certificate for localhost that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    try:
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            ],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return cert, key


def test_tls_by_a_certificate(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    context = read_tls(cert, key)
    trusting = ssl.create_default_context(cafile=cert)

    async def main() -> None:
        async with running(tmp_path, tls=context) as server:
            async with server.connect(ssl=trusting) as client:
                await client.send("x")
                assert await client.recv() == "x"
            with pytest.raises(ssl.SSLCertVerificationError):
                await server.connect()
            with pytest.raises(InvalidMessage):
                await connect(server.url().replace("wss:", "ws:"), subprotocols=[JSON])  # type: ignore[list-item]
            assert len(server.sessions) == 1

    run(main())


def test_certificates_that_cannot_be_used_are_one_clear_line(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    other, locked, text = tmp_path / "other.pem", tmp_path / "locked.pem", tmp_path / "x.pem"
    text.write_text("nothing")
    subprocess.run(
        ["openssl", "ecparam", "-genkey", "-name", "prime256v1", "-out", str(other)],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        ["openssl", "ec", "-in", str(key), "-aes128", "-passout", "pass:secret", "-out", str(locked)],
        check=True,
        capture_output=True,
    )
    for files, told in [
        ((None, key), "--tls-key: it goes with --tls-cert"),
        ((tmp_path / "no.pem", key), "there is no such file"),
        ((cert, tmp_path / "no.pem"), "--tls-key"),
        ((text, key), "no certificate and key in PEM"),
        ((cert, other), "the key is not the certificate's"),
        ((cert, locked), "locked by a password"),
        ((cert, None), "no certificate and key in PEM"),
    ]:
        with pytest.raises(ServeError) as caught:
            read_tls(*files)
        assert told in str(caught.value) and "\n" not in str(caught.value)
    assert read_tls(None, None) is None


def test_urls() -> None:
    assert url("ws", ("127.0.0.1", 8420)) == "ws://127.0.0.1:8420"
    assert url("wss", ("::1", 1)) == "wss://[::1]:1"
