"""Whether useful and harmful advice are told apart, on simulated readers; and what processes gain for bots.

    python benchmarks/lessons.py [--seeds 1000] [--attempts 100 200 400 800]
    python benchmarks/lessons.py --processes [--jobs 48] [--rounds 5]

A reader succeeds at one half without advice; each lesson adds its effect to that chance. All lessons of a row are found
for every attempt, so their effects are mixed; which attempts get advice, and which lessons are held back, is drawn as
`arena evolve` does by default, and lessons are retired by its rules after every 16 attempts. A row gives the share of
readers for which each lesson was retired within so many attempts, with its 95 % Wilson interval, and the share for
which the alert "advice hurts" ever sounded.

With `--processes` the attempts of two bots at grid tasks of side 13 are made in one process and in two. Speed is told
in processor time: what one process takes, over what the busier of two takes and the parent with it.
"""

import argparse
import asyncio
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from agents.bots.ladder import RUNGS
from agents.curriculum.alerts import retrieval
from agents.curriculum.metrics import Share
from arena.evolve_actors import Job, ladder_actions, planner_actions
from arena.evolve_config import LessonsSection
from arena.evolve_lessons import ALARM_SPAN, Tallies
from arena.evolve_workers import Workers
from arena.spread import Spread
from benchmarks._measure import table
from games.tasks.difficulty import SKILLS
from games.tasks.generate import Knobs, focused, generate

ROWS: tuple[dict[str, float], ...] = (
    {"useful": 0.1, "harmful": -0.1},
    {"useful": 0.2, "harmful": -0.2},
    {"useful": 0.3, "idle": 0.0, "harmful": -0.3},
    {"useful": 0.2},
    {"idle": 0.0},
    {"harmful": -0.2},
)
GENERATION = 16


def reader(effects: dict[str, float], *, seed: int, attempts: int) -> tuple[dict[str, int], int | None]:
    """Return after how many attempts each lesson was retired, and the alert first sounded."""
    rng, settings = random.Random(seed), LessonsSection()
    tallies = Tallies(span=ALARM_SPAN * settings.alarm_attempts)
    active, gone, alarm = list(effects), dict[str, int](), None
    for start in range(0, attempts, GENERATION):
        if not active:
            break
        offers, successes = [], {}
        for number in range(start, start + GENERATION):
            advised = rng.random() < settings.share
            told = [k for k in active if advised and (len(active) == 1 or rng.random() >= settings.held_back)]
            offers.append([number, advised, list(active), told])
            successes[number] = rng.random() < 0.5 + sum(effects[key] for key in told)
        tallies.fold({"offers": offers}, successes)
        if alarm is None and retrieval(tallies.latest, least=settings.alarm_attempts) is not None:
            alarm = start + GENERATION
        for key in list(active):
            if tallies.verdict(key, settings) is not None:
                gone[key] = start + GENERATION
                active.remove(key)
    return gone, alarm


def power(seeds: int, horizons: Sequence[int]) -> None:
    """Print the table of lessons that were retired."""
    rows = []
    for effects in ROWS:
        runs = [reader(effects, seed=seed, attempts=max(horizons)) for seed in range(seeds)]
        for name, effect in effects.items():
            others = ", ".join(f"{other} {value:+.0%}" for other, value in effects.items() if other != name)
            cells = [
                _share(sum(gone.get(name, horizon + 1) <= horizon for gone, _ in runs), seeds)
                for horizon in horizons
            ]
            rows.append([f"{name} {effect:+.0%}", others or "alone", *cells])
        heard = [sum((alarm or max(horizons) + 1) <= horizon for _, alarm in runs) for horizon in horizons]
        rows.append(["the alert", "", *(_share(count, seeds) for count in heard)])
    print(f"{seeds} readers a row; retired, or heard, within so many attempts:")
    print(table(["lesson", "beside", *(str(horizon) for horizon in horizons)], rows))


def _share(count: int, total: int) -> str:
    low, high = Share(total, count).interval or (0.0, 1.0)
    return f"{count / total:.1%} ({low:.1%} to {high:.1%})"


def _timed(job: Job, *, act: Callable[[Job], tuple[str, ...]]) -> tuple[int, float, tuple[str, ...]]:
    began = time.process_time()
    done = act(job)
    return os.getpid(), time.process_time() - began, done


async def processes(jobs: int, rounds: int) -> None:
    """Print what two processes gain."""
    knobs = Knobs(side=13, objects=6, rule_depth=4, path_length=40)
    work = [
        Job(i, generate(i, focused(knobs, SKILLS[i % len(SKILLS)])), "open", "train", i) for i in range(jobs)
    ]
    bots = {
        "planner:0.8": partial(planner_actions, skill=0.8),
        "ladder:far": partial(ladder_actions, rung=RUNGS["far"]),
    }
    rows = []
    for name, bot in bots.items():
        act = partial(_timed, act=bot)
        two, ratios = Workers(2, patience_s=0.0), []
        try:
            await two.map(act, work[:2])
            for _ in range(rounds):
                alone = await Workers(1).map(act, work)
                began = time.process_time()
                shared = await two.map(act, work)
                own, busy = time.process_time() - began, defaultdict[int, float](float)
                for process, seconds, _ in shared:
                    busy[process] += seconds
                if [done for *_, done in alone] != [done for *_, done in shared]:
                    raise SystemExit("the processes did otherwise")
                ratios.append(sum(seconds for _, seconds, _ in alone) / (max(busy.values()) + own))
        finally:
            two.close()
        rows.append([name, Spread.of(ratios).show(".2f", " times")])
    print(f"{jobs} attempts, {rounds} rounds; two processes beside one, in processor time:")
    print(table(["bot", "as fast"], rows))


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--attempts", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--jobs", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    if args.processes:
        asyncio.run(processes(args.jobs, args.rounds))
    else:
        power(args.seeds, args.attempts)


if __name__ == "__main__":
    main()
