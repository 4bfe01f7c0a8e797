"""Spectators: every match is one shared log, and each watcher pulls from it at its own pace.

Nothing is queued for a watcher. It holds a cursor into the log of its perspective, whose rows are encoded once
for all who read it; so a match never waits, and a watcher that does not read costs no memory. One that had
caught up and then fell more than `max_behind` entries behind starts over from a fresh snapshot.

Entries, and clocks with them (see `arena.clocks`), become visible `delay_s` after they fell, to every watcher
alike; a match is over for watchers when its last entry is visible. Until then the public view is for everyone, a
seat's view for who sits there, and all of it for administrators; afterwards everything is open. Finished matches
are read back from their records.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from arena.clocks import ReadClocks, TurnClock, moved, shown
from arena.errors import RequestRefused
from arena.reading import Frame, Reading
from clients.protocol.codec import MSGPACK, encode
from clients.protocol.messages import Error, Snapshot
from games.errors import ArenaError
from games.referee import Entry
from games.text import clean_name
from replays.record import Record
from replays.visitors import OMNISCIENT, PUBLIC, Perspective

MAX_BEHIND = 1024
"""Entries that a watcher who had caught up may fall behind before it starts over."""
PULL_BYTES = 64 * 1024
"""Bytes that one pull aims at."""
MAX_FINISHED_ENTRIES = 100_000
"""Entries of finished matches that are kept at hand, in all."""

Find = Callable[[str], Record | None]
"""Returns the record of a finished match, None where there is none. May block."""
Found = Record | Exception | None
Offload = Callable[[Callable[[], Record | None], Callable[[Found], None]], None]
"""Runs the first argument where it may block, and hands what it returned or raised to the second, in the loop."""


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
class _Stream:
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
        return self.closed and not self.due

    def reading(self, perspective: Perspective) -> Reading:
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


class Watcher:
    """One reader of one match. `frames` pulls what is due; `on_more` is called when there is something."""

    def __init__(
        self,
        hub: "Hub",
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
        self._may_see = may_see
        self._request_id = request_id
        self._subprotocol = subprotocol
        self._stream: _Stream | None = None
        self._failure: RequestRefused | None = None
        self._cursor = 0
        self._clocks_number = 0
        self._greeted = self._dropped = self._caught_up = False

    @property
    def match(self) -> str:
        """The match watched; empty while its record is being looked for."""
        return "" if self._stream is None else self._stream.info.match

    def frames(self, *, limit_bytes: int = PULL_BYTES) -> list[Frame]:
        """Return encoded frames that are due, of about `limit_bytes`; pull again when they have been sent."""
        if self.ended:
            return []
        if self._failure is not None:
            self.ended = True
            refused = Error(code=self._failure.wire, message=str(self._failure), id=self._request_id)
            return [encode(refused, subprotocol=self._subprotocol)]
        stream = self._stream
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

    def _pull(self, stream: _Stream, reading: Reading, limit_bytes: int) -> Iterator[Frame]:
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

    def _snapshot(self, stream: _Stream, reading: Reading) -> Snapshot:
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
            allowed=allowed(self._may_see, over=stream.over),
            entries=len(reading),
            delay_s=stream.delay_s,
            live=not stream.over,
            dropped=self._dropped,
        )

    def _found(self, stream: _Stream) -> None:
        self._stream = stream
        stream.watchers[self] = None

    def _failed(self, failure: RequestRefused) -> None:
        self._failure = failure


class Hub:
    """All matches that can be watched.

    Args:
        clock: seconds, never going back.
        call_later: calls a function after so many seconds; needed where matches are shown with a delay.
        find: returns the record of a finished match; by default there is none.
        offload: runs `find` where it may block; by default it is run at once.
        max_behind: see `MAX_BEHIND`.
        max_watchers: watchers at the same time, in all.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        find: Find = lambda match: None,
        offload: Offload | None = None,
        max_behind: int = MAX_BEHIND,
        max_watchers: int = 10_000,
    ) -> None:
        self.clock = clock
        self.max_behind = max_behind
        self.max_watchers = max_watchers
        self.drops = 0
        """How often a watcher had to start over."""
        self._call_later = call_later
        self._find = find
        self._offload = offload or _at_once
        self._streams: dict[str, _Stream] = {}
        self._finished: OrderedDict[str, _Stream] = OrderedDict()
        self._finished_entries = 0
        self._wanted: dict[str, list[Watcher]] = {}
        self._watchers = 0

    def open(
        self,
        info: MatchInfo,
        *,
        delay_s: float = 0.0,
        entries: Sequence[Entry] = (),
        clocks: ReadClocks | None = None,
    ) -> None:
        """Begin a match.

        Args:
            info: what everyone may know of it.
            delay_s: how much later it is shown.
            entries: those so far, where it goes on from its record.
            clocks: returns the clocks of the open turns by seat; called when there is somebody to see them.
        """
        stream = _Stream(info, delay_s, read_clocks=clocks)
        self._streams[info.match] = stream
        self._drop(info.match)
        if entries:
            self.publish(info.match, entries)

    def publish(self, match: str, entries: Sequence[Entry]) -> None:
        """Add entries of an open match, in the order in which they fell. Never blocks and never waits for anyone."""
        stream = self._streams[match]
        stream.entries += entries
        clocks = None
        if stream.read_clocks is not None and (stream.watchers or stream.delay_s > 0):
            clocks = stream.read_clocks()
        if stream.delay_s > 0:
            self._hold_back(stream, clocks or {})
        else:
            self._show(stream, len(stream.entries), clocks)

    def close(self, match: str) -> None:
        """End a match: it is over, and its record is whole."""
        stream = self._streams[match]
        stream.closed, stream.read_clocks = True, None
        if stream.due:
            return
        self._settle(stream)

    def abandon(self, match: str, *, wire: str, reason: str) -> None:
        """Stop showing a match that is not over; its watchers are told why."""
        stream = self._streams.pop(match, None)
        if stream is None:
            return
        for watcher in list(stream.watchers):
            watcher._failed(RequestRefused(wire, reason))
            self.forget(watcher)
            watcher.on_more()

    def watch(
        self,
        match: str,
        *,
        perspective: Literal["public", "seat", "all"] = "public",
        seat: int | None = None,
        may_see: Collection[Perspective] = (),
        request_id: str = "",
        subprotocol: str = MSGPACK,
        on_more: Callable[[], None] = lambda: None,
    ) -> Watcher:
        """Return a watcher, whose first frame is a snapshot.

        Args:
            match: live or finished; a record that must be looked for first is looked for elsewhere, and if
                there is none the watcher's only frame is an error.
            perspective, seat: what to show; `seat` goes with the perspective of that name alone.
            may_see: what the watcher may see before the end apart from the public's view: the numbers of its
                own seats, or `"all"`, which is everything.
            request_id: stands in the snapshot or error.
            subprotocol: the encoding of the frames.
            on_more: called when there is something to pull; it must only take note.

        Raises `RequestRefused` with `forbidden`, `bad_message` or `limit`.
        """
        if (seat is None) == (perspective == "seat"):
            raise RequestRefused(
                "bad_message", "seat: it is given with the perspective 'seat', and only there"
            )
        if self._watchers >= self.max_watchers:
            raise RequestRefused("limit", f"watchers: there are {self.max_watchers}, no more are taken")
        reader: Perspective = seat if perspective == "seat" and seat is not None else "public"
        if perspective == "all":
            reader = OMNISCIENT
        watcher = Watcher(
            self,
            perspective=reader,
            may_see=frozenset(may_see),
            request_id=request_id,
            subprotocol=subprotocol,
            on_more=on_more,
        )
        stream = self._streams.get(match) or self._finished.get(match)
        if stream is not None:
            refusal = _refusal(watcher, stream)
            if refusal is not None:
                raise refusal
            if stream.read_clocks is not None and not stream.watchers and not stream.delay_s:
                stream.clocks = (self.clock(), stream.read_clocks())
            watcher._found(stream)
            self._watchers += 1
            return watcher
        self._watchers += 1
        waiting = self._wanted.setdefault(match, [])
        waiting.append(watcher)
        if len(waiting) == 1:
            self._offload(lambda: self._find(match), lambda result: self._looked_up(match, result))
        return watcher

    def forget(self, watcher: Watcher) -> None:
        """Let go of a watcher; `Watcher.close` calls it."""
        stream = watcher._stream
        if stream is not None:
            if watcher in stream.watchers:
                del stream.watchers[watcher]
                self._watchers -= 1
            return
        for waiting in self._wanted.values():
            if watcher in waiting:
                waiting.remove(watcher)
                self._watchers -= 1

    def live(self) -> list[dict[str, Any]]:
        """Return what everyone may know of the matches that go on, the oldest first."""
        return [
            {
                "match": stream.info.match,
                "game": stream.info.game,
                "names": [clean_name(name) for name in stream.info.names],
                "watchers": len(stream.watchers),
                "delay_s": stream.delay_s,
            }
            for stream in self._streams.values()
        ]

    def __contains__(self, match: str) -> bool:
        return match in self._streams

    @property
    def watchers(self) -> int:
        """How many watchers there are."""
        return self._watchers

    def _hold_back(self, stream: _Stream, clocks: Mapping[int, TurnClock]) -> None:
        if self._call_later is None:
            raise ValueError("a match with a delay needs a hub with call_later")
        stream.due.append((self.clock() + stream.delay_s, len(stream.entries), clocks))
        if len(stream.due) == 1:
            self._call_later(stream.delay_s, lambda: self._release(stream))

    def _release(self, stream: _Stream) -> None:
        now = self.clock()
        # A timer may fire a little early; what is nearly due is due.
        while stream.due and stream.due[0][0] <= now + 0.001:
            _, stop, clocks = stream.due.popleft()
            self._show(stream, stop, clocks)
        if stream.due:
            assert self._call_later is not None
            self._call_later(max(0.0, stream.due[0][0] - now), lambda: self._release(stream))
        elif stream.closed:
            self._settle(stream)

    def _show(self, stream: _Stream, stop: int, clocks: Mapping[int, TurnClock] | None) -> None:
        stream.visible = stop
        told: set[Perspective] = set()
        if clocks is not None:
            now = self.clock()
            at, before = stream.clocks or (now, {})
            told = moved(before, clocks, past_s=now - at)
            stream.clocks = now, clocks
        changed = set()
        for perspective, reading in stream.readings.items():
            if reading.extend(stream.entries, stop) or perspective in told:
                changed.add(perspective)
                stream.clocks_numbers[perspective] = stream.clocks_numbers.get(perspective, 0) + 1
        for watcher in list(stream.watchers):
            if watcher.perspective in changed:
                watcher.on_more()

    def _settle(self, stream: _Stream) -> None:
        match = stream.info.match
        if self._streams.get(match) is stream:
            del self._streams[match]
        self._keep(match, stream)
        for watcher in list(stream.watchers):
            watcher.on_more()

    def _keep(self, match: str, stream: _Stream) -> None:
        self._drop(match)
        self._finished[match] = stream
        self._finished_entries += len(stream.entries)
        while len(self._finished) > 1 and self._finished_entries > MAX_FINISHED_ENTRIES:
            self._drop(next(iter(self._finished)))

    def _drop(self, match: str) -> None:
        stream = self._finished.pop(match, None)
        if stream is not None:
            self._finished_entries -= len(stream.entries)

    def _looked_up(self, match: str, result: Found) -> None:
        waiting = self._wanted.pop(match, [])
        stream = self._streams.get(match)
        failure: RequestRefused | None = None
        if stream is None and isinstance(result, Record):
            info = MatchInfo.of(result, match=match)
            stream = _Stream(info, 0.0, result.entries, len(result.entries), True)
            self._keep(match, stream)
        elif stream is None and isinstance(result, Exception):
            reason = str(result) if isinstance(result, ArenaError) else "it failed"
            failure = RequestRefused("internal", reason)
        elif stream is None:
            failure = RequestRefused("unknown_match", f"match: none has the id {clean_name(match)!r}")
        for watcher in waiting:
            refusal = failure if stream is None else _refusal(watcher, stream)
            if refusal is None and stream is not None:
                watcher._found(stream)
            elif refusal is not None:
                watcher._failed(refusal)
                self._watchers -= 1
            watcher.on_more()


def allowed(may_see: Collection[Perspective], *, over: bool) -> list[str]:
    """Return the perspectives that a watcher may ask for."""
    if over or OMNISCIENT in may_see:
        return ["public", "seat", "all"]
    return ["public", "seat"] if may_see else ["public"]


def _refusal(watcher: Watcher, stream: _Stream) -> RequestRefused | None:
    perspective, may_see = watcher.perspective, watcher._may_see
    seats = len(stream.info.names)
    if isinstance(perspective, int) and not 0 <= perspective < seats:
        text = f"seat: got {perspective}, this match has seats 0 to {seats - 1}"
        return RequestRefused("bad_message", text)
    if perspective == PUBLIC or stream.over or OMNISCIENT in may_see or perspective in may_see:
        return None
    what = "everything" if perspective == OMNISCIENT else f"the view of seat {perspective}"
    text = f"watch: {what} is for administrators and who sits there until the match is over"
    return RequestRefused("forbidden", text)


def _at_once(function: Callable[[], Record | None], done: Callable[[Found], None]) -> None:
    result: Found
    try:
        result = function()
    except Exception as error:
        result = error
    done(result)
