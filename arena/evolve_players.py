"""Language models that attempt tasks, and the actor that a configuration names."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agents.bots.ladder import RUNGS
from agents.curriculum.curve import Axes
from agents.errors import PolicyError
from agents.policy.agent import GenerationSettings, without_folders
from agents.policy.base import BASE, Constraint, Request
from agents.policy.batcher import Batcher
from agents.policy.service import Policies, playing
from agents.policy.settings import PolicySettings
from agents.policy.spec import is_policy, parse_spec
from agents.prompting.attempts import NUMBER as PROMPTS
from agents.prompting.attempts import AttemptPrompter
from arena.errors import EvolveError
from arena.evolve_actors import (
    Actor,
    Done,
    Job,
    LadderActor,
    PlannerActor,
    RandomActor,
    SimulatedLearner,
)
from arena.evolve_config import EvolveConfig
from arena.evolve_workers import Workers, processes_for
from games.rng import derive_seed
from games.tasks.goals import OPEN
from games.tasks.world import WAIT

LEARNER, RANDOM, PLANNER, LADDER = "learner", "random", "planner", "ladder"


def policy_name(batcher: Batcher, adapter: str) -> str:
    """Return the weights that answer: what a record names, and what a roll-back reads the adapter from."""
    return f"{batcher.engine.model}, adapter {adapter}"


def adapter_of(name: str) -> str:
    """Return the adapter of a `policy_name`; empty where there is none."""
    return name.rpartition(", adapter ")[2] if ", adapter " in name else ""


def pinned_spec(spec: str, adapter: str) -> str:
    """Return the spec that asks for one adapter version, where `spec` names a local policy and there is one."""
    word = spec.partition(":")[0]
    return f"{word}:{adapter}" if adapter and adapter != BASE and word == "policy" else spec


class PolicyActor(Actor):
    """A language model that chooses among the legal actions, step by step; many attempts at a time."""

    reads = True

    def __init__(
        self,
        batcher: Batcher,
        *,
        adapter: str = BASE,
        concurrency: int = 32,
        playing: GenerationSettings | None = None,
    ) -> None:
        self.batcher = batcher
        self.adapter = adapter
        self.playing = GenerationSettings() if playing is None else playing
        self.version = f"policy-choices-2 (attempt/{self.playing.style}/{PROMPTS})"
        self.policy = policy_name(batcher, adapter)
        self._room = asyncio.Semaphore(concurrency)

    async def attempt_all(self, jobs: Sequence[Job]) -> list[Done]:
        return list(await asyncio.gather(*(self._attempt(job) for job in jobs)))

    async def _attempt(self, job: Job) -> Done:
        engine = self.batcher.engine
        async with self._room:
            prompter = AttemptPrompter(
                job.spec,
                style=self.playing.style,
                budget_tokens=self.playing.budget(engine.context_tokens),
                count=engine.count_tokens,
                advice=job.advice,
            )
            actions, fault = await self._act(job, prompter)
        return Done(tuple(actions), fault, shown=prompter.shown, note=prompter.note())

    async def _act(self, job: Job, prompter: AttemptPrompter) -> tuple[list[str], str]:
        spec, world = job.spec, prompter.world
        state = world.initial()
        progress = spec.goal.start(world.facts(state))
        actions: list[str] = []
        while len(actions) < spec.budget and spec.goal.status(progress) == OPEN:
            legal = world.legal(state)
            if not legal:
                break
            request = Request(
                prompter.messages(state, actions),
                constraint=Constraint(choices=legal),
                temperature=self.playing.temperature,
                top_p=self.playing.top_p,
                seed=derive_seed(job.seed, "act", len(actions)),
                adapter=self.adapter,
                match=f"attempt-{job.number}",
            )
            try:
                answer = await self.batcher.submit(request)
            except PolicyError as error:
                return actions, told(error)
            action = answer.text if answer.text in legal else WAIT
            actions.append(action)
            state = world.step(state, action)
            progress = spec.goal.fold(progress, world.facts(state))
        return actions, ""


def told(error: PolicyError) -> str:
    """Return what is kept of a model's failure, in one line without folders."""
    return f"{error.code}: {without_folders(str(error))[:200]}"


def model_specs(actor: str, *others: str | None) -> list[str]:
    """Return the specs that name language models, each once: an actor's, if it is one, and others."""
    named = [actor if is_policy(actor) else None, *others]
    return [spec for spec in dict.fromkeys(named) if spec is not None]


@asynccontextmanager
async def make_actor(
    config: EvolveConfig,
    axes: Axes,
    *,
    settings: PolicySettings,
    policies: Policies,
    spec: str | None = None,
) -> AsyncIterator[Actor]:
    """Yield the actor of a configuration.

    Args:
        config: names it.
        axes: the scales of difficulty.
        settings: of language models.
        policies: with the engines of `model_specs` started.
        spec: the actor, if not quite the configuration's (`pinned_spec`).

    Raises `EvolveError` for a spec that names no actor, `PolicyError` where an adapter cannot be had.
    """
    spec = config.actor if spec is None else spec
    word, _, rest = spec.partition(":")
    workers = Workers(processes_for(config.loop.concurrency))
    try:
        if is_policy(spec):
            yield PolicyActor(
                policies.batcher(spec),
                adapter=await policies.pin(spec),
                concurrency=config.loop.concurrency,
                playing=playing(settings, parse_spec(spec)),
            )
        elif spec == LEARNER:
            yield SimulatedLearner(config, axes)
        elif spec == RANDOM:
            yield RandomActor()
        elif word == PLANNER:
            yield PlannerActor(_skill(spec, rest), workers=workers)
        elif word == LADDER:
            if rest not in RUNGS:
                raise EvolveError(f"actor: got {spec[:80]!r}, ladder takes one of {', '.join(RUNGS)}")
            yield LadderActor(RUNGS[rest], workers=workers)
        else:
            raise EvolveError(
                f"actor: got {spec[:80]!r}, allowed are learner, random, planner[:SKILL], ladder:RUNG, "
                "policy[:ADAPTER] and openai:MODEL@URL"
            )
    finally:
        workers.close()


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
