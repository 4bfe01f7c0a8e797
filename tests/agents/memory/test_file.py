import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agents.errors import BadExperience, MemoryFault, MemoryTooNew
from agents.memory import Memory, distil
from tests.agents.memory.stocked import episode, record

ROOT = Path(__file__).parents[3]


def one_line(error: Exception, *words: str) -> None:
    assert "\n" not in str(error)
    for word in words:
        assert word in str(error)


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Memory(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('evoke-memory', 'm999_later', '')"
        )
    raw.close()
    with pytest.raises(MemoryTooNew) as caught:
        Memory(path)
    one_line(caught.value, "memory.db", "newer evoke-arena", "m999_later")


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_text("these are words, and many of them, but no database\n" * 100)
    with pytest.raises(MemoryFault) as caught:
        Memory(path)
    one_line(caught.value, "no SQLite database")
    assert path.read_text().startswith("these are words")


def test_no_store_where_none_is_to_be_made(tmp_path: Path) -> None:
    with pytest.raises(MemoryFault) as caught:
        Memory(tmp_path / "memory.db", create=False)
    one_line(caught.value, "there is no experience store")
    assert not (tmp_path / "memory.db").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(MemoryFault) as caught:
        Memory(tmp_path / "file" / "memory.db")
    one_line(caught.value, "cannot make the experience store")
    with pytest.raises(MemoryFault) as caught:
        Memory(tmp_path)
    one_line(caught.value, "cannot open the experience store")


def test_damaged_pages_are_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.add_tasks([record(seed) for seed in range(4)])
        memory.add_episodes([episode(f"e{i}", i % 4) for i in range(200)])
    data = bytearray(path.read_bytes())
    size = 4096
    for page in range(2, len(data) // size):
        data[page * size : page * size + 64] = bytes([255]) * 64
    path.write_bytes(data)
    with pytest.raises(MemoryFault) as caught, Memory(path) as memory:
        memory.episodes(limit=1000)
    one_line(caught.value, "the file is damaged")


def test_a_damaged_episode_is_named(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    memory.add_episodes([episode("e")])
    with memory.transaction() as connection:
        connection.execute("update episodes set actions = x'00'")
    with pytest.raises(MemoryFault) as caught:
        memory.episode("e")
    one_line(caught.value, "episode 1 cannot be read")


def test_a_full_disk_keeps_what_was_there(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    memory.add_episodes([episode("before")])
    (pages,) = memory.rows("pragma page_count")[0]
    memory.rows(f"pragma max_page_count = {pages + 1}")
    with pytest.raises(MemoryFault) as caught:
        memory.add_episodes([episode(f"e{i}", feedback="x" * 3000) for i in range(50)])
    one_line(caught.value, "the disk is full")
    assert memory.counts()["episodes"] == 1
    memory.rows("pragma max_page_count = 1000000")
    assert memory.check() == []
    assert len(memory.add_episodes([episode("after")])) == 1


def test_a_transaction_is_kept_whole_or_not_at_all(memory: Memory) -> None:
    memory.put("loop", {"generation": 1})
    with pytest.raises(RuntimeError), memory.transaction():
        memory.add_tasks([record(0)])
        with memory.transaction():
            memory.put("loop", {"generation": 2})
        assert memory.similar(record(0).spec, k=1)[0].similarity == pytest.approx(1)
        raise RuntimeError
    assert memory.get("loop") == {"generation": 1}
    assert memory.counts()["tasks"] == 0
    assert memory.similar(record(0).spec) == []
    assert memory.get("nothing", 7) == 7


def test_an_error_of_the_caller_is_not_one_of_the_store(memory: Memory) -> None:
    with pytest.raises(FileNotFoundError), memory.transaction():
        raise FileNotFoundError
    memory.put("key", 1)
    assert memory.get("key") == 1


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), "x" * 1_000_001, "\ud800"])
def test_a_note_that_is_no_json_is_refused(memory: Memory, value: object) -> None:
    with pytest.raises(BadExperience) as caught:
        memory.put("key", value)
    one_line(caught.value, "note key")


def test_readers_read_beside_the_writer(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as writer, Memory(tmp_path / "m.db", create=False) as reader:
        writer.add_tasks([record(0)])
        assert [found.key for found in reader.similar(record(0).spec)] == [record(0).spec.hash]
        writer.add_tasks([record(1)])
        writer.add_episodes([episode("e", 1)])
        assert len(reader.similar(record(0).spec)) == 2
        assert reader.profile().rows[0].episodes == 1


CHILD = """
import sys
from pathlib import Path
from agents.memory import Memory, distil
from tests.agents.memory.stocked import episode, record

with Memory(Path(sys.argv[1])) as memory:
    generation = memory.get("loop", 0)
    while generation < int(sys.argv[2]):
        with memory.transaction():
            memory.add_tasks([record(0), record(1)])
            memory.add_episodes([episode(f"{generation}-{i}", i % 2, generation=generation) for i in range(10)])
            generation += 1
            memory.put("loop", generation)
        print(generation, flush=True)
"""


def test_a_loop_killed_at_any_time_goes_on_with_nothing_lost_or_doubled(tmp_path: Path) -> None:
    path = tmp_path / "m.db"

    def start(generations: int) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(generations)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    said = 0
    for _ in range(2):
        child = start(1_000_000)
        assert child.stdout is not None
        for _ in range(3):
            said = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()
    with Memory(path) as memory:
        kept = memory.get("loop")
        assert kept >= said >= 6
        assert memory.counts()["episodes"] == 10 * kept
        assert memory.check() == []
    child = start(kept + 2)
    child.communicate()
    assert child.returncode == 0
    with Memory(path) as memory:
        assert memory.counts()["episodes"] == 10 * (kept + 2)
        assert memory.profile().rows[0].episodes == 5 * (kept + 2)
        assert memory.check() == []


def test_damaged_vectors_are_named(memory: Memory) -> None:
    memory.add_tasks([record(0)])
    memory.add_lessons(distil(record(0).spec, [episode("e")]))
    memory.advise(record(0).spec)
    for table, ask in (("task_data", memory.similar), ("lesson_vectors", memory.advise)):
        with memory.transaction() as connection:
            connection.execute(f"update {table} set vector = x'00'")
        with pytest.raises(MemoryFault) as caught:
            ask(record(0).spec)
        one_line(caught.value, "the file is damaged")
