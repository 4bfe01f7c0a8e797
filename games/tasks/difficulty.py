"""How hard a task is: five numbers measured on any task of any world, and the skills that it takes.

    objects         different things that a shortest plan takes, opens or delivers
    path_length     steps of a shortest plan
    rule_depth      conditions of which the goal is made (its predicates)
    time_pressure   path_length / budget: 1 leaves no step to spare, 0.5 twice the steps needed
    distractors     things that could be taken or opened, which neither the plan handles nor the goal names

Higher is harder in each. The solver is deterministic, so the same task always measures the same.
"""

from collections.abc import Sequence
from typing import Any

from games.tasks.goals import Before, Goal, Never, Predicate, Then
from games.tasks.solver import MAX_NODES, SOLVABLE, solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.world import World

SKILLS = ("navigate", "fetch", "open", "deliver", "order", "avoid", "dodge")
"""The tags that `skills_of` gives: by the acts of a shortest plan, the goal's operators, and the hazards."""

_BY_ACT = {"move": "navigate", "take": "fetch", "open": "open", "drop": "deliver"}


def measure(world: World[Any], goal: Goal, *, budget: int, plan: Sequence[str]) -> dict[str, float]:
    """Return the difficulty of a task whose shortest plan is known, by the names of `DIMENSIONS`."""
    handled = _handled(world, plan)
    vocabulary = world.vocabulary()
    things = set(vocabulary["has"][0]) | set(vocabulary["opened"][0])
    values = (
        len(handled),
        len(plan),
        sum(1 for _, part in goal.walk() if isinstance(part, Predicate)),
        len(plan) / budget,
        len(things - handled - goal.names()),
    )
    return dict(zip(DIMENSIONS, map(float, values), strict=True))


def measured(spec: TaskSpec, *, max_nodes: int = MAX_NODES) -> TaskSpec | None:
    """Return the task with its difficulty and skills as measured; None if it was not solved within its budget."""
    found = solve_task(spec, max_nodes=max_nodes)
    if found.status != SOLVABLE or found.plan is None:
        return None
    world = spec.make_world()
    tagged = TaskSpec.make(
        world,
        goal=spec.goal,
        budget=spec.budget,
        skills=skills_of(world, spec.goal, plan=found.plan),
        generator=spec.generator,
        parent=spec.parent,
    )
    return tagged.with_difficulty(measure(world, spec.goal, budget=spec.budget, plan=found.plan))


def skills_of(world: World[Any], goal: Goal, *, plan: Sequence[str]) -> tuple[str, ...]:
    """Return the skills that the task takes, in the order of `SKILLS`."""
    kinds = {world.act_kind(action) for action in plan}
    found = {skill for kind, skill in _BY_ACT.items() if kind in kinds}
    parts = [part for _, part in goal.walk()]
    if any(isinstance(part, Then | Before) for part in parts):
        found.add("order")
    if any(isinstance(part, Never) for part in parts):
        found.add("avoid")
    if world.hazards:
        found.add("dodge")
    return tuple(skill for skill in SKILLS if skill in found)


def _handled(world: World[Any], plan: Sequence[str]) -> set[str]:
    """Return the things about which something became true along the plan."""
    state = world.initial()
    before = world.facts(state)
    handled: set[str] = set()
    for action in plan:
        state = world.step(state, action)
        after = world.facts(state)
        if after is not before:
            handled.update(fact[1] for fact in after - before if fact[0] != "at")
            before = after
    return handled
