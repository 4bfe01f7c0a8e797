"""Sources: a record as it stands, as it grows, and as one perspective may see it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clients.spectator.source import Batch, RecordSource
from games.base import Event
from games.errors import BadSeats
from games.referee import Input
from replays.errors import NotARecord, RecordUnreadable
from replays.reader import read_record
from replays.visitors import OMNISCIENT, PUBLIC, visible
from tests.clients.spectator.showing import encode, entries, named, put, write, write_entries

POLL_S = 0.01


async def next_batch(batches: AsyncIterator[Batch]) -> Batch:
    return await anext(batches)


@pytest.mark.asyncio
async def test_a_whole_record_comes_at_once_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "avalon", seats=5)
    source = RecordSource(path)
    batch = await next_batch(source.batches())
    assert batch.over and batch.info is not None and batch.info.ended and not batch.info.live
    assert batch.notice == ""
    assert list(batch.entries) == [event for event in read_record(path).events() if visible(event, PUBLIC)]
    await source.close()


@pytest.mark.asyncio
async def test_only_the_omniscient_are_told_inputs_seed_and_specs(tmp_path: Path) -> None:
    path = write(tmp_path, "avalon", seats=5, messy=True)
    for perspective in (PUBLIC, 2, OMNISCIENT):
        source = RecordSource(path, perspective=perspective)
        batch = await next_batch(source.batches())
        assert batch.info is not None
        everything = perspective == OMNISCIENT
        assert any(isinstance(entry, Input) for entry in batch.entries) == everything
        assert (batch.info.seed is not None) == everything
        assert any(seat.spec for seat in batch.info.seats) == everything
        events = [entry for entry in batch.entries if isinstance(entry, Event)]
        assert all(visible(event, perspective) for event in events)
        await source.close()


@pytest.mark.asyncio
async def test_other_eyes_start_the_match_over(tmp_path: Path) -> None:
    source = RecordSource(write(tmp_path, "avalon", seats=5))
    batches = source.batches()
    public = await next_batch(batches)
    await source.switch(3)
    seat = await next_batch(batches)
    assert seat.info is not None and seat.info.perspective == 3
    assert len(seat.entries) > len(public.entries)
    await source.switch(PUBLIC)
    assert await next_batch(batches) == public
    await source.close()
    assert [batch async for batch in batches] == []


@pytest.mark.asyncio
async def test_a_growing_record_is_followed_to_its_end(tmp_path: Path) -> None:
    head = named("werewolf", seats=7, seed=4)
    made, end = entries(head)
    path = write_entries(tmp_path / "w.arena", head, made[:20])
    source = RecordSource(path, poll_s=POLL_S)
    batches = source.batches()
    first = await next_batch(batches)
    assert not first.over and first.info is not None and not first.info.ended
    assert first.notice is not None and "no end yet" in first.notice
    seen = list(first.entries)
    for stop in (50, 90):
        write_entries(path, head, made[:stop])
        batch = await next_batch(batches)
        assert batch.info is None and not batch.over
        seen += batch.entries
    put(path, encode(head, made, end))
    last = await next_batch(batches)
    assert last.over and last.notice == ""
    assert [*seen, *last.entries] == [
        entry for entry in made if isinstance(entry, Event) and visible(entry, PUBLIC)
    ]
    await source.close()


@pytest.mark.asyncio
async def test_a_record_that_is_written_anew_starts_over(tmp_path: Path) -> None:
    head = named("werewolf", seats=7, seed=4)
    path = write_entries(tmp_path / "w.arena", head, entries(head)[0][:40])
    source = RecordSource(path, poll_s=POLL_S)
    batches = source.batches()
    await next_batch(batches)
    other = named("werewolf", seats=7, seed=5)
    write_entries(path, other, entries(other)[0][:60])
    again = await next_batch(batches)
    assert again.info is not None and again.info.match == other.match
    await source.close()


@pytest.mark.asyncio
async def test_a_record_that_is_taken_away_leaves_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = named("kuhn", seats=2, seed=4)
    path = write_entries(tmp_path / "k.arena", head, entries(head)[0][:4])
    source = RecordSource(path, poll_s=POLL_S)
    batches = source.batches()
    await next_batch(batches)
    path.unlink()
    looks = 0
    look = source._grown

    def counted(size: int) -> Any:
        nonlocal looks
        looks += 1
        return look(size)

    monkeypatch.setattr(source, "_grown", counted)
    waiting = asyncio.ensure_future(next_batch(batches))
    while looks < 5:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)
    assert not waiting.done()
    await source.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


@pytest.mark.asyncio
async def test_damage_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "avalon", seats=5)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    source = RecordSource(path, poll_s=POLL_S)
    batch = await next_batch(source.batches())
    assert batch.entries and batch.notice is not None and "damaged from here on" in batch.notice
    await source.close()


@pytest.mark.asyncio
async def test_what_is_no_record_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "no.arena").write_bytes(b"no")
    for name, kind in (("no.arena", NotARecord), ("none.arena", RecordUnreadable)):
        with pytest.raises(kind) as error:
            await next_batch(RecordSource(tmp_path / name).batches())
        assert "\n" not in str(error.value)
    with pytest.raises(BadSeats):
        await next_batch(RecordSource(write(tmp_path, "kuhn", seats=2), perspective=2).batches())
