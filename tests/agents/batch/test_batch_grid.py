"""The batch engine against the single one, world by world and step by step."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.batch.goals import GoalBatch
from agents.batch.grid import CODES, COLOR_CODES, WAIT, GridBatch
from games.errors import BadTask
from games.tasks.cases import seed_case
from games.tasks.generate import Knobs, level
from games.tasks.goals import HOLDS, Fact, Goal
from games.tasks.grid import ACTIONS, Grid
from games.tasks.solver import solve
from tests.games.tasks.worlds_for_tests import goals_for, grids

SEEDS = st.integers(0, 2**32 - 1)
STEPS = 40


def drawn(rng: np.random.Generator, batch: GridBatch, *, legal: float) -> Any:
    """Random actions, in a share of the worlds legal ones."""
    allowed = batch.legal()
    allowed[:, WAIT] |= ~allowed.any(axis=1)
    noise = rng.random(allowed.shape)
    free = rng.integers(0, len(ACTIONS), len(batch), dtype=np.uint8)
    acts = np.where(allowed, noise, -1)
    acts[:, 4:7] *= 3  # acts other than moves can seldom be done: take the chance
    return np.where(rng.random(len(batch)) < legal, acts.argmax(axis=1), free)


def every_fact(grid: Grid) -> list[Fact]:
    words = grid.vocabulary()
    facts: list[Fact] = [(head, name) for head in ("at", "has", "opened") for name in sorted(words[head][0])]
    things, places = words["delivered"]
    return facts + [("delivered", thing, place) for thing in sorted(things) for place in sorted(places)]


MARKS = {"#": "wall", ".": "floor", "E": "exit", "!": "patrol", "k": "key", "g": "gem", "p": "pad"}
MARKS |= {"D": "door", "/": "open door", "B": "box", "u": "open box"}
COLORED = {"x" if color == "grey" else color[0]: number for color, number in COLOR_CODES.items()}


def looks(world: Grid, state: Any) -> list[list[int]]:
    """The codes of all cells by the world's own rendering; -1 where the actor hides the cell."""
    rows = []
    for row in world.observe(state)["rows"]:
        cells = [row[i : i + 2] for i in range(0, len(row), 3)]
        hidden = [cell[0] in "@X" for cell in cells]
        rows.append(
            [
                -1
                if hid
                else CODES[MARKS[cell[0]]] + (COLORED.get(cell[1], 0) if cell[0] in "kgpD/Bu" else 0)
                for cell, hid in zip(cells, hidden, strict=True)
            ]
        )
    return rows


def compare_looks(batch: GridBatch, i: int, state: Any, view: Any, radius: int) -> None:
    world = batch.grids[i]
    expected = np.zeros((16 + 2 * radius, 16 + 2 * radius), dtype=np.int16)
    inner = expected[radius:-radius, radius:-radius]
    inner[: world.height, : world.width] = looks(world, state)
    found = batch.looks()[i].astype(np.int16)
    assert ((inner == found) | (inner == -1)).all()
    x, y = world.xy(state.cell if state.cell >= 0 else ~state.cell)
    window = expected[y : y + 2 * radius + 1, x : x + 2 * radius + 1]
    assert ((window == view[i]) | (window == -1)).all()


def compare(
    worlds: list[Grid], goals: list[Goal], *, seed: int, legal: float, steps: int = STEPS
) -> set[str]:
    """Step both engines, compare all that they say; return what came about at least once."""
    rng = np.random.default_rng(seed)
    batch = GridBatch(worlds)
    folded = GoalBatch(batch, goals)
    states = [world.initial() for world in worlds]
    progress = [goal.start(world.facts(world.initial())) for goal, world in zip(goals, worlds, strict=True)]
    facts = [every_fact(world) for world in worlds]
    seen: set[str] = set()
    for step in range(steps):
        bits = batch.bits
        legal_now = batch.legal()
        everywhere = {fact: batch.holds(fact) for some in facts for fact in some}
        status = folded.status
        radius = 1 + step % 4
        view = batch.view(radius)
        for i, world in enumerate(worlds):
            state = states[i]
            if step % 3 == 0:
                compare_looks(batch, i, state, view, radius)
            assert (batch.cells[i], batch.phases[i], bits[i]) == state
            assert [ACTIONS[a] for a in np.flatnonzero(legal_now[i])] == list(world.legal(state))
            said = {fact for fact, held in everywhere.items() if held[i]}
            assert said == world.facts(state)
            assert status[i] == goals[i].status(progress[i]), (goals[i].render(), step)
            seen |= {fact[0] for fact in said} | {f"status {status[i]}"}
            seen |= {"lost"} if state.cell < 0 else set()
        actions = drawn(rng, batch, legal=legal)
        batch.step(actions)
        folded.fold()
        for i, world in enumerate(worlds):
            states[i] = world.step(states[i], ACTIONS[actions[i]])
            progress[i] = goals[i].fold(progress[i], world.facts(states[i]))
    return seen


@given(st.data(), SEEDS, st.sampled_from([0.0, 0.7, 1.0]))
@settings(max_examples=100, deadline=None)
def test_every_step_equals_the_single_engine(data: st.DataObject, seed: int, legal: float) -> None:
    worlds = data.draw(
        st.lists(st.integers(6, 8).flatmap(lambda side: grids(side=side)), min_size=1, max_size=5)
    )
    goals = [data.draw(goals_for(world)) for world in worlds]
    compare(worlds, goals, seed=seed, legal=legal)


def test_large_worlds_of_all_sizes_side_by_side() -> None:
    knobs = [
        Knobs(side=side, objects=5, rule_depth=3, distractors=4, patrols=patrols, deliver=True, avoid=True)
        for side in (9, 12, 16)
        for patrols in (0, 2)
    ]
    knobs += [replace(one, objects=2, before=True) for one in knobs]
    levels = [level(seed, knob) for seed in range(4) for knob in knobs]
    seen = compare([one.world for one in levels], [one.goal for one in levels], seed=1, legal=0.9, steps=300)
    assert seen >= {"at", "has", "opened", "delivered", "lost", "status 2"}


def test_everything_that_can_lie_around_fits() -> None:
    colors = ("red", "green", "blue", "yellow", "purple", "orange", "white", "grey")
    free = [[x, y] for y in range(1, 15) for x in range(1, 15)]
    things: list[dict[str, Any]] = [{"kind": "exit", "at": free.pop()}]
    for kind in ("key", "door", "box", "pad"):
        things += [{"kind": kind, "color": color, "at": free.pop(0)} for color in colors]
    things += [{"kind": "gem", "color": color, "in": f"{color} box"} for color in colors[:7]]
    layout = {"rows": ["#" * 16, *["#" + "." * 14 + "#"] * 14, "#" * 16], "start": [9, 9], "things": things}
    world = Grid.parse(layout)
    goal = Goal.parse({"and": [{"has": "red key"}, {"opened": "grey box"}]})
    seen = compare([world] * 6, [goal] * 6, seed=5, legal=1.0, steps=1500)
    assert seen >= {"at", "has", "opened", "delivered"}


@pytest.mark.parametrize("before", [False, True])
def test_shortest_plans_solve_their_tasks_in_the_batch(before: bool) -> None:
    knobs = Knobs(side=9, objects=5, rule_depth=4, patrols=1, deliver=True, avoid=True, before=before)
    levels = [level(seed, knobs) for seed in range(12)]
    batch = GridBatch([one.world for one in levels])
    goals = GoalBatch(batch, [one.goal for one in levels])
    solved = np.zeros(len(levels), dtype=np.intp)
    for step in range(1, 1 + max(len(one.plan) for one in levels)):
        acts = [ACTIONS.index(one.plan[step - 1]) if step <= len(one.plan) else WAIT for one in levels]
        batch.step(np.array(acts))
        goals.fold()
        solved[(goals.status == HOLDS) & (solved == 0)] = step
    assert solved.tolist() == [len(one.plan) for one in levels]


@given(st.data(), SEEDS)
@settings(max_examples=20, deadline=None)
def test_reset_brings_back_the_worlds_asked_for_alone(data: st.DataObject, seed: int) -> None:
    worlds = data.draw(st.lists(grids(), min_size=2, max_size=4))
    goals = [data.draw(goals_for(world)) for world in worlds]
    rng = np.random.default_rng(seed)
    batch, fresh = GridBatch(worlds), GridBatch(worlds)
    folded, anew = GoalBatch(batch, goals), GoalBatch(fresh, goals)
    for _ in range(20):
        batch.step(drawn(rng, batch, legal=0.9))
        folded.fold()
    which = rng.random(len(worlds)) < 0.5
    before, status = [batch.state(i) for i in range(len(worlds))], folded.status
    batch.reset(which)
    folded.reset(which)
    for i, world in enumerate(worlds):
        assert batch.state(i) == (world.initial() if which[i] else before[i])
        assert folded.status[i] == (anew.status[i] if which[i] else status[i])
    for _ in range(10):  # what was reset goes on like a new world
        actions = drawn(rng, fresh, legal=0.9)
        for one, goal in ((batch, folded), (fresh, anew)):
            one.step(actions)
            goal.fold()
        assert (folded.status[which] == anew.status[which]).all()
        assert (batch.bits[which] == fresh.bits[which]).all()


def test_bad_actions_and_goals_are_refused_in_one_line() -> None:
    grid = Grid.parse(seed_case().to_data()["layout"])
    batch = GridBatch([grid, grid])
    for actions in (
        np.array([0]),
        np.array([0, 8]),
        np.array([-1, 0]),
        np.array([0.0, 1.0]),
        np.zeros((2, 1)),
    ):
        with pytest.raises(BadTask, match=r"^batch actions: got [^\n]+$"):
            batch.step(actions)
    with pytest.raises(BadTask, match=r"^batch: got no world[^\n]*$"):
        GridBatch([])
    with pytest.raises(BadTask, match=r"^batch goals: got 1 [^\n]*$"):
        GoalBatch(batch, [seed_case().goal])
    with pytest.raises(BadTask, match=r"^batch goals\[0\]: [^\n]*$"):
        GoalBatch(GridBatch([grid]), [Goal.parse({"has": "blue gem"})])
    with pytest.raises(BadTask, match="batch fact: got 'knows'"):
        batch.holds(("knows", "exit"))


def test_a_fact_that_a_world_does_not_have_never_holds_there() -> None:
    grid = Grid.parse(seed_case().to_data()["layout"])
    other = level(0, Knobs(objects=0)).world
    batch = GridBatch([grid, other])
    plan = solve(grid, Goal.parse({"has": "yellow key"})).plan
    assert plan is not None
    for action in plan:
        batch.step(np.full(2, ACTIONS.index(action)))
    assert batch.holds(("has", "yellow key")).tolist() == [True, False]
    assert batch.holds(("delivered", "red gem", "exit")).tolist() == [False, False]
