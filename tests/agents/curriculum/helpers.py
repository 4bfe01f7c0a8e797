"""Rows for tests of the curriculum."""

import random

from agents.curriculum.config import CurriculumConfig, Scales
from agents.curriculum.curve import Axes, expected
from agents.curriculum.generator import Generator
from agents.curriculum.makers import Maker, VectorMaker
from agents.curriculum.rows import AttemptRow, MemoryInRam, TaskRow

AXES = Axes(Scales())


def row(
    number: int,
    *,
    task: str | None = None,
    skill: str = "open",
    level: float = 3.0,
    success: bool = True,
    purpose: str = "train",
    progress: float = 0.5,
) -> AttemptRow:
    """An attempt at a task of the level, every dimension equally high."""
    name = f"t{number}" if task is None else task
    return AttemptRow(
        number, name, skill, ("navigate", skill), AXES.balanced(level), success, progress, purpose
    )


def memory_of(abilities: dict[str, float], *, attempts: int = 30, seed: int = 0) -> MemoryInRam:
    """A memory in which each skill was attempted near its ability, with the success that follows from it."""
    rng, memory, number = random.Random(seed), MemoryInRam(), 0
    for _ in range(attempts):
        for skill, own in abilities.items():
            level = min(10.0, max(0.3, own + rng.uniform(-1, 1)))
            values = AXES.spread(level, rng.random)
            success = rng.random() < expected(own, level, slope=1.0)
            name = f"task-{number}"
            memory.add_task(TaskRow(number, name, skill, (skill,), values, similarity=rng.random() * 0.6))
            memory.add_attempt(AttemptRow(number, name, skill, (skill,), values, success, rng.random()))
            number += 1
    return memory


def generator_of(
    config: CurriculumConfig | None = None, *, maker: Maker | None = None, seed: int = 0
) -> Generator:
    """A generator that draws difficulties."""
    config = CurriculumConfig() if config is None else config
    return Generator(config, VectorMaker(Axes(config.scales)) if maker is None else maker, seed=seed)
