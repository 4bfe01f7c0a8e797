"""Judges of decisions by name, with what they need of this machine: a model's engine, a trained judge's file."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agents.credit.label_rules import RulesLabeller
from agents.credit.labels import Labeller
from agents.errors import BadLabels
from agents.policy.settings import PolicySettings

RULES, MODEL, LEARNED = LABELS = ("rules", "model", "learned")
FOLDER = "judges"
"""Of the state's directory: trained judges, by game, and what model judges answered."""


def judge_path(home: Path, game: str) -> Path:
    """Return where the trained judge of a game lies unless it is named."""
    return home / FOLDER / f"{game}.json"


@asynccontextmanager
async def open_labeller(
    name: str,
    *,
    game: str,
    home: Path,
    settings: PolicySettings,
    spec: str = "policy",
    judge: Path | None = None,
) -> AsyncIterator[Labeller]:
    """Yield the judge called `name`; a model's engine is started for it and closed after it.

    Args:
        name: `rules`, `model` or `learned`.
        game: of the matches to be judged.
        home: the directory of the state.
        settings: how models are run.
        spec: which model: `policy[:ADAPTER]` or `openai:MODEL@URL`.
        judge: file of the trained judge; by default the home's for the game.

    Raises `BadLabels` for another name or a file that is no judge, `PolicyError` where the model does not start.
    """
    if name == RULES:
        yield RulesLabeller()
    elif name == LEARNED:
        from agents.credit.learned import LearnedJudge, LearnedLabeller

        path = judge_path(home, game) if judge is None else judge
        if judge is None and not path.exists():
            raise BadLabels(
                f"labels learned: there is no trained judge of {game} ({path}); `arena judge train` trains one"
            )
        yield LearnedLabeller(LearnedJudge.load(path))
    elif name == MODEL:
        from agents.credit.label_model import ModelLabeller
        from agents.policy.service import Policies

        policies = Policies(settings, home=home)
        await policies.start([spec])
        try:
            adapter = await policies.pin(spec)
            cache = home / FOLDER / "answers"
            yield ModelLabeller(policies.batcher(spec), adapter=adapter, cache=cache)
        finally:
            await policies.close()
    else:
        raise BadLabels(f"labels: got {name[:40]!r}, allowed are {', '.join(LABELS)}")
