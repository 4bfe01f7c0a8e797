"""One who watches a match, and what is watched: entries, how many of them are visible, and who may see what."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from arena.clocks import ReadClocks, TurnClock, shown
from arena.errors import RequestRefused
from arena.reading import Frame, Reading
from clients.protocol.codec import encode
from clients.protocol.messages import Error, Snapshot
from games.referee import Entry
from games.text import clean_name
from replays.record import Record
from replays.visitors import OMNISCIENT, PUBLIC, Perspective

PULL_BYTES = 64 * 1024
"""Bytes that one pull aims at."""


@dataclass(frozen=True, slots=True)
class MatchInfo:
    """What everyone may know of a match from the start."""

    match: str
    game: str
    rules: str
    options: Mapping[str, Any]
    names: tuple[str, ...]

    @classmethod
    def of(cls, record: Record, *, match: str) -> "MatchInfo":
        """Return it for a recorded match."""
        header = record.header
        names = tuple(info.name for info in header.seats)
        return cls(match, header.game, header.rules, header.options, names)


@dataclass(eq=False, slots=True)
class Stream:
    """One match: its entries in order, how many of them are visible, and who watches."""

    info: MatchInfo
    delay_s: float
    entries: list[Entry] = field(default_factory=list)
    visible: int = 0
    closed: bool = False
    due: deque[tuple[float, int, Mapping[int, TurnClock]]] = field(default_factory=deque)
    """What is held back: when it becomes visible, the entries up to there, and the clocks at that moment."""
    read_clocks: ReadClocks | None = None
    clocks: tuple[float, Mapping[int, TurnClock]] | None = None
    """When they were read or became visible, and what they showed."""
    clocks_numbers: dict[Perspective, int] = field(default_factory=dict)
    """How often each perspective's clocks were shown anew."""
    readings: dict[Perspective, Reading] = field(default_factory=dict)
    watchers: "dict[Watcher, None]" = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether watchers have been shown the end."""
        return self.closed and not self.due

    def reading(self, perspective: Perspective) -> Reading:
        """Return what a perspective may read of it, shared by all who have that perspective."""
        reading = self.readings.get(perspective)
        if reading is None:
            reading = self.readings[perspective] = Reading(perspective)
            reading.extend(self.entries, self.visible)
        return reading

    def clocks_of(self, perspective: Perspective, now: float) -> dict[int, float] | None:
        """Return the seconds left by seat that a perspective may see; None where nothing is known of clocks."""
        if self.clocks is None or self.over:
            return None
        at, clocks = self.clocks
        return shown(clocks, perspective, past_s=now - at)


class Keeper(Protocol):
    """Who keeps watchers: `arena.hub.Hub`."""

    clock: Callable[[], float]
    max_behind: int
    drops: int

    def forget(self, watcher: "Watcher") -> None:
        """Let go of a watcher."""


class Watcher:
    """One reader of one match. `frames` pulls what is due; `on_more` is called when there is something."""

    def __init__(
        self,
        hub: Keeper,
        *,
        perspective: Perspective,
        may_see: frozenset[Perspective],
        request_id: str,
        subprotocol: str,
        on_more: Callable[[], None],
    ) -> None:
        self.perspective = perspective
        self.ended = False
        """Whether nothing will ever follow: the match is over and told, or the request failed."""
        self.on_more = on_more
        self._hub = hub
        self.may_see = may_see
        self._request_id = request_id
        self._subprotocol = subprotocol
        self.stream: Stream | None = None
        self._failure: RequestRefused | None = None
        self._cursor = 0
        self._clocks_number = 0
        self._greeted = self._dropped = self._caught_up = False

    @property
    def match(self) -> str:
        """The match watched; empty while its record is being looked for."""
        return "" if self.stream is None else self.stream.info.match

    def frames(self, *, limit_bytes: int = PULL_BYTES) -> list[Frame]:
        """Return encoded frames that are due, of about `limit_bytes`; pull again when they have been sent."""
        if self.ended:
            return []
        if self._failure is not None:
            self.ended = True
            refused = Error(code=self._failure.wire, message=str(self._failure), id=self._request_id)
            return [encode(refused, subprotocol=self._subprotocol)]
        stream = self.stream
        if stream is None:
            return []
        reading = stream.reading(self.perspective)
        found: list[Frame] = []
        if self._caught_up and len(reading) - self._cursor > self._hub.max_behind:
            self._greeted, self._dropped, self._caught_up, self._cursor = False, True, False, 0
            self._hub.drops += 1
        if not self._greeted:
            found.append(encode(self._snapshot(stream, reading), subprotocol=self._subprotocol))
            self._greeted = True
        found += self._pull(stream, reading, limit_bytes - sum(map(len, found)))
        return found

    def close(self) -> None:
        """Stop watching."""
        self.ended = True
        self._hub.forget(self)

    def found(self, stream: Stream) -> None:
        """Watch this match from now on."""
        self.stream = stream
        stream.watchers[self] = None

    def failed(self, failure: RequestRefused) -> None:
        """Have nothing to watch, and tell why."""
        self._failure = failure

    def _pull(self, stream: Stream, reading: Reading, limit_bytes: int) -> Iterator[Frame]:
        now = self._hub.clock()
        while limit_bytes > 0:
            clocks = stream.clocks_of(self.perspective, now)
            number = stream.clocks_numbers.get(self.perspective, 0)
            fresh_clocks = clocks is not None and self._clocks_number < number
            if self._cursor == len(reading) and not stream.over and not fresh_clocks:
                self._caught_up = True
                return
            self._cursor, frame = reading.frame(
                stream.info.match,
                self._cursor,
                limit_bytes=PULL_BYTES,
                subprotocol=self._subprotocol,
                clocks=clocks,
                clocks_number=number,
                over=stream.over,
                now=now,
            )
            limit_bytes -= len(frame)
            yield frame
            if self._cursor == len(reading):
                self._caught_up, self._clocks_number = True, number
                if stream.over:
                    self.ended = True
                    self._hub.forget(self)
                return

    def _snapshot(self, stream: Stream, reading: Reading) -> Snapshot:
        info, seat = stream.info, self.perspective if isinstance(self.perspective, int) else None
        kind: Literal["public", "seat", "all"] = (
            "seat" if isinstance(self.perspective, int) else self.perspective
        )
        return Snapshot(
            id=self._request_id,
            match=info.match,
            game=info.game,
            rules=info.rules,
            options=dict(info.options),
            names=[clean_name(name) for name in info.names],
            perspective=kind,
            seat=seat,
            allowed=allowed(self.may_see, over=stream.over),
            entries=len(reading),
            delay_s=stream.delay_s,
            live=not stream.over,
            dropped=self._dropped,
        )


def allowed(may_see: Collection[Perspective], *, over: bool) -> list[str]:
    """Return the perspectives that a watcher may ask for."""
    if over or OMNISCIENT in may_see:
        return ["public", "seat", "all"]
    return ["public", "seat"] if may_see else ["public"]


def refusal(watcher: Watcher, stream: Stream) -> RequestRefused | None:
    """Return why a watcher may not see a match so; None where it may."""
    perspective, may_see = watcher.perspective, watcher.may_see
    seats = len(stream.info.names)
    if isinstance(perspective, int) and not 0 <= perspective < seats:
        text = f"seat: got {perspective}, this match has seats 0 to {seats - 1}"
        return RequestRefused("bad_message", text)
    if perspective == PUBLIC or stream.over or OMNISCIENT in may_see or perspective in may_see:
        return None
    what = "everything" if perspective == OMNISCIENT else f"the view of seat {perspective}"
    text = f"watch: {what} is for administrators and who sits there until the match is over"
    return RequestRefused("forbidden", text)
