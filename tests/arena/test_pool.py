import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import arena.pool
from arena.errors import WorkerError
from arena.pool import Pool
from arena.report import MatchReport
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from replays.errors import RecordWriteFailed


def jobs(count: int, folder: Path | None = None) -> list[MatchJob]:
    return [
        MatchJob(
            f"id-{i}",
            MatchPlan(i, "kuhn", i, i, 0, ("a", "b")),
            2,
            {"a": "scripted", "b": "random"},
            record=None if folder is None else folder / f"{i}.arena",
        )
        for i in range(count)
    ]


def by_match(reports: list[MatchReport]) -> dict[str, MatchReport]:
    found = {report.match: report for report in reports}
    assert len(found) == len(reports)
    return found


def test_processes_change_nothing_but_the_order(tmp_path: Path) -> None:
    given = jobs(300)
    with Pool(1) as pool:
        alone = list(pool.run(given))
    assert [report.match for report in alone] == [job.match for job in given]
    with Pool(2) as pool:
        assert by_match(list(pool.run(given))) == by_match(alone)
        assert list(pool.run([])) == []
        assert by_match(list(pool.run(given[:7]))) == by_match(alone[:7])


def test_jobs_are_taken_as_workers_get_free() -> None:
    taken = 0

    def count() -> object:
        nonlocal taken
        for job in jobs(5000):
            taken += 1
            yield job

    with Pool(2) as pool:
        running = pool.run(count())  # type: ignore[arg-type]
        next(running)
        assert taken <= 2 * 2 * arena.pool.MAX_CHUNK
        running.close()  # type: ignore[attr-defined]


def test_workers_are_gone_after_the_pool() -> None:
    with Pool(2) as pool:
        pids = [worker.process.pid for worker in pool.workers]
        next(iter(pool.run(jobs(50))))
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_worker_loses_no_match(tmp_path: Path, number: signal.Signals) -> None:
    given = jobs(400, tmp_path)
    found = []
    with Pool(2) as pool:
        for report in pool.run(given):
            found.append(report)
            if len(found) in (1, 150, 151, 390):
                pid = pool.workers[len(found) % 2].process.pid
                assert pid is not None
                os.kill(pid, number)
    assert set(by_match(found)) == {job.match for job in given}
    assert not [report.error for report in found if report.error]
    assert len(list(tmp_path.glob("*.arena"))) == 400


def test_a_job_that_kills_its_worker_is_reported_and_no_other(tmp_path: Path) -> None:
    given = jobs(40)
    given[5] = replace(given[5], options=_Bomb())
    with Pool(2) as pool:
        found = by_match(list(pool.run(given)))
    assert found["id-5"].error == "the worker process died 2 times (exit code 41)"
    assert sorted(match for match, report in found.items() if report.error) == ["id-5"]
    assert len(found) == 40


class _Bomb(dict):  # type: ignore[type-arg]
    """Options that end the process which unpickles them."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (41,)


def test_workers_that_cannot_live_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [replace(job, options=_Bomb()) for job in jobs(40)]
    with Pool(2) as pool, pytest.raises(WorkerError, match="worker processes die before a match ends"):
        list(pool.run(given))


def test_a_record_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    given = [replace(job, record=tmp_path / "file" / "r.arena") for job in jobs(9)]
    for concurrency in (1, 2):
        with Pool(concurrency) as pool, pytest.raises(RecordWriteFailed, match="cannot write the record"):
            list(pool.run(given))
