"""Judge regression: fixed trajectories, judged several times, must come out as recorded, every time.

The twenty cases are data (`regression.json`): a task, an attempt, a question and the verdict expected of it. They
were made once from shortest plans, from cheats made of them and from honest failures; nothing makes them anew when a
judge or a generator changes, which is the point.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agents.judges.base import MODEL, Case, Judgement, says
from agents.judges.evaluator import Evaluator

TIMES = 3


@dataclass(frozen=True, slots=True)
class Fixed:
    """A case of the regression: its name, and the kind of verdict and the answer that are right."""

    name: str
    case: Case
    kind: str
    answer: bool


@dataclass(frozen=True, slots=True)
class Row:
    """How one case came out: a judgement for each time."""

    fixed: Fixed
    judgements: tuple[Judgement, ...]
    seconds: float

    @property
    def right(self) -> bool:
        """Whether kind and answer were the expected ones, every time."""
        return all((j.kind, j.answer) == (self.fixed.kind, self.fixed.answer) for j in self.judgements)

    @property
    def agrees(self) -> bool:
        """Whether every time gave the same kind, answer and chain, confidences apart."""
        return len({_outcome(judgement) for judgement in self.judgements}) == 1

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {
            "name": self.fixed.name,
            "world": self.fixed.case.spec.world,
            "question": self.fixed.case.question,
            "expected": self.fixed.kind,
            "got": [judgement.kind for judgement in self.judgements],
            "model": [
                next((f.failure or f.says for f in j.findings if f.layer == MODEL), None)
                for j in self.judgements
            ],
            "right": self.right,
            "agrees": self.agrees,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Regression:
    """The whole of a regression."""

    rows: tuple[Row, ...]
    times: int
    version: str
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether every case came out right and alike every time."""
        return all(row.right and row.agrees for row in self.rows)

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data: the verdict table and the time."""
        return {
            "ok": self.ok,
            "judge": self.version,
            "cases": len(self.rows),
            "times": self.times,
            "right": sum(row.right for row in self.rows),
            "agree": sum(row.agrees for row in self.rows),
            "seconds": self.seconds,
            "model": self._model(),
            "table": [row.to_data() for row in self.rows],
        }

    def _model(self) -> dict[str, int] | None:
        """Return how the model did beside the rules: times asked, failed, right; None where it was never asked."""
        heard = [
            (finding, row.fixed.answer)
            for row in self.rows
            for judgement in row.judgements
            for finding in judgement.findings
            if finding.layer == MODEL
        ]
        if not heard:
            return None
        return {
            "asked": len(heard),
            "failed": sum(finding.failure is not None for finding, _ in heard),
            "right": sum(finding.says == says(answer) for finding, answer in heard),
        }


def fixed_cases() -> list[Fixed]:
    """Return the fixed cases, in their order."""
    text = files("agents.judges").joinpath("regression.json").read_text(encoding="utf-8")
    return [
        Fixed(one["name"], Case.from_data(one["case"]), one["kind"], one["answer"])
        for one in json.loads(text)["cases"]
    ]


async def regress(
    evaluator: Evaluator, *, times: int = TIMES, clock: Callable[[], float] = time.perf_counter
) -> Regression:
    """Judge every fixed case `times` times."""
    began = clock()
    rows = []
    for fixed in fixed_cases():
        start = clock()
        judgements = tuple([await evaluator.judge(fixed.case) for _ in range(times)])
        rows.append(Row(fixed, judgements, clock() - start))
    return Regression(tuple(rows), times, evaluator.version, clock() - began)


def _outcome(judgement: Judgement) -> tuple[Any, ...]:
    chain = tuple((f.layer, f.says, f.failure) for f in judgement.findings)
    return judgement.kind, judgement.answer, judgement.decided_by, judgement.reason, chain
