"""The experience store (B1, B2, A2, A10): tasks, attempts, lessons and the versions of all that had a part in them.

One SQLite file. Every write is one transaction or part of one, and a record that is there already changes
nothing: a loop that was killed says again what it is not sure of, and nothing is lost or doubled. Sums are kept in the
transaction that stores what they sum up, so a profile costs the same at a thousand attempts and at a million.
"""

import math
from typing import Any

from agents.memory.lessons import Lessons
from agents.memory.records import LESSON_STATUSES, STATUSES
from agents.memory.schema import SUM_COLUMNS
from games.tasks.spec import DIMENSIONS

TABLES = ("versions", "tasks", "episodes", "lessons", "notes")


class Memory(Lessons):
    """The experience store in a file. Close it, or use it in `with`.

    Args:
        path: the file; made, with the directories above it, where it is missing.
        create: False raises `MemoryFault` where there is none yet.
        vectors: what compares texts: `hashed`, or `minilm` (a wheel with the model must be installed).

    Raises `MemoryFault` in one line for whatever is wrong with the file, `MemoryTooNew` for one of a newer version,
    `BadExperience` for what the store cannot take. After an error inside `transaction` nothing of it is kept.
    """

    def counts(self) -> dict[str, int]:
        """Return how many rows there are of each sort."""
        return {table: self.rows(f"select count(*) from {table}")[0][0] for table in TABLES}

    def statuses(self) -> dict[str, dict[str, int]]:
        """Return how many `tasks` and how many `lessons` there are of each status."""
        found = {}
        for table, allowed in (("tasks", STATUSES), ("lessons", LESSON_STATUSES)):
            counted = dict(self.rows(f"select status, count(*) from {table} group by status"))
            found[table] = {status: counted.get(status, 0) for status in allowed}
        return found

    def check(self) -> list[str]:
        """Return what is wrong with the file, a line each: its pages, or sums that are none. Reads all of it."""
        found = [f"pages: {words}" for (words,) in self.rows("pragma integrity_check") if words != "ok"]
        found += [f"{table}: a row points to nothing" for table, *_ in self.rows("pragma foreign_key_check")]
        for table, (kept, counted) in _SUMS.items():
            wrong = _unlike(self.rows(kept), self.rows(counted))
            if wrong:
                found.append(f"{table}: {wrong} rows are not the sums of the episodes")
        return found


_SUMS = {
    "totals": (
        f"select skill, actor, purpose, generation, advised, {', '.join(SUM_COLUMNS)} from totals",
        (
            "select e.skill, actor, purpose, e.generation, advised, count(*), sum(success), sum(first), "
            "sum(first and success), sum(steps), count(t.path_length), "
            f"{', '.join(f'total(t.{name})' for name in DIMENSIONS)} from episodes e join tasks t on t.id = e.task "
            "group by e.skill, actor, purpose, e.generation, advised"
        ),
    ),
    "task_totals": (
        "select actor, task, 0, 0, 0, episodes, successes, last_episode from task_totals",
        "select actor, task, 0, 0, 0, count(*), sum(success), max(number) from episodes group by actor, task",
    ),
    "tasks": (
        "select id, 0, 0, 0, 0, episodes, successes, last_episode from tasks where episodes > 0",
        "select task, 0, 0, 0, 0, count(*), sum(success), max(number) from episodes group by task",
    ),
}
"""Sums as they are kept and as they are counted anew; the first `KEY` columns tell the rows apart."""
KEY = 5


def _unlike(kept: list[tuple[Any, ...]], counted: list[tuple[Any, ...]]) -> int:
    sums, others = ({row[:KEY]: row[KEY:] for row in rows} for rows in (kept, counted))
    return sum(
        key not in sums
        or key not in others
        or any(
            not math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
            for a, b in zip(sums[key], others[key], strict=True)
        )
        for key in sums.keys() | others.keys()
    )
