"""Make the pool of hard text tasks that ships, `games/tasks/text_pool.jsonl`.

    python benchmarks/tasks_text_pool.py            check the file: every task proven and measured anew
    python benchmarks/tasks_text_pool.py --write    make it anew (one process, a few minutes) and print its digest

Hard means many rooms, locks, things to carry and distractors and little time to spare: levels that the generator
makes and proves a few of in a second, some of them only beyond the bound on the solver's work that it keeps to.
Levels whose proof takes less than `LEAST_NODES` nodes are left out: those are quick to make when they are needed.
"""

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

import games.tasks
from games.errors import BadTask
from games.tasks.difficulty import measured
from games.tasks.generate import Knobs
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec, canonical_json
from games.tasks.text_generate import text_level, written
from games.tasks.text_pool import DIGEST, FILE, read_line, split

SIZE = 48
LEAST_NODES = 2_000
MAX_NODES = 20_000
HARD = tuple(
    Knobs(
        side=side,
        objects=objects,
        rule_depth=rule_depth,
        time_pressure=time_pressure,
        distractors=distractors,
        obstacles=1,
        deliver=True,
    )
    for side, objects, rule_depth, distractors in (
        (14, 9, 4, 3),
        (16, 10, 4, 5),
        (16, 11, 5, 6),
        (16, 12, 6, 8),
    )
    for time_pressure in (0.6, 0.85)
)


def make() -> tuple[list[tuple[TaskSpec, tuple[str, ...]]], list[float]]:
    """Return the tasks with their plans, and the seconds that each proof took again."""
    found: list[tuple[TaskSpec, tuple[str, ...]]] = []
    took: list[float] = []
    seed = 0
    while len(found) < SIZE:
        knobs = HARD[len(found) % len(HARD)]
        seed += 1
        try:
            spec = written(text_level(seed, knobs, max_nodes=MAX_NODES), time_pressure=knobs.time_pressure)
        except BadTask:
            continue
        began = time.process_time()
        proof = solve_task(spec)
        if proof.nodes >= LEAST_NODES and proof.plan:
            took.append(time.process_time() - began)
            found.append((spec, proof.plan))
            print(f"{len(found)} of {SIZE}: {proof.nodes} nodes, {proof.length} steps", file=sys.stderr)
    return found, took


def main() -> int:
    """Check the file, or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="make the file anew")
    path = Path(next(iter(games.tasks.__path__))) / FILE
    if parser.parse_args().write:
        tasks, took = make()
        lines = [
            canonical_json({"task": spec.to_data(), "plan": list(plan), "digest": spec.digest})
            for spec, plan in tasks
        ]
        data = "".join(f"{line}\n" for line in lines).encode("ascii")
        path.write_bytes(data)
        took.sort()
        print(f"{len(tasks)} tasks, {len(data)} bytes, DIGEST = {hashlib.sha256(data).hexdigest()!r}")
        print(f"one proof: median {took[len(took) // 2]:.2f} s, greatest {took[-1]:.2f} s of CPU time")
        return 0
    wrong = 0
    for i, line in enumerate(split(path.read_bytes(), digest=DIGEST), start=1):
        spec, plan = read_line(line, where=f"{FILE} line {i}")
        proof = solve_task(spec)
        if proof.length != len(plan) or measured(spec) != spec:
            wrong += 1
            print(
                f"line {i}: {proof.status} in {proof.length}, recorded {len(plan)}: {json.dumps(spec.text)}"
            )
    print(f"{i} tasks proven again, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
