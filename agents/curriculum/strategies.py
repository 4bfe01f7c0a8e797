"""The strategies: from how the skills stand to a request, which names a skill, a difficulty and perhaps a parent.

    bottleneck  a weak skill, drawn by how weak it is; a near miss of it, moved by a step towards the target
    coverage    any skill; of a few difficulties at the target the one whose combination was seen least
    curve       any skill, every dimension equally high, just above the target
    random      any skill, any difficulty at the target

The curve sets the target of them all: the level at which a skill succeeds as often as is wanted, but no more than
a step above the skill's latest tasks, and a smaller step for a skill that stays flat.

Success itself cannot tell weak skills from strong ones here, since every skill is held near the same success by
easier or harder tasks. So skills are compared by the success that is expected of each at one common level, the
mean of their abilities.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import TOP_LEVEL, Ability, Axes, Draw, ability, expected, is_flat, pick
from agents.curriculum.rows import AttemptRow, Memory, TaskRow

EASIEST = 0.3
"""Levels below are asked for by no strategy."""
CANDIDATES = 12
LATEST = 5
SAME = 0.1
"""A parent so near to the target, in levels, keeps its level: one dimension is traded for another."""


LAG_PRIOR = 10
"""Attempts for which the wish that success be on target counts."""


def logit(share: float) -> float:
    """Return the logarithm of the odds."""
    return math.log(share / (1 - share))


@dataclass(frozen=True, slots=True)
class Request:
    """What a task should be like."""

    skill: str
    difficulty: tuple[float, ...]
    strategy: str
    parent: str | None = None
    """The hash of the task to be varied."""
    moves: tuple[tuple[str, int], ...] = ()
    """Which dimensions of the parent move, each up (+1) or down (-1)."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the skills stand: of each its ability, its target level, and the success expected at the common level."""

    abilities: Mapping[str, Ability]
    targets: Mapping[str, float]
    steps: Mapping[str, float]
    expected: Mapping[str, float]
    flat: frozenset[str]

    def weakest(self) -> str:
        """Return the skill of the lowest ability."""
        return min(self.abilities, key=lambda skill: (self.abilities[skill].level, skill))


class Standings:
    """Reads standings from a memory; a skill without new attempts is not fitted again."""

    def __init__(self, config: CurriculumConfig, axes: Axes) -> None:
        self.config = config
        self.axes = axes
        self._fits: dict[str, tuple[tuple[int, int], Ability, bool, float]] = {}

    def ability(self, memory: Memory, skill: str) -> Ability:
        """Return the ability in one skill, whether or not it is trained now."""
        return self._fit(memory, skill)[0]

    def read(self, memory: Memory) -> Standing:
        """Return how the trained skills stand."""
        curve = self.config.curve
        abilities, targets, steps, flat = {}, {}, {}, set()
        lag = self._lag(memory)
        for skill in self.config.skills:
            found, is_stuck, latest = self._fit(memory, skill)
            step = curve.step * (curve.flat_factor if is_stuck else 1.0)
            wanted = found.level + lag - logit(curve.target) / curve.slope
            targets[skill] = min(TOP_LEVEL, max(EASIEST, min(wanted, latest + step)))
            abilities[skill], steps[skill] = found, step
            if is_stuck:
                flat.add(skill)
        common = sum(found.level for found in abilities.values()) / len(abilities)
        hopes = {s: expected(a.level, common, slope=curve.slope) for s, a in abilities.items()}
        return Standing(abilities, targets, steps, hopes, frozenset(flat))

    def _lag(self, memory: Memory) -> float:
        """Return how many levels the abilities run ahead of their fits, by the success at the latest tasks.

        A fit looks back, so an agent that learns is better than its fit, and succeeds more often than was aimed at.
        """
        curve = self.config.curve
        rows = [row for row in memory.attempts(limit=curve.lag_rows) if row.purpose == "train"]
        share = (sum(row.success for row in rows) + LAG_PRIOR * curve.target) / (len(rows) + LAG_PRIOR)
        return (logit(share) - logit(curve.target)) / curve.slope

    def _fit(self, memory: Memory, skill: str) -> tuple[Ability, bool, float]:
        curve = self.config.curve
        rows = memory.attempts(skill=skill, limit=max(curve.rows, curve.flat_rows))
        key = (len(rows), rows[-1].number if rows else -1)
        kept = self._fits.get(skill)
        if kept is None or kept[0] != key:
            levels = [self.axes.level(row.difficulty) for row in rows]
            successes = [row.success for row in rows]
            trained = [level for level, row in zip(levels, rows, strict=True) if row.purpose == "train"]
            latest = trained[-LATEST:]
            kept = (
                key,
                ability(levels[-curve.rows :], successes[-curve.rows :], curve),
                is_flat(levels, successes, curve),
                sum(latest) / len(latest) if latest else curve.start,
            )
            self._fits[skill] = kept
        return kept[1:]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a strategy sees: the standing, the skills that are not at their cap, the latest tasks, a source of draws."""

    config: CurriculumConfig
    axes: Axes
    standing: Standing
    memory: Memory
    open_skills: Sequence[str]
    tasks: Sequence[TaskRow]
    draw: Draw

    def any_skill(self) -> str:
        """Return one of the open skills, each as likely as the other."""
        return self.open_skills[pick([1.0] * len(self.open_skills), self.draw)]


def bottleneck(scene: Scene) -> Request:
    """A weak skill; a near miss of it, one step nearer to the target."""
    config, standing = scene.config, scene.standing
    lacks = [max(0.0, config.bottleneck.below - standing.expected[skill]) ** 2 for skill in scene.open_skills]
    skill = scene.open_skills[pick(lacks, scene.draw)]
    target, step = standing.targets[skill], standing.steps[skill]
    parent = _parent(scene, skill, target, reach=step)
    if parent is None:
        return Request(skill, scene.axes.spread(target, scene.draw), "bottleneck")
    by = max(-step, min(step, target - scene.axes.level(parent.difficulty)))
    if abs(by) < SAME:
        up, raised = scene.axes.moved(parent.difficulty, step / 2, scene.draw)
        values, lowered = scene.axes.moved(up, -step / 2, scene.draw)
        moves = raised + lowered
    else:
        values, moves = scene.axes.moved(parent.difficulty, by, scene.draw)
    return Request(skill, values, "bottleneck", parent.task, moves)


def _parent(scene: Scene, skill: str, target: float, *, reach: float) -> AttemptRow | None:
    """Return one of the near misses that lie within `reach` levels of the target, drawn by their progress."""
    rows = scene.memory.near_misses(skill, limit=scene.config.bottleneck.near_misses)
    near = [row for row in rows if abs(scene.axes.level(row.difficulty) - target) <= reach]
    return near[pick([row.progress + 0.05 for row in near], scene.draw)] if near else None


def coverage(scene: Scene) -> Request:
    """Any skill; of a few difficulties at its target the one whose combination was seen least."""
    skill, axes = scene.any_skill(), scene.axes
    counts = Counter(axes.combination(row.skill, row.difficulty) for row in scene.tasks if row.skill == skill)
    tried = [axes.spread(scene.standing.targets[skill], scene.draw) for _ in range(CANDIDATES)]
    return Request(skill, min(tried, key=lambda values: counts[axes.combination(skill, values)]), "coverage")


def curve(scene: Scene) -> Request:
    """Any skill, all dimensions equally high, a quarter of a step above its target."""
    skill = scene.any_skill()
    level = scene.standing.targets[skill] + scene.standing.steps[skill] / 4
    return Request(skill, scene.axes.balanced(level), "curve")


def random(scene: Scene) -> Request:
    """Any skill, any difficulty at its target."""
    skill = scene.any_skill()
    return Request(skill, scene.axes.spread(scene.standing.targets[skill], scene.draw), "random")


STRATEGIES: dict[str, Callable[[Scene], Request]] = {
    "bottleneck": bottleneck,
    "coverage": coverage,
    "curve": curve,
    "random": random,
}
