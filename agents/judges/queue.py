"""The person's queue: cases that wait for a person, with their evidence, in one SQLite file.

A case is in it once, however often it is put. What a person answers is kept beside what was decided; where rules
had decided, their decision stands and a different answer is a dispute, which somebody must look into.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from agents.errors import QueueError, QueueTooNew
from agents.judges.base import MACHINE, RULES, Case, Judgement
from agents.judges.evaluator import decided
from agents.judges.evidence import evidence
from games.tasks.check import check

FILE = "judge.db"
SCHEMA_VERSION = 1
MAX_NOTE_CHARS = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cases (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL,
    run TEXT NOT NULL,
    why TEXT NOT NULL,
    case_json TEXT NOT NULL,
    judgement_json TEXT NOT NULL,
    answer INTEGER,
    person TEXT,
    note TEXT
);
CREATE INDEX IF NOT EXISTS cases_open ON cases (number) WHERE answer IS NULL;
"""
_COLUMNS = "number, id, run, why, case_json, judgement_json, answer, person, note"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A case in the queue; `answer`, `person` and `note` are None until a person answered."""

    number: int
    case: Case
    run: str
    why: str
    judgement: Judgement
    answer: bool | None
    person: str | None
    note: str | None

    @property
    def settled(self) -> Judgement:
        """The judgement with the person's answer in it, if there is one."""
        return self.judgement if self.answer is None else decided(self.judgement, answer=self.answer)

    @property
    def disputed(self) -> bool:
        """Whether the person said otherwise than what rules or model had decided."""
        return None not in (self.answer, self.judgement.answer) and self.answer != self.judgement.answer

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data: the case, the evidence and the whole chain."""
        verdict = check(self.case.spec, self.case.attempt)
        return {
            "number": self.number,
            "id": self.case.id,
            "run": self.run,
            "why": self.why,
            "case": self.case.to_data(),
            "evidence": evidence(self.case, verdict),
            "judgement": self.settled.to_data(),
            "answer": self.answer,
            "person": self.person,
            "note": self.note,
            "disputed": self.disputed,
        }


class PersonQueue:
    """The queue in a file. Use it in `with`, or close it."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._open(path)
        except sqlite3.Error as error:
            raise QueueError(f"{path}: cannot be used as the queue: {error}") from None

    def _open(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            self._db.close()
            raise QueueTooNew(
                f"{path}: the queue has version {version}, this program reads up to {SCHEMA_VERSION}"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._writing():
            for statement in filter(None, map(str.strip, _SCHEMA.split(";"))):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def put(self, cases: Iterable[tuple[Case, Judgement]], *, run: str = "") -> int:
        """Put those cases in the queue whose judgement says so; return how many are new."""
        rows = [
            (
                case.id,
                case.spec.hash,
                run,
                judgement.queued,
                json.dumps(case.to_data()),
                json.dumps(judgement.to_data()),
            )
            for case, judgement in cases
            if judgement.queued is not None
        ]
        if not rows:
            return 0
        before = self._db.total_changes
        with self._writing():
            self._db.executemany(
                "INSERT INTO cases (id, task, run, why, case_json, judgement_json) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO NOTHING",
                rows,
            )
        return self._db.total_changes - before

    def waiting(self, *, limit: int = 100, answered: bool | None = False) -> list[Waiting]:
        """Return cases by age; those not answered, those answered, or (None) both."""
        where = {None: "1", False: "answer IS NULL", True: "answer IS NOT NULL"}[answered]
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM cases WHERE {where} ORDER BY number LIMIT ?", (limit,)
        )
        return [_waiting(row) for row in rows]

    def get(self, name: str) -> Waiting:
        """Return the case of an id or of its beginning. Raises `QueueError`."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM cases WHERE substr(id, 1, ?) = ? LIMIT 2", (len(name), name)
        ).fetchall()
        if not name or len(rows) != 1:
            found = "none" if not rows else "several"
            raise QueueError(f"case: got {name[:40]!r}, of which the queue has {found}; an id is needed")
        return _waiting(rows[0])

    def answer(self, name: str, answer: bool, *, person: str, note: str = "") -> Waiting:
        """Record a person's answer. The same answer again changes nothing. Raises `QueueError`."""
        with self._writing():
            held = self.get(name)
            if held.answer is not None and held.answer != answer:
                raise QueueError(
                    f"case {held.case.id}: {held.person} answered {'yes' if held.answer else 'no'} before"
                )
            if held.answer is None:
                self._db.execute(
                    "UPDATE cases SET answer = ?, person = ?, note = ? WHERE number = ?",
                    (int(answer), person, note[:MAX_NOTE_CHARS], held.number),
                )
        return self.get(held.case.id)

    def counts(self, *, run: str | None = None) -> dict[str, int]:
        """Return how many cases wait, by reason; how many are answered, and how many of those are disputed."""
        where, values = ("1", ()) if run is None else ("run = ?", (run,))
        rows = self._db.execute(
            f"SELECT why, count(*) FROM cases WHERE answer IS NULL AND {where} GROUP BY why", values
        )
        counts = {str(why): int(number) for why, number in rows}
        answered = self._db.execute(
            f"SELECT answer, json_extract(judgement_json, '$.answer') FROM cases WHERE answer IS NOT NULL AND {where}",
            values,
        ).fetchall()
        disputed = sum(1 for said, held in answered if held is not None and said != held)
        return {
            "waiting": sum(counts.values()),
            **{f"waiting_{why}": number for why, number in sorted(counts.items())},
            "answered": len(answered),
            "disputed": disputed,
        }

    def disputed_tasks(self) -> list[str]:
        """Return the hashes of the tasks about which a person and the rules disagree."""
        rows = self._db.execute(
            "SELECT DISTINCT task FROM cases WHERE answer IS NOT NULL "
            "AND answer != json_extract(judgement_json, '$.answer') "
            "AND json_extract(judgement_json, '$.decided_by') IN (?, ?) ORDER BY task",
            (RULES, MACHINE),
        )
        return [str(task) for (task,) in rows]

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _waiting(row: tuple[Any, ...]) -> Waiting:
    number, _, run, why, case, judgement, answer, person, note = row
    return Waiting(
        number,
        Case.from_data(json.loads(case)),
        run,
        why,
        Judgement.from_data(json.loads(judgement)),
        None if answer is None else bool(answer),
        person,
        note,
    )
