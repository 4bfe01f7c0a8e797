"""Small bars and plots that fit into a line."""

from hypothesis import given
from hypothesis import strategies as st

from clients.spectator.bars import STEPS, interval, spark
from clients.spectator.drawing import width_of


def test_values_are_drawn_from_the_lowest_to_the_highest_column() -> None:
    assert spark([0, 0.5, 1], scale=(0.0, 1.0), cells=9) == "▁▅█"
    assert spark([-3, 9], scale=(0.0, 1.0), cells=9) == "▁█"
    assert spark([0, 0, 1, 1], scale=(0.0, 1.0), cells=2) == "▁█"
    assert spark([None, 1, None], scale=(0.0, 1.0), cells=9) == "·█·"
    assert spark([None, 1], scale=(0.0, 1.0), cells=1) == "█"
    assert spark([], scale=(0.0, 1.0), cells=9) == spark([1], scale=(0.0, 1.0), cells=0) == ""
    assert spark([7], scale=(7.0, 7.0), cells=3) == "▅"


@given(
    st.lists(st.none() | st.floats(-10, 10), max_size=60),
    st.integers(0, 40),
    st.floats(-5, 0),
    st.floats(0, 5),
)
def test_a_plot_never_is_wider_than_asked(
    values: list[float | None], cells: int, low: float, high: float
) -> None:
    drawn = spark(values, scale=(low, high), cells=cells)
    assert len(drawn) == min(cells, len(values)) and set(drawn) <= {*STEPS, "·"}


def test_an_interval_is_a_bar_with_its_value() -> None:
    bar = interval(1.0, 2.0, 3.0, scale=(0.0, 4.0), cells=8)
    assert "".join(text for text, _ in bar) == "··━━●━━·" and width_of(bar) == 8
