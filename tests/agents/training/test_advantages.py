import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.adca import AdcaSettings, fuse
from agents.errors import NotFinite, TrainingError
from agents.training.advantages import advantages
from agents.training.groups import Baselines
from agents.training.settings import AdvantageSettings
from agents.training.trajectories import Trajectory
from tests.agents.training.made import step, trajectory

OUTCOMES = st.lists(st.floats(-10, 10), min_size=2, max_size=12)


def matches(outcomes: list[float], steps: int = 1, **changes: object) -> list[Trajectory]:
    return [
        trajectory(*[step()] * steps, match=f"m{number}", outcome=outcome, **changes)
        for number, outcome in enumerate(outcomes)
    ]


def test_an_outcome_stands_beside_those_of_its_group() -> None:
    given = matches([1.0, 0.0, 0.0, 1.0], steps=2)
    assert advantages(given, settings=AdvantageSettings()) == [[1.0] * 2, [-1.0] * 2, [-1.0] * 2, [1.0] * 2]
    plain = advantages(given, settings=AdvantageSettings(scale="none"))
    assert [one[0] for one in plain] == [0.5, -0.5, -0.5, 0.5]
    others = advantages(given, settings=AdvantageSettings(scale="none", baseline="leave-one-out"))
    assert [one[0] for one in others] == pytest.approx([2 / 3, -2 / 3, -2 / 3, 2 / 3])


def test_roles_never_share_a_baseline() -> None:
    good, evil = matches([1.0, 0.0], role="good"), matches([5.0, 9.0], role="evil")
    mixed = [good[0], evil[0], good[1], evil[1]]
    found = advantages(mixed, settings=AdvantageSettings(scale="none"))
    assert [one[0] for one in found] == [0.5, -2.0, -0.5, 2.0]
    batch = advantages(mixed, settings=AdvantageSettings(scale="batch"))
    spread = math.sqrt((0.25 + 4 + 0.25 + 4) / 4)
    assert [one[0] for one in batch] == pytest.approx([value / spread for value in (0.5, -2.0, -0.5, 2.0)])


def test_equal_outcomes_and_lone_matches_teach_nothing() -> None:
    assert advantages(matches([2.0, 2.0]), settings=AdvantageSettings()) == [[0.0], [0.0]]
    assert advantages(matches([2.0]), settings=AdvantageSettings()) == [[0.0]]
    assert advantages([], settings=AdvantageSettings()) == []


def test_a_lone_match_is_compared_with_those_before_it() -> None:
    running = Baselines()
    settings = AdvantageSettings()
    assert advantages(matches([1.0]), settings=settings, baselines=running) == [[0.0]]
    advantages(matches([0.0, 2.0]), settings=settings, baselines=running)
    mean, spread = 1.0, math.sqrt(0.1 * (4 / 2) + 0.9 * 1.0 - 1.0)
    (found,) = advantages(matches([3.0]), settings=settings, baselines=running)
    assert found == pytest.approx([(3.0 - mean) / spread])


def test_failures_have_their_price() -> None:
    clean, failing = matches([1.0, 1.0])
    from dataclasses import replace

    failing = replace(failing, causes={"unparsed": 2, "forced": 1, "no_tokens": 5})
    settings = AdvantageSettings(scale="none", failure_penalty=0.1)
    assert advantages([clean, failing], settings=settings) == [
        [pytest.approx(0.1)],
        [pytest.approx(-0.1)],
    ]


def test_other_outcomes_can_take_the_place_of_returns() -> None:
    found = advantages(matches([1.0, 1.0]), settings=AdvantageSettings(scale="none"), outcomes=[0.75, 0.25])
    assert found == [[0.25], [-0.25]]


def test_process_is_fused_group_by_group() -> None:
    first = trajectory(step(), step(), match="a", outcome=1.0)
    second = trajectory(step(), step(), step(), match="b", outcome=0.0)
    process = partial(fuse, settings=AdcaSettings(alpha=0.1, bound=0.5))
    found = advantages(
        [first, second], settings=AdvantageSettings(), labels=[[1, -1], [-1, -1, 1]], process=process
    )
    assert found[0] == pytest.approx([1.0338, 0.9155], abs=5e-5)
    assert found[1] == pytest.approx([-1.0507, -0.9662, -0.8817], abs=5e-5)


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    settings = AdvantageSettings()
    with pytest.raises(NotFinite, match=r"^match m0, seat 0: the outcome is nan$"):
        advantages(matches([math.nan, 1.0]), settings=settings)
    with pytest.raises(TrainingError, match="together, or neither"):
        advantages(matches([1.0]), settings=settings, labels=[[1]])
    with pytest.raises(TrainingError, match="2 labels for 1 steps"):
        advantages(matches([1.0]), settings=settings, labels=[[1, 1]], process=fuse)
    with pytest.raises(TrainingError, match="do not fit together"):
        advantages(matches([1.0]), settings=settings, outcomes=[1.0, 2.0])


@given(OUTCOMES)
def test_advantages_of_a_group_sum_to_nothing_and_keep_the_order(outcomes: list[float]) -> None:
    found = [one[0] for one in advantages(matches(outcomes), settings=AdvantageSettings(scale="none"))]
    assert sum(found) == pytest.approx(0.0, abs=1e-9)
    assert all(
        (a <= b) or (x >= y)
        for a, x in zip(outcomes, found, strict=True)
        for b, y in zip(outcomes, found, strict=True)
    )


@given(OUTCOMES, st.floats(-5, 5), st.floats(0.1, 10))
def test_scaled_advantages_do_not_depend_on_the_unit(
    outcomes: list[float], shift: float, unit: float
) -> None:
    own = advantages(matches(outcomes), settings=AdvantageSettings())
    other = advantages(matches([shift + unit * one for one in outcomes]), settings=AdvantageSettings())
    if max(outcomes) - min(outcomes) > 1e-3:
        assert [one[0] for one in other] == pytest.approx([one[0] for one in own], abs=1e-6)
