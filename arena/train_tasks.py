"""Task worlds in training: which tasks are attempted, by whom with what advice, and what is learned from it.

Three mechanisms can be on or off, each by itself (`agents.training.config.TaskSettings`):

- self-questioning: tasks are set by the curriculum at the edge of ability; otherwise they are a fixed pool of random
  ones at one level;
- self-navigating: lessons distilled from past attempts are offered as advice to a share of the attempts, and taken out
  of the prompts that are learned from;
- self-attributing: the steps of an attempt are labelled by the task's own rules.

Some tasks of each skill are held out from the start: they measure, and never enter training.
"""

import asyncio
import random
import shutil
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.credit.label_rules import attempt_labels
from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes
from agents.curriculum.generator import Generator
from agents.curriculum.makers import maker_for
from agents.curriculum.rows import TaskRow
from agents.curriculum.strategies import Request as Wish
from agents.errors import BadCheckpoint, CheckpointFailed, CreditError, CurriculumError, PolicyError
from agents.memory import Episode, Memory, TaskRecord
from agents.memory.distil import distil
from agents.policy.agent import GenerationSettings
from agents.policy.base import Completion, Constraint, Request
from agents.policy.batcher import Batcher
from agents.policy.chat import ChatTokenizer
from agents.policy.tokens import PromptTokens
from agents.prompting.advice import without_advice
from agents.prompting.attempts import AttemptPrompter
from agents.training.config import TrainConfig
from agents.training.trajectories import Step, Trajectory
from arena.errors import TrainError
from arena.evolve_log import Entry, LiveMemory, note, read_entries
from arena.train_attempts import Attempts, Tried, row_of, success_of
from games.rng import derive_seed
from games.tasks.check import Attempt, check, replay
from games.tasks.goals import OPEN
from games.tasks.spec import TaskSpec

STORE = "memory.db"
PLAYER = "learner"
SEEDS = 10**9
"""More than the attempts of one kind in an evaluation can be: each kind has numbers of its own."""
TRIES = 24
"""Seeds that are tried for one task of a fixed pool."""


class TaskWorld:
    """The tasks of a run. Use it on one event loop; `close` it at the end.

    Args:
        config: of the run.
        folder: the run's: its experience store lies there.
        batcher: of the engine that plays the learner.
        playing: how it plays.
        tokenizer: of its model.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        folder: Path,
        batcher: Batcher,
        playing: GenerationSettings,
        tokenizer: ChatTokenizer,
    ) -> None:
        self.config = config
        self.tasks = config.tasks
        self.batcher = batcher
        self.playing = playing
        self._tokens = PromptTokens(tokenizer)
        self._room = asyncio.Semaphore(max(1, batcher.engine.max_batch))
        self.store = Memory(folder / STORE)
        self.live = LiveMemory(self.store)
        self.maker = maker_for(self.tasks.world)
        skills = self.tasks.skills or CurriculumConfig().skills
        self.curriculum = CurriculumConfig.from_data({"skills": list(skills)}, where="tasks")
        self.axes = Axes(self.curriculum.scales)
        self.generator = Generator(self.curriculum, self.maker, seed=config.seed)
        self.pool: list[tuple[str, str]] = []
        """The tasks that are trained on now: hash and skill, the newest last."""
        self.held_out: list[tuple[str, str]] = []
        self.solved: list[tuple[str, str]] = []
        """The tasks that training solved first: they are attempted again at every evaluation."""
        self._lineage: list[int] = []
        self._next_task = self._next_attempt = 0

    # The tasks

    async def begin(self) -> None:
        """Make the tasks that are held out, and the fixed pool where nobody sets any. Raises `CurriculumError`."""
        if self.held_out or self.pool:
            return
        tasks = self.tasks
        skills = self.curriculum.skills
        if tasks.validation:
            found = await asyncio.to_thread(self._make, "validation", tasks.validation, skills, set())
            self._add(found, status="test")
            self.held_out = [(record.spec.hash, record.skill) for record in found]
        if not tasks.has("questioning"):
            each = -(-tasks.questioning.pool // len(skills))
            barred = {key for key, _ in self.held_out}
            found = await asyncio.to_thread(self._make, "pool", each, skills, barred)
            self._add(found, status="train")
            self.pool = [(record.spec.hash, record.skill) for record in found]

    def _make(self, purpose: str, each: int, skills: Sequence[str], barred: set[str]) -> list[TaskRecord]:
        """Return `each` tasks of every skill at the level, none of them barred. Depends on the seed alone."""
        found: dict[str, TaskRecord] = {}
        for skill in skills:
            wish = Wish(skill, self.axes.balanced(self.tasks.level), purpose)
            for i in range(each):
                for again in range(TRIES):
                    seed = derive_seed(self.config.seed, purpose, skill, i, again)
                    drawn = self.maker.make(wish, seed=seed, memory=self.live)
                    if drawn is None or drawn.spec is None or drawn.hash in found or drawn.hash in barred:
                        continue
                    found[drawn.hash] = TaskRecord(drawn.spec, skill=skill, strategy=purpose)
                    break
        if not found:
            raise CurriculumError(
                f"tasks: none could be made for {', '.join(skills)} at level {self.tasks.level:g}"
            )
        return list(found.values())

    def _add(self, records: Sequence[TaskRecord], *, status: str) -> None:
        with self.store.transaction():
            self.store.add_tasks([replace(record, status=status) for record in records])

    def _propose(self, update: int) -> tuple[list[TaskRecord], list[TaskRow], list[tuple[str, str]]]:
        """Return the tasks that are set for an update: records, rows, and the pool with them."""
        tasks = self.tasks
        pool = list(self.pool)
        due = update % tasks.questioning.interval == 0 or not pool
        if not tasks.has("questioning") or not due:
            return [], [], pool
        batch = self.generator.propose(self.live, start=self._next_task, count=tasks.questioning.new)
        barred = {key for key, _ in self.held_out}
        records, rows = [], []
        for proposal in (*batch.train, *batch.test):
            spec = proposal.task.spec
            if spec is None or spec.hash in barred:
                continue
            rows.append(proposal.row())
            if proposal.purpose == "review":
                pool.append((spec.hash, proposal.skill))
                continue
            status = "test" if proposal.purpose == "test" else "train"
            records.append(
                TaskRecord(
                    spec,
                    skill=proposal.skill,
                    strategy=proposal.strategy,
                    status=status,
                    generation=update,
                    time=time.time(),
                )
            )
            if status == "train":
                pool.append((spec.hash, proposal.skill))
        return records, rows, pool[-tasks.questioning.pool :]

    # Attempts

    async def attempt(self, update: int, *, adapter: str, advice: float = 1.0) -> Attempts:
        """Attempt the tasks of an update. Nothing is remembered before `commit`.

        Args:
            update: which.
            adapter: the version that acts.
            advice: what is left of the share of attempts that get advice.
        """
        await self.begin()
        tasks = self.tasks
        found = Attempts(adapter=adapter)
        found.proposed, found.rows, pool = self._propose(update)
        specs = {record.spec.hash: record.spec for record in found.proposed}
        self.pool = pool
        chance = random.Random(derive_seed(self.config.seed, "tasks", update))
        drawn = chance.sample(pool, min(tasks.tasks, len(pool)))
        self._check(drawn)
        number = self._next_attempt
        tried: list[Tried] = []
        for key, skill in drawn:
            spec = specs.get(key) or self._spec(key)
            lessons = self._lessons(spec) if tasks.has("navigating") else []
            share = tasks.navigating.share * advice if lessons else 0.0
            for place in range(tasks.attempts):
                # As many of each task's attempts as the share has it, so that with and without are of equal tasks.
                advised = int((place + 1) * share) > int(place * share)
                one = Tried(
                    number + len(tried),
                    spec,
                    skill,
                    tuple(lesson.id for lesson in lessons) if advised else (),
                )
                tried.append(one)
        await self._all(tried, adapter=adapter)
        for one in tried:
            self._count(found, one, update)
        found.tried = tried
        return found

    def _check(self, drawn: Sequence[tuple[str, str]]) -> None:
        held = {key for key, _ in self.held_out}
        for key, _ in drawn:
            if key in held:
                raise TrainError(f"tasks: {key[:12]} is held out and must not be trained on")

    def _spec(self, key: str) -> TaskSpec:
        spec = self.live.task(key)
        if spec is None:
            raise TrainError(f"{self.store.path}: the task {key[:12]} is missing")
        return spec

    def _lessons(self, spec: TaskSpec) -> list[Any]:
        navigating = self.tasks.navigating
        return [one.lesson for one in self.store.advise(spec, k=navigating.top, floor=navigating.floor)]

    async def _all(self, tried: Sequence[Tried], *, adapter: str) -> None:
        texts = {
            entry.lesson.id: entry.lesson.text
            for entry in self.store.lessons()
            if any(one.advice for one in tried)
        }

        async def one(attempt: Tried) -> None:
            async with self._room:
                await self._one(attempt, adapter=adapter, advice=[texts[key] for key in attempt.advice])

        async with asyncio.TaskGroup() as group:
            for attempt in tried:
                group.create_task(one(attempt))
        for attempt in tried:
            verdict = check(attempt.spec, Attempt(attempt.spec.hash, tuple(attempt.actions)))
            attempt.success = verdict.success and not attempt.fault

    async def _one(self, one: Tried, *, adapter: str, advice: Sequence[str]) -> None:
        spec, engine = one.spec, self.batcher.engine
        prompter = AttemptPrompter(
            spec,
            style=self.playing.style,
            budget_tokens=self.playing.budget(engine.context_tokens),
            count=engine.count_tokens,
            advice=advice,
        )
        world, span = prompter.world, prompter.span
        one.advice = one.advice[: prompter.shown]
        state = world.initial()
        progress = spec.goal.start(world.facts(state))
        while len(one.actions) < spec.budget and spec.goal.status(progress) == OPEN:
            legal = world.legal(state)
            if not legal:
                return
            messages = prompter.messages(state, one.actions)
            constraint = Constraint(choices=tuple(legal))
            request = Request(
                messages,
                constraint=constraint,
                temperature=self.playing.temperature,
                top_p=self.playing.top_p,
                seed=derive_seed(self.config.seed, "attempt", one.number, len(one.actions)),
                adapter=adapter,
                match=f"attempt-{one.number}",
            )
            try:
                answer = await self.batcher.submit(request)
            except PolicyError as error:
                one.fault = f"{error.code}: {str(error)[:200]}"
                return
            plain = answer.prompt_ids if span is None else self._tokens.ids(without_advice(messages, span))
            one.steps.append(self._step(one, answer, constraint, plain, stripped=span is not None))
            action = answer.text if answer.text in legal else legal[0]
            one.actions.append(action)
            state = world.step(state, action)
            progress = spec.goal.fold(progress, world.facts(state))

    def _step(
        self,
        one: Tried,
        answer: Completion,
        constraint: Constraint,
        plain: tuple[int, ...],
        *,
        stripped: bool,
    ) -> Step:
        return Step(
            ply=len(one.actions),
            attempt=0,
            kind="action",
            prompt_ids=plain,
            token_ids=answer.token_ids,
            logprobs=answer.logprobs,
            constraint=constraint,
            temperature=self.playing.temperature,
            top_p=self.playing.top_p,
            stripped=stripped,
        )

    def _count(self, found: Attempts, one: Tried, update: int) -> None:
        found.made += 1
        if one.fault:
            found.faults += 1
            return
        found.won += one.success
        if one.advice:
            found.advised += 1
            found.advised_won += one.success
        else:
            found.plain += 1
            found.plain_won += one.success
        steps = tuple(step for step in one.steps if step.temperature > 0)
        found.trajectories.append(
            Trajectory(
                match=f"u{update}-t{one.number}",
                game=f"task {self.tasks.world}",
                options="",
                seats=1,
                deal=one.spec.hash[:16],
                seat=0,
                role=one.skill,
                team=PLAYER,
                player=PLAYER,
                adapter=found.adapter,
                steps=steps,
                outcome=float(one.success),
            )
        )
        found.labels.append(self._labels(one, len(steps)))

    def _labels(self, one: Tried, steps: int) -> list[int]:
        if not self.tasks.has("attributing"):
            return [0] * steps
        try:
            return attempt_labels(one.spec, one.actions)[:steps]
        except CreditError:
            return [0] * steps

    # What is remembered

    def commit(self, attempts: Attempts) -> None:
        """Remember an update's tasks and attempts, and what they teach. Not awaited: all or nothing."""
        if not attempts.made and not attempts.rows:
            return
        update = len(self._lineage)
        entry = Entry(generation=update, bundle=0, tasks=attempts.rows)
        episodes: dict[str, list[Episode]] = {}
        for one in attempts.tried:
            if one.fault:
                entry.faults.append(f"attempt {one.number}: {one.fault}")
                continue
            episode = self._episode(one, update, attempts.adapter)
            episodes.setdefault(one.spec.hash, []).append(episode)
            entry.attempts.append(row_of(one, attempts.adapter, episode.progress))
        with self.store.transaction():
            self.store.add_tasks(attempts.proposed)
            self.store.add_episodes([one for some in episodes.values() for one in some])
            if self.tasks.has("navigating"):
                skills = {one.spec.hash: (one.spec, one.skill) for one in attempts.tried}
                for key, some in episodes.items():
                    spec, skill = skills[key]
                    self.store.add_lessons(distil(spec, some, skill=skill))
            self.store.put(note(update), entry.to_data())
        if self.tasks.has("navigating"):
            self.store.retire()
            self.store.evict(keep=self.tasks.navigating.keep, generation=update)
        self._take_in(entry, {record.spec.hash: record.spec for record in attempts.proposed})
        self._lineage.append(update)
        known = {key for key, _ in self.solved}
        won = {
            one.spec.hash: one.skill
            for one in attempts.tried
            if one.success and not one.advice and one.spec.hash not in known
        }
        self.solved = [*self.solved, *won.items()][: self.tasks.retention]
        self._next_task += len(attempts.rows) and self.tasks.questioning.new
        self._next_attempt += len(attempts.tried)

    def _take_in(self, entry: Entry, specs: Mapping[str, TaskSpec]) -> None:
        for task in entry.tasks:
            self.live.add_task(task, specs.get(task.task))
        for row in entry.attempts:
            self.live.add_attempt(row)

    def _episode(self, one: Tried, update: int, adapter: str) -> Episode:
        attempt = Attempt(one.spec.hash, tuple(one.actions))
        return Episode.of(
            one.spec,
            id=f"{self.config.name}-{one.number:08d}",
            attempt=attempt,
            verdict=check(one.spec, attempt),
            played=replay(one.spec, attempt.actions),
            actor="policy",
            policy=adapter,
            generation=update,
            time=time.time(),
            lessons=one.advice,
        )

    # Measuring

    async def validate(self, update: int, *, adapter: str) -> dict[str, Any] | None:
        """Return how many attempts succeed, without advice, at the tasks held out; None where nothing measures.

        Under `retention` likewise for the tasks that training solved first, once there are any.
        """
        await self.begin()
        measured = [
            self._again(tasks, first=first)
            for tasks, first in ((self.held_out, -1), (self.solved, -1 - SEEDS))
        ]
        await self._all([one for tried in measured for one in tried], adapter=adapter)
        held, solved = map(success_of, measured)
        return held if solved is None else {**(held or {}), "retention": solved}

    def _again(self, tasks: Sequence[tuple[str, str]], *, first: int) -> list[Tried]:
        """Return attempts that measure; `first` and downwards are their numbers, and with them their seeds."""
        times = self.tasks.validation_attempts
        return [
            Tried(first - (place * times + again), self._spec(key), skill)
            for place, (key, skill) in enumerate(tasks)
            for again in range(times)
        ]

    # Checkpoints

    def state(self) -> dict[str, Any]:
        """Return what it knows beside its store, as plain data."""
        return {
            "pool": self.pool,
            "held_out": self.held_out,
            "solved": self.solved,
            "updates": len(self._lineage),
            "next_task": self._next_task,
            "next_attempt": self._next_attempt,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `state` says, with the store as it was then. Raises `BadCheckpoint`."""
        try:
            self.pool = [(key, skill) for key, skill in state["pool"]]
            self.held_out = [(key, skill) for key, skill in state["held_out"]]
            self.solved = [(key, skill) for key, skill in state.get("solved", ())]
            self._lineage = list(range(state["updates"]))
            self._next_task, self._next_attempt = state["next_task"], state["next_attempt"]
        except (KeyError, TypeError, ValueError) as error:
            raise BadCheckpoint(f"checkpoint: its tasks cannot be read: {error}") from None
        for entry in read_entries(self.store, self._lineage):
            self._take_in(entry, {})

    def save(self, folder: Path) -> None:
        """Copy the store into a checkpoint. Raises `CheckpointFailed`."""
        path = folder / STORE
        try:
            with closing(sqlite3.connect(self.store.path)) as source, closing(sqlite3.connect(path)) as copy:
                source.backup(copy)
        except (OSError, sqlite3.Error) as error:
            raise CheckpointFailed(f"{path}: cannot be written: {error}") from None

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()


def put_back(folder: Path, checkpoint: Path | None) -> None:
    """Make the store of a run what a checkpoint has, or none; call it before the store is opened."""
    for name in (STORE, f"{STORE}-wal", f"{STORE}-shm"):
        (folder / name).unlink(missing_ok=True)
    if checkpoint is not None and (checkpoint / STORE).is_file():
        shutil.copyfile(checkpoint / STORE, folder / STORE)
