"""Simulated learners whose skill is known, so that what the loop claims can be checked against the truth.

A learner has an ability per skill, in levels. A task's chance of success follows a logistic curve of ability over
hardness; its hardness weighs the dimensions in the learner's own way, which the generator does not know. Practice at
the edge of ability raises it (most where the chance is one half), and a skill left alone for long falls back
towards where it began. Everything is drawn from the learner's seed.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agents.curriculum.curve import Axes, sigmoid
from agents.curriculum.makers import Drawn

FOCUS = 0.75
"""What the skill that a task aims at counts in its chance, the rest going to the other skills that it takes."""


@dataclass(frozen=True, slots=True)
class Nature:
    """How a learner learns and forgets. Levels are those of `agents.curriculum.curve`."""

    start: float = 1.5
    """Ability at the beginning."""
    start_spread: float = 0.5
    slope: float = 1.2
    """Logits of success that one level costs."""
    gain: float = 0.04
    """Levels gained by one attempt whose chance is one half; 4·p·(1-p) of it at chance p."""
    edge: bool = True
    """False: every attempt gains alike, whatever its chance (a learner for whom no curriculum can matter)."""
    taste: float = 0.4
    """How differently it weighs the dimensions: the standard deviation of the logarithm of a weight."""
    talent: float = 0.5
    """How differently it learns its skills: the standard deviation of the logarithm of a skill's gain."""
    grace: int = 30
    """Attempts for which a skill may rest without loss."""
    forget: float = 0.004
    """The share of what was gained that is lost with every attempt after that."""
    refresh: float = 3.0
    """A task at most so many levels below the ability counts as practice against forgetting."""
    top: float = 8.5


class Learner:
    """A learner of the given skills."""

    def __init__(self, skills: Sequence[str], *, seed: int, axes: Axes, nature: Nature | None = None) -> None:
        nature = Nature() if nature is None else nature
        rng = random.Random(seed)
        self.nature = nature
        self.axes = axes
        self.base = {skill: nature.start + rng.gauss(0, nature.start_spread) for skill in skills}
        self.ability = dict(self.base)
        self.talent = {skill: rng.lognormvariate(-(nature.talent**2) / 2, nature.talent) for skill in skills}
        self.weights: dict[str, list[float]] = {}
        for skill in skills:
            drawn = [weight * rng.lognormvariate(0, nature.taste) for weight in axes.weights]
            self.weights[skill] = [weight / sum(drawn) for weight in drawn]
        self._idle = dict.fromkeys(skills, 0)
        self._rng = random.Random(rng.getrandbits(62))

    def hardness(self, task: Drawn, skill: str) -> float:
        """Return the task's level as this learner feels it."""
        places = self.axes.places(task.difficulty)
        return 10 * sum(w * place for w, place in zip(self.weights[skill], places, strict=True))

    def chance(self, task: Drawn, skill: str) -> float:
        """Return the true chance that it succeeds at a task that aims at `skill`."""
        others = [self.ability[other] for other in task.skills if other != skill and other in self.ability]
        own = self.ability[skill]
        if others:
            own = FOCUS * own + (1 - FOCUS) * sum(others) / len(others)
        return sigmoid(self.nature.slope * (own - self.hardness(task, skill)))

    def attempt(self, task: Drawn, skill: str, *, learn: bool = True) -> tuple[bool, float]:
        """Attempt a task: return whether it succeeded and how far it came (1 if it did); learn and forget."""
        chance = self.chance(task, skill)
        success = self._rng.random() < chance
        progress = 1.0 if success else min(0.95, chance * (0.5 + self._rng.random()))
        if learn:
            self._practise(task, skill, chance)
        return success, progress

    def _practise(self, task: Drawn, skill: str, chance: float) -> None:
        nature = self.nature
        gain = nature.gain * (4 * chance * (1 - chance) if nature.edge else 1.0)
        others = [other for other in task.skills if other != skill and other in self.ability]
        self._raise(skill, gain)
        for other in others:
            self._raise(other, gain * (1 - FOCUS) / len(others))
        for one in self.ability:
            self._idle[one] += 1
            if self._idle[one] > nature.grace:
                lost = nature.forget * (self.ability[one] - self.base[one])
                self.ability[one] -= max(0.0, lost)
        if self.hardness(task, skill) >= self.ability[skill] - nature.refresh:
            self._idle[skill] = 0

    def _raise(self, skill: str, gain: float) -> None:
        self.ability[skill] = min(self.nature.top, self.ability[skill] + gain * self.talent[skill])
