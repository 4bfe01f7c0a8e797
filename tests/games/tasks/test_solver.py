from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from games.tasks.cases import seed_case
from games.tasks.goals import BROKEN, HOLDS, OPEN, Goal
from games.tasks.grid import ACTIONS, Grid
from games.tasks.solver import SOLVABLE, UNKNOWN, UNSOLVABLE, breadth_first, solve, solve_task
from games.tasks.spec import TaskSpec
from tests.games.tasks.worlds_for_tests import Plain, goals_for, grids

CAP = 3_000


def brute_force(grid: Grid, goal: Goal) -> int | None:
    """Return the length of a shortest plan: every action in every state, by the plain rules; -1 beyond the cap."""
    plain = Plain(grid.to_data())
    progress = goal.start(plain.facts())
    if goal.status(progress) == HOLDS:
        return 0
    layer, seen, depth = [(plain, progress)], {(plain.key(), progress)}, 0
    while layer:
        depth += 1
        reached = []
        for plain, progress in layer:
            for action in ACTIONS:
                after = plain.twin()
                after.step(action)
                if after.caught:
                    continue
                folded = goal.fold(progress, after.facts())
                if goal.status(folded) == HOLDS:
                    return depth
                if goal.status(folded) != BROKEN and (after.key(), folded) not in seen:
                    seen.add((after.key(), folded))
                    reached.append((after, folded))
        if len(seen) > CAP:
            return -1
        layer = reached
    return None


tasks = grids().flatmap(lambda grid: st.tuples(st.just(grid), goals_for(grid)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tasks)
def test_the_answer_is_that_of_brute_force(task: tuple[Grid, Goal]) -> None:
    grid, goal = task
    expected = brute_force(grid, goal)
    found = solve(grid, goal)
    if expected == -1:
        return
    assert found.status == (UNSOLVABLE if expected is None else SOLVABLE)
    assert found.length == expected
    if found.plan is not None:
        assert len(found.plan) == expected
        state = grid.initial()
        progress = goal.start(grid.facts(state))
        for action in found.plan:
            assert goal.status(progress) != HOLDS
            assert grid.fault(state, action) is None
            state = grid.step(state, action)
            progress = goal.fold(progress, grid.facts(state))
        assert goal.status(progress) == HOLDS
        if found.plan:
            assert solve(grid, goal, max_steps=len(found.plan) - 1).status == UNSOLVABLE
            assert solve(grid, goal, max_steps=len(found.plan)).length == expected


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(grids(side=7).flatmap(lambda grid: st.tuples(st.just(grid), goals_for(grid))), st.integers(1, 30))
def test_waves_answer_as_the_search_node_by_node_does(task: tuple[Grid, Goal], max_steps: int) -> None:
    grid, goal = task
    progress = goal.start(grid.facts(grid.initial()))
    if goal.status(progress) != OPEN:
        return
    slow = breadth_first(grid, goal, progress, max_steps=max_steps, max_nodes=20_000)
    fast = solve(grid, goal, max_steps=max_steps)
    if slow.status != UNKNOWN:
        assert (fast.status, fast.length) == (slow.status, slow.length)
    assert fast.plan is None or len(fast.plan) == fast.length


def test_the_seed_case_takes_twelve_steps() -> None:
    found = solve_task(seed_case())
    assert (found.status, found.length) == (SOLVABLE, 12)
    assert found == solve_task(seed_case())


def test_a_bound_that_is_met_says_unknown() -> None:
    found = solve_task(seed_case(), max_nodes=20)
    assert (found.status, found.length, found.plan) == (UNKNOWN, None, None)
    assert 20 <= found.nodes < 40
    spec = seed_case()
    world = spec.make_world()
    progress = spec.goal.start(world.facts(world.initial()))
    found = breadth_first(world, spec.goal, progress, max_steps=None, max_nodes=20)
    assert found == (UNKNOWN, None, None, 20)


ROOM = ["######", "#....#", "#....#", "####.#", "#....#", "######"]


@pytest.mark.parametrize(
    ("things", "goal", "length"),
    [
        ([{"kind": "exit", "at": [1, 1]}], {"at": "exit"}, 0),
        ([{"kind": "exit", "at": [1, 1]}], {"then": [{"at": "exit"}, {"at": "exit"}]}, 1),
        ([{"kind": "exit", "at": [1, 4]}], {"at": "exit"}, 9),
        (
            [{"kind": "exit", "at": [1, 4]}, {"kind": "door", "color": "red", "at": [4, 3]}],
            {"at": "exit"},
            None,
        ),
        ([{"kind": "exit", "at": [2, 1]}], {"and": [{"visited": "exit"}, {"never": {"at": "exit"}}]}, None),
        ([{"kind": "exit", "at": [1, 1]}], {"and": [{"visited": "exit"}, {"never": {"at": "exit"}}]}, None),
    ],
)
def test_small_cases_worked_out_by_hand(things: list[Any], goal: Any, length: int | None) -> None:
    grid = Grid.parse({"rows": ROOM, "start": [1, 1], "things": things})
    assert solve(grid, Goal.parse(goal)).length == length


def test_distractors_do_not_slow_the_search_down() -> None:
    exit_ = {"kind": "exit", "at": [1, 4]}
    gems = [
        {"kind": "gem", "color": color, "at": [x, 2]}
        for x, color in enumerate(("red", "blue", "green", "grey"), start=1)
    ]
    bare = Grid.parse({"rows": ROOM, "start": [1, 1], "things": [exit_]})
    full = Grid.parse({"rows": ROOM, "start": [1, 1], "things": [exit_, *gems]})
    goal = Goal.parse({"at": "exit"})
    assert solve(full, goal) == solve(bare, goal)


def hardest() -> TaskSpec:
    """As much to carry about as a layout may hold, in one open hall with patrols that meet again late."""
    colors = ("red", "green", "blue", "yellow", "purple", "orange", "white", "grey")
    rows = ["#" * 16, *["#" + "." * 14 + "#"] * 14, "#" * 16]
    kinds = ("gem", "pad", "key", "door")
    things: list[Any] = [
        {"kind": kind, "color": color, "at": [2 + 3 * i, 2 + y]}
        for y, color in enumerate(colors)
        for i, kind in enumerate(kinds)
    ]
    for x, length in ((1, 4), (1, 6), (1, 5)):
        y = 10 + length - 3
        things.append({"kind": "patrol", "path": [[x + i, y] for i in range(length)]})
    goal = {"then": [{"delivered": [f"{color} gem", f"{color} pad"]} for color in colors]}
    data = {"version": 1, "world": "grid", "layout": {"rows": rows, "start": [1, 1], "things": things}}
    return TaskSpec.from_data({**data, "goal": goal, "budget": 1000})


def test_the_hardest_layout_is_bounded_by_the_work_allowed() -> None:
    spec = hardest()
    found = solve_task(spec, max_nodes=20_000)
    assert found.status == UNKNOWN
    assert found.nodes < 3 * 20_000
