"""The Plackett-Luce model with ties, for sides whose strength is a linear function of parameters.

A ranking is a sequence of groups, the best first; the members of a group are tied. It is read as stages: at
each stage one group is chosen among the sides that are left. A set S of sides is chosen with a weight

    f(S) = δ_|S| · exp(mean of the log-strengths of S),      δ_1 = 1,

divided by the sum of f over every set that could have been chosen (Turner, van Etten, Firth, Kosmidis:
"Modelling rankings in R: the PlackettLuce package", Computational Statistics 35, 2020). With two sides this
is the model of Davidson ("On extending the Bradley-Terry model to accommodate ties in paired comparison
experiments", JASA 65, 1970), without ties that of Bradley and Terry; with many sides and no ties that of
Plackett and Luce (see Hunter: "MM algorithms for generalized Bradley-Terry models", Annals of Statistics 32,
2004). Only tie sizes that occur in the data have a δ; the others are taken as impossible.

As log f(S) is linear in the parameters, every stage is a multinomial logit: the log-likelihood is concave,
gradient and Hessian are exact, and with a Gaussian prior Newton's method finds the one maximum.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from arena.errors import RatingError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_ALTERNATIVES = 20_000
"""Sets among which one stage may choose; more would need memory without bound."""

MAX_STEPS = 200
CLOSE = 1e-7
"""A Newton step so short that taking it is the end."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """One ranking: `features` (sides, parameters) give the log-strengths, `groups` the sides, best first."""

    features: Floats
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages with equally many alternatives: features (n, m, p), the one chosen (n,), whose ranking (n,)."""

    features: Floats
    chosen: Ints
    ranking: Ints


def tie_sizes(rankings: Sequence[Ranking]) -> tuple[int, ...]:
    """Return the sizes of tied groups that occur, ascending; 1, which always may occur, is left out."""
    return tuple(sorted({len(group) for ranking in rankings for group in ranking.groups} - {1}))


def stages(rankings: Sequence[Ranking], ties: Sequence[int]) -> list[Stages]:
    """Return the stages of all rankings, batched by the number of alternatives.

    The parameters are those of the features, then one log δ for each size in `ties`. Raises `RatingError`
    where a stage has more than `MAX_ALTERNATIVES` alternatives.
    """
    batches: dict[int, tuple[list[Floats], list[int], list[int]]] = defaultdict(lambda: ([], [], []))
    for index, ranking in enumerate(rankings):
        left = list(range(len(ranking.features)))
        for group in ranking.groups:
            if len(left) < 2:
                break
            sizes = [size for size in (1, *ties) if size <= len(left)]
            count = sum(comb(len(left), size) for size in sizes)
            if count > MAX_ALTERNATIVES:
                raise RatingError(
                    f"ratings: ties of {max(sizes)} among {len(left)} sides give {count} possible outcomes, "
                    f"at most {MAX_ALTERNATIVES} can be fitted"
                )
            sets = [subset for size in sizes for subset in combinations(left, size)]
            alternatives = np.zeros((count, ranking.features.shape[1] + len(ties)))
            for row, subset in enumerate(sets):
                alternatives[row, : ranking.features.shape[1]] = ranking.features[list(subset)].mean(axis=0)
                if len(subset) > 1:
                    alternatives[row, ranking.features.shape[1] + ties.index(len(subset))] = 1.0
            features, chosen, which = batches[count]
            features.append(alternatives)
            chosen.append(sets.index(tuple(sorted(group))))
            which.append(index)
            left = [side for side in left if side not in group]
    return [
        Stages(np.stack(features), np.array(chosen, dtype=np.int64), np.array(which, dtype=np.int64))
        for _, (features, chosen, which) in sorted(batches.items())
    ]


def objective(
    parameters: Floats, batches: Sequence[Stages], weights: Floats, precision: Floats
) -> tuple[float, Floats, Floats]:
    """Return the penalised log-likelihood with its gradient (p,) and negated Hessian (p, p).

    Args:
        parameters: (p,), the point.
        batches: stages of the rankings.
        weights: (rankings,), how often each ranking occurred.
        precision: (p,), of the Gaussian prior of each parameter around zero.
    """
    value = -0.5 * float(precision @ parameters**2)
    gradient = -precision * parameters
    hessian = np.diag(precision)
    for batch in batches:
        logits = batch.features @ parameters
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        total = odds.sum(axis=1, keepdims=True)
        shares = odds / total
        weight = weights[batch.ranking]
        picks = np.arange(len(batch.chosen))
        value += float(weight @ (logits[picks, batch.chosen] - np.log(total[:, 0])))
        mean = np.einsum("nm,nmp->np", shares, batch.features)
        gradient = gradient + weight @ (batch.features[picks, batch.chosen] - mean)
        spread = (batch.features - mean[:, None, :]) * np.sqrt(shares * weight[:, None])[:, :, None]
        flat = spread.reshape(-1, spread.shape[-1])
        hessian = hessian + flat.T @ flat
    return value, gradient, hessian


def scores(parameters: Floats, batches: Sequence[Stages], *, rankings: int) -> Floats:
    """Return the gradient (rankings, p) of each ranking's own log-likelihood, the prior left out."""
    found = np.zeros((rankings, len(parameters)))
    for batch in batches:
        shares = softmax(batch.features @ parameters, axis=1)
        mean = np.einsum("nm,nmp->np", shares, batch.features)
        picked = batch.features[np.arange(len(batch.chosen)), batch.chosen]
        np.add.at(found, batch.ranking, picked - mean)
    return found


def maximise(
    batches: Sequence[Stages], weights: Floats, precision: Floats, *, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the maximum of the penalised likelihood (p,) and the inverse of its negated Hessian (p, p).

    Newton's method with step halving; the objective is strictly concave where every precision is positive.
    The second value is the covariance of Laplace's approximation.
    """
    if not len(precision):
        return np.zeros(0), np.zeros((0, 0))
    point = np.zeros(len(precision)) if start is None else start.copy()
    value, gradient, hessian = objective(point, batches, weights, precision)
    for _ in range(MAX_STEPS):
        step = cho_solve(cho_factor(hessian), gradient)
        if np.abs(step).max(initial=0.0) < CLOSE:
            # The next error is of the order of the square of this step: below rounding.
            point = point + step
            _, _, hessian = objective(point, batches, weights, precision)
            break
        scale = 1.0
        while True:
            tried = point + scale * step
            trial = objective(tried, batches, weights, precision)
            if trial[0] >= value or scale < 1e-6:
                break
            scale /= 2
        point = tried
        value, gradient, hessian = trial
    return point, cho_solve(cho_factor(hessian), np.eye(len(precision)))
