"""From a request to a task: three makers behind one protocol.

`GridMaker` varies the parent or generates anew, always with the solver's proof. `ProposerMaker` asks somebody, such
as a policy, for a task as JSON and checks it like any other. `VectorMaker` draws a difficulty and no more, for
simulations in which nobody plays.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol

from agents.curriculum.curve import Axes
from agents.curriculum.rows import Memory, TaskRow
from agents.curriculum.strategies import Request
from games.errors import BadTask
from games.rng import derive_seed
from games.tasks.difficulty import SKILLS, measured
from games.tasks.edits import EDITS, edit_names, vary
from games.tasks.generate import Knobs, focused, generate
from games.tasks.grid_layout import MAX_SIDE
from games.tasks.similarity import Vector, features, similarity
from games.tasks.spec import DIMENSIONS, TaskSpec

MAX_NODES = 50_000
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


class _Specs:
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


class GridMaker(_Specs):
    """Makes proven grid tasks: children of the parent by `games.tasks.edits`, or new ones by knobs."""

    name = "curriculum-grid-1"

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
                spec = generate(seed, knobs_for(request))
            except BadTask:
                return None
        return Drawn.of(spec) if request.skill in spec.skills else None


def edited(parent: TaskSpec, request: Request, seed: int) -> TaskSpec | None:
    """Return a child of `parent` by the edits that a request asks for; None where one of them cannot be made."""
    spec: TaskSpec | None = parent
    for move in request.moves:
        name = next((n for n in edit_names(parent) if (EDITS[n].dimension, EDITS[n].direction) == move), None)
        if spec is not None and name is not None:
            spec = vary(spec, name, seed=seed)
    return None if spec is parent else spec


def knobs_for(request: Request) -> Knobs:
    """Return the knobs of the grid's generator that come nearest to a request."""
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
    return focused(knobs, request.skill)


class ProposerMaker(_Specs):
    """Asks for tasks: `ask(data)` gets the request as data and answers with a task as JSON text.

    What comes back is read, bounded, solved and measured like any task; what is wrong with the last answer that
    was refused stands in `refusal`, in one line, and in the next request as `refused`.
    """

    def __init__(self, ask: Callable[[Mapping[str, Any]], str | bytes], *, name: str) -> None:
        super().__init__()
        self.name = name
        self.ask = ask
        self.refusal = ""

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        parent = memory.task(request.parent) if request.parent else None
        data = {
            "skill": request.skill,
            "difficulty": dict(zip(DIMENSIONS, request.difficulty, strict=True)),
            "parent": None if parent is None else parent.to_data(),
            "moves": [list(move) for move in request.moves],
            "refused": self.refusal,
            "seed": seed,
        }
        try:
            spec = measured(TaskSpec.from_text(self.ask(data)), max_nodes=MAX_NODES)
        except BadTask as error:
            self.refusal = str(error)
            return None
        if spec is None:
            self.refusal = "task: not solvable within its budget"
        elif not spec.difficulty[DIMENSIONS.index("path_length")][1]:
            self.refusal = "task: the goal holds at the start"
        elif request.skill not in spec.skills:
            self.refusal = f"task: it takes {', '.join(spec.skills)}, but not {request.skill}"
        else:
            self.refusal = ""
            return Drawn.of(spec)
        return None
