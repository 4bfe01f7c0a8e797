"""Canonical msgpack and the hash chain.

One value has one encoding: maps are sorted by key and keyed by strings, integers and lengths are as short
as they can be, floats are 64-bit and finite, tuples are arrays, nesting is bounded. Integers beyond 64 bits
use extension type 1 (big-endian two's complement).

A record is a stream of frames. A frame is a msgpack `bin`: the body of one entry, then the first 8 bytes of
the chain's value after it. The chain is h₀ = 0³², hₙ = BLAKE2b-256(hₙ₋₁ ‖ bodyₙ); the footer holds the last
value whole. So every frame vouches for everything before it.
"""

import hashlib
import math
from typing import Any

import msgpack

from replays.errors import NotCanonical

BIG_INTEGER = 1
MAX_DEPTH = 64
"""Arrays and maps within each other, the entry itself included."""
CHECK_BYTES = 8
CHAIN_BYTES = 32
CHAIN_START = bytes(CHAIN_BYTES)

_pack = msgpack.Packer(use_bin_type=True, strict_types=True, autoreset=True).pack


def pack(value: Any) -> bytes:
    """Return the canonical encoding. Raises `NotCanonical` for a value that has none."""
    try:
        plain = _canonical(value)
        try:
            packed: bytes = _pack(plain)
        except OverflowError:
            packed = _pack(_with_big_integers(plain))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise NotCanonical(f"value: {str(error)[:120]}") from None
    return packed


def unpack(body: bytes) -> Any:
    """Return the value (arrays as lists).

    Raises `ValueError` or `NotCanonical` where `body` is not the canonical encoding of one value, so that no
    two records hold the same.
    """
    value = _read(body)
    if pack(value) != body:
        raise NotCanonical("the encoding is not the canonical one")
    return value


def as_read(value: Any) -> Any:
    """Return `value` as it is once it was packed and read. Raises `NotCanonical` for a value that has no encoding."""
    return _read(pack(value))


def link(chain: bytes, body: bytes) -> bytes:
    """Return the chain's value after `body`."""
    return hashlib.blake2b(chain + body, digest_size=CHAIN_BYTES).digest()


def frame(body: bytes, chain: bytes) -> bytes:
    """Return `body` as a frame; `chain` is the chain's value after it."""
    packed: bytes = _pack(body + chain[:CHECK_BYTES])
    return packed


_SIMPLE = frozenset({str, int, bool, bytes, type(None)})


_FLOATS = {float}


def _canonical(value: Any, depth: int = MAX_DEPTH) -> Any:
    kind = type(value)
    if kind in _SIMPLE:
        return value
    if not depth:
        raise NotCanonical(f"value: nested more than {MAX_DEPTH} deep")
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise NotCanonical(f"map key: got {str(key)[:40]!r}, allowed are strings")
        return {
            key: item if type(item := value[key]) in _SIMPLE else _canonical(item, depth - 1)
            for key in (sorted(value) if len(value) > 1 else value)
        }
    if kind is list or kind is tuple:
        kinds = set(map(type, value))
        if kinds <= _SIMPLE or (kinds == _FLOATS and all(map(math.isfinite, value))):
            return value if kind is list else list(value)
        return [item if type(item) in _SIMPLE else _canonical(item, depth - 1) for item in value]
    if kind is float:
        if not math.isfinite(value):
            raise NotCanonical(f"number: got {value}, allowed are finite numbers")
        return value
    raise NotCanonical(
        f"value of type {kind.__name__}: allowed are None, bool, int, float, str, bytes, list, dict"
    )


def _with_big_integers(value: Any) -> Any:
    kind = type(value)
    if kind is int and not -(2**63) <= value < 2**64:
        data = value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)
        return msgpack.ExtType(BIG_INTEGER, data)
    if kind is dict:
        return {key: _with_big_integers(item) for key, item in value.items()}
    if kind is list:
        return [_with_big_integers(item) for item in value]
    return value


def _read(body: bytes) -> Any:
    return msgpack.unpackb(body, ext_hook=_extension, strict_map_key=True, raw=False)


def _extension(code: int, data: bytes) -> int:
    if code != BIG_INTEGER:
        raise ValueError(f"extension type {code} is unknown")
    return int.from_bytes(data, "big", signed=True)
