"""Whose steps a leg lost: the parts sum up, and follow from what was said and done."""

import random

import pytest

from games.tasks.forge_course import Course, Node
from games.tasks.forge_credit import Lost, Stretch, leg_losses, steps_left
from games.tasks.forge_relay import subtasks
from games.tasks.forge_setup import POOL, VARIANTS, offer
from games.tasks.goals import OPEN, Goal


def run(course: Course, actions: list[str], start: Node | None = None) -> Node:
    node = course.start if start is None else start
    for action in actions:
        node = course.step(node, action)
    return node


def one(course: Course, goal: Goal | None, actions: list[str]) -> Lost:
    """What a leg of one subtask lost."""
    (lost,) = leg_losses(course, [Stretch(2, goal, course.start, run(course, actions), len(actions))])
    return lost


@pytest.mark.parametrize("number", [1, 5, 9, 12])
def test_every_node_s_distance_is_that_of_a_neighbour_and_a_step(number: int) -> None:
    course = offer(number, 0).parent
    left = steps_left(course)
    assert left[course.start] == course.optimal
    for node, steps in left.items():
        if node.solved:
            assert steps == 0
            continue
        assert node.status == OPEN and node.space is not None
        onward = [course.step(node, action) for action in node.space.options]
        assert steps == 1 + min(left[after] for after in onward if after in left)


def test_the_graphs_are_small() -> None:
    largest = max(
        len(steps_left(course))
        for number in range(POOL)
        for variant in range(0, VARIANTS, 3)
        for course in offer(number, variant).edits.values()
    )
    assert largest < 3_000


def test_losses_are_divided_without_a_rest() -> None:
    rng = random.Random(5)
    for number in range(POOL):
        course = offer(number, 1).parent
        node, stretches, taken = course.start, [], 0
        while node.status == OPEN and taken < course.spec.budget:
            start, named = node, list(subtasks(course, node).values())
            goal = rng.choice([None, *named])
            steps = 0
            while node.status == OPEN and taken < course.spec.budget and steps < 6:
                assert node.space is not None
                node = course.step(node, rng.choice(node.space.options))
                steps, taken = steps + 1, taken + 1
            stretches.append(Stretch(2, goal, start, node, steps))
        losses = leg_losses(course, stretches)
        left = steps_left(course).get(node, course.spec.budget - taken + course.optimal)
        assert sum(lost.setting + lost.running for lost in losses) == taken + left - course.optimal
        assert all(lost.setting >= 0 for lost in losses)


def test_who_is_told_the_way_and_goes_it_loses_nothing_and_who_dawdles_loses_what_it_dawdled() -> None:
    course = offer(6, 0).parent
    plan, goal = list(course.plan), course.spec.goal
    assert one(course, goal, plan) == Lost(0, 0)
    assert one(course, goal, ["wait", "wait", *plan]) == Lost(0, 2)
    assert one(course, None, ["wait", "wait", *plan]) == Lost(2, 0)
    assert one(course, None, plan) == Lost(0, 0)


def test_a_subtask_off_the_way_is_the_setter_s_loss_and_one_that_cannot_be_met_too() -> None:
    course = offer(13, 0).parent
    left = steps_left(course)
    aside = {words: one(course, goal, ["wait"]) for words, goal in subtasks(course, course.start).items()}
    assert all(
        lost.setting + lost.running == 1 + left[run(course, ["wait"])] - course.optimal
        for lost in aside.values()
    )
    assert aside["delivered yellow gem red pad"].setting > 0 == aside["has blue gem"].setting
    never = Goal.parse({"and": [{"at": "exit"}, {"has": "no such key"}]})
    assert one(course, never, ["wait"]) == Lost(1, 0)
