"""What the generator reads: rows of attempts and of proposed tasks, and the `Memory` that keeps them.

The generator needs no more than this protocol, so it runs on the experience store and on `MemoryInRam` alike.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from games.tasks.spec import TaskSpec

PURPOSES = ("train", "review", "test", "probe")
"""Why a task was attempted: to learn, to keep, held out, or to measure at fixed difficulty."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt at one task."""

    number: int
    """0, 1, 2, … in the order in which attempts ended."""
    task: str
    """The task's hash."""
    skill: str
    """The skill at which the generator aimed."""
    skills: tuple[str, ...]
    """Every skill that the task takes."""
    difficulty: tuple[float, ...]
    """As measured, in the order of `games.tasks.spec.DIMENSIONS`."""
    success: bool
    progress: float = 0.0
    """The share of the goal's parts that were reached, 0 to 1."""
    purpose: str = "train"
    policy: str = ""
    generator: str = ""
    judge: str = ""
    similarity: float = 0.0
    """Of the task to its nearest among those before it."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task that was proposed."""

    number: int
    task: str
    skill: str
    skills: tuple[str, ...]
    difficulty: tuple[float, ...]
    similarity: float = 0.0
    purpose: str = "train"
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class SkillProfile:
    """How one skill stands: attempts that aimed at it, their share of success, their mean difficulty."""

    skill: str
    attempts: int
    success: float
    mean_difficulty: tuple[float, ...]
    last: int
    """The number of the latest attempt."""


class Memory(Protocol):
    """What the generator asks."""

    def attempts(self, *, skill: str | None = None, limit: int) -> Sequence[AttemptRow]:
        """Return the newest `limit` attempts (that aimed at `skill`), the oldest of them first."""

    def tasks(self, *, limit: int) -> Sequence[TaskRow]:
        """Return the newest `limit` proposed tasks, the oldest of them first."""

    def seen(self, task: str) -> bool:
        """Return whether a task of this hash was ever proposed."""

    def near_misses(self, skill: str, *, limit: int) -> Sequence[AttemptRow]:
        """Return failed attempts that aimed at `skill`: the most progress first, among equals the newest."""

    def solved(self, skill: str, *, limit: int) -> Sequence[AttemptRow]:
        """Return the latest solving attempt of each solved task that aimed at `skill`; longest untouched first."""

    def profile(self) -> Mapping[str, SkillProfile]:
        """Return how each skill stands, by name."""

    def task(self, task: str) -> TaskSpec | None:
        """Return a task by its hash, or None if it is not kept."""


class MemoryInRam:
    """A `Memory` of lists: for simulations, tests and short runs.

    It looks for near misses among the newest `window` attempts of a skill; solved tasks are kept all.
    """

    def __init__(self, *, window: int = 100) -> None:
        self.window = window
        self._attempts: list[AttemptRow] = []
        self._tasks: list[TaskRow] = []
        self._by_skill: dict[str, list[AttemptRow]] = {}
        self._failed: dict[str, deque[AttemptRow]] = {}
        self._solved: dict[str, OrderedDict[str, AttemptRow]] = {}
        self._seen: set[str] = set()
        self._specs: dict[str, TaskSpec] = {}
        self._sums: dict[str, tuple[int, list[float]]] = {}

    def add_attempt(self, row: AttemptRow) -> None:
        """Keep an attempt; rows come in the order of their numbers."""
        self._attempts.append(row)
        self._by_skill.setdefault(row.skill, []).append(row)
        solved = self._solved.setdefault(row.skill, OrderedDict())
        if row.success:
            solved[row.task] = row
        else:
            self._failed.setdefault(row.skill, deque(maxlen=self.window)).append(row)
        if row.task in solved:
            solved.move_to_end(row.task)
        won, sums = self._sums.get(row.skill, (0, [0.0] * len(row.difficulty)))
        self._sums[row.skill] = (
            won + row.success,
            [a + b for a, b in zip(sums, row.difficulty, strict=True)],
        )

    def add_task(self, row: TaskRow, spec: TaskSpec | None = None) -> None:
        """Keep a proposed task, with its spec if there is one."""
        self._tasks.append(row)
        self._seen.add(row.task)
        if spec is not None:
            self._specs[row.task] = spec

    def attempts(self, *, skill: str | None = None, limit: int) -> Sequence[AttemptRow]:
        rows = self._attempts if skill is None else self._by_skill.get(skill, [])
        return rows[-limit:]

    def tasks(self, *, limit: int) -> Sequence[TaskRow]:
        return self._tasks[-limit:]

    def seen(self, task: str) -> bool:
        return task in self._seen

    def near_misses(self, skill: str, *, limit: int) -> Sequence[AttemptRow]:
        failed = self._failed.get(skill, ())
        return sorted(failed, key=lambda row: (-row.progress, -row.number))[:limit]

    def solved(self, skill: str, *, limit: int) -> Sequence[AttemptRow]:
        return list(islice(self._solved.get(skill, {}).values(), limit))

    def profile(self) -> Mapping[str, SkillProfile]:
        found = {}
        for skill, (won, sums) in sorted(self._sums.items()):
            own = self._by_skill[skill]
            means = tuple(total / len(own) for total in sums)
            found[skill] = SkillProfile(skill, len(own), won / len(own), means, own[-1].number)
        return found

    def task(self, task: str) -> TaskSpec | None:
        return self._specs.get(task)
