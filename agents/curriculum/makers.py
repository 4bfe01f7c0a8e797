"""From a request to a task: makers behind one protocol.

`GridMaker` varies the parent or generates anew, always with the solver's proof. `VectorMaker` draws a difficulty and
no more, for simulations in which nobody plays. Who asks somebody else for tasks is in `agents.curriculum.proposals`.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

from agents.curriculum.curve import Axes
from agents.curriculum.rows import Memory, TaskRow
from agents.curriculum.strategies import Request
from games.errors import BadTask
from games.rng import derive_seed
from games.tasks.difficulty import SKILLS
from games.tasks.edits import EDITS, edit_names, vary
from games.tasks.generate import Knobs, focused, generate
from games.tasks.grid_layout import MAX_SIDE
from games.tasks.similarity import Vector, features, similarity
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.text_generate import generate_text

CHILD_TRIES = 3
"""Draws of a parent's edits, before a task is generated anew."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A task as the generator sees it; `spec` is None where only a difficulty was drawn."""

    hash: str
    skills: tuple[str, ...]
    difficulty: tuple[float, ...]
    spec: TaskSpec | None = None
    parent: str | None = None

    @classmethod
    def of(cls, spec: TaskSpec) -> "Drawn":
        """Return a measured task."""
        return cls(spec.hash, spec.skills, tuple(value for _, value in spec.difficulty), spec, spec.parent)


class Maker(Protocol):
    """Makes tasks on request."""

    name: str

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        """Return a task near the request, or None if this seed gave none."""

    def nearest(self, task: Drawn, old: Sequence[TaskRow], memory: Memory) -> float:
        """Return the similarity, 0 to 1, of the task to the most similar of the old ones."""


class VectorMaker:
    """Draws a difficulty near the request, as a real maker would meet it: not exactly, and in whole numbers."""

    name = "vector-1"

    def __init__(self, axes: Axes, *, noise: float = 0.03) -> None:
        self.axes = axes
        self.noise = noise
        self._places = lru_cache(maxsize=4096)(axes.places)

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        rng = random.Random(seed)
        places = [
            min(1.0, max(0.0, place + rng.gauss(0, self.noise)))
            for place in self.axes.places(request.difficulty)
        ]
        values = tuple(
            round(value, 3) if name == "time_pressure" else float(round(value))
            for name, value in zip(DIMENSIONS, self.axes.values(places), strict=True)
        )
        skills = {request.skill, "navigate"}
        if rng.random() < 0.3:
            skills.add(rng.choice(SKILLS))
        name = sha256(repr((request.skill, values, seed)).encode()).hexdigest()
        return Drawn(name, tuple(sorted(skills)), values, parent=request.parent)

    def nearest(self, task: Drawn, old: Sequence[TaskRow], memory: Memory) -> float:
        skills, own = set(task.skills), self._places(task.difficulty)
        best = 0.0
        for row in old:
            others = self._places(row.difficulty)
            alike = 1 - math.sqrt(sum((a - b) ** 2 for a, b in zip(own, others, strict=True)) / len(own))
            if alike > best:
                shared = len(skills.intersection(row.skills)) / len(skills.union(row.skills))
                best = max(best, alike * (0.5 + 0.5 * shared))
        return best


class SpecMaker:
    """What makers of real tasks share: similarity by features, kept for the tasks looked at last."""

    def __init__(self) -> None:
        self._features = lru_cache(maxsize=4096)(features)

    def nearest(self, task: Drawn, old: Sequence[TaskRow], memory: Memory) -> float:
        """Return the greatest similarity to an old task that the memory still keeps."""
        if task.spec is None:
            return 0.0
        own: Vector = self._features(task.spec)
        specs = (memory.task(row.task) for row in old)
        return max((similarity(own, self._features(spec)) for spec in specs if spec is not None), default=0.0)


class GridMaker(SpecMaker):
    """Makes proven grid tasks: children of the parent by `games.tasks.edits`, or new ones by knobs."""

    name = "curriculum-grid-2"
    skills: tuple[str, ...] = SKILLS
    """Those that its tasks may take."""
    generate: Callable[[int, Knobs], TaskSpec] = staticmethod(generate)

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        parent = memory.task(request.parent) if request.parent else None
        spec = None
        if parent is not None:
            for number in range(CHILD_TRIES):
                spec = edited(parent, request, derive_seed(seed, "child", number))
                if spec is not None and request.skill in spec.skills:
                    break
        if spec is None or request.skill not in spec.skills:
            try:
                spec = self.generate(seed, knobs_for(request, seed=seed))
            except BadTask:
                return None
        return Drawn.of(spec) if request.skill in spec.skills else None


class TextMaker(GridMaker):
    """Makes proven text tasks, like `GridMaker`: children of the parent by edits, or new ones by knobs."""

    name = "curriculum-text-2"
    skills = tuple(skill for skill in SKILLS if skill != "dodge")  # no patrols go about there
    generate = staticmethod(generate_text)


def maker_for(world: str) -> GridMaker:
    """Return the maker of the tasks of `grid` or `text`."""
    return TextMaker() if world == "text" else GridMaker()


def edited(parent: TaskSpec, request: Request, seed: int) -> TaskSpec | None:
    """Return a child of `parent` by the edits that a request asks for; None where one of them cannot be made."""
    spec: TaskSpec | None = parent
    for move in request.moves:
        name = next((n for n in edit_names(parent) if (EDITS[n].dimension, EDITS[n].direction) == move), None)
        if spec is not None and name is not None:
            spec = vary(spec, name, seed=seed)
    return None if spec is parent else spec


def knobs_for(request: Request, *, seed: int = 0) -> Knobs:
    """Return the knobs that come nearest to a request; half the seeds ask for the skill `order` by a `before`."""
    wanted = dict(zip(DIMENSIONS, request.difficulty, strict=True))
    whole = {name: max(0, round(wanted[name])) for name in ("objects", "path_length", "distractors")}
    room = 7 + (whole["objects"] + whole["distractors"]) // 4 + whole["path_length"] // 10
    knobs = Knobs(
        side=min(MAX_SIDE, room),
        objects=min(12, whole["objects"]),
        path_length=min(120, whole["path_length"]),
        rule_depth=min(8, max(1, round(wanted["rule_depth"]))),
        time_pressure=min(1.0, max(0.05, wanted["time_pressure"])),
        distractors=min(12, whole["distractors"]),
    )
    knobs = focused(knobs, request.skill)
    return replace(knobs, before=True) if request.skill == "order" and seed % 2 else knobs
