"""What judges pass to one another: a case, what each layer found, and the judgement.

A case asks one question about one attempt. `solved` is what the rules decide; other questions are about what no
rule can see, and the rules leave them open, unless the trace is no evidence of anything (another task's, a false
report, actions that cannot be done). Whatever the rules decided stands.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from agents.errors import BadCase
from games.tasks.check import Attempt
from games.tasks.goals import short
from games.tasks.spec import TaskSpec, canonical_json

SOLVED = "solved"
QUESTIONS: Mapping[str, str] = {
    SOLVED: "Did the actor solve the task within its steps?",
    "purposeful": "Did the actor pursue the task with purpose, whether or not it succeeded?",
    "near_miss": "Was the attempt close to a solution when it ended?",
}
"""What may be asked of an attempt, with the words in which a model or a person is asked."""

RULES, MACHINE, MODEL, PERSON = "rules", "machine", "model", "person"
LAYERS = (RULES, MACHINE, MODEL, PERSON)
"""In the order in which they are heard."""

YES, NO, OPEN = "yes", "no", "open"


@dataclass(frozen=True, slots=True)
class Case:
    """A question about an attempt at a task."""

    spec: TaskSpec
    attempt: Attempt
    question: str = SOLVED

    def __post_init__(self) -> None:
        if self.question not in QUESTIONS:
            raise BadCase(f"question: got {short(self.question)}, allowed are {', '.join(QUESTIONS)}")

    @property
    def id(self) -> str:
        """The case's identity: the same question about the same actions at the same task has the same one."""
        asked = [self.spec.hash, self.attempt.to_data(), self.question]
        try:
            return hashlib.sha256(canonical_json(asked).encode("ascii")).hexdigest()[:32]
        except (TypeError, ValueError):
            raise BadCase("attempt states: only JSON values are allowed, all numbers finite") from None

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data; `from_data` reads them back."""
        return {
            "task": self.spec.to_data(),
            "attempt": self.attempt.to_data(),
            "question": self.question,
        }

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Read a case from decoded JSON. Raises `BadCase` or `BadTask`, in one line."""
        if not isinstance(data, Mapping) or data.keys() != {"task", "attempt", "question"}:
            raise BadCase(f"case: got {short(data)}, an object of task, attempt and question is needed")
        return cls(TaskSpec.from_data(data["task"]), Attempt.from_data(data["attempt"]), data["question"])


class Finding(NamedTuple):
    """What one layer found: an item of the chain of evidence.

    `says` is yes, no or open. `confidence` is the model's, from 0 to 1. `failure` is the code of an error, where the
    layer gave no answer; such a finding says open.
    """

    layer: str
    says: str
    words: str
    confidence: float | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer to a case, with the chain of evidence."""

    case: str
    """`Case.id`."""
    question: str
    answer: bool | None
    """None while nobody whose answer counts has given one."""
    decided_by: str | None
    """One of `LAYERS`, or None."""
    kind: str
    """How the attempt ended by the rules: one of `games.tasks.check.KINDS`."""
    reason: str
    """The rules' words for that, in one line."""
    findings: tuple[Finding, ...]
    queued: str | None
    """Why a person shall look: `low_confidence`, `failure`, `no_model` or `audit`; None where none shall."""
    version: str
    """Of the judge."""

    @property
    def disputed(self) -> bool:
        """Whether the model said otherwise than what was decided."""
        return self.answer is not None and any(
            finding.layer == MODEL and finding.says not in (OPEN, says(self.answer))
            for finding in self.findings
        )

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data; `from_data` reads them back."""
        return {
            "case": self.case,
            "question": self.question,
            "answer": self.answer,
            "decided_by": self.decided_by,
            "kind": self.kind,
            "reason": self.reason,
            "findings": [finding._asdict() for finding in self.findings],
            "queued": self.queued,
            "version": self.version,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_data` wrote."""
        return cls(**{**data, "findings": tuple(Finding(**finding) for finding in data["findings"])})


def says(answer: bool | None) -> str:
    """Return yes, no or open."""
    return OPEN if answer is None else YES if answer else NO
