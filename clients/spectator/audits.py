"""What waits for a person's judgement, as the screen is told of it: plain data, and the contract of who keeps it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from games.tasks.spec import TaskSpec


class FindingTold(NamedTuple):
    """What one layer of the evaluator found."""

    layer: str
    """`rules`, `machine` or `model`."""
    says: str
    """`yes`, `no` or `open`."""
    words: str
    confidence: float | None = None
    """The model's, from 0 to 1."""
    failure: str | None = None
    """The code of an error, where the layer gave no answer."""


@dataclass(frozen=True, slots=True)
class CaseTold:
    """A question about an attempt at a task, which waits for a person."""

    id: str
    run: str
    why: str
    """`low_confidence`, `failure`, `no_model` or `audit`."""
    question: str
    """In words."""
    spec: TaskSpec
    actions: tuple[str, ...]
    evidence: Mapping[str, Any]
    """What the attempt did: `start`, `steps` and `ended`, as `arena judge audit --json` prints it."""
    findings: tuple[FindingTold, ...]
    answer: bool | None
    """What was decided before; None where that is open."""
    decided_by: str = ""
    """The layer that decided it."""


@dataclass(frozen=True, slots=True)
class AuditTold:
    """The cases that wait, the oldest first, and how many there are of each sort."""

    cases: tuple[CaseTold, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    """`waiting`, `answered`, `disputed`, over the whole queue."""


class AuditSource(ABC):
    """The queue."""

    name: str

    @abstractmethod
    async def read(self) -> AuditTold:
        """Return what waits. Raises `ArenaError`."""

    @abstractmethod
    async def answer(self, case: str, answer: bool) -> bool:
        """Keep an answer; return whether it disputes what was decided. Raises `ArenaError` where it is not kept."""
