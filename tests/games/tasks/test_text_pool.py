import json

import pytest

from games.errors import BadTask
from games.tasks import text_pool
from games.tasks.check import Attempt, check
from games.tasks.solver import SOLVABLE, solve_task
from games.tasks.spec import canonical_json
from games.tasks.text_pool import PoolTask, draw_task, pool_size, pool_task, read_line, split


def line(task: PoolTask, **changes: object) -> bytes:
    data = {"task": task.spec.to_data(), "plan": list(task.plan), "digest": task.spec.digest, **changes}
    return canonical_json(data).encode()


def test_every_task_of_the_pool_is_sound_hard_and_different() -> None:
    tasks = [pool_task(i) for i in range(pool_size())]
    assert len(tasks) >= 32
    assert len({task.spec.hash for task in tasks}) == len(tasks)
    for spec, plan in tasks:
        assert spec.world == "text"
        assert check(spec, Attempt(spec.hash, plan)).success
        difficulty = dict(spec.difficulty)
        assert difficulty["path_length"] == len(plan)
        assert difficulty["objects"] >= 7
        assert difficulty["time_pressure"] > 0.5


def test_a_recorded_plan_is_a_shortest_one() -> None:
    shortest = min((pool_task(i) for i in range(pool_size())), key=lambda task: len(task.plan))
    found = solve_task(shortest.spec)
    assert (found.status, found.length) == (SOLVABLE, len(shortest.plan))


def test_a_seed_draws_a_task_without_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("the solver was asked")

    pool_task.cache_clear()
    for name in ("games.tasks.solver.solve", "games.tasks.solver.breadth_first"):
        monkeypatch.setattr(name, never)
    assert draw_task(7) == draw_task(7)
    assert len({draw_task(seed).spec.hash for seed in range(40)}) > 15


def test_a_file_that_is_not_this_version_s_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = line(pool_task(0)) + b"\n"
    with pytest.raises(
        BadTask, match=r"text_pool.jsonl: got a file with sha-256 [0-9a-f]{64}, this version has"
    ):
        split(data, digest=text_pool.DIGEST)
    with pytest.raises(IndexError):
        pool_task(pool_size())


def test_a_line_whose_parts_disagree_is_refused() -> None:
    task, other = pool_task(0), pool_task(1)
    assert read_line(line(task), where="here") == task
    with pytest.raises(BadTask, match="here: recorded with the hash"):
        read_line(line(task, digest=other.spec.digest), where="here")
    with pytest.raises(BadTask, match="here: its plan does not solve it, "):
        read_line(line(task, plan=list(task.plan[:-1])), where="here")
    for broken in (b"", b"{}", b"[]", json.dumps({"task": 1}).encode()):
        with pytest.raises(BadTask, match="here: no task of the pool"):
            read_line(broken, where="here")
