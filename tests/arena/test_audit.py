"""The person's queue as the screen is told of it: cases as they are, answers kept at once."""

import asyncio
from pathlib import Path

import pytest

from agents.errors import QueueError
from agents.judges.evaluator import Evaluator, JudgeSettings
from agents.judges.evidence import evidence
from agents.judges.queue import FILE, PersonQueue
from arena.audit import QueueSource
from clients.spectator.audits import AuditTold
from games.tasks.check import check
from tests.agents.judges.judging import PLAN, case

CASES = [case(), case(PLAN[:3]), case(PLAN[:4], "purposeful")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    judges = Evaluator(JudgeSettings(audit_share=1.0))
    with PersonQueue(tmp_path / FILE) as queue:
        queue.put([(one, judges.by_rules(one)) for one in CASES], run="r1")
    return tmp_path / FILE


def read(source: QueueSource) -> AuditTold:
    return asyncio.run(source.read())


def test_cases_are_told_with_evidence_and_findings(path: Path) -> None:
    told = read(QueueSource(path, person="ada"))
    assert [one.id for one in told.cases] == [one.id for one in CASES]
    assert told.counts["waiting"] == 3 and told.counts["disputed"] == 0
    for one, held in zip(told.cases, CASES, strict=True):
        assert (one.spec, one.actions, one.run) == (held.spec, held.attempt.actions, "r1")
        assert one.evidence == evidence(held, check(held.spec, held.attempt))
        assert [finding.layer for finding in one.findings][:2] == ["rules", "machine"]
    assert [(one.answer, one.decided_by) for one in told.cases] == [
        (True, "machine"),
        (False, "rules"),
        (None, ""),
    ]
    assert told.cases[2].question.startswith("Did the actor pursue")


def test_an_answer_is_in_the_file_before_it_is_said_to_be_kept(path: Path) -> None:
    source = QueueSource(path, person="ada", note="seen")
    assert asyncio.run(source.answer(CASES[0].id, False)) is True
    with PersonQueue(path) as queue:
        (held,) = queue.waiting(answered=True)
    assert (held.case.id, held.answer, held.person, held.note) == (CASES[0].id, False, "ada", "seen")
    assert asyncio.run(source.answer(CASES[2].id, True)) is False
    told = read(source)
    assert [one.id for one in told.cases] == [CASES[1].id] and source.answered == 2
    assert told.counts == {"waiting": 1, "waiting_audit": 1, "answered": 2, "disputed": 1}


def test_what_another_answered_is_not_taken_back(path: Path) -> None:
    source = QueueSource(path, person="ada")
    with PersonQueue(path) as queue:
        queue.answer(CASES[1].id, False, person="bob")
    with pytest.raises(QueueError, match="bob answered no before"):
        asyncio.run(source.answer(CASES[1].id, True))
    assert source.answered == 0 and len(read(source).cases) == 2


def test_no_more_cases_are_told_than_asked_for(path: Path) -> None:
    source = QueueSource(path, person="ada", limit=2)
    assert [one.id for one in read(source).cases] == [one.id for one in CASES[:2]]
    asyncio.run(source.answer(CASES[0].id, True))
    assert [one.id for one in read(source).cases] == [CASES[1].id]
    asyncio.run(source.answer(CASES[1].id, False))
    told = read(source)
    assert told.cases == () and told.counts["waiting"] == 1
