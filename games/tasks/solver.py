"""An exact solver for every world: is a task solvable, in how few steps, and by which plan.

Breadth first over pairs of a world's state and a goal's progress, so the first solution is a shortest one. The
work is bounded; a search that meets its bound says `unknown` and nothing more. Worlds leave distractors out of
the search (`World.useful`) without changing the answer. For the grid, whole sets of cells are searched at once
(`games.tasks.waves`), with the same answer.
"""

from collections.abc import Hashable
from typing import Any

from games.tasks.goals import BROKEN, HOLDS, Fact, Goal, Progress
from games.tasks.grid import Grid
from games.tasks.solution import MAX_NODES as MAX_NODES
from games.tasks.solution import SOLVABLE as SOLVABLE
from games.tasks.solution import UNKNOWN as UNKNOWN
from games.tasks.solution import UNSOLVABLE as UNSOLVABLE
from games.tasks.solution import Solution as Solution
from games.tasks.spec import TaskSpec
from games.tasks.waves import spread
from games.tasks.world import World


def solve(
    world: World[Any], goal: Goal, *, max_steps: int | None = None, max_nodes: int = MAX_NODES
) -> Solution:
    """Find a shortest plan for `goal` in `world`, of at most `max_steps` steps, looking at `max_nodes` nodes."""
    start = world.initial()
    facts = world.facts(start)
    progress = goal.start(facts)
    status = goal.status(progress)
    if status == HOLDS:
        return Solution(SOLVABLE, 0, (), 1)
    if status == BROKEN:
        return Solution(UNSOLVABLE, None, None, 1)
    if isinstance(world, Grid):
        return spread(world, goal, progress, max_steps=max_steps, max_nodes=max_nodes)
    return breadth_first(world, goal, progress, max_steps=max_steps, max_nodes=max_nodes)


def solve_task(spec: TaskSpec, *, max_nodes: int = MAX_NODES) -> Solution:
    """Solve a task within its own step budget."""
    return solve(spec.make_world(), spec.goal, max_steps=spec.budget, max_nodes=max_nodes)


Node = tuple[Hashable, Progress]


def breadth_first(
    world: World[Any], goal: Goal, progress: Progress, *, max_steps: int | None, max_nodes: int
) -> Solution:
    """Search node by node from the initial state, where the goal's progress is `progress` and still open."""
    root: Node = (world.initial(), progress)
    useful, step, facts_of, lost = world.useful(goal), world.step, world.facts, world.lost
    came: dict[Node, tuple[Node, str] | None] = {root: None}
    memo: dict[tuple[Progress, frozenset[Fact]], tuple[Progress, int]] = {}
    frontier, depth = [root], 0
    while frontier and (max_steps is None or depth < max_steps):
        depth += 1
        reached: list[Node] = []
        for node in frontier:
            state, progress = node
            for action in useful(state):
                after = step(state, action)
                if lost(after):
                    continue
                question = (progress, facts_of(after))
                answer = memo.get(question)
                if answer is None:
                    folded = goal.fold(*question)
                    answer = memo[question] = (folded, goal.status(folded))
                if answer[1] == BROKEN:
                    continue
                found = (after, answer[0])
                if found in came:
                    continue
                came[found] = (node, action)
                if answer[1] == HOLDS:
                    return Solution(SOLVABLE, depth, _plan(came, found), len(came))
                if len(came) >= max_nodes:
                    return Solution(UNKNOWN, None, None, len(came))
                reached.append(found)
        frontier = reached
    return Solution(UNSOLVABLE, None, None, len(came))


def _plan(came: dict[Node, tuple[Node, str] | None], node: Node) -> tuple[str, ...]:
    actions: list[str] = []
    while (before := came[node]) is not None:
        node, action = before
        actions.append(action)
    return tuple(reversed(actions))
