"""Reading: whatever the bytes are, what is whole is read, and what is wrong is said in a line."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from games.base import Event
from replays.codec import CHAIN_START, frame, link, pack, unpack
from replays.errors import NotARecord, RecordDamaged, RecordTooNew, RecordUnreadable
from replays.reader import read_header, read_record
from replays.record import SCHEMA, Record
from replays.verify import verify, verify_file
from tests.replays.recording import bodies, encode, entries, header, make, read, seal

SMALL = make("kuhn", messy=True)
LARGE = {game: make(game, seats=6, seed=3, messy=True) for game in ("avalon", "werewolf")}


def test_a_whole_record_reads_back() -> None:
    head = header("avalon", seats=5)
    made, end = entries(head, messy=True)
    record = read(encode(head, made, end))
    assert record.header == head
    assert record.entries == made
    assert record.footer is not None and record.footer.outcome == end.outcome
    assert record.footer.events == sum(isinstance(entry, Event) for entry in made)
    assert record.damage is None


def frame_ends(data: bytes) -> list[int]:
    ends, at = [], 0
    for body in bodies(data):
        at += len(frame(body, CHAIN_START))
        ends.append(at)
    assert at == len(data)
    return ends


@pytest.mark.parametrize("data", [SMALL, LARGE["werewolf"]], ids=["kuhn", "werewolf"])
def test_cut_at_every_byte_it_reads_to_the_last_whole_entry_and_says_so(data: bytes) -> None:
    whole, ends = read(data), frame_ends(data)
    step = 1 if len(data) < 3000 else 7
    for size in range(0, len(data), step):
        if size < ends[0]:
            with pytest.raises(NotARecord):
                read(data[:size])
            continue
        count = sum(end <= size for end in ends) - 1
        record = read(data[:size])
        assert record.entries == whole.entries[:count]
        assert record.damage is not None and record.damage.truncated and "cut short" in record.damage.reason
        assert record.damage.event == sum(isinstance(entry, Event) for entry in record.entries)
        verdict = verify(record)
        assert (verdict.ok, verdict.first_bad) == (False, record.damage.event)


def test_every_bit_of_a_record_matters_and_no_flip_looks_like_a_crash() -> None:
    total = 0
    for i in range(len(SMALL)):
        for bit in range(8):
            flipped = bytearray(SMALL)
            flipped[i] ^= 1 << bit
            total += 1
            try:
                record = read(bytes(flipped))
            except (NotARecord, RecordTooNew):
                continue
            assert record.damage is not None, (i, bit)
            assert not record.damage.truncated, (i, bit)
            assert not verify(record).ok
    assert total == 8 * len(SMALL)


@pytest.mark.parametrize("game", LARGE)
@given(st.data())
@settings(deadline=None, max_examples=60)
def test_one_flipped_bit_of_a_larger_record_is_found_where_it_is(game: str, data: st.DataObject) -> None:
    source = LARGE[game]
    at = data.draw(st.integers(0, 8 * len(source) - 1))
    flipped = bytearray(source)
    flipped[at // 8] ^= 1 << at % 8
    place = sum(end <= at // 8 for end in frame_ends(source)) - 1
    if place < 0:
        with pytest.raises((NotARecord, RecordTooNew)):
            read(bytes(flipped))
        return
    record = read(bytes(flipped))
    assert record.damage is not None and not record.damage.truncated
    assert len(record.entries) == min(place, len(read(source).entries))
    assert verify(record).first_bad == record.damage.event


@pytest.mark.parametrize("change", ["removed", "repeated", "swapped", "moved to the end", "inserted"])
def test_frames_that_are_moved_break_the_chain(change: str) -> None:
    ends = frame_ends(SMALL)
    frames = [SMALL[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    for i in range(1, len(frames) - 1):
        parts = list(frames)
        if change == "removed":
            del parts[i]
        elif change == "repeated":
            parts.insert(i, parts[i])
        elif change == "swapped":
            parts[i], parts[i + 1] = parts[i + 1], parts[i]
        elif change == "moved to the end":
            parts.append(parts.pop(i))
        else:
            parts.insert(i, frame(pack(["e", "x", {}]), CHAIN_START))
        record = read(b"".join(parts))
        assert record.damage is not None and not record.damage.truncated
        assert len(record.entries) == (i if change == "repeated" else i - 1)
        assert not verify(record).ok


@given(st.binary(min_size=1, max_size=40))
def test_bytes_after_the_footer_are_found(tail: bytes) -> None:
    record = read(SMALL + tail)
    assert record.footer is not None
    assert record.damage is not None and record.damage.reason == "bytes follow the footer"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\xc4",
        b"\xc4\x00",
        b"\xc4\x07" + bytes(7),
        b"\xc4\x08" + bytes(8),
        b"\xc6\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff" + bytes(1000),
        b"\x7fELF" + bytes(100),
        b'{"game": "kuhn"}\n',
        b"PK\x03\x04" + bytes(50),
        SMALL[1:],
        seal([pack("h")]),
        seal([pack(["h"])]),
        seal([pack(["h", []])]),
        seal([pack(["h", {}])]),
        seal([pack(["h", {"schema": "1"}])]),
        seal([pack(["h", {**header().to_data(), "schema": 0}])]),
        seal([pack(["h", {**header().to_data(), "schema": -5}])]),
        seal([pack(["h", {**header().to_data(), "seats": [1]}])]),
        seal([pack(["h", {**header().to_data(), "seats": [{"name": "a"}]}])]),
        seal([pack(["h", header().to_data(), 1])]),
        seal([pack(["e", "x", {}])]),
        seal([b"\x91" * 2000]),
        seal([b"\xc1"]),
        seal([b""]),
    ],
    ids=range(26),
)
def test_what_is_no_record_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arena"
    path.write_bytes(data)
    with pytest.raises(NotARecord) as raised:
        read_record(path)
    assert str(raised.value).startswith(f"{path}: ") and "\n" not in str(raised.value)
    verdict = verify_file(path)
    assert (verdict.ok, verdict.events, verdict.first_bad) == (False, 0, 0)
    assert str(path) not in verdict.reason


def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "x.arena"
    path.write_bytes(seal([pack(["h", {"schema": SCHEMA + 1, "all": "else may differ"}])]))
    with pytest.raises(
        RecordTooNew, match=rf"schema {SCHEMA + 1}, this version reads up to {SCHEMA}: upgrade"
    ):
        read_record(path)
    assert "upgrade" in verify_file(path).reason


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.arena", tmp_path / "a\0b"):
        with pytest.raises(RecordUnreadable, match="cannot read the record"):
            read_record(path)


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there is no /dev/zero here")
def test_a_device_that_never_ends_is_not_read() -> None:
    with pytest.raises(RecordUnreadable, match="it is a device, a record is a file"):
        read_record(Path("/dev/zero"))


def test_strict_reading_takes_whole_records_only(tmp_path: Path) -> None:
    path = tmp_path / "x.arena"
    path.write_bytes(SMALL)
    assert read_record(path, strict=True).footer is not None
    path.write_bytes(SMALL[:-1])
    with pytest.raises(RecordDamaged, match=r"event [0-9]+: .*cut short"):
        read_record(path, strict=True)


BAD_BODIES = [
    pack(None),
    pack([]),
    pack("e"),
    pack(["f"]),
    pack(["f", {}]),
    pack(["f", {}, {}]),
    pack(["e", "x", {}, [0.5]]),
    pack(["i", 0, 0, None, 5]),
    pack(["i", 0, 0, "a", None]),
    b"\x93\xa1e\xa1x\x82\xa1b\x01\xa1a\x01",
    b"\x93\xa1e\xa1x\x81\xa1t\xd6\xff" + bytes(4),
    b"\x91" * 900,
    b"\xc1",
    b"",
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_a_well_hashed_entry_that_is_none_ends_the_reading_there(body: bytes) -> None:
    parts = bodies(SMALL)
    record = read(seal([*parts[:4], body, *parts[4:]]))
    assert record.damage is not None and not record.damage.truncated
    assert len(record.entries) == 3
    assert not verify(record).ok


def test_a_frame_whose_length_is_written_too_long_is_refused() -> None:
    parts = bodies(SMALL)
    start = seal(parts[:2])
    chain = CHAIN_START
    for body in parts[:3]:
        chain = link(chain, body)
    checked = parts[2] + chain[:8]
    record = read(start + b"\xc5" + len(checked).to_bytes(2, "big") + checked)
    assert record.damage is not None and "shortest" in record.damage.reason


def total(data: bytes) -> Record | None:
    try:
        record = read(data)
    except (NotARecord, RecordTooNew) as error:
        assert "\n" not in str(error)
        return None
    verdict = verify(record)
    assert verdict.ok == (record.damage is None and record.footer is not None and verdict.first_bad is None)
    assert "\n" not in verdict.reason
    return record


@given(st.binary(max_size=200))
def test_random_bytes_never_crash(data: bytes) -> None:
    assert total(data) is None


@pytest.mark.parametrize("source", [SMALL, LARGE["avalon"]], ids=["kuhn", "avalon"])
@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_records_never_crash_and_never_verify(source: bytes, rng: random.Random) -> None:
    data = bytearray(source)
    for _ in range(rng.randint(1, 4)):
        at, n = rng.randrange(len(data)), rng.randint(0, 9)
        data[at : at + n] = rng.randbytes(rng.randint(0, 9))
    if bytes(data) == source:
        return
    record = total(bytes(data))
    assert record is None or not verify(record).ok


def mutate(value: object, rng: random.Random) -> object:
    """Return `value` with one thing in it replaced."""
    odd = rng.choice(
        [None, True, -1, 2**70, 1.5, "", "x" * 300, b"", [], {}, [[]], {"seat": 99}, [0, 1, 2], "kuhn"]
    )
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [mutate(item, rng) if i == at else item for i, item in enumerate(value)]
    if isinstance(value, dict) and value and rng.random() < 0.9:
        at = rng.choice(sorted(value))
        if rng.random() < 0.2:
            return {key: item for key, item in value.items() if key != at}
        return {key: mutate(item, rng) if key == at else item for key, item in value.items()}
    return odd


@pytest.mark.parametrize("source", [SMALL, *LARGE.values()], ids=["kuhn", *LARGE])
@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
def test_well_hashed_nonsense_never_crashes(source: bytes, rng: random.Random) -> None:
    parts = bodies(source)
    at = rng.choice([0, len(parts) - 1, rng.randrange(len(parts))])
    parts[at] = pack(mutate(unpack(parts[at]), rng))
    total(seal(parts))


def test_a_header_alone_is_that_of_the_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "r.arena"
    for data in (SMALL, *LARGE.values()):
        path.write_bytes(data)
        assert read_header(path) == read_record(path).header
        path.write_bytes(data[: len(data) // 2])
        assert read_header(path) == read(data).header


def test_a_header_that_is_longer_than_what_is_read_first(tmp_path: Path) -> None:
    path = tmp_path / "r.arena"
    long = replace(header("kuhn"), match="m" * 100_000)
    path.write_bytes(encode(long, [], None))
    assert read_header(path) == long
    path.write_bytes(b"x" * 100_000)
    with pytest.raises(NotARecord, match=r"r\.arena: no arena record"):
        read_header(path)


def test_a_header_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(RecordUnreadable, match="cannot read"):
        read_header(tmp_path / "none.arena")
    (tmp_path / "short.arena").write_bytes(SMALL[:20])
    with pytest.raises(NotARecord, match=r"short\.arena: no arena record"):
        read_header(tmp_path / "short.arena")
