"""Shapley values: their axioms, games solved by hand, and an oracle that goes through every order."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.base import exact
from agents.credit.coalitions import along, antithetic, chain, influence, shapley, weights

VALUES = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.integers(-50, 50).map(float), min_size=1 << n, max_size=1 << n)
)


def size(values: Sequence[float]) -> int:
    return len(values).bit_length() - 1


def oracle(values: Sequence[float]) -> list[Fraction]:
    """Average what each member adds over every order, in exact numbers."""
    n = size(values)
    total = [Fraction(0)] * n
    orders = list(permutations(range(n)))
    for order in orders:
        inside: set[int] = set()
        for member in order:
            before = sum(1 << i for i in inside)
            inside.add(member)
            total[member] += Fraction(values[before | 1 << member]) - Fraction(values[before])
    return [value / len(orders) for value in total]


@given(VALUES)
def test_is_what_every_order_gives(values: list[float]) -> None:
    assert shapley(values, members=size(values)) == pytest.approx(
        [float(v) for v in oracle(values)], abs=1e-9
    )


@given(VALUES)
def test_sums_to_what_all_add_to_none(values: list[float]) -> None:
    assert fsum(shapley(values, members=size(values))) == pytest.approx(values[-1] - values[0], abs=1e-9)


@given(VALUES, st.data())
def test_a_dummy_gets_nothing(values: list[float], data: st.DataObject) -> None:
    n = size(values)
    dummy = data.draw(st.integers(0, n - 1))
    values = [values[mask & ~(1 << dummy)] for mask in range(1 << n)]
    assert shapley(values, members=n)[dummy] == 0
    assert influence(values, members=n)[dummy] == 0


@given(VALUES)
def test_those_that_can_be_exchanged_get_the_same(values: list[float]) -> None:
    n = size(values)
    by_size = [values[(1 << k) - 1] for k in range(n + 1)]
    found = shapley([by_size[mask.bit_count()] for mask in range(1 << n)], members=n)
    assert found == pytest.approx([found[0]] * n)


@given(VALUES, st.data())
def test_is_additive(values: list[float], data: st.DataObject) -> None:
    n = size(values)
    other = data.draw(st.lists(st.integers(-50, 50).map(float), min_size=1 << n, max_size=1 << n))
    both = [a + b for a, b in zip(values, other, strict=True)]
    parts = zip(shapley(values, members=n), shapley(other, members=n), strict=True)
    assert shapley(both, members=n) == pytest.approx([a + b for a, b in parts], abs=1e-9)


def of(worth: dict[frozenset[int], float], n: int) -> list[float]:
    return [worth.get(frozenset(i for i in range(n) if mask >> i & 1), 0.0) for mask in range(1 << n)]


def test_games_solved_by_hand() -> None:
    # One left glove and two right ones: a pair is worth 1.
    gloves = of({frozenset(s): 1.0 for s in ([0, 1], [0, 2], [0, 1, 2])}, 3)
    assert shapley(gloves, members=3) == pytest.approx([2 / 3, 1 / 6, 1 / 6])
    # A runway for planes that need 1, 2 and 3: each pays its part of each stretch.
    runway = [float(max((i + 1 for i in range(3) if mask >> i & 1), default=0)) for mask in range(8)]
    assert shapley(runway, members=3) == pytest.approx([1 / 3, 5 / 6, 11 / 6])
    # Votes of 3, 2, 1, 1 with 4 to win: the classic power index.
    votes = [float(sum(w for i, w in enumerate((3, 2, 1, 1)) if mask >> i & 1) >= 4) for mask in range(16)]
    assert shapley(votes, members=4) == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])


def test_influence_sees_what_cancels_out() -> None:
    # Alone 0 helps, beside 1 it harms as much.
    values = of({frozenset([0]): 1.0, frozenset([1]): 1.0}, 2)
    assert shapley(values, members=2) == [0.0, 0.0]
    assert influence(values, members=2) == [1.0, 1.0]


def test_weights_are_shares_of_the_orders() -> None:
    assert weights(3) == pytest.approx((1 / 3, 1 / 6, 1 / 3))
    assert weights(1) == (1.0,)


def test_orders_come_with_their_reverse_and_are_uniform() -> None:
    rng = random.Random(1)
    seen = [antithetic(3, rng) for _ in range(3000)]
    assert all(back == order[::-1] for order, back in seen)
    counts = [sum(order == way for order, _ in seen) for way in permutations(range(3))]
    assert min(counts) > 400


@given(VALUES)
def test_along_all_orders_is_the_value(values: list[float]) -> None:
    n = size(values)
    orders = list(permutations(range(n)))
    added = along(orders, dict(enumerate(values)), members=n)
    means = [fsum(row) / len(row) for row in added]
    assert means == pytest.approx(shapley(values, members=n), abs=1e-9)
    assert next(mask for _, mask, _ in chain(orders[0])) == 0


def test_values_must_be_of_all_coalitions() -> None:
    with pytest.raises(ValueError, match="3 members have 8 coalitions"):
        shapley([0.0] * 4, members=3)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=9), st.floats(-3, 3))
def test_exact_shares_sum_to_the_total(shares: list[float], total: float) -> None:
    found = exact(shares, total=total)
    assert fsum(found) == pytest.approx(total, abs=1e-14)
    assert found == pytest.approx(shares, abs=abs(total - fsum(shares)) + 1e-9)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=9), st.sampled_from([-1.0, 1.0, 2.0]))
def test_exact_shares_sum_exactly_where_floats_allow_it(shares: list[float], total: float) -> None:
    assert fsum(exact(shares, total=total)) == total
