"""The short ways onto and off the wire, beside those of the library."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from arena.wire import framed, short_message
from clients.protocol.codec import JSON
from tests.arena.test_server import running


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 70000])
@pytest.mark.parametrize("kind", [bytes, str])
def test_a_message_is_framed_as_the_library_frames_it(size: int, kind: type[bytes] | type[str]) -> None:
    message = b"\x00" * size if kind is bytes else "x" * size
    code = Opcode.BINARY if kind is bytes else Opcode.TEXT
    data = message if isinstance(message, bytes) else message.encode()
    assert b"".join(framed(message)) == Frame(code, data).serialize(mask=False)


@given(st.one_of(st.binary(max_size=300), st.text(st.characters(codec="utf-8"), max_size=300)))
def test_any_message_is_framed_as_the_library_frames_it(message: bytes | str) -> None:
    code = Opcode.BINARY if isinstance(message, bytes) else Opcode.TEXT
    data = message if isinstance(message, bytes) else message.encode()
    assert b"".join(framed(message)) == Frame(code, data).serialize(mask=False)


@given(
    st.binary(min_size=1, max_size=200),
    st.sampled_from([Opcode.BINARY, Opcode.TEXT, Opcode.PING]),
    st.booleans(),
)
def test_a_short_message_is_read_as_the_library_reads_it(data: bytes, code: Opcode, fin: bool) -> None:
    frame = Frame(code, data[:125] if code is Opcode.PING else data, fin or code is Opcode.PING)
    sent = frame.serialize(mask=True)
    whole = code is Opcode.BINARY and frame.fin and len(data) < 126
    assert short_message(sent) == (data if whole else None)
    assert short_message(sent[:-1]) is short_message(sent + b"x") is None
    assert short_message(frame.serialize(mask=False)) is None


def test_messages_in_one_piece_and_in_several_keep_their_order(tmp_path: Path) -> None:
    sent = [str(number) for number in range(30)]

    async def pieces(text: str) -> AsyncIterator[str]:
        yield text[:1]
        yield text[1:]

    async def main() -> None:
        async with running(tmp_path) as server, server.connect(subprotocol=JSON) as client:
            for number, text in enumerate(sent):
                await client.send(pieces(text) if number in (7, 8, 20) else text)
            assert [await client.recv() for _ in sent] == sent
            assert server.sessions[0].received == sent
            assert server.server.received == len(sent)

    asyncio.run(main())


def test_what_comes_with_the_handshake_is_taken_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as server:
            host, port = server.server.address
            reader, writer = await asyncio.open_connection(host, port)
            request = (
                f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
                f"Sec-WebSocket-Protocol: {JSON}\r\n\r\n"
            )
            early = b"".join(Frame(Opcode.TEXT, text).serialize(mask=True) for text in (b"first", b"second"))
            writer.write(request.encode() + early)
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(2 + 5) == b"".join(framed("first"))
            assert await reader.readexactly(2 + 6) == b"".join(framed("second"))
            writer.write(Frame(Opcode.TEXT, b"third").serialize(mask=True))
            assert await reader.readexactly(2 + 5) == b"".join(framed("third"))
            writer.close()

    asyncio.run(main())
