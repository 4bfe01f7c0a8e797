"""How the agent does, in figures kept apart: at fixed difficulty, at new difficulty, at old tasks; and how varied
the tasks are. Pure functions over rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from agents.curriculum.curve import Axes, Bin, by_dimension
from agents.curriculum.rows import AttemptRow, SkillProfile, TaskRow

Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Share:
    """A share of successes with its 95 % Wilson interval; all None where nothing was attempted."""

    attempts: int
    successes: int

    @property
    def value(self) -> float | None:
        """Successes over attempts."""
        return self.successes / self.attempts if self.attempts else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval (Wilson 1927) at 95 %."""
        n = self.attempts
        if not n:
            return None
        p, z2 = self.successes / n, Z95 * Z95
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = Z95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    @classmethod
    def of(cls, rows: Sequence[AttemptRow]) -> "Share":
        """Return the share of success among rows."""
        return cls(len(rows), sum(row.success for row in rows))

    def to_data(self) -> dict[str, object]:
        """Return it as JSON-compatible data."""
        interval = self.interval
        return {
            "attempts": self.attempts,
            "successes": self.successes,
            "value": self.value,
            "interval": None if interval is None else list(interval),
        }


def fixed_success(rows: Sequence[AttemptRow], axes: Axes, *, level: float, width: float = 1.0) -> Share:
    """Return success at fixed difficulty: at tasks whose level lies within `width` of `level`, reviews left out."""
    near = [
        row for row in rows if row.purpose != "review" and abs(axes.level(row.difficulty) - level) <= width
    ]
    return Share.of(near)


def first_try(rows: Sequence[AttemptRow], axes: Axes) -> Share:
    """Return success at first attempts at new difficulty: tasks of a higher level than any solved before by the skill.

    A skill's attempts before its first success are not counted: nothing is old yet.
    """
    highest: dict[str, float] = {}
    tried: set[str] = set()
    found = []
    for row in rows:
        level = axes.level(row.difficulty)
        if row.task not in tried and row.skill in highest and level > highest[row.skill]:
            found.append(row)
        tried.add(row.task)
        if row.success:
            highest[row.skill] = max(level, highest.get(row.skill, level))
    return Share.of(found)


def retention(rows: Sequence[AttemptRow], *, rest: int = 20) -> Share:
    """Return success at old tasks: attempts at tasks solved before and untouched for at least `rest` attempts."""
    touched: dict[str, int] = {}
    solved: set[str] = set()
    found = []
    for row in rows:
        if row.task in solved and row.number - touched[row.task] >= rest:
            found.append(row)
        touched[row.task] = row.number
        if row.success:
            solved.add(row.task)
    return Share.of(found)


@dataclass(frozen=True, slots=True)
class Diversity:
    """How varied the latest tasks are."""

    tasks: int
    highest_similarity: float
    """Of a new task to one before it."""
    combinations: int
    """Distinct combinations of skill and difficulty."""
    weakest: str | None
    """The skill of least success."""
    weakest_share: float
    """Its share of the tasks."""
    histograms: dict[str, tuple[Bin, ...]]
    """How the tasks lie along each dimension (their `successes` are 0)."""

    def to_data(self) -> dict[str, object]:
        """Return it as JSON-compatible data."""
        return {
            "tasks": self.tasks,
            "highest_similarity": self.highest_similarity,
            "combinations": self.combinations,
            "weakest": self.weakest,
            "weakest_share": self.weakest_share,
            "histograms": {
                name: [{"low": b.low, "high": b.high, "tasks": b.tasks} for b in bins]
                for name, bins in self.histograms.items()
            },
        }


def diversity(tasks: Sequence[TaskRow], axes: Axes, *, weakest: str | None, last: int = 100) -> Diversity:
    """Return how varied the last tasks are; reviews, which repeat on purpose, are left out.

    `weakest` is the weakest skill (`Standing.weakest()`, or `weakest_of` a profile).
    """
    latest = [row for row in tasks if row.purpose != "review"][-last:]
    counts = Counter(row.skill for row in latest)
    as_attempts = [
        AttemptRow(row.number, row.task, row.skill, row.skills, row.difficulty, success=False)
        for row in latest
    ]
    return Diversity(
        tasks=len(latest),
        highest_similarity=max((row.similarity for row in latest), default=0.0),
        combinations=len({axes.combination(row.skill, row.difficulty) for row in latest}),
        weakest=weakest,
        weakest_share=counts[weakest] / len(latest) if latest and weakest is not None else 0.0,
        histograms=by_dimension(as_attempts, axes.source),
    )


def weakest_of(profiles: Sequence[SkillProfile]) -> str | None:
    """Return the skill of least success, the first by name among equals; None if there is none."""
    return min(profiles, key=lambda one: (one.success, one.skill)).skill if profiles else None
