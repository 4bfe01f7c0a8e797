"""What a record holds: a header, then inputs and events in the order they happened, then a footer.

Entries on disk are canonical msgpack arrays:

    ["h", header]                                             first
    ["i", seat, ply, action, failure, reason, thought, trace] an input; empty ones at the end are left out
    ["e", kind, data, audience]                               an event; without audience it is for everyone
    ["f", footer]                                             last; a record without it was cut short

No entry holds a time, so the same match gives the same bytes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from games.base import Event, Outcome
from games.referee import FAILURES, Entry, Input
from replays.codec import CHAIN_BYTES, as_read
from replays.errors import NotCanonical

SCHEMA = 1
SUFFIX = ".arena"


@dataclass(frozen=True, slots=True)
class SeatInfo:
    """Who sat at a seat: the player's name, its spec, and the versions of agent and policy."""

    name: str
    spec: str
    agent: str = ""
    policy: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """What must be known to simulate the match again, and who played it."""

    game: str
    rules: str
    options: dict[str, Any]
    seed: int
    seats: tuple[SeatInfo, ...]
    retries: int
    match: str = ""
    schema: int = SCHEMA

    def to_data(self) -> dict[str, Any]:
        """Return the header as a record holds it."""
        seats = [{name: getattr(seat, name) for name in _SEAT} for seat in self.seats]
        return {name: getattr(self, name) for name in _HEADER} | {"seats": seats}

    @classmethod
    def from_data(cls, data: Any) -> "Header":
        """Read it back; unknown keys are ignored. Raises `ValueError` or `KeyError` for what is no header."""
        known = _typed(data, _HEADER, "header")
        seats = tuple(SeatInfo(**_typed(seat, _SEAT, "seat")) for seat in _list(data, "seats", dict))
        return cls(seats=seats, **known)


@dataclass(frozen=True, slots=True)
class Footer:
    """How the match ended: the rules' outcome, how each seat ended, and the referee's counts."""

    outcome: Outcome
    ended: tuple[str, ...]
    counts: dict[str, int]
    events: int = 0
    chain: bytes = b""

    def to_data(self) -> dict[str, Any]:
        """Return the footer as a record holds it."""
        return {
            "outcome": self.outcome._asdict(),
            "ended": self.ended,
            "counts": {name: self.counts[name] for name in sorted(self.counts) if self.counts[name]},
            "events": self.events,
            "chain": self.chain,
        }

    @classmethod
    def from_data(cls, data: Any) -> "Footer":
        """Read it back; unknown keys are ignored. Raises `ValueError` or `KeyError` for what is no footer."""
        known = _typed(data, _FOOTER, "footer")
        raw = known["outcome"]
        ends = _typed(raw, {"reason": str, "turn_limit": bool}, "outcome")
        outcome = Outcome(
            ends["reason"],
            tuple(_list(raw, "returns", float)),
            tuple(_list(raw, "teams", str)),
            tuple(_list(raw, "roles", str)),
            ends["turn_limit"],
        )
        if len(known["chain"]) != CHAIN_BYTES or any(type(n) is not int for n in known["counts"].values()):
            raise ValueError("footer: malformed chain or counts")
        return cls(
            outcome, tuple(_list(data, "ended", str)), known["counts"], known["events"], known["chain"]
        )


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a record stops being readable: the index of the first event that is lost, and why.

    `truncated` is true where the file simply ends too early, as after a crash.
    """

    event: int
    reason: str
    truncated: bool = False


@dataclass(slots=True)
class Record:
    """A record in memory, up to its last whole entry."""

    header: Header
    entries: list[Entry] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    """The entries' bodies as they stand on disk, one for one."""
    footer: Footer | None = None
    damage: Damage | None = None

    def events(self) -> Iterator[Event]:
        """Yield the events in order: the match itself."""
        return (entry for entry in self.entries if isinstance(entry, Event))


def entry_to_data(entry: Entry) -> list[Any]:
    """Return an input or event as the array that a record holds."""
    if isinstance(entry, Event):
        kind, data, audience = entry
        return ["e", kind, data] if audience is None else ["e", kind, data, audience]
    row: list[Any] = ["i", *entry]
    while row[-1] is None or (row[-1] == "" and len(row) == 3 + _REASON):
        row.pop()
    return row


def entry_from_data(row: Any) -> Entry:
    """Read it back. Raises `ValueError` for what is neither an input nor an event."""
    if type(row) is list and len(row) >= 3:
        tag, first, second, *rest = row
        if tag == "i" and type(first) is int and type(second) is int:
            return _input_from_data(first, second, rest)
        if tag == "e" and type(first) is str and type(second) is dict and len(rest) <= 1:
            if not rest:
                return Event(first, second)
            if type(rest[0]) is list and all(type(seat) is int for seat in rest[0]):
                return Event(first, second, tuple(rest[0]))
    raise ValueError(f"no input or event: {str(row)[:60]}")


def _input_from_data(seat: int, ply: int, rest: list[Any]) -> Input:
    if len(rest) > len(_REST):
        raise ValueError("no input: too many fields")
    for value, allowed in zip(rest, _REST, strict=False):
        if type(value) not in allowed:
            raise ValueError(f"no input: a field is of type {type(value).__name__}")
    if rest:
        if rest[-1] is None or (rest[-1] == "" and len(rest) == _REASON):
            raise ValueError("no input: an empty field at its end is written out")
        if type(rest[0]) is list:
            rest[0] = tuple(rest[0])
    return Input(seat, ply, *rest)


def recordable(given: Input) -> Input:
    """Return `given` exactly as it will be read back from a record, or the failure that it is.

    What an agent hands over may hold anything, and none of it may end the match: an action that no record can
    hold is `illegal`, an unknown failure is an `error`, such a thought or trace is left out.
    """
    failure, reason, thought = given.failure, given.reason, given.thought
    known = failure is None or failure in FAILURES
    plain = type(reason) is str and all(map(_plain, (given.action, reason, thought)))
    if known and plain and given.trace is None:
        return given
    whole = _as_read(given) if known else None
    if whole is not None:
        return whole
    given = given._replace(
        failure=failure if known else "error",
        reason=reason if _as_read(Input(0, 0, reason=reason)) else "",
        thought=thought if _as_read(Input(0, 0, thought=thought)) else None,
        trace=given.trace if _as_read(Input(0, 0, trace=given.trace)) else None,
    )
    whole = _as_read(given)
    if whole is not None:
        return whole
    kind = type(given.action).__name__
    return given._replace(
        action=None,
        failure=given.failure or "illegal",
        reason=given.reason or f"the answer, of type {kind}, holds what no record can hold",
    )


def _plain(value: object) -> bool:
    if type(value) is tuple:
        return all(type(item) is str and item.isascii() for item in value)
    return value is None or (type(value) is str and value.isascii())


def _as_read(given: Input) -> Input | None:
    try:
        entry = entry_from_data(as_read(entry_to_data(given)))
    except (NotCanonical, ValueError):
        return None
    return entry if isinstance(entry, Input) else None


_NONE = type(None)
_REST = (
    frozenset({_NONE, bool, int, float, str, bytes, list, dict}),
    frozenset({_NONE, str}),
    frozenset({str}),
    frozenset({_NONE, str}),
    frozenset({_NONE, dict}),
)
"""The types of an input's action, failure, reason, thought and trace."""
_REASON = 3
"""The reason is the third of them, and the one whose empty value is a text."""
_HEADER = {
    "game": str,
    "rules": str,
    "options": dict,
    "seed": int,
    "retries": int,
    "match": str,
    "schema": int,
}
_SEAT = {"name": str, "spec": str, "agent": str, "policy": str}
_FOOTER = {"outcome": dict, "counts": dict, "events": int, "chain": bytes}


def _typed(data: Any, kinds: Mapping[str, type], what: str) -> dict[str, Any]:
    if type(data) is not dict:
        raise ValueError(f"{what}: a map is needed")
    for name, kind in kinds.items():
        if type(data[name]) is not kind:
            raise ValueError(
                f"{what} {name}: got type {type(data[name]).__name__}, needed is {kind.__name__}"
            )
    return {name: data[name] for name in kinds}


def _list(data: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    items = data[name]
    if type(items) is not list or any(type(item) is not kind for item in items):
        raise ValueError(f"{name}: needed is a list of {kind.__name__}")
    return items
