"""The shortest way on from any point of a task, found once and kept for all who play it in this process.

A shortest plan tells the way from each of its own nodes. From elsewhere a breadth-first search leads to the
nearest node whose way is known, and the way there is kept too; so the way found after a detour may be a little
longer than the shortest.
"""

from games.tasks.forge_course import Course, Node
from games.tasks.goals import OPEN

MAX_SEARCH = 1_500
MAX_KEPT = 512

_ROUTES: dict[str, dict[Node, tuple[int, str | None]]] = {}
"""By task: from a node, how many steps are left and which comes first (None: no way was found)."""


def route(course: Course, node: Node) -> str | None:
    """Return the next step of a way from `node` to the goal, or None if none was found within bounds."""
    return _known(course, node)[1]


def steps_left(course: Course, node: Node) -> int | None:
    """Return how long the way from `node` to the goal is, None if none was found."""
    left, action = _known(course, node)
    return left if action is not None or node.solved else None


def _known(course: Course, node: Node) -> tuple[int, str | None]:
    known = _ROUTES.get(course.hash)
    if known is None:
        if len(_ROUTES) >= MAX_KEPT:
            _ROUTES.clear()
        known = _ROUTES[course.hash] = _planned(course)
    found = known.get(node)
    return _search(course, node, known) if found is None else found


def _planned(course: Course) -> dict[Node, tuple[int, str | None]]:
    known: dict[Node, tuple[int, str | None]] = {}
    node, left = course.start, course.optimal
    for action in course.plan:
        known[node] = (left, action)
        node, left = course.step(node, action), left - 1
    return known


def _search(course: Course, node: Node, known: dict[Node, tuple[int, str | None]]) -> tuple[int, str | None]:
    came: dict[Node, tuple[Node, str] | None] = {node: None}
    frontier = [node]
    best: tuple[int, Node] | None = None
    depth = 0
    while frontier and best is None and len(came) < MAX_SEARCH:
        depth += 1
        reached = []
        for at in frontier:
            for action in at.space.options if at.space is not None else ():
                after = course.step(at, action)
                if after in came or (after.status != OPEN and not after.solved):
                    continue
                came[after] = (at, action)
                left = 0 if after.solved else known.get(after, (-1, None))[0]
                if left >= 0 and (best is None or left < best[0]):
                    best = (left, after)
                reached.append(after)
        frontier = reached
    if best is None:
        known[node] = (-1, None)
        return known[node]
    left, at = best
    while (step := came[at]) is not None:
        at, action = step
        left += 1
        known[at] = (left, action)
    return known[node]
