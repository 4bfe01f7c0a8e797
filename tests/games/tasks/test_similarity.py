"""What counts as alike: copies in disguise do, other tasks do not."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.tasks.cases import seed_case
from games.tasks.generate import Knobs, generate
from games.tasks.grid_layout import COLORS
from games.tasks.similarity import BLOCKS, NEAR_DUPLICATE, SIZE, features, similarity
from games.tasks.spec import TaskSpec
from games.tasks.text_generate import generate_text
from tests.games.tasks.worlds_for_tests import goals_for, grids

RICH = Knobs(side=10, objects=6, rule_depth=4, distractors=3, patrols=1)


def turned(spec: TaskSpec) -> TaskSpec:
    """The same task, x and y exchanged."""
    data = spec.to_data()
    layout = data["layout"]
    layout["rows"] = ["".join(column) for column in zip(*layout["rows"], strict=True)]
    layout["start"].reverse()
    for thing in layout["things"]:
        for cell in [thing["at"]] if "at" in thing else thing.get("path", []):
            cell.reverse()
    return TaskSpec.from_data(data)


def mirrored(spec: TaskSpec) -> TaskSpec:
    data = spec.to_data()
    layout = data["layout"]
    last = len(layout["rows"]) - 1
    layout["rows"].reverse()
    cells = [layout["start"]]
    for thing in layout["things"]:
        cells += [thing["at"]] if "at" in thing else thing.get("path", [])
    for cell in cells:
        cell[1] = last - cell[1]
    return TaskSpec.from_data(data)


def recolored(spec: TaskSpec) -> TaskSpec:
    other = dict(zip(COLORS, COLORS[3:] + COLORS[:3], strict=True))
    text = re.sub("|".join(COLORS), lambda found: other[found.group()], json.dumps(spec.to_data()))
    return TaskSpec.from_text(text)


def like(a: TaskSpec, b: TaskSpec) -> float:
    return similarity(features(a), features(b))


@given(st.data())
def test_a_vector_has_length_one_and_no_negative_number(data: st.DataObject) -> None:
    grid = data.draw(grids())
    goal = data.draw(goals_for(grid))
    vector = features(TaskSpec.make(grid, goal=goal, budget=data.draw(st.integers(1, 1000))))
    assert len(vector) == SIZE == sum(slots for slots, _ in BLOCKS.values())
    assert min(vector) >= 0
    assert math.isclose(math.hypot(*vector), 1)
    assert similarity(vector, vector) == pytest.approx(1)


@pytest.mark.parametrize("disguise", [turned, mirrored, recolored])
@pytest.mark.parametrize("seed", range(5))
def test_a_copy_in_disguise_is_the_same_task(disguise: Any, seed: int) -> None:
    spec = generate(seed, RICH)
    copy = disguise(spec)
    assert copy.hash != spec.hash
    assert like(spec, copy) == pytest.approx(1)


def renamed(spec: TaskSpec) -> TaskSpec:
    """The same text task, everything called something else."""
    words = spec.make_world().vocabulary()
    names = sorted({name for places in words.values() for part in places for name in part})
    others = {name: f"thing{i} {chr(122 - i % 26)}" for i, name in enumerate(names)}

    def other(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: other(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [other(inner) for inner in value]
        return others.get(value, value) if isinstance(value, str) else value

    return TaskSpec.from_data(other(spec.to_data()))


@pytest.mark.parametrize("seed", range(5))
def test_a_text_task_with_other_names_is_the_same_and_other_tasks_are_not(seed: int) -> None:
    knobs = Knobs(objects=4, rule_depth=3, distractors=2)
    spec = generate_text(seed, knobs)
    copy = renamed(spec)
    assert copy.hash != spec.hash
    assert like(spec, copy) == pytest.approx(1)
    assert max(like(spec, generate_text(seed + 100 + i, knobs)) for i in range(10)) < NEAR_DUPLICATE


def test_what_a_task_says_about_itself_does_not_count() -> None:
    spec = generate(1, RICH)
    data = spec.to_data()
    for field in ("skills", "difficulty", "generator"):
        del data[field]
    assert features(TaskSpec.from_data(data)) == features(spec)


def test_small_changes_stay_near_and_other_tasks_do_not() -> None:
    spec = generate(2, RICH)
    data = spec.to_data()
    data["budget"] += 1
    assert like(spec, TaskSpec.from_data(data)) >= NEAR_DUPLICATE
    others = [generate(seed, RICH) for seed in range(3, 23)]
    assert max(like(spec, other) for other in others) < NEAR_DUPLICATE
    assert max(like(seed_case(), other) for other in others) < 0.75


def test_each_block_counts() -> None:
    base = seed_case().to_data()
    alike = {}
    for name, change in {
        "goal": {"goal": {"at": "exit"}},
        "budget": {"budget": 300},
        "layout": {"layout": {**base["layout"], "start": [6, 2]}},
    }.items():
        alike[name] = like(seed_case(), TaskSpec.from_data({**base, **change}))
    assert 0.5 < alike["goal"] < alike["budget"] < NEAR_DUPLICATE
    assert alike["layout"] < NEAR_DUPLICATE


def test_vectors_are_the_same_on_every_machine() -> None:
    moment = sum(i * value for i, value in enumerate(features(seed_case())))
    assert moment == pytest.approx(920.2184888708059, rel=1e-9)
