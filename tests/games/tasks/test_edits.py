from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.errors import BadTask
from games.tasks.cases import seed_case
from games.tasks.check import Attempt, check
from games.tasks.difficulty import measured
from games.tasks.edits import EDITS, LAYOUT_CHANGES, edit_names, vary
from games.tasks.generate import Knobs, generate
from games.tasks.solver import solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec
from games.tasks.text_generate import generate_text
from games.tasks.worlds import WORLDS


def test_every_dimension_has_an_edit_each_way() -> None:
    assert {(edit.dimension, edit.direction) for edit in EDITS.values()} == {
        (dimension, direction) for dimension in DIMENSIONS for direction in (1, -1)
    }
    assert edit_names(seed_case()) == edit_names(generate_text(1)) == tuple(EDITS)
    assert LAYOUT_CHANGES.keys() == WORLDS.keys()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 500),
    st.sampled_from(sorted(EDITS)),
    st.integers(0, 2**63 - 1),
    st.sampled_from(["grid", "text"]),
)
def test_a_child_is_proven_measured_and_moved_the_way_it_should(
    parent_seed: int, name: str, seed: int, world: str
) -> None:
    if world == "grid":
        parent = generate(parent_seed, Knobs(objects=3, rule_depth=2, distractors=2, patrols=parent_seed % 2))
    else:
        parent = generate_text(parent_seed, Knobs(objects=3, rule_depth=2, distractors=2))
    child = vary(parent, name, seed=seed)
    assert vary(parent, name, seed=seed) == child
    if child is None:
        return
    edit = EDITS[name]
    moved = dict(child.difficulty)[edit.dimension] - dict(parent.difficulty)[edit.dimension]
    assert moved * edit.direction > 0
    assert child.parent == parent.hash != child.hash
    assert measured(child) == child
    assert TaskSpec.from_data(child.to_data()) == child
    plan = solve_task(child).plan
    assert plan
    assert check(child, Attempt(child.hash, plan)).success


@pytest.mark.parametrize("make", [generate, generate_text])
@pytest.mark.parametrize("name", sorted(EDITS))
def test_nearly_every_edit_finds_a_child_of_most_parents(name: str, make: Any) -> None:
    parents = [make(seed, Knobs(objects=3, rule_depth=2, distractors=2)) for seed in range(12)]
    assert sum(vary(parent, name, seed=1) is not None for parent in parents) >= 8


def test_what_cannot_be_edited_gives_none_and_an_unknown_edit_is_refused() -> None:
    hopeless = TaskSpec.from_data({**seed_case().to_data(), "budget": 3})
    assert vary(hopeless, "longer", seed=1) is None
    tight = TaskSpec.from_data({**seed_case().to_data(), "budget": 12})
    assert vary(tight, "less_time", seed=1) is None
    with pytest.raises(BadTask, match="edit: got 'paint', allowed are less_time"):
        vary(seed_case(), "paint", seed=1)
