"""One run of self-play at work: publish, play, divide, learn, measure, keep.

An update is committed in one go after the learner has stepped: nothing is awaited between the first counter and the
last, so a run that is interrupted stands between two updates. A run that is killed goes on from its last checkpoint,
and does again what came after, alike: all that is drawn follows from the seed and the number of the update.
"""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from agents.errors import NotFinite
from agents.policy.adapters import AdapterStore
from agents.policy.service import Policies
from agents.policy.spec import POLICY
from agents.training.advantages import advantages
from agents.training.alarms import Alarm, Alarms, Signals
from agents.training.checkpoint import Checkpoints
from agents.training.config import TrainConfig
from agents.training.groups import Baselines
from agents.training.league import ITSELF, League
from agents.training.learner import Learner, UpdateStats
from agents.training.trajectories import Trajectory
from arena.config import Settings
from arena.train_attempts import Attempts
from arena.train_credit import Credits, Divided
from arena.train_evaluate import Exact, against
from arena.train_log import MetricsLog
from arena.train_rollouts import Rollouts, clear, gather, plan, play
from arena.train_state import Progress
from arena.train_tasks import TaskWorld

ROLLOUTS = "rollouts"
Report = Callable[[dict[str, Any]], None]
"""Is told every line of the metrics."""
T = TypeVar("T")


class TrainRun:
    """A run. Every part of it is made by `arena.train`, which also starts and closes them.

    Args:
        config: of the run.
        folder: the run's.
        settings: of the installation.
        policies: started, with the learner's model among them.
        learner: at the weights that `progress` is about.
        store: where versions are published.
        checkpoints: of the run.
        log: of the run.
        progress: the counters, fresh or from a checkpoint.
        league, alarms, baselines, world, credits: likewise.
        held: the versions that each kept checkpoint needs, the newest last.
        report: is told every line of the metrics.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        folder: Path,
        settings: Settings,
        policies: Policies,
        learner: Learner,
        store: AdapterStore,
        checkpoints: Checkpoints,
        log: MetricsLog,
        progress: Progress,
        league: League,
        alarms: Alarms,
        baselines: Baselines,
        world: TaskWorld | None,
        credits: Credits,
        held: Sequence[set[str]] = (),
        report: Report | None = None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.settings = settings
        self.policies = policies
        self.learner = learner
        self.store = store
        self.checkpoints = checkpoints
        self.log = log
        self.progress = progress
        self.league = league
        self.alarms = alarms
        self.baselines = baselines
        self.world = world
        self.credits = credits
        self._report = report or (lambda line: None)
        self._since = time.monotonic()
        self._dirty = True
        self._interrupted = False
        self._held = deque(held or [self._needed()], maxlen=max(1, config.checkpoints))
        """The versions that the kept checkpoints name: a run that is killed goes on from one of them."""

    async def run(self) -> str:
        """Train until the budget is spent or an alarm ends it; return which. The run is then saved.

        Raises what the parts raise; what was finished is saved first, where the disk allows it.
        """
        if self.progress.update == 0:
            self.save()
        try:
            if self.progress.evaluated < 0:
                await self._measure()
            while (stopped := self._spent()) is None:
                found = await self.step()
                if any(alarm.action == "stop" for alarm in found):
                    stopped = "alarm"
                    break
                if self._due():
                    await self._measure()
                if self.progress.update % self.config.checkpoint_every == 0:
                    self.save()
            if stopped != "alarm":
                await self._version()
                await self._measure()
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._stop("interrupted")
            raise
        except BaseException as error:
            with suppress(Exception):  # what went wrong first is what is told
                self._stop(f"error: {type(error).__name__}: {error}"[:300])
            raise
        self._stop(stopped)
        return stopped

    async def step(self) -> list[Alarm]:
        """Do one update, and return the alarms that it raised."""
        began = time.monotonic()
        progress, config = self.progress, self.config
        busy = self._busy()
        spec = await self._version()
        published = time.monotonic()
        records = self.folder / ROLLOUTS / f"{progress.update:06d}"
        rollouts = await self._play(spec, records)
        attempts = await self._attempt()
        played = time.monotonic()
        trajectories = [*rollouts.trajectories, *attempts.trajectories]
        divided = await self.credits.divide(rollouts, attempts)
        step = self.alarms.step * config.schedule.factor(progress.update, updates=config.budget.updates)
        stats, steps = await self._learn(trajectories, divided, lr=config.learner.lr * step)
        self._since, since = time.monotonic(), self._since
        # From here on nothing is awaited: the update is committed.
        progress.seconds += self._since - since
        if config.rollout.keep_records != "all":
            clear(records if config.rollout.keep_records == "none" else self._before(records))
        self._count(rollouts, attempts, trajectories)
        signals = _signals(trajectories, steps, stats, attempts, divided)
        alarms = self.alarms.look(signals)
        if self.world is not None:
            self.world.commit(attempts)
        line = {
            "seconds": progress.seconds,
            "matches": progress.matches,
            "tokens": progress.tokens,
            "version": progress.version,
            **_summary(trajectories, rollouts, attempts),
            "league": {one.spec: one.share for one in self.league.members if one.spec != ITSELF},
            "learner": {} if stats is None else stats.to_data(),
            "judge": divided.cost(),
            "step": step,
            "time": {
                "all": self._since - began,
                "publish": published - began,
                "rollout": played - published,
                "sampler_busy": self._busy() - busy,
                "learn": self._since - played,
            },
        }
        self._write("update", line)
        for alarm in alarms:
            self._write("alarm", alarm.to_data())
        self._check_interrupted()
        return alarms

    async def _play(self, spec: str, records: Path) -> Rollouts:
        planned = plan(
            self.config, update=self.progress.update, spec=spec, league=self.league, folder=records
        )
        if not planned:
            return Rollouts()
        await asyncio.to_thread(records.mkdir, parents=True, exist_ok=True)
        reports = await play(
            planned,
            policies=self.policies,
            match=self.settings.match,
            concurrency=self.settings.policy.concurrency,
        )
        return await asyncio.to_thread(gather, planned, reports, max_failed=self.config.rollout.max_failed)

    async def _attempt(self) -> Attempts:
        if self.world is None:
            return Attempts()
        return await self.world.attempt(
            self.progress.update, adapter=self.progress.version, advice=self.alarms.advice
        )

    async def _learn(
        self, trajectories: Sequence[Trajectory], divided: Divided, *, lr: float
    ) -> tuple[UpdateStats | None, list[list[float]]]:
        """Return what the update came to, None where its numbers were not finite, and the advantages."""
        filled = [one for one in trajectories if one.steps]
        if not filled:
            return None, []
        try:
            steps = advantages(
                trajectories,
                settings=self.config.advantage,
                outcomes=divided.outcomes,
                labels=divided.labels,
                process=divided.process,
                baselines=self.baselines,
            )
            return await self._whole(lambda: self.learner.update(trajectories, steps, lr=lr)), steps
        except NotFinite:
            return None, [[float("nan")]]

    def _count(self, rollouts: Rollouts, attempts: Attempts, trajectories: Sequence[Trajectory]) -> None:
        progress = self.progress
        progress.update += 1
        progress.matches += rollouts.matches
        progress.failed += sum(rollouts.failed.values())
        progress.attempts += attempts.made
        progress.tokens += sum(one.tokens for one in trajectories)
        self.league.fade()
        for spec, points in rollouts.points.items():
            self.league.note(spec, points=points, matches=rollouts.met[spec])
        if progress.update % self.config.league.snapshot_every == 0 and progress.version:
            self.league.take_in(f"{POLICY}:{progress.version}", update=progress.update)
        progress.parent, progress.version = progress.version, ""

    async def _version(self) -> str:
        """Return the learner's spec, its weights of now published."""
        progress = self.progress
        if not progress.version:
            adapter = await self._whole(
                lambda: self.learner.publish(self.store, self.config.name, parent=progress.parent)
            )
            progress.version = adapter.ref
            progress.published.append(adapter.ref)
            self._tidy()
        return await self._pinned(progress.version)

    async def _averaged(self) -> str:
        """Publish the averaged weights of now, and return the spec: what is measured, and left at the end."""
        progress = self.progress
        adapter = await self._whole(
            lambda: self.learner.publish(self.store, self.config.name, parent=progress.version, averaged=True)
        )
        progress.measured = adapter.ref
        progress.published.append(adapter.ref)
        self._tidy()
        return await self._pinned(adapter.ref)

    async def _pinned(self, ref: str) -> str:
        """Return the spec of a version, which the engine then knows."""
        self._check_interrupted()
        spec = f"{POLICY}:{ref}"
        await self.policies.pin(spec)
        return spec

    def _tidy(self) -> None:
        """Delete the versions of this run that nothing needs any more."""
        progress = self.progress
        needed = self._needed().union(*self._held)
        kept = [ref for ref in progress.published if ref in needed or not self.store.discard(ref)]
        progress.published = [ref for ref in kept if self.store.holds(ref)]

    def _needed(self) -> set[str]:
        return needed(self.progress, self.league)

    def _due(self) -> bool:
        every = self.config.evaluation.every
        return bool(every) and self.progress.update % every == 0

    async def _measure(self) -> None:
        """Measure the learner, unless these weights were measured already."""
        progress, config = self.progress, self.config
        wanted = config.evaluation.opponents or config.evaluation.nash_conv or self.world is not None
        if progress.evaluated == progress.update or not wanted:
            return
        spec = await self._version()
        if config.learner.average:
            spec = await self._averaged()
        line: dict[str, Any] = {"version": spec.partition(":")[2]}
        if config.evaluation.opponents:
            results = await against(
                config,
                spec=spec,
                update=progress.update,
                policies=self.policies,
                match=self.settings.match,
                concurrency=self.settings.policy.concurrency,
            )
            line["against"] = [one.to_data() for one in results]
        if config.evaluation.nash_conv:
            exact = Exact(config, learner=self.learner, policies=self.policies, spec=spec)
            line["nash_conv"] = await self._whole(exact.nash_conv)
            if config.learner.average:
                line["nash_conv_of_latest"] = await self._whole(lambda: exact.nash_conv(latest=True))
        if self.world is not None:
            line["tasks"] = await self.world.validate(progress.update, adapter=line["version"])
        progress.evaluated = progress.update
        self._tick()
        line["seconds"] = progress.seconds
        self._write("evaluation", line)
        self._check_interrupted()

    def save(self) -> None:
        """Write a checkpoint. Raises `CheckpointFailed`; the last one is then still there."""
        self._tick()
        progress = self.progress
        if not self._dirty:
            return
        progress.metrics_bytes = self.log.size
        facts = {
            "progress": progress.to_data(),
            "league": self.league.state(),
            "alarms": self.alarms.state(),
            "baselines": self.baselines.state(),
            "tasks": None if self.world is None else self.world.state(),
        }
        self.checkpoints.save(progress.update, self._write_state, facts)
        self._held.append(self._needed())
        self._dirty = False

    def _write_state(self, folder: Path) -> None:
        self.learner.save_state(folder)
        if self.world is not None:
            self.world.save(folder)

    def _stop(self, why: str) -> None:
        """Note the end, and save what was finished."""
        self._write("stop", {"why": why, "seconds": self.progress.seconds})
        self.save()

    def _write(self, kind: str, values: dict[str, Any]) -> None:
        self._dirty = True
        self._report(self.log.write(kind, self.progress.update, values))

    def _spent(self) -> str | None:
        self._tick()
        return self.progress.spent(self.config)

    def _tick(self) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._since
        self._since = now

    def _busy(self) -> float:
        """Return for how long the learner's engine has computed, in seconds; 0 where it does not tell."""
        return self.policies.facts().get(POLICY, {}).get("engine_busy_s", 0.0)

    @staticmethod
    def _before(records: Path) -> Path:
        return records.with_name(f"{int(records.name) - 1:06d}")

    async def _whole(self, work: Callable[[], T]) -> T:
        """Do blocking work on a thread to its end, also where the run is interrupted meanwhile."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._interrupted = True
            await asyncio.wait([task])
            return task.result()

    def _check_interrupted(self) -> None:
        if self._interrupted:
            raise asyncio.CancelledError


def needed(progress: Progress, league: League) -> set[str]:
    """Return the versions that a run needs which stands there."""
    past = {one.spec.partition(":")[2] for one in league.past}
    return past | {progress.version, progress.parent, progress.measured}


def _signals(
    trajectories: Sequence[Trajectory],
    steps: Sequence[Sequence[float]],
    stats: UpdateStats | None,
    attempts: Attempts,
    divided: Divided,
) -> Signals:
    outcomes = [one.outcome for one in trajectories]
    finite = all(value == value for row in steps for value in row)
    return Signals(
        trajectories=len(trajectories),
        outcome_low=min(outcomes, default=0.0),
        outcome_high=max(outcomes, default=0.0),
        flat=finite and not any(value for row in steps for value in row),
        kl=None if stats is None else stats.values.get("drift"),
        finite=finite,
        answers=sum(_answers(one) for one in trajectories),
        failures=sum(one.failures for one in trajectories),
        advised=attempts.advised,
        advised_won=attempts.advised_won,
        plain=attempts.plain,
        plain_won=attempts.plain_won,
        judge_tokens=divided.prompt_tokens + divided.completion_tokens,
        learner_tokens=sum(
            len(step.prompt_ids) + len(step.token_ids) for one in trajectories for step in one.steps
        ),
    )


def _answers(one: Trajectory) -> int:
    """Return how often a seat was asked, as far as its trajectory tells."""
    return max(len({(step.ply, step.attempt) for step in one.steps}), one.failures)


def _summary(trajectories: Sequence[Trajectory], rollouts: Rollouts, attempts: Attempts) -> dict[str, Any]:
    """Return what an update's trajectories came to, for the metrics."""
    count = len(trajectories)
    by_role: dict[str, list[float]] = defaultdict(list)
    causes: Counter[str] = Counter()
    for one in trajectories:
        by_role[f"{one.game} {one.role}"].append(one.outcome)
        causes.update(one.causes)
    answers = sum(_answers(one) for one in trajectories)
    return {
        "trajectories": count,
        "return": _mean([one.outcome for one in trajectories]),
        "success": _mean([float(one.outcome > 0) for one in trajectories]),
        "length": _mean([float(len(one.steps)) for one in trajectories]),
        "failures": sum(one.failures for one in trajectories) / answers if answers else None,
        "by_role": {role: _mean(values) for role, values in sorted(by_role.items())},
        "causes": dict(sorted(causes.items())),
        "failed": dict(sorted(rollouts.failed.items())),
        "met": dict(sorted(rollouts.met.items())),
        **attempts.summary(),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
