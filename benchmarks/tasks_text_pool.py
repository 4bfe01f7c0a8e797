"""Make the pool of hard text tasks that ships, `games/tasks/text_pool.jsonl`.

    python -m benchmarks.tasks_text_pool            check the file: every task proven and measured anew
    python -m benchmarks.tasks_text_pool --write    make it anew (one process, minutes) and print its digest
    python -m benchmarks.tasks_text_pool --same 5   make the first 5 tasks anew and compare them with the file

Hard means many rooms, locks, things to carry and distractors and little time to spare: levels that the generator
makes and proves a few of in a second, some of them only beyond the bound on the solver's work that it keeps to.
Levels whose proof takes less than `LEAST_NODES` nodes are left out: those are quick to make when they are needed.
Each task depends on its number alone, so the same number gives the same line again, on any machine.
"""

import argparse
import hashlib
import json
import sys
from itertools import count
from pathlib import Path

import games.tasks
from games.errors import BadTask
from games.rng import derive_seed
from games.tasks.difficulty import measured
from games.tasks.generate import Knobs, written
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec, canonical_json
from games.tasks.text_generate import GENERATOR, text_level
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


def make(number: int) -> bytes:
    """Return line `number` of the file, from 0: the first hard level among the seeds of that number."""
    knobs = HARD[number % len(HARD)]
    for seed in count():
        try:
            level = text_level(derive_seed(number, FILE, seed), knobs, max_nodes=MAX_NODES)
        except BadTask:
            continue
        spec = written(level, knobs=knobs, generator=GENERATOR)
        proof = solve_task(spec)
        if proof.nodes >= LEAST_NODES and proof.plan:
            print(f"{number}: {proof.nodes} nodes, {proof.length} steps, seed {seed}", file=sys.stderr)
            return line_of(spec, proof.plan)
    raise AssertionError("the seeds never end")


def line_of(spec: TaskSpec, plan: tuple[str, ...]) -> bytes:
    """Return a task with its plan as a line of the file."""
    return f"{canonical_json({'task': spec.to_data(), 'plan': list(plan), 'digest': spec.digest})}\n".encode(
        "ascii"
    )


def main() -> int:
    """Check the file, or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="make the file anew")
    parser.add_argument(
        "--same", type=int, metavar="N", help="compare the first N tasks, made anew, with the file"
    )
    flags = parser.parse_args()
    path = Path(next(iter(games.tasks.__path__))) / FILE
    if flags.write:
        data = b"".join(make(number) for number in range(SIZE))
        path.write_bytes(data)
        print(f"{SIZE} tasks, {len(data)} bytes, DIGEST = {hashlib.sha256(data).hexdigest()!r}")
        return 0
    if flags.same is not None:
        lines = path.read_bytes().splitlines(keepends=True)[: flags.same]
        differ = sum(make(number) != line for number, line in enumerate(lines))
        print(f"{len(lines)} tasks made again, {differ} differ")
        return 1 if differ else 0
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
