import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.bots.ladder import RUNGS
from arena.evolve_actors import Job, LadderActor, PlannerActor
from arena.evolve_workers import Workers, processes_for
from games.tasks.cases import seed_case

JOBS = [Job(i, seed_case(), "open", "train", i) for i in range(6)]


def pid_or_die(number: int) -> int:
    if number == 3:
        os._exit(7)
    return number * 10


def times_ten(number: int) -> int:
    return number * 10


@pytest.mark.asyncio
async def test_bots_do_alike_in_one_process_and_in_several() -> None:
    workers = Workers(2, patience_s=0.0)
    try:
        for actor, other in (
            (PlannerActor(0.7, workers=workers), PlannerActor(0.7)),
            (LadderActor(RUNGS["near"], workers=workers), LadderActor(RUNGS["near"])),
        ):
            assert await actor.attempt_all(JOBS) == await other.attempt_all(JOBS)
            assert workers.begun and not other.workers.begun
    finally:
        workers.close()
    assert not workers.begun


@pytest.mark.asyncio
async def test_processes_are_begun_only_after_much_thinking() -> None:
    workers = Workers(2, patience_s=1e6)
    assert await workers.map(times_ten, [1, 2]) == [10, 20]
    assert not workers.begun
    alone = Workers(1, patience_s=0.0)
    assert await alone.map(times_ten, [1, 2]) == [10, 20]
    assert not alone.begun


@pytest.mark.asyncio
async def test_a_process_that_dies_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers(2, patience_s=0.0)
    monkeypatch.setattr(os, "_exit", lambda code: None)  # in this process, where the work is done over
    try:
        assert await workers.map(pid_or_die, [1, 3, 2]) == [10, 30, 20]
        assert not workers.begun and workers.processes == 1
    finally:
        workers.close()
    assert await asyncio.wait_for(workers.map(times_ten, [4]), 30) == [40]


def test_there_is_at_most_one_process_a_processor() -> None:
    assert processes_for(1) == 1
    assert 1 <= processes_for(1024) <= (os.cpu_count() or 1)


ORPHANS = """
import asyncio, sys
from arena.evolve_workers import Workers
from tests.arena.test_evolve_workers import pid_after

async def main():
    workers = Workers(2, patience_s=0.0)
    print(*sorted(set(await workers.map(pid_after, [0, 1, 2, 3]))), flush=True)
    sys.stdin.read()

if __name__ == "__main__":
    asyncio.run(main())
"""


def pid_after(number: int) -> int:
    return os.getpid()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_processes_leave_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(ORPHANS)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert pids and parent.pid not in pids and all(map(_lives, pids))
        parent.send_signal(signal.SIGKILL)
    left = time.monotonic() + 60
    while any(map(_lives, pids)) and time.monotonic() < left:
        time.sleep(0.05)
    assert not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
