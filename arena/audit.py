"""The person's queue for the screen that shows it: cases read from `judge.db`, answers written there at once."""

import asyncio
from pathlib import Path

from agents.judges.base import QUESTIONS
from agents.judges.queue import PersonQueue, Waiting
from clients.spectator.audits import AuditSource, AuditTold, CaseTold, FindingTold


class QueueSource(AuditSource):
    """A queue in a file.

    Args:
        path: the file; it is there.
        person: who answers.
        note: kept with every answer.
        limit: how many cases are shown in all.
    """

    def __init__(self, path: Path, *, person: str, note: str = "", limit: int = 100) -> None:
        self.path = path
        self.name = str(path.parent)
        self.answered = 0
        """How many answers were kept."""
        self._person, self._note, self._limit = person, note, limit
        self._told: dict[str, CaseTold] = {}

    async def read(self) -> AuditTold:
        return await asyncio.to_thread(self._read)

    async def answer(self, case: str, answer: bool) -> bool:
        return await asyncio.to_thread(self._answer, case, answer)

    def _read(self) -> AuditTold:
        left = self._limit - self.answered
        with PersonQueue(self.path) as queue:
            waiting = queue.waiting(limit=left) if left > 0 else []
            counts = queue.counts()
        self._told = {one.case.id: self._told.get(one.case.id) or _told(one) for one in waiting}
        return AuditTold(tuple(self._told.values()), counts)

    def _answer(self, case: str, answer: bool) -> bool:
        with PersonQueue(self.path) as queue:
            done = queue.answer(case, answer, person=self._person, note=self._note)
        self.answered += 1
        return done.disputed


def _told(waiting: Waiting) -> CaseTold:
    case, judgement = waiting.case, waiting.judgement
    return CaseTold(
        id=case.id,
        run=waiting.run,
        why=waiting.why,
        question=QUESTIONS[case.question],
        spec=case.spec,
        actions=case.attempt.actions,
        evidence=waiting.to_data()["evidence"],
        findings=tuple(FindingTold(*finding) for finding in judgement.findings),
        answer=judgement.answer,
        decided_by=judgement.decided_by or "",
    )
