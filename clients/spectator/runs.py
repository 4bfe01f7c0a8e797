"""Runs of `arena evolve` as the spectator is told of them: plain data, and the contracts of whoever reads them.

The screens know nothing of stores and curricula. The figures are those of a run's `metrics.json`; unknown keys are
passed over, and what is missing is left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from games.tasks.spec import TaskSpec


@dataclass(frozen=True, slots=True)
class TryTold:
    """One attempt at a task, and what was judged."""

    actions: tuple[str, ...]
    success: bool
    words: str
    """The verdict in one line; of a `fault` its cause."""
    fault: bool = False
    """Whether it ended by no doing of the actor, and counts for nothing."""


@dataclass(frozen=True, slots=True)
class TaskTold:
    """One task that was set."""

    number: int
    """0, 1, 2, … in the order in which they were set."""
    spec: TaskSpec
    generation: int
    skill: str
    strategy: str
    purpose: str
    """`train`, `review`, or `test` for what is held out."""
    level: float
    similarity: float
    tries: tuple[TryTold, ...] = ()
    quarantine: str = ""
    """Why it may not train, if that is so."""

    @property
    def key(self) -> str:
        """What tells it from the others of its run."""
        return f"{self.number}/{self.spec.hash}"


@dataclass(frozen=True, slots=True)
class RunTold:
    """A run as it stands."""

    name: str
    under_way: bool | None
    """Whether a process is at it just now; None where that cannot be known."""
    figures: Mapping[str, Any] | None = None
    """None as long as it has not begun."""
    tasks: tuple[TaskTold, ...] = ()
    """Those set last, the newest first."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list."""

    name: str
    under_way: bool | None
    figures: Mapping[str, Any]
    """Of its last report; empty where there is none yet."""


class RunSource(ABC):
    """One run."""

    name: str

    @abstractmethod
    async def read(self) -> RunTold:
        """Return how it stands. Raises `ArenaError`."""


class RunFolder(ABC):
    """All runs of a home."""

    name: str

    @abstractmethod
    async def runs(self) -> list[RunRow]:
        """Return them, those under way first. Raises `ArenaError`."""

    @abstractmethod
    def source(self, name: str) -> RunSource:
        """Return the run of that name."""
