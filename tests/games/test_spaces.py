import json
import random

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.errors import BadSpace
from games.spaces import ActionSpace, Choice, Subset, Text, space_from_data

names = st.text(min_size=1, max_size=6)


@st.composite
def spaces(draw: st.DrawFn) -> ActionSpace:
    kind = draw(st.sampled_from(["choice", "subset", "text"]))
    if kind == "text":
        return Text(draw(st.integers(0, 50)), draw(names))
    options = tuple(draw(st.lists(names, min_size=1, max_size=8, unique=True)))
    if kind == "choice":
        return Choice(options, draw(names), draw(st.none() | st.sampled_from(options)))
    return Subset(options, draw(st.integers(0, len(options))), draw(names))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(spaces(), json_values)
def test_schema_and_membership_agree_on_anything(space: ActionSpace, value: object) -> None:
    validator = jsonschema.Draft202012Validator(space.schema())
    assert validator.is_valid(value) == space.contains(space.from_json(value))


@given(spaces(), st.integers())
def test_samples_are_legal_and_survive_json(space: ActionSpace, seed: int) -> None:
    action = space.sample(random.Random(seed))
    assert space.contains(action)
    assert space.from_json(json.loads(json.dumps(action))) == action
    assert space.contains(space.default)


@given(spaces())
def test_data_round_trip(space: ActionSpace) -> None:
    assert space_from_data(json.loads(json.dumps(space.to_data()))) == space


def test_subset_takes_any_order_from_json_but_has_one_form() -> None:
    space = Subset(("0", "1", "2"), 2)
    assert space.from_json(["2", "0"]) == ("0", "2")
    assert space.contains(("0", "2"))
    assert not space.contains(("2", "0"))


@pytest.mark.parametrize(
    "action", [("0", "0"), ("0",), ("0", "9"), ("0", "1", "2"), ["0", "1"], "01", (0, 1), None]
)
def test_what_no_subset_contains(action: object) -> None:
    assert not Subset(("0", "1", "2"), 2).contains(action)


def test_text_is_counted_in_characters_and_must_be_unicode() -> None:
    space = Text(3)
    assert space.contains("äöü")
    assert not space.contains("abcd")
    assert not space.contains("\ud800")
    assert not space.contains(None)


def test_sampling_is_uniform_over_subsets() -> None:
    space = Subset(("a", "b", "c", "d"), 2)
    rng = random.Random(0)
    seen = {space.sample(rng) for _ in range(200)}
    assert len(seen) == 6


@pytest.mark.parametrize(
    "data, what",
    [
        (None, "JSON object"),
        ([], "JSON object"),
        ({}, "allowed are choice, subset, text"),
        ({"kind": "dance"}, "'dance', allowed are choice, subset, text"),
        ({"kind": ["choice"]}, "allowed are choice, subset, text"),
        ({"kind": "choice"}, "list of non-empty strings"),
        ({"kind": "choice", "options": []}, "list of non-empty strings"),
        ({"kind": "choice", "options": [1]}, "list of non-empty strings"),
        ({"kind": "choice", "options": [""]}, "list of non-empty strings"),
        ({"kind": "choice", "options": ["a", "a"]}, "repeated option"),
        ({"kind": "choice", "options": [str(i) for i in range(10_001)]}, "at most 10000"),
        ({"kind": "choice", "options": ["a"], "size": 1}, "'size', a choice has"),
        ({"kind": "choice", "options": ["a"], "default": "b"}, "default"),
        ({"kind": "choice", "options": ["a"], "label": 7}, "label"),
        ({"kind": "subset", "options": ["a"], "size": 2}, "from 0 to 1"),
        ({"kind": "subset", "options": ["a"], "size": True}, "from 0 to 1"),
        ({"kind": "subset", "options": ["a"]}, "from 0 to 1"),
        ({"kind": "subset", "options": ["a", "b"], "size": 1, "default": ["c"]}, "default"),
        ({"kind": "text"}, "from 0 to 100000"),
        ({"kind": "text", "max_chars": -1}, "from 0 to 100000"),
    ],
)
def test_bad_data_gets_one_clear_line(data: object, what: str) -> None:
    with pytest.raises(BadSpace, match=what) as raised:
        space_from_data(data)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


@given(json_values)
def test_any_json_is_a_space_or_a_typed_refusal(value: object) -> None:
    try:
        space = space_from_data(value)
    except BadSpace:
        return
    assert space.contains(space.default)
