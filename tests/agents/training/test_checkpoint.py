import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.errors import BadCheckpoint, CheckpointFailed
from agents.training.checkpoint import MANIFEST, Checkpoints


def writer(text: str) -> object:
    def write(folder: Path) -> None:
        (folder / "weights").write_text(text)
        (folder / "league").mkdir()
        (folder / "league" / "state").write_text("plain")

    return write


def saved(root: Path, *numbers: int) -> Checkpoints:
    kept = Checkpoints(root)
    for number in numbers:
        kept.save(number, writer(f"of {number}"), {"update": number})  # type: ignore[arg-type]
    return kept


def test_the_newest_counts_and_older_ones_go(tmp_path: Path) -> None:
    kept = saved(tmp_path / "c", 1, 2, 3, 10)
    newest = kept.newest()
    assert newest is not None and (newest.number, newest.facts) == (10, {"update": 10})
    assert (newest.path / "weights").read_text() == "of 10"
    assert (newest.path / "league" / "state").read_text() == "plain"
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["00000002", "00000003", "00000010"]


def test_none_before_the_first(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none").newest() is None


def test_a_number_can_be_saved_again(tmp_path: Path) -> None:
    kept = saved(tmp_path, 1)
    kept.save(1, writer("again"), {})  # type: ignore[arg-type]
    newest = kept.newest()
    assert newest is not None and (newest.path / "weights").read_text() == "again"


@pytest.mark.parametrize("damage", ["changed", "missing", "more", "manifest", "garbled"])
def test_a_damaged_one_is_passed_over(tmp_path: Path, damage: str) -> None:
    kept = saved(tmp_path, 1, 2)
    folder = tmp_path / "00000002"
    match damage:
        case "changed":
            (folder / "weights").write_text("of x")
        case "missing":
            (folder / "weights").unlink()
        case "more":
            (folder / "other").write_text("")
        case "manifest":
            (folder / MANIFEST).unlink()
        case _:
            (folder / MANIFEST).write_text("{")
    newest = kept.newest()
    assert newest is not None and newest.number == 1


def test_what_a_crash_left_is_no_checkpoint_and_goes_with_the_next(tmp_path: Path) -> None:
    kept = saved(tmp_path, 1)
    (tmp_path / ".new-0123").mkdir()
    (tmp_path / ".new-0123" / "weights").write_text("half")
    newest = kept.newest()
    assert newest is not None and newest.number == 1
    saved(tmp_path, 2)
    assert not (tmp_path / ".new-0123").exists()


def test_one_of_another_format_is_refused_in_one_line(tmp_path: Path) -> None:
    kept = saved(tmp_path, 1)
    path = tmp_path / "00000001" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))
    with pytest.raises(BadCheckpoint, match=r"^[^\n]*format 0, this version reads 1: begin a new run[^\n]*$"):
        kept.newest()


def test_what_cannot_be_written_leaves_the_last_one(tmp_path: Path) -> None:
    kept = saved(tmp_path, 1)

    def fail(folder: Path) -> None:
        (folder / "weights").write_text("half")
        raise OSError(28, os.strerror(28))

    with pytest.raises(
        CheckpointFailed, match=r"^checkpoint 2 in \S+: No space left on device; the last one, 1, is"
    ):
        kept.save(2, fail, {})
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]
    with pytest.raises(CheckpointFailed, match="there is none before it"):
        Checkpoints(tmp_path / "fresh").save(1, fail, {})


FULL = """
import resource, sys
from pathlib import Path
from agents.errors import CheckpointFailed
from agents.training.checkpoint import Checkpoints

def write(folder):
    (folder / "weights").write_bytes(b"x" * 100_000)

kept = Checkpoints(Path(sys.argv[1]))
kept.save(1, write, {})
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    kept.save(2, write, {})
except CheckpointFailed as error:
    print(error)
print(kept.newest().number, [path.name for path in kept.root.iterdir()])
"""


def test_a_disk_that_takes_no_more_leaves_the_last_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    said, newest = done.stdout.splitlines()
    assert said == f"checkpoint 2 in {tmp_path}: File too large; the last one, 1, is kept"
    assert newest == "1 ['00000001']"


def test_at_least_one_is_kept(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="keep: got 0"):
        Checkpoints(tmp_path, keep=0)
