import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from games.errors import BadTask
from games.tasks.cases import seed_case
from games.tasks.check import KINDS, Attempt, Machine, Verdict, cheats, check, replay
from games.tasks.goals import HOLDS, Goal
from games.tasks.grid import Grid
from games.tasks.solver import SOLVABLE, solve, solve_task
from games.tasks.spec import TaskSpec
from tests.games.tasks.worlds_for_tests import Plain, goals_for, grids

SEED = seed_case()
PLAN = solve_task(SEED).plan or ()

tasks = grids().flatmap(lambda grid: st.tuples(st.just(grid), goals_for(grid)))


def attempt(actions: str, spec: TaskSpec = SEED) -> Verdict:
    return check(spec, Attempt(spec.hash, tuple(actions.split())))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tasks, st.integers(0, 3))
def test_every_shortest_plan_is_accepted_and_every_cheat_made_of_it_refused(
    task: tuple[Grid, Goal], spare: int
) -> None:
    grid, goal = task
    found = solve(grid, goal, max_nodes=5_000)
    assume(found.status == SOLVABLE)
    plan = found.plan or ()
    spec = TaskSpec.make(grid, goal=goal, budget=max(1, len(plan) + spare))
    states = replay(spec, plan).states
    assert check(spec, Attempt(spec.hash, plan)).success
    assert check(spec, Attempt(spec.hash, plan, states)).success
    made = cheats(spec, plan, other=(SEED, PLAN))
    for cheat in made:
        verdict = check(spec, cheat.attempt)
        assert not verdict.success, f"{cheat.name}: {cheat.attempt.actions}"
        assert verdict.kind in KINDS
        assert "\n" not in verdict.reason
        assert not all(layer.accepts for layer in verdict.layers) or verdict.kind == "machine"


@settings(deadline=None)
@given(tasks, st.integers(0, 2**32), st.integers(1, 40))
def test_random_play_is_judged_as_the_plain_rules_judge_it(
    task: tuple[Grid, Goal], seed: int, budget: int
) -> None:
    grid, goal = task
    spec = TaskSpec.make(grid, goal=goal, budget=budget)
    rng, state, plain = random.Random(seed), grid.initial(), Plain(grid.to_data())
    progress, actions = goal.start(plain.facts()), []
    while goal.status(progress) != HOLDS and len(actions) < budget and not plain.caught:
        actions.append(rng.choice(grid.legal(state)))
        state = grid.step(state, actions[-1])
        plain.step(actions[-1])
        progress = goal.fold(progress, plain.facts())
    verdict = check(spec, Attempt(spec.hash, tuple(actions)))
    assert verdict.success == (goal.status(progress) == HOLDS and not plain.caught)
    assert json.loads(json.dumps(verdict.to_data()))["success"] == verdict.success


def test_the_cheats_named_by_the_seed_case() -> None:
    other = TaskSpec.from_data({**SEED.to_data(), "goal": {"at": "exit"}})
    made = cheats(SEED, PLAN, other=(other, PLAN))
    kinds = {cheat.name: check(SEED, cheat.attempt).kind for cheat in made}
    assert kinds == {
        "over_budget": "over_budget",
        "after_end": "after_end",
        "unknown_action": "illegal",
        "take_skipped": "illegal",
        "open_skipped": "illegal",
        "illegal_action": "illegal",
        "not_entered": "unmet",
        "nothing_done": "false_report",
        "teleport": "illegal",
        "false_report": "false_report",
        "other_task": "wrong_task",
    }


TO_DOOR = "down down down take down right"


@pytest.mark.parametrize(
    ("actions", "kind", "step", "reason"),
    [
        (f"{TO_DOOR} open right right right right down", "solved", 12, "solved at step 12 of 30"),
        ("", "unmet", 0, "'hold the yellow key' was open from step 0 to the end, after 0 steps"),
        (f"{TO_DOOR} open", "unmet", 7, "'stand at the exit' was open from step 7 to the end, after 7 steps"),
        (f"{TO_DOOR} right", "illegal", 6, "step 7: 'right' cannot be done, a closed door is in the way"),
        ("down down down down right open", "illegal", 5, "step 6: 'open' cannot be done, the key is missing"),
        ("down take", "illegal", 1, "step 2: 'take' cannot be done, there is nothing to do that with"),
        (
            "wait " * 31,
            "over_budget",
            30,
            "step 31: only 30 steps are allowed, 'hold the yellow key' was open",
        ),
    ],
)
def test_reasons_name_the_step_and_the_part(actions: str, kind: str, step: int, reason: str) -> None:
    verdict = attempt(actions)
    assert (verdict.kind, verdict.step, verdict.reason) == (kind, step, reason)


def test_a_broken_rule_and_a_patrol_are_told_apart() -> None:
    data: dict[str, Any] = SEED.to_data()
    data["goal"] = {"and": [{"at": "exit"}, {"never": {"has": "yellow key"}}]}
    verdict = attempt("down down down take", TaskSpec.from_data(data))
    assert (verdict.kind, verdict.reason) == ("broken", "step 4: 'never hold the yellow key' was broken")
    assert verdict.part == (1,)
    data["layout"]["things"].append({"kind": "patrol", "path": [[1, 2], [2, 2]]})
    verdict = attempt("wait down", TaskSpec.from_data(data))
    assert (verdict.kind, verdict.reason) == ("lost", "step 2: a patrol caught you")


def test_the_machine_alone_knows_what_a_solution_must_contain() -> None:
    world = SEED.make_world()
    facts = world.facts(world.initial())
    assert Machine(SEED.goal, facts).refusal(world, PLAN) is None
    assert (
        Machine(SEED.goal, facts).refusal(world, ["down", "open"])
        == "a solution has at least 1 more of kind take"
    )
    assert (
        Machine(SEED.goal, facts).refusal(world, ["drop"])
        == "step 1: 'drop', it puts down more than was taken"
    )
    assert Machine(SEED.goal, facts).refusal(world, ["fly"]) == "step 1: 'fly', it is no action of this world"


def test_the_machine_stops_what_faulty_rules_would_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = frozenset({("has", "yellow key"), ("opened", "yellow door"), ("at", "exit")})
    nothing: frozenset[Any] = frozenset()
    monkeypatch.setattr(
        Grid, "facts", lambda self, state: everything if state.cell != self.start else nothing
    )
    verdict = attempt("down down down")
    assert verdict.kind == "machine"
    assert [layer.accepts for layer in verdict.layers] == [True, False]


def test_an_attempt_survives_json_and_reports_may_be_lists() -> None:
    states = replay(SEED, PLAN).states
    data = json.loads(json.dumps(Attempt(SEED.hash, PLAN, states).to_data()))
    assert check(SEED, Attempt.from_data(data)).success
    beyond = Attempt(SEED.hash, PLAN, (*states, states[-1]))
    assert check(SEED, beyond).kind == "false_report"


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"task": "x"},
        {"task": 1, "actions": []},
        {"task": "x", "actions": "up"},
        {"task": "x", "actions": [1]},
        {"task": "x", "actions": ["u" * 201]},
        {"task": "x", "actions": ["up"] * 2001},
        {"task": "x", "actions": [], "success": True},
        {"task": "x", "actions": [], "states": {}},
    ],
)
def test_what_is_no_attempt_is_refused_in_one_line(data: Any) -> None:
    with pytest.raises(BadTask, match=r"^attempt") as caught:
        Attempt.from_data(data)
    assert "\n" not in str(caught.value)
