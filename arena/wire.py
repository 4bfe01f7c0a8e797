"""Where `websockets` is helped along: short ways for what a busy server does most, whole messages in and out.

Everything else (handshake, control frames, fragments, closing, limits) stays with the library.
"""

from collections.abc import Callable

from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response

Message = bytes | str

_WHOLE_BINARY = 0x80 | int(Opcode.BINARY)
_WHOLE_TEXT = 0x80 | int(Opcode.TEXT)
_MESSAGES = (Opcode.BINARY, Opcode.TEXT)


class Link(ServerConnection):
    """A connection that hands a message over the moment it has come, without a queue or a task in between."""

    take: Callable[[Message], None] | None = None
    """Takes every message that came whole; it must not raise. What it is not given is read as ever."""

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


def framed(message: Message) -> bytes:
    """Return a message as a server puts it on the wire: one frame, unmasked (RFC 6455, 5.2)."""
    first, data = (_WHOLE_BINARY, message) if isinstance(message, bytes) else (_WHOLE_TEXT, message.encode())
    size = len(data)
    if size < 126:
        return bytes((first, size)) + data
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2, "big") + data
    return bytes((first, 127)) + size.to_bytes(8, "big") + data
