"""The loop that never runs out of tasks: memory → generate → act → judge → memory.

Everything that happens follows from the configuration, its seed and what the store holds; so a run that is killed,
whenever that is, goes on as if it had not been.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.curriculum.curve import Axes
from agents.curriculum.makers import maker_for
from agents.judges.evaluator import Evaluator
from agents.judges.queue import FILE as QUEUE_FILE
from agents.judges.queue import PersonQueue
from agents.memory import Memory
from agents.policy.service import Policies, playing
from agents.policy.settings import PolicySettings
from agents.policy.spec import parse_spec
from arena.errors import EvolveError
from arena.evolution import Evolution
from arena.evolve_config import EvolveConfig
from arena.evolve_lessons import restore
from arena.evolve_log import (
    Entry,
    State,
    read_entries,
    read_state,
    roll_back,
)
from arena.evolve_players import adapter_of, make_actor, model_specs, pinned_spec
from arena.evolve_proposer import Proposer
from arena.evolve_report import write_report
from arena.judge_model import model_judge
from arena.lock import hold

RUNS = "runs"
MEMORY = "memory.db"
LOCK = "lock"
"""Held by the process that is at a run."""

Progress = Callable[[State, Entry], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call of `evolve` came to."""

    folder: Path
    metrics: dict[str, Any]
    stopped_by: str
    """`tasks`, `seconds`, `alert`, or `rollback`."""


async def evolve(
    config: EvolveConfig,
    *,
    home: Path,
    policy: PolicySettings,
    resume: bool = False,
    adopt: bool = False,
    rollback: int | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run the loop until the budget is spent, or roll a run back.

    Args:
        config: of the run; its name is that of its folder below `home`/runs.
        home: the directory of the state.
        policy: the settings of language models.
        resume: go on with the run of that name, where there is one.
        adopt: go on with this configuration though the run was made with another one, or was rolled back.
        rollback: a generation; what came after is put out of force, and nothing is run.
        progress: is called after each generation.

    Raises `EvolveError` and the errors of whatever takes part, each in one line.
    """
    folder = home / RUNS / config.name
    taken = EvolveError(f"{folder}: another process runs it")
    with hold(
        folder,
        name=LOCK,
        mode=0o644,
        taken=taken,
        unusable=lambda error: EvolveError(f"{folder}: cannot be used: {error.strerror or error}"),
    ):
        with Memory(folder / MEMORY) as store, PersonQueue(home / QUEUE_FILE) as queue:
            state = read_state(store)
            if rollback is not None:
                if state is None:
                    raise EvolveError(f"{folder}: has no run to roll back")
                with store.transaction():
                    restore(store, read_entries(store, [n for n in state.lineage if n > rollback]))
                    roll_back(store, state, generation=rollback)
                metrics = write_report(folder, state, read_entries(store, state.lineage), queue=queue)
                return Outcome(folder, metrics, "rollback")
            state, config = _agreed(config, state, folder=folder, resume=resume, adopt=adopt)
            return await _run(config, store, state, queue, home=home, policy=policy, progress=progress)


def _agreed(
    config: EvolveConfig, state: State | None, *, folder: Path, resume: bool, adopt: bool
) -> tuple[State, EvolveConfig]:
    """Return the state to go on from and the configuration to go on with. Raises `EvolveError`."""
    if state is None:
        return State(), config
    if state.lineage and not resume:
        raise EvolveError(
            f"{folder}: has a run of {len(state.lineage)} generations; --resume goes on with it, "
            "or give the new one another name"
        )
    if adopt or not state.bundles:
        state.pinned = False
        return state, config
    bundle = state.current
    if state.pinned:
        old = EvolveConfig.model_validate({**bundle.config, "budget": config.budget.model_dump()})
        return state, old
    if bundle.digest != config.digest:
        raise EvolveError(
            f"{folder}: was made with the configuration {bundle.digest[:12]}, this one is {config.digest[:12]}; "
            "--adopt goes on with this one"
        )
    return state, config


async def _run(
    config: EvolveConfig,
    store: Memory,
    state: State,
    queue: PersonQueue,
    *,
    home: Path,
    policy: PolicySettings,
    progress: Progress | None,
) -> Outcome:
    folder = store.path.parent
    axes = Axes(config.curriculum.scales)
    maker = maker_for(config.world)
    acting, proposing = config.actor, config.proposer.spec if config.proposer.share else None
    if state.pinned:
        acting = pinned_spec(acting, adapter_of(state.current.policy))
        proposing = proposing and pinned_spec(proposing, adapter_of(state.current.proposer))
    async with AsyncExitStack() as stack:
        policies = Policies(policy, home=home)
        stack.push_async_callback(policies.close)
        await policies.start(model_specs(acting, proposing, config.judge.model))
        model = await stack.enter_async_context(
            model_judge(
                config.judge.model,
                settings=policy,
                home=home,
                mode=config.judge.mode,
                timeout_s=config.judge.timeout_s,
                policies=policies,
            )
        )
        actor = await stack.enter_async_context(
            make_actor(config, axes, settings=policy, policies=policies, spec=acting)
        )
        proposer = None
        if proposing is not None:
            proposer = Proposer(
                policies.batcher(proposing),
                settings=config.proposer,
                world=config.world,
                axes=axes,
                seed=config.seed,
                maker=maker,
                adapter=await policies.pin(proposing),
                playing=playing(policy, parse_spec(proposing)),
            )
        loop = Evolution(
            config,
            store=store,
            state=state,
            queue=queue,
            evaluator=Evaluator(config.judge.settings(config.seed), model=model),
            actor=actor,
            maker=maker,
            proposer=proposer,
        )
        await loop.begin()
        stopped, reported = loop.spent(), time.monotonic()
        try:
            while stopped is None:
                entry = await loop.step()
                if progress is not None:
                    progress(state, entry)
                stopped = loop.spent()
                if entry.alerts and config.stop_on_alert:
                    stopped = "alert"
                if time.monotonic() - reported >= config.loop.report_every_s:
                    write_report(folder, state, loop.entries, queue=queue)
                    reported = time.monotonic()
                await asyncio.sleep(0)
        finally:
            metrics = write_report(folder, state, loop.entries, queue=queue)
    return Outcome(folder, metrics, stopped or "seconds")
