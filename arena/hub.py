"""Spectators: every match is one shared log, and each watcher pulls from it at its own pace.

Nothing is queued for a watcher. It holds a cursor into the log of its perspective, whose rows are encoded once
for all who read it; so a match never waits, and a watcher that does not read costs no memory. One that had
caught up and then fell more than `max_behind` entries behind starts over from a fresh snapshot.

Entries, and clocks with them (see `arena.clocks`), become visible `delay_s` after they fell, to every watcher
alike; a match is over for watchers when its last entry is visible. Until then the public view is for everyone, a
seat's view for who sits there, and all of it for administrators; afterwards everything is open. Finished matches
are read back from their records.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from arena.clocks import ReadClocks, TurnClock, moved
from arena.errors import RequestRefused
from arena.watcher import MatchInfo, Stream, Watcher, refusal
from clients.protocol.codec import MSGPACK
from games.errors import ArenaError
from games.referee import Entry
from games.text import clean_name
from replays.record import Record
from replays.visitors import OMNISCIENT, Perspective

MAX_BEHIND = 1024
"""Entries that a watcher who had caught up may fall behind before it starts over."""
MAX_FINISHED_ENTRIES = 100_000
"""Entries of finished matches that are kept at hand, in all."""

Find = Callable[[str], Record | None]
"""Returns the record of a finished match, None where there is none. May block."""
Found = Record | Exception | None
Offload = Callable[[Callable[[], Record | None], Callable[[Found], None]], None]
"""Runs the first argument where it may block, and hands what it returned or raised to the second, in the loop."""


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
        self._streams: dict[str, Stream] = {}
        self._finished: OrderedDict[str, Stream] = OrderedDict()
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
        stream = Stream(info, delay_s, read_clocks=clocks)
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
            watcher.failed(RequestRefused(wire, reason))
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
            refused = refusal(watcher, stream)
            if refused is not None:
                raise refused
            if stream.read_clocks is not None and not stream.watchers and not stream.delay_s:
                stream.clocks = (self.clock(), stream.read_clocks())
            watcher.found(stream)
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
        stream = watcher.stream
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

    def _hold_back(self, stream: Stream, clocks: Mapping[int, TurnClock]) -> None:
        if self._call_later is None:
            raise ValueError("a match with a delay needs a hub with call_later")
        stream.due.append((self.clock() + stream.delay_s, len(stream.entries), clocks))
        if len(stream.due) == 1:
            self._call_later(stream.delay_s, lambda: self._release(stream))

    def _release(self, stream: Stream) -> None:
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

    def _show(self, stream: Stream, stop: int, clocks: Mapping[int, TurnClock] | None) -> None:
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

    def _settle(self, stream: Stream) -> None:
        match = stream.info.match
        if self._streams.get(match) is stream:
            del self._streams[match]
        self._keep(match, stream)
        for watcher in list(stream.watchers):
            watcher.on_more()

    def _keep(self, match: str, stream: Stream) -> None:
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
            stream = Stream(info, 0.0, result.entries, len(result.entries), True)
            self._keep(match, stream)
        elif stream is None and isinstance(result, Exception):
            reason = str(result) if isinstance(result, ArenaError) else "it failed"
            failure = RequestRefused("internal", reason)
        elif stream is None:
            failure = RequestRefused("unknown_match", f"match: none has the id {clean_name(match)!r}")
        for watcher in waiting:
            refused = failure if stream is None else refusal(watcher, stream)
            if refused is None and stream is not None:
                watcher.found(stream)
            elif refused is not None:
                watcher.failed(refused)
                self._watchers -= 1
            watcher.on_more()


def _at_once(function: Callable[[], Record | None], done: Callable[[Found], None]) -> None:
    result: Found
    try:
        result = function()
    except Exception as error:
        result = error
    done(result)
