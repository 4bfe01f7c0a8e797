"""What one perspective sees of a match, as a log whose rows are encoded once for all who read it."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import msgpack

from clients.protocol.codec import JSON, MAX_BATCH, MAX_DEPTH, MAX_ITEMS
from games.base import Event
from games.referee import Entry, Input
from replays.export import addressed
from replays.record import entry_to_data
from replays.visitors import OMNISCIENT, Perspective, visible

MAX_ROW_DEPTH = MAX_DEPTH - 8
"""Lists and maps within one another in a row."""
CLOCKS_FRESH_S = 0.25
"""Seconds for which an encoded frame with clocks in it may be handed to another watcher."""

Frame = bytes | str


class Reading:
    """The log of one perspective: which entries it sees, each encoded once for each encoding in use."""

    def __init__(self, perspective: Perspective) -> None:
        self.perspective = perspective
        self.seen: list[Entry] = []
        self._scanned = 0
        self._rows: dict[str, list[Any]] = {}
        self._frames: OrderedDict[tuple[Any, ...], tuple[float, int, Frame]] = OrderedDict()

    def __len__(self) -> int:
        return len(self.seen)

    def extend(self, entries: Sequence[Entry], stop: int) -> bool:
        """Take in what became visible up to `stop`; return whether this perspective sees any of it."""
        before = len(self.seen)
        for index in range(self._scanned, stop):
            entry = entries[index]
            everything = self.perspective == OMNISCIENT
            if everything if isinstance(entry, Input) else visible(entry, self.perspective):
                self.seen.append(entry)
        self._scanned = stop
        return len(self.seen) > before

    def frame(
        self,
        match: str,
        first: int,
        *,
        limit_bytes: int,
        subprotocol: str,
        clocks: Mapping[int, float] | None,
        clocks_number: int = 0,
        over: bool,
        now: float,
    ) -> tuple[int, Frame]:
        """Return the frame of the entries from `first`, and the number after its last one.

        `clocks_number` tells one set of clocks from the next; within one they run down.
        """
        key = (first, len(self.seen), limit_bytes, subprotocol, over, clocks_number)
        known = self._frames.get(key)
        if known is not None and (clocks is None or now - known[0] <= CLOCKS_FRESH_S):
            return known[1], known[2]
        rows = self._encoded(subprotocol)
        stop, size = first, 0
        while stop < len(rows) and stop - first < MAX_BATCH and (size < limit_bytes or stop == first):
            size += len(rows[stop])
            stop += 1
        last = stop == len(rows)
        head: dict[str, Any] = {"type": "frames", "match": match, "first": first, "over": over and last}
        if clocks is not None and last:
            head["clocks"] = {str(seat): round(left, 3) for seat, left in clocks.items()}
        frame = _assemble(head, rows[first:stop], subprotocol)
        self._frames[key] = (now, stop, frame)
        if len(self._frames) > 8:
            self._frames.popitem(last=False)
        return stop, frame

    def _encoded(self, subprotocol: str) -> list[Any]:
        rows = self._rows.setdefault(subprotocol, [])
        rows.extend(_row(entry, self.perspective, subprotocol) for entry in self.seen[len(rows) :])
        return rows


def _row(entry: Entry, perspective: Perspective, subprotocol: str) -> Any:
    if isinstance(entry, Event):
        data: list[Any] = ["e", entry.kind, entry.data, addressed(entry, perspective)]
    else:
        # What a learner needs of how the action was sampled stays in the record.
        data = entry_to_data(entry._replace(trace=None))
    plain = [_plain(value, MAX_ROW_DEPTH) for value in data]
    return _json(plain) if subprotocol == JSON else msgpack.packb(plain, use_bin_type=True)


def _plain(value: Any, depth: int) -> Any:
    """Return what either encoding can carry of a value: a record may hold more than a frame."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if kind is int:
        return value if -(2**63) <= value < 2**63 else str(value)
    if kind is bool or kind is float or value is None:
        return value
    if kind is bytes:
        return {"bytes": value.hex()}
    if not depth:
        return "…"
    if kind is dict:
        kept = islice(value.items(), MAX_ITEMS)
        return {_plain(str(key), 0): _plain(item, depth - 1) for key, item in kept}
    if kind is list or kind is tuple:
        return [_plain(item, depth - 1) for item in value[:MAX_ITEMS]]
    return str(value)


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _assemble(head: Mapping[str, Any], rows: Sequence[Any], subprotocol: str) -> Frame:
    """Return a frames message around rows that are encoded already."""
    if subprotocol == JSON:
        return f'{_json(head)[:-1]},"entries":[{",".join(rows)}]}}'
    packer = msgpack.Packer(use_bin_type=True, autoreset=False)
    packer.pack_map_header(len(head) + 1)
    for key, value in head.items():
        packer.pack(key)
        packer.pack(value)
    packer.pack("entries")
    packer.pack_array_header(len(rows))
    start: bytes = packer.bytes()
    return b"".join((start, *rows))
