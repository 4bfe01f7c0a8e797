"""Where `websockets` is helped along: short ways for what a busy server does most, whole messages in and out.

Everything else (handshake, control frames, fragments, closing, limits) stays with the library.
"""

from collections.abc import Callable

from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State

Message = bytes | str

_WHOLE_BINARY = 0x80 | int(Opcode.BINARY)
_WHOLE_TEXT = 0x80 | int(Opcode.TEXT)
_MESSAGES = (Opcode.BINARY, Opcode.TEXT)
_MASKED = 0x80
_SHORT = 126
"""Messages of fewer bytes have a length of one byte."""
_HEAD_BYTES = 6
"""Of a short masked frame: what it is, how long, and four bytes of mask."""


class Link(ServerConnection):
    """A connection that hands a message over the moment it has come, without a queue or a task in between."""

    take: Callable[[Message], None] | None = None
    """Takes every message that came whole; it must not raise. What it is not given is read as ever."""

    def data_received(self, data: bytes) -> None:
        """Take a short binary message that is all that has come, as nearly all do; the library reads the rest."""
        if self.take is not None and (message := short_message(data)) is not None:
            protocol = self.protocol
            between = not protocol.reader.buffer and protocol.current_size is None
            if between and protocol.state is State.OPEN:
                self.take(message)
                return
        super().data_received(data)

    def process_event(self, event: Request | Response | Frame) -> None:
        """Hand a whole message over, and leave every other event to the library."""
        if self.take is None or not isinstance(event, Frame) or event.opcode not in _MESSAGES:
            super().process_event(event)
            return
        message: Message = bytes(event.data)
        try:
            if not event.fin:
                raise ValueError("a fragment")
            if event.opcode == Opcode.TEXT:
                message = bytes(event.data).decode()
        except ValueError:
            # From here on messages are read in one way only, or one could overtake another.
            self.take = None
            super().process_event(event)
            return
        self.take(message)


def short_message(data: bytes) -> bytes | None:
    """Return the message, where `data` is one masked binary frame of fewer than 126 bytes and nothing else."""
    size = len(data) - _HEAD_BYTES
    if not 0 < size < _SHORT or data[0] != _WHOLE_BINARY or data[1] != _MASKED | size:
        return None
    mask = (data[2:6] * (size // 4 + 1))[:size]
    return (int.from_bytes(data[_HEAD_BYTES:]) ^ int.from_bytes(mask)).to_bytes(size)


def framed(message: Message) -> tuple[bytes, bytes]:
    """Return head and body of a message as a server puts it on the wire: one frame, unmasked (RFC 6455, 5.2)."""
    first, data = (_WHOLE_BINARY, message) if isinstance(message, bytes) else (_WHOLE_TEXT, message.encode())
    size = len(data)
    if size < _SHORT:
        return bytes((first, size)), data
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2, "big"), data
    return bytes((first, 127)) + size.to_bytes(8, "big"), data
