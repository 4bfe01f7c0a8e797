"""Step labels: what judges say of the decisions of a match, and the decisions themselves.

A decision is what one seat did in one ply. Judges see a finished match whole, hidden roles included: a label is
hindsight, said of a decision after the truth is known. A judge that has nothing to say, or was not understood,
leaves a decision neutral, and that is counted.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from agents.credit.adca import BAD, GOOD, NEUTRAL
from agents.credit.base import Label
from agents.credit.line import Line, Taken
from agents.errors import BadCredit
from games.base import Event
from replays.record import Record

WORDS: dict[int, Label | None] = {GOOD: "good", BAD: "bad", NEUTRAL: None}
"""A label's value as reports name it."""


class StepLabel(NamedTuple):
    """What a judge says of one decision: `value` is 1 (good), -1 (bad) or 0 (neutral), `why` in a few words."""

    ply: int
    seat: int
    value: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class SeatLabels:
    """The labels of one seat's decisions, one for each, in order, and what they cost.

    `counts` says how many decisions were left neutral for a cause: `timeout`, `unread`, `silent`, `too_long`.
    """

    seat: int
    steps: tuple[StepLabel, ...]
    counts: Counter[str] = field(default_factory=Counter)
    model_calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def values(self) -> list[int]:
        """The labels alone, as `agents.credit.adca` takes them."""
        return [step.value for step in self.steps]


class Labeller(Protocol):
    """A judge of decisions."""

    name: str

    @property
    def version(self) -> str:
        """What labels and how; changes whenever a label may."""
        ...

    async def label(self, record: Record, *, seats: Collection[int]) -> dict[int, SeatLabels]:
        """Return the labels of every decision of `seats`.

        Raises as `read_line` for a record that gives no credit, and `BadLabels` for a game that it does not know.
        A judge that fails or is not understood raises nothing: what it should have judged is neutral and counted.
        """
        ...


def free(taken: Taken) -> bool:
    """Whether there was anything to decide, and the seat did it itself."""
    options = getattr(taken.space, "options", None)
    return not taken.forced and (options is None or len(options) > 1)


def by_ply(line: Line) -> list[list[Taken]]:
    """Return the decisions of each ply, in seat order."""
    plies: list[list[Taken]] = [[] for _ in line.states]
    for decisions in line.taken:
        for taken in decisions:
            plies[taken.ply].append(taken)
    return plies


def events_of(line: Line, ply: int) -> list[Event]:
    """Return what came of a ply, as the rules told it."""
    last = ply + 1 == len(line.states)
    end = len(line.final.history) if last else len(line.states[ply + 1].history)
    return line.final.history[len(line.states[ply].history) : end]


def check_seats(line: Line, seats: Collection[int]) -> tuple[int, ...]:
    """Return the seats in order. Raises `BadCredit` for one that the match does not have."""
    for seat in seats:
        if not 0 <= seat < line.seats:
            raise BadCredit(f"seat: got {seat}, this match has seats 0 to {line.seats - 1}")
    return tuple(sorted(set(seats)))
