import json
from collections.abc import Mapping
from typing import Any

import pytest

from agents.curriculum.makers import Drawn, GridMaker, knobs_for
from agents.curriculum.proposals import ProposerMaker
from agents.curriculum.rows import MemoryInRam, TaskRow
from agents.curriculum.strategies import Request
from games.tasks.cases import seed_case
from games.tasks.difficulty import SKILLS, measured
from games.tasks.spec import DIMENSIONS
from tests.agents.curriculum.helpers import AXES

SEED = measured(seed_case())
assert SEED is not None


def kept() -> MemoryInRam:
    """A memory of the seed case."""
    memory = MemoryInRam()
    memory.add_task(TaskRow(0, SEED.hash, "open", SEED.skills, Drawn.of(SEED).difficulty), SEED)
    return memory


@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("level", [1.0, 4.0, 7.0])
def test_grid_tasks_come_near_what_was_asked(skill: str, level: float) -> None:
    maker, memory = GridMaker(), MemoryInRam()
    found = [
        maker.make(Request(skill, AXES.balanced(level), "random"), seed=seed, memory=memory)
        for seed in range(6)
    ]
    made = [task for task in found if task is not None]
    assert len(made) >= 5
    for task in made:
        assert skill in task.skills
        assert abs(AXES.level(task.difficulty) - level) < 1.6


def test_a_child_moves_along_the_dimensions_that_were_asked() -> None:
    request = Request("open", Drawn.of(SEED).difficulty, "bottleneck", SEED.hash, (("path_length", 1),))
    child = GridMaker().make(request, seed=1, memory=kept())
    assert child is not None
    assert child.parent == SEED.hash
    before = dict(SEED.difficulty)
    assert dict(zip(DIMENSIONS, child.difficulty, strict=True))["path_length"] > before["path_length"]


def test_similarity_is_told_to_the_tasks_that_the_memory_keeps() -> None:
    memory, maker = kept(), GridMaker()
    rows = memory.tasks(limit=5)
    assert maker.nearest(Drawn.of(SEED), rows, memory) == pytest.approx(1)
    other = maker.make(Request("dodge", AXES.balanced(6), "random"), seed=5, memory=memory)
    assert other is not None
    assert maker.nearest(other, rows, memory) < 0.9
    assert maker.nearest(other, (), memory) == 0
    assert maker.nearest(other, rows, MemoryInRam()) == 0


def test_knobs_keep_within_their_limits_far_beyond_the_scales() -> None:
    knobs = knobs_for(Request("dodge", (99.0, 999.0, 99.0, 9.0, 99.0), "random"))
    assert (knobs.objects, knobs.path_length, knobs.rule_depth, knobs.time_pressure) == (12, 120, 8, 1)
    assert knobs.patrols == 1


def test_a_proposer_is_asked_under_the_same_schema_and_told_what_was_wrong() -> None:
    asked: list[Mapping[str, Any]] = []
    closed = {**seed_case().to_data(), "budget": 3}
    answers = [
        "nonsense",
        json.dumps(closed),
        json.dumps(seed_case().to_data()),
        json.dumps(seed_case().to_data()),
    ]

    def ask(data: Mapping[str, Any]) -> str:
        asked.append(data)
        return answers[len(asked) - 1]

    maker, memory = ProposerMaker(ask, name="policy-1"), kept()
    request = Request("open", AXES.balanced(3), "bottleneck", SEED.hash, (("objects", 1),))
    assert maker.make(request, seed=1, memory=memory) is None
    assert maker.refusal == "task: not JSON, Expecting value at line 1 column 1"
    assert maker.make(request, seed=2, memory=memory) is None
    assert maker.refusal == "task: not solvable within its budget"
    task = maker.make(request, seed=3, memory=memory)
    assert task is not None
    assert task.difficulty == Drawn.of(SEED).difficulty
    assert maker.refusal == ""
    assert maker.make(Request("dodge", AXES.balanced(3), "random"), seed=4, memory=memory) is None
    assert maker.refusal.endswith("but not dodge")
    assert [data["refused"] for data in asked] == [
        "",
        "task: not JSON, Expecting value at line 1 column 1",
        "task: not solvable within its budget",
        "",
    ]
    assert asked[0]["parent"] == SEED.to_data()
    assert asked[0]["moves"] == [["objects", 1]]
    assert json.loads(json.dumps(asked[0])) == asked[0]
