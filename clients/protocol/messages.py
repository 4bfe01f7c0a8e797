"""The messages of the wire protocol, version 1.

Every frame is one message: a map with the key `type`, as msgpack in a binary frame (subprotocol
`arena.1.msgpack`) or as JSON in a text frame (`arena.1.json`); `clients.protocol.codec` reads and writes both.
Unknown keys are ignored, so that a newer peer may add some.

What a seat is told is numbered for that seat alone: its events from 0, its requests from 1. A number that
counted the match's plies would tell how much happened in secret.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.json_schema import models_json_schema

VERSION = 1
MAX_CLIENT_BYTES = 64 * 1024
"""Bytes of one frame from a client."""
MAX_SERVER_BYTES = 4 * 1024 * 1024
"""Bytes of one frame from a server."""
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
    """Seconds left by seat, of the open turns that the perspective may know of."""
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
