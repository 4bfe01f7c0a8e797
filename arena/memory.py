"""What the command line tells of an experience store: figures, finds, every record as data, what a person may review.

A store is `memory.db` of a run of `arena evolve`, or any file that `agents.memory.Memory` wrote. Attempts of
generations that were rolled back are in the store like all others and count in its figures.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents.memory import LessonEntry, Memory, Profile, SkillProfile, StoredEpisode, TaskEntry
from arena.errors import EvolveError
from arena.evolve import LOCK, MEMORY, RUNS
from arena.evolve_log import read_entries, read_state
from arena.evolve_watch import is_run, run_folders
from arena.lock import hold
from games.errors import BadOption
from games.tasks.spec import TaskSpec

ROLLED_BACK = "its generation was rolled back"


def find_store(home: Path, store: str | None) -> Path:
    """Return the file of a store.

    Args:
        home: the directory of the state.
        store: the name of a run, its directory, or a store's file; None is the only run of `home`.

    Raises `EvolveError` where there is none, or where several could be meant.
    """
    if store is None:
        found = run_folders(home)
        if len(found) == 1:
            return found[0] / MEMORY
        names = ", ".join(folder.name for folder in found)
        raise EvolveError(
            f"{home}: has {len(found)} runs, --run says which: {names}"
            if found
            else f"{home}: has no run; `arena evolve` makes one, or --run names a store"
        )
    for path in (home / RUNS / store, Path(store)):
        if is_run(path):
            return path / MEMORY
        if path.is_file():
            return path
    names = ", ".join(folder.name for folder in run_folders(home)) or "none"
    raise EvolveError(f"run: got {store[:80]!r}, which is no store; the runs of {home} are: {names}")


def stats(
    store: Memory,
    *,
    actor: str | None = None,
    purpose: str | None = None,
    since: int | None = None,
    window: int | None = None,
    check: bool = False,
) -> tuple[dict[str, Any], Profile]:
    """Return what is in a store, as data, and the profile by skill (as in `Memory.profile`).

    With `check` all of it is read, and `problems` says what is wrong.
    """
    profile = store.profile(actor=actor, purpose=purpose, since=since, window=window)
    found: dict[str, Any] = {
        "store": str(store.path),
        "bytes": store.path.stat().st_size,
        "counts": store.counts(),
        **store.statuses(),
        "profile": [_row(row) for row in profile.rows],
        "versions": [{"kind": one.kind, "name": one.name, "parent": one.parent} for one in store.versions()],
    }
    if check:
        found["problems"] = store.check()
    return found, profile


def _row(row: SkillProfile) -> dict[str, Any]:
    return {**row._asdict(), "success": row.success}


def search(store: Memory, words: str, *, limit: int) -> dict[str, Any]:
    """Return the tasks and the lessons that fit some words best. Raises `BadExperience`."""
    return {
        "tasks": _found(store, store.search(words, k=limit)),
        "lessons": [lesson_data(entry) for entry in store.search_lessons(words, k=limit)],
    }


def alike(store: Memory, spec: TaskSpec, *, limit: int) -> dict[str, Any]:
    """Return the tasks that are most like one, and the lessons that would be offered for it."""
    advice = store.advise(spec, k=limit)
    lessons = [(store.lesson(one.lesson.id), one.similarity) for one in advice]
    return {
        "tasks": _found(store, store.similar(spec, k=limit)),
        "lessons": [
            {**lesson_data(entry), "similarity": similarity}
            for entry, similarity in lessons
            if entry is not None
        ],
    }


def _found(store: Memory, found: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    entries = [(store.task(key), similarity) for key, similarity in found]
    return [
        {**task_data(entry), "similarity": similarity} for entry, similarity in entries if entry is not None
    ]


def export(store: Memory, what: str) -> Iterator[dict[str, Any]]:
    """Yield every record of a sort: `attempts`, `tasks`, `lessons` or `versions`, the oldest first.

    Attempts and tasks are lines that `arena tasks check|solve|show` read; what the store knows beside stands
    under `memory`.
    """
    match what:
        case "attempts":
            yield from map(attempt_data, store.every_episode())
        case "tasks":
            yield from map(task_data, store.every_task())
        case "lessons":
            yield from map(lesson_data, store.lessons(status=None))
        case "versions":
            yield from ({**dataclasses.asdict(one), "detail": dict(one.detail)} for one in store.versions())
        case _:
            raise BadOption(f"what: got {what[:40]!r}, allowed are attempts, tasks, lessons, versions")


def attempt_data(one: StoredEpisode) -> dict[str, Any]:
    """Return an attempt as data: the task, what was done, and under `memory` everything that is kept of it."""
    kept = {field.name: getattr(one.episode, field.name) for field in dataclasses.fields(one.episode)}
    for name in ("task", "actions"):
        del kept[name]
    kept |= {"evidence": dict(one.episode.evidence), "states": list(one.episode.states)}
    kept |= {"lessons": list(one.episode.lessons), "number": one.number, "first": one.first}
    return {
        "task": one.episode.task,
        "spec": one.spec.to_data(),
        "actions": list(one.episode.actions),
        "memory": {**kept, "skill": one.skill, "difficulty": one.difficulty},
    }


def task_data(entry: TaskEntry) -> dict[str, Any]:
    """Return a task as data, with how attempts at it went under `memory`."""
    record = entry.record
    return {
        "task": entry.hash,
        "text": record.spec.text,
        "spec": record.spec.to_data(),
        "memory": {
            "skill": record.skill,
            "strategy": record.strategy,
            "status": record.status,
            "generation": record.generation,
            "time": record.time,
            "generator": record.generator,
            "attempts": entry.episodes,
            "successes": entry.successes,
            "progress": entry.progress,
            "last_generation": entry.last_generation,
        },
    }


def lesson_data(entry: LessonEntry) -> dict[str, Any]:
    """Return a lesson as data, with how those fared to whom it was offered."""
    lesson = dataclasses.asdict(entry.lesson)
    fared = {name: value for name, value in entry._asdict().items() if name != "lesson"}
    return {**lesson, "sources": list(entry.lesson.sources), **fared, "worth": entry.worth}


def review(store: Memory, *, limit: int) -> dict[str, Any]:
    """Return what a person may look at.

    `lessons` that are in force, those of least worth first; tasks in `quarantine`, with the reason where one is
    known; and the solved tasks that have `rested` longest, from which review packs are drawn.
    """
    lessons = sorted(store.lessons(), key=lambda entry: entry.worth)[:limit]
    held = store.tasks(status="quarantine", limit=limit)
    reasons = _reasons(store)
    rested = store.tasks(status="train", solved=True, order="stale", limit=limit)
    return {
        "lessons": [lesson_data(entry) for entry in lessons],
        "quarantine": [{**task_data(entry), "reason": reasons.get(entry.hash, "")} for entry in held],
        "rested": [task_data(entry) for entry in rested],
    }


def _reasons(store: Memory) -> dict[str, str]:
    state = read_state(store)
    if state is None:
        return {}
    entries = read_entries(store, range(state.next_generation))
    dropped = {n for n in range(state.next_generation) if n not in set(state.lineage)}
    gone = {row.task for entry in entries if entry.generation in dropped for row in entry.tasks}
    return dict.fromkeys(gone, ROLLED_BACK) | {
        task: why for entry in entries for task, why in entry.quarantined.items()
    }


def set_lessons(store: Memory, changes: Mapping[str, str]) -> list[LessonEntry]:
    """Put lessons into force or out of it, all or none, and return them.

    Args:
        store: it belongs to no run that goes on (see `at_rest`).
        changes: the new status (`active` or `retired`) by id, of which the beginning will do.

    Raises `BadOption` for an id that fits none or several, and for another status.
    """
    ids = [entry.lesson.id for entry in store.lessons(status=None)]
    state = read_state(store)
    generation = 0 if state is None else state.next_generation
    meant: dict[str, str] = {}
    for name, status in changes.items():
        if status not in ("active", "retired"):
            raise BadOption(f"lesson {name[:40]}: got {status[:40]!r}, allowed are active and retired")
        fits = [key for key in ids if key == name] or [key for key in ids if key.startswith(name)]
        if len(fits) != 1:
            many = f"{len(fits)} lessons begin with it" if fits else "the store has none"
            raise BadOption(f"lesson: got {name[:40]!r}, {many}")
        meant[fits[0]] = status
    with store.transaction():
        for key, status in meant.items():
            store.set_lesson_status([key], status, generation=generation if status == "active" else 0)
    return [entry for entry in map(store.lesson, meant) if entry is not None]


@contextmanager
def at_rest(path: Path) -> Iterator[None]:
    """Hold the run whose store this is, so that it does not go on meanwhile. Raises `EvolveError`."""
    folder = path.parent
    with hold(
        folder,
        name=LOCK,
        mode=0o644,
        taken=EvolveError(f"{folder}: another process runs it; wait for its end, or interrupt it"),
        unusable=lambda error: EvolveError(f"{folder}: cannot be used: {error.strerror or error}"),
    ):
        yield
