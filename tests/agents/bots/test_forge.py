"""Forge's bots: what they set, how they walk, and that skill tells."""

import asyncio
from typing import Any

import pytest

from agents.base import Seat
from agents.bots.forge import (
    STRATEGIES,
    AnySetterBot,
    BottleneckBot,
    CoverageBot,
    PlannerBot,
    edge_of,
    effort,
    expected,
    hinted,
    weakest_skill,
)
from agents.bots.forge_routes import route, steps_left
from agents.match import MatchResult, play
from agents.players import make_agent
from games.referee import Referee
from games.registry import load_game
from games.rng import derive_seed
from games.tasks.forge_setup import offer, pool_task
from games.tasks.forge_view import ForgeView, SetTask
from games.tasks.goals import OPEN

FORGE = load_game("forge")


def match(makers: list[Any], *, seed: int, **options: Any) -> tuple[Any, MatchResult]:
    """Play a match; a maker is a spec or a class of bots."""
    state = FORGE.new(seed=seed, seats=len(makers), options=options)
    agents = []
    for i, maker in enumerate(makers):
        seat = Seat(FORGE, len(makers), state.options, i, derive_seed(seed, i))
        agents.append(make_agent(maker, seat) if isinstance(maker, str) else maker(seat))
    referee = Referee(state)
    return state, asyncio.run(play(referee, agents))


@pytest.mark.parametrize("number", [1, 4, 6, 11])
def test_a_route_leads_from_anywhere_to_the_goal(number: int) -> None:
    course = offer(number, 0).parent
    assert steps_left(course, course.start) == course.optimal
    nodes, node = [course.start], course.start
    for action in ("wait", "right", "down", "left", "up", "wait", "down"):
        if node.space is not None and action in node.space.options:
            node = course.step(node, action)
            nodes.append(node)
    for node in nodes:
        if node.status != OPEN:
            continue
        left = steps_left(course, node)
        assert left is not None
        for _ in range(left):
            action = route(course, node)
            assert action is not None and node.space is not None and action in node.space.options
            node = course.step(node, action)
        assert node.solved


def test_a_planner_that_never_errs_takes_shortest_plans() -> None:
    class Perfect(PlannerBot):
        skill = 1.0

    state, result = match([Perfect, Perfect, "random"], seed=1, attempts=2, rounds=1)
    assert not result.counts.get("illegal")
    for data in (event.data for event in state.history if event.kind == "result"):
        for seat, end, _, earned in data["attempts"]:
            if seat < 2:
                assert (end, earned) == ("solved", 1.0)


def test_skill_tells() -> None:
    totals = [0.0] * 3
    for seed in range(6):
        _, result = match(["planner", "scripted", "random"], seed=seed, attempts=4)
        totals = [total + value for total, value in zip(totals, result.outcome.returns, strict=True)]
    assert totals[0] > totals[1] > totals[2]


@pytest.mark.parametrize("kind", [PlannerBot, BottleneckBot, CoverageBot, AnySetterBot])
@pytest.mark.parametrize("setting", ["offers", "json"])
def test_every_setter_sets_what_it_is_offered(kind: type[PlannerBot], setting: str) -> None:
    state, result = match([kind, "planner", "scripted"], seed=2, attempts=2, setting=setting)
    assert all(event.data["task"] is not None for event in state.history if event.kind == "task")
    assert set(result.counts) <= {"turns"}


def test_a_task_counts_as_harder_the_less_time_there_is_and_results_move_the_edge() -> None:
    assert effort(10, 12) > effort(10, 20)
    assert expected(10, 12, edge=0.7) < expected(10, 20, edge=0.7)
    course = pool_task(2)
    view = ForgeView(0)
    before = edge_of(view)
    for p, direction in ((1.0, 1), (0.0, -1)):
        view.history = [SetTask(1, 0, course, "", p)]
        assert (edge_of(view) - before) * direction > 0


def test_the_bottleneck_is_the_others_weakest_skill() -> None:
    view = ForgeView(0)
    view.records = {0: {"open": (0, 9)}, 1: {"open": (8, 9), "dodge": (1, 9)}, 2: {"dodge": (3, 9)}}
    assert weakest_skill(view, 0, {"open", "dodge", "fetch"}) == "dodge"
    assert weakest_skill(view, 1, {"open"}) == "open"
    assert weakest_skill(ForgeView(0), 0, {"open"}) is None
    facts: dict[str, Any] = {"optimal": 10, "budget": 15, "objects": 1, "rules": 1, "distractors": 0}
    offers = [{**facts, "edit": "a", "skills": ["open"]}, {**facts, "edit": "b", "skills": ["dodge"]}]
    unwelcome = STRATEGIES["bottleneck"](view, 0, offers)
    assert unwelcome(offers[1]) < unwelcome(offers[0])


@pytest.mark.parametrize(
    ("hint", "moves", "action"),
    [
        ("rrt", (), "right"),
        ("rrt", ("right", "right"), "take"),
        ("rrt", ("right", "down"), "up"),
        ("rrt", ("right", "down", "left"), "right"),
        ("rrt", ("right", "down", "up"), "right"),
        ("rrt", ("right", "right", "take"), ""),
        ("no such way", (), ""),
    ],
)
def test_a_runner_follows_a_hint_and_finds_back_to_it(hint: str, moves: tuple[str, ...], action: str) -> None:
    assert hinted(hint, moves) == action


def test_a_team_of_better_planners_wins_the_relay() -> None:
    won = 0
    for seed in range(8):
        state, result = match(["planner", "random"] * 2, seed=seed, mode="relay")
        won += result.outcome.returns[0] > 0
        assert state.view(None).legs
    assert won >= 7
