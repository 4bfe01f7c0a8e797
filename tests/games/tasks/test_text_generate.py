from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.errors import BadTask
from games.tasks.check import Attempt, cheats, check
from games.tasks.difficulty import SKILLS, measured
from games.tasks.generate import Knobs, focused
from games.tasks.goals import Never
from games.tasks.solver import solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.text import TextWorld
from games.tasks.text_generate import generate_text, text_level

knobs_strategy = st.builds(
    Knobs,
    side=st.integers(8, 12),
    objects=st.integers(0, 5),
    rule_depth=st.integers(1, 4),
    time_pressure=st.sampled_from([0.3, 0.5, 1.0]),
    distractors=st.integers(0, 3),
    obstacles=st.integers(0, 8),
    avoid=st.booleans(),
    deliver=st.booleans(),
    before=st.booleans(),
)


@settings(max_examples=40)
@given(st.integers(0, 2**63 - 1), knobs_strategy)
def test_what_is_generated_is_valid_solvable_measured_and_the_same_again(seed: int, knobs: Knobs) -> None:
    spec = generate_text(seed, knobs)
    assert generate_text(seed, knobs) == spec
    assert TaskSpec.from_data(spec.to_data()) == spec
    assert measured(spec) == spec
    plan = solve_task(spec).plan
    assert plan
    assert check(spec, Attempt(spec.hash, plan)).success
    assert dict(spec.difficulty)["distractors"] >= knobs.distractors
    assert not any(check(spec, cheat.attempt).success for cheat in cheats(spec, plan))


def mean(dimension: str, **changes: Any) -> float:
    knobs = Knobs(**{"side": 10, "objects": 3, "rule_depth": 2, "distractors": 1, **changes})
    return sum(dict(generate_text(seed, knobs).difficulty)[dimension] for seed in range(12)) / 12


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        ("objects", [0, 2, 4, 6]),
        ("path_length", [8, 12, 16, 20]),
        ("rule_depth", [1, 3, 5]),
        ("time_pressure", [0.2, 0.5, 1.0]),
        ("distractors", [0, 3, 6]),
    ],
)
def test_every_knob_moves_the_dimension_it_is_named_after(dimension: str, values: list[float]) -> None:
    assert dimension in DIMENSIONS
    found = [mean(dimension, **{dimension: value}) for value in values]
    assert found == sorted(set(found))


def test_objects_are_those_asked_for() -> None:
    for objects in range(0, 9):
        specs = [generate_text(seed, Knobs(side=12, objects=objects, rule_depth=5)) for seed in range(10)]
        assert sum(dict(spec.difficulty)["objects"] == objects for spec in specs) >= 8


@pytest.mark.parametrize("skill", [skill for skill in SKILLS if skill != "dodge"])
def test_focused_knobs_give_tasks_that_take_the_skill(skill: str) -> None:
    near = focused(Knobs(), skill)
    assert all(skill in generate_text(seed, near).skills for seed in range(5))


def test_recipes_locked_containers_and_rules_come_up() -> None:
    levels = [text_level(seed, Knobs(objects=7, rule_depth=3, avoid=True)) for seed in range(20)]
    words = {action.split()[0] for level in levels for action in level.plan}
    assert words >= {"go", "take", "put", "make", "unlock"}
    assert all(any(isinstance(part, Never) for _, part in level.goal.walk()) for level in levels)
    assert any(thing.kind == "container" and thing.key for level in levels for thing in level.world.things)
    assert all(TextWorld.parse(level.world.to_data()).to_data() == level.world.to_data() for level in levels)


def test_patrols_and_what_finds_no_room_are_refused_in_one_line() -> None:
    with pytest.raises(BadTask, match="knob patrols: got 2, the text world has none"):
        generate_text(1, Knobs(patrols=2))
    with pytest.raises(BadTask, match=r"seed 1: no solvable task with .* in 64 tries"):
        generate_text(1, Knobs(side=6, objects=0, rule_depth=8))
    assert generate_text(1, Knobs(), parent="a" * 64).parent == "a" * 64
