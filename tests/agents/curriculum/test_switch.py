from dataclasses import replace

import pytest

from agents.curriculum.config import Switch
from agents.curriculum.switch import hopeless, reason_not_to_train, sort
from tests.agents.curriculum.helpers import row

ROW = replace(row(0, task="a" * 64, skill="open"), generator="g1", judge="j1")


@pytest.mark.parametrize(
    ("switch", "reason"),
    [
        (Switch(), None),
        (Switch(train=False), "training is switched off"),
        (Switch(quarantined_tasks=("a" * 64,)), "task aaaaaaaaaaaa is quarantined"),
        (Switch(quarantined_generators=("g1",)), "generator g1 is quarantined"),
        (Switch(quarantined_judges=("j1",)), "judge j1 is quarantined"),
        (Switch(skills=("fetch",)), "skill open does not train"),
        (Switch(skills=("open",)), None),
    ],
)
def test_what_may_not_train_has_a_reason(switch: Switch, reason: str | None) -> None:
    assert reason_not_to_train(ROW, switch) == reason


def test_tasks_that_nobody_ever_solved_are_quarantined_and_tests_are_held_out() -> None:
    rows = [row(i, task="never", success=False) for i in range(12)]
    rows += [row(12 + i, task="once", success=i == 11) for i in range(12)]
    rows += [
        row(24, task="few", success=False),
        row(25, task="held", purpose="test"),
        row(26, purpose="probe"),
    ]
    assert hopeless(rows, Switch()) == {"never"}
    found = sort(rows, Switch(), suspects=["few"])
    assert [one.task for one in found.train] == ["once"] * 12
    assert [one.number for one in found.held_out] == [25, 26]
    assert {(one.task, reason) for one, reason in found.quarantined} == {
        ("never", "task never is suspect"),
        ("few", "task few is suspect"),
    }
    assert len(found.train) + len(found.held_out) + len(found.quarantined) == len(rows)
