"""How the success of the reference ladder falls along each dimension of difficulty, in both worlds.

    python -m benchmarks.tasks_ladder [--world grid|text] [--tasks 200] [--seed 101 102 103]

For each dimension its knob is turned alone, everything else staying as in the base of that sweep; every rung of
`agents.bots.ladder` attempts every task once. A row gives the knob, the mean of the dimension as measured on the
tasks, each rung's success, and that of all rungs together with its 95 % Wilson interval. The rungs share the tasks,
so the interval takes the number of attempts that would vary as much between tasks, not the number made. With several
seeds the rows hold the tasks of all of them, and it is said of each seed whether success falls there too. The knobs and
rungs were chosen on seed 1, so that seed shows nothing.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, variance
from typing import Any, NamedTuple

from agents.bots.ladder import LADDER, attempt
from arena.standings import wilson
from games.rng import derive_seed
from games.tasks.generate import Knobs, generate
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.text_generate import generate_text

MAKERS: dict[str, Callable[[int, Knobs], TaskSpec]] = {"grid": generate, "text": generate_text}


class Sweep(NamedTuple):
    """A dimension, the knobs that stay, and the values that its own knob takes."""

    dimension: str
    base: Knobs
    values: Sequence[float]


_GRID = Knobs(side=9, objects=2, rule_depth=1, time_pressure=0.4, distractors=1, obstacles=3)
_TEXT = Knobs(side=8, objects=2, rule_depth=1, time_pressure=0.4, distractors=1, obstacles=3)
SWEEPS: dict[str, tuple[Sweep, ...]] = {
    "grid": (
        Sweep("objects", _GRID, (0, 2, 4, 6)),
        Sweep("path_length", replace(_GRID, side=11), (6, 12, 18, 26)),
        Sweep("rule_depth", replace(_GRID, objects=0), (1, 2, 3, 5)),
        Sweep("time_pressure", _GRID, (0.15, 0.35, 0.65, 1.0)),
        Sweep("distractors", replace(_GRID, objects=3, deliver=True), (0, 3, 6, 10)),
    ),
    "text": (
        Sweep("objects", _TEXT, (0, 2, 4, 6)),
        Sweep("path_length", replace(_TEXT, side=14), (5, 9, 13, 18)),
        Sweep("rule_depth", replace(_TEXT, objects=0), (1, 2, 3, 5)),
        Sweep("time_pressure", _TEXT, (0.15, 0.35, 0.65, 1.0)),
        Sweep("distractors", replace(_TEXT, objects=3, deliver=True), (0, 3, 6, 10)),
    ),
}


class Row(NamedTuple):
    """One value of one knob."""

    world: str
    dimension: str
    knob: float
    measured: float
    tasks: int
    by_rung: tuple[float, ...]
    pooled: float
    low: float
    high: float


class Solved(NamedTuple):
    """What one seed's tasks at one value of a knob measured, and which rungs solved each."""

    measured: list[float]
    by_task: list[list[bool]]


def attempted(world: str, sweep: Sweep, knob: float, *, tasks: int, seed: int) -> Solved:
    """Let every rung attempt `tasks` tasks made with one value of the sweep's knob."""
    knobs = replace(sweep.base, **{sweep.dimension: knob})
    solved: list[list[bool]] = []
    measured: list[float] = []
    for i in range(tasks):
        spec = MAKERS[world](derive_seed(seed, world, sweep.dimension, i), knobs)
        measured.append(dict(spec.difficulty)[sweep.dimension])
        built: Any = spec.make_world()
        solved.append(
            [
                attempt(spec, rung, seed=derive_seed(seed, rung.name, i), world=built).success
                for rung in LADDER
            ]
        )
    return Solved(measured, solved)


def row_of(world: str, dimension: str, knob: float, parts: Sequence[Solved]) -> Row:
    """Return the row of one value of a knob, over the tasks of all seeds."""
    solved = [by_rung for part in parts for by_rung in part.by_task]
    shares = [fmean(by_rung) for by_rung in solved]
    pooled = fmean(shares)
    spread = variance(shares) / len(shares)
    n = pooled * (1 - pooled) / spread if spread else float(len(shares))
    low, high = wilson(pooled, n=n)
    by_rung = tuple(fmean(column) for column in zip(*solved, strict=True))
    measured = fmean(value for part in parts for value in part.measured)
    return Row(world, dimension, knob, measured, len(shares), by_rung, pooled, low, high)


def sweep_rows(
    world: str, sweep: Sweep, *, tasks: int, seeds: Sequence[int]
) -> tuple[list[Row], list[list[Row]]]:
    """Return a sweep's rows over the tasks of all seeds, and the rows of each seed alone."""
    found = [
        [attempted(world, sweep, knob, tasks=tasks, seed=seed) for knob in sweep.values] for seed in seeds
    ]
    alone = [
        [row_of(world, sweep.dimension, k, [part]) for k, part in zip(sweep.values, parts, strict=True)]
        for parts in found
    ]
    together = [
        row_of(world, sweep.dimension, knob, parts)
        for knob, parts in zip(sweep.values, zip(*found, strict=True), strict=True)
    ]
    return together, alone


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as a Markdown table."""
    names = [rung.name for rung in LADDER]
    lines = [
        f"| world | dimension | knob | measured | {' | '.join(names)} | all rungs (95 %) |",
        "|" + "---|" * (len(names) + 5),
    ]
    for row in rows:
        shares = " | ".join(f"{share:.2f}" for share in row.by_rung)
        pooled = f"{row.pooled:.3f} ({row.low:.3f} to {row.high:.3f})"
        lines.append(
            f"| {row.world} | {row.dimension} | {row.knob:g} | {row.measured:.2f} | {shares} | {pooled} |"
        )
    return lines


def falls(rows: Sequence[Row]) -> bool:
    """Whether pooled success falls from each row of a sweep to the next."""
    return all(later.pooled < earlier.pooled for earlier, later in pairwise(rows))


def main() -> int:
    """Print the table, and for each sweep whether success falls all along."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", choices=sorted(MAKERS), action="append")
    parser.add_argument("--dimension", choices=DIMENSIONS, action="append")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seed", type=int, nargs="+", default=[101, 102, 103])
    args = parser.parse_args()
    rows: list[Row] = []
    verdicts: list[str] = []
    for world in args.world or sorted(MAKERS):
        for sweep in SWEEPS[world]:
            if args.dimension and sweep.dimension not in args.dimension:
                continue
            some, alone = sweep_rows(world, sweep, tasks=args.tasks, seeds=args.seed)
            apart = sum(later.high < earlier.low for earlier, later in pairwise(some))
            how = "falls at every step" if falls(some) else "DOES NOT FALL at every step"
            verdicts.append(
                f"{world} {sweep.dimension}: {how}, intervals apart at {apart} of {len(some) - 1}; "
                f"falls at every step on {sum(map(falls, alone))} of {len(alone)} seeds alone"
            )
            rows += some
            print("\n".join(table(some)[2 if len(rows) > len(some) else 0 :]), flush=True)
    seeds = ", ".join(map(str, args.seed))
    print(f"\n{args.tasks} tasks a seed in each row, each attempted once by each rung; seeds {seeds}")
    print("\n".join(verdicts))
    return 0 if all("NOT" not in verdict for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
