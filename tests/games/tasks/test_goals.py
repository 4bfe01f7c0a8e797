from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.errors import BadGoal, BadTask, TaskTooBig
from games.tasks.goals import BROKEN, HOLDS, MAX_GOAL_DEPTH, OPEN, Fact, Goal, Then
from tests.games.tasks.worlds_for_tests import goal_data, parsed

VOCABULARY = {
    "at": (frozenset({"exit", "red pad"}),),
    "visited": (frozenset({"exit", "red pad"}),),
    "has": (frozenset({"red key", "red gem"}),),
    "opened": (frozenset({"red door"}),),
    "delivered": (frozenset({"red gem"}), frozenset({"exit", "red pad"})),
}
ALL_FACTS: list[Fact] = [
    ("at", "exit"),
    ("at", "red pad"),
    ("has", "red key"),
    ("has", "red gem"),
    ("opened", "red door"),
    ("delivered", "red gem", "exit"),
]
goals = goal_data(VOCABULARY).map(parsed).filter(lambda goal: goal is not None)
traces = st.lists(st.frozensets(st.sampled_from(ALL_FACTS)), min_size=1, max_size=8)


def holds(data: Any, trace: Sequence[frozenset[Fact]], start: int, now: int) -> bool:
    """Read the definition of the language directly: does the part begun at `start` hold at `now`?"""
    ((head, body),) = data.items()
    if head == "visited":
        return any(("at", body) in trace[t] for t in range(start, now + 1))
    if head == "and":
        return all(holds(part, trace, start, now) for part in body)
    if head == "never":
        return not broken(data, trace, start, now)
    if head == "then":
        for part in body:
            done = [
                t
                for t in range(start, now + 1)
                if holds(part, trace, start, t) and not broken(part, trace, start, t)
            ]
            if not done:
                return False
            start = done[0] + 1
        return True
    if head == "before":
        first, second = ([t for t in range(start, now + 1) if holds(c, trace, start, t)][:1] for c in body)
        return bool(first) and bool(second) and first < second
    return (head, *([body] if isinstance(body, str) else body)) in trace[now]


def broken(data: Any, trace: Sequence[frozenset[Fact]], start: int, now: int) -> bool:
    ((head, body),) = data.items()
    if head == "and":
        return any(broken(part, trace, start, now) for part in body)
    if head == "never":
        return any(holds(body, trace, start, t) for t in range(start, now + 1))
    if head == "before":
        first, second = ([t for t in range(start, now + 1) if holds(c, trace, start, t)][:1] for c in body)
        return bool(second) and not (bool(first) and first < second)
    if head == "then":
        for part in body:
            for t in range(start, now + 1):
                if broken(part, trace, start, t):
                    return True
                if holds(part, trace, start, t):
                    start = t + 1
                    break
            else:
                return False
    return False


@given(goals, traces)
def test_folding_step_by_step_agrees_with_the_definition(goal: Goal, trace: list[frozenset[Fact]]) -> None:
    data = goal.to_data()
    progress = goal.start(trace[0])
    for now, facts in enumerate(trace):
        if now:
            progress = goal.fold(progress, facts)
        expected = BROKEN if broken(data, trace, 0, now) else HOLDS if holds(data, trace, 0, now) else OPEN
        assert goal.status(progress) == expected
        assert hash(progress) is not None
        if expected != HOLDS:
            goal.part(goal.culprit(progress))
        else:
            with pytest.raises(ValueError, match="the goal holds"):
                goal.culprit(progress)


@given(goals)
def test_a_goal_survives_its_data_and_stays_in_canonical_form(goal: Goal) -> None:
    again = Goal.parse(goal.to_data())
    assert again == goal
    assert hash(again) == hash(goal)
    assert again.to_data() == goal.to_data()
    goal.check_names(VOCABULARY)


@given(goals, goals)
def test_different_goals_read_differently(one: Goal, other: Goal) -> None:
    assert (one.render() == other.render()) == (one == other)


@given(st.permutations(["exit", "red pad", "blue pad"]))
def test_the_order_inside_an_and_does_not_matter_and_nesting_is_flattened(names: list[str]) -> None:
    first, second, third = ({"visited": name} for name in names)
    flat = Goal.parse({"and": [{"visited": n} for n in ("blue pad", "exit", "red pad")]})
    assert Goal.parse({"and": [first, {"and": [third, second]}]}) == flat
    chain = Goal.parse({"then": [{"then": [first, second]}, third]})
    assert chain == Goal.parse({"then": [first, {"then": [second, third]}]})
    assert isinstance(chain.root, Then)
    assert len(chain.root.inner) == 3


def test_what_is_written_is_what_is_read() -> None:
    goal = Goal.parse(
        {
            "then": [
                {"has": "red key"},
                {"and": [{"never": {"at": "red pad"}}, {"delivered": ["blue gem", "exit"]}]},
                {"before": [{"opened": "red door"}, {"at": "exit"}]},
            ]
        }
    )
    assert goal.render() == (
        "First hold the red key, then (have the blue gem lie at the exit and never stand at the red pad), "
        "then (have the red door open before you stand at the exit)."
    )
    assert goal.is_timed()
    assert goal.names() == {"red key", "red pad", "blue gem", "exit", "red door"}


def test_a_rule_broken_once_stays_broken_and_is_named() -> None:
    goal = Goal.parse({"and": [{"at": "exit"}, {"never": {"has": "red gem"}}]})
    progress = goal.start(frozenset())
    assert goal.culprit(progress) == (0,)
    progress = goal.fold(progress, frozenset({("has", "red gem")}))
    assert goal.status(progress) == BROKEN
    progress = goal.fold(progress, frozenset({("at", "exit")}))
    assert goal.status(progress) == BROKEN
    assert goal.part(goal.culprit(progress)).words() == "never hold the red gem"


def nested(depth: int) -> Any:
    goal: Any = {"at": "exit"}
    for i in range(depth):
        goal = {"then" if i % 2 else "and": [goal, {"has": "red key"}]}
    return goal


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (None, BadGoal, "goal: got None, an object with exactly one key is needed"),
        ({}, BadGoal, "exactly one key"),
        ({"at": "exit", "has": "red key"}, BadGoal, "got an object of 2"),
        ({"fly": "exit"}, BadGoal, "got 'fly', allowed are at, has"),
        ({"at": 3}, BadGoal, "goal.at: got 3, a name is"),
        ({"at": "Exit"}, BadGoal, "got 'Exit'"),
        ({"at": "exit\nand"}, BadGoal, "a name is one to four words"),
        ({"at": "exit and key"}, BadGoal, "the word 'and' belongs to the goal language"),
        ({"delivered": "red gem"}, BadGoal, "a list of 2 names is needed"),
        ({"and": [{"at": "exit"}]}, BadGoal, "a list of 2 to 8 goals"),
        ({"and": [{"at": "exit"}, {"at": "exit"}]}, BadGoal, "the same part twice"),
        ({"never": {"at": "exit"}}, BadGoal, "'never' alone"),
        ({"and": [{"never": {"at": "a"}}, {"never": {"at": "b"}}]}, BadGoal, "nothing but 'never'"),
        ({"then": [{"at": "exit"}, {"never": {"at": "a"}}]}, BadGoal, "'never' is no step of a 'then'"),
        ({"before": [{"at": "a"}, {"at": "a"}]}, BadGoal, "the same condition twice"),
        (
            {"before": [{"at": "a"}, {"then": [{"at": "a"}, {"at": "b"}]}]},
            BadGoal,
            "goal.before[1]: a condition is",
        ),
        ({"before": [{"at": "a"}]}, BadGoal, "a list of two conditions"),
        (nested(MAX_GOAL_DEPTH), TaskTooBig, "nested deeper than 6"),
        (
            {"then": [{"then": [{"at": c + d} for c in "abc"]} for d in "abc"]},
            TaskTooBig,
            "got 9 parts when flattened",
        ),
        (
            {"and": [{"then": [{"at": c + d} for c in "abcdefgh"]} for d in "abcd"]},
            TaskTooBig,
            "at most 32",
        ),
    ],
)
def test_refusals_name_what_is_wrong_in_one_line(data: Any, error: type[BadTask], words: str) -> None:
    with pytest.raises(error) as caught:
        Goal.parse(data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_names_that_the_world_lacks_are_refused_with_those_it_has() -> None:
    with pytest.raises(BadGoal, match="goal at: got 'cave', this world has exit, red pad"):
        Goal.parse({"at": "cave"}).check_names(VOCABULARY)
    with pytest.raises(BadGoal, match="got 'opened', this world knows at"):
        Goal.parse({"opened": "red door"}).check_names({"at": (frozenset({"exit"}),)})


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda s: (
            st.lists(s, max_size=3)
            | st.dictionaries(st.sampled_from(["at", "and", "then", "never", "before", "x"]), s, max_size=2)
        ),
    )
)
def test_no_data_crash_the_reader(data: Any) -> None:
    goal = parsed(data)
    assert goal is None or Goal.parse(goal.to_data()) == goal
