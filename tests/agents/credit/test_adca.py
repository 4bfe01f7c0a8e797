import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.adca import (
    AdcaSettings,
    advantages,
    fuse,
    spread_over_tokens,
    standardise,
    standardise_labels,
)
from agents.errors import BadCredit

OUTCOMES = st.floats(-1e6, 1e6)
LABELS = st.lists(st.sampled_from([-1, 0, 1]), max_size=12)
GROUPS = st.lists(st.tuples(OUTCOMES, LABELS), max_size=8)
CHECK: list[tuple[float, list[int]]] = [(1.0, [1, -1]), (0.0, [-1, -1, 1])]


def test_the_check_vector() -> None:
    first, second = advantages(CHECK, AdcaSettings(alpha=0.1))
    assert first == pytest.approx([1.0338, 0.9155], abs=5e-5)
    assert second == pytest.approx([-1.0507, -0.9662, -0.8817], abs=5e-5)


def test_labels_are_standardised_with_equal_weight_per_trajectory() -> None:
    first, second = standardise_labels([[1, -1], [-1, -1, 1]])
    sigma = math.sqrt(35) / 6
    assert list(first) == pytest.approx([(7 / 6) / sigma, (-5 / 6) / sigma])
    assert list(second) == pytest.approx([(-5 / 6) / sigma, (-5 / 6) / sigma, (7 / 6) / sigma])


def test_without_a_bound_in_reach_process_is_a_plain_suffix_sum() -> None:
    (steps, _) = fuse([1.0, -1.0], [[1, 1, -1], [-1]], AdcaSettings(alpha=0.5, bound=100))
    z = standardise_labels([[1, 1, -1], [-1]])[0]
    assert steps == pytest.approx([1 + 0.5 * (z[0] + z[1] + z[2]), 1 + 0.5 * (z[1] + z[2]), 1 + 0.5 * z[2]])


def test_a_discount_lets_labels_of_later_steps_count_less() -> None:
    labels: list[list[int]] = [[1, 0, -1], [-1, 1]]
    z = standardise_labels(labels)[0]
    for discount, process in (
        (0.0, [z[0], 0.0, z[2]]),
        (0.5, [z[0] + 0.25 * z[2], 0.5 * z[2], z[2]]),
        (1.0, [z[0] + z[2], z[2], z[2]]),
    ):
        (steps, _) = fuse([1.0, -1.0], labels, AdcaSettings(alpha=0.5, bound=100, discount=discount))
        assert steps == pytest.approx([1 + 0.5 * value for value in process])


@given(GROUPS, st.floats(0, 10), st.floats(0, 0.99))
def test_process_never_outweighs_the_outcome(
    group: list[tuple[float, list[int]]], alpha: float, bound: float
) -> None:
    outcome = standardise([value for value, _ in group])
    for known, steps in zip(outcome, advantages(group, AdcaSettings(alpha, bound)), strict=True):
        limit = bound * (abs(known) or 1.0)
        for step in steps:
            assert abs(step - known) <= limit + 1e-9
            assert known == 0 or step * known > 0


@given(GROUPS)
def test_every_step_gets_one_finite_advantage(group: list[tuple[float, list[int]]]) -> None:
    steps = advantages(group)
    assert [len(one) for one in steps] == [len(labels) for _, labels in group]
    assert all(math.isfinite(value) for one in steps for value in one)


@given(GROUPS, st.randoms())
def test_the_order_of_trajectories_does_not_matter(group: list[tuple[float, list[int]]], rng: Any) -> None:
    order = list(range(len(group)))
    rng.shuffle(order)
    steps, shuffled = advantages(group), advantages([group[i] for i in order])
    for place, i in enumerate(order):
        assert shuffled[place] == pytest.approx(steps[i], abs=1e-7)


@given(GROUPS)
def test_a_group_twice_is_the_group(group: list[tuple[float, list[int]]]) -> None:
    steps = advantages(group)
    for once, again in zip(steps, advantages([*group, *group])[: len(group)], strict=True):
        assert again == pytest.approx(once, abs=1e-7)


@given(st.lists(st.tuples(st.integers(-50, 50), LABELS), max_size=8), st.integers(1, 9), st.integers(-9, 9))
def test_the_unit_of_the_outcome_does_not_matter(
    group: list[tuple[int, list[int]]], scale: int, shift: int
) -> None:
    steps = advantages([(float(outcome), labels) for outcome, labels in group])
    other = advantages([(float(scale * outcome + shift), labels) for outcome, labels in group])
    for one, two in zip(steps, other, strict=True):
        assert two == pytest.approx(one, abs=1e-9)


@given(GROUPS)
def test_turning_everything_around_turns_the_advantages_around(group: list[tuple[float, list[int]]]) -> None:
    turned = [(-outcome, [-label for label in labels]) for outcome, labels in group]
    for one, two in zip(advantages(group), advantages(turned), strict=True):
        assert two == pytest.approx([-value for value in one], abs=1e-9)


@given(GROUPS, st.integers(2, 4))
def test_a_longer_trajectory_of_the_same_kind_weighs_no_more(
    group: list[tuple[float, list[int]]], times: int
) -> None:
    labels = [labels for _, labels in group]
    longer = [one * (times if i == 0 else 1) for i, one in enumerate(labels)]
    for one, two in zip(standardise_labels(labels), standardise_labels(longer), strict=True):
        assert list(two)[: len(one)] == pytest.approx(list(one), abs=1e-9)


@given(GROUPS)
def test_neutral_steps_say_nothing(group: list[tuple[float, list[int]]]) -> None:
    for one, (_, labels) in zip(standardise_labels([labels for _, labels in group]), group, strict=True):
        assert all(value == 0 for value, label in zip(one, labels, strict=True) if label == 0)
    padded = [(outcome, [*labels, 0]) for outcome, labels in group]
    for one, two in zip(advantages(group), advantages(padded), strict=True):
        assert two[:-1] == pytest.approx(one, abs=1e-9)


@given(OUTCOMES, st.sampled_from([-1, 0, 1]), st.integers(1, 5), st.integers(1, 5))
def test_where_all_is_equal_nothing_is_learned(outcome: float, label: int, many: int, steps: int) -> None:
    assert advantages([(outcome, [label] * steps)] * many) == [[0.0] * steps] * many


@given(GROUPS, st.floats(1e-3, 1e3))
def test_credits_may_stand_for_labels_in_any_unit(group: list[tuple[float, list[int]]], unit: float) -> None:
    scaled = [(outcome, [unit * label for label in labels]) for outcome, labels in group]
    for one, two in zip(advantages(group), advantages(scaled), strict=True):
        assert two == pytest.approx(one, abs=1e-9)


def test_few_trajectories_or_none() -> None:
    assert advantages([]) == []
    assert advantages([(3.0, [])]) == [[]]
    assert advantages([(3.0, [1, -1])]) == [pytest.approx([0.0, -0.1], abs=1e-9)]
    assert advantages([(3.0, []), (1.0, [1])]) == [[], [pytest.approx(-1.0)]]


@pytest.mark.parametrize("outcome", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused(outcome: float) -> None:
    with pytest.raises(BadCredit, match=r"adca outcome: got (nan|-?inf), a finite number is needed"):
        advantages([(1.0, [1]), (outcome, [1])])
    with pytest.raises(BadCredit, match="adca outcome"):
        fuse([outcome], [[1]])


@pytest.mark.parametrize("label", [math.nan, math.inf, "good", None])
def test_other_labels_are_refused(label: Any) -> None:
    with pytest.raises(BadCredit, match=r"adca label: got .*, needed is 1 \(good\), 0"):
        advantages([(1.0, [label])])


@pytest.mark.parametrize("name", ["alpha", "bound", "discount"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1])
def test_settings_that_mean_nothing_are_refused(name: str, value: float) -> None:
    with pytest.raises(BadCredit, match=f"adca {name}: got"):
        AdcaSettings(**{name: value})


def test_a_discount_is_at_most_one() -> None:
    with pytest.raises(BadCredit, match=r"adca discount: got 1\.5, 0 to 1 is allowed"):
        AdcaSettings(discount=1.5)


def test_a_step_is_spread_over_its_tokens() -> None:
    assert spread_over_tokens([1.5, -2.0, 0.5], [2, 0, 1]) == [[1.5, 1.5], [], [0.5]]
    with pytest.raises(BadCredit, match="2 steps"):
        spread_over_tokens([1.0, 2.0], [1])
    with pytest.raises(BadCredit, match="trajectories"):
        fuse([1.0], [])
