"""Advantages from outcomes and step labels: ADCA, as AgentEvolver's ADCA-GRPO states it, bounded.

Source: Zhai et al., "AgentEvolver: Towards Efficient Self-Evolving Agent System" (2025), section on self-attributing.
For a group of trajectories i with outcomes R_i and step labels f_{i,t} (+1 good, -1 bad, 0 neutral; where a method
gives steps a credit instead of a label, that):

    A_i     = (R_i - mean R) / std R                              the outcome advantage, 0 where all R are equal
    mu      = mean over i of (mean over t of f_{i,t})             every trajectory weighs the same, however long
    sigma^2 = mean over i of (mean over t of (f_{i,t} - mu)^2)
    z_{i,t} = (f_{i,t} - mu) / sigma                              0 where sigma is
    P_{i,t} = alpha * z_{i,t} + discount * P_{i,t+1}              the process part; as published the discount is 1
    a_{i,t} = A_i + P_{i,t}

Standard deviations are those of the population. Three things are added here:

- Neutral steps (not labelled, or a label that could not be read) are left out of mu and sigma and get z = 0, so they
  say nothing.
- The process part is held within `bound` times the outcome advantage: |P_{i,t}| <= bound * |A_i|, so with a bound
  below 1 no label turns the sign of an outcome; where A_i is 0 there is no sign to outweigh, and |P_{i,t}| <= bound.
- Labels of later steps may count less. With a discount of 0 a step answers for its own label alone, which is less
  noisy where a label says all that is known of its step.

Worked: labels [G, B] and [B, B, G], outcomes 1 and 0, alpha 0.1 give mu = -1/6 and sigma = sqrt(35)/6, and the
advantages [1.0338, 0.9155] and [-1.0507, -0.9662, -0.8817].
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Real

import numpy as np
import numpy.typing as npt

from agents.errors import BadCredit

GOOD, NEUTRAL, BAD = 1, 0, -1

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AdcaSettings:
    """How process is weighed against outcome.

    Args:
        alpha: weight of a standardised label, in standard deviations of the outcome; 0 leaves the outcome alone.
        bound: the most that process may take from or add to an outcome advantage, as a share of it; from 1 on it may
            turn its sign.
        discount: what the labels of later steps count for a step, from one step to the next.

    Raises `BadCredit`.
    """

    alpha: float = 0.1
    bound: float = 0.5
    discount: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("bound", self.bound)):
            if not 0 <= value < math.inf:
                raise BadCredit(f"adca {name}: got {value!r}, a finite number of at least 0 is needed")
        if not 0 <= self.discount <= 1:
            raise BadCredit(f"adca discount: got {self.discount!r}, 0 to 1 is allowed")


def advantages(
    trajectories: Sequence[tuple[float, Sequence[float]]], settings: AdcaSettings | None = None
) -> list[list[float]]:
    """Return the advantage of every step of a group of trajectories.

    Args:
        trajectories: of each its outcome (any unit) and its steps' labels, 1, 0 or -1 (or credits, 0 being neutral).
        settings: alpha, bound and discount.

    Raises `BadCredit` for an outcome or a label that is not a finite number.
    """
    outcome = standardise([outcome for outcome, _ in trajectories])
    return fuse(outcome, [labels for _, labels in trajectories], settings)


def fuse(
    outcome: Sequence[float], labels: Sequence[Sequence[float]], settings: AdcaSettings | None = None
) -> list[list[float]]:
    """Return the advantage of every step where the trajectories' outcome advantages are known already.

    Args:
        outcome: the outcome advantage of each trajectory, in standard deviations, whatever its baseline.
        labels: the labels of its steps.
        settings: alpha, bound and discount.

    Raises `BadCredit` as `advantages`.
    """
    settings = settings or AdcaSettings()
    if len(outcome) != len(labels):
        raise BadCredit(f"adca: got {len(outcome)} outcomes and labels of {len(labels)} trajectories")
    fused = []
    for known, process in zip(_finite(outcome), standardise_labels(labels), strict=True):
        sums = settings.alpha * _discounted(process, settings.discount)
        limit = settings.bound * (abs(known) if known else 1.0)
        fused.append([float(value) for value in known + np.clip(sums, -limit, limit)])
    return fused


def _discounted(process: Floats, discount: float) -> Floats:
    """Return of every step its own value and those of the later ones, which count `discount` from step to step."""
    backwards = accumulate(process[::-1], lambda later, own: own + discount * later)
    return np.fromiter(backwards, np.float64, len(process))[::-1]


def standardise(outcomes: Sequence[float]) -> list[float]:
    """Return outcomes less their mean, over their standard deviation; zeros where all are equal."""
    values = _finite(outcomes)
    if len(values) == 0 or np.ptp(values) == 0:
        return [0.0] * len(values)
    largest = float(np.abs(values).max())  # so that neither squares nor sums leave the range of a float
    values = values / largest
    spread = float(values.std())
    if not spread:
        return [0.0] * len(values)
    return [float(value) for value in (values - values.mean()) / spread]


def standardise_labels(labels: Sequence[Sequence[float]]) -> list[Floats]:
    """Return the labels standardised with equal weight for every trajectory that has any; neutral ones are 0."""
    given = [_checked(one) for one in labels]
    largest = max((float(np.abs(one).max()) for one in given if len(one)), default=0.0)
    if not largest:
        return [np.zeros(len(one)) for one in given]
    given = [one / largest for one in given]
    said = [one[one != NEUTRAL] for one in given if one.any()]
    mean = float(np.mean([one.mean() for one in said]))
    spread = math.sqrt(float(np.mean([np.square(one - mean).mean() for one in said])))
    if spread < 1e-9:
        return [np.zeros(len(one)) for one in given]
    return [np.where(one == NEUTRAL, 0.0, (one - mean) / spread) for one in given]


def spread_over_tokens(steps: Sequence[float], tokens: Sequence[int]) -> list[list[float]]:
    """Return, for each step, its advantage once for each of its tokens. Raises `BadCredit`."""
    if len(steps) != len(tokens) or any(count < 0 for count in tokens):
        raise BadCredit(f"adca: got {len(steps)} steps and the token counts {str(list(tokens))[:60]}")
    return [[value] * count for value, count in zip(steps, tokens, strict=True)]


def _finite(values: Sequence[float]) -> Floats:
    for value in values:
        if not math.isfinite(value):
            raise BadCredit(f"adca outcome: got {value!r}, a finite number is needed")
    return np.asarray(values, dtype=np.float64)


def _checked(labels: Sequence[float]) -> Floats:
    for label in labels:
        if not isinstance(label, Real) or not math.isfinite(label):
            raise BadCredit(
                f"adca label: got {label!r}, needed is 1 (good), 0 (neutral), -1 (bad) or a credit"
            )
    return np.asarray(labels, dtype=np.float64)
