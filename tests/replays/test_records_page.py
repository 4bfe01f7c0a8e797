"""docs/records.md: its examples run, and a reader written from it alone reads what the code writes."""

import hashlib
import re
from pathlib import Path
from typing import Any

import msgpack
import pytest

from games.base import Event
from games.referee import FAILURES, Input
from replays.codec import BIG_INTEGER, CHECK_BYTES, MAX_DEPTH
from replays.record import SCHEMA, Footer, Header
from tests.replays.recording import make, read

PAGE = (Path(__file__).parents[2] / "docs" / "records.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_the_examples_run() -> None:
    names: dict[str, Any] = {}
    assert len(BLOCKS) >= 6
    for block in BLOCKS:
        exec(compile(block, "docs/records.md", "exec"), names)


def test_the_page_names_every_key_failure_and_number() -> None:
    for name in (*Header.__dataclass_fields__, *Footer.__dataclass_fields__, *FAILURES):
        assert f"`{name}`" in PAGE, name
    assert f"| {SCHEMA}; a reader refuses a larger number" in PAGE
    assert f"**check** of {CHECK_BYTES} bytes" in PAGE
    assert f"extension type {BIG_INTEGER}:" in PAGE
    assert f"at most {MAX_DEPTH} deep" in PAGE


def foreign(data: bytes) -> list[Any]:
    """A reader written from the page, with msgpack and hashlib alone."""
    chain, at, entries, before = bytes(32), 0, [], b""
    while at < len(data):
        width = {0xC4: 1, 0xC5: 2, 0xC6: 4}[data[at]]
        start = at + 1 + width
        end = start + int.from_bytes(data[at + 1 : start], "big")
        body, before = data[start : end - 8], chain
        chain = hashlib.blake2b(chain + body, digest_size=32).digest()
        assert data[end - 8 : end] == chain[:8]
        entries.append(
            msgpack.unpackb(body, ext_hook=lambda code, raw: int.from_bytes(raw, "big", signed=True))
        )
        at = end
    assert entries[-1][1]["chain"] == before
    return entries


@pytest.mark.parametrize(("game", "seats"), [("kuhn", 2), ("avalon", 6), ("werewolf", 7)])
def test_a_foreign_reader_reads_the_same(game: str, seats: int) -> None:
    data = make(game, seats=seats, seed=9, messy=True)
    record = read(data)
    (tag, head), *middle, (last, foot) = foreign(data)
    assert (tag, last) == ("h", "f")
    assert head["seed"] == record.header.seed and len(head["seats"]) == seats
    assert len(middle) == len(record.entries)
    for row, entry in zip(middle, record.entries, strict=True):
        if isinstance(entry, Event):
            audience = tuple(row[3]) if len(row) == 4 else None
            assert (row[0], row[1], row[2], audience) == ("e", entry.kind, entry.data, entry.audience)
        else:
            padded = [*row[1:], *[None] * (8 - len(row))]
            if isinstance(padded[2], list):
                padded[2] = tuple(padded[2])
            padded[4] = padded[4] or ""
            assert row[0] == "i" and Input(*padded) == entry
    assert record.footer is not None
    assert foot["events"] == record.footer.events and foot["counts"] == record.footer.counts
