"""The reference ladder: deterministic, ordered, honest; and harder tasks stop more of it."""

import random
from statistics import fmean

import pytest

from agents.bots.ladder import LADDER, RUNGS, Climber, attempt, greedy, look_ahead
from benchmarks.tasks_ladder import MAKERS, SWEEPS, attempted, falls, row_of, sweep_rows, table
from games.tasks.cases import seed_case
from games.tasks.check import Attempt, check
from games.tasks.generate import Knobs
from games.tasks.solver import solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.worlds import WORLDS

SPEC = seed_case()


@pytest.mark.parametrize("world", sorted(MAKERS))
@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_attempts_are_legal_repeatable_and_judged_as_they_say(world: str, rung: object) -> None:
    assert MAKERS.keys() == SWEEPS.keys() == WORLDS.keys()
    for seed in range(12):
        spec = MAKERS[world](seed, Knobs(objects=seed % 4, rule_depth=2, distractors=2, avoid=bool(seed % 2)))
        done = attempt(spec, RUNGS[rung.name], seed=seed)  # type: ignore[attr-defined]
        assert done == attempt(spec, RUNGS[rung.name], seed=seed)  # type: ignore[attr-defined]
        verdict = check(spec, Attempt(spec.hash, done.actions))
        assert verdict.success == done.success
        assert verdict.kind in ("solved", "unmet", "broken", "lost")


def test_looking_ahead_finds_a_shortest_way_or_says_that_it_saw_none() -> None:
    world = SPEC.make_world()
    state = world.initial()
    progress = SPEC.goal.start(world.facts(state))
    way = look_ahead(world, SPEC.goal, state=state, progress=progress, nodes=1_000)
    assert way is not None
    assert len(way) == solve_task(SPEC).length
    assert look_ahead(world, SPEC.goal, state=state, progress=progress, nodes=20) is None


def test_the_greedy_bot_takes_what_it_sees_and_keeps_to_the_rules() -> None:
    data = {**SPEC.to_data(), "goal": {"and": [{"at": "exit"}, {"never": {"has": "yellow key"}}]}}
    for spec, expected in ((SPEC, {"take"}), (TaskSpec.from_data(data), {"up", "down", "right"})):
        world = spec.make_world()
        state = world.initial()
        for _ in range(3):
            state = world.step(state, "down")
        progress = spec.goal.start(world.facts(state))
        found = {
            greedy(world, spec.goal, state=state, progress=progress, rng=random.Random(seed))
            for seed in range(20)
        }
        assert found == expected


def test_a_climber_keeps_to_its_way_until_it_slips() -> None:
    world, bot = SPEC.make_world(), Climber(RUNGS["far"], SPEC.make_world(), SPEC.goal)
    state = world.initial()
    progress = SPEC.goal.start(world.facts(state))
    unslipping = random.Random(0)
    unslipping.random = lambda: 0.5  # type: ignore[method-assign]
    taken = []
    while SPEC.goal.status(progress) == 0:
        taken.append(bot.act(state, progress, unslipping))
        state = world.step(state, taken[-1])
        progress = SPEC.goal.fold(progress, world.facts(state))
    assert len(taken) == solve_task(SPEC).length


@pytest.mark.parametrize("world", sorted(SWEEPS))
def test_a_higher_rung_solves_more(world: str) -> None:
    sweep = SWEEPS[world][0]
    row = row_of(
        world,
        sweep.dimension,
        sweep.values[1],
        [attempted(world, sweep, sweep.values[1], tasks=25, seed=3)],
    )
    assert list(row.by_rung) == sorted(row.by_rung)
    assert row.pooled == pytest.approx(fmean(row.by_rung))
    assert row.low < row.pooled < row.high


@pytest.mark.parametrize(
    ("world", "dimension"), [(world, dimension) for world in sorted(SWEEPS) for dimension in DIMENSIONS]
)
def test_success_falls_along_every_dimension(world: str, dimension: str) -> None:
    sweep = next(sweep for sweep in SWEEPS[world] if sweep.dimension == dimension)
    rows, alone = sweep_rows(world, sweep, tasks=TASKS, seeds=(1,))
    assert alone == [rows]
    measured = [row.measured for row in rows]
    assert measured == sorted(set(measured))
    assert falls(rows), "\n".join(table(rows))
    assert rows[-1].high < rows[0].low, "\n".join(table(rows))


TASKS = 60
"""Enough for these seeds to show the fall; `benchmarks/tasks_ladder.py` shows it with more."""
