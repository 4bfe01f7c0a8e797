import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.estimate import half_width, interval, student

NUMBERS = st.lists(st.floats(-100, 100), min_size=2, max_size=20)


def test_an_interval_is_students() -> None:
    assert student(4) == pytest.approx(2.7764, abs=1e-4)
    low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert low is not None and high is not None
    assert (low, high) == pytest.approx((3 - 1.9632, 3 + 1.9632), abs=1e-4)


def test_a_single_value_has_none() -> None:
    assert half_width([1.0]) is None and interval([], spread=2.0) == (None, None)


def test_values_that_are_all_alike_close_the_interval_with_their_number() -> None:
    widths = [half_width([1.0] * count, spread=2.0) for count in (2, 4, 8, 32)]
    assert None not in widths and widths == sorted(widths, reverse=True)  # type: ignore[type-var]
    assert widths[-1] == pytest.approx(student(31) / (32 * 31) ** 0.5)
    assert half_width([1.0] * 4) == 0.0, "nothing else was ever seen"


@given(NUMBERS, st.floats(0, 10), st.floats(-5, 5))
def test_an_interval_is_around_its_centre_and_wider_with_spread(
    values: list[float], spread: float, centre: float
) -> None:
    plain, wide = half_width(values), half_width(values, spread=spread)
    assert plain is not None and wide is not None and wide >= plain >= 0
    low, high = interval(values, spread=spread, centre=centre)
    assert low is not None and high is not None
    assert low == pytest.approx(centre - wide) and high == pytest.approx(centre + wide)
