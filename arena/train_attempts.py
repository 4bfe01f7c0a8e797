"""Attempts at tasks in training: what was done, with which tokens, and how often it worked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.curriculum.rows import AttemptRow, TaskRow
from agents.memory import TaskRecord
from agents.training.trajectories import Step, Trajectory
from arena.standings import wilson
from games.tasks.spec import TaskSpec


@dataclass(slots=True)
class Tried:
    """One attempt: what was done, and the tokens that it was done with."""

    number: int
    spec: TaskSpec
    skill: str
    advice: tuple[str, ...] = ()
    """Ids of the lessons that were offered."""
    actions: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    fault: str = ""
    success: bool = False
    progress: float = 0.0


@dataclass(slots=True)
class Attempts:
    """The attempts of an update.

    `trajectories` and, for each, the `labels` of its steps; then the counts: with advice and without, and of those that
    succeeded. `tried` and `rows` are what is remembered of them, `proposed` the tasks that were set for them.
    """

    trajectories: list[Trajectory] = field(default_factory=list)
    labels: list[list[int]] = field(default_factory=list)
    made: int = 0
    won: int = 0
    faults: int = 0
    advised: int = 0
    advised_won: int = 0
    plain: int = 0
    plain_won: int = 0
    tried: list[Tried] = field(default_factory=list)
    proposed: list[TaskRecord] = field(default_factory=list)
    rows: list[TaskRow] = field(default_factory=list)
    adapter: str = ""

    def summary(self) -> dict[str, Any]:
        """Return the counts, for the metrics; nothing where nothing was attempted."""
        if not self.made:
            return {}
        return {
            "tasks": {
                "attempts": self.made,
                "success": self.won / max(1, self.made - self.faults),
                "faults": self.faults,
                "with_advice": self.advised_won / self.advised if self.advised else None,
                "without_advice": self.plain_won / self.plain if self.plain else None,
                "set": len(self.proposed),
            }
        }


def row_of(one: Tried, adapter: str, progress: float) -> AttemptRow:
    """Return an attempt as the curriculum knows it."""
    return AttemptRow(
        number=one.number,
        task=one.spec.hash,
        skill=one.skill,
        skills=one.spec.skills,
        difficulty=tuple(value for _, value in one.spec.difficulty),
        success=one.success,
        progress=progress,
        policy=adapter,
        generator=one.spec.generator,
    )


def success_of(tried: Sequence[Tried]) -> dict[str, Any] | None:
    """Return the share of attempts that succeeded with its 95 % Wilson interval, also by skill; None without any."""
    if not tried:
        return None
    valid = [one for one in tried if not one.fault]
    by_skill: dict[str, list[bool]] = {}
    for one in valid:
        by_skill.setdefault(one.skill, []).append(one.success)
    share = sum(one.success for one in valid) / len(valid) if valid else None
    low, high = (None, None) if share is None else wilson(share, n=len(valid))
    return {
        "tasks": len({one.spec.hash for one in tried}),
        "attempts": len(valid),
        "faults": len(tried) - len(valid),
        "success": share,
        "low": low,
        "high": high,
        "by_skill": {skill: sum(won) / len(won) for skill, won in sorted(by_skill.items())},
    }
