"""One value, one encoding; and a chain that sees every byte."""

import hashlib
import math
from enum import IntEnum
from typing import NamedTuple

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replays.codec import CHAIN_START, MAX_DEPTH, frame, link, pack, unpack
from replays.errors import NotCanonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


@given(VALUES)
def test_every_value_reads_back_with_its_types(value: object) -> None:
    assert same(unpack(pack(value)), value)


@given(st.dictionaries(TEXT, st.integers(0, 9), max_size=5), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, int], rng: object) -> None:
    keys = list(value)
    rng.shuffle(keys)  # type: ignore[attr-defined]
    assert pack({key: value[key] for key in keys}) == pack(value)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_and_what_is_read_is_written_the_same(body: bytes) -> None:
    try:
        value = unpack(body)
    except (ValueError, NotCanonical):
        return
    assert pack(value) == body


@pytest.mark.parametrize(
    "value", [2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**40, -(10**40), 128, -1]
)
def test_integers_of_any_size(value: int) -> None:
    assert unpack(pack([value, {"n": value}])) == [value, {"n": value}]


def test_tuples_are_arrays() -> None:
    assert pack((1, ("a",))) == pack([1, ["a"]])


class Pair(NamedTuple):
    a: int
    b: int


class Colour(IntEnum):
    RED = 1


DEEP: list[object] = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        {1: 2},
        {b"a": 2},
        {"a": object()},
        {1, 2},
        Pair(1, 2),
        Colour.RED,
        "\ud800",
        {"\ud800": 1},
        DEEP,
        msgpack.Timestamp(1),
        msgpack.ExtType(5, b"x"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_encoding_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(NotCanonical) as raised:
        pack(value)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200
    assert pack([1]) == b"\x91\x01", "the packer is clean afterwards"


def test_nesting_is_bounded_and_the_bound_is_exact() -> None:
    def nested(depth: int) -> object:
        value: object = 1
        for _ in range(depth):
            value = [value]
        return value

    assert unpack(pack(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(NotCanonical, match=f"nested more than {MAX_DEPTH} deep"):
        pack(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x91",  # an array of one, without it
        b"\x01\x01",  # two values
        b"\xd9\x01a",  # a short text with a long length
        b"\xcc\x01",  # a small number with a long length
        b"\xd2\x00\x00\x00\x01",  # a positive number as a signed one
        b"\x82\xa1b\x01\xa1a\x01",  # keys out of order
        b"\x82\xa1a\x01\xa1a\x01",  # a key twice
        b"\x81\x01\x01",  # a key that is no text
        b"\xa1\xff",  # no UTF-8
        b"\xcb\x7f\xf8" + bytes(6),  # not a number
        b"\xca\x00\x00\x00\x00",  # a 32-bit float
        b"\xd6\xff" + bytes(4),  # a timestamp
        b"\xd4\x05\x00",  # an unknown extension
        b"\xd4\x01\x05",  # a small number as a big one
        b"\xc7\x00\x01",  # a big number without digits
        b"\xd5\x01\x00\x05",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
    ],
)
def test_other_encodings_are_refused(body: bytes) -> None:
    with pytest.raises((ValueError, NotCanonical)):
        unpack(body)


@given(st.binary(max_size=300), st.binary(min_size=32, max_size=32))
def test_a_frame_is_a_bin_of_body_and_check(body: bytes, chain: bytes) -> None:
    after = link(chain, body)
    assert after == hashlib.blake2b(chain + body, digest_size=32).digest()
    assert msgpack.unpackb(frame(body, after)) == body + after[:8]


def test_the_chain_depends_on_the_order() -> None:
    assert link(link(CHAIN_START, b"a"), b"b") != link(link(CHAIN_START, b"b"), b"a")
