"""Versions and tasks in the experience store: writing, choosing by how attempts went, finding what is similar."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.errors import BadExperience, MemoryFault
from agents.memory.file import MemoryFile, to_json
from agents.memory.records import KINDS, STATUSES, Found, TaskEntry, TaskRecord, Version, listed
from agents.memory.vectors import EMBEDDERS, HASHED, Embedder, Index, Vectors, embedder, packed, unpacked
from games.errors import BadTask
from games.tasks.cases import seed_case
from games.tasks.goals import short
from games.tasks.similarity import SIZE, features
from games.tasks.spec import DIMENSIONS, TaskSpec, canonical_json

ORDERS = {
    "new": ("1", "t.id desc"),
    "old": ("1", "t.id"),
    "learnable": ("{n} > 0", "1.0 * {s} * ({n} - {s}) / ({n} * {n}) desc, {last} desc"),
    "near_miss": ("{n} > {s}", "{progress} desc, {last} desc"),
    "stale": ("{n} > 0", "{last}"),
}
"""How tasks may be ordered: which come into question, and what comes first."""
MAX_LIMIT = 100_000
CHUNK = 10_000
PAGE = 1_000
"""Rows that are read at a time where all are."""
CANDIDATES = 64
"""So many of what full-text search finds are compared by their vectors."""
MAX_QUERY_WORDS = 32

_TASK = """
    select t.id, d.spec, t.skill, t.strategy, t.status, t.generation, t.time, g.name, {n}, {s}, {progress},
      {generation}
    from tasks t join task_data d on d.task = t.id join versions g on g.id = t.generator {join}
"""
_OF_ALL = {
    "n": "t.episodes",
    "s": "t.successes",
    "progress": "t.progress",
    "last": "t.last_episode",
    "generation": "t.last_generation",
    "join": "",
}
_OF_ACTOR = {
    "n": "coalesce(a.episodes, 0)",
    "s": "coalesce(a.successes, 0)",
    "progress": "coalesce(a.progress, 0.0)",
    "last": "a.last_episode",
    "generation": "a.last_generation",
    "join": "left join task_totals a on a.task = t.id and a.actor = :actor",
}


class Tasks(MemoryFile):
    """The part of the store that knows versions and tasks."""

    def __init__(self, path: Path, *, create: bool = True, vectors: str = HASHED) -> None:
        if vectors not in EMBEDDERS:
            raise BadExperience(f"vectors: got {short(vectors)}, allowed are {', '.join(EMBEDDERS)}")
        self._vectors = vectors
        self._embedder: Embedder | None = None
        self._index = Index(SIZE)
        self._features_checked = False
        super().__init__(path, create=create)

    def _undone(self) -> None:
        self._index = Index(SIZE)
        self._features_checked = False

    @property
    def embedder(self) -> Embedder:
        """What makes vectors of texts; a model is loaded at the first use. Raises `BadExperience`."""
        if self._embedder is None:
            self._embedder = embedder(self._vectors)
        return self._embedder

    def add_versions(self, versions: Iterable[Version]) -> int:
        """Store versions; return how many are new.

        One that an attempt only named gets its parent and detail now. Raises `BadExperience` where a version is
        there already with another parent or detail: a version never changes.
        """
        new = 0
        with self.transaction() as connection:
            for version in versions:
                where = f"version {version.kind} {version.name}"
                detail = to_json(dict(version.detail), where)
                for parent, held in self.rows(
                    "select parent, detail from versions where kind = ? and name = ?",
                    (version.kind, version.name),
                ):
                    if (parent, held) == (version.parent, detail):
                        break
                    if (parent, held) != (None, "{}"):
                        raise BadExperience(f"{where}: is in the memory with another parent or detail")
                    connection.execute(
                        "update versions set parent = ?, detail = ? where kind = ? and name = ?",
                        (version.parent, detail, version.kind, version.name),
                    )
                    break
                else:
                    connection.execute(
                        "insert into versions (kind, name, parent, detail) values (?, ?, ?, ?)",
                        (version.kind, version.name, version.parent, detail),
                    )
                    new += 1
        return new

    def versions(self, kind: str | None = None) -> list[Version]:
        """Return the versions of a kind (None: of all), the oldest first."""
        if kind is not None and kind not in KINDS:
            raise BadExperience(f"version kind: got {short(kind)}, allowed are {', '.join(KINDS)}")
        rows = self.rows(
            "select kind, name, parent, detail from versions where ? is null or kind = ? order by id",
            (kind, kind),
        )
        return [Version(kind, name, parent, json.loads(detail)) for kind, name, parent, detail in rows]

    def _version_ids(self, kind: str, names: Iterable[str]) -> dict[str, int]:
        """Return the numbers of versions by name, making those that are not there."""
        wanted = sorted(set(names))
        with self.transaction() as connection:
            connection.executemany(
                "insert into versions (kind, name, detail) values (?, ?, '{}') on conflict do nothing",
                [(kind, name) for name in wanted],
            )
        return dict(
            self.rows(
                "select name, id from versions where kind = ? and name in (select value from json_each(?))",
                (kind, json.dumps(wanted)),
            )
        )

    def _version_id(self, kind: str, name: str | None) -> int | None:
        """Return the number of a version to look for; −1 (which none has) for an unknown one."""
        if name is None:
            return None
        rows = self.rows("select id from versions where kind = ? and name = ?", (kind, name))
        return int(rows[0][0]) if rows else -1

    def add_tasks(self, records: Iterable[TaskRecord]) -> list[str]:
        """Store tasks, all or none; return the hashes of those that are new. A task stays as it came first."""
        by_hash: dict[str, TaskRecord] = {}
        for record in records:
            by_hash.setdefault(record.spec.hash, record)
        with self.transaction() as connection:
            self._check_features()
            known = self.known(by_hash)
            new = {key: record for key, record in by_hash.items() if key not in known}
            generators = self._version_ids(
                "generator", [record.generator or record.spec.generator for record in new.values()]
            )
            for key, record in new.items():
                spec = record.spec
                world = spec.make_world()
                measured = dict(spec.difficulty)
                cursor = connection.execute(
                    _INSERT_TASK,
                    (
                        key,
                        record.skill,
                        record.status,
                        record.strategy,
                        record.generation,
                        record.time,
                        generators[record.generator or spec.generator],
                        spec.parent,
                        spec.world,
                        spec.text,
                        *(measured.get(name) for name in DIMENSIONS),
                    ),
                )
                vector = np.asarray(features(spec, world=world), np.float32)
                connection.execute(
                    "insert into task_data (task, spec, initial, vector) values (?, ?, ?, ?)",
                    (
                        cursor.lastrowid,
                        canonical_json(spec.to_data()),
                        canonical_json(listed(world.initial())),
                        packed(vector[np.newaxis])[0],
                    ),
                )
        return list(new)

    def known(self, hashes: Iterable[str]) -> set[str]:
        """Return which of these tasks are in the store."""
        return {
            key
            for (key,) in self.rows(
                "select hash from tasks where hash in (select value from json_each(?))",
                (json.dumps(list(hashes)),),
            )
        }

    def set_status(self, hashes: Iterable[str], status: str) -> int:
        """Give tasks a status (one of `STATUSES`), all or none; return how many changed. Raises `BadExperience`."""
        if status not in STATUSES:
            raise BadExperience(f"task status: got {short(status)}, allowed are {', '.join(STATUSES)}")
        keys = list(dict.fromkeys(hashes))
        with self.transaction() as connection:
            known = self.known(keys)
            for key in keys:
                if key not in known:
                    raise BadExperience(f"task {short(key)}: is not in the memory")
            return connection.execute(
                "update tasks set status = ? where status != ? and hash in (select value from json_each(?))",
                (status, status, json.dumps(keys)),
            ).rowcount

    def task(self, key: str, *, actor: str | None = None) -> TaskEntry | None:
        """Return a task by its hash, with how attempts (of an actor, if one is named) went."""
        return next(iter(self._entries("t.hash = :hash", "", {"hash": key}, actor)), None)

    def tasks(
        self,
        *,
        skill: str | None = None,
        status: str | None = None,
        strategy: str | None = None,
        actor: str | None = None,
        solved: bool | None = None,
        since: int | None = None,
        until: int | None = None,
        order: str = "new",
        limit: int = 100,
    ) -> list[TaskEntry]:
        """Return tasks, at most `limit`, with how attempts at them went.

        Args:
            skill, status, strategy: those set for this skill, of this status, chosen by this strategy.
            actor: count this actor's attempts alone.
            solved: True for those solved at least once, False for those attempted and never solved.
            since, until: those made in these generations, both included.
            order: one of `ORDERS`: `learnable` has p(1 − p) high first; `near_miss` the failed with the most
                progress, the latest first; `stale` those not attempted for longest.

        Raises `BadExperience`.
        """
        if order not in ORDERS:
            raise BadExperience(f"order of tasks: got {short(order)}, allowed are {', '.join(ORDERS)}")
        names = _OF_ALL if actor is None else _OF_ACTOR
        where, by = (text.format(**names) for text in ORDERS[order])
        tests = [where]
        tests += [
            f"t.{name} = :{name}"
            for name, value in (("skill", skill), ("status", status))
            if value is not None
        ]
        tests += ["t.strategy = :strategy"] if strategy is not None else []
        tests += ["t.generation >= :since"] if since is not None else []
        tests += ["t.generation <= :until"] if until is not None else []
        if solved is not None:
            tests.append((("{s} > 0") if solved else "{n} > 0 and {s} = 0").format(**names))
        values = {"skill": skill, "status": status, "strategy": strategy, "since": since, "until": until}
        values["limit"] = check_limit(limit)
        return self._entries(" and ".join(tests), f"order by {by}, t.id limit :limit", values, actor)

    def _entries(self, where: str, tail: str, values: dict[str, Any], actor: str | None) -> list[TaskEntry]:
        names = _OF_ALL if actor is None else _OF_ACTOR
        query = f"{_TASK.format(**names)} where {where} {tail}"
        rows = self.rows(query, {**values, "actor": self._version_id("actor", actor)})
        return [self._task_entry(row) for row in rows]

    def _task_entry(self, row: tuple[Any, ...]) -> TaskEntry:
        _, text, skill, strategy, status, generation, time, generator, *counts = row
        return TaskEntry(
            TaskRecord(self._spec(text), skill, strategy, status, generation, time, generator), *counts
        )

    def every_task(self) -> Iterator[TaskEntry]:
        """Yield all tasks, the oldest first, with how attempts at them went; few are held at a time."""
        last = 0
        while rows := self.rows(
            f"{_TASK.format(**_OF_ALL)} where t.id > ? order by t.id limit ?", (last, PAGE)
        ):
            yield from map(self._task_entry, rows)
            last = rows[-1][0]

    def _spec(self, text: str) -> TaskSpec:
        try:
            return TaskSpec.from_text(text)
        except BadTask as error:
            raise MemoryFault(f"{self.path}: a task cannot be read: {error}") from None

    def similar(self, spec: TaskSpec, *, k: int = 8) -> list[Found]:
        """Return the `k` tasks of the store that are most alike (`games.tasks.similarity`), itself included.

        The vectors are read into memory at the first call, later calls read what is new.
        """
        self._load_index()
        vector = np.asarray(features(spec), np.float32)
        nearest = self._index.nearest(vector, check_limit(k))
        hashes = dict(
            self.rows(
                "select id, hash from tasks where id in (select value from json_each(?))",
                (json.dumps([number for number, _ in nearest]),),
            )
        )
        return [Found(hashes[number], similarity) for number, similarity in nearest]

    def search(self, words: str, *, k: int = 8) -> list[Found]:
        """Return the `k` tasks whose text fits some words best: full-text search, then by vectors of the texts."""
        rows = self.rows(
            "select t.hash, t.text from tasks_fts f join tasks t on t.id = f.rowid "
            "where tasks_fts match ? order by f.rank limit ?",
            (match_query(words), max(CANDIDATES, check_limit(k))),
        )
        if not rows:
            return []
        vectors = self.embedder.embed([words, *(text for _, text in rows)])
        scores = np.clip(vectors[1:] @ vectors[0], 0, 1)
        order = np.argsort(-scores, kind="stable")[:k]
        return [Found(rows[i][0], float(scores[i])) for i in order]

    def _load_index(self) -> None:
        self._check_features()
        while True:
            rows = self.rows(
                "select task, vector from task_data where task > ? order by task limit ?",
                (self._index.last, CHUNK),
            )
            if rows:
                self._index.add(
                    [number for number, _ in rows], self._vectors_of([blob for _, blob in rows], SIZE)
                )
            if len(rows) < CHUNK:
                return

    def _vectors_of(self, blobs: Sequence[bytes], size: int) -> Vectors:
        try:
            return unpacked(blobs, size)
        except ValueError:
            raise MemoryFault(f"{self.path}: cannot read the experience store: the file is damaged") from None

    def _check_features(self) -> None:
        """Make all vectors anew where they were made by other features than those of this version."""
        if self._features_checked:
            return
        mine = ",".join(f"{value:.3f}" for value in features(seed_case()))
        if self.get("features") != mine:
            with self.transaction() as connection:
                for number, text in self.rows("select task, spec from task_data order by task"):
                    vector = np.asarray(features(self._spec(text)), np.float32)
                    connection.execute(
                        "update task_data set vector = ? where task = ?",
                        (packed(vector[np.newaxis])[0], number),
                    )
                self.put("features", mine)
            self._index = Index(SIZE)
        self._features_checked = True


_INSERT_TASK = (
    "insert into tasks (hash, skill, status, strategy, generation, time, generator, parent, world, text, "
    f"{', '.join(DIMENSIONS)}) values ({', '.join('?' * (10 + len(DIMENSIONS)))})"
)


def check_limit(limit: int) -> int:
    """Return how many are wanted. Raises `BadExperience`."""
    if type(limit) is not int or not 0 <= limit <= MAX_LIMIT:
        raise BadExperience(f"limit: got {short(limit)}, allowed are whole numbers from 0 to {MAX_LIMIT}")
    return limit


def match_query(words: str) -> str:
    """Return words as a full-text query that asks for any of them; operators and marks mean nothing in it."""
    kept = "".join(mark if mark.isalnum() else " " for mark in words).split()[:MAX_QUERY_WORDS]
    if not kept:
        raise BadExperience(f"search: got {short(words)}, at least one word is needed")
    return " OR ".join(f'"{word}"' for word in kept)
