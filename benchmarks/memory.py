"""The experience store when it is large: writing, the profile by skill, and the most similar tasks.

Tasks are generated and proven; the many are these with other step budgets, which are other tasks with other vectors.
Attempts are made up (a shortest plan, or the half of one), with their verdict's chain of evidence and the hashes of
their states, spread over actors, purposes and generations. Times are wall time on a store that is open, the median
of some calls; the first search after opening, which reads the vectors, is apart. Writing is CPU time.

    python -m benchmarks.memory
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from agents.memory import Episode, Memory, TaskEntry, TaskRecord
from benchmarks._measure import machine, positive, resident_kib, table, verdict
from games.tasks.check import Attempt, check
from games.tasks.difficulty import SKILLS
from games.tasks.generate import Knobs, generate
from games.tasks.solver import solve_task
from games.tasks.spec import MAX_BUDGET, TaskSpec

EPISODES, TASKS = 1_000_000, 100_000
PROFILE_MS, SIMILAR_MS = 100.0, 50.0
SEEDS = 400
BATCH = 1_000
GENERATIONS = 100
ACTORS = ("planner", "policy", "random")
PURPOSES = ("train", "train", "train", "review", "test")


def tasks(number: int, seeds: int) -> list[tuple[TaskSpec, tuple[str, ...]]]:
    """Return so many tasks, each with a shortest plan."""
    found = []
    for seed in range(min(seeds, number)):
        spec = generate(seed, Knobs(side=8 + seed % 5, objects=1 + seed % 3))
        plan = solve_task(spec).plan
        assert plan is not None
        found.append((spec, plan))
    several = (
        (replace(spec, budget=budget), plan)
        for budget in range(1, MAX_BUDGET + 1)
        for spec, plan in found
        if len(plan) <= budget
    )
    return list(islice(several, number))


def episodes(number: int, made: Sequence[tuple[TaskSpec, tuple[str, ...]]]) -> Iterator[Episode]:
    """Yield so many attempts at these tasks."""
    rng = random.Random(0)
    kinds: list[tuple[Episode, Episode]] = []
    for spec, plan in made[:SEEDS]:
        attempts = (Attempt(spec.hash, plan), Attempt(spec.hash, plan[: len(plan) // 2]))
        won, lost = (
            Episode.of(spec, id="x", attempt=attempt, verdict=check(spec, attempt), actor="x")
            for attempt in attempts
        )
        kinds.append((won, lost))
    hashes = [spec.hash for spec, _ in made]
    for i in range(number):
        task = rng.randrange(len(hashes))
        yield replace(
            kinds[task % len(kinds)][rng.random() < 0.5],
            id=f"e{i}",
            task=hashes[task],
            actor=ACTORS[i % len(ACTORS)],
            purpose=rng.choice(PURPOSES),
            policy=f"p{i * GENERATIONS // number}",
            judge="rules",
            generation=i * GENERATIONS // number,
            time=float(i),
        )


def median_ms(call: Callable[[], Any], calls: int) -> float:
    """Return the median wall time of a call, in milliseconds."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def near_misses(memory: Memory, *, actor: str | None = None) -> list[TaskEntry]:
    """Return the tasks of a skill that were failed with the most progress."""
    return memory.tasks(skill="open", actor=actor, order="near_miss", limit=8)


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The experience store when it is large.")
    parser.add_argument("--episodes", type=positive, default=EPISODES)
    parser.add_argument("--tasks", type=positive, default=TASKS)
    parser.add_argument("--calls", type=positive, default=20)
    flags = parser.parse_args(args)
    print(machine("evoke-arena", "numpy", "sqlite-utils"))
    made = tasks(flags.tasks, SEEDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Memory(path) as memory:
            start = time.process_time()
            records = (
                TaskRecord(spec, skill=SKILLS[i % len(SKILLS)], generation=i * GENERATIONS // len(made))
                for i, (spec, _) in enumerate(made)
            )
            while some := list(islice(records, BATCH)):
                memory.add_tasks(some)
            tasks_s = time.process_time() - start
            spent, again = 0.0, list[Episode]()
            attempts = episodes(flags.episodes, made)
            while group := list(islice(attempts, BATCH)):
                again = group
                start = time.process_time()
                memory.add_episodes(group)
                spent += time.process_time() - start
        with Memory(path) as memory:
            counts = memory.counts()
            print(
                f"{counts['tasks']} tasks and {counts['episodes']} attempts in {path.stat().st_size / 2**20:.0f} MiB"
            )
            print(f"written in batches of {BATCH}: {counts['tasks'] / tasks_s:.0f} tasks/s, "
                  f"{counts['episodes'] / spent:.0f} attempts/s")  # fmt: skip
            before = resident_kib()
            first = median_ms(lambda: memory.similar(made[0][0], k=8), 1)
            grown = (resident_kib() - before) / 1024
            ways: list[tuple[str, Callable[[], Any], float | None]] = [
                ("profile, all attempts", lambda: memory.profile(), PROFILE_MS),
                ("profile, one actor", lambda: memory.profile(actor="policy", purpose="train"), PROFILE_MS),
                ("profile, last 10 generations", lambda: memory.profile(since=GENERATIONS - 10), PROFILE_MS),
                ("profile, last 200 of each skill", lambda: memory.profile(window=200), PROFILE_MS),
                ("history by generation", lambda: memory.history(), None),
                ("8 most similar tasks", lambda: memory.similar(made[len(made) // 2][0], k=8), SIMILAR_MS),
                ("8 best by words", lambda: memory.search("red key then exit", k=8), None),
                (
                    "8 near misses of a skill",
                    lambda: near_misses(memory),
                    None,
                ),
                ("the same of one actor", lambda: near_misses(memory, actor="policy"), None),
                (f"the last {len(again)} attempts once more", lambda: memory.add_episodes(again), None),
            ]
            rows = []
            for name, call, target in ways:
                ms = median_ms(call, flags.calls)
                rows.append(
                    (name, f"{ms:.1f}", "" if target is None else verdict(ms, target=target, at_most=True))
                )
            print(table(("question", "median ms", "target ms"), rows))
            print(f"first search after opening: {first:.0f} ms, and {grown:.0f} MiB for the vectors")


if __name__ == "__main__":
    main()
