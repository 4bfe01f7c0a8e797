"""The application in a browser: on this machine alone, for few at a time, each window a process of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from clients.spectator.web import HOST, WebError, command_line, is_web, listen, serve
from tests.clients.spectator.showing import write

pytestmark = pytest.mark.asyncio

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def web(*arguments: str, sessions: int = 2, token: str = "") -> AsyncIterator[str]:
    """Serve a command until the block ends."""
    ready: asyncio.Queue[str] = asyncio.Queue()
    stop = asyncio.Event()
    task = asyncio.create_task(
        serve(
            arguments,
            title="a <title>",
            port=0,
            sessions=sessions,
            token=token,
            ready=ready.put_nowait,
            stop=stop,
        )
    )
    first = asyncio.ensure_future(ready.get())
    await asyncio.wait([task, first], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        first.cancel()
        task.result()
    try:
        yield first.result()
    finally:
        stop.set()
        await task


async def screen(socket: aiohttp.ClientWebSocketResponse, words: bytes) -> bytes:
    """Read what is drawn until `words` are in it."""
    drawn = b""
    while words not in drawn:
        message = await socket.receive()
        assert message.type == aiohttp.WSMsgType.BINARY, (message, drawn[-2000:])
        drawn += message.data
    return drawn


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return write(tmp_path, "kuhn", seats=2)


async def test_a_window_shows_the_application_and_takes_keys(record: Path) -> None:
    async with web("watch", str(record)) as url, aiohttp.ClientSession() as client:
        async with client.get(url) as page:
            text = await page.text()
            assert page.status == 200 and "a &lt;title&gt;" in text
            assert "https://" not in text, "nothing is loaded from elsewhere"
            assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        async with client.get(f"{url}/static/js/textual.js") as script:
            assert script.status == 200
        async with client.ws_connect(f"{url}/ws?width=100&height=30", headers={"Origin": url}) as socket:
            await screen(socket, b"Kuhn poker")
            await socket.send_json(["stdin", "?"])
            await screen(socket, b"Keys")
            await socket.send_json(["resize", {"width": 90, "height": 20}])
            await socket.send_json(["ping", 1])
            await socket.send_json(["stdin", "?"])
            await socket.send_json(["stdin", "q"])
            while not socket.closed:
                await socket.receive()


async def test_pages_from_elsewhere_get_no_session(record: Path) -> None:
    async with web("watch", str(record)) as url, aiohttp.ClientSession() as client:
        for headers in ({"Host": "evil.example"}, {"Host": f"evil.example:{url.rpartition(':')[2]}"}):
            async with client.get(url, headers=headers) as page:
                assert page.status == 403
        for headers in (
            {},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1"},
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{url}/ws", headers=headers)
            assert refused.value.status == 403


async def test_there_are_so_many_windows_and_no_more(record: Path) -> None:
    async with web("watch", str(record), sessions=1) as url, aiohttp.ClientSession() as client:
        async with client.ws_connect(f"{url}/ws", headers={"Origin": url}) as socket:
            await screen(socket, b"Kuhn poker")
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{url}/ws", headers={"Origin": url})
            assert refused.value.status == 503
            async with client.get(url) as page:
                assert page.status == 503 and "1 windows are open" in await page.text()
        while True:
            async with client.get(url) as page:
                if page.status == 200:
                    break
            await asyncio.sleep(0.05)


async def test_what_is_no_message_ends_that_window_alone(record: Path) -> None:
    async with web("watch", str(record)) as url, aiohttp.ClientSession() as client:
        for nonsense in ("{", "[]", '["stdin", 5]'):
            async with client.ws_connect(
                f"{url}/ws?width=x&height=999999", headers={"Origin": url}
            ) as socket:
                await socket.send_str(nonsense)
                while not socket.closed:
                    await socket.receive()
        async with client.get(url) as page:
            assert page.status == 200


async def test_a_port_that_cannot_be_had_and_a_cap_that_is_none_are_one_line() -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WebError, match=f"cannot listen on {HOST}:{port}") as error:
            await serve(["watch"], title="t", port=port)
        assert "\n" not in str(error.value)
    for port in (-1, 65536):
        with pytest.raises(WebError, match="allowed are 0 to 65535"):
            await serve(["watch"], title="t", port=port)
    for sessions in (0, 65):
        with pytest.raises(WebError, match="allowed are 1 to 64"):
            await serve(["watch"], title="t", port=0, sessions=sessions)


async def test_a_command_line_is_quoted_and_holds_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sys.executable in command_line(["watch", "a b; rm"]) and "'a b; rm'" in command_line(
        ["watch", "a b; rm"]
    )
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    assert not is_web()
    monkeypatch.setenv("TEXTUAL_DRIVER", "x")
    assert is_web()
