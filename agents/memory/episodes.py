"""Attempts in the experience store: written once each, with all sums in one transaction; read by query."""

import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from agents.errors import BadExperience, MemoryFault
from agents.memory.file import to_json
from agents.memory.profile import HISTORY, OVERALL, RECENT, HistoryRow, Profile, read_history, read_profile
from agents.memory.records import (
    MAX_GENERATION,
    PURPOSES,
    STATE_HASH_BYTES,
    Episode,
    StoredEpisode,
    state_hashes,
)
from agents.memory.schema import SUM_COLUMNS
from agents.memory.tasks import PAGE, Tasks, check_limit
from games.tasks.check import Replay, replay
from games.tasks.goals import short
from games.tasks.spec import DIMENSIONS

_COLUMNS = (
    "number, id, task, actor, purpose, skill, generation, success, first, advised, steps, progress, time, policy, "
    "judge, verdict, feedback, actions, states, evidence, lessons"
)
_INSERT = f"insert into episodes ({_COLUMNS}) values ({', '.join('?' * len(_COLUMNS.split(',')))})"
_SELECT = f"""
    select e.number, e.first, e.skill, d.spec, {", ".join(f"t.{name}" for name in DIMENSIONS)}, t.hash, e.id,
      e.actions, e.success, e.verdict, a.name, e.steps, p.name, j.name, e.purpose, e.generation, e.time, e.progress,
      e.feedback, e.evidence, e.states, e.lessons
    from episodes e join tasks t on t.id = e.task join task_data d on d.task = t.id
      join versions a on a.id = e.actor left join versions p on p.id = e.policy left join versions j on j.id = e.judge
"""
_ADD_TOTALS = (
    f"insert into totals (skill, actor, purpose, generation, advised, {', '.join(SUM_COLUMNS)}) "
    f"values ({', '.join('?' * (5 + len(SUM_COLUMNS)))}) on conflict do update set "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in SUM_COLUMNS)
)
_ADD_TASK_TOTALS = (
    "insert into task_totals (actor, task, episodes, successes, progress, last_generation, last_episode) "
    "values (?, ?, ?, ?, ?, ?, ?) on conflict do update set episodes = episodes + excluded.episodes, "
    "successes = successes + excluded.successes, progress = max(progress, excluded.progress), "
    "last_generation = excluded.last_generation, last_episode = excluded.last_episode"
)
_ADD_TO_TASK = (
    "update tasks set episodes = episodes + ?, successes = successes + ?, progress = max(progress, ?), "
    "last_generation = ?, last_episode = ? where id = ?"
)


class Episodes(Tasks):
    """The part of the store that knows attempts."""

    def add_episodes(self, episodes: Iterable[Episode]) -> list[str]:
        """Store attempts, all or none; return the ids of those that are new.

        An id that is in the store already changes nothing, whatever the episode says. The tasks must be in the
        store. Raises `BadExperience`, `MemoryFault`.
        """
        by_id: dict[str, Episode] = {}
        for episode in episodes:
            by_id.setdefault(episode.id, episode)
        if not by_id:
            return []
        with self.transaction() as connection:
            held = {
                row[0]
                for row in self.rows(
                    "select id from episodes where id in (select value from json_each(?))",
                    (json.dumps(list(by_id)),),
                )
            }
            new = [episode for key, episode in by_id.items() if key not in held]
            tasks = self._tasks_of(new)
            actors = self._version_ids("actor", [episode.actor for episode in new])
            policies = self._version_ids("policy", [episode.policy for episode in new if episode.policy])
            judges = self._version_ids("judge", [episode.judge for episode in new if episode.judge])
            tried = self._tried(new, actors)
            number = self.rows("select coalesce(max(number), 0) from episodes")[0][0]
            totals: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0] * len(SUM_COLUMNS))
            by_task: dict[tuple[int | None, int], list[float]] = {}
            rows = []
            for episode in new:
                number += 1
                task, skill, difficulty = tasks[episode.task]
                actor = actors[episode.actor]
                first = (actor, task) not in tried
                tried.add((actor, task))
                won, advised = int(episode.success), int(bool(episode.lessons))
                rows.append(
                    (
                        number,
                        episode.id,
                        task,
                        actor,
                        episode.purpose,
                        skill,
                        episode.generation,
                        won,
                        int(first),
                        advised,
                        episode.steps,
                        episode.progress,
                        episode.time,
                        policies.get(episode.policy),
                        judges.get(episode.judge),
                        episode.verdict,
                        episode.feedback,
                        _deflated(to_json(list(episode.actions), f"episode {episode.id}: actions")),
                        bytes.fromhex("".join(episode.states)),
                        _deflated(to_json(dict(episode.evidence), f"episode {episode.id}: evidence")),
                        to_json(list(episode.lessons), f"episode {episode.id}: lessons"),
                    )
                )
                sums = (1, won, int(first), int(first and won), episode.steps, int(bool(difficulty)))
                total = totals[skill, actor, episode.purpose, episode.generation, advised]
                for i, value in enumerate((*sums, *(difficulty or (0.0,) * len(DIMENSIONS)))):
                    total[i] += value
                for key in ((actor, task), (None, task)):
                    entry = by_task.setdefault(key, [0, 0, 0.0, 0, 0])
                    entry[0] += 1
                    entry[1] += won
                    entry[2] = entry[2] if won else max(entry[2], episode.progress)
                    entry[3:] = episode.generation, number
            self._count_lessons(new, tasks)
            connection.executemany(_INSERT, rows)
            connection.executemany(_ADD_TOTALS, [(*key, *sums) for key, sums in totals.items()])
            connection.executemany(
                _ADD_TASK_TOTALS, [(*key, *entry) for key, entry in by_task.items() if key[0] is not None]
            )
            connection.executemany(
                _ADD_TO_TASK, [(*entry, task) for (actor, task), entry in by_task.items() if actor is None]
            )
        return [episode.id for episode in new]

    def _tasks_of(self, episodes: list[Episode]) -> dict[str, tuple[int, str, tuple[float, ...]]]:
        """Return number, skill and difficulty (empty where unmeasured) of the episodes' tasks, by hash."""
        rows = self.rows(
            f"select hash, id, skill, {', '.join(DIMENSIONS)} from tasks "
            "where hash in (select value from json_each(?))",
            (json.dumps(sorted({episode.task for episode in episodes})),),
        )
        found = {
            key: (number, skill, () if None in values else tuple(values))
            for key, number, skill, *values in rows
        }
        for episode in episodes:
            if episode.task not in found:
                raise BadExperience(
                    f"episode {episode.id}: task {short(episode.task[:12])} is not in the memory; add it first"
                )
        return found

    def _tried(self, episodes: list[Episode], actors: dict[str, int]) -> set[tuple[int, int]]:
        """Return which of the actors attempted which of the tasks before."""
        return set(
            self.rows(
                "select actor, task from task_totals where actor in (select value from json_each(?)) and task in "
                "(select id from tasks where hash in (select value from json_each(?)))",
                (
                    json.dumps(sorted(actors.values())),
                    json.dumps(sorted({episode.task for episode in episodes})),
                ),
            )
        )

    def _count_lessons(
        self, episodes: list[Episode], tasks: dict[str, tuple[int, str, tuple[float, ...]]]
    ) -> None:
        """Count for each lesson that was offered how it went, and how it would have gone at the rate without advice.

        That rate is what the store knew before these episodes (with one success and one failure added).
        """
        advised = [episode for episode in episodes if episode.lessons]
        if not advised:
            return
        rates = {
            skill: (won + 1) / (count + 2)
            for skill, count, won in self.rows(
                "select skill, sum(episodes), sum(successes) from totals where advised = 0 group by skill"
            )
        }
        with self.transaction() as connection:
            for episode in advised:
                rate = rates.get(tasks[episode.task][1], 0.5)
                for lesson in dict.fromkeys(episode.lessons):
                    counted = connection.execute(
                        "update lessons set offered = offered + 1, succeeded = succeeded + ?, expected = expected + ?, "
                        "variance = variance + ?, last_used = max(last_used, ?) "
                        "where id = (select coalesce(merged_into, id) from lessons where id = ?)",
                        (int(episode.success), rate, rate * (1 - rate), episode.generation, lesson),
                    ).rowcount
                    if not counted:
                        raise BadExperience(
                            f"episode {episode.id}: lesson {short(lesson)} is not in the memory; add it first"
                        )

    def profile(
        self,
        *,
        actor: str | None = None,
        purpose: str | None = None,
        since: int | None = None,
        window: int | None = None,
    ) -> Profile:
        """Return how attempts went, by skill.

        Args:
            actor, purpose: of these attempts alone.
            since: from this generation on.
            window: only the last so many attempts of each skill.

        Raises `BadExperience`.
        """
        if purpose is not None and purpose not in PURPOSES:
            raise BadExperience(f"profile purpose: got {short(purpose)}, allowed are {', '.join(PURPOSES)}")
        for name, value, least in (("since", since, 0), ("window", window, 1)):
            if value is not None and (type(value) is not int or not least <= value <= MAX_GENERATION):
                raise BadExperience(
                    f"profile {name}: got {short(value)}, allowed are whole numbers from {least} to {MAX_GENERATION}"
                )
        values = {
            "actor": self._version_id("actor", actor),
            "purpose": purpose,
            "since": since,
            "window": window,
        }
        return read_profile(self.rows(OVERALL if window is None else RECENT, values))

    def history(self, *, actor: str | None = None) -> list[HistoryRow]:
        """Return how attempts went by generation, purpose, skill and whether they were advised, in that order."""
        return read_history(self.rows(HISTORY, {"actor": self._version_id("actor", actor)}))

    def episodes(
        self,
        *,
        task: str | None = None,
        skill: str | None = None,
        actor: str | None = None,
        purpose: str | None = None,
        success: bool | None = None,
        generation: int | None = None,
        newest: bool = True,
        limit: int = 100,
    ) -> list[StoredEpisode]:
        """Return attempts, at most `limit`, the newest first or (`newest=False`) the oldest first."""
        tests = {
            "t.hash": task,
            "e.skill": skill,
            "e.actor": self._version_id("actor", actor),
            "e.purpose": purpose,
            "e.success": None if success is None else int(success),
            "e.generation": generation,
        }
        kept = {name: value for name, value in tests.items() if value is not None}
        where = " and ".join(f"{name} = ?" for name in kept) or "1"
        order = "desc" if newest else "asc"
        rows = self.rows(
            f"{_SELECT} where {where} order by e.number {order} limit ?", (*kept.values(), check_limit(limit))
        )
        return [self._episode(row) for row in rows]

    def every_episode(self) -> Iterator[StoredEpisode]:
        """Yield all attempts, the oldest first; few are held at a time."""
        last = 0
        while rows := self.rows(f"{_SELECT} where e.number > ? order by e.number limit ?", (last, PAGE)):
            yield from map(self._episode, rows)
            last = rows[-1][0]

    def episode(self, key: str) -> StoredEpisode | None:
        """Return an attempt by its id."""
        return next((self._episode(row) for row in self.rows(f"{_SELECT} where e.id = ?", (key,))), None)

    def replayed(self, key: str) -> Replay:
        """Play an attempt again and return all of its states. Raises `BadExperience`, `MemoryFault`.

        Where the states' hashes were kept, the replay must come to the same; else the rules have changed or the
        file is damaged.
        """
        found = self.episode(key)
        if found is None:
            raise BadExperience(f"episode {short(key)}: is not in the memory")
        played = replay(found.spec, found.episode.actions)
        again = state_hashes(played.states)
        kept = found.episode.states
        if kept and kept != again:
            step = next((i for i, (a, b) in enumerate(zip(kept, again, strict=False)) if a != b), len(again))
            raise MemoryFault(
                f"episode {key}: at step {step} the replay comes to another state than was stored"
            )
        return played

    def _episode(self, row: tuple[Any, ...]) -> StoredEpisode:
        number, first, skill, spec, *rest = row
        difficulty, rest = rest[: len(DIMENSIONS)], rest[len(DIMENSIONS) :]
        task, key, actions, success, verdict, actor, steps, policy, judge, purpose, generation, *rest = rest
        time, progress, feedback, evidence, states, lessons = rest
        width = STATE_HASH_BYTES
        try:
            episode = Episode(
                id=key,
                task=task,
                actions=tuple(json.loads(zlib.decompress(actions))),
                success=bool(success),
                verdict=verdict,
                actor=actor,
                steps=steps,
                policy=policy or "",
                judge=judge or "",
                purpose=purpose,
                generation=generation,
                time=time,
                progress=progress,
                feedback=feedback,
                evidence=json.loads(zlib.decompress(evidence)),
                states=tuple(states[i : i + width].hex() for i in range(0, len(states), width)),
                lessons=tuple(json.loads(lessons)),
            )
        except (zlib.error, ValueError, TypeError, BadExperience):
            raise MemoryFault(f"{self.path}: episode {number} cannot be read: the file is damaged") from None
        measured = {} if None in difficulty else dict(zip(DIMENSIONS, difficulty, strict=True))
        return StoredEpisode(episode, self._spec(spec), skill, measured, bool(first), number)


def _deflated(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)
