import asyncio
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.base import Credit, make_method
from agents.credit.fused import Adca
from agents.credit.label_rules import RulesLabeller
from agents.credit.labels import SeatLabels, StepLabel
from agents.credit.line import read_line
from agents.errors import BadCredit
from replays.record import Record
from tests.agents.credit.labelling import play

RECORD = play("avalon", lambda *_: None, seats=5, seed=3)
LINE = read_line(RECORD)
TEAM = LINE.default_team()
MEMBERS = LINE.members(TEAM)


class Given:
    """A labeller that says what it was given: by seat, values of the decisions in order, neutral beyond."""

    name = "given"
    version = "given 1"

    def __init__(self, values: Mapping[int, Sequence[int]], counts: Counter[str] | None = None) -> None:
        self.values = values
        self.counts = counts or Counter()

    async def label(self, record: Record, *, seats: Collection[int]) -> dict[int, SeatLabels]:
        found = {}
        for seat in seats:
            said = [*self.values.get(seat, ()), *[0] * 99]
            steps = tuple(
                StepLabel(taken.ply, seat, value)
                for taken, value in zip(LINE.taken[seat], said, strict=False)
            )
            found[seat] = SeatLabels(seat, steps, self.counts, model_calls=2, prompt_tokens=7)
        return found


def credit(labeller: Given, *, alpha: float = 0.1, bound: float = 0.5) -> Credit:
    return asyncio.run(Adca(labeller=labeller, alpha=alpha, bound=bound).credit(RECORD, team=TEAM))


LABELS = st.lists(st.sampled_from([-1, 0, 1]), max_size=12)


@given(st.tuples(LABELS, LABELS, LABELS), st.floats(0, 20), st.floats(0, 2))
def test_shares_sum_to_the_result_whatever_the_labels(
    labels: tuple[list[int], ...], alpha: float, bound: float
) -> None:
    found = credit(Given(dict(zip(MEMBERS, labels, strict=True))), alpha=alpha, bound=bound)
    assert fsum(seat.credit for seat in found.seats) == found.result == LINE.result(TEAM)
    equal = found.result / len(MEMBERS)
    for seat in found.seats:
        assert abs(seat.credit - equal) <= bound * abs(equal) + 1e-9
        own = [step.credit for step in found.steps if step.seat == seat.seat]
        assert len(own) == len(LINE.taken[seat.seat])
        assert fsum(own) == pytest.approx(seat.credit, abs=1e-9)


def test_who_decides_better_gets_more_and_steps_carry_their_labels() -> None:
    first, second, third = MEMBERS
    found = credit(Given({first: [1, 1, 1, -1], second: [-1, 1, -1], third: [-1, -1]}))
    shares = {seat.seat: seat.credit for seat in found.seats}
    better, middle, worse = (shares[seat] for seat in (first, second, third))
    assert better > middle > worse
    named = [step.label for step in found.steps if step.seat == first]
    assert named[:5] == ["good", "good", "good", "bad", None]
    credits = {step.label: step.credit for step in found.steps if step.seat == first}
    assert credits["good"] > credits[None] > credits["bad"]
    assert [(step.ply, step.seat) for step in found.steps] == sorted((s.ply, s.seat) for s in found.steps)


def test_without_labels_it_is_the_equal_division() -> None:
    each = LINE.result(TEAM) / len(MEMBERS)
    for labels in (dict[int, list[int]](), {seat: [1, 1] for seat in MEMBERS}):
        assert [seat.credit for seat in credit(Given(labels)).seats] == pytest.approx([each] * len(MEMBERS))
    found = credit(Given({MEMBERS[0]: [1, -1], MEMBERS[1]: [1]}), alpha=0)
    assert [seat.credit for seat in found.seats] == pytest.approx([each] * len(MEMBERS))


def test_the_cost_and_what_could_not_be_judged_is_told() -> None:
    found = credit(Given({}, Counter(timeout=2, unread=1)))
    assert found.cost.model_calls == 2 * len(MEMBERS)
    assert found.notes == (
        "labels: given 1",
        "6 decisions neutral: the judge gave no answer in time (timeout)",
        "3 decisions neutral: its answer could not be read (unread)",
        "the judge read 21 tokens and wrote 0",
    )


def test_it_is_made_by_its_name() -> None:
    method = make_method("adca", labeller=RulesLabeller())
    found = asyncio.run(method.credit(RECORD, team=TEAM))
    assert found.method == "adca" and {"bad", None} <= {step.label for step in found.steps}
    with pytest.raises(BadCredit, match="adca alpha: got nan"):
        make_method("adca", labeller=RulesLabeller(), alpha=math.nan)
    with pytest.raises(BadCredit, match="labeller"):
        make_method("adca")


def test_a_team_that_there_is_not() -> None:
    with pytest.raises(BadCredit, match="team: got 'blue'"):
        asyncio.run(Adca(labeller=RulesLabeller()).credit(RECORD, team="blue"))


def test_a_team_of_one_keeps_its_result() -> None:
    record = play("kuhn", lambda *_: None, seats=2)
    for team in ("first", "second"):
        found = asyncio.run(Adca(labeller=RulesLabeller()).credit(record, team=team))
        assert [seat.credit for seat in found.seats] == [found.result]
