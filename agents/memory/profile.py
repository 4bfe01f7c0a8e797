"""How an actor does, by skill (B2): one query over the sums that the store keeps, and one table."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from agents.memory.schema import SUM_COLUMNS
from games.tasks.spec import DIMENSIONS

WEAKEST_FLOOR = 8

_SUMS = ", ".join(f"sum({name})" for name in SUM_COLUMNS)
OVERALL = f"""
    select skill, {_SUMS} from totals
    where (:actor is null or actor = :actor) and (:purpose is null or purpose = :purpose)
      and (:since is null or generation >= :since)
    group by skill order by skill
"""
"""The profile over all episodes, or those from a generation on."""

RECENT = f"""
    with streams as (
        select distinct skill, actor, purpose from totals
        where (:actor is null or actor = :actor) and (:purpose is null or purpose = :purpose)
    ),
    recent as (
        select e.skill, e.success, e.first, e.steps, e.task,
          row_number() over (partition by e.skill order by e.number desc) as age
        from streams s cross join episodes e
        where e.actor = s.actor and e.purpose = s.purpose and e.skill = s.skill
          and (:since is null or e.generation >= :since)
          and e.number >= coalesce((
              select number from episodes
              where actor = s.actor and purpose = s.purpose and skill = s.skill
                and (:since is null or generation >= :since)
              order by number desc limit 1 offset :window - 1), 0)
    )
    select r.skill, count(*), sum(success), sum(first), sum(first and success), sum(steps), count(t.path_length),
      {", ".join(f"total(t.{name})" for name in DIMENSIONS)}
    from recent r join tasks t on t.id = r.task
    where age <= :window group by r.skill order by r.skill
"""
"""The profile over the last episodes of each skill: of each stream of episodes the last are found by index."""

HISTORY = f"""
    select generation, purpose, skill, advised, {_SUMS} from totals
    where (:actor is null or actor = :actor)
    group by generation, purpose, skill, advised order by generation, purpose, skill, advised
"""


class SkillProfile(NamedTuple):
    """How attempts at the tasks of one skill went."""

    skill: str
    episodes: int
    successes: int
    steps: float
    """Mean number of steps."""
    difficulty: dict[str, float]
    """Mean by dimension; empty where no task was measured."""
    first_tries: int
    """Attempts that were the actor's first at their task."""
    first_successes: int

    @property
    def success(self) -> float:
        """The share of attempts that succeeded."""
        return self.successes / self.episodes


class HistoryRow(NamedTuple):
    """The same of one generation and purpose, apart for attempts that were advised."""

    generation: int
    purpose: str
    skill: str
    advised: bool
    episodes: int
    successes: int
    first_tries: int
    first_successes: int
    difficulty: dict[str, float]

    @property
    def success(self) -> float:
        """The share of attempts that succeeded."""
        return self.successes / self.episodes


class Profile(NamedTuple):
    """The profile: one row for each skill that was ever attempted, by name."""

    rows: tuple[SkillProfile, ...]

    def row(self, skill: str) -> SkillProfile | None:
        """Return the row of a skill, if there is one."""
        return next((row for row in self.rows if row.skill == skill), None)

    def weakest(self, *, floor: int = WEAKEST_FLOOR) -> SkillProfile | None:
        """Return the skill with the lowest success among those with at least `floor` episodes, if there is one."""
        known = [row for row in self.rows if row.episodes >= floor]
        return min(known, key=lambda row: (row.success, row.skill), default=None)

    def table(self) -> str:
        """Return the profile as a table of plain text."""
        head = ("skill", "success", "episodes", "first try", "steps", *DIMENSIONS)
        cells = [head, *(_cells(row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
            for line in cells
        )


def read_profile(rows: Iterable[tuple[Any, ...]]) -> Profile:
    """Read what `OVERALL` or `RECENT` found."""
    found = []
    for skill, *sums in rows:
        said = dict(zip(SUM_COLUMNS, sums, strict=True))
        found.append(
            SkillProfile(
                skill,
                said["episodes"],
                said["successes"],
                said["steps"] / said["episodes"],
                _means(said),
                said["first_tries"],
                said["first_successes"],
            )
        )
    return Profile(tuple(found))


def read_history(rows: Iterable[tuple[Any, ...]]) -> list[HistoryRow]:
    """Read what `HISTORY` found."""
    found = []
    for generation, purpose, skill, advised, *sums in rows:
        said = dict(zip(SUM_COLUMNS, sums, strict=True))
        found.append(
            HistoryRow(
                generation,
                purpose,
                skill,
                bool(advised),
                said["episodes"],
                said["successes"],
                said["first_tries"],
                said["first_successes"],
                _means(said),
            )
        )
    return found


def _means(said: dict[str, Any]) -> dict[str, float]:
    return {name: said[name] / said["measured"] for name in DIMENSIONS} if said["measured"] else {}


def _cells(row: SkillProfile) -> tuple[str, ...]:
    first = f"{row.first_successes / row.first_tries:.2f}" if row.first_tries else "-"
    means = (f"{row.difficulty[name]:.2f}" if row.difficulty else "-" for name in DIMENSIONS)
    return (row.skill, f"{row.success:.2f}", str(row.episodes), first, f"{row.steps:.1f}", *means)
