import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.curriculum.config import Curve, Scales
from agents.curriculum.curve import Axes, ability, by_dimension, expected, is_flat, pick
from agents.curriculum.rows import AttemptRow
from games.tasks.spec import DIMENSIONS

AXES = Axes(Scales())
LEVELS = st.floats(0, 10)
SEEDS = st.integers(0, 10_000)


def test_levels_run_from_nought_to_ten() -> None:
    assert AXES.level((0, 4, 1, 0.25, 0)) == pytest.approx(0)
    assert AXES.level((8, 44, 6, 1, 6)) == pytest.approx(10)
    assert AXES.level((8, 84, 6, 1, 6)) > 10


@settings(deadline=None)
@given(LEVELS, SEEDS)
def test_difficulties_are_drawn_at_the_level_that_is_asked_for(level: float, seed: int) -> None:
    assert AXES.level(AXES.spread(level, random.Random(seed).random)) == pytest.approx(level, abs=1e-3)
    assert AXES.level(AXES.balanced(level)) == pytest.approx(level)


@settings(deadline=None)
@given(LEVELS, st.floats(-3, 3), SEEDS)
def test_a_move_changes_the_level_by_as_much_as_there_is_room(level: float, by: float, seed: int) -> None:
    rng = random.Random(seed)
    start = AXES.spread(level, rng.random)
    values, moves = AXES.moved(start, by, rng.random)
    wanted = min(10.0, max(0.0, AXES.level(start) + by))
    assert AXES.level(values) == pytest.approx(wanted, abs=1e-6)
    changed = {
        (name, 1 if after > before else -1)
        for name, before, after in zip(DIMENSIONS, start, values, strict=True)
        if after != before
    }
    assert changed <= set(moves)
    assert {direction for _, direction in moves} <= {1 if by > 0 else -1}


@settings(deadline=None, max_examples=30)
@given(st.floats(1, 9), SEEDS)
def test_the_fit_finds_the_ability_behind_attempts(true: float, seed: int) -> None:
    rng = random.Random(seed)
    levels = [rng.uniform(true - 2, true + 2) for _ in range(400)]
    won = [rng.random() < expected(true, level, slope=1.0) for level in levels]
    found = ability(levels, won, Curve(), fade=False)
    assert abs(found.level - true) < 5 * found.error
    assert found.error < 0.15


def test_newer_attempts_count_more() -> None:
    levels, won = [5.0] * 40, [False] * 20 + [True] * 20
    assert ability(levels, won, Curve()).level > 6 > ability(levels, won, Curve(), fade=False).level
    assert ability(levels, won[::-1], Curve()).level < 4


def test_without_attempts_the_ability_is_where_it_is_expected() -> None:
    found = ability([], [], Curve(start=3, start_spread=2))
    assert found == pytest.approx((3, 2))


def test_a_skill_is_flat_if_its_later_attempts_are_no_better() -> None:
    config = Curve(flat_rows=20)
    rising = [0.2 * i for i in range(20)]
    assert is_flat([4.0] * 20, [True, False] * 10, config)
    assert not is_flat(rising, [True, False] * 10, config)
    assert not is_flat([4.0] * 19, [True, False] * 9 + [True], config)  # too few to tell


def test_each_dimension_has_a_curve_and_a_histogram_of_its_own() -> None:
    rows = [
        AttemptRow(i, str(i), "open", (), (float(i), 4.0, 1.0, 1.0, 99.0), success=i < 4) for i in range(8)
    ]
    found = by_dimension(rows, Scales(), bins=4)
    assert list(found) == list(DIMENSIONS)
    assert [(b.low, b.high, b.tasks, b.successes) for b in found["objects"]] == [
        (0, 2, 2, 2),
        (2, 4, 2, 2),
        (4, 6, 2, 0),
        (6, 8, 2, 0),
    ]
    assert [b.tasks for b in found["path_length"]] == [8, 0, 0, 0]
    assert [b.tasks for b in found["distractors"]] == [0, 0, 0, 8]  # beyond the scale


@given(st.lists(st.floats(0, 5), min_size=1, max_size=6), st.floats(0, 1, exclude_max=True))
def test_nothing_of_weight_nought_is_picked(weights: list[float], place: float) -> None:
    found = pick(weights, lambda: place)
    assert 0 <= found < len(weights)
    assert weights[found] > 0 or sum(weights) <= 0
