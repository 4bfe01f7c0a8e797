from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.errors import BadTask
from games.tasks.check import Attempt, cheats, check
from games.tasks.difficulty import SKILLS, measured
from games.tasks.generate import Knobs, focused, generate, stepped
from games.tasks.goals import BROKEN, HOLDS, Before, Goal, Never
from games.tasks.solver import solve, solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.text_generate import generate_text

knobs_strategy = st.builds(
    Knobs,
    side=st.integers(8, 12),
    objects=st.integers(0, 5),
    rule_depth=st.integers(1, 4),
    time_pressure=st.sampled_from([0.3, 0.5, 1.0]),
    distractors=st.integers(0, 3),
    patrols=st.integers(0, 1),
    obstacles=st.integers(0, 8),
    avoid=st.booleans(),
    deliver=st.booleans(),
    before=st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**63 - 1), knobs_strategy)
def test_what_is_generated_is_valid_solvable_measured_and_the_same_again(seed: int, knobs: Knobs) -> None:
    spec = generate(seed, knobs)
    assert generate(seed, knobs) == spec
    assert TaskSpec.from_data(spec.to_data()) == spec
    assert measured(spec) == spec
    plan = solve_task(spec).plan
    assert plan
    assert check(spec, Attempt(spec.hash, plan)).success
    assert len(plan) == dict(spec.difficulty)["path_length"]
    assert dict(spec.difficulty)["distractors"] <= knobs.distractors
    assert dict(spec.difficulty)["objects"] >= knobs.objects
    assert not any(check(spec, cheat.attempt).success for cheat in cheats(spec, plan))


def mean(dimension: str, **changes: Any) -> float:
    knobs = Knobs(**{"side": 10, "objects": 3, "rule_depth": 2, "distractors": 1, **changes})
    return sum(dict(generate(seed, knobs).difficulty)[dimension] for seed in range(12)) / 12


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        ("objects", [0, 2, 4, 6]),
        ("path_length", [6, 12, 20, 28]),
        ("rule_depth", [1, 3, 5]),
        ("time_pressure", [0.2, 0.5, 1.0]),
        ("distractors", [0, 3, 6]),
    ],
)
def test_every_knob_moves_the_dimension_it_is_named_after(dimension: str, values: list[float]) -> None:
    assert dimension in DIMENSIONS
    measured_values = [mean(dimension, **{dimension: value}) for value in values]
    assert measured_values == sorted(set(measured_values))


def test_avoid_gives_a_rule_and_parent_is_kept() -> None:
    spec = generate(3, Knobs(rule_depth=2, avoid=True), parent="a" * 64)
    assert any(isinstance(part, Never) for _, part in spec.goal.walk())
    assert "avoid" in spec.skills
    assert spec.parent == "a" * 64


@pytest.mark.parametrize("make", [generate, generate_text])
@pytest.mark.parametrize(
    "knobs",
    [
        Knobs(side=10, rule_depth=2, before=True),
        Knobs(side=10, objects=4, rule_depth=4, avoid=True, deliver=True, before=True),
        Knobs(side=10, objects=0, rule_depth=5, before=True),
    ],
)
def test_a_before_stands_first_costs_no_condition_and_can_be_broken(make: Any, knobs: Knobs) -> None:
    broken = 0
    for seed in range(10):
        spec = make(seed, knobs)
        parts = [part for _, part in spec.goal.walk() if isinstance(part, Before)]
        assert len(parts) == 1
        assert dict(spec.difficulty)["rule_depth"] == knobs.rule_depth
        assert "order" in spec.skills
        second = solve(spec.make_world(), Goal(parts[0].second))
        if second.plan:  # what is done too soon has failed, unless the first is on the way to it
            world, goal = spec.make_world(), Goal(parts[0])
            state = world.initial()
            progress = goal.start(world.facts(state))
            for action in second.plan:
                state = world.step(state, action)
                progress = goal.fold(progress, world.facts(state))
            assert goal.status(progress) in (HOLDS, BROKEN)
            broken += goal.status(progress) == BROKEN
    assert broken


def test_one_condition_alone_comes_before_nothing() -> None:
    plain, asked = generate(5, Knobs(rule_depth=1)), generate(5, Knobs(rule_depth=1, before=True))
    assert plain == asked


@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize(
    "knobs", [Knobs(), Knobs(objects=0), Knobs(objects=1, rule_depth=1, avoid=True, deliver=True)]
)
def test_focused_knobs_give_tasks_that_take_the_skill(skill: str, knobs: Knobs) -> None:
    near = focused(knobs, skill)
    assert focused(near, skill) == near
    assert all(skill in generate(seed, near).skills for seed in range(5))


def test_an_unknown_skill_is_refused() -> None:
    with pytest.raises(BadTask, match=r"skill: got 'fly', allowed are navigate, fetch"):
        focused(Knobs(), "fly")


def test_steps_stay_within_the_limits() -> None:
    assert stepped(Knobs(objects=12), "objects", 3).objects == 12
    assert stepped(Knobs(), "time_pressure", 0.25).time_pressure == 0.75
    assert stepped(Knobs(), "path_length", 5.4).path_length == 5


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("side", 5, "knob side: got 5, allowed is 6 to 16"),
        ("objects", 1.5, "knob objects: got 1.5, a whole number is needed"),
        ("time_pressure", float("nan"), "knob time_pressure: got nan"),
        ("distractors", True, "got True"),
        ("patrols", "many", "got 'many'"),
    ],
)
def test_knobs_out_of_range_are_refused(name: str, value: Any, words: str) -> None:
    with pytest.raises(BadTask) as caught:
        Knobs(**{name: value})
    assert words in str(caught.value)


def test_no_room_is_said_in_one_line() -> None:
    with pytest.raises(BadTask, match=r"seed 1: no solvable task with .* in 64 tries"):
        generate(1, Knobs(side=6, objects=12, distractors=12, rule_depth=8))
