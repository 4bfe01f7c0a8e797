"""What the tests of `arena train` share: small configurations, runs, and what a run left behind."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.training.config import TrainConfig
from arena.config import Settings
from arena.train import RUNS, Trained, train
from arena.train_file import from_data
from arena.train_log import read_metrics

DEALS = [0, 1, 3, 6, 10, 12]
"""Seeds of the six deals of Kuhn poker."""

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "budget": {"updates": 4},
    "start": {"weights": "fresh", "hidden": 32, "layers": 1},
    "games": [{"game": "kuhn"}],
    "rollout": {"deals": 6, "plays": 4, "seeds": DEALS},
    "advantage": {"scale": "none"},
    "learner": {"weights": "all", "lr": 0.003, "threads": 1},
    "evaluation": {"every": 0, "nash_conv": True},
    "checkpoint_every": 2,
    "tensorboard": False,
}

TIMES = ("seconds", "time", "created")


def small(**changes: Any) -> TrainConfig:
    """Return a small configuration; sections that are changed are merged with the small one's."""
    merged = dict(SMALL)
    for key, value in changes.items():
        own = merged.get(key)
        merged[key] = {**own, **value} if isinstance(own, dict) and isinstance(value, dict) else value
    return from_data(merged, where="test")


def settings(home: Path, **policy: Any) -> Settings:
    """Return the settings of an installation at `home`, with one thread."""
    return Settings(home=home, policy={"threads": 1, "device": "cpu", **policy})


def run(config: TrainConfig, home: Path, **rest: Any) -> Trained:
    """Run the loop."""
    return asyncio.run(train(config, settings=settings(home), **rest))


def lines(home: Path, *kinds: str, name: str = "small") -> list[dict[str, Any]]:
    """Return the lines of a run's metrics, times and the numbers of versions apart."""
    return [plain(line) for line in read_metrics(home / RUNS / name) if not kinds or line["kind"] in kinds]


def plain(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line without what depends on clocks and on how often a run was begun."""
    kept = {key: value for key, value in line.items() if key not in (*TIMES, "version")}
    if kept.get("learner"):
        kept["learner"] = {key: value for key, value in kept["learner"].items() if key != "seconds"}
    return kept


def assert_alike(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Assert that two runs did the same; what is computed in batches of other shapes may differ by rounding."""
    assert len(rows) == len(others)
    for one, other in zip(rows, others, strict=True):
        _alike(one, other, f"{one.get('kind')} {one.get('update')}")


def _alike(one: Any, other: Any, where: str) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key, value in one.items():
            _alike(value, other[key], f"{where} {key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for place, value in enumerate(one):
            _alike(value, other[place], f"{where} {place}")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4), where
    else:
        assert one == other, where
