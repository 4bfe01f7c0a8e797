"""The client's side of a connection as a state machine: frames in, messages out; no socket, no clock.

One `ClientConnection` outlives the sockets under it. On every socket `start` queues the handshake; once that is
done, every unfinished seat is taken up with its resume token and what was asked and not settled is asked again.
An answer whose receipt is open is sent again when its turn comes again. Events are counted, so that none is
handed out twice and a gap is noticed.

    connection = ClientConnection(subprotocol=MSGPACK, token="…")
    connection.start()                         on every socket
    send(connection.frames_to_send())          after every call
    for message in connection.receive(frame):  Seated, Events, Turn, Over, …
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clients.errors import ProtocolError, Refused
from clients.protocol.codec import MSGPACK, SUBPROTOCOLS, decode, encode
from clients.protocol.messages import (
    ERROR_CODES,
    MAX_CLIENT_BYTES,
    MAX_REASON_CHARS,
    MAX_THOUGHT_CHARS,
    VERSION,
    Act,
    Acted,
    Authenticate,
    Authenticated,
    Challenge,
    Error,
    Events,
    Frames,
    Hello,
    Join,
    Leave,
    Left,
    Message,
    Over,
    Respond,
    Resume,
    Seated,
    Stale,
    Turn,
    Unwatch,
    Waiting,
    Watch,
    Welcome,
)

FATAL_CODES = frozenset({"version", "unauthorised", "forbidden"})
"""Errors after which the same handshake cannot succeed."""

PASSING_CODES = frozenset({"rate_limited", "limit", "shutdown", "internal"})
"""Errors after which the same request may succeed later."""

CLOSING_KINDS = frozenset({"forced", "forfeit"})
"""The referee's events, which only their own seat sees, that close the seat's turn: its default was played."""


@dataclass(slots=True)
class HeldSeat:
    """A seat in a match that is not over, as far as the client knows it."""

    seated: Seated
    seen: int = 0
    """Events handed out."""
    turn: Turn | None = None
    """The open turn as it came last, None while there is none or its answer was taken."""
    answer: Act | None = None
    """The answer given and not yet taken."""


@dataclass(slots=True)
class _Request:
    message: Message
    ticket: str = ""
    """The waiting place that came of it."""


@dataclass(slots=True)
class ClientConnection:
    """The client's side of the protocol.

    Args:
        subprotocol: `codec.MSGPACK` or `codec.JSON`.
        token: shown after the handshake; empty shows none.
        client: name and version of the program.
        capabilities: such as `schema` (a JSON schema with every turn).
    """

    subprotocol: str = MSGPACK
    token: str = field(default="", repr=False)
    client: str = ""
    capabilities: tuple[str, ...] = ()
    seats: dict[str, HeldSeat] = field(default_factory=dict)
    """Held seats by match."""
    welcome: Welcome | None = None
    identity: Authenticated | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(8), repr=False)
    """Begins every request's id, so that no two clients of one player use the same."""
    _requests: dict[str, _Request] = field(default_factory=dict)
    """Requests by id that were sent or wait to be, and are not settled."""
    _resuming: dict[str, str] = field(default_factory=dict)
    """Match by the id of the request that takes its seat up again on this socket."""
    _withdrawn: set[str] = field(default_factory=set)
    """Requests given up before their answer was known: what still comes of them is given back."""
    _outbox: list[Message] = field(default_factory=list)
    _next_id: int = 0

    def __post_init__(self) -> None:
        if self.subprotocol not in SUBPROTOCOLS:
            raise ProtocolError(
                "version", f"subprotocol: got {self.subprotocol!r}, allowed are {SUBPROTOCOLS}"
            )

    @property
    def ready(self) -> bool:
        """Whether the handshake is done on this socket."""
        return self.welcome is not None and (self.identity is not None or not self.token)

    def start(self) -> None:
        """Begin on a fresh socket: queue the handshake, and once it is done whatever is still owed."""
        self.welcome = self.identity = None
        self._resuming = {}
        self._outbox = [Hello(client=self.client, capabilities=list(self.capabilities))]

    def frames_to_send(self) -> list[bytes | str]:
        """Return the frames that are due, each once."""
        due, self._outbox = self._outbox, []
        return [encode(message, subprotocol=self.subprotocol) for message in due]

    def join(self, **what: Any) -> str:
        """Ask for a seat (the keys of `messages.Join`); return the request's id."""
        return self._ask(Join(id=self._identity(), **what))

    def challenge(self, **what: Any) -> str:
        """Challenge a player (the keys of `messages.Challenge`); return the request's id."""
        return self._ask(Challenge(id=self._identity(), **what))

    def respond(self, *, ticket: str, accept: bool) -> str:
        """Accept or decline a challenge; return the request's id."""
        return self._ask(Respond(id=self._identity(), ticket=ticket, accept=accept))

    def leave(self, *, ticket: str = "", match: str = "") -> str:
        """Give up a waiting place or a seat; return the request's id."""
        return self._ask(Leave(id=self._identity(), ticket=ticket, match=match))

    def withdraw(self, request: str) -> None:
        """Give up a request for a seat, whether or not its waiting place is known yet."""
        found = self._requests.pop(request, None)
        if found is not None:
            self._withdrawn.add(request)
            if found.ticket:
                self.leave(ticket=found.ticket)

    def watch(self, **what: Any) -> str:
        """Watch a match (the keys of `messages.Watch`); return the request's id.

        It is asked again after a loss, until `unwatch` or the match's end.
        """
        message = Watch(id=self._identity(), **what)
        self._forget_watch(message.match)
        return self._ask(message)

    def unwatch(self, *, match: str) -> None:
        """Stop watching a match."""
        self._forget_watch(match)
        if self.ready:
            self._outbox.append(Unwatch(id=self._identity(), match=match))

    def act(
        self,
        match: str,
        *,
        request: int,
        action: str | Sequence[str] | None = None,
        failure: str | None = None,
        reason: str = "",
        thought: str | None = None,
    ) -> bool:
        """Answer the open turn; return False, and do nothing, where it is closed or answered.

        A thought that does not fit the frame is cut. Raises `ProtocolError` for an answer that cannot be sent.
        """
        seat = self.seats.get(match)
        if seat is None or seat.turn is None or seat.turn.request != request or seat.answer is not None:
            return False
        answer = {
            "match": match,
            "request": request,
            "action": list(action) if isinstance(action, tuple) else action,
            "failure": failure,
            "reason": _sound(reason)[:MAX_REASON_CHARS],
            "thought": None if thought is None else _sound(thought)[:MAX_THOUGHT_CHARS],
        }
        seat.answer = self._fitting(answer)
        if self.ready and match not in self._resuming.values():
            self._outbox.append(seat.answer)
        return True

    def receive(self, frame: bytes | str) -> list[Message]:
        """Take one frame and return what it means for the application, repetitions taken out.

        A turn that comes again is not handed out again; `seats[match].turn` has its new deadline. A seat that
        cannot be taken up again is reported as `left`.

        Raises `ProtocolError` for a frame that is no message or out of place, or where the server cannot go on
        just now: close the socket and `start` on another. Raises `Refused` where the handshake failed for good.
        """
        message = decode(frame, sender="server", subprotocol=self.subprotocol)
        if self.welcome is None and not isinstance(message, Welcome | Error):
            raise ProtocolError("out_of_order", f"{message.type} came before welcome")
        match message:
            case Welcome():
                self._welcomed(message)
            case Authenticated():
                self._authenticated(message)
            case Waiting():
                return self._waiting(message)
            case Seated():
                return self._seated(message)
            case Events():
                return self._events(message)
            case Turn():
                return self._turn(message)
            case Acted() | Stale():
                self._settled(message)
            case Over():
                return [message] if self.seats.pop(message.match, None) is not None else []
            case Left():
                self._left(message)
            case Frames():
                if message.over:
                    self._forget_watch(message.match)
            case Error():
                return self._refused(message)
        return [message]

    def _identity(self) -> str:
        self._next_id += 1
        return f"{self.nonce}-{self._next_id}"

    def _ask(self, message: Any) -> str:
        self._requests[message.id] = _Request(message)
        if self.ready:
            self._outbox.append(message)
        return str(message.id)

    def _forget_watch(self, match: str) -> None:
        for identity, request in list(self._requests.items()):
            if isinstance(request.message, Watch) and request.message.match == match:
                del self._requests[identity]

    def _fitting(self, answer: dict[str, Any]) -> Act:
        limit = MAX_CLIENT_BYTES if self.welcome is None else min(self.welcome.max_bytes, MAX_CLIENT_BYTES)
        try:
            act = Act.model_validate(answer)
            while (over := _size(encode(act, subprotocol=self.subprotocol)) - limit) > 0:
                if not act.thought:
                    raise ProtocolError(
                        "too_large", f"action: it makes a frame of {limit + over} bytes, allowed are {limit}"
                    )
                # A character takes at least one byte, so this ends, and mostly at once.
                kept = act.thought[: -max(over // 6, 1)]
                act = act.model_copy(update={"thought": kept or None})
        except ValueError:
            got = str(answer["action"])[:80] if answer["failure"] is None else answer["failure"]
            allowed = "a string or a list of strings of valid Unicode, or a failure"
            raise ProtocolError("bad_message", f"action: got {got!r}, allowed is {allowed}") from None
        return act

    def _welcomed(self, message: Welcome) -> None:
        if self.welcome is not None:
            raise ProtocolError("out_of_order", "welcome came twice")
        if message.version != VERSION:
            raise Refused("version", f"it speaks protocol version {message.version}, this client {VERSION}")
        self.welcome = message
        if self.token:
            self._outbox.append(Authenticate(token=self.token))
        else:
            self._catch_up()

    def _authenticated(self, message: Authenticated) -> None:
        if not self.token or self.identity is not None:
            raise ProtocolError("out_of_order", "authenticated came without its question")
        self.identity = message
        self._catch_up()

    def _catch_up(self) -> None:
        for match, seat in self.seats.items():
            identity = self._identity()
            self._resuming[identity] = match
            self._outbox.append(Resume(id=identity, resume=seat.seated.resume, seen=seat.seen))
        self._outbox.extend(request.message for request in self._requests.values())

    def _waiting(self, message: Waiting) -> list[Message]:
        request = self._requests.get(message.id)
        if request is not None:
            request.ticket = message.ticket
        elif message.id in self._withdrawn:
            self.leave(ticket=message.ticket)
            return []
        return [message]

    def _seated(self, message: Seated) -> list[Message]:
        if message.id in self._withdrawn:
            self.leave(match=message.match)
            return []
        resumed = self._resuming.pop(message.id, None)
        request = self._requests.get(message.id)
        if request is not None and not _lasting(request.message):
            del self._requests[message.id]
        held = self.seats.get(message.match)
        if held is None:
            self.seats[message.match] = HeldSeat(message)
            return [message]
        held.seated = message
        if message.events < held.seen:
            # The server knows less of the match than it has told: nothing after this could be trusted.
            del self.seats[message.match]
            return [Left(id=message.id, match=message.match, reason="unavailable")]
        return [] if resumed == message.match else [message]

    def _events(self, message: Events) -> list[Message]:
        seat = self.seats.get(message.match)
        if seat is None:
            return []
        if message.first > seat.seen:
            raise ProtocolError(
                "out_of_order",
                f"events of {message.match}: {seat.seen} are known, the next came as {message.first}",
            )
        fresh = message.events[seat.seen - message.first :]
        if not fresh:
            return []
        first, seat.seen = seat.seen, seat.seen + len(fresh)
        if any(event[0] in CLOSING_KINDS for event in fresh):
            seat.turn = seat.answer = None
        return [Events(match=message.match, first=first, events=fresh)]

    def _turn(self, message: Turn) -> list[Message]:
        seat = self.seats.get(message.match)
        if seat is None:
            return []
        known, seat.turn = seat.turn, message
        if known is not None and known.request == message.request:
            if seat.answer is not None:
                self._outbox.append(seat.answer)
            return []
        seat.answer = None
        return [message]

    def _settled(self, message: Acted | Stale) -> None:
        seat = self.seats.get(message.match)
        if seat is not None and seat.turn is not None and seat.turn.request == message.request:
            seat.turn = seat.answer = None

    def _left(self, message: Left) -> None:
        self._requests.pop(message.id, None)
        if message.ticket:
            for identity, request in list(self._requests.items()):
                if request.ticket == message.ticket:
                    del self._requests[identity]
        self.seats.pop(message.match, None)

    def _refused(self, message: Error) -> list[Message]:
        if not self.ready:
            if message.code in FATAL_CODES:
                raise Refused(message.code, message.message)
            raise ProtocolError(_wire(message.code), f"the server says: {message.message} ({message.code})")
        if message.code == "taken":
            self.seats.pop(message.match, None)
        request = self._requests.get(message.id)
        about_seat = not message.id or (request is not None and isinstance(request.message, Leave))
        if message.code == "unknown_match" and about_seat and self.seats.pop(message.match, None) is not None:
            self._requests.pop(message.id, None)
            return [message, Left(match=message.match, reason="unavailable")]
        resumed = self._resuming.pop(message.id, None)
        if resumed is None:
            self._requests.pop(message.id, None)
            return [message]
        if message.code in PASSING_CODES:
            raise ProtocolError(
                message.code, f"the seat in {resumed} could not be taken up: {message.message}"
            )
        self.seats.pop(resumed, None)
        return [message, Left(id=message.id, match=resumed, reason="expired")]


def _wire(code: str) -> str:
    return code if code in ERROR_CODES else "internal"


def _lasting(message: Message) -> bool:
    """Whether several seats come of a request, until `left` ends it."""
    return isinstance(message, Join) and message.where == "tournament"


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _size(frame: bytes | str) -> int:
    return len(frame) if isinstance(frame, bytes) else len(frame.encode())
