"""Errors of clients and of the protocol.

ArenaError
└── ClientError
    ├── ProtocolError       a frame that is no message, or a message out of place; has a wire `code`
    ├── Refused             the server refused a request; has the server's `code`
    ├── SeatLost            a seat or a waiting place is gone; has the `reason`
    ├── Disconnected        the connection is gone and could not be taken up again
    ├── BadAddress          a URL that no connection can be made to
    └── BadCreditSheet      data that say nothing of who is credited, or of another match
"""

from games.errors import ArenaError


class ClientError(ArenaError):
    """Something went wrong between a client and a server."""

    code = "client"


class ProtocolError(ClientError):
    """A frame that is no message, or a message out of place. `wire` is one of `messages.ERROR_CODES`."""

    code = "protocol"

    def __init__(self, wire: str, message: str) -> None:
        super().__init__(message)
        self.wire = wire


class Refused(ClientError):
    """The server refused a request; `wire` is its code, one of `messages.ERROR_CODES`."""

    code = "refused"

    def __init__(self, wire: str, message: str) -> None:
        super().__init__(f"the server refused: {message} ({wire})")
        self.wire = wire


class SeatLost(ClientError):
    """A seat or a waiting place is gone; `reason` is one of those of `left`, or `taken`."""

    code = "seat_lost"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{message} ({reason})")
        self.reason = reason


class Disconnected(ClientError):
    """The connection is gone and could not be taken up again."""

    code = "disconnected"


class BadAddress(ClientError):
    """A URL that no connection can be made to."""

    code = "bad_address"
    exit_code = 2


class BadCreditSheet(ClientError):
    """Data that say nothing of who is credited with a result, or are of another match."""

    code = "bad_credit_sheet"
    exit_code = 2
