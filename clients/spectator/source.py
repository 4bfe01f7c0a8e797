"""Where a match comes from: one contract for live and recorded ones.

A source streams what one perspective may see and nothing else, so no screen can show more by mistake. To look
through other eyes is to start over: `switch`, and the next batch carries the match anew.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from games.referee import Entry, Input
from replays.export import check_perspective
from replays.reader import read_record
from replays.record import Record, SeatInfo
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible

POLL_S = 0.5
"""Seconds between looks at a record that is still being written."""


@dataclass(frozen=True, slots=True)
class MatchInfo:
    """A match as one perspective may know it before the first event. Names are as players gave them: not yet safe."""

    match: str
    game: str
    rules: str
    options: Mapping[str, Any]
    seats: tuple[SeatInfo, ...]
    """Of the specs and versions, only the omniscient view is told."""
    perspective: Perspective
    allowed: tuple[Perspective, ...]
    """Whom this reader may look through."""
    live: bool = False
    """Whether the match is being played now, by a clock."""
    ended: bool = False
    """Whether it had ended before this began, however much of it is still to come."""
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What a source has to tell at once.

    With `info` the match begins anew and all that was told before is void. `over` says that nothing will follow.
    `clocks` holds the seconds left by seat. `notice` is shown to the reader until the next one; None leaves it.
    """

    entries: tuple[Entry, ...] = ()
    info: MatchInfo | None = None
    over: bool = False
    clocks: Mapping[int, float] = field(default_factory=dict)
    notice: str | None = None


class EventSource(ABC):
    """A match to be watched. `batches` is iterated once; its first batch carries the `info`."""

    name: str
    """What it is called on a screen before it is open."""

    @abstractmethod
    def batches(self) -> AsyncIterator[Batch]:
        """Yield the match as it comes, until `close`. Raises `ArenaError` where there is nothing to be had."""

    @abstractmethod
    async def switch(self, perspective: Perspective) -> None:
        """Look through other eyes: the match comes anew. The caller asks only for what `allowed` names."""

    @abstractmethod
    async def close(self) -> None:
        """End `batches` and let go of everything."""


class RecordSource(EventSource):
    """A record: read whole at once, and followed as it grows while it has no footer.

    Args:
        path: the record's file.
        perspective: who looks first.
        record: what was read of it already, so that it need not be read again.
        poll_s: seconds between looks at a file that may still grow.
    """

    def __init__(
        self,
        path: Path,
        *,
        perspective: Perspective = PUBLIC,
        record: Record | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self.path = path
        self.name = path.name
        self._perspective = perspective
        self._record = record
        self._poll_s = poll_s
        self._changed = asyncio.Event()
        self._closed = False

    async def batches(self) -> AsyncIterator[Batch]:
        record, self._record = self._record, None
        if record is None:
            record = await asyncio.to_thread(read_record, self.path)
        check_perspective(record, self._perspective)
        told, size = 0, -1
        told_to: Perspective | None = None
        while not self._closed:
            fresh = told_to != self._perspective
            told_to = self._perspective
            entries = record.entries if fresh else record.entries[told:]
            told = len(record.entries)
            whole = record.footer is not None
            if fresh or entries or whole:
                seen = tuple(entry for entry in entries if _may_see(entry, told_to))
                info = _info(record, told_to) if fresh else None
                yield Batch(seen, info, over=whole, notice=_notice(record))
            while not await self._wait(None if whole else self._poll_s):
                grown = await asyncio.to_thread(self._grown, size)
                if grown is not None:
                    size, again = grown
                    if again.bodies[:told] != record.bodies[:told]:
                        told_to = None  # the file was written anew: what was told of it is void
                    if told_to is None or len(again.entries) > told or again.footer is not None:
                        record = again
                        break

    async def switch(self, perspective: Perspective) -> None:
        self._perspective = perspective
        self._changed.set()

    async def close(self) -> None:
        self._closed = True
        self._changed.set()

    async def _wait(self, timeout_s: float | None) -> bool:
        """Wait for a call from outside, at most `timeout_s`; say whether one came."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def _grown(self, size: int) -> tuple[int, Record] | None:
        try:
            now = self.path.stat().st_size
        except OSError:
            return None  # it was taken away; what was read stays on the screen
        return None if now == size else (now, read_record(self.path))


def _may_see(entry: Entry, perspective: Perspective) -> bool:
    if isinstance(entry, Input):
        return perspective == OMNISCIENT
    return visible(entry, perspective)


def _info(record: Record, perspective: Perspective) -> MatchInfo:
    header = record.header
    known = perspective == OMNISCIENT
    seats = header.seats if known else tuple(SeatInfo(seat.name, "") for seat in header.seats)
    return MatchInfo(
        header.match,
        header.game,
        header.rules,
        header.options,
        seats,
        perspective,
        (PUBLIC, OMNISCIENT, *range(len(header.seats))),
        ended=record.footer is not None,
        seed=header.seed if known else None,
    )


def _notice(record: Record) -> str:
    damage = record.damage
    if damage is None:
        return ""
    if damage.truncated and record.footer is None:
        return "This record has no end yet: it is still being written, or was cut short. New events are followed."
    return f"This record is damaged from here on: {damage.reason}."
