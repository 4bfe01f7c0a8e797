"""What the tests of the experience store share: some proven tasks, and attempts at them."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

from agents.memory import Episode, TaskRecord
from games.tasks.check import Attempt, check
from games.tasks.generate import Knobs, generate
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec

SKILLS = ("fetch", "open", "order")


@lru_cache
def task(seed: int) -> TaskSpec:
    return generate(seed, Knobs(side=7, objects=1))


@lru_cache
def plan(seed: int) -> tuple[str, ...]:
    found = solve_task(task(seed)).plan
    assert found is not None
    return found


def record(seed: int, **fields: Any) -> TaskRecord:
    return TaskRecord(task(seed), **{"skill": SKILLS[seed % len(SKILLS)], **fields})


@lru_cache
def judged(seed: int, share: float) -> Episode:
    attempt = Attempt(task(seed).hash, plan(seed)[: round(share * len(plan(seed)))])
    verdict = check(task(seed), attempt)
    return Episode.of(task(seed), id="x", attempt=attempt, verdict=verdict, actor="planner")


def episode(key: str, seed: int = 0, *, share: float = 1.0, **fields: Any) -> Episode:
    """An attempt that followed a share of the shortest plan."""
    return replace(judged(seed, share), id=key, **fields)
