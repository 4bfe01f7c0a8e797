"""Writing: processes that are really killed, disks that are really full."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from games.base import Event
from games.referee import Entry, Input
from replays.errors import NotARecord, NotCanonical, RecordDamaged, RecordWriteFailed
from replays.reader import read_record
from replays.record import SUFFIX
from replays.verify import rebuild, verify_file
from replays.writer import RecordWriter
from tests.replays.recording import encode, entries, footer, header, make, read, turns
from tests.replays.recording import referee as new_referee

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def python(code: str, *args: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("durable", [False, True])
def test_the_file_is_what_the_encoder_gives(tmp_path: Path, durable: bool) -> None:
    head = header("werewolf", seats=6)
    made, end = entries(head, messy=True)
    path = tmp_path / "a" / "b" / f"m{SUFFIX}"
    with RecordWriter(path, head, durable=durable) as writer:
        for at in range(0, len(made), 5):
            writer.write(made[at : at + 5])
            assert read_record(path).entries == made[: at + 5], "it can be read while it grows"
        writer.finish(end)
    assert path.read_bytes() == encode(head, made, end)
    assert verify_file(path).ok


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.arena"
    path.write_bytes(b"mine")
    with pytest.raises(RecordWriteFailed, match="exists"):
        RecordWriter(path, header())
    assert path.read_bytes() == b"mine"


def test_a_place_where_nothing_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RecordWriteFailed, match=r"Not a directory|File exists"):
        RecordWriter(tmp_path / "file" / "m.arena", header())
    with pytest.raises(RecordWriteFailed):
        RecordWriter(tmp_path / ("x" * 300), header())


def test_a_value_that_cannot_be_recorded_leaves_the_record_as_it_was(tmp_path: Path) -> None:
    head = header()
    made, end = entries(head)
    path = tmp_path / "m.arena"
    with RecordWriter(path, head) as writer:
        with pytest.raises(NotCanonical):
            writer.write([made[0], Event("bad", {"x": float("nan")})])
        writer.write(made)
        writer.finish(end)
    assert path.read_bytes() == encode(head, made, end)


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "m.arena", header())
    writer.close()
    writer.close()
    with pytest.raises(RecordWriteFailed, match="closed"):
        writer.write(entries(header())[0])


def test_reopen_cuts_a_torn_tail_and_goes_on(tmp_path: Path) -> None:
    head = header("kuhn")
    made, end = entries(head)
    whole = encode(head, made, end)
    start = len(encode(head, [], None))
    path = tmp_path / "m.arena"
    for size in range(start, len(whole)):
        path.write_bytes(whole[:size])
        record = read_record(path)
        with RecordWriter.reopen(path) as writer:
            writer.write(made[len(record.entries) :])
            writer.finish(end)
        assert path.read_bytes() == whole
    path.write_bytes(whole[: start - 1])
    with pytest.raises(NotARecord, match=r"m\.arena: "):
        RecordWriter.reopen(path)


def test_reopen_refuses_what_is_finished_or_damaged_and_leaves_it_alone(tmp_path: Path) -> None:
    whole = make("kuhn")
    path = tmp_path / "m.arena"
    cut = encode(header(), entries(header())[0], None)
    for data, words in ((whole, "finished"), (whole + b"x", "finished"), (cut[:-1] + b"x", "event .* bad")):
        path.write_bytes(data)
        with pytest.raises(RecordDamaged, match=words):
            RecordWriter.reopen(path)
        assert path.read_bytes() == data


def test_a_damaged_length_in_the_middle_does_not_cost_what_follows(tmp_path: Path) -> None:
    head = header("avalon", seats=5)
    made, _ = entries(head)
    data = bytearray(encode(head, made, None))
    at = len(encode(head, made[:4], None))
    path = tmp_path / "m.arena"
    for first in (b"\xc4\xff", b"\xc5\xff\xff", b"\xc6\x7f\xff\xff\xff"):
        damaged = (
            data[:at] + first[:2] + data[at + 2 :] if len(first) == 2 else data[:at] + first + data[at + 2 :]
        )
        tail_is_long = len(data) - at > 300
        path.write_bytes(damaged)
        assert tail_is_long
        with pytest.raises(RecordDamaged):
            RecordWriter.reopen(path)
        assert path.read_bytes() == damaged


WRITE = """
import sys
from pathlib import Path
from tests.replays.recording import *
from replays.writer import RecordWriter
path, seed = Path(sys.argv[1]), int(sys.argv[2])
head = header("werewolf", seats=6, seed=seed)
table = referee(head)
writer = RecordWriter(path, head)
writer.write(table.opening())
for given in turns(table, seed=seed):
    print("ready", flush=True)
    sys.stdin.readline()
    writer.write(table.feed(given))
"""
"""Writes what each line of its stdin lets it."""


def test_killed_at_random_moments_and_resumed_it_becomes_the_same_record(tmp_path: Path) -> None:
    """Each process is killed at a moment of its own; what it left is finished in this one."""
    rng = random.Random(5)
    states = set()
    for seed in range(16):
        head = header("werewolf", seats=6, seed=seed)
        made, end = entries(head)
        whole = encode(head, made, end)
        path = tmp_path / f"{seed}.arena"
        writing = python(WRITE, path, seed)
        assert writing.stdin is not None and writing.stdout is not None
        if seed % 4:
            for _ in range(rng.randrange(1, sum(isinstance(entry, Input) for entry in made))):
                assert writing.stdout.readline() == "ready\n"
                print(file=writing.stdin, flush=True)
        else:
            while not path.exists():
                time.sleep(0.0002)
        writing.send_signal(signal.SIGKILL)
        writing.communicate()
        left = path.read_bytes()
        assert whole.startswith(left) and left != whole
        try:
            record = read(left)
        except NotARecord:
            states.add("nothing")
            continue
        states.add("cut")
        assert record.damage is not None and record.damage.truncated
        table, missing = rebuild(record)
        with RecordWriter.reopen(path) as writer:
            writer.write(missing)
            given = sum(isinstance(e, Input) for e in record.entries)
            for entry in [e for e in made if isinstance(e, Input)][given:]:
                writer.write(table.feed(entry))
            writer.finish(footer(table))
        assert path.read_bytes() == whole
        assert verify_file(path).ok
    assert "cut" in states


def test_a_writer_that_is_killed_between_the_bytes_of_an_entry(tmp_path: Path) -> None:
    """The kernel may take part of a write; every such cut is read and finished."""
    head = header("werewolf", seats=5, seed=3)
    made, end = entries(head)
    whole = encode(head, made, end)
    path = tmp_path / "m.arena"
    rng = random.Random(1)
    for size in sorted(rng.sample(range(len(encode(head, [], None)), len(whole)), 60)):
        path.write_bytes(whole[:size])
        table, missing = rebuild(read_record(path))
        known = sum(isinstance(e, Input) for e in read_record(path).entries)
        with RecordWriter.reopen(path) as writer:
            writer.write(missing)
            for entry in [e for e in made if isinstance(e, Input)][known:]:
                writer.write(table.feed(entry))
            writer.finish(footer(table))
        assert path.read_bytes() == whole


LIMITED = """
import resource, sys
from pathlib import Path
from tests.replays.recording import *
from replays.errors import RecordWriteFailed
from replays.writer import RecordWriter
path, limit = Path(sys.argv[1]), int(sys.argv[2])
head = header("werewolf", seats=6, seed=1)
made, end = entries(head)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with RecordWriter(path, head) as writer:
        for entry in made:
            writer.write([entry])
        writer.finish(end)
except RecordWriteFailed as error:
    print(error)
    try:
        writer.write(made[:1])
    except NameError:
        print("no writer")
    except RecordWriteFailed as again:
        print(again)
"""


def test_a_file_that_may_not_grow_further_keeps_its_whole_entries(tmp_path: Path) -> None:
    head = header("werewolf", seats=6, seed=1)
    made, end = entries(head)
    whole, first = encode(head, made, end), len(encode(head, [], None))
    for limit in (0, first - 1, first + 10, len(whole) // 2, len(whole) - 1, len(whole)):
        path = tmp_path / f"{limit}.arena"
        out, err = python(LIMITED, path, limit).communicate()
        assert err == ""
        lines = out.splitlines()
        if limit == len(whole):
            assert lines == [] and path.read_bytes() == whole
        elif limit < first:
            assert lines == [f"{path}: cannot write the record: File too large", "no writer"]
            assert not path.exists(), "the match can be tried again"
        else:
            assert lines == [
                f"{path}: cannot write the record: File too large",
                f"{path}: cannot write the record: it is closed",
            ]
            record = read_record(path)
            assert record.entries == made[: len(record.entries)]
            assert path.read_bytes() == encode(head, record.entries, None)
            assert limit - len(path.read_bytes()) < len(encode(head, made[: len(record.entries) + 1], end))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_gives_one_line() -> None:
    head = header()
    made, _ = entries(head)
    writer = RecordWriter.__new__(RecordWriter)
    from replays.writer import RecordEncoder

    file = open("/dev/full", "r+b", buffering=0)
    writer._set_up(Path("/dev/full"), file, RecordEncoder(), 0, durable=False)
    with pytest.raises(RecordWriteFailed) as raised:
        writer.write(made)
    assert str(raised.value) == "/dev/full: cannot write the record: No space left on device"
    writer.close()


def test_entries_written_one_by_one_or_together_are_the_same(tmp_path: Path) -> None:
    head = header("avalon", seats=5)
    table = new_referee(head)
    made: list[Entry] = list(table.opening())
    one, many = tmp_path / "1.arena", tmp_path / "2.arena"
    with RecordWriter(one, head) as writer:
        writer.write(made)
        for given in turns(table, seed=head.seed):
            told = table.feed(given)
            made += told
            for entry in told:
                writer.write([entry])
        writer.finish(footer(table))
    with RecordWriter(many, head) as writer:
        writer.write(made)
        writer.finish(footer(table))
    assert one.read_bytes() == many.read_bytes()
