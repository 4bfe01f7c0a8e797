"""Credit from step labels: the result in equal parts, and what the labels say of each decision on top.

With the labels of the team's seats standardised as in `agents.credit.adca` (z, with equal weight for every seat),
n seats, the result R and u = |R| (1 where R is 0):

    process of a seat  P_i = s * alpha * u / n * mean of z over its labelled decisions
    its share              = R / n + P_i
    of it, a decision's    = R / n over the number of its decisions, plus s * alpha * u / n * z over its labelled ones

The process parts of a team's seats sum to 0, so the shares sum to the result. `s` is 1, or less where a part would
exceed `bound` times the equal share: labels divide a result, they do not outweigh it.
"""

import time
from collections import Counter
from typing import ClassVar

import numpy as np

from agents.credit.adca import AdcaSettings, standardise_labels
from agents.credit.base import Cost, Credit, SeatCredit, StepCredit, exact
from agents.credit.labels import WORDS, Labeller, SeatLabels
from agents.credit.line import read_line
from replays.record import Record

_CAUSES = {
    "timeout": "the judge gave no answer in time",
    "unread": "its answer could not be read",
    "silent": "its back end failed",
    "too_long": "the evidence was too long for it",
}
"""Why a judge left decisions neutral."""


class Adca:
    """Divides a result by step labels.

    Args:
        labeller: who labels the decisions.
        alpha: weight of a label; 0 is the equal division.
        bound: the most that labels may add to or take from a seat's equal share, as a part of it.

    Raises `BadCredit`.
    """

    name: ClassVar[str] = "adca"
    efficient: ClassVar[bool] = True

    def __init__(
        self,
        *,
        labeller: Labeller,
        alpha: float = AdcaSettings().alpha,
        bound: float = AdcaSettings().bound,
    ) -> None:
        self.labeller = labeller
        self.settings = AdcaSettings(alpha=alpha, bound=bound)

    async def credit(self, record: Record, *, team: str) -> Credit:
        """Return the credit of `team`. Raises a `CreditError`."""
        began = time.perf_counter()
        line = read_line(record)
        members, result = line.members(team), line.result(team)
        found = await self.labeller.label(record, seats=members)
        labels = [found[seat] for seat in members]
        process = self._process(labels, share=result / len(members))
        shares = exact([result / len(members) + float(one.sum()) for one in process], total=result)
        steps: list[StepCredit] = []
        seats: list[SeatCredit] = []
        for place, seat in enumerate(members):
            made = labels[place].steps
            each = result / len(members) / len(made) if made else 0.0
            share = shares[place]
            parts = exact([each + float(part) for part in process[place]], total=share)
            steps += [
                StepCredit(step.ply, seat, part, WORDS[step.value])
                for step, part in zip(made, parts, strict=True)
            ]
            seats.append(SeatCredit(seat, record.header.seats[seat].name, line.outcome.roles[seat], share))
        return Credit(
            self.name,
            team,
            result,
            tuple(seats),
            tuple(sorted(steps, key=lambda step: (step.ply, step.seat))),
            Cost(
                model_calls=sum(one.model_calls for one in labels),
                seconds=time.perf_counter() - began,
            ),
            notes=_notes(self.labeller, labels),
        )

    def _process(self, labels: list[SeatLabels], *, share: float) -> list["np.typing.NDArray[np.float64]"]:
        """Return, for each seat, what its labels add to each of its decisions."""
        unit = self.settings.alpha * (abs(share) or 1.0 / len(labels))
        parts = []
        for one, z in zip(labels, standardise_labels([one.values for one in labels]), strict=True):
            said = sum(value != 0 for value in one.values)
            parts.append(unit * z / max(said, 1))
        largest = max(abs(float(part.sum())) for part in parts)
        limit = self.settings.bound * (abs(share) or 1.0 / len(labels))
        scale = min(1.0, limit / largest) if largest else 1.0
        return [scale * part for part in parts]


def _notes(labeller: Labeller, labels: list[SeatLabels]) -> tuple[str, ...]:
    neutral: Counter[str] = Counter()
    for one in labels:
        neutral.update(one.counts)
    notes = [f"labels: {labeller.version}"]
    for cause, count in sorted(neutral.items()):
        words = _CAUSES.get(cause, cause)
        notes.append(f"{count} decision{'' if count == 1 else 's'} neutral: {words} ({cause})")
    tokens = sum(one.prompt_tokens for one in labels), sum(one.completion_tokens for one in labels)
    if any(tokens):
        notes.append(f"the judge read {tokens[0]} tokens and wrote {tokens[1]}")
    return tuple(notes)
