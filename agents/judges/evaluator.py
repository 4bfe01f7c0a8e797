"""The layers in order: state rules, the automaton, the model, a person.

The rules and the automaton are those of `games.tasks.check`. What they decide is decided: a model is asked about it
only to learn how far it can be trusted, and its opinion changes nothing. Where they leave a question open, a model's
opinion counts if its confidence is above the threshold; everything else, a share of all cases beside, is for a
person.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.errors import BadCase, JudgeError
from agents.judges.base import (
    MACHINE,
    MODEL,
    NO,
    OPEN,
    PERSON,
    RULES,
    SOLVED,
    YES,
    Case,
    Finding,
    Judgement,
    says,
)
from agents.judges.evidence import evidence
from agents.judges.model import ModelJudge
from games.rng import derive_seed
from games.tasks.check import Verdict, check
from games.tasks.spec import canonical_json
from games.tasks.world import World
from games.tasks.worlds import WORLDS

EVALUATOR_VERSION = "judge-1"
NO_EVIDENCE = ("wrong_task", "false_report", "illegal", "after_end")
"""Verdicts after which the trace shows nothing: every question about it is answered with no."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How cases are judged.

    Args:
        trust: a model's opinion counts where its confidence is above this.
        audit_share: of all cases, how many a person looks at though they were decided.
        ask_decided: whether the model is asked about what the rules decided as well.
        seed: of the audit's draw and of the model's sampling.
    """

    trust: float = 0.8
    audit_share: float = 0.1
    ask_decided: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("trust", "audit_share"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise BadCase(f"judge {name}: got {value!r}, allowed is 0 to 1")


class Evaluator:
    """Judges cases. Holds no state: the same case is judged alike, as long as the model answers alike.

    Args:
        settings: how.
        model: asked where the rules leave something open; None leaves that to a person.
    """

    def __init__(self, settings: JudgeSettings | None = None, *, model: ModelJudge | None = None) -> None:
        self.settings = JudgeSettings() if settings is None else settings
        self.model = model

    @property
    def version(self) -> str:
        """Of the whole: changes whenever a judgement may."""
        settings = self.settings
        parts = [
            {name: world.version for name, world in sorted(WORLDS.items())},
            [settings.trust, settings.audit_share, settings.ask_decided],
            None if self.model is None else self.model.version,
        ]
        return f"{EVALUATOR_VERSION}/{hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:12]}"

    def by_rules(self, case: Case, *, world: World[Any] | None = None) -> Judgement:
        """Return what the first two layers say; `queued` is set as if there were no model."""
        return self._finish(case, *self._rules(case, world))

    async def judge(self, case: Case, *, world: World[Any] | None = None) -> Judgement:
        """Return what all layers but the person say."""
        world = case.spec.make_world() if world is None else world
        verdict, findings = self._rules(case, world)
        if self.model is not None and (
            _decision(findings, self.settings.trust)[1] is None or self.settings.ask_decided
        ):
            findings = (*findings, await self._ask(self.model, case, verdict, world))
        return self._finish(case, verdict, findings)

    async def judge_all(self, cases: Sequence[Case]) -> list[Judgement]:
        """Judge many cases at once, so that the model answers in batches; in order."""
        return list(await asyncio.gather(*(self.judge(case) for case in cases)))

    def audited(self, case: Case) -> bool:
        """Whether the case is among those that a person looks at anyhow: drawn by the seed and the case alone."""
        draw = derive_seed(self.settings.seed, "audit", case.id)
        return draw % 1_000_000 < self.settings.audit_share * 1_000_000

    def _rules(self, case: Case, world: World[Any] | None) -> tuple[Verdict, tuple[Finding, ...]]:
        verdict = check(case.spec, case.attempt, world=world)
        if case.question == SOLVED:
            return verdict, tuple(
                Finding(layer.name, YES if layer.accepts else NO, layer.words) for layer in verdict.layers
            )
        if verdict.kind in NO_EVIDENCE:
            return verdict, (Finding(RULES, NO, f"the trace is no evidence: {verdict.reason}"),)
        layers = {layer.name: layer for layer in verdict.layers}
        return verdict, tuple(
            Finding(name, OPEN, layers[name].words) for name in (RULES, MACHINE) if name in layers
        )

    async def _ask(self, model: ModelJudge, case: Case, verdict: Verdict, world: World[Any]) -> Finding:
        told = evidence(case, verdict, world=world)
        try:
            opinion = await model.ask(told, seed=derive_seed(self.settings.seed, "judge", case.id))
        except JudgeError as error:
            return Finding(MODEL, OPEN, str(error), failure=error.code)
        words = f"{says(opinion.yes)}, with confidence {opinion.confidence:.2f}"
        return Finding(MODEL, says(opinion.yes), words, confidence=opinion.confidence)

    def _finish(self, case: Case, verdict: Verdict, findings: tuple[Finding, ...]) -> Judgement:
        answer, decided_by = _decision(findings, self.settings.trust)
        queued = None
        if decided_by is None:
            asked = next((finding for finding in findings if finding.layer == MODEL), None)
            queued = "no_model" if asked is None else "failure" if asked.failure else "low_confidence"
        elif self.audited(case):
            queued = "audit"
        return Judgement(
            case=case.id,
            question=case.question,
            answer=answer,
            decided_by=decided_by,
            kind=verdict.kind,
            reason=verdict.reason,
            findings=findings,
            queued=queued,
            version=self.version,
        )


def _decision(findings: Sequence[Finding], trust: float) -> tuple[bool | None, str | None]:
    """Return the answer and who gave it: a refusal by rules or automaton, their consent, else a model that is sure."""
    firm = [finding for finding in findings if finding.layer in (RULES, MACHINE) and finding.says != OPEN]
    for finding in firm:
        if finding.says == NO:
            return False, finding.layer
    if firm:
        return True, firm[-1].layer
    for finding in findings:
        if finding.layer == MODEL and finding.failure is None and (finding.confidence or 0) > trust:
            return finding.says == YES, MODEL
    return None, None


def decided(judgement: Judgement, *, answer: bool) -> Judgement:
    """Return the judgement with a person's answer in the chain: it decides what was open, and no more."""
    words = "a person looked at it"
    findings = (*judgement.findings, Finding(PERSON, says(answer), words))
    if judgement.answer is not None and judgement.decided_by in (RULES, MACHINE):
        return replace(judgement, findings=findings, queued=None)
    return replace(judgement, answer=answer, decided_by=PERSON, findings=findings, queued=None)
