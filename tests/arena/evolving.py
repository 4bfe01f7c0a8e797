"""What the tests of the loop share: small configurations, runs, and what a run left behind."""

import asyncio
from pathlib import Path
from typing import Any

from agents.memory import Memory
from agents.policy.settings import PolicySettings
from arena.evolve import MEMORY, RUNS, Outcome, evolve
from arena.evolve_config import EvolveConfig
from arena.evolve_log import Entry, State, read_entries, read_state

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 3,
    "budget": {"tasks": 24},
    "loop": {"tasks": 6},
    "probe": {"every": 2, "levels": [2.0]},
}


def small(**changes: Any) -> EvolveConfig:
    """Return a small configuration with changes."""
    return EvolveConfig.from_data({**SMALL, **changes}, where="test")


def run(config: EvolveConfig, home: Path, **rest: Any) -> Outcome:
    """Run the loop."""
    return asyncio.run(evolve(config, home=home, policy=PolicySettings(), **rest))


def left(home: Path, name: str = "small") -> tuple[State, list[Entry]]:
    """Return the state and the log of a run."""
    with Memory(home / RUNS / name / MEMORY, create=False) as store:
        assert store.check() == []
        state = read_state(store)
        assert state is not None
        return state, read_entries(store, state.lineage)


def told(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return logs as data, times apart."""
    return [{**entry.to_data(), "seconds": 0} for entry in entries]


def episodes(home: Path, name: str = "small") -> list[tuple[str, str, tuple[str, ...], bool]]:
    """Return every episode of a run: id, task, actions, success."""
    with Memory(home / RUNS / name / MEMORY, create=False) as store:
        found = store.episodes(newest=False, limit=100_000)
    return [(one.episode.id, one.episode.task, one.episode.actions, one.episode.success) for one in found]
