"""A small judge of decisions, learned from counterfactual credit: how likely did this decision help its side?

Replaying a decision many times says what it added, at the price of many matches. A logistic regression over plain
facts of a decision (what was asked, who did it to whom, what the world says of it) says about the same for nothing.
It is trained on the decisions whose contribution is not 0: their sign is what is to be told, and one that added more
counts more, since a small difference of a few replays is mostly luck. It is tried on matches that it was not trained
on. What is kept is a file of JSON with its hash and where it came from.
"""

import hashlib
import json
import math
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from agents.credit.adca import BAD, GOOD, NEUTRAL
from agents.credit.base import Credit
from agents.credit.label_rules import knows, label_by_rules
from agents.credit.labels import SeatLabels, StepLabel, check_seats, free
from agents.credit.line import Line, Taken, read_line
from agents.errors import BadCredit, BadLabels
from games.registry import load_game
from games.tasks.spec import canonical_json
from replays.record import Record

FORMAT = 1
MAX_BYTES = 4 * 2**20
FOLDS = 5
BOOTSTRAPS = 1000
MIN_EXAMPLES = 40
DEFAULT_MARGIN = 0.1
_COUNTERS = ("quest", "attempt", "day", "round", "leg")
"""Attributes of states that say how far a match has come."""

Floats = npt.NDArray[np.float64]


class Example(NamedTuple):
    """A decision to learn from: its features, what it added to its team's result, and the match it was made in."""

    features: dict[str, float]
    added: float
    match: str

    @property
    def helped(self) -> bool:
        """Whether it added anything."""
        return self.added > 0


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How the judge did on matches that it was not trained on, over `FOLDS` folds of the matches.

    `low` and `high` are the 95 % interval of the accuracy over matches drawn anew; `majority` is the accuracy of
    always naming what is more frequent. `lift` is how much more decisions added that it takes for good than those that
    it takes for bad, in the unit of the result: an accuracy suffers from the luck in single replays, a lift does not.
    """

    accuracy: float
    low: float
    high: float
    majority: float
    lift: float
    lift_low: float
    lift_high: float
    examples: int
    matches: int


@dataclass(frozen=True, slots=True)
class LearnedJudge:
    """A trained judge.

    Args:
        game, rules: of the matches that it knows.
        weights: by feature; `bias` beside them.
        margin: how far from one half a probability must be to be a label.
        held_out: how it did.
        provenance: where it came from, as JSON-compatible data.
    """

    game: str
    rules: str
    weights: Mapping[str, float]
    bias: float
    margin: float
    held_out: HeldOut
    provenance: Mapping[str, Any]

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability that a decision with these features helped."""
        total = self.bias + sum(self.weights.get(name, 0.0) * value for name, value in features.items())
        return 1 / (1 + math.exp(-max(min(total, 500.0), -500.0)))

    def value(self, features: Mapping[str, float]) -> int:
        """Return the label of a decision with these features."""
        share = self.probability(features) - 0.5
        return GOOD if share > self.margin else BAD if share < -self.margin else NEUTRAL

    @property
    def hash(self) -> str:
        """Identity of everything in it."""
        return hashlib.sha256(canonical_json(self._body()).encode("ascii")).hexdigest()

    def _body(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "game": self.game,
            "rules": self.rules,
            "weights": dict(self.weights),
            "bias": self.bias,
            "margin": self.margin,
            "held_out": {name: getattr(self.held_out, name) for name in HeldOut.__slots__},
            "provenance": dict(self.provenance),
        }

    def save(self, path: Path) -> None:
        """Write the file. Raises `BadLabels` where it cannot be written; what was there before then stays."""
        spare = path.with_name(path.name + ".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            spare.write_text(json.dumps({**self._body(), "hash": self.hash}, indent=1), encoding="utf-8")
            spare.replace(path)
        except OSError as error:
            raise BadLabels(f"{path}: the judge cannot be written: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file. Raises `BadLabels` for what is no judge, is damaged or was written by a newer version."""
        try:
            with path.open("rb") as opened:
                raw = opened.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadLabels(f"{path}: the judge cannot be read: {reason}") from None
        try:
            read = json.loads(raw) if len(raw) <= MAX_BYTES else None
            if not isinstance(read, dict):
                raise ValueError("no JSON object")
            if read["format"] != FORMAT:
                raise BadLabels(
                    f"{path}: a judge of format {str(read['format'])[:20]}, this version reads {FORMAT}"
                )
            judge = cls(
                str(read["game"]),
                str(read["rules"]),
                {str(name): float(weight) for name, weight in read["weights"].items()},
                float(read["bias"]),
                float(read["margin"]),
                HeldOut(**read["held_out"]),
                read["provenance"],
            )
            whole = judge.hash == read["hash"]
        except BadLabels:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise BadLabels(f"{path}: no judge of decisions ({str(error)[:80]})") from None
        if not whole:
            raise BadLabels(f"{path}: the judge is damaged: its hash is not that of what it holds")
        return judge


class LearnedLabeller:
    """Labels decisions by a learned judge."""

    name = "learned"

    def __init__(self, judge: LearnedJudge) -> None:
        self.judge = judge

    @property
    def version(self) -> str:
        return f"learned {self.judge.game} {self.judge.hash[:12]}"

    async def label(self, record: Record, *, seats: Collection[int]) -> dict[int, SeatLabels]:
        """Return the labels. Raises as `Labeller.label`, and `BadLabels` for another game or other rules."""
        judge, header = self.judge, record.header
        if (header.game, header.rules) != (judge.game, judge.rules):
            raise BadLabels(
                f"labels learned: the judge knows {judge.game} rules {judge.rules}, the match is {header.game} rules "
                f"{header.rules[:40]}"
            )
        line = read_line(record)
        chosen = check_seats(line, seats)
        found = featured(line, chosen)
        return {
            seat: SeatLabels(
                seat,
                tuple(
                    StepLabel(taken.ply, seat, judge.value(features) if free(taken) else NEUTRAL)
                    for taken, features in found[seat]
                ),
            )
            for seat in chosen
        }


def featured(line: Line, seats: Sequence[int]) -> dict[int, list[tuple[Taken, dict[str, float]]]]:
    """Return the decisions of `seats` with their features, by seat, in order."""
    known = label_by_rules(line, seats) if knows(line.game.name) else {}
    found = {}
    for seat in seats:
        said: Sequence[StepLabel | None] = (
            known[seat].steps if seat in known else [None] * len(line.taken[seat])
        )
        found[seat] = [
            (taken, _features(line, taken, why)) for taken, why in zip(line.taken[seat], said, strict=True)
        ]
    return found


def _features(line: Line, taken: Taken, said: StepLabel | None) -> dict[str, float]:
    state: Any = line.states[taken.ply]
    outcome, seat = line.outcome, taken.seat
    asked, role, side = taken.space.label, outcome.roles[seat], outcome.teams[seat]
    facts = {f"asked {asked}": 1.0, f"role {role}": 1.0, f"{asked} by {role}": 1.0}
    if taken.action == taken.space.default:
        facts[f"{asked} default"] = 1.0
    at = _targets(taken.action, line.seats)
    if at:
        enemies = sum(outcome.teams[other] != side for other in at) / len(at)
        facts[f"{asked} at enemies by {side}"] = enemies
        facts[f"{asked} at self"] = float(seat in at)
        if len(at) == 1:
            facts[f"{asked} at {outcome.roles[at[0]]} by {side}"] = 1.0
    elif isinstance(taken.action, str) and getattr(taken.space, "options", None) and len(taken.action) <= 24:
        facts[f"{asked} {taken.action} by {side}"] = 1.0
    if said is not None and said.value:
        facts["rules good" if said.value > 0 else "rules bad"] = 1.0
        facts[f"{asked} rules {said.value} by {side}"] = 1.0
    cards = getattr(state, "cards", None)
    if isinstance(cards, tuple) and len(cards) == line.seats:
        facts[f"{asked} {taken.action} with card {cards[seat]}"] = 1.0
    for name in _COUNTERS:
        value = getattr(state, name, None)
        if isinstance(value, int):
            facts[f"{asked} {name} {min(value, 9)} by {side}"] = 1.0
    return facts


def _targets(action: Any, seats: int) -> list[int]:
    """Return the seats that an action names, none where it names anything else."""
    words = list(action) if isinstance(action, tuple) else str(action).split(" ")[-1:]
    if not words or not all(word.isascii() and word.isdigit() and int(word[:4]) < seats for word in words):
        return []
    return [int(word) for word in words]


def examples(record: Record, credits: Iterable[Credit], *, match: str = "") -> list[Example]:
    """Return what can be learned from a match: its free decisions that replays found to help or to harm.

    Args:
        record: the match.
        credits: of its teams, by a counterfactual method with steps.
        match: names it apart from other matches; by default the record's own chain of hashes.

    Raises as `read_line`.
    """
    line = read_line(record)
    footer = record.footer
    name = match or (footer.chain.hex() if footer is not None else "")
    added = {
        (step.seat, step.ply): step.contribution
        for credit in credits
        for step in credit.steps
        if step.contribution
    }
    found = []
    for seat, decisions in featured(line, range(line.seats)).items():
        for taken, features in decisions:
            value = added.get((seat, taken.ply))
            if value and free(taken):
                found.append(Example(features, value, name))
    return found


def train(
    given: Sequence[Example],
    *,
    game: str,
    provenance: Mapping[str, Any],
    penalty: float = 10.0,
    margin: float = DEFAULT_MARGIN,
    seed: int = 0,
) -> LearnedJudge:
    """Return a judge trained on `given`, with what it reached on held-out matches.

    Args:
        given: decisions of one game.
        game: whose name it is.
        provenance: where they came from, as JSON-compatible data; the numbers of examples and matches are added.
        penalty: of the squared weights.
        margin: how far from one half a probability must be to be a label, 0 to below one half.
        seed: of the folds.

    Raises `BadCredit` where there is too little to learn from.
    """
    if not 0 <= margin < 0.5 or not 0 < penalty < math.inf:
        raise BadCredit(
            f"judge: got margin {margin} and penalty {penalty}, allowed are 0 to below 0.5, and above 0"
        )
    matches = sorted({one.match for one in given})
    helped = sum(one.helped for one in given)
    if len(given) < MIN_EXAMPLES or len(matches) < FOLDS or not 0 < helped < len(given):
        raise BadCredit(
            f"judge: {len(given)} decisions of {len(matches)} matches ({helped} helped) are too few to learn from, at "
            f"least {MIN_EXAMPLES} of {FOLDS}, of both kinds, are needed"
        )
    names = sorted({name for one in given for name in one.features})
    weights, bias = _fit(given, names, penalty)
    facts = {"examples": len(given), "matches": len(matches), "penalty": penalty, "seed": seed}
    return LearnedJudge(
        game,
        load_game(game).version,
        dict(zip(names, map(float, weights), strict=True)),
        float(bias),
        margin,
        _try_out(given, matches, names, penalty, seed),
        {**provenance, **facts},
    )


def _try_out(
    given: Sequence[Example], matches: Sequence[str], names: Sequence[str], penalty: float, seed: int
) -> HeldOut:
    order = list(matches)
    random.Random(seed).shuffle(order)
    fold = {match: i % FOLDS for i, match in enumerate(order)}
    # By match: decisions, right ones, and the number and the sum of what was added of those called good, and bad.
    sums = {match: np.zeros(6) for match in order}
    usual = 0
    for number in range(FOLDS):
        seen = [one for one in given if fold[one.match] != number]
        unseen = [one for one in given if fold[one.match] == number]
        weights, bias = _fit(seen, names, penalty)
        said = _matrix(unseen, names) @ weights + bias
        most = 2 * sum(one.helped for one in seen) >= len(seen)
        for one, score in zip(unseen, said, strict=True):
            row = sums[one.match]
            row[:2] += 1, (score > 0) == one.helped
            at = 2 if score > 0 else 4
            row[at : at + 2] += 1, one.added
            usual += one.helped == most
    counts = np.array(list(sums.values()))
    rng = np.random.default_rng(seed)
    draws = counts[rng.integers(len(counts), size=(BOOTSTRAPS, len(counts)))].sum(axis=1)
    accuracy, lift = _scores(counts.sum(axis=0)[None, :])
    accuracies, lifts = _scores(draws)
    low, high = np.quantile(accuracies, (0.025, 0.975))
    lift_low, lift_high = np.quantile(lifts, (0.025, 0.975))
    return HeldOut(
        round(float(accuracy[0]), 6),
        round(float(low), 6),
        round(float(high), 6),
        round(float(usual / len(given)), 6),
        round(float(lift[0]), 6),
        round(float(lift_low), 6),
        round(float(lift_high), 6),
        len(given),
        len(matches),
    )


def _scores(sums: Floats) -> tuple[Floats, Floats]:
    """Return accuracy and lift of rows of sums; a kind that was never called added nothing."""
    good = sums[:, 3] / np.maximum(sums[:, 2], 1)
    bad = sums[:, 5] / np.maximum(sums[:, 4], 1)
    return sums[:, 1] / np.maximum(sums[:, 0], 1), good - bad


def _matrix(given: Sequence[Example], names: Sequence[str]) -> Floats:
    place = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(given), len(names)))
    for row, one in enumerate(given):
        for name, value in one.features.items():
            matrix[row, place[name]] = value
    return matrix


def _fit(given: Sequence[Example], names: Sequence[str], penalty: float) -> tuple[Floats, float]:
    """Return weights and bias of the logistic regression with a penalty on the squared weights."""
    matrix = _matrix(given, names)
    signs = np.array([1.0 if one.helped else -1.0 for one in given])
    counts = np.array([abs(one.added) for one in given])
    counts /= counts.mean()

    def loss(theta: Floats) -> tuple[float, Floats]:
        weights, bias = theta[:-1], theta[-1]
        margins = signs * (matrix @ weights + bias)
        pull = -counts * signs * np.exp(-np.logaddexp(0.0, margins))
        value = counts @ np.logaddexp(0.0, -margins) + 0.5 * penalty * weights @ weights
        return float(value), np.append(matrix.T @ pull + penalty * weights, pull.sum())

    found = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B")
    return found.x[:-1], float(found.x[-1])
