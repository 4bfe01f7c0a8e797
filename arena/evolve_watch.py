"""What the spectator's screens are told of runs of `arena evolve`, read from their files while they go on.

A run writes one transaction a generation; whoever watches reads only the generations that it does not know yet, and
works the figures out anew where there are some. Nothing is written, and the run is not asked.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes
from agents.judges.queue import FILE as QUEUE_FILE
from agents.judges.queue import PersonQueue
from agents.memory import Memory, StoredEpisode
from arena.evolution import NO_ATTEMPT
from arena.evolve import LOCK, MEMORY, RUNS
from arena.evolve_log import Entry, State, read_entries, read_state
from arena.evolve_metrics import metrics
from arena.evolve_report import METRICS
from arena.lock import held
from clients.spectator.runs import RunFolder, RunRow, RunSource, RunTold, TaskTold, TryTold

TASKS = 40
"""Tasks that are told, the latest."""
MAX_TRIES = 8
"""Attempts at one task that are told."""
MAX_EPISODES = 2_000


def is_run(path: Path) -> bool:
    """Whether a directory is that of a run."""
    return (path / MEMORY).is_file()


def run_folders(home: Path) -> list[Path]:
    """Return the directories of the runs of a home, by name."""
    return sorted(path.parent for path in (home / RUNS).glob(f"*/{MEMORY}"))


def under_way(home: Path) -> list[Path]:
    """Return those at which a process is just now."""
    return [folder for folder in run_folders(home) if held(folder, name=LOCK)]


class RunReader(RunSource):
    """A run in its directory, `HOME/runs/NAME`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self._entries: list[Entry] = []
        self._tasks: dict[int, list[TaskTold]] = {}
        self._file: int | None = None
        self._stamp: object = None
        self._figures: dict[str, Any] = {}

    async def read(self) -> RunTold:
        return await asyncio.to_thread(self._read)

    def _read(self) -> RunTold:
        with Memory(self.folder / MEMORY, create=False) as store:
            at_it = held(self.folder, name=LOCK)
            file = (self.folder / MEMORY).stat().st_ino
            if file != self._file:  # another run in the same place
                self._file, self._entries, self._tasks, self._stamp = file, [], {}, None
            state = read_state(store)
            if state is None or not state.bundles:
                return RunTold(self.name, at_it)
            self._follow(store, state)
            tasks = self._latest(store, state)
        return RunTold(self.name, at_it, self._worked_out(state), tuple(tasks))

    def _follow(self, store: Memory, state: State) -> None:
        """Read the generations that are new, and forget those that were rolled back."""
        known = 0
        for entry, generation in zip(self._entries, state.lineage, strict=False):
            if entry.generation != generation:
                break
            known += 1
        self._entries[known:] = read_entries(store, state.lineage[known:])

    def _worked_out(self, state: State) -> dict[str, Any]:
        waiting, disputed = self._queue(str(state.current.config["name"]))
        stamp = (tuple(state.lineage[-1:]), state.bundle, len(state.rollbacks), waiting, disputed)
        if stamp != self._stamp:
            self._figures = metrics(state, self._entries, waiting=waiting, disputed=disputed)
            self._stamp = stamp
        return self._figures

    def _queue(self, run: str) -> tuple[dict[str, int], list[str]]:
        path = self.folder.parent.parent / QUEUE_FILE
        if not path.is_file():
            return {"waiting": 0, "answered": 0, "disputed": 0}, []
        with PersonQueue(path) as queue:
            return queue.counts(run=run), queue.disputed_tasks()

    def _latest(self, store: Memory, state: State) -> list[TaskTold]:
        axes = Axes(CurriculumConfig.model_validate(state.current.config["curriculum"]).scales)
        found: list[TaskTold] = []
        told: dict[int, list[TaskTold]] = {}
        for entry in reversed(self._entries):
            number = entry.generation
            told[number] = self._tasks.get(number) or _tasks(store, entry, axes)
            found += told[number]
            if len(found) >= TASKS:
                break
        self._tasks = told
        why = {task: reason for entry in self._entries for task, reason in entry.quarantined.items()}
        if not why:
            return found[:TASKS]
        return [_marked(task, why.get(task.spec.hash, "")) for task in found[:TASKS]]


def _tasks(store: Memory, entry: Entry, axes: Axes) -> list[TaskTold]:
    """Return the tasks that a generation set, the last first, with the attempts at them."""
    tries: dict[str, list[StoredEpisode]] = {}
    for one in store.episodes(generation=entry.generation, newest=False, limit=MAX_EPISODES):
        tries.setdefault(one.episode.task, []).append(one)
    found = []
    for row in sorted(entry.tasks, key=lambda row: -row.number)[:TASKS]:
        held_there = tries.get(row.task, [])
        spec = held_there[0].spec if held_there else None
        if spec is None and (kept := store.task(row.task)) is not None:
            spec = kept.spec
        if spec is not None:
            found.append(
                TaskTold(
                    row.number,
                    spec,
                    generation=entry.generation,
                    skill=row.skill,
                    strategy=row.strategy,
                    purpose=row.purpose,
                    level=axes.level(row.difficulty),
                    similarity=row.similarity,
                    tries=tuple(_try(one) for one in held_there[:MAX_TRIES]),
                )
            )
    return found


def _try(one: StoredEpisode) -> TryTold:
    episode = one.episode
    return TryTold(episode.actions, episode.success, episode.feedback, fault=episode.purpose == NO_ATTEMPT)


def _marked(task: TaskTold, why: str) -> TaskTold:
    return task if task.quarantine == why else replace(task, quarantine=why)


class HomeRuns(RunFolder):
    """The runs of a home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.name = str(home)

    async def runs(self) -> list[RunRow]:
        return await asyncio.to_thread(self._runs)

    def source(self, name: str) -> RunSource:
        return RunReader(self.home / RUNS / name)

    def _runs(self) -> list[RunRow]:
        rows = [
            RunRow(folder.name, held(folder, name=LOCK), _report(folder)) for folder in run_folders(self.home)
        ]
        return sorted(rows, key=lambda row: not row.under_way)


def _report(folder: Path) -> dict[str, Any]:
    """Return the figures of a run's last report; empty where there is none that can be read."""
    try:
        found = json.loads((folder / METRICS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
