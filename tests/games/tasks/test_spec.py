import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.errors import BadGoal, BadLayout, BadTask, TaskTooBig, TaskVersion
from games.tasks.goals import Goal
from games.tasks.grid import Grid
from games.tasks.spec import DIMENSIONS, MAX_BYTES, TaskSpec, canonical_json, check_bounds, parse_json
from tests.games.tasks.worlds_for_tests import SEED_TASK, goals_for, grids

DIFFICULTY = dict.fromkeys(DIMENSIONS, 2)


def seed(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SEED_TASK), **changes}


@given(grids().flatmap(lambda world: st.tuples(st.just(world), goals_for(world))), st.integers(1, 1000))
def test_a_task_survives_its_data_and_its_text(pair: tuple[Grid, Goal], budget: int) -> None:
    world, goal = pair
    spec = TaskSpec.make(world, goal=goal, budget=budget, skills=("key",), parent="0" * 64).with_difficulty(
        DIFFICULTY
    )
    again = TaskSpec.from_text(json.dumps({**spec.to_data(), "text": spec.text}, indent=1))
    assert again == spec
    assert hash(again) == hash(spec)
    assert (again.hash, again.digest) == (spec.hash, spec.digest)
    assert again.make_world().to_data() == world.to_data()


def test_the_hash_is_of_what_is_played_and_the_digest_of_everything() -> None:
    spec = TaskSpec.from_data(seed())
    assert spec.hash == "eee2014eb526bece48badedd2968f3fb6762e633ce21ba973c1d2d7f9a1efac2"
    reordered = seed()
    reordered["layout"]["things"].reverse()
    assert TaskSpec.from_data(reordered) == spec
    renamed = TaskSpec.from_data(seed(generator="keys-2", parent=spec.hash, skills=[], difficulty=DIFFICULTY))
    assert renamed.hash == spec.hash
    assert renamed.digest != spec.digest
    for change in (
        {"budget": 31},
        {"goal": {"at": "exit"}},
        {"layout": {**seed()["layout"], "start": [2, 1]}},
    ):
        assert TaskSpec.from_data(seed(**change)).hash != spec.hash


def test_the_text_is_rendered_and_another_one_refused() -> None:
    spec = TaskSpec.from_data(seed())
    assert spec.text == (
        "First hold the yellow key, then have the yellow door open, then stand at the exit. You have 30 steps."
    )
    for text in (
        "Stand at the exit. You have 30 steps.",
        spec.text.replace("30", "31"),
        "",
        None,
        spec.text + " ",
    ):
        with pytest.raises(BadTask, match=r"task text: got .*, the goal reads 'First hold"):
            TaskSpec.from_data(seed(text=text))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"version": 2}, TaskVersion, "task version: got 2, this program reads 1"),
        ({"version": True}, TaskVersion, "got True"),
        ({"version": "1"}, TaskVersion, "got '1'"),
        ({"colour": 1}, BadTask, "got the field 'colour', allowed are version"),
        ({"world": "sea"}, BadTask, "task world: got 'sea', allowed are grid"),
        ({"world": ["grid"]}, BadTask, "task world: got a list of 1"),
        ({"layout": []}, BadLayout, "layout: got an empty list"),
        ({"goal": {"at": "moon"}}, BadGoal, "goal at: got 'moon', this world has exit"),
        ({"budget": 0}, BadTask, "task budget: got 0, allowed are whole numbers from 1 to 1000"),
        ({"budget": 10**5000}, BadTask, "got a huge number"),
        ({"budget": 1.0}, BadTask, "got 1.0"),
        ({"budget": float("nan")}, BadTask, "got nan, numbers must be finite"),
        ({"skills": "key"}, BadTask, "task skills: got 'key', a list"),
        ({"skills": ["a"] * 9}, TaskTooBig, "at most 8"),
        ({"skills": ["a", "a"]}, BadTask, "a tag twice"),
        ({"skills": ["No Tag"]}, BadTask, "got 'No Tag', a tag"),
        ({"generator": "\x1b[2J"}, BadTask, "task generator"),
        ({"parent": "abc"}, BadTask, "got 'abc', 64 hexadecimal digits is needed"),
        ({"difficulty": {"objects": 1}}, BadTask, "an object of objects, path_length"),
        ({"difficulty": {**DIFFICULTY, "objects": -1}}, BadTask, "difficulty objects: got -1"),
        ({"difficulty": {**DIFFICULTY, "objects": "3"}}, BadTask, "difficulty objects: got '3'"),
        ({"goal": [[[[[[[[[[[[[]]]]]]]]]]]]]}, TaskTooBig, "nested deeper than 12"),
        ({"layout": [0] * 5000}, TaskTooBig, "more than 4000 values"),
        ({"generator": "x" * 40_000}, TaskTooBig, "more than 32768 characters"),
        ({"goal": {1: "exit"}}, BadTask, "got the key 1, keys must be strings"),
        ({"goal": {None: "exit"}}, BadTask, "got the key None"),
        ({"goal": b"at"}, BadTask, "got a bytes, only JSON values"),
    ],
)
def test_refusals_are_typed_and_one_line(change: dict[str, Any], error: type[BadTask], words: str) -> None:
    with pytest.raises(error) as caught:
        TaskSpec.from_data(seed(**change))
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("field", ["version", "world", "layout", "goal", "budget"])
def test_a_missing_field_is_named(field: str) -> None:
    data = seed()
    del data[field]
    with pytest.raises(BadTask, match=f"the field '{field}' is missing"):
        TaskSpec.from_data(data)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", BadTask, "task: not JSON, Expecting value at line 1 column 1"),
        ("[1,", BadTask, "task: not JSON"),
        ("3", BadTask, "task: got 3, an object is needed"),
        (b"\xff{}", BadTask, "not UTF-8, at position 0"),
        ('{"version": 1, "version": 1}', BadTask, "got the key 'version' twice in one object"),
        ('{"a": NaN}', BadTask, "got NaN, numbers must be finite"),
        ('{"a": -Infinity}', BadTask, "got -Infinity"),
        ('{"a": 1e999}', BadTask, "got inf, numbers must be finite"),
        ('{"a": ' + "9" * 5000 + "}", BadTask, "a number too long to read"),
        ("[" * 30_000, TaskTooBig, "nested deeper than 12"),
        ('{"a":' * 13, TaskTooBig, "nested deeper than 12"),
        (" " * (MAX_BYTES + 1), TaskTooBig, "got 32769 bytes, at most 32768"),
        ("é" * 20_000, TaskTooBig, "more than 32768 bytes"),
        ('"' + "\\" * 30_001, BadTask, "not JSON"),
    ],
)  # fmt: skip
def test_text_is_read_strictly_and_in_bounds(text: str | bytes, error: type[BadTask], words: str) -> None:
    with pytest.raises(error) as caught:
        TaskSpec.from_text(text)
    assert type(caught.value) is error
    assert words in str(caught.value)


def test_brackets_inside_strings_are_no_depth() -> None:
    assert parse_json('{"a": "' + "[" * 100 + '\\"' + "{" * 100 + '"}') == {"a": "[" * 100 + '"' + "{" * 100}


def test_data_that_contain_themselves_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TaskTooBig):
        check_bounds(loop)


def test_canonical_json_is_one_form() -> None:
    assert canonical_json({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"\\u00e9"]}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json(float("nan"))


JUNK: list[Any] = [
    *(None, True, -1, 0, 7, 10**30, 1e308, float("inf")),
    *("", "exit", "red key", "\ud800", "#" * 300),
    *([], {}, [1, 1], {"at": "exit"}, [[[[]]]]),
]


def mutated(rng: random.Random) -> Any:
    """Return the seed task with one to three of its values replaced, removed, doubled or moved."""
    data: Any = seed(difficulty=dict(DIFFICULTY), generator="keys-1")
    for _ in range(rng.randint(1, 3)):
        node: Any = data
        while True:
            spots = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not spots:
                break
            spot = rng.choice(spots)
            if isinstance(node[spot], dict | list) and rng.random() < 0.7:
                node = node[spot]
                continue
            act = rng.randrange(4)
            if act == 0:
                del node[spot]
            elif act == 1 and isinstance(node, list):
                node.insert(spot, copy.deepcopy(node[rng.randrange(len(node))]))
            elif act == 2 and isinstance(node[spot], str) and node[spot]:
                at = rng.randrange(len(node[spot]))
                node[spot] = node[spot][:at] + rng.choice("#. z\x00[") + node[spot][at + 1 :]
            else:
                node[spot] = copy.deepcopy(rng.choice(JUNK))
            break
    return data


def test_ten_thousand_fuzzed_tasks_are_read_or_refused() -> None:
    rng, read = random.Random(5), 0
    for _ in range(10_000):
        data = mutated(rng)
        try:
            spec = TaskSpec.from_data(data)
        except BadTask as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 300
        else:
            read += 1
            assert TaskSpec.from_data(spec.to_data()) == spec
    assert 100 < read < 9_000


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(junk: bytes) -> None:
    with pytest.raises(BadTask):
        TaskSpec.from_text(junk)
