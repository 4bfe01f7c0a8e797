"""The messages of the wire protocol, version 1.

Every frame is one message: a map with the key `type`, as msgpack in a binary frame (subprotocol
`arena.1.msgpack`) or as JSON in a text frame (`arena.1.json`). `decode` bounds the size before it looks
inside, and validates; unknown keys are ignored, so that a newer peer may add some. Values are those of JSON in
both encodings: no bytes, no extension types, no numbers that are not finite, no lone surrogates.

What a seat is told is numbered for that seat alone: its events from 0, its requests from 1. A number that
counted the match's plies would tell how much happened in secret.
"""

import json
import math
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, Self

import msgpack
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import models_json_schema

from clients.errors import ProtocolError

VERSION = 1
MSGPACK = "arena.1.msgpack"
JSON = "arena.1.json"
SUBPROTOCOLS = (MSGPACK, JSON)

MAX_CLIENT_BYTES = 64 * 1024
"""Bytes of one frame from a client."""
MAX_SERVER_BYTES = 4 * 1024 * 1024
"""Bytes of one frame from a server."""
MAX_BATCH = 256
"""Events in one message; longer histories come in several."""
MAX_BATCH_BYTES = 512 * 1024
"""Bytes of msgpack that the events of one message stay under, where they are more than one."""
MAX_ITEMS = 10_000
"""Items of one list or map in a frame."""
MAX_DEPTH = 32
"""Lists and maps within one another in a frame."""
MAX_REASON_CHARS = 1000
MAX_THOUGHT_CHARS = 20_000

ERROR_CODES = {
    "bad_frame": "not one message in the connection's encoding; the connection is closed",
    "too_large": "a frame over the size limit; the connection is closed",
    "bad_message": "a message with a missing, unknown or malformed part",
    "out_of_order": "a message that has no place in the connection's state",
    "version": "no protocol version in common; the connection is closed",
    "unauthorised": "no token, or one that is unknown or revoked",
    "forbidden": "the token's scopes do not allow it",
    "rate_limited": "too many messages or requests; slow down",
    "limit": "a limit on connections, lobbies, matches or names is reached",
    "unknown_game": "no such game",
    "bad_setup": "seats or options that the game refuses",
    "unknown_match": "no such match",
    "unknown_ticket": "no such waiting place or challenge, or not yours",
    "unknown_tournament": "no such tournament, or not open to you",
    "bad_resume": "no seat is held for this resume token",
    "taken": "the seat in `match` was taken over by another connection of its player; do not take it back",
    "shutdown": "the server stops; its matches go on when it is back",
    "internal": "the server failed; it has been logged",
}
"""Stable codes of `error` and what they mean."""

STALE_REASONS = ("answered", "deadline", "closed", "unknown")
"""Why an action is dropped: its request was answered, timed out, was closed by a forfeit, or never was."""


def _event(value: list[Any]) -> list[Any]:
    kind, data, *rest = value
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise ValueError("an event is [kind, data] or [kind, data, audience]")
    if rest and rest[0] is not None:
        audience = rest[0]
        if not isinstance(audience, list | tuple) or not all(type(seat) is int for seat in audience):
            raise ValueError("an event's audience is null or a list of seats")
    return value


Name = Annotated[str, Field(max_length=200)]
Id = Annotated[str, Field(min_length=1, max_length=80)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0)]
WireEvent = Annotated[
    list[Any],
    Field(min_length=2, max_length=3),
    AfterValidator(_event),
    WithJsonSchema(
        {
            "type": "array",
            "prefixItems": [
                {"type": "string"},
                {"type": "object"},
                {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            ],
            "minItems": 2,
            "maxItems": 3,
        }
    ),
]
"""`[kind, data]`, or `[kind, data, audience]` for omniscient watchers (audience null: everyone)."""


class Message(BaseModel):
    """Base of all messages."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    sender: ClassVar[Literal["client", "server"]]
    type: str


# From clients


class Hello(Message):
    """First message. Names the versions that the client speaks. Answered by `welcome` or an error."""

    sender = "client"
    type: Literal["hello"] = "hello"
    versions: list[int] = Field(default=[VERSION], max_length=16)
    client: Name = ""
    capabilities: list[Name] = Field(default=[], max_length=32)


class Authenticate(Message):
    """Shows a token. Never put a token in a URL. Answered by `authenticated` or an error."""

    sender = "client"
    type: Literal["authenticate"] = "authenticate"
    token: str = Field("", max_length=200)


class Join(Message):
    """Asks for a seat: in a lobby of `game`, in a named `match`, or in a scheduled `tournament`.

    Answered by `waiting` (with a ticket) where it takes a while, and by `seated`; a tournament seats its
    players again and again until `left` says that it is over. The same `id` sent again, from whichever
    connection of the same player, is the same request, not another: draw ids at random.
    """

    sender = "client"
    type: Literal["join"] = "join"
    id: Id
    where: Literal["lobby", "match", "tournament"] = "lobby"
    game: Name = ""
    match: Name = ""
    tournament: Name = ""
    seats: Annotated[int, Field(ge=1, le=64)] | None = None
    options: dict[str, Any] = Field(default={}, max_length=32)
    name: Name = ""
    agent: Name = ""
    """Kind and version of the agent, for the record."""


class Challenge(Message):
    """Asks another waiting player, by name, for a match. Answered by `waiting`, later `seated`, or `left`."""

    sender = "client"
    type: Literal["challenge"] = "challenge"
    id: Id
    opponent: Name
    game: Name
    options: dict[str, Any] = Field(default={}, max_length=32)
    name: Name = ""
    agent: Name = ""


class Respond(Message):
    """Accepts or declines a challenge that `challenged` announced. Answered by `seated` or `left`."""

    sender = "client"
    type: Literal["respond"] = "respond"
    id: Id
    ticket: Id
    accept: bool


class Leave(Message):
    """Gives up a waiting place or a tournament, or a seat (which forfeits it). Answered by `left`."""

    sender = "client"
    type: Literal["leave"] = "leave"
    id: Id
    ticket: Name = ""
    match: Name = ""


class Act(Message):
    """Answers a turn: with an `action`, a string or a list of strings, or with why there is none (`failure`).

    Answered by `acted`, or by `stale` where the turn is no longer open. The same `request` sent again is the
    same answer.
    """

    sender = "client"
    type: Literal["act"] = "act"
    match: Id
    request: Count
    action: str | Annotated[list[str], Field(fail_fast=True)] | None = None
    failure: Literal["unparsed", "ambiguous", "error"] | None = None
    reason: str = Field("", max_length=MAX_REASON_CHARS)
    thought: str | None = Field(None, max_length=MAX_THOUGHT_CHARS)
    """Private: goes into the record, is shown to omniscient watchers, and is never sent to a seat."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.action is None) == (self.failure is None):
            raise ValueError("either an action or a failure is needed")
        return self


class Resume(Message):
    """Takes a seat up again after a lost connection; `seen` is how many events the client has.

    Answered by `seated`, then the missed events, then the open turn under the request it had, or `over`.
    """

    sender = "client"
    type: Literal["resume"] = "resume"
    id: Id
    resume: Annotated[str, Field(max_length=200)]
    seen: Count = 0


class Watch(Message):
    """Watches a match. Answered by `snapshot`, then `frames` as they fall; again for another perspective."""

    sender = "client"
    type: Literal["watch"] = "watch"
    id: Id
    match: Id
    perspective: Literal["public", "seat", "all"] = "public"
    seat: Count | None = None


class Unwatch(Message):
    """Stops watching."""

    sender = "client"
    type: Literal["unwatch"] = "unwatch"
    id: Id
    match: Id


class Ping(Message):
    """Asks for a `pong` with the same id."""

    sender = "client"
    type: Literal["ping"] = "ping"
    id: Id


# From servers


class Welcome(Message):
    """Answers `hello`: the version spoken from here on, and the limits."""

    sender = "server"
    type: Literal["welcome"] = "welcome"
    version: int
    server: Name
    capabilities: list[Name] = []
    max_bytes: Count = MAX_CLIENT_BYTES
    heartbeat_s: Seconds = 20.0
    grace_s: Seconds = 30.0
    anonymous: list[Name] = []
    """Scopes that need no token here."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Where the same host answers REST; 0 says nothing of it."""


class Authenticated(Message):
    """The token's name and scopes; what follows is allowed by them."""

    sender = "server"
    type: Literal["authenticated"] = "authenticated"
    name: Name
    scopes: list[Name]


class Waiting(Message):
    """A waiting place. Sent again as it fills; `starts_in_s` counts down to filling up with bots."""

    sender = "server"
    type: Literal["waiting"] = "waiting"
    id: Id
    ticket: Id
    game: Name
    filled: Count
    seats: Count
    starts_in_s: Seconds | None = None


class Challenged(Message):
    """Somebody challenges the player of this connection; answer with `respond`."""

    sender = "server"
    type: Literal["challenged"] = "challenged"
    ticket: Id
    opponent: Name
    game: Name
    options: dict[str, Any]


class Left(Message):
    """A waiting place, a challenge or a seat is gone, or a tournament is over; nothing more comes of it."""

    sender = "server"
    type: Literal["left"] = "left"
    id: Name = ""
    ticket: Name = ""
    match: Name = ""
    reason: Literal["left", "declined", "withdrawn", "expired", "unavailable", "over"] = "left"


class Seated(Message):
    """A seat in a match. `resume` takes it up again from another connection: keep it secret."""

    sender = "server"
    type: Literal["seated"] = "seated"
    id: Name = ""
    match: Id
    game: Name
    rules: Name
    """Version of the rules."""
    options: dict[str, Any]
    seats: Count
    seat: Count
    names: list[Name]
    resume: Name
    events: Count
    """Events so far; they follow, from the first that the client has not seen."""
    retries: Count
    deadline_s: Seconds


class Events(Message):
    """Events that the seat may see, in order; `first` is the number of the first one, counted for this seat."""

    sender = "server"
    type: Literal["events"] = "events"
    match: Id
    first: Count
    events: list[WireEvent]


class Turn(Message):
    """The seat must act. All events before it have been sent.

    `space` is the action space as data (`kind` choice, subset or text) with the `default` that is played
    for no answer; `schema` is the same as a JSON schema, sent where the client has the capability `schema`.
    After a failure the same turn comes again under a new request, with `failure` and `reason`.
    """

    sender = "server"
    type: Literal["turn"] = "turn"
    match: Id
    request: Count
    space: dict[str, Any]
    json_schema: dict[str, Any] | None = Field(None, alias="schema")
    describe: str
    attempt: Count = 0
    failure: str | None = None
    reason: str = ""
    deadline_s: Seconds
    """Seconds left for this turn, banked time included."""
    bank_s: Seconds = 0.0

    model_config = ConfigDict(populate_by_name=True)


class Acted(Message):
    """The answer to a request was taken (whether it was legal shows in what follows)."""

    sender = "server"
    type: Literal["acted"] = "acted"
    match: Id
    request: Count


class Stale(Message):
    """An action was dropped: its request is no longer open. Nothing else follows from it."""

    sender = "server"
    type: Literal["stale"] = "stale"
    match: Id
    request: Count
    reason: Literal["answered", "deadline", "closed", "unknown"]


class Over(Message):
    """The match has ended. `ended` by seat: won, lost, drawn, turn_limit or forfeit."""

    sender = "server"
    type: Literal["over"] = "over"
    match: Id
    reason: str
    returns: list[float]
    teams: list[str]
    roles: list[str]
    ended: list[str]
    counts: dict[str, int]


class Snapshot(Message):
    """A match as the watcher may see it: what it is, and the entries so far (more follow as `frames`).

    It comes again, with `dropped` true, where the watcher had fallen too far behind: forget what was there.
    """

    sender = "server"
    type: Literal["snapshot"] = "snapshot"
    id: Name = ""
    match: Id
    game: Name
    rules: Name
    options: dict[str, Any]
    names: list[Name]
    perspective: Literal["public", "seat", "all"]
    seat: Count | None = None
    allowed: list[Name]
    """Perspectives that this watcher may ask for: public, seat, all."""
    entries: Count
    """Entries so far; they follow as `frames` from 0."""
    delay_s: Seconds = 0.0
    live: bool = True
    dropped: bool = False


class Frames(Message):
    """Entries in order: events as `["e", kind, data, audience]`, inputs as in a record (omniscient only)."""

    sender = "server"
    type: Literal["frames"] = "frames"
    match: Id
    first: Count
    entries: list[list[Any]]
    clocks: dict[str, Seconds] | None = None
    """Seconds left by seat, of the turns that everyone may know to be open."""
    over: bool = False
    """Whether the match ends with the last of these."""


class Pong(Message):
    """Answers `ping`."""

    sender = "server"
    type: Literal["pong"] = "pong"
    id: Id


class Error(Message):
    """Something was refused; `code` is stable (see the table of codes); `id` and `match` say what, if anything."""

    sender = "server"
    type: Literal["error"] = "error"
    code: Name
    message: str
    id: Name = ""
    match: Name = ""


CLIENT_MESSAGES: tuple[type[Message], ...] = (
    Hello, Authenticate, Join, Challenge, Respond, Leave, Act, Resume, Watch, Unwatch, Ping,
)  # fmt: skip
SERVER_MESSAGES: tuple[type[Message], ...] = (
    Welcome, Authenticated, Waiting, Challenged, Left, Seated, Events, Turn, Acted, Stale, Over,
    Snapshot, Frames, Pong, Error,
)  # fmt: skip


def _adapter(kinds: tuple[type[Message], ...]) -> TypeAdapter[Any]:
    union: Any = reduce(or_, kinds)
    return TypeAdapter(Annotated[union, Field(discriminator="type")])


_FROM_CLIENT = _adapter(CLIENT_MESSAGES)
_FROM_SERVER = _adapter(SERVER_MESSAGES)


def encode(message: Message, *, subprotocol: str) -> bytes | str:
    """Return the message as a frame: bytes for msgpack, text for JSON. Unset optional keys are left out."""
    data = message.model_dump(mode="json", exclude_none=True, by_alias=True)
    if subprotocol == JSON:
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    packed: bytes = msgpack.packb(data, use_bin_type=True)
    return packed


def decode(frame: bytes | str, *, sender: Literal["client", "server"], subprotocol: str) -> Message:
    """Return the message in a frame that `sender` sent.

    Raises `ProtocolError` with `too_large`, `bad_frame` (no value in this encoding) or `bad_message`.
    """
    limit = MAX_CLIENT_BYTES if sender == "client" else MAX_SERVER_BYTES
    size = len(frame) if isinstance(frame, bytes) else _utf8_length(frame, limit)
    if size > limit:
        raise ProtocolError("too_large", f"frame: got more than {limit} bytes, allowed are {limit}")
    value = _value(frame, subprotocol)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ProtocolError("bad_message", "message: a map with the key 'type' is needed")
    try:
        adapter = _FROM_CLIENT if sender == "client" else _FROM_SERVER
        message: Message = adapter.validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:40] for part in first["loc"][:4]) or "type"
        text = first["msg"].removeprefix("Value error, ")
        raise ProtocolError("bad_message", f"{where}: {text}"[:300]) from None
    return message


def event_batches(match: str, events: Sequence[WireEvent], *, first: int) -> Iterator[Events]:
    """Return events as messages that keep to `MAX_BATCH` and to the size of a frame, in either encoding."""
    start = size = 0
    for index, event in enumerate(events):
        # A byte of msgpack is at most six of JSON (a control character), so eight batches' worth fits a frame.
        more = len(msgpack.packb(event, use_bin_type=True))
        if index > start and (index - start >= MAX_BATCH or size + more > MAX_BATCH_BYTES):
            yield Events(match=match, first=first + start, events=list(events[start:index]))
            start, size = index, 0
        size += more
    if start < len(events):
        yield Events(match=match, first=first + start, events=list(events[start:]))


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a frame: every message under `$defs`, and who sends which."""
    kinds = CLIENT_MESSAGES + SERVER_MESSAGES
    _, found = models_json_schema([(kind, "validation") for kind in kinds])
    definitions: dict[str, Any] = {}
    for kind in kinds:
        about = _untitled(found["$defs"][kind.__name__])
        about["required"] = ["type", *about.get("required", [])]
        definitions[kind.__name__] = about
    for sender, sent in (("Client", CLIENT_MESSAGES), ("Server", SERVER_MESSAGES)):
        definitions[sender] = {
            "description": f"A message from a {sender.lower()}.",
            "oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in sent],
        }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The arena's wire protocol, version {VERSION}",
        "oneOf": [{"$ref": "#/$defs/Client"}, {"$ref": "#/$defs/Server"}],
        "$defs": definitions,
    }


def _untitled(about: Any) -> Any:
    if isinstance(about, dict):
        return {
            key: _untitled(value)
            for key, value in about.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_untitled(value) for value in about] if isinstance(about, list) else about


def _utf8_length(text: str, limit: int) -> int:
    return len(text) if len(text) > limit or text.isascii() else len(text.encode("utf-8", "replace"))


def _value(frame: bytes | str, subprotocol: str) -> Any:
    try:
        if subprotocol == JSON:
            if not isinstance(frame, str):
                raise ValueError("JSON comes in text frames")
            value = json.loads(frame, parse_constant=_no_constant)
        elif not isinstance(frame, bytes):
            raise ValueError("msgpack comes in binary frames")
        else:
            value = msgpack.unpackb(
                frame,
                raw=False,
                strict_map_key=True,
                max_array_len=MAX_ITEMS,
                max_map_len=MAX_ITEMS,
                max_bin_len=0,
                max_ext_len=0,
            )
        _check(value, MAX_DEPTH)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        text = str(error).encode("ascii", "replace").decode()
        raise ProtocolError("bad_frame", f"frame: {text[:120] or type(error).__name__}") from None
    return value


def _check(value: Any, depth: int) -> None:
    """Raise `ValueError` for what one of the two encodings could not carry, or no peer needs to."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            value.encode()
    elif kind is int:
        if not -(2**63) <= value < 2**63:
            raise ValueError("a whole number has more than 64 bits")
    elif kind is float:
        if not math.isfinite(value):
            raise ValueError("a number is not finite")
    elif kind is dict or kind is list:
        if not depth:
            raise ValueError(f"lists and maps are more than {MAX_DEPTH} deep")
        if len(value) > MAX_ITEMS:
            raise ValueError(f"a list or map has more than {MAX_ITEMS} items")
        if kind is dict:
            for key in value:
                if type(key) is not str:
                    raise ValueError("a key is no string")
                _check(key, depth)
            value = value.values()
        for item in value:
            _check(item, depth - 1)
    elif value is not None and kind is not bool:
        raise ValueError(f"{kind.__name__} is no value of JSON")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
