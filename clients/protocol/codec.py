"""Messages as frames, and back: the two encodings, their bounds, and events in batches.

`decode` bounds the size before it looks inside, and validates. Values are those of JSON in both encodings: no
bytes, no extension types, no numbers that are not finite, no lone surrogates.
"""

import json
import math
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

import msgpack
from pydantic import Field, TypeAdapter, ValidationError

from clients.errors import ProtocolError
from clients.protocol.messages import (
    CLIENT_MESSAGES,
    MAX_CLIENT_BYTES,
    MAX_SERVER_BYTES,
    SERVER_MESSAGES,
    Events,
    Message,
    WireEvent,
)

MSGPACK = "arena.1.msgpack"
JSON = "arena.1.json"
SUBPROTOCOLS = (MSGPACK, JSON)

MAX_BATCH = 256
"""Events in one message; longer histories come in several."""
MAX_BATCH_BYTES = 512 * 1024
"""Bytes of msgpack that the events of one message stay under, where they are more than one."""
MAX_ITEMS = 10_000
"""Items of one list or map in a frame."""
MAX_DEPTH = 32
"""Lists and maps within one another in a frame."""


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
                if not key.isascii():
                    key.encode()
            value = value.values()
        for item in value:
            if type(item) is not str or not item.isascii():
                _check(item, depth - 1)
    elif value is not None and kind is not bool:
        raise ValueError(f"{kind.__name__} is no value of JSON")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
