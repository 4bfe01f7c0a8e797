"""Success changed between two stretches of attempts: did the tasks get harder, or the agent worse?

A logistic regression of success on the tasks' level, their skills and the stretch is fitted to both stretches at
once. "The agent got worse" is a fall of the stretch's own coefficient: success at equal difficulty fell. "The tasks
got harder" is a fall of what level and skills alone predict, and of success itself: where a generator follows the
agent, the tasks get harder as the agent gets better, and as long as success holds nothing is amiss. That is for success
as a whole; the agent is asked about at equal difficulty, for a generator that eases its tasks hides a fall of its
success. Each claim is tested on one side at half of `alpha` (divided by the number of `looks`, after Bonferroni), so
that both together raise a false alarm in at most `alpha` of the cases in which nothing changed; and a part that costs
less than `least` of success is never reported, however sure it is. The drop of success is
divided among the two as Kitagawa does ("Components of a difference between two rates", 1955).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.curriculum.curve import Axes
from agents.curriculum.rows import AttemptRow
from games.tasks.spec import DIMENSIONS

LEAST = 20
"""Attempts that each stretch needs."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Shift:
    """What changed from the first stretch to the second."""

    verdict: str
    """`same`, `harder` (the tasks), `worse` (the agent), `both`, or `too few` attempts to tell."""
    before: float
    """The share of success in the first stretch."""
    after: float
    by_tasks: float
    """The part of the difference that comes from the tasks; below 0 if they got harder."""
    by_agent: float
    """The part that comes from the agent; below 0 if it got worse."""
    z_tasks: float
    z_agent: float
    z_success: float
    """The same of success as a whole, given the tasks that were set."""

    def to_data(self) -> dict[str, object]:
        """Return it as JSON-compatible data."""
        return {name: getattr(self, name) for name in self.__slots__}


def compare(
    before: Sequence[AttemptRow],
    after: Sequence[AttemptRow],
    axes: Axes,
    *,
    alpha: float = 0.05,
    least: float = 0.05,
    slope: float = 1.0,
    looks: int = 1,
) -> Shift:
    """Tell what changed between two stretches of attempts; reviews and other purposes count like the rest.

    Args:
        before: the first stretch.
        after: the second one.
        axes: the scales of difficulty.
        alpha: the share of false alarms that is allowed.
        least: the fall of success that is worth telling.
        slope: what one level is thought to cost, in logits; a weak prior, for stretches without spread.
        looks: how many comparisons share `alpha`.
    """
    if min(len(before), len(after)) < LEAST:
        return Shift("too few", _share(before), _share(after), 0.0, 0.0, 0.0, 0.0, 0.0)
    rows = [*before, *after]
    skills = sorted({row.skill for row in rows})
    tasks = np.array([_features(row, axes, skills) for row in rows])
    late = np.repeat([0.0, 1.0], [len(before), len(after)])
    design = np.column_stack([tasks, late])
    won = np.array([float(row.success) for row in rows])
    prior = np.concatenate([[slope, 0.0], np.zeros(design.shape[1] - 2)])
    spread = np.concatenate(
        [[slope, 100.0], np.full(len(DIMENSIONS), 2.0), np.full(len(skills), 2.0), [100.0]]
    )
    beta, fits = _fit(design, won, prior, spread)
    _, fits_without = _fit(tasks, won, prior[:-1], spread[:-1])
    z_agent = math.copysign(math.sqrt(max(0.0, 2 * (fits - fits_without))), beta[-1])
    asked = tasks @ beta[:-1]
    early, later = asked[late == 0], asked[late == 1]
    error = np.sqrt(early.var(ddof=1) / len(early) + later.var(ddof=1) / len(later))
    z_tasks = float((later.mean() - early.mean()) / error) if error > 0 else 0.0
    by_tasks = _mean_of(later, 0.0, beta[-1]) - _mean_of(early, 0.0, beta[-1])
    by_agent = (
        _logistic(early + beta[-1]).mean()
        - _logistic(early).mean()
        + _logistic(later + beta[-1]).mean()
        - _logistic(later).mean()
    ) / 2
    odds = design @ beta
    chance = _logistic(odds) * (1 - _logistic(odds))
    noise = math.sqrt(chance[late == 0].mean() / len(before) + chance[late == 1].mean() / len(after))
    z_success = (_share(after) - _share(before)) / noise if noise else 0.0
    line = NormalDist().inv_cdf(alpha / 2 / looks)
    harder = z_tasks < line and by_tasks <= -least and z_success < line
    worse = z_agent < line and by_agent <= -least
    verdict = {(0, 0): "same", (1, 0): "harder", (0, 1): "worse", (1, 1): "both"}[int(harder), int(worse)]
    parts = (float(by_tasks), float(by_agent), z_tasks, z_agent, z_success)
    return Shift(verdict, _share(before), _share(after), *parts)


def _features(row: AttemptRow, axes: Axes, skills: Sequence[str]) -> list[float]:
    places = axes.places(row.difficulty)
    mean = sum(w * p for w, p in zip(axes.weights, places, strict=True))
    return [
        10 * mean,
        1.0,
        *(place - mean for place in places),
        *(float(row.skill == skill) for skill in skills),
    ]


def _fit(x: Floats, y: Floats, prior: Floats, spread: Floats) -> tuple[Floats, float]:
    """Fit a logistic regression with a normal prior by Newton's method; return it and its log posterior."""
    beta: Floats = prior.copy()
    precision: Floats = np.diag(spread**-2.0)
    for _ in range(30):
        p = _logistic(x @ beta)
        gradient = x.T @ (y - p) - precision @ (beta - prior)
        information = (x * (p * (1 - p))[:, None]).T @ x + precision
        change = np.linalg.solve(information, gradient)
        largest = float(np.abs(change).max())
        beta = beta + change * min(1.0, 2.0 / largest if largest else 1.0)
        if largest < 1e-6:
            break
    odds, off = x @ beta, (beta - prior) / spread
    return beta, float((y * odds - np.logaddexp(0.0, odds)).sum() - 0.5 * (off * off).sum())


def _logistic(x: Floats) -> Floats:
    found: Floats = 0.5 * (1 + np.tanh(x / 2))
    return found


def _mean_of(asked: Floats, first: float, second: float) -> float:
    return float((_logistic(asked + first).mean() + _logistic(asked + second).mean()) / 2)


def _share(rows: Sequence[AttemptRow]) -> float:
    return sum(row.success for row in rows) / len(rows) if rows else 0.0
