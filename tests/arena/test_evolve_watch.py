"""A run as its watcher is told of it: only from its files, while it goes on, is rolled back, or made anew."""

import asyncio
import json
import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from agents.errors import MemoryFault
from agents.memory import Memory
from arena import evolve_watch
from arena.errors import EvolveError
from arena.evolve import LOCK, MEMORY, RUNS
from arena.evolve_report import METRICS
from arena.evolve_watch import HomeRuns, RunReader, is_run, run_folders, under_way
from arena.lock import hold
from clients.spectator.runs import RunTold
from games.tasks.check import Attempt, check
from tests.arena.evolving import left, run, small


def read(reader: RunReader) -> RunTold:
    return asyncio.run(reader.read())


def taken(folder: Path) -> EvolveError:
    return EvolveError(f"{folder} is held")


def test_what_is_told_is_what_the_run_reports(tmp_path: Path) -> None:
    outcome = run(small(), tmp_path)
    told = read(RunReader(outcome.folder))
    assert told.name == "small" and told.under_way is False
    assert told.figures is not None
    assert json.loads(json.dumps(told.figures)) == json.loads((outcome.folder / METRICS).read_text())
    _, entries = left(tmp_path)
    rows = [row for entry in entries for row in entry.tasks]
    assert len({task.key for task in told.tasks}) == len(told.tasks) == len(rows)
    assert [task.generation for task in told.tasks] == sorted(
        (e.generation for e in entries for _ in e.tasks), reverse=True
    )
    solved = {(entry.generation, row.task): row.success for entry in entries for row in entry.attempts}
    for task in told.tasks:
        for tried in task.tries:
            verdict = check(task.spec, Attempt(task.spec.hash, tried.actions))
            assert (verdict.success, verdict.reason) == (tried.success, tried.words)
            assert tried.success == solved[task.generation, task.spec.hash] and not tried.fault
        assert task.tries or task.purpose == "test"


def test_only_new_generations_are_read_and_rolled_back_ones_forgotten(tmp_path: Path) -> None:
    run(small(budget={"tasks": 12}), tmp_path)
    reader = RunReader(tmp_path / RUNS / "small")
    first = read(reader)
    assert first.figures is not None and first.figures["generations"] == 2
    run(small(), tmp_path, resume=True)
    with patch.object(evolve_watch, "read_entries", wraps=evolve_watch.read_entries) as spy:
        second = read(reader)
        assert second.figures is not None and second.figures["generations"] == 4
        assert spy.call_args.args[1] == [2, 3]
        third = read(reader)
        assert spy.call_args.args[1] == [] and third.figures is second.figures and third.tasks == second.tasks
    assert {task.key for task in first.tasks} <= {task.key for task in second.tasks}
    run(small(), tmp_path, rollback=0)
    back = read(reader)
    assert back.figures is not None and back.figures["rollbacks"][0]["to"] == 0
    assert {task.generation for task in back.tasks} == {0}


def test_a_run_made_anew_in_the_same_place_is_read_from_its_start(tmp_path: Path) -> None:
    run(small(), tmp_path)
    folder = tmp_path / RUNS / "small"
    reader = RunReader(folder)
    before = read(reader)
    folder.rename(tmp_path / "old")
    run(small(seed=4, budget={"tasks": 24}), tmp_path)
    after = read(reader)
    assert after.figures is not None and before.figures is not None
    assert after.figures["config"] != before.figures["config"]
    assert not {task.key for task in before.tasks} & {task.key for task in after.tasks}


def test_a_run_under_way_one_that_has_not_begun_and_one_that_is_none(tmp_path: Path) -> None:
    folder = tmp_path / RUNS / "young"
    with hold(folder, name=LOCK, mode=0o644, taken=taken(folder), unusable=EvolveError):
        Memory(folder / MEMORY).close()
        assert read(RunReader(folder)) == RunTold("young", True)
        assert under_way(tmp_path) == [folder] == run_folders(tmp_path)
    assert under_way(tmp_path) == [] and is_run(folder) and not is_run(tmp_path)
    (folder / MEMORY).write_bytes(b"no database at all, whatever it is called")
    with pytest.raises(MemoryFault, match="no SQLite database"):
        read(RunReader(folder))
    (folder / MEMORY).unlink()
    with pytest.raises(MemoryFault, match="there is no experience store"):
        read(RunReader(folder))
    assert run_folders(tmp_path) == []


def test_who_watches_writes_nothing(tmp_path: Path) -> None:
    outcome = run(small(), tmp_path)
    with Memory(outcome.folder / MEMORY) as store:
        before = store.counts()
    read(RunReader(outcome.folder))
    with Memory(outcome.folder / MEMORY) as store:
        assert store.counts() == before
    shutil.copytree(outcome.folder, tmp_path / "elsewhere")
    told = read(RunReader(tmp_path / "elsewhere"))
    assert told.figures is not None and told.figures["judge"]["queue"]["waiting"] == 0
    assert not (tmp_path.parent / "judge.db").exists()


def test_the_runs_of_a_home_are_listed_with_their_last_report(tmp_path: Path) -> None:
    run(small(), tmp_path)
    young = tmp_path / RUNS / "young"
    with hold(young, name=LOCK, mode=0o644, taken=taken(young), unusable=EvolveError):
        Memory(young / MEMORY).close()
        (young / METRICS).write_text("[1]")
        rows = asyncio.run(HomeRuns(tmp_path).runs())
    assert [(row.name, row.under_way) for row in rows] == [("young", True), ("small", False)]
    assert rows[0].figures == {} and rows[1].figures["generations"] == 4
    (young / METRICS).write_text("{")
    assert asyncio.run(HomeRuns(tmp_path).runs())[1].figures == {}
    told = asyncio.run(HomeRuns(tmp_path).source("small").read())
    assert told.name == "small" and told.figures == rows[1].figures
