import pytest

from agents.curriculum.shift import compare
from agents.curriculum.truth import planted
from tests.agents.curriculum.helpers import AXES, row


def test_too_few_attempts_tell_nothing() -> None:
    rows = [row(i) for i in range(19)]
    assert compare(rows, rows, AXES).verdict == "too few"


def test_the_parts_sum_to_the_difference() -> None:
    found = planted(seed=1, size=400, harder=1.0, worse=1.0)
    assert found.by_tasks + found.by_agent == pytest.approx(found.after - found.before, abs=0.02)
    assert found.by_tasks < 0 > found.by_agent
    assert found.to_data()["verdict"] == found.verdict == "both"


def test_stretches_in_which_all_or_nothing_succeeded_are_no_trouble() -> None:
    won, lost = [row(i, success=True) for i in range(50)], [row(i, success=False) for i in range(50)]
    assert compare(won, lost, AXES).verdict == "worse"
    assert compare(won, won, AXES).verdict == compare(lost, won, AXES).verdict == "same"


def test_tasks_that_keep_up_with_a_better_agent_are_no_alarm() -> None:
    before = [row(i, level=level, success=level < 4) for i in range(300) for level in [2 + (i % 9) / 2]]
    after = [row(i, level=level, success=level < 5) for i in range(300) for level in [3 + (i % 9) / 2]]
    found = compare(before, after, AXES)
    assert found.verdict == "same"
    assert found.z_tasks < -5 < 5 < found.z_agent
    assert found.z_success == 0
    left_behind = [row(i, level=level, success=level < 4) for i in range(300) for level in [3 + (i % 9) / 2]]
    assert compare(before, left_behind, AXES).verdict == "harder"


def test_a_generator_that_follows_a_learner_raises_no_alarm_and_one_that_aims_higher_does() -> None:
    learning = planted(seed=0, size=200, closed=True, learns=True)
    assert learning.verdict == "same"
    assert learning.by_tasks < -0.05 < 0.05 < learning.by_agent
    assert planted(seed=0, size=200, closed=True, harder=1.0).verdict == "harder"


def test_many_looks_share_the_false_alarms() -> None:
    before, after = ([row(i, success=i % 10 < share) for i in range(100)] for share in (6, 4))
    assert compare(before, after, AXES).verdict == "worse"
    assert compare(before, after, AXES, looks=25).verdict == "same"


def test_the_same_success_at_easier_tasks_is_a_worse_agent() -> None:
    before = [row(i, level=4 + (i % 5) / 2, success=i % 2 == 0) for i in range(300)]
    after = [row(i, level=2 + (i % 5) / 2, success=i % 2 == 0) for i in range(300)]
    assert compare(before, after, AXES).verdict in ("same", "worse")  # within stretches, level told nothing
    won = [row(i, level=level, success=level < 4) for i in range(300) for level in [2 + (i % 9) / 2]]
    lost = [row(i, level=level, success=level < 3) for i in range(300) for level in [1 + (i % 9) / 2]]
    assert compare(won, lost, AXES).verdict == "worse"
