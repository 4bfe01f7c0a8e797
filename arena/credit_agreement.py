"""How far the methods of credit agree with Shapley values, and what each costs a match."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum, isfinite
from pathlib import Path
from typing import Any

from scipy.stats import kendalltau, spearmanr

from agents.credit.base import METHODS, Credit
from arena.credit import RANDOM, REPLAYING, CreditRequest, credit_many

SHAPLEY = "shapley"
COMPARED = {"steps": False, "least": 4, "most": 32, "error": 0.1}
"""Of replays, unless asked otherwise: enough for the values of one match to mean something."""
ALIKE = 1e-9
"""Shares closer than this are ties."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """One method beside Shapley: rank correlation within teams, averaged over teams, and its cost a match."""

    method: str
    spearman: float | None
    kendall: float | None
    teams: int
    """In which both rank the seats; where either gives all the same there is no rank to compare."""
    replays: float
    model_calls: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """All methods beside Shapley over the same records."""

    teams: int
    seats: int
    methods: tuple[Agreement, ...]
    skipped: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return {
            "teams": self.teams,
            "seats": self.seats,
            "methods": [asdict(row) for row in self.methods],
            "skipped": [{"file": path, "error": error} for path, error in self.skipped],
        }


def agreement(
    paths: Sequence[Path],
    request: Callable[[str], CreditRequest],
    *,
    methods: Sequence[str] = tuple(METHODS),
    make: Any = None,
    again: bool = False,
) -> Comparison:
    """Return how the methods rank the seats of each team, beside Shapley.

    Args:
        paths: of the records.
        request: gives the settings of a method.
        methods: which to compare.
        make: makes bots from their specs.
        again: estimate Shapley values a second time, to compare them with themselves: the most that can be reached.
    """
    asked = _replaying(request(SHAPLEY), 0)
    many = credit_many(paths, asked, make=make)
    base = {(str(path), credit.team): credit for path, credit in many.credits}
    skipped = [(str(path), str(error)) for path, error in many.skipped]
    whole = [path for path in paths if any(str(path) == known for known, _ in base)]
    rows = []
    for method in methods:
        if method == SHAPLEY and not again:
            found = base
        else:
            other = request(method)
            if method in REPLAYING:
                other = _replaying(other, 1)  # with luck of its own, or chance itself would agree
            credited = credit_many(whole, other, make=make)
            skipped += [(str(path), f"{method}: {error}") for path, error in credited.skipped]
            found = {(str(path), credit.team): credit for path, credit in credited.credits}
        rows.append(_compare(method, base, found))
    seats = sum(len(credit.seats) for credit in base.values())
    return Comparison(len(base), seats, tuple(rows), tuple(skipped))


def _replaying(asked: CreditRequest, more: int) -> CreditRequest:
    settings = {**COMPARED, **asked.settings}
    settings["seed"] = settings.get("seed", 0) + more
    return replace(asked, reference=asked.reference or RANDOM, settings=settings)


def _compare(
    method: str, base: dict[tuple[str, str], Credit], found: dict[tuple[str, str], Credit]
) -> Agreement:
    ranks: list[tuple[float, float]] = []
    for key in base.keys() & found.keys():
        pair = correlation(_shares(base[key]), _shares(found[key]))
        if pair is not None:
            ranks.append(pair)
    matches = len({path for path, _ in found}) or 1
    costs = [credit.cost for credit in found.values()]
    return Agreement(
        method,
        fsum(a for a, _ in ranks) / len(ranks) if ranks else None,
        fsum(b for _, b in ranks) / len(ranks) if ranks else None,
        len(ranks),
        sum(cost.replays for cost in costs) / matches,
        sum(cost.model_calls for cost in costs) / matches,
        fsum(cost.seconds for cost in costs) / matches,
    )


def _shares(credit: Credit) -> list[float]:
    return [seat.credit if seat.contribution is None else seat.contribution for seat in credit.seats]


def correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """Return Spearman's and Kendall's (tau-b) rank correlation, None where either side has no order."""
    if len(one) < 2 or max(one) - min(one) < ALIKE or max(other) - min(other) < ALIKE:
        return None
    a, b = ([round(value / ALIKE) for value in side] for side in (one, other))
    spearman, kendall = float(spearmanr(a, b).statistic), float(kendalltau(a, b).statistic)
    return (spearman, kendall) if isfinite(spearman) and isfinite(kendall) else None
