"""Who attempts the tasks of `arena evolve`: simulated learners, planners, language models.

An actor gives actions and nothing else; whether they solve the task is the judge's to say. What an actor learnt is a
fold of the attempts so far, so it is rebuilt from them after a crash and after a roll-back.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.bots.ladder import RUNGS, Rung
from agents.bots.ladder import attempt as climb
from agents.curriculum.curve import Axes
from agents.curriculum.learners import Learner
from agents.curriculum.makers import Drawn
from agents.curriculum.rows import AttemptRow
from agents.errors import PolicyError
from agents.policy.agent import without_folders
from agents.policy.base import BASE, Constraint, Message, Request
from agents.policy.batcher import Batcher
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.spec import is_policy
from arena.errors import EvolveError
from arena.evolve_config import EvolveConfig
from games.rng import derive_seed
from games.tasks.goals import HOLDS, OPEN
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec
from games.tasks.world import WAIT

LEARNER, RANDOM, PLANNER, LADDER = "learner", "random", "planner", "ladder"
LEARNS = ("train", "review")
"""Purposes of attempts from which an actor learns."""
MAX_SEARCH = 4_000
"""States that a planner looks at for a way back."""
SHOWN_ACTIONS = 8
"""Of its own, what a language model is shown."""


@dataclass(frozen=True, slots=True)
class Job:
    """An attempt to be made."""

    number: int
    spec: TaskSpec
    skill: str
    purpose: str
    seed: int


@dataclass(frozen=True, slots=True)
class Done:
    """What was done in an attempt; `fault` says why it ended where that was not the actor's doing."""

    actions: tuple[str, ...]
    fault: str = ""


class Actor(ABC):
    """Attempts tasks."""

    version: str
    """Changes whenever it may act otherwise."""
    policy: str = ""
    """The weights behind it, if any."""

    @abstractmethod
    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        """Return what was done in each attempt, in order. Learns from them, in order, where it learns at all."""

    def fold(self, rows: Sequence[AttemptRow]) -> None:
        """Learn from attempts that were made before, in their order. A fresh actor becomes what it was then."""
        return

    def truth(self) -> dict[str, float] | None:
        """Return the true ability by skill, in levels, where it is known."""
        return None


class SimulatedLearner(Actor):
    """Has a known ability by skill, which grows by practice (`agents.curriculum.learners`).

    Where it is to succeed it acts out a shortest plan, where it is to fail the beginning of one; so its attempts are
    real ones and are judged like any other.
    """

    def __init__(self, config: EvolveConfig, axes: Axes) -> None:
        skills = config.curriculum.skills
        nature = config.learner.nature()
        self.learner = Learner(skills, seed=derive_seed(config.seed, "learner"), axes=axes, nature=nature)
        self.version = f"learner-1 ({nature})"

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        done = []
        for job in jobs:
            drawn = Drawn.of(job.spec)
            success, progress = self.learner.attempt(drawn, job.skill, learn=job.purpose in LEARNS)
            plan = solve_task(job.spec).plan or ()
            short = plan[: max(0, min(len(plan) - 1, int(progress * len(plan))))]
            done.append(Done(plan if success else short))
            await asyncio.sleep(0)
        return done

    def fold(self, rows: Sequence[AttemptRow]) -> None:
        for row in rows:
            drawn = Drawn(row.task, row.skills, row.difficulty)
            self.learner.attempt(drawn, row.skill, learn=row.purpose in LEARNS)

    def truth(self) -> dict[str, float]:
        return dict(self.learner.ability)


class RandomActor(Actor):
    """Does anything legal."""

    version = "random-1"

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        done = []
        for job in jobs:
            done.append(Done(_walk(job, skill=0.0)))
            await asyncio.sleep(0)
        return done


class PlannerActor(Actor):
    """Follows a plan with probability `skill` at each step, does anything legal otherwise, and finds its way back."""

    def __init__(self, skill: float) -> None:
        self.skill = skill
        self.version = f"planner-1 ({skill:g})"

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        done = []
        for job in jobs:
            done.append(Done(_walk(job, skill=self.skill)))
            await asyncio.sleep(0)
        return done


class LadderActor(Actor):
    """A rung of the ladder of reference bots."""

    def __init__(self, rung: Rung) -> None:
        self.rung = rung
        self.version = f"ladder-1 ({rung})"

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        done = []
        for job in jobs:
            done.append(Done(climb(job.spec, self.rung, seed=job.seed).actions))
            await asyncio.sleep(0)
        return done


class PolicyActor(Actor):
    """A language model that chooses among the legal actions, step by step; many attempts at a time."""

    def __init__(self, batcher: Batcher, *, adapter: str = BASE, concurrency: int = 32) -> None:
        self.batcher = batcher
        self.adapter = adapter
        self.version = "policy-choices-1"
        self.policy = f"{batcher.engine.model}, adapter {adapter}"
        self._room = asyncio.Semaphore(concurrency)

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        return list(await asyncio.gather(*(self._attempt(job) for job in jobs)))

    async def _attempt(self, job: Job) -> Done:
        spec, world = job.spec, job.spec.make_world()
        state = world.initial()
        progress = spec.goal.start(world.facts(state))
        actions: list[str] = []
        async with self._room:
            while len(actions) < spec.budget and spec.goal.status(progress) == OPEN:
                legal = world.legal(state)
                if not legal:
                    break
                try:
                    action = await self._choose(job, world.render(state), legal, actions)
                except PolicyError as error:
                    return Done(tuple(actions), f"{error.code}: {without_folders(str(error))[:200]}")
                actions.append(action)
                state = world.step(state, action)
                progress = spec.goal.fold(progress, world.facts(state))
        return Done(tuple(actions))

    async def _choose(self, job: Job, seen: str, legal: tuple[str, ...], actions: list[str]) -> str:
        left = job.spec.budget - len(actions)
        lately = ", ".join(actions[-SHOWN_ACTIONS:]) or "nothing"
        text = f"{job.spec.goal.render()}\n{seen}\nSteps left: {left}. Done lately: {lately}.\nNext action?"
        request = Request(
            (Message("user", text),),
            constraint=Constraint(choices=legal),
            seed=derive_seed(job.seed, "act", len(actions)),
            adapter=self.adapter,
            match=f"attempt-{job.number}",
        )
        answer = await self.batcher.submit(request)
        return answer.text if answer.text in legal else WAIT


def _walk(job: Job, *, skill: float) -> tuple[str, ...]:
    """Return what a planner of that skill does. Depends on the job alone."""
    spec, world = job.spec, job.spec.make_world()
    rng, goal = random.Random(job.seed), spec.goal
    state = world.initial()
    progress = goal.start(world.facts(state))
    plan = list((solve_task(spec).plan if skill else None) or ())
    lost = False
    actions: list[str] = []
    while len(actions) < spec.budget and goal.status(progress) == OPEN and (legal := world.legal(state)):
        if rng.random() < skill and not lost:
            if not plan:
                plan = list(_way(spec, world, state, progress) or ())
                lost = not plan
            action = plan.pop(0) if plan else rng.choice(legal)
        else:
            action = rng.choice(legal)
            if plan and action == plan[0]:
                plan.pop(0)
            else:
                plan = []
        actions.append(action)
        state = world.step(state, action)
        progress = goal.fold(progress, world.facts(state))
    return tuple(actions)


def _way(spec: TaskSpec, world: Any, state: Any, progress: Any) -> tuple[str, ...] | None:
    """Return a shortest way from a state to the goal, by breadth-first search; None where none is near."""
    goal = spec.goal
    came: dict[Any, tuple[Any, str] | None] = {(state, progress): None}
    frontier = [(state, progress)]
    while frontier and len(came) < MAX_SEARCH:
        reached = []
        for node in frontier:
            for action in world.legal(node[0]):
                after = world.step(node[0], action)
                then = goal.fold(node[1], world.facts(after))
                status = goal.status(then)
                key = (after, then)
                if key in came or world.lost(after) is not None or status not in (OPEN, HOLDS):
                    continue
                came[key] = (node, action)
                if status == HOLDS:
                    return _traced(came, key)
                reached.append(key)
        frontier = reached
    return None


def _traced(came: dict[Any, tuple[Any, str] | None], node: Any) -> tuple[str, ...]:
    actions = []
    while (step := came[node]) is not None:
        node, action = step
        actions.append(action)
    return tuple(reversed(actions))


@asynccontextmanager
async def make_actor(
    config: EvolveConfig, axes: Axes, *, policy: PolicySettings, home: Path, pinned: str = ""
) -> AsyncIterator[Actor]:
    """Yield the actor of a configuration.

    Args:
        config: names it.
        axes: the scales of difficulty.
        policy: the settings of language models.
        home: the directory of the state, for adapters.
        pinned: the adapter version that must answer, where a run was rolled back to one; else the newest.

    Raises `EvolveError` for a spec that names no actor, `PolicyError` where a model does not start.
    """
    spec = config.actor
    word, _, rest = spec.partition(":")
    if is_policy(spec):
        policies = Policies(policy, home=home)
        asked = f"{word}:{pinned}" if pinned and word == "policy" and pinned != BASE else spec
        await policies.start([asked])
        try:
            adapter = await policies.pin(asked)
            yield PolicyActor(policies.batcher(asked), adapter=adapter, concurrency=config.loop.concurrency)
        finally:
            await policies.close()
    elif spec == LEARNER:
        yield SimulatedLearner(config, axes)
    elif spec == RANDOM:
        yield RandomActor()
    elif word == PLANNER:
        yield PlannerActor(_skill(spec, rest))
    elif word == LADDER:
        if rest not in RUNGS:
            raise EvolveError(f"actor: got {spec[:80]!r}, ladder takes one of {', '.join(RUNGS)}")
        yield LadderActor(RUNGS[rest])
    else:
        raise EvolveError(
            f"actor: got {spec[:80]!r}, allowed are learner, random, planner[:SKILL], ladder:RUNG, "
            "policy[:ADAPTER] and openai:MODEL@URL"
        )


def _skill(spec: str, rest: str) -> float:
    if not rest and ":" not in spec:
        return 1.0
    try:
        skill = float(rest)
    except ValueError:
        skill = -1.0
    if not 0 <= skill <= 1:
        raise EvolveError(f"actor: got {spec[:80]!r}, planner takes a skill from 0 to 1, as in planner:0.8")
    return skill
