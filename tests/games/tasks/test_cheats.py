"""Every form of goal, in both worlds: the shortest plan is accepted, each cheat made of it refused, whoever judges."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from agents.batch.tasks import OUTCOMES, TaskBatch
from games.tasks.check import Attempt, cheats, check, replay
from games.tasks.goals import OPERATORS, PREDICATES, Goal
from games.tasks.grid import ACTIONS
from games.tasks.solver import solve
from games.tasks.spec import TaskSpec
from games.tasks.worlds import world_type

LAYOUTS: dict[str, dict[str, Any]] = {
    "grid": {
        "rows": ["########", "#......#", "#......#", "####.###", "#......#", "#......#", "########"],
        "start": [1, 1],
        "things": [
            {"kind": "box", "color": "blue", "at": [3, 1]},
            {"kind": "key", "color": "red", "in": "blue box"},
            {"kind": "door", "color": "red", "at": [4, 3]},
            {"kind": "gem", "color": "green", "at": [6, 2]},
            {"kind": "pad", "color": "yellow", "at": [1, 5]},
            {"kind": "pad", "color": "purple", "at": [6, 1]},
            {"kind": "exit", "at": [3, 5]},
            {"kind": "patrol", "path": [[5, 5], [6, 5]]},
        ],
    },
    "text": {
        "rooms": ["hall", "study", "attic", "vault"],
        "start": "hall",
        "ways": [
            {"from": "hall", "go": "north", "to": "study"},
            {"from": "study", "go": "up", "to": "attic"},
            {"from": "hall", "go": "east", "to": "vault", "door": "oak door", "key": "brass key"},
        ],
        "things": [
            {"kind": "container", "name": "chest", "in": "study"},
            {"kind": "key", "name": "brass key", "in": "chest"},
            {"kind": "item", "name": "lamp", "in": "attic"},
            {"kind": "surface", "name": "table", "in": "vault"},
        ],
    },
}

NAMES = {
    "grid": {
        "key": "red key",
        "door": "red door",
        "gem": "green gem",
        "there": "yellow pad",
        "near": "purple pad",
        "end": "exit",
        "put": "yellow pad",
    },
    "text": {
        "key": "brass key",
        "door": "oak door",
        "gem": "lamp",
        "there": "vault",
        "near": "attic",
        "end": "vault",
        "put": "table",
    },
}


def forms(world: str) -> dict[str, Any]:
    """One goal of every form."""
    n = NAMES[world]
    at, has, opened = {"at": n["end"]}, {"has": n["key"]}, {"opened": n["door"]}
    gem, near = {"has": n["gem"]}, {"visited": n["near"]}
    delivered = {"delivered": [n["gem"], n["put"]]}
    return {
        "at": at,
        "has": has,
        "opened": opened,
        "delivered": delivered,
        "visited": {"visited": n["there"]},
        "and": {"and": [at, gem, near]},
        "then": {"then": [near, opened, at]},
        "then of and": {"then": [{"and": [has, gem]}, delivered]},
        "before": {"before": [gem, opened]},
        "before of and": {"before": [{"and": [gem, near]}, {"and": [at, has]}]},
        "never": {"and": [at, {"never": {"at": n["near"]}}]},
        "never of and": {"and": [at, near, {"never": {"and": [opened, {"at": n["near"]}]}}]},
        "before in then": {"then": [{"before": [near, opened]}, at]},
        "then in and": {"and": [{"then": [near, opened]}, {"before": [gem, opened]}, delivered]},
        "all": {"and": [{"then": [near, {"before": [gem, opened]}, at]}, {"never": delivered}]},
    }


def made(world: str, form: str) -> tuple[TaskSpec, tuple[str, ...]]:
    """Return a task without a step to spare, and a shortest plan."""
    built = world_type(world).parse(LAYOUTS[world])
    goal = Goal.parse(forms(world)[form])
    plan = solve(built, goal).plan
    assert plan
    return TaskSpec.make(built, goal=goal, budget=len(plan)), plan


def first_outcome(spec: TaskSpec, actions: tuple[str, ...]) -> str:
    """Return what the batch engine says of the first thing that decides; what it has no number for is a wait."""
    batch = TaskBatch([spec])
    for action in actions:
        number = ACTIONS.index(action if action in ACTIONS else "wait")
        (outcome,) = batch.step(np.array([number]))
        if outcome:
            return OUTCOMES[outcome]
    return OUTCOMES[0]


def test_the_forms_are_all_there_are() -> None:
    for world in LAYOUTS:
        heads = {next(iter(data)) for data in forms(world).values()}
        parts = {
            type(part).__name__.lower()
            for form in forms(world).values()
            for _, part in Goal.parse(form).walk()
        }
        assert heads >= set(PREDICATES)
        assert parts >= set(OPERATORS)


@pytest.mark.parametrize(("world", "form"), product(LAYOUTS, forms("grid")))
def test_every_cheat_is_refused_whatever_the_goal(world: str, form: str) -> None:
    spec, plan = made(world, form)
    other = made(world, "has" if form != "has" else "at")
    states = replay(spec, plan).states
    assert check(spec, Attempt(spec.hash, plan)).success
    assert check(spec, Attempt(spec.hash, plan, states)).success
    found = cheats(spec, plan, other=other)
    kinds = {spec.make_world().act_kind(action) for action in plan}
    wanted = {
        "over_budget",
        "after_end",
        "unknown_action",
        "illegal_action",
        "not_entered",
        "teleport",
        "other_task",
    }
    wanted |= {f"{kind}_skipped" for kind in ("take", "open", "drop") if kind in kinds}
    assert {cheat.name for cheat in found} >= wanted
    for cheat in found:
        verdict = check(spec, cheat.attempt)
        assert not verdict.success, (cheat.name, cheat.attempt.actions)
        assert verdict.reason
    # another task's actions handed in as this one's, unless they happen to solve it
    foreign = check(spec, Attempt(spec.hash, other[1]))
    assert foreign.success == (replay(spec, other[1]).kind == "solved")
    if world == "grid":  # the batch engine hears actions alone, and stops at the first thing that decides
        assert first_outcome(spec, plan) == "solved"
        assert (first_outcome(spec, other[1]) == "solved") == (foreign.kind in ("solved", "after_end"))
        for cheat in found:
            if cheat.attempt.task == spec.hash and cheat.name not in ("after_end", "false_report"):
                assert first_outcome(spec, cheat.attempt.actions) != "solved", cheat.name
