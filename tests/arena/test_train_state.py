"""A run's counters and what its folder says of it: read as they were written, or refused in one line."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BadCheckpoint
from agents.training.config import Budget, TrainConfig
from arena.errors import TrainError
from arena.train_state import FORMAT, KIND, RUN_FILE, Progress, read_run, write_run
from tests.arena.training import small

COUNTS = st.integers(0, 10**12)


def bounded(**budget: Any) -> TrainConfig:
    return small().model_copy(update={"budget": Budget(**budget)})


def written(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


# Counters


@given(
    st.builds(
        Progress,
        update=COUNTS,
        matches=COUNTS,
        failed=COUNTS,
        attempts=COUNTS,
        tokens=COUNTS,
        seconds=st.floats(0, 1e9),
        version=st.text(max_size=20),
        parent=st.text(max_size=20),
        measured=st.text(max_size=20),
        published=st.lists(st.text(max_size=20), max_size=5),
        evaluated=st.integers(-1, 10**9),
        metrics_bytes=COUNTS,
    )
)
def test_counters_survive_being_kept_as_json(progress: Progress) -> None:
    assert Progress.of(json.loads(json.dumps(progress.to_data()))) == progress


def test_counters_that_are_kept_are_a_copy() -> None:
    progress = Progress(published=["small@1"])
    kept = progress.to_data()
    progress.published.append("small@2")
    progress.update = 3
    assert (kept["published"], kept["update"]) == (["small@1"], 0)
    assert Progress().published == [], "each has its own list"


def test_a_run_has_done_nothing_at_first_and_was_never_measured() -> None:
    first = Progress()
    assert (first.update, first.tokens, first.seconds, first.version, first.evaluated) == (0, 0, 0.0, "", -1)
    assert Progress.of({}) == first and Progress.of({"update": 2}).update == 2


@pytest.mark.parametrize("data", [{"updates": 1}, {"update": 1, "gone": 0}, {1: 2}, [1], 7, None])
def test_what_are_no_counters_is_refused_in_one_line(data: Any) -> None:
    with pytest.raises(BadCheckpoint, match=r"^checkpoint: its counters cannot be read: [^\n]+$"):
        Progress.of(data)


@pytest.mark.parametrize(
    ("budget", "below", "reached", "name"),
    [
        ({"updates": 5}, {"update": 4}, {"update": 5}, "updates"),
        ({"matches": 100}, {"matches": 99}, {"matches": 130}, "matches"),
        ({"tokens": 1000}, {"tokens": 999}, {"tokens": 1000}, "tokens"),
        ({"minutes": 2}, {"seconds": 119.9}, {"seconds": 120.0}, "minutes"),
        ({"minutes": 0.5, "updates": 9}, {"seconds": 29.0, "update": 8}, {"seconds": 30.0}, "minutes"),
    ],
)
def test_a_bound_is_reached_and_not_before(
    budget: dict[str, Any], below: dict[str, Any], reached: dict[str, Any], name: str
) -> None:
    config = bounded(**budget)
    assert Progress().spent(config) is None
    assert Progress(**below).spent(config) is None
    assert Progress(**reached).spent(config) == name


def test_what_has_no_bound_is_never_spent() -> None:
    much = Progress(update=10**8, matches=10**10, tokens=10**13, seconds=1e9)
    for name in ("updates", "matches", "tokens", "minutes"):
        assert much.spent(bounded(**{name: 1})) == name, "the others have no bound"


def test_without_any_budget_ten_minutes_are_the_bound() -> None:
    config = bounded()
    assert Progress(seconds=599.0, update=10**6).spent(config) is None
    assert Progress(seconds=600.0).spent(config) == "minutes"
    assert Progress(seconds=1e6, update=1).spent(bounded(updates=2)) is None, "a budget was given"


def test_of_bounds_reached_at_once_one_is_named() -> None:
    config = bounded(minutes=1, matches=1, tokens=1, updates=1)
    reached = Progress(update=1, matches=1, tokens=1, seconds=60.0)
    assert reached.spent(config) == "minutes"
    reached.seconds = 0.0
    assert reached.spent(config) == "matches"


# The run's file


def test_a_runs_file_says_what_it_is_and_was_made_with(tmp_path: Path) -> None:
    config = small(name="mine", seed=9)
    write_run(tmp_path, config, model="tiny@1")
    told = read_run(tmp_path)
    assert told == written(tmp_path)
    assert (told["format"], told["kind"], told["name"], told["model"]) == (FORMAT, KIND, "mine", "tiny@1")
    assert told["digest"] == config.digest
    assert TrainConfig.model_validate(told["config"]) == config
    assert datetime.fromisoformat(told["created"]).tzinfo is not None
    assert [path.name for path in tmp_path.iterdir()] == [RUN_FILE]


def test_a_run_that_goes_on_otherwise_keeps_when_it_was_made(tmp_path: Path) -> None:
    write_run(tmp_path, small(), model="a")
    first = written(tmp_path)
    first["created"] = "2001-02-03T04:05:06+00:00"
    (tmp_path / RUN_FILE).write_text(json.dumps(first))
    other = small(learner={"lr": 0.5})
    write_run(tmp_path, other, model="ü")
    told = read_run(tmp_path)
    assert (told["created"], told["digest"], told["model"]) == (first["created"], other.digest, "ü")


def test_a_file_of_something_else_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_text('{"kind": "evolve", "format": 1}')
    with pytest.raises(TrainError, match="is not of `arena train`"):
        write_run(tmp_path, small(), model="a")
    assert written(tmp_path) == {"kind": "evolve", "format": 1}


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, small(), model="a")
    before = (tmp_path / RUN_FILE).read_bytes()

    def full(self: Path, *args: Any, **rest: Any) -> int:
        with self.open("w") as half:
            half.write('{"format"')
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_run(tmp_path, small(seed=8), model="b")
    assert (tmp_path / RUN_FILE).read_bytes() == before


OTHER = (
    "{folder}: was made by another version (format {found}, this one has 1): "
    "it cannot go on; give the new run another name"
)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "{path}: cannot be read: No such file or directory"),
        (b"", "{path}: is no JSON"),
        (b'{"kind": "train"', "{path}: is no JSON"),
        (b"[" * 100_000, "{path}: is no JSON"),
        (b"\xff\xfe{}", "{path}: is no JSON"),
        (b"[]", "{path}: is not of `arena train`"),
        (b"null", "{path}: is not of `arena train`"),
        (b'"train"', "{path}: is not of `arena train`"),
        (b"{}", "{path}: is not of `arena train`"),
        (b'{"kind": "evolve", "format": 1}', "{path}: is not of `arena train`"),
        (
            b'{"kind": "train"}',
            OTHER.format(folder="{folder}", found=None),
        ),
        (
            b'{"kind": "train", "format": 2}',
            OTHER.format(folder="{folder}", found=2),
        ),
        (
            b'{"kind": "train", "format": 1, "name": "a", "model": "b"}',
            "{path}: is damaged, it has no config, created, digest; give the new run another name",
        ),
    ],
)
def test_a_file_that_is_no_run_of_this_version_is_refused_in_one_line(
    raw: bytes | None, said: str, tmp_path: Path
) -> None:
    if raw is not None:
        (tmp_path / RUN_FILE).write_bytes(raw)
    with pytest.raises(TrainError) as error:
        read_run(tmp_path)
    assert str(error.value) == said.format(path=tmp_path / RUN_FILE, folder=tmp_path)


def test_a_folder_in_its_place_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).mkdir()
    with pytest.raises(TrainError, match=r"run\.json: cannot be read: Is a directory$"):
        read_run(tmp_path)
