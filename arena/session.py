"""The server's side of one connection as a state machine: frames in, frames out; no socket, no await.

    session.receive(frame)          never raises; what it leads to is queued
    session.frames_to_send()        what is due, in bounded portions: call it until it returns nothing
    session.closing                 the websocket close code and reason, when it is to be closed
    session.lost()                  the socket is gone

A seat is not sent through a queue. The session holds a cursor into what the seat was told, so a client that reads
slowly costs no memory, and a seat taken up again begins at the cursor that its client names.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from agents.base import Decision
from arena.auth import ADMIN, PLAY, WATCH, Gate, Identity
from arena.errors import RequestRefused
from arena.frames import Frame, acted_frame
from arena.hold import Hold
from arena.host import Host
from arena.limits import JOIN, MESSAGE
from arena.live import RemoteAgent
from arena.lobby import Applicant
from arena.watcher import Watcher
from clients.errors import ProtocolError
from clients.protocol.codec import SUBPROTOCOLS, decode, encode
from clients.protocol.messages import (
    VERSION,
    Act,
    Authenticate,
    Authenticated,
    Challenge,
    Error,
    Hello,
    Join,
    Leave,
    Left,
    Message,
    Ping,
    Pong,
    Respond,
    Resume,
    Stale,
    Unwatch,
    Watch,
    Welcome,
)
from games.text import clean_name, neutralise
from replays.visitors import Perspective

PORTION_BYTES = 256 * 1024
"""Bytes that one call of `frames_to_send` aims at."""
MAX_WAITING = 1024
"""Answers that may wait to be sent; a client that asks on without reading is cut off."""
MAX_STRIKES = 200
"""Refused messages of one connection until it is closed."""
MAX_WATCHED = 32
"""Matches that one connection watches at the same time."""
MAX_MESSAGE_CHARS = 500
ENDED_KEPT = 64
"""Ended matches of which a connection is still told that an answer comes too late."""

BAD_FRAME, TOO_LARGE, POLICY, RESTART, NO_VERSION = 1007, 1009, 1008, 1012, 1002
"""Close codes (RFC 6455 and its registry)."""

logger = logging.getLogger("arena.session")


@dataclass(slots=True, eq=False)
class _Watching:
    watcher: Watcher | None = None
    more: bool = True


class Session:
    """One connection.

    Args:
        host: who hosts the matches.
        subprotocol: the encoding, one of `codec.SUBPROTOCOLS`.
        address: where the client is, for limits.
        gate: tokens and rates.
        wake: called when there is something to send; it must only take note.
        clock: seconds, never going back.
        http_port: where this server answers REST; 0 says nothing of it.
    """

    def __init__(
        self,
        host: Host,
        *,
        subprotocol: str,
        address: str,
        gate: Gate,
        wake: Callable[[], None],
        clock: Callable[[], float],
        http_port: int = 0,
    ) -> None:
        self.closing: tuple[int, str] | None = None
        self.identity: Identity | None = None
        self.opened_at = clock()
        self.greeted = False
        """Whether the client said hello."""
        self._host = host
        self._subprotocol = subprotocol if subprotocol in SUBPROTOCOLS else SUBPROTOCOLS[0]
        self._address = address
        self._gate = gate
        self._wake = wake
        self._clock = clock
        self._http_port = http_port
        self._schema = False
        self._outbox: list[Message | Frame] = []
        self._holds: dict[str, Hold] = {}
        self._due: dict[str, None] = {}
        """Matches of which something is to be sent."""
        self._watching: dict[str, _Watching] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._strikes = 0
        self._gone = False

    # The transport's side

    def receive(self, frame: Frame) -> None:
        """Take one frame. What is wrong with it is answered by an error, or by closing; nothing is raised."""
        if self.closing is not None or self._gone:
            return
        try:
            message = decode(frame, sender="client", subprotocol=self._subprotocol)
        except ProtocolError as error:
            self._malformed(error)
            return
        try:
            self._admit(message)
            self._take(message)
        except RequestRefused as error:
            self.refuse(error, id=_id(message), match=str(getattr(message, "match", "")))
            self._strike()
        except Exception:
            logger.exception("a message of type %s failed", message.type)
            self.refuse(RequestRefused("internal", "the server failed; it has been logged"), id=_id(message))
            self._strike()

    def frames_to_send(self) -> list[Frame]:
        """Return frames that are due, each once, of about `PORTION_BYTES`; call it until there are none."""
        frames: list[Frame] = []
        size = 0
        if self._outbox:
            for item in self._outbox:
                frame = item if isinstance(item, bytes | str) else encode(item, subprotocol=self._subprotocol)
                frames.append(frame)
                size += len(frame)
                if size >= PORTION_BYTES:
                    break
            del self._outbox[: len(frames)]
        if self.closing is not None:
            return frames
        for match in tuple(self._due):
            if size >= PORTION_BYTES:
                return frames
            hold = self._holds.get(match)
            if hold is None:
                del self._due[match]
                continue
            found = self._news_of(match, hold)
            frames += found
            size += sum(map(len, found))
        if not self._watching:
            return frames
        for match, watching in list(self._watching.items()):
            if size >= PORTION_BYTES:
                return frames
            watcher = watching.watcher
            if watcher is None or not watching.more:
                continue
            found = watcher.frames(limit_bytes=PORTION_BYTES - size)
            frames += found
            size += sum(map(len, found))
            watching.more = bool(found)
            if watcher.ended:
                del self._watching[match]
        return frames

    def shutdown(self) -> None:
        """Tell the client that the server stops, and close."""
        if self.closing is None:
            self._error("shutdown", "the server stops; its matches go on when it is back")
            self._close(RESTART, "the server stops")

    def lost(self) -> None:
        """Let go of everything: the socket is gone. Seats have their grace."""
        if self._gone:
            return
        self._gone = True
        holds, self._holds = self._holds, {}
        for hold in holds.values():
            hold.agent.detach(self)
        for watching in self._watching.values():
            if watching.watcher is not None:
                watching.watcher.close()
        self._watching.clear()
        self._outbox.clear()
        self._due.clear()
        if self.greeted:
            self._host.lost(self)

    # The host's side

    @property
    def player_name(self) -> str:
        """The name of the token, empty without one."""
        return "" if self.identity is None or not self.identity.may(PLAY) else self.identity.name

    def send(self, message: Message) -> None:
        """Queue a message."""
        self._queue(message)

    def _queue(self, message: Message | Frame) -> None:
        if self._gone or self.closing is not None:
            return
        if len(self._outbox) >= MAX_WAITING:
            self._outbox.clear()
            self._close(POLICY, "the client does not read")
            return
        self._outbox.append(message)
        self._wake()

    def refuse(self, error: RequestRefused, *, id: str = "", match: str = "") -> None:
        """Queue an error."""
        self._error(error.wire, str(error), id=id, match=match)

    def seat(self, agent: RemoteAgent, *, request: str, seen: int = 0) -> None:
        """Hold a seat: tell it, then the events from `seen`, then the open turn or the end.

        Raises `RequestRefused` with `limit`.
        """
        info = agent.info
        held = self._holds.get(info.match)
        if held is not None and held.agent.seat.seat != agent.seat.seat:
            raise RequestRefused("limit", "match: a connection has one seat in a match")
        if held is None and len(self._holds) >= self._host.settings.max_held:
            raise RequestRefused("limit", f"seats: you hold {len(self._holds)}, no more are given")
        hold = self._holds[info.match] = Hold(agent, seen)
        self._ended.pop(info.match, None)
        agent.attach(self)
        self.send(hold.seated(request))
        self.news(agent)

    def news(self, agent: RemoteAgent) -> None:
        """Note that a seat has something that was not sent yet."""
        match = agent.info.match
        if match not in self._due:
            self._due[match] = None
            self._wake()

    def settled(self, agent: RemoteAgent, request: int) -> None:
        """Tell the client that its answer is recorded."""
        self._queue(acted_frame(agent.info.match, request, subprotocol=self._subprotocol))

    def taken_over(self, agent: RemoteAgent) -> None:
        """Tell the client that another connection holds its seat."""
        self._holds.pop(agent.info.match, None)
        text = "the seat is played from another connection, which took it over"
        self._error("taken", text, match=agent.info.match)

    def failed(self, agent: RemoteAgent, reason: str) -> None:
        """Tell the client that a match cannot go on."""
        self._holds.pop(agent.info.match, None)
        self._error("internal", reason, match=agent.info.match)
        self.send(Left(match=agent.info.match, reason="unavailable"))

    # What comes in

    def _malformed(self, error: ProtocolError) -> None:
        self._error(error.wire, str(error))
        if error.wire == "too_large":
            self._close(TOO_LARGE, "the frame is too large")
        elif error.wire == "bad_frame":
            self._close(BAD_FRAME, "no message in this encoding")
        else:
            self._strike()

    def _admit(self, message: Message) -> None:
        """Refuse what comes too fast or out of place. An answer to an open turn costs nothing."""
        if not self.greeted and not isinstance(message, Hello):
            raise RequestRefused("out_of_order", f"{message.type}: the first message is hello")
        if isinstance(message, Act):
            hold = self._holds.get(message.match)
            asked = None if hold is None else hold.agent.asked
            if asked is not None and asked.request == message.request and asked.state is None:
                return
        who = self._address if self.identity is None else self.identity.key
        if not self._gate.allow(f"{MESSAGE}:{who}"):
            raise RequestRefused("rate_limited", "too many messages; slow down")
        if isinstance(message, Join | Challenge) and not self._gate.allow(f"{JOIN}:{who}"):
            raise RequestRefused("rate_limited", "too many requests for seats; slow down")

    def _take(self, message: Message) -> None:
        match message:
            case Act():
                self._act(message)
            case Hello():
                self._hello(message)
            case Authenticate():
                self._authenticate(message)
            case Join():
                self._need(PLAY)
                self._host.join(self._applicant(message.id, message.name, message.agent), message)
            case Challenge():
                self._need(PLAY)
                self._host.challenge(self._applicant(message.id, message.name, message.agent), message)
            case Respond():
                self._need(PLAY)
                self._host.respond(self._applicant(message.id), message)
            case Leave():
                self._leave(message)
            case Resume():
                self._host.resume(self, message)
            case Watch():
                self._watch(message)
            case Unwatch():
                self._unwatch(message.match)
            case Ping():
                self.send(Pong(id=message.id))

    def _hello(self, message: Hello) -> None:
        if self.greeted:
            raise RequestRefused("out_of_order", "hello: it was said already")
        if VERSION not in message.versions:
            self._error("version", f"versions: this server speaks {VERSION}")
            self._close(NO_VERSION, "no protocol version in common")
            return
        if self._host.stopping:
            self.shutdown()
            return
        self.greeted = True
        self._schema = "schema" in message.capabilities
        settings = self._host.settings
        self.send(
            Welcome(
                version=VERSION,
                server=settings.name,
                capabilities=["schema"],
                heartbeat_s=settings.heartbeat_s,
                grace_s=settings.grace_s,
                anonymous=sorted(self._gate.anonymous),
                http_port=self._http_port,
            )
        )
        self._host.opened(self)

    def _authenticate(self, message: Authenticate) -> None:
        if self.identity is not None:
            raise RequestRefused("out_of_order", "authenticate: a token was shown already")
        self.identity = self._gate.authenticate(message.token, address=self._address)
        self.send(Authenticated(name=self.identity.name, scopes=sorted(self.identity.scopes)))

    def _need(self, scope: str) -> None:
        if scope in self._gate.anonymous or (self.identity is not None and self.identity.may(scope)):
            return
        if self.identity is None:
            raise RequestRefused("unauthorised", f"a token with the scope {scope} is needed")
        raise RequestRefused("forbidden", f"the token lacks the scope {scope}")

    def _applicant(self, request: str, name: str = "", agent: str = "") -> Applicant:
        owner = self.player_name
        shown = clean_name(name) or owner or "guest"
        if shown != owner and self._gate.owned(shown):
            raise RequestRefused("forbidden", f"name: {shown!r} belongs to a token that you did not show")
        return Applicant(self, request, shown, owner, neutralise(agent[:200])[:200])

    def _leave(self, message: Leave) -> None:
        if bool(message.ticket) == bool(message.match):
            raise RequestRefused("bad_message", "leave: either a ticket or a match is needed")
        if message.ticket:
            self._host.leave(message.ticket, client=self)
        else:
            hold = self._holds.pop(message.match, None)
            if hold is None:
                raise RequestRefused("unknown_match", "match: you have no seat there")
            self._end(message.match)
            hold.agent.leave()
        self.send(Left(id=message.id, ticket=message.ticket, match=message.match))

    def _act(self, message: Act) -> None:
        hold = self._holds.get(message.match)
        if hold is None:
            if message.match in self._ended:
                self.send(Stale(match=message.match, request=message.request, reason="closed"))
                return
            raise RequestRefused("unknown_match", "match: you have no seat there")
        agent, action = hold.agent, message.action
        decision = Decision(
            tuple(action) if isinstance(action, list) else action,
            thought=message.thought,
            failure=message.failure,
            reason=message.reason,
        )
        stale = agent.reply(message.request, decision)
        if stale is not None:
            answer = {"match": message.match, "request": message.request, "reason": stale}
            self.send(Stale.model_validate(answer))

    def _watch(self, message: Watch) -> None:
        self._need(WATCH)
        if message.match not in self._watching and len(self._watching) >= MAX_WATCHED:
            raise RequestRefused("limit", f"watch: you watch {MAX_WATCHED} matches, no more at the same time")
        may_see: set[Perspective] = set(self._host.own_seats(message.match, self.player_name))
        hold = self._holds.get(message.match)
        if hold is not None:
            may_see.add(hold.agent.seat.seat)
        if self.identity is not None and self.identity.may(ADMIN):
            may_see.add("all")
        watching = _Watching()

        def more() -> None:
            watching.more = True
            self._wake()

        watching.watcher = self._host.hub.watch(
            message.match,
            perspective=message.perspective,
            seat=message.seat,
            may_see=may_see,
            request_id=message.id,
            subprotocol=self._subprotocol,
            on_more=more,
        )
        self._unwatch(message.match)
        self._watching[message.match] = watching
        self._wake()

    def _unwatch(self, match: str) -> None:
        watching = self._watching.pop(match, None)
        if watching is not None and watching.watcher is not None:
            watching.watcher.close()

    # What goes out

    def _news_of(self, match: str, hold: Hold) -> list[Frame]:
        frames = hold.news(schema=self._schema, clock=self._clock, subprotocol=self._subprotocol)
        if hold.told:
            del self._due[match]
            if hold.agent.over is not None:
                self._holds.pop(match, None)
                self._end(match)
        return frames

    def _end(self, match: str) -> None:
        self._ended[match] = None
        if len(self._ended) > ENDED_KEPT:
            self._ended.popitem(last=False)

    def _error(self, code: str, text: str, *, id: str = "", match: str = "") -> None:
        self.send(Error(code=code, message=neutralise(text)[:MAX_MESSAGE_CHARS], id=id, match=match))

    def _strike(self) -> None:
        self._strikes += 1
        if self._strikes >= MAX_STRIKES:
            self._close(POLICY, "too many refused messages")

    def _close(self, code: int, reason: str) -> None:
        if self.closing is None:
            self.closing = (code, reason)
            self._wake()


def _id(message: Message) -> str:
    return str(getattr(message, "id", ""))
