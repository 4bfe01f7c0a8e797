"""Sequential probability ratio test of a match-up: is the first player stronger by `elo1` or only by `elo0`?

A. Wald's test ("Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16, 1945)
goes on while the log-likelihood ratio (LLR) of the two hypotheses stays between log(β / (1 - α)) and
log((1 - β) / α). Neither how often matches are drawn nor how the two matches of a pair go together is known,
so the ratio is the generalised one: for each hypothesis the likeliest distribution of outcomes whose mean
score is the expected one. Its use for engine testing is described by M. Van den Bergh, "The generalized
maximum likelihood ratio for the expectation value of a distribution" (2019).

Outcomes are single matches (0, ½, 1) or, better, mirrored pairs of matches on one deal by their mean score
(0, ¼, ½, ¾, 1): luck of the deal and of the side cancels within a pair, and the test ends sooner.
"""

from dataclasses import dataclass, field
from math import inf, log
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arena.errors import SprtError

Status = Literal["continue", "accept_h0", "accept_h1"]

PSEUDO_COUNT = 1e-3
"""Stands in for an outcome not seen yet, so that every mean score is possible."""

STEPS = 50
"""Bisection steps; each halves the error."""

MAX_ELO = 4000.0


def expected_score(elo: float) -> float:
    """Return the expected score, 0 … 1, of a player who is `elo` points stronger."""
    return float(1 / (1 + 10 ** (-elo / 400)))


def log_likelihood_ratio(counts: ArrayLike, *, score0: float, score1: float) -> NDArray[np.float64]:
    """Return the generalised LLR of mean score `score1` against `score0`.

    Args:
        counts: (..., k), how often each of k equally spaced scores from 0 to 1 was seen.
        score0: mean score under the first hypothesis, between 0 and 1.
        score1: mean score under the second.

    Returns an array (...); 0 where nothing was seen.
    """
    seen = np.asarray(counts, dtype=np.float64)
    filled = np.maximum(seen, PSEUDO_COUNT)
    total = filled.sum(axis=-1, keepdims=True)
    shares = filled / total
    ratio = np.log(_likeliest(shares, score1)) - np.log(_likeliest(shares, score0))
    value: NDArray[np.float64] = (filled * ratio).sum(axis=-1)
    return np.where(seen.sum(axis=-1) > 0, value, 0.0)


def _likeliest(shares: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Return the distribution with that mean under which `shares` are likeliest: share / (1 + θ (x - mean)).

    θ solves sum(share (x - mean) / (1 + θ (x - mean))) = 0, which falls from ∞ to -∞ between its poles.
    """
    off = np.linspace(0, 1, shares.shape[-1]) - mean
    low = np.full((*shares.shape[:-1], 1), -1 / off[-1])
    high = np.full((*shares.shape[:-1], 1), -1 / off[0])
    for _ in range(STEPS):
        middle = (low + high) / 2
        rising = (shares * off / (1 + middle * off)).sum(axis=-1, keepdims=True) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    found: NDArray[np.float64] = shares / (1 + (low + high) / 2 * off)
    return found


@dataclass(frozen=True, slots=True)
class SprtTest:
    """The two hypotheses in Elo and the error rates allowed: α of taking H1 wrongly, β of taking H0 wrongly."""

    elo0: float
    elo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        for name in ("elo0", "elo1"):
            value = getattr(self, name)
            if not -MAX_ELO <= value <= MAX_ELO:
                raise SprtError(f"sprt {name}: got {value:g}, allowed are {-MAX_ELO:g} to {MAX_ELO:g}")
        if self.elo0 >= self.elo1:
            raise SprtError(f"sprt: got elo0 {self.elo0:g} and elo1 {self.elo1:g}, elo0 must be the smaller")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not 0 < value < 0.5:
                raise SprtError(f"sprt {name}: got {value:g}, allowed are numbers between 0 and 0.5")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the test written `elo0,elo1,alpha,beta`. Raises `SprtError` in one line."""
        parts = text.split(",")
        if len(parts) != 4:
            raise SprtError(f"sprt: got {text[:80]!r}, expected four numbers elo0,elo1,alpha,beta")
        numbers = []
        for name, part in zip(("elo0", "elo1", "alpha", "beta"), parts, strict=True):
            try:
                numbers.append(float(part))
            except ValueError:
                raise SprtError(f"sprt {name}: got {part.strip()[:80]!r}, expected a number") from None
        return cls(*numbers)

    @property
    def lower(self) -> float:
        """The LLR at or below which H0 is taken."""
        return log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """The LLR at or above which H1 is taken."""
        return log((1 - self.beta) / self.alpha)

    def llr(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the LLR of outcome counts (..., 3) of matches or (..., 5) of mirrored pairs."""
        return log_likelihood_ratio(
            counts, score0=expected_score(self.elo0), score1=expected_score(self.elo1)
        )


@dataclass(slots=True)
class Sprt:
    """A test in progress. Outcomes must be given in an order fixed beforehand (that of the plan), not in the
    order in which matches happen to end: short matches may favour one player.

    Args:
        test: hypotheses and error rates.
        paired: whether outcomes are mirrored pairs, by their mean score, or single matches.
    """

    test: SprtTest
    paired: bool = False
    counts: list[int] = field(init=False)
    status: Status = field(init=False, default="continue")
    """Once decided it stays; outcomes that still come in are counted and change no decision."""
    llr: float = field(init=False, default=0.0)
    decided_after: int | None = field(init=False, default=None)
    """Outcomes at the decision."""

    def __post_init__(self) -> None:
        self.counts = [0] * (5 if self.paired else 3)

    @property
    def outcomes(self) -> int:
        """Outcomes so far."""
        return sum(self.counts)

    @property
    def score(self) -> float | None:
        """Mean score of the first player so far."""
        last = len(self.counts) - 1
        return sum(i * n for i, n in enumerate(self.counts)) / last / self.outcomes if self.outcomes else None

    def update(self, score: float) -> Status:
        """Count one outcome: the first player's score in a match, or its mean over a pair. Return the status.

        Raises `SprtError` for a score that is no step of the scale.
        """
        last = len(self.counts) - 1
        step = score * last
        if not -inf < step < inf or step != round(step) or not 0 <= step <= last:
            allowed = ", ".join(f"{i / last:g}" for i in range(last + 1))
            raise SprtError(f"sprt: got score {score!r}, allowed are {allowed}")
        self.counts[round(step)] += 1
        self.llr = float(self.test.llr(self.counts))
        if self.status == "continue":
            if self.llr >= self.test.upper:
                self.status = "accept_h1"
            elif self.llr <= self.test.lower:
                self.status = "accept_h0"
            if self.status != "continue":
                self.decided_after = self.outcomes
        return self.status
