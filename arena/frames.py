"""The messages that a server sends most, put together from parts that are encoded once.

Byte for byte they are what `clients.protocol.codec.encode` makes of the same message. But an event is encoded once
for all seats of its match, and an action space once for all turns that offer it.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from operator import is_
from typing import Any, NamedTuple

import msgpack
from pydantic_core import to_jsonable_python

from clients.protocol.codec import JSON, MAX_BATCH, MAX_BATCH_BYTES
from clients.protocol.messages import WireEvent
from games.referee import Turn
from games.spaces import ActionSpace, Text

Frame = bytes | str

MAX_REMEMBERED = 8
"""Events of a batch that is kept as it was sent."""

_pack = msgpack.Packer(use_bin_type=True, autoreset=True).pack


class SharedEvent(list[Any]):
    """`[kind, data]` as every seat that sees it holds it; it must not be changed."""

    __slots__ = ("last_of", "packed", "text")

    def __init__(self, event: WireEvent) -> None:
        super().__init__(event)
        self.packed: bytes | None = None
        self.text: str | None = None
        self.last_of: _Batch | None = None
        """The batch that ended with it when it was last sent: most seats are sent the same one."""


class _Batch(NamedTuple):
    first: int
    subprotocol: str
    before: tuple[WireEvent, ...]
    """The events before the last one, which itself is left out: it would keep itself alive."""
    sent: tuple[int, Frame]

    def same(self, events: Sequence[WireEvent], first: int, subprotocol: str) -> bool:
        """Whether it is these very events, of which the last one is."""
        return (
            self.first == first
            and self.subprotocol == subprotocol
            and len(self.before) + 1 == len(events)
            and all(map(is_, self.before, events))
        )


def events_frame(
    match: str, events: Sequence[WireEvent], *, first: int, subprotocol: str
) -> tuple[int, Frame]:
    """Return the `events` message that begins with the first of `events`, and how many of them it holds.

    It keeps to the bounds that `clients.protocol.codec.event_batches` keeps to.

    Args:
        match: its name.
        events: one or more.
        first: the number of the first one.
        subprotocol: the encoding.
    """
    last = events[-1]
    if type(last) is not SharedEvent or len(events) > MAX_REMEMBERED:
        return _events_frame(match, events, first, subprotocol)
    known = last.last_of
    if known is None or not known.same(events, first, subprotocol):
        sent = _events_frame(match, events, first, subprotocol)
        known = last.last_of = _Batch(first, subprotocol, tuple(events[:-1]), sent)
    return known.sent


def _events_frame(match: str, events: Sequence[WireEvent], first: int, subprotocol: str) -> tuple[int, Frame]:
    packed: list[bytes] = []
    size = 0
    for event in events[:MAX_BATCH]:
        body = _packed(event)
        size += len(body)
        if packed and size > MAX_BATCH_BYTES:
            break
        packed.append(body)
    count = len(packed)
    head = _head("events", match, 4, subprotocol)
    if isinstance(head, str):
        return count, f'{head},"first":{first},"events":[{",".join(map(_text, events[:count]))}]}}'
    start = b"".join((head, _FIRST, _pack(first), _EVENTS, _array(count)))
    return count, start + b"".join(packed)


def turn_frame(
    match: str,
    request: int,
    turn: Turn,
    *,
    deadline_s: float,
    bank_s: float,
    schema: bool,
    subprotocol: str,
) -> Frame:
    """Return the `turn` message.

    Args:
        match: its name.
        request: its number.
        turn: what is asked.
        deadline_s: seconds left, banked time included.
        bank_s: seconds banked.
        schema: whether the action space goes out as a JSON schema too.
        subprotocol: the encoding.
    """
    tail: dict[str, Any] = {"attempt": turn.attempt}
    if turn.failure is not None:
        tail["failure"] = turn.failure
    tail |= {"reason": turn.reason, "deadline_s": float(deadline_s), "bank_s": float(bank_s)}
    space = _space(turn.space, schema, subprotocol)
    head = _head("turn", match, 5 + schema + len(tail), subprotocol)
    if isinstance(head, str):
        return f'{head},"request":{request},{space!s},{_json(tail)[1:]}'
    assert isinstance(space, bytes)
    parts = [head, _REQUEST, _pack(request), space]
    for name, value in tail.items():
        parts += (_pack(name), _pack(value))
    return b"".join(parts)


def acted_frame(match: str, request: int, *, subprotocol: str) -> Frame:
    """Return the `acted` message."""
    head = _head("acted", match, 3, subprotocol)
    if isinstance(head, str):
        return f'{head},"request":{request}}}'
    return b"".join((head, _REQUEST, _pack(request)))


@lru_cache(maxsize=4096)
def _head(kind: str, match: str, keys: int, subprotocol: str) -> Frame:
    """Return the beginning of a message of so many keys, up to and including its match."""
    if subprotocol == JSON:
        return f'{{"type":"{kind}","match":{_json(match)}'
    return bytes((0x80 | keys,)) + b"".join(map(_pack, ("type", kind, "match", match)))


@lru_cache(maxsize=256)
def _space(space: ActionSpace, schema: bool, subprotocol: str) -> Frame:
    """Return the part of a turn that depends on the action space alone."""
    data = space.to_data()
    if not isinstance(space, Text):
        default = space.default
        data["default"] = default if isinstance(default, str) else list(default)
    part = {"space": data} | ({"schema": space.schema()} if schema else {}) | {"describe": space.describe()}
    if subprotocol == JSON:
        return _json(part)[1:-1]
    packed: bytes = _pack(part)
    return packed[1:]


def _packed(event: WireEvent) -> bytes:
    if type(event) is not SharedEvent:
        return bytes(_pack(to_jsonable_python(event)))
    if event.packed is None:
        event.packed = _pack(event)
    return event.packed


def _text(event: WireEvent) -> str:
    if type(event) is not SharedEvent:
        return _json(to_jsonable_python(event))
    if event.text is None:
        event.text = _json(event)
    return event.text


def _array(count: int) -> bytes:
    """Return the header of a msgpack array of at most `MAX_BATCH` items."""
    return bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


_FIRST, _EVENTS, _REQUEST = map(_pack, ("first", "events", "request"))
