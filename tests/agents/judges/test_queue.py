import sqlite3
from pathlib import Path

import pytest

from agents.errors import QueueError, QueueTooNew
from agents.judges.base import Case, Judgement
from agents.judges.evaluator import Evaluator, JudgeSettings
from agents.judges.queue import FILE, PersonQueue
from tests.agents.judges.judging import PLAN, case

EVERYTHING = Evaluator(JudgeSettings(audit_share=1.0))


def judged(*cases: Case) -> list[tuple[Case, Judgement]]:
    return [(one, EVERYTHING.by_rules(one)) for one in cases]


def test_a_case_is_in_it_once_however_often_it_is_put(tmp_path: Path) -> None:
    pairs = judged(case(), case(PLAN[:3]), case(PLAN[:3], "purposeful"))
    with PersonQueue(tmp_path / FILE) as queue:
        assert queue.put(pairs, run="a") == 3
        assert queue.put(pairs, run="b") == 0
    with PersonQueue(tmp_path / FILE) as queue:
        waiting = queue.waiting()
        assert [(one.case, one.run, one.why) for one in waiting] == [
            (pairs[0][0], "a", "audit"),
            (pairs[1][0], "a", "audit"),
            (pairs[2][0], "a", "no_model"),
        ]
        assert [one.judgement for one in waiting] == [judgement for _, judgement in pairs]
        assert queue.counts() == {
            "waiting": 3,
            "waiting_audit": 2,
            "waiting_no_model": 1,
            "answered": 0,
            "disputed": 0,
        }
        assert queue.counts(run="b")["waiting"] == 0


def test_what_is_not_queued_is_not_put(tmp_path: Path) -> None:
    nobody = Evaluator(JudgeSettings(audit_share=0.0))
    with PersonQueue(tmp_path / FILE) as queue:
        assert queue.put([(case(), nobody.by_rules(case()))]) == 0
        assert queue.waiting(answered=None) == []


def test_answers_agree_dispute_and_stay(tmp_path: Path) -> None:
    solved, given_up = case(), case(PLAN[:3], "purposeful")
    with PersonQueue(tmp_path / FILE) as queue:
        queue.put(judged(solved, given_up))
        done = queue.answer(given_up.id[:10], True, person="ada", note="so it seems")
        assert (done.settled.answer, done.settled.decided_by, done.disputed) == (True, "person", False)
        disputed = queue.answer(solved.id, False, person="ada")
        assert disputed.disputed and disputed.settled.answer is True
        assert queue.disputed_tasks() == [solved.spec.hash]
        assert queue.answer(solved.id, False, person="bob").person == "ada"
        with pytest.raises(QueueError, match="ada answered no before"):
            queue.answer(solved.id, True, person="bob")
        assert queue.waiting() == []
        assert [one.note for one in queue.waiting(answered=True)] == ["", "so it seems"]
        assert queue.counts()["disputed"] == 1


@pytest.mark.parametrize("name", ["", "zz", "%"])
def test_a_case_that_is_not_there(tmp_path: Path, name: str) -> None:
    with PersonQueue(tmp_path / FILE) as queue:
        queue.put(judged(case(), case(PLAN[:3])))
        with pytest.raises(QueueError, match="an id is needed"):
            queue.answer(name, True, person="ada")


def test_a_queue_of_a_newer_version_and_a_file_that_is_none(tmp_path: Path) -> None:
    newer = tmp_path / "newer.db"
    db = sqlite3.connect(newer)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(QueueTooNew, match="version 99, this program reads up to 1"):
        PersonQueue(newer)
    (tmp_path / "text.db").write_text("no database at all, but text " * 100)
    with pytest.raises(QueueError, match="cannot be used as the queue"):
        PersonQueue(tmp_path / "text.db")
