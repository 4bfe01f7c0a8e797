"""Distilled experiences (A2, A10): kept, offered where they apply, counted, and given up when they do not help."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from agents.errors import BadExperience
from agents.memory.distil import situation
from agents.memory.episodes import Episodes
from agents.memory.file import to_json
from agents.memory.records import LESSON_STATUSES, Advice, Lesson, LessonEntry
from agents.memory.tasks import check_limit, match_query
from agents.memory.vectors import Vectors, packed
from games.tasks.goals import short
from games.tasks.spec import TaskSpec

ADVICE_FLOOR = 0.25
CLUSTER_FLOOR = 0.85
MIN_OFFERS = 20
RETIRE_Z = -1.645
"""A lesson is retired when so few of those it was offered to succeeded that chance alone would do it once in 20."""
IDLE_COST = 0.01
"""How much worth a lesson loses, for eviction, by generation since it was offered last."""

_SELECT = (
    "select id, text, when_to_use, skill, kind, sources, generation, time, status, merged_into, offered, succeeded, "
    "expected, variance, last_used, number from lessons"
)


class Lessons(Episodes):
    """The part of the store that knows distilled experiences.

    What is merged, retired or evicted is offered no more; its row stays, for attempts name it.
    """

    def add_lessons(self, lessons: Iterable[Lesson]) -> list[str]:
        """Store lessons, all or none; return the ids of those that are new. An id that is there changes nothing."""
        new = []
        with self.transaction() as connection:
            for lesson in lessons:
                cursor = connection.execute(
                    "insert into lessons (id, text, when_to_use, skill, kind, sources, generation, time, status, "
                    "last_used) values (?, ?, ?, ?, ?, ?, ?, ?, 'active', ?) on conflict do nothing",
                    (
                        lesson.id,
                        lesson.text,
                        lesson.when,
                        lesson.skill,
                        lesson.kind,
                        to_json(list(lesson.sources), f"lesson {lesson.id}: sources"),
                        lesson.generation,
                        lesson.time,
                        lesson.generation,
                    ),
                )
                if cursor.rowcount:
                    new.append(lesson.id)
        return new

    def lessons(self, *, status: str | None = "active", skill: str | None = None) -> list[LessonEntry]:
        """Return lessons of a status and of a skill (None: of all), the oldest first, and how they fared."""
        if status is not None and status not in LESSON_STATUSES:
            raise BadExperience(
                f"lesson status: got {short(status)}, allowed are {', '.join(LESSON_STATUSES)}"
            )
        return [entry for _, entry in self._lessons(status, skill)]

    def _lessons(self, status: str | None, skill: str | None = None) -> list[tuple[int, LessonEntry]]:
        rows = self.rows(
            f"{_SELECT} where (? is null or status = ?) and (? is null or skill = ?) order by number",
            (status, status, skill, skill),
        )
        return [(row[-1], _entry(row)) for row in rows]

    def lesson(self, key: str) -> LessonEntry | None:
        """Return a lesson by its id."""
        return next((_entry(row) for row in self.rows(f"{_SELECT} where id = ?", (key,))), None)

    def advise(self, spec: TaskSpec, *, k: int = 3, floor: float = ADVICE_FLOOR) -> list[Advice]:
        """Return the `k` lessons that suit a task best, none whose "when to use" is less alike than `floor`.

        They come by similarity, the more so the more they are worth. What is offered must be named in the
        episode's `lessons`: from there it is counted.
        """
        check_limit(k)
        entries = self._lessons("active")
        if not entries or not k:
            return []
        vectors = self._lesson_vectors(entries)
        scores = np.clip(vectors @ self.embedder.embed([situation(spec)])[0], 0, 1)
        found = [
            Advice(entry.lesson, float(score), entry.worth)
            for (_, entry), score in zip(entries, scores, strict=True)
            if score >= floor
        ]
        found.sort(key=lambda advice: -advice.similarity * (1 + advice.worth))
        return found[:k]

    def search_lessons(self, words: str, *, k: int = 8) -> list[LessonEntry]:
        """Return the lessons, of every status, whose text or "when to use" holds some of the words, the best first."""
        rows = self.rows(
            f"{_SELECT} join (select rowid as found, rank from lessons_fts where lessons_fts match ? "
            "order by rank limit ?) on found = number order by rank",
            (match_query(words), check_limit(k)),
        )
        return [_entry(row) for row in rows]

    def retire(self, *, min_offers: int = MIN_OFFERS) -> list[str]:
        """Retire the lessons that hurt; return their ids.

        A lesson hurts when, after `min_offers`, fewer of those it was offered to succeeded than would without it, by
        more than chance explains (one-sided, 5 %).
        """
        hurting = [
            entry.lesson.id
            for entry in self.lessons()
            if entry.offered >= min_offers
            and entry.succeeded - entry.expected < RETIRE_Z * math.sqrt(entry.variance)
        ]
        self._set_status(hurting, "retired")
        return hurting

    def evict(self, *, keep: int, generation: int) -> list[str]:
        """Evict lessons until `keep` are active; return their ids. First go those of low worth, long not offered."""
        check_limit(keep)
        ranked = sorted(
            self._lessons("active"),
            key=lambda held: (
                held[1].worth - IDLE_COST * max(0, generation - held[1].last_used),
                held[0],
            ),
        )
        gone = [entry.lesson.id for _, entry in ranked[: max(0, len(ranked) - keep)]]
        self._set_status(gone, "evicted")
        return gone

    def cluster(self, *, floor: float = CLUSTER_FLOOR) -> dict[str, str]:
        """Merge lessons of one skill and kind that say nearly the same; return into which each was merged.

        The worthiest (of equals the oldest) of a cluster stays and takes over the counts of the others. Two say
        nearly the same where both their texts and their "when to use" are alike from `floor` on.
        """
        entries = sorted(self._lessons("active"), key=lambda held: (-held[1].worth, held[0]))
        whens = self._lesson_vectors(entries) if entries else np.zeros((0, self.embedder.size), np.float32)
        texts = self.embedder.embed([entry.lesson.text for _, entry in entries])
        merged: dict[str, str] = {}
        leaders: dict[tuple[str, str], list[int]] = {}
        with self.transaction() as connection:
            for i, (number, entry) in enumerate(entries):
                led = leaders.setdefault((entry.lesson.skill, entry.lesson.kind), [])
                alike = np.minimum(whens[led] @ whens[i], texts[led] @ texts[i])
                if not led or alike.max() < floor:
                    led.append(i)
                    continue
                leader, kept = entries[led[int(alike.argmax())]]
                connection.execute(
                    "update lessons set offered = offered + :offered, succeeded = succeeded + :succeeded, expected = "
                    "expected + :expected, variance = variance + :variance, last_used = max(last_used, :last_used) "
                    "where number = :leader",
                    {**entry._asdict(), "lesson": None, "leader": leader},
                )
                connection.execute(
                    "update lessons set status = 'merged', merged_into = ? where number = ?",
                    (kept.lesson.id, number),
                )
                connection.execute(
                    "update lessons set merged_into = ? where merged_into = ?",
                    (kept.lesson.id, entry.lesson.id),
                )
                merged[entry.lesson.id] = kept.lesson.id
        return merged

    def set_lesson_status(self, ids: Iterable[str], status: str, *, generation: int = 0) -> None:
        """Put lessons into force (`active`) or out of it (`retired`, `evicted`), whatever they are now.

        One that was merged stands for itself again; `generation` counts as one in which they were used.
        """
        allowed = [name for name in LESSON_STATUSES if name != "merged"]
        if status not in allowed:
            raise BadExperience(f"lesson status: got {short(status)}, allowed are {', '.join(allowed)}")
        with self.transaction() as connection:
            connection.executemany(
                "update lessons set status = ?, merged_into = null, last_used = max(last_used, ?) where id = ?",
                [(status, generation, key) for key in ids],
            )

    def _set_status(self, ids: Sequence[str], status: str) -> None:
        if ids:
            with self.transaction() as connection:
                connection.executemany(
                    "update lessons set status = ? where id = ? and status = 'active'",
                    [(status, key) for key in ids],
                )

    def _lesson_vectors(self, entries: Sequence[tuple[int, LessonEntry]]) -> Vectors:
        """Return the vectors of "when to use", making and storing those that are missing."""
        name = self.embedder.name
        held: dict[int, bytes] = dict(
            self.rows(
                "select lesson, vector from lesson_vectors where embedder = ? and lesson in "
                "(select value from json_each(?))",
                (name, json.dumps([number for number, _ in entries])),
            )
        )
        missing = [(number, entry.lesson.when) for number, entry in entries if number not in held]
        if missing:
            made = packed(self.embedder.embed([when for _, when in missing]))
            fresh = dict(zip([number for number, _ in missing], made, strict=True))
            with self.transaction() as connection:
                connection.executemany(
                    "insert into lesson_vectors (lesson, embedder, vector) values (?, ?, ?) on conflict do nothing",
                    [(number, name, blob) for number, blob in fresh.items()],
                )
            held |= fresh
        return self._vectors_of([held[number] for number, _ in entries], self.embedder.size)


def _entry(row: tuple[Any, ...]) -> LessonEntry:
    key, text, when, skill, kind, sources, generation, time, *counts = row[:-1]
    return LessonEntry(
        Lesson(key, text, when, skill, kind, tuple(json.loads(sources)), generation, time), *counts
    )
