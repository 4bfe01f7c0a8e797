"""Who attempts the tasks of `arena evolve`: the contract, simulated learners and bots.

An actor gives actions and nothing else; whether they solve the task is the judge's to say. What an actor learnt is a
fold of the attempts so far, so it is rebuilt from them after a crash and after a roll-back.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agents.bots.ladder import Rung
from agents.bots.ladder import attempt as climb
from agents.curriculum.curve import Axes
from agents.curriculum.learners import Learner
from agents.curriculum.makers import Drawn
from agents.curriculum.rows import AttemptRow
from arena.evolve_config import EvolveConfig
from arena.evolve_workers import Workers
from games.rng import derive_seed
from games.tasks.goals import HOLDS, OPEN
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec

LEARNS = ("train", "review")
"""Purposes of attempts from which an actor learns."""
MAX_SEARCH = 4_000
"""States that a planner looks at for a way back."""


@dataclass(frozen=True, slots=True)
class Job:
    """An attempt to be made."""

    number: int
    spec: TaskSpec
    skill: str
    purpose: str
    seed: int
    advice: tuple[str, ...] = ()
    """What may be told to an actor that reads, the best first."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done in an attempt; `fault` says why it ended where that was not the actor's doing."""

    actions: tuple[str, ...]
    fault: str = ""
    shown: int = 0
    """How many pieces of the advice were told: the first so many."""
    note: Mapping[str, Any] | None = None
    """Where they stood in the prompts (`agents.prompting.attempts`), so that they can be taken out again."""


class Actor(ABC):
    """Attempts tasks."""

    version: str
    """Changes whenever it may act otherwise."""
    policy: str = ""
    """The weights behind it, if any."""
    reads: bool = False
    """Whether it can be told anything: advice is for those that read."""

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
            done.append(Done(planner_actions(job, skill=0.0)))
            await asyncio.sleep(0)
        return done


class PlannerActor(Actor):
    """Follows a plan with probability `skill` at each step, does anything legal otherwise, and finds its way back."""

    def __init__(self, skill: float, *, workers: Workers | None = None) -> None:
        self.skill = skill
        self.workers = workers or Workers()
        self.version = f"planner-1 ({skill:g})"

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        return [
            Done(actions)
            for actions in await self.workers.map(partial(planner_actions, skill=self.skill), jobs)
        ]


class LadderActor(Actor):
    """A rung of the ladder of reference bots."""

    def __init__(self, rung: Rung, *, workers: Workers | None = None) -> None:
        self.rung = rung
        self.workers = workers or Workers()
        self.version = f"ladder-1 ({rung})"

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        return [
            Done(actions) for actions in await self.workers.map(partial(ladder_actions, rung=self.rung), jobs)
        ]


def ladder_actions(job: Job, *, rung: Rung) -> tuple[str, ...]:
    return climb(job.spec, rung, seed=job.seed).actions


def planner_actions(job: Job, *, skill: float) -> tuple[str, ...]:
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
