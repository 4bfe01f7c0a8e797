"""A task made ready to be played by many: its states are looked up once and shared by all who attempt it.

What is kept here follows from the task alone, so it may be shared by matches, views and bots; none of it is any
match's state.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

from games.errors import BadTask
from games.spaces import Choice
from games.tasks.difficulty import measure, skills_of
from games.tasks.goals import BROKEN, HOLDS, OPEN
from games.tasks.similarity import Vector, features
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec
from games.tasks.world import WAIT, World

GENERATOR = "forge"
MAX_COURSES = 512
MAX_NODES = 20_000
"""Courses that are kept, and nodes of one."""

_SPACES: dict[tuple[str, ...], Choice] = {}
_COURSES: dict[str, "Course"] = {}


class Node:
    """A state of the world with the goal's progress. Equal ones are equal, whichever course they come from."""

    __slots__ = ("facts", "following", "lost", "progress", "space", "state", "status")

    def __init__(self, course: "Course", state: Any, progress: Any, facts: Any) -> None:
        world, goal = course.world, course.spec.goal
        self.state = state
        self.progress = progress
        self.facts = facts
        self.lost = world.lost(state) is not None
        self.status = BROKEN if self.lost else goal.status(progress)
        self.following: dict[str, Node] = {}
        self.space: Choice | None = None
        if self.status == OPEN:
            legal = world.legal(state)
            self.space = _SPACES.get(legal)
            if self.space is None:
                if len(_SPACES) >= MAX_NODES:
                    _SPACES.clear()
                self.space = _SPACES[legal] = Choice(legal, "step", WAIT)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Node) and (self.state, self.progress) == (other.state, other.progress)
        )

    def __hash__(self) -> int:
        return hash((self.state, self.progress))

    def __repr__(self) -> str:
        return f"Node({self.state!r}, {self.progress!r})"

    @property
    def solved(self) -> bool:
        """Whether the goal holds."""
        return self.status == HOLDS


class Course:
    """A solvable task with its world and a shortest plan."""

    def __init__(self, spec: TaskSpec, *, world: World[Any], hash: str, plan: tuple[str, ...]) -> None:
        self.spec = spec
        self.hash = hash
        self.world = world
        self.plan = plan
        self.optimal = len(plan)
        self._nodes: dict[tuple[Any, Any], Node] = {}
        state = self.world.initial()
        facts = self.world.facts(state)
        self.start = Node(self, state, spec.goal.start(facts), facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Course) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Course({self.hash[:12]})"

    def step(self, node: Node, action: str) -> Node:
        """Return the node after `action`, which may be any string."""
        after = node.following.get(action)
        if after is None:
            state = self.world.step(node.state, action)
            facts = self.world.facts(state)
            progress = self.spec.goal.fold(node.progress, facts)
            key = (state, progress)
            after = self._nodes.get(key)
            if after is None:
                if len(self._nodes) >= MAX_NODES:
                    self._nodes.clear()
                after = self._nodes[key] = Node(self, state, progress, facts)
            if node.space is not None and action in node.space.options:
                node.following[action] = after
        return after

    @cached_property
    def vector(self) -> Vector:
        """What the task is compared by."""
        return features(self.spec, world=self.world)

    @cached_property
    def data(self) -> dict[str, Any]:
        """The task as data; shared, so never to be changed."""
        return self.spec.to_data()


def course_of(spec: TaskSpec, *, plan: tuple[str, ...] | None = None) -> Course | None:
    """Return the task as a course, measured; None where it is not solved within its budget, or at once.

    `plan` is the solver's, where it is at hand. What the task says about itself is measured anew, so two tasks that
    play alike are the same course.
    """
    key = spec.hash
    course = _COURSES.get(key)
    if course is None:
        if plan is None:
            plan = solve_task(spec).plan
        if not plan:
            return None
        world, goal, budget = spec.make_world(), spec.goal, spec.budget
        skills = skills_of(world, goal, plan=plan)
        whole = replace(spec, skills=tuple(sorted(skills)), generator=GENERATOR, parent=None)
        whole = whole.with_difficulty(measure(world, goal, budget=budget, plan=plan))
        if len(_COURSES) >= MAX_COURSES:
            _COURSES.clear()
        course = _COURSES[key] = Course(whole, world=world, hash=key, plan=plan)
    return course


def course_from(data: Any, *, hash: str) -> Course:
    """Return the course of a task that an event tells of. Raises `BadTask` where it tells of none."""
    course = _COURSES.get(hash)
    if course is None:
        course = course_of(TaskSpec.from_data(data))
        if course is None:
            raise BadTask("task: cannot be solved within its budget")
    return course
