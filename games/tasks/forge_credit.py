"""Whose steps a relay's team lost: the setter's, who said nothing or the wrong thing, or the runner's.

What a leg lost is its steps, and those that its end left to do, less the shortest plan. The sum is divided among the
subtasks without a rest: one that was run from node a to node b in t steps lost t + left(b) - left(a). Of that

    setting    is what even the best runner would have lost who does as told: nothing if the subtask lies on a shortest
               way; all of it if no subtask was named, or one that can no longer be met
    running    is the rest; below 0 for a runner who does better than it was told to

A node from which the goal cannot be reached counts as if its team waited out the budget and had everything before it.
So in a leg a team of two, too, is told apart: its setter and its runner each have an account.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from games.tasks.forge_course import Course, Node
from games.tasks.goals import BROKEN, HOLDS, OPEN, Goal

MAX_KEPT = 64


class Stretch(NamedTuple):
    """A subtask as it was run: by whom, which (None: none was named), between which nodes, in how many steps."""

    runner: int
    goal: Goal | None
    start: Node
    end: Node
    steps: int


class Lost(NamedTuple):
    """Steps that a subtask or a leg lost."""

    setting: int
    running: int


def leg_losses(course: Course, stretches: Sequence[Stretch]) -> list[Lost]:
    """Return what each subtask of a leg lost; together the leg's steps and what was left, less the shortest plan."""
    found, budget = [], course.spec.budget
    for stretch in stretches:
        found.append(_lost(course, stretch, budget=budget))
        budget -= stretch.steps
    return found


def _lost(course: Course, stretch: Stretch, *, budget: int) -> Lost:
    left = steps_left(course)

    def value(node: Node, rest: int) -> int:
        return left.get(node, rest + course.optimal)

    before = value(stretch.start, budget)
    lost = stretch.steps + value(stretch.end, budget - stretch.steps) - before
    if stretch.goal is None or stretch.start not in left:
        return Lost(lost, 0)
    best = _best(course, stretch.start, stretch.goal)
    return Lost(lost, 0) if best is None else Lost(best - before, lost - best + before)


def _best(course: Course, start: Node, goal: Goal) -> int | None:
    """Return how long the shortest way to the course's goal is that meets the subtask first, None if none does."""
    left = steps_left(course)
    first: tuple[Node, Any] = (start, goal.start(start.facts))
    seen, frontier = {first}, [first]
    best: int | None = None
    depth = 0
    while frontier and (best is None or depth < best):
        depth += 1
        reached = []
        for node, progress in frontier:
            for action in node.space.options if node.space is not None else ():
                after = course.step(node, action)
                at = (after, goal.fold(progress, after.facts))
                status = goal.status(at[1])
                if at in seen or after not in left or status == BROKEN:
                    continue
                seen.add(at)
                if status == HOLDS:
                    way = depth + left[after]
                    best = way if best is None else min(best, way)
                else:
                    reached.append(at)
        frontier = reached
    return best


@lru_cache(maxsize=MAX_KEPT)
def steps_left(course: Course) -> dict[Node, int]:
    """Return how many steps the goal is away from every node that can be reached, where it can be reached from there.

    The whole graph is walked, which is small for the tasks that a relay is run on: no pool task's has 3,000 nodes.
    """
    before: dict[Node, list[Node]] = {course.start: []}
    frontier = [course.start]
    while frontier:
        reached = []
        for node in frontier:
            for action in node.space.options if node.space is not None else ():
                after = course.step(node, action)
                if after not in before:
                    before[after] = []
                    if after.status == OPEN:
                        reached.append(after)
                before[after].append(node)
        frontier = reached
    left = {node: 0 for node in before if node.solved}
    frontier, depth = list(left), 0
    while frontier:
        depth += 1
        reached = []
        for node in frontier:
            for earlier in before[node]:
                if earlier not in left:
                    left[earlier] = depth
                    reached.append(earlier)
        frontier = reached
    return left
