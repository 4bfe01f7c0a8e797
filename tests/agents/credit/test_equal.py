"""Equal shares: whatever the result and whoever decided how often, nothing is lost and nobody gets more."""

import asyncio
import math
import time
from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.base import METHODS, make_method
from agents.credit.equal import Equal, equal_credit
from agents.credit.line import Line, read_line
from agents.errors import BadCredit, RecordNotCredited
from agents.players import make_agent
from tests.agents.credit.works import played

AVALON = read_line(played(["random"] * 5, game="avalon", make=make_agent))
KUHN = played(["random"] * 2, game="kuhn", make=make_agent)

RETURNS = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False).map(lambda value: round(value, 6))


def with_returns(line: Line, returns: list[float]) -> Line:
    return replace(line, outcome=line.outcome._replace(returns=tuple(returns)))


def test_it_is_the_method_of_that_name_and_takes_no_settings() -> None:
    assert isinstance(make_method("equal"), Equal)
    assert "equal" in METHODS and Equal.efficient


def test_a_seat_alone_gets_all_of_it() -> None:
    line = read_line(KUHN)
    for seat, team in enumerate(("first", "second")):
        credit = asyncio.run(Equal().credit(KUHN, team=team))
        assert [(one.seat, one.credit) for one in credit.seats] == [(seat, line.outcome.returns[seat])]
        assert [step.ply for step in credit.steps] == [taken.ply for taken in line.taken[seat]]
        assert fsum(step.credit for step in credit.steps) == credit.result


@given(st.lists(RETURNS, min_size=5, max_size=5), st.sampled_from(["good", "evil"]))
def test_shares_are_alike_and_sum_to_the_mean_return(returns: list[float], team: str) -> None:
    line = with_returns(AVALON, returns)
    credit = equal_credit(line, team, began=time.perf_counter())
    members = line.members(team)
    assert credit.result == line.result(team)
    assert [one.seat for one in credit.seats] == list(members)
    shares = [one.credit for one in credit.seats]
    assert fsum(shares) == pytest.approx(credit.result, rel=1e-15, abs=1e-300)
    assert shares == pytest.approx([credit.result / len(members)] * len(members), rel=1e-14, abs=1e-300)
    for one in credit.seats:
        parts = [step.credit for step in credit.steps if step.seat == one.seat]
        assert len(parts) == len(line.taken[one.seat])
        assert parts == pytest.approx([one.credit / len(parts)] * len(parts), rel=1e-13, abs=1e-300)
        assert fsum(parts) == pytest.approx(one.credit, rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("result", [0.9, 1.8, 2.7, 3.1, 5.4, 9.3])
def test_what_rounding_loses_is_not_lost(result: float) -> None:
    line = replace(AVALON, taken=tuple(made[:3] for made in AVALON.taken))
    credit = equal_credit(with_returns(line, [result] * 5), "good", began=time.perf_counter())
    thirds = [credit.result, *(one.credit for one in credit.seats)]
    assert any(fsum([whole / 3] * 3) != whole for whole in thirds), "three that are alike do not sum to it"
    assert fsum(one.credit for one in credit.seats) == credit.result
    for one in credit.seats:
        parts = [step.credit for step in credit.steps if step.seat == one.seat]
        assert fsum(parts) == one.credit


def test_steps_are_those_of_the_team_in_the_order_of_the_match() -> None:
    credit = equal_credit(AVALON, "good", began=time.perf_counter())
    places = [(step.ply, step.seat) for step in credit.steps]
    assert (
        places
        == sorted(places)
        == sorted((taken.ply, taken.seat) for seat in AVALON.members("good") for taken in AVALON.taken[seat])
    )
    assert {step.label for step in credit.steps} == {None}


def test_who_decided_nothing_has_a_share_and_no_steps() -> None:
    seat = AVALON.members("good")[0]
    taken = tuple(() if one == seat else made for one, made in enumerate(AVALON.taken))
    credit = equal_credit(
        with_returns(replace(AVALON, taken=taken), [3.0] * 5), "good", began=time.perf_counter()
    )
    assert credit.seats[0].seat == seat and credit.seats[0].credit == 1.0
    assert seat not in {step.seat for step in credit.steps} and credit.steps


def test_it_names_seats_and_costs_no_replays() -> None:
    credit = equal_credit(AVALON, "evil", began=time.perf_counter())
    for one in credit.seats:
        assert (one.player, one.role) == (f"p{one.seat}", AVALON.outcome.roles[one.seat])
        assert (one.low, one.high, one.contribution) == (None, None, None)
    assert (credit.method, credit.team, credit.baseline, credit.notes) == ("equal", "evil", None, ())
    assert (credit.cost.replays, credit.cost.model_calls) == (0, 0)
    assert math.isfinite(credit.cost.seconds) and credit.cost.seconds >= 0


def test_what_it_cannot_divide_is_refused_as_reading_says() -> None:
    with pytest.raises(BadCredit, match=r"^team: got 'good', this match has first, second$"):
        asyncio.run(Equal().credit(KUHN, team="good"))
    with pytest.raises(RecordNotCredited, match="cut short"):
        asyncio.run(Equal().credit(replace(KUHN, footer=None), team="first"))
