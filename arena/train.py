"""`arena train`: a run is set up, or taken up again, and everything is closed at its end."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.curriculum.config import CurriculumConfig
from agents.errors import BadCheckpoint, PlayerError
from agents.policy.adapters import FOLDER, AdapterStore, check_base
from agents.policy.chat import ChatTokenizer
from agents.policy.presets import find_model
from agents.policy.service import MODELS_FOLDER, Policies, playing
from agents.policy.spec import POLICY, is_policy, parse_spec
from agents.training.alarms import Alarms
from agents.training.checkpoint import Checkpoint, Checkpoints
from agents.training.config import TrainConfig
from agents.training.fresh import make_fresh
from agents.training.groups import Baselines
from agents.training.league import League
from agents.training.learner import Learner
from arena.config import Settings
from arena.errors import TrainError
from arena.lock import hold
from arena.train_credit import Credits
from arena.train_log import MetricsLog, read_metrics
from arena.train_rollouts import plays
from arena.train_run import Report, TrainRun, needed
from arena.train_state import RUN_FILE, Progress, read_run, write_run
from arena.train_tasks import TaskWorld, put_back
from games.registry import load_game

RUNS = "runs"
CHECKPOINTS = "checkpoints"
FRESH = "model"
"""Of a run's folder: the fresh model that it began with."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a call of `train` came to.

    Args:
        folder: the run's.
        stopped_by: the bound that was reached, or `alarm`.
        progress: the counters.
        version: the adapter version of the last weights, `model` the model that it belongs to.
        lines: of the metrics.
    """

    folder: Path
    stopped_by: str
    progress: Progress
    version: str
    model: str
    lines: list[dict[str, Any]]


async def train(
    config: TrainConfig,
    *,
    settings: Settings,
    resume: bool = False,
    adopt: bool = False,
    report: Report | None = None,
) -> Trained:
    """Train until the budget is spent.

    Args:
        config: of the run; its name is that of its folder below HOME/runs, and of its adapter versions.
        settings: of the installation.
        resume: go on with the run of that name.
        adopt: go on with this configuration though the run was made with another one.
        report: is told every line of the metrics.

    Raises `TrainError` and the errors of whatever takes part, each in one line.
    """
    folder = settings.home / RUNS / config.name
    _check(config, settings)
    with hold(
        folder,
        name="lock",
        mode=0o644,
        taken=TrainError(f"{folder}: another process runs it"),
        unusable=lambda error: TrainError(f"{folder}: cannot be used: {error.strerror or error}"),
    ):
        checkpoints = Checkpoints(folder / CHECKPOINTS, keep=config.checkpoints)
        _agree(config, folder, resume=resume, adopt=adopt)
        found = checkpoints.newest() if resume else None
        if found is None and resume and len(checkpoints):
            raise BadCheckpoint(f"{checkpoints.root}: no checkpoint is whole: give the new run another name")
        async with AsyncExitStack() as stack:
            run = await _set_up(
                config,
                settings,
                folder=folder,
                checkpoints=checkpoints,
                found=found,
                stack=stack,
                report=report,
            )
            stopped = await run.run()
            return Trained(
                folder,
                stopped,
                run.progress,
                run.progress.measured or run.progress.version or run.progress.parent,
                run.policies.settings.model,
                read_metrics(folder),
            )


def _check(config: TrainConfig, settings: Settings) -> None:
    """Raise for what cannot be, before anything is written or loaded."""
    if settings.policy.backend == "openai":
        raise TrainError("policy.backend: got openai, but only a model on this machine can be trained")
    if settings.policy.backend == "vllm" and config.learner.weights == "all":
        raise TrainError(
            'learner.weights: got "all", but vllm plays LoRA adapters alone: weights = "lora", or '
            "policy.backend = transformers"
        )
    if config.tasks.tasks and config.tasks.skills:
        CurriculumConfig.from_data({"skills": list(config.tasks.skills)}, where="tasks")
    shared = False
    for game in config.games:
        rules = load_game(game.game)
        teams = rules.new(seed=0, seats=game.seats or rules.default_seats, options=game.options).teams()
        shared = shared or len(set(teams)) < len(teams)
    for where, mates in (("league", config.league.mates), ("evaluation", config.evaluation.mates)):
        if mates is not None and not shared:
            raise TrainError(
                f"{where}.mates: got {mates!r}, but no side of the run's games has a second seat"
            )
    store = AdapterStore(settings.home / FOLDER)
    for where, spec in _named(config):
        try:
            at = [plays(spec, game.game) for game in config.games]
        except PlayerError as error:
            raise TrainError(f"{where}: {error}") from None
        if is_policy(spec) and (adapter := parse_spec(spec).adapter):
            store.resolve(adapter)
        if where.startswith("credit") or where.endswith("mates"):
            if at and not all(at):
                game = config.games[at.index(False)]
                raise TrainError(f"{where}: {spec!r} does not play {game.game}")
        elif at and not any(at):
            raise TrainError(f"{where}: {spec!r} plays none of the run's games")


def _named(config: TrainConfig) -> Iterator[tuple[str, str]]:
    """Yield the players that a configuration names, each with where it does."""
    for where, specs in (("league", config.league.opponents), ("evaluation", config.evaluation.opponents)):
        yield from ((f"{where}.opponents", spec) for spec in specs)
    for where, mates in (("league", config.league.mates), ("evaluation", config.evaluation.mates)):
        if mates is not None:
            yield f"{where}.mates", mates
    if config.credit.method == "shapley":
        yield "credit.reference", config.credit.reference
        if config.credit.stand_in is not None:
            yield "credit.stand_in", config.credit.stand_in


def _agree(config: TrainConfig, folder: Path, *, resume: bool, adopt: bool) -> None:
    """Raise `TrainError` unless a run in `folder` may be begun, or gone on with, as it was asked for."""
    if not (folder / RUN_FILE).exists():
        return
    told = read_run(folder)
    if not resume:
        raise TrainError(
            f"{folder}: has a run already; --resume goes on with it, or give the new one another name"
        )
    if told["digest"] != config.digest and not adopt:
        raise TrainError(
            f"{folder}: was made with the configuration {str(told['digest'])[:12]}, this one is "
            f"{config.digest[:12]}; --adopt goes on with this one"
        )


async def _set_up(
    config: TrainConfig,
    settings: Settings,
    *,
    folder: Path,
    checkpoints: Checkpoints,
    found: Checkpoint | None,
    stack: AsyncExitStack,
    report: Report | None,
) -> TrainRun:
    """Make the parts of a run, at their beginning or as a checkpoint has them."""
    home = settings.home
    store = AdapterStore(home / FOLDER)
    model = await asyncio.to_thread(find_model, settings.policy.model, cache=home / MODELS_FOLDER)
    policy = settings.policy
    if config.start.weights == "fresh":
        start = config.start
        model = await asyncio.to_thread(
            make_fresh,
            folder / FRESH,
            tokenizer=model,
            seed=config.seed,
            hidden=start.hidden,
            layers=start.layers,
        )
        policy = policy.model_copy(update={"model": str(model)})
    begun = None
    if config.start.adapter is not None:
        begun = await asyncio.to_thread(store.resolve, config.start.adapter)
    learner = await asyncio.to_thread(
        Learner,
        model,
        settings=config.learner,
        seed=config.seed,
        adapter=None if begun is None else begun.path,
    )
    if begun is not None:
        check_base(begun, model=learner.base)
    progress = Progress(parent="" if begun is None else begun.ref)
    league, alarms = League(config.league), Alarms(config.alarms)
    baselines = Baselines(config.advantage.momentum)
    if found is not None:
        await asyncio.to_thread(learner.load_state, found.path)
        try:
            progress = Progress.of(found.facts["progress"])
            league.restore(found.facts["league"])
            alarms.restore(found.facts["alarms"])
            baselines.load(found.facts["baselines"])
        except KeyError as error:
            raise BadCheckpoint(f"{found.path}: has no {error}: begin a new run") from None
        _retire_later(store, config.name, progress)
        _forget_missing(store, progress, league)
    held = await asyncio.to_thread(_held, config, checkpoints)
    log = MetricsLog(folder, tensorboard=config.tensorboard)
    stack.callback(log.close)
    log.cut(progress.metrics_bytes)
    write_run(folder, config, model=learner.base)
    policies = Policies(policy, home=home)
    await policies.start(_specs(config))
    stack.push_async_callback(policies.close)
    credits = await stack.enter_async_context(Credits.open(config, policies=policies, settings=settings))
    world = None
    if config.tasks.tasks:
        put_back(folder, None if found is None else found.path)
        world = TaskWorld(
            config,
            folder=folder,
            batcher=policies.batcher(POLICY),
            playing=playing(policy, parse_spec(POLICY)),
            tokenizer=ChatTokenizer(model),
        )
        stack.callback(world.close)
        if found is not None and found.facts["tasks"] is not None:
            world.restore(found.facts["tasks"])
    log.write(
        "start" if found is None else "resume",
        progress.update,
        {"model": learner.base, "digest": config.digest, "parameters": _parameters(learner)},
    )
    return TrainRun(
        config,
        folder=folder,
        settings=settings,
        policies=policies,
        learner=learner,
        store=store,
        checkpoints=checkpoints,
        log=log,
        progress=progress,
        league=league,
        alarms=alarms,
        baselines=baselines,
        world=world,
        credits=credits,
        held=held,
        report=report,
    )


def _held(config: TrainConfig, checkpoints: Checkpoints) -> list[set[str]]:
    """Return the versions that each whole checkpoint needs, the newest last: a run may yet go on from any of them."""
    found = []
    # From a checkpoint of another version nothing goes on, nor from those before it.
    with suppress(KeyError, BadCheckpoint):
        for one in checkpoints.whole():
            league = League(config.league)
            league.restore(one.facts["league"])
            found.append(needed(Progress.of(one.facts["progress"]), league))
    return found[::-1]


def _specs(config: TrainConfig) -> Sequence[str]:
    """Return the specs of the models that must run: the learner's, and those of opponents."""
    others = {spec for _, spec in _named(config) if is_policy(spec)}
    return [POLICY, *sorted(others - {POLICY})]


def _retire_later(store: AdapterStore, name: str, progress: Progress) -> None:
    """Take versions that a killed process published after its checkpoint from those that matches get."""
    known = max((int(ref.rpartition("@")[2]) for ref in progress.published), default=0)
    for one in store.all():
        if one.name == name and one.version > known and not one.problem:
            if not one.retired:
                store.retire(one.ref)
            progress.published.append(one.ref)


def _forget_missing(store: AdapterStore, progress: Progress, league: League) -> None:
    """Let go of versions whose files are gone; the weights of now are in the checkpoint, and published again."""
    if not store.holds(progress.version):
        progress.version = ""
    if not store.holds(progress.measured):
        progress.measured = ""
    league.past = [one for one in league.past if store.holds(one.spec.partition(":")[2])]


def _parameters(learner: Learner) -> int:
    """Return how many numbers are trained."""
    return sum(int(one.numel()) for one in learner.model.trained.values())
