import pytest

from agents.curriculum.metrics import Share, diversity, first_try, fixed_success, retention, weakest_of
from agents.curriculum.rows import MemoryInRam, TaskRow
from tests.agents.curriculum.helpers import AXES, row


def test_success_at_fixed_difficulty_counts_only_tasks_of_that_level() -> None:
    rows = [
        row(0, level=3.2, success=True),
        row(1, level=5.0, success=False),
        row(2, level=2.8, success=False),
        row(3, level=3.0, success=True, purpose="review"),
        row(4, level=3.0, success=True, purpose="probe"),
    ]
    assert fixed_success(rows, AXES, level=3, width=0.5) == Share(3, 2)


def test_first_tries_are_those_at_levels_never_solved_before() -> None:
    rows = [
        row(0, level=5.0, success=False),  # nothing is old yet
        row(1, level=2.0, success=True),
        row(2, task="a", level=3.0, success=False),  # counts
        row(3, task="a", level=3.0, success=True),  # not a first try
        row(4, level=2.5, success=True),  # not new
        row(5, level=4.0, success=True),  # counts
        row(6, skill="fetch", level=9.0, success=False),  # another skill
    ]
    assert first_try(rows, AXES) == Share(2, 1)


def test_retention_looks_at_solved_tasks_that_rested() -> None:
    rows = [
        row(0, task="a", success=True),
        row(1, task="b", success=False),
        row(5, task="a", success=False),  # rested too little, and starts the rest anew
        row(20, task="a", success=True),  # not yet: 15 since it was touched
        row(30, task="b", success=True),  # never solved before
        row(41, task="a", success=False),
        row(55, task="b", success=True),
    ]
    assert retention(rows, rest=20) == Share(2, 1)


def test_shares_know_how_sure_they_are() -> None:
    assert Share(0, 0).value is None
    assert Share(0, 0).interval is None
    low, high = Share(50, 25).interval or (0, 0)
    assert (low, high) == pytest.approx((0.366, 0.634), abs=0.001)
    assert Share(50, 25).to_data()["value"] == 0.5


def test_diversity_of_the_latest_tasks() -> None:
    tasks = [
        TaskRow(0, "old", "open", (), AXES.balanced(9), similarity=0.99),
        TaskRow(1, "a", "open", (), AXES.balanced(1), similarity=0.4),
        TaskRow(2, "b", "open", (), AXES.balanced(1.2), similarity=0.7),
        TaskRow(3, "c", "fetch", (), AXES.balanced(8), similarity=0.2),
        TaskRow(4, "a", "open", (), AXES.balanced(1), similarity=1.0, purpose="review"),
        TaskRow(5, "d", "dodge", (), AXES.balanced(4), similarity=0.1),
    ]
    found = diversity(tasks, AXES, weakest="open", last=4)
    assert (found.tasks, found.highest_similarity, found.combinations) == (4, 0.7, 3)
    assert (found.weakest, found.weakest_share) == ("open", 0.5)
    assert [b.tasks for b in found.histograms["objects"]] == [2, 0, 1, 0, 1]
    assert found.to_data()["combinations"] == 3
    assert diversity([], AXES, weakest=None).weakest_share == 0


def test_the_weakest_skill_of_a_profile() -> None:
    memory = MemoryInRam()
    for number, (skill, success) in enumerate(
        [("open", True), ("fetch", False), ("fetch", True), ("dodge", True)]
    ):
        memory.add_attempt(row(number, skill=skill, success=success))
    profile = memory.profile()
    assert weakest_of(list(profile.values())) == "fetch"
    assert weakest_of([]) is None
    assert (profile["fetch"].attempts, profile["fetch"].success, profile["fetch"].last) == (2, 0.5, 2)
    assert AXES.level(profile["fetch"].mean_difficulty) == pytest.approx(3)
