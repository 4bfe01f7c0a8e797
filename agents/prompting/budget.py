"""The rule by which a history is made to fit, without ever cutting inside of an event.

1. While everything fits, every event is told whole.
2. Else the oldest rounds are told in brief: what counts (votes, quests, deaths) stays, speech goes. Whole rounds
   at a time, so that between two such steps one prompt's history begins with the last one's, to the letter.
3. If all earlier rounds in brief are still too much, the oldest events of the round at hand are told in brief too.
4. If that is not enough either, the oldest events are left out, and a line says how many.
"""

from collections.abc import Callable
from typing import NamedTuple

from agents.prompting.template import Line

Count = Callable[[str], int]


class Fitted(NamedTuple):
    """Lines within a budget, and what they take: the oldest `left_out` events are gone, those before `brief` brief."""

    lines: tuple[str, ...]
    brief: int = 0
    left_out: int = 0
    tokens: int = 0

    @property
    def text(self) -> str:
        """The lines, each with its line end."""
        return "".join(f"{line}\n" for line in self.lines)


class Telling:
    """Events as they come, with what each costs; `fit` tells them within a room."""

    def __init__(self, count: Count, *, left_out: Callable[[int], str], summary: str) -> None:
        self._count = count
        self._mark = left_out
        self._summary = summary
        self._summary_cost = count(summary + "\n") if summary else 0
        self._lines: list[Line] = []
        self._whole = [0]
        self._brief = [0]
        self._borders: list[int] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: Line) -> None:
        """Append one event."""
        if line.opens and self._lines:
            self._borders.append(len(self._lines))
        self._lines.append(line)
        whole = self._count(line.whole + "\n")
        brief = (
            0 if line.brief is None else whole if line.brief == line.whole else self._count(line.brief + "\n")
        )
        self._whole.append(self._whole[-1] + whole)
        self._brief.append(self._brief[-1] + brief)

    def fit(self, room: int) -> Fitted | None:
        """Return the lines for `room` tokens, as much as the rule keeps; None where there is room for none."""
        total = len(self._lines)
        this_round = self._borders[-1] if self._borders else 0
        for brief in (0, *self._borders, *range(this_round + 1, total + 1)):
            head = self._summary if self._brief[brief] else ""
            cost = (
                (self._summary_cost if head else 0)
                + self._brief[brief]
                + self._whole[-1]
                - self._whole[brief]
            )
            if cost <= room:
                return self._tell(head, brief, 0, cost)
        for left_out in range(1, total + 1):
            head = self._mark(left_out)
            cost = self._count(head + "\n") + self._brief[-1] - self._brief[left_out]
            if cost <= room:
                return self._tell(head, total, left_out, cost)
        return None

    def _tell(self, head: str, brief: int, left_out: int, tokens: int) -> Fitted:
        lines = [head] if head else []
        lines += [line.brief for line in self._lines[left_out:brief] if line.brief is not None]
        lines += [line.whole for line in self._lines[brief:]]
        return Fitted(tuple(lines), brief, left_out, tokens)
