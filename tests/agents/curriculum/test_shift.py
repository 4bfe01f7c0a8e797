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


def test_the_same_success_at_easier_tasks_is_a_worse_agent() -> None:
    before = [row(i, level=4 + (i % 5) / 2, success=i % 2 == 0) for i in range(300)]
    after = [row(i, level=2 + (i % 5) / 2, success=i % 2 == 0) for i in range(300)]
    assert compare(before, after, AXES).verdict in ("same", "worse")  # within stretches, level told nothing
    won = [row(i, level=level, success=level < 4) for i in range(300) for level in [2 + (i % 9) / 2]]
    lost = [row(i, level=level, success=level < 3) for i in range(300) for level in [1 + (i % 9) / 2]]
    assert compare(won, lost, AXES).verdict == "worse"
