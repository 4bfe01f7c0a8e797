"""Forge: what tasks count, what they earn, and that no setter profits from cheating."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.base import State
from games.errors import BadOption
from games.registry import load_game
from games.rng import derive_seed
from games.spaces import Choice, Text
from games.tasks.cases import seed_case
from games.tasks.forge_course import Course, Node, course_from, course_of
from games.tasks.forge_credit import steps_left
from games.tasks.forge_relay import members, subtasks
from games.tasks.forge_setup import (
    FINE,
    MAX_OFFER_BUDGET,
    POOL,
    SILENT,
    VARIANTS,
    novelty,
    offer,
    per_solver,
    pool_task,
)
from games.tasks.generate import Knobs
from games.tasks.goals import HOLDS
from games.tasks.similarity import NEAR_DUPLICATE, similarity
from games.tasks.solver import SOLVABLE, solve_task
from games.tasks.spec import FIELDS
from games.tasks.text_generate import generate_text

FORGE = load_game("forge")
JSON = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)


def json_trees(inner: Any) -> Any:
    keys = st.sampled_from((*FIELDS, "rows", "at", "then"))
    return st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6)


def new(seats: int = 3, seed: int = 0, **options: Any) -> State:
    state: State = FORGE.new(seed=seed, seats=seats, options={"attempts": 4, "rounds": 1, **options})
    return state


def offered(state: Any) -> dict[int, str]:
    return {seat: next(iter(made.edits)) for seat, made in enumerate(state.offers)}


def task_json(**changes: Any) -> str:
    data = {key: value for key, value in seed_case().to_data().items() if key not in ("skills", "generator")}
    return json.dumps({**data, **changes})


def play_on(state: Any, *, skill: dict[int, float] | None = None, seed: int = 0) -> State:
    """Play until the round is over: each seat follows the shortest plan with its skill, and waits otherwise."""
    rng = random.Random(seed)
    last = state.round
    while state.turns() and state.round == last and state.phase == "attempt":
        actions = {}
        for seat, space in state.turns().items():
            run = state.runs[seat]
            course = state.tasks[state.queues[seat][run.place]]
            done = sum(action != "wait" for action in run.trail)
            follows = rng.random() < (skill or {}).get(seat, 1.0)
            action = course.plan[done] if follows and done < course.optimal else "wait"
            actions[seat] = action if space.contains(action) else "wait"
        state.apply(actions)
    assert isinstance(state, State)
    return state


def told(state: State, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in state.history if event.kind == kind]


def test_every_offer_is_solvable_within_bounds_and_unlike_its_parent() -> None:
    for number in range(0, POOL, 3):
        made = offer(number, number % VARIANTS)
        assert len(made.edits) >= 4
        for name, course in made.edits.items():
            found = solve_task(course.spec)
            assert (found.status, found.length) == (SOLVABLE, course.optimal), name
            assert course.optimal <= course.spec.budget <= MAX_OFFER_BUDGET
            assert similarity(course.vector, made.parent.vector) < NEAR_DUPLICATE


def test_the_pool_s_parents_differ_and_take_many_skills() -> None:
    parents = [pool_task(number) for number in range(POOL)]
    assert len({parent.hash for parent in parents}) == POOL
    skills = {skill for parent in parents for skill in parent.spec.skills}
    assert {"navigate", "fetch", "open", "deliver", "order", "dodge"} <= skills


def test_a_course_says_of_a_task_what_it_is_and_not_what_the_task_claims() -> None:
    honest = course_of(seed_case())
    assert honest is not None
    claimed = json.loads(task_json(skills=["dodge"], generator="me", parent="0" * 64))
    claimed["difficulty"] = dict.fromkeys(dict(honest.spec.difficulty), 99)
    assert course_from(claimed, hash="?") == honest
    assert "dodge" not in honest.spec.skills and honest.data["generator"] == "forge"
    node = honest.start
    for action in honest.plan:
        node = honest.step(node, action)
    assert node.status == HOLDS and node.solved


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("silence", "not JSON"),
        ("[" * 5000, "nested deeper"),
        ('{"version": 1}', "is missing"),
        (task_json(budget=float("nan")), "numbers must be finite"),
        (task_json(version=2), "version: got 2"),
        (task_json(budget=200), "at most 40 steps are allowed here"),
        (task_json(budget=5), "cannot be solved within its 5 steps"),
        (task_json(goal={"never": {"at": "exit"}}), "asks for nothing"),
        (task_json(goal={"at": "moon"}), "got 'moon'"),
        (
            task_json(goal={"and": [{"has": "yellow key"}, {"never": {"has": "yellow key"}}]}),
            "cannot be solved",
        ),
    ],
)
def test_a_bad_task_costs_its_setter_pays_the_others_and_says_why(text: str, reason: str) -> None:
    state: Any = new(setting="json")
    assert all(isinstance(space, Text) for space in state.turns().values())
    state.apply({**offered(state), 1: text})
    tasks = told(state, "task")
    assert tasks[1]["task"] is None and reason in tasks[1]["reason"] and "\n" not in tasks[1]["reason"]
    play_on(state)
    result = told(state, "result")[1]
    assert result == {"seat": 1, "valid": False, "earned": -FINE}
    assert state.set_scores[1] == -FINE
    assert told(state, "end")[0]["returns"][1] == min(told(state, "end")[0]["returns"])


def test_what_holds_at_once_is_no_task() -> None:
    data = json.loads(task_json(goal={"at": "exit"}))
    data["layout"]["start"] = data["layout"]["things"][-1]["at"]
    state: Any = new(setting="json")
    state.apply({**offered(state), 0: json.dumps(data)})
    assert told(state, "task")[0]["reason"] == "task: is solved before the first step"


def test_an_own_task_counts_once_and_neither_it_nor_a_mirror_image_again() -> None:
    data = json.loads(task_json())
    mirrored = json.loads(task_json())
    mirrored["layout"]["rows"] = [row[::-1] for row in data["layout"]["rows"]]
    for thing in [mirrored["layout"], *mirrored["layout"]["things"]]:
        place = "start" if "start" in thing else "at"
        thing[place] = [7 - thing[place][0], thing[place][1]]
    state: Any = new(setting="json", rounds=3, attempts=2)
    for text in (data, data, mirrored):
        state.apply({**offered(state), 0: json.dumps(text)})
        play_on(state)
    first, second, third = [task for task in told(state, "task") if task["seat"] == 0]
    assert first["task"] is not None
    assert "nearly the task of seat 0 in round 1" in second["reason"]
    assert "nearly the task of seat 0 in round 1" in third["reason"]


def test_a_parent_as_it_stands_is_no_task() -> None:
    state: Any = new(setting="json")
    parent = json.dumps(state.offers[2].parent.data)
    state.apply({**offered(state), 0: parent})
    assert "nearly the parent offered to seat 2" in told(state, "task")[0]["reason"]


def test_a_task_earns_4p_1_minus_p_times_novelty_and_a_solver_by_its_steps() -> None:
    state: Any = new(seats=3, attempts=8)
    state.apply(offered(state))
    assert state.each == per_solver(8, 2) == 4
    play_on(state, skill={0: 1.0, 1: 0.7, 2: 0.5}, seed=3)
    results, solved_by = told(state, "result"), [0.0] * 3
    for result in results:
        rows = result["attempts"]
        assert len(rows) == 8 and {row[0] for row in rows} == set(range(3)) - {result["seat"]}
        p = sum(row[1] == "solved" for row in rows) / 8
        assert result["p"] == p
        assert result["error"] == pytest.approx((p * (1 - p) / 8) ** 0.5, abs=1e-6)
        assert result["earned"] == pytest.approx(4 * p * (1 - p) * result["novelty"], abs=1e-6)
        optimal = told(state, "task")[result["seat"]]["optimal"]
        for seat, end, steps, got in rows:
            assert got == pytest.approx(optimal / steps if end == "solved" else 0, abs=1e-6)
            solved_by[seat] += got / 4
    assert state.solve_scores == pytest.approx(solved_by, abs=1e-5)
    assert 0 < len({result["p"] for result in results})
    scores = told(state, "end")[0]["scores"]
    returns = told(state, "end")[0]["returns"]
    assert returns == pytest.approx([score - sum(scores) / 3 for score in scores], abs=1e-5)


def test_a_task_of_the_text_world_is_set_and_solved_alike() -> None:
    spec = generate_text(5, Knobs(side=6, objects=1))
    state: Any = new(setting="json")
    state.apply({**offered(state), 1: json.dumps(spec.to_data())})
    assert told(state, "task")[1]["task"]["world"] == "text"
    assert state.view(2).tasks[1].spec.world == "text"
    play_on(state)
    assert told(state, "result")[1]["p"] == 1.0
    assert all(FORGE.narrate(event) for event in state.history if event.kind in ("task", "step", "result"))


@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=200)
    | st.binary(max_size=80).map(repr)
    | st.recursive(JSON, json_trees, max_leaves=8).map(json.dumps)
)
def test_whatever_a_setter_writes_is_a_task_or_a_reason(text: str) -> None:
    state: Any = new(seats=2, mode="duel", setting="json", attempts=1)
    state.apply({0: text, 1: next(iter(state.offers[1].edits))})
    task = told(state, "task")[0]
    assert task["task"] is not None or task["reason"].isprintable()
    sentence = FORGE.narrate(next(event for event in state.history if event.kind == "task"))
    assert sentence and sentence.isprintable()


def test_novelty_is_whole_for_the_new_and_nothing_for_the_near() -> None:
    assert novelty(0.5) == novelty(0.75) == 1
    assert novelty(NEAR_DUPLICATE) == novelty(1.0) == 0
    assert 0 < novelty(0.9) < novelty(0.8) < 1


def test_who_must_prove_its_task_earns_nothing_for_what_it_cannot_do() -> None:
    for own, proved in ((1.0, True), (0.0, False)):
        state: Any = new(seats=2, mode="duel", attempts=2, prove=True)
        state.apply(offered(state))
        assert state.queues == ((0, 1, 1), (1, 0, 0))
        rng = random.Random(0)
        tries = {0: 0, 1: 0}
        while state.phase == "attempt":
            actions = {}
            for seat in state.turns():
                run = state.runs[seat]
                setter = state.queues[seat][run.place]
                tries[seat] = max(tries[seat], run.place)
                skill = own if setter == seat else float(run.place == 1)
                plan = state.tasks[setter].plan
                step = len(run.trail)
                actions[seat] = plan[step] if rng.random() < skill and step < len(plan) else "wait"
            state.apply(actions)
        for result in told(state, "result"):
            assert result["p"] == 0.5 and result["proved"] is proved
            assert result["earned"] == (result["novelty"] if proved else 0)


def _honest(state: Any, seat: int) -> str:
    """An offer with little time to spare."""
    edits = state.offers[seat].edits
    return max(edits, key=lambda name: edits[name].optimal / edits[name].spec.budget)


TRIVIAL = {"goal": {"at": "exit"}, "budget": 40}


def _trivial(round: int) -> str:
    """A task of one step, in another room each time so that it is no duplicate."""
    rows = ["#" * (6 + round)] + ["#" + "." * (4 + round) + "#"] * (4 + round) + ["#" * (6 + round)]
    exit_at = [2, 1] if round % 2 else [1, 2]
    layout = {"rows": rows, "start": [1, 1], "things": [{"kind": "exit", "at": exit_at}]}
    return json.dumps({"version": 1, "world": "grid", "layout": layout, **TRIVIAL})


CHEATS: dict[str, Any] = {
    "silent": lambda state, seat: "",
    "malformed": lambda state, seat: '{"version": 1, "world": "grid"',
    "impossible": lambda state, seat: task_json(budget=3),
    "beyond budget": lambda state, seat: task_json(budget=900),
    "trivial": lambda state, seat: _trivial(state.round),
    "repeated": lambda state, seat: task_json(),
    "parent": lambda state, seat: json.dumps(state.offers[seat].parent.data),
}


def test_no_cheating_setter_profits() -> None:
    """Seat 0 cheats or not; all solve alike. What it earns by setting, and its return, are below the honest ones'."""
    means: dict[str, tuple[float, float]] = {}
    for name in ("honest", *CHEATS):
        setting, returns = 0.0, 0.0
        for seed in range(4):
            state: Any = new(seats=3, seed=seed, rounds=3, attempts=4, setting="json")
            while state.turns():
                actions = {seat: _honest(state, seat) for seat in range(3)}
                if name != "honest":
                    actions[0] = CHEATS[name](state, 0)
                state.apply(actions)
                play_on(state, skill=dict.fromkeys(range(3), 0.75), seed=derive_seed(seed, state.round))
            setting += state.set_scores[0] / 4
            returns += told(state, "end")[0]["returns"][0] / 4
        means[name] = (setting, returns)
    honest = means.pop("honest")
    assert honest[0] > 1
    for name, (setting, returns) in means.items():
        assert setting <= (0.0 if name != "repeated" else honest[0] / 2), (name, means)
        assert returns < honest[1], (name, means)


def test_nobody_sees_the_steps_of_others_before_the_round_is_over() -> None:
    state: Any = new(seats=4, attempts=3)
    state.apply(offered(state))
    for _ in range(4):
        state.apply({seat: space.sample(random.Random(seat)) for seat, space in state.turns().items()})
    for seat in (None, 0, 3):
        seen = [event for event in state.history if event.kind == "step" and event.visible_to(seat)]
        assert {event.data["seat"] for event in seen} == (set() if seat is None else {seat})
    assert list(state.view(1).now) == [1] and state.view(None).now == {}


def test_the_public_record_counts_attempts_by_skill() -> None:
    state: Any = new(seats=3, attempts=2, rounds=2)
    state.apply(offered(state))
    play_on(state)
    view = state.view(None)
    for seat in range(3):
        assert view.records[seat]["navigate"] == (2, 2)
    assert [task.p for task in view.history] == [1.0] * 3


def test_modes_are_played_by_their_numbers_of_seats() -> None:
    for mode, good, bad in (
        ("duel", (2,), (3, 4)),
        ("round-table", (2, 6), (7, 8)),
        ("relay", (4, 6, 8), (2, 3, 5, 7)),
    ):
        for seats in good:
            FORGE.new(seats=seats, options={"mode": mode})
        for seats in bad:
            with pytest.raises(BadOption, match=f"got '{mode}' with {seats} seats, it is played by"):
                FORGE.new(seats=seats, options={"mode": mode})


# Relay


def relay(seed: int = 0, seats: int = 4, **options: Any) -> Any:
    return FORGE.new(seed=seed, seats=seats, options={"mode": "relay", "hint_chars": 0, **options})


def next_subtask(course: Course, node: Node) -> str:
    """Name what a shortest way makes true next."""
    left, named = steps_left(course), subtasks(course, node)
    while node.space is not None and node in left:
        onward = [course.step(node, action) for action in node.space.options]
        node = min((after for after in onward if after in left), key=lambda after: left[after])
        for words, goal in named.items():
            if goal.facts() <= node.facts:
                return words
    return SILENT


def run_leg(state: Any, *, silent: tuple[int, ...] = (), careless: tuple[int, ...] = ()) -> None:
    """Play a leg: setters name what a shortest plan does next, runners follow the plan if they are told anything."""
    leg = state.leg
    rng = random.Random(derive_seed(leg, "leg"))
    while state.turns() and state.leg == leg:
        actions: dict[int, str] = {}
        for seat, space in state.turns().items():
            team = state.pair[seat % 2]
            if team.stage == "direct":
                actions[seat] = SILENT if seat in silent else next_subtask(state.course, team.node)
            else:
                step = (
                    state.course.plan[len(team.trail)] if len(team.trail) < state.course.optimal else "wait"
                )
                lost = seat in careless or team.goal is None or not space.contains(step)
                actions[seat] = space.sample(rng) if lost else step
        state.apply(actions)


def test_a_leg_is_run_on_one_layout_by_rotating_roles_and_shown_to_setters_alone() -> None:
    state = relay(seats=6, rounds=3)
    assert members(0, 6) == (0, 2, 4)
    for leg in range(3):
        red, blue = state.pair
        assert (red.setter, blue.setter) == ((0, 1), (2, 3), (4, 5))[leg]
        assert set(red.runners) == {0, 2, 4} - {red.setter}
        assert state.view(red.setter).course == state.course == state.view(blue.setter).course
        assert all(
            state.view(seat).course is None for seat in range(6) if seat not in (red.setter, blue.setter)
        )
        run_leg(state)
    rows = told(state, "legs")
    assert [row["earned"] for leg in rows for row in leg["teams"]] == [1.0] * 6
    assert state.outcome().returns == (0.0,) * 6


def test_a_runner_sees_its_surroundings_and_no_further() -> None:
    state = relay(radius=1)
    state.apply(dict.fromkeys(state.turns(), SILENT))
    runner = state.pair[0].runner
    sight = state.view(runner).teams[0].sight
    assert len(sight["rows"]) <= 3 and all(len(row.split(" ")) <= 6 for row in sight["rows"])
    assert state.view(state.pair[0].setter).teams[0].sight is None
    assert not any(event.kind == "map" and event.visible_to(runner) for event in state.history)


def test_subtasks_are_goals_of_this_world_that_do_not_hold() -> None:
    state = relay(setting="json")
    course: Course = state.course
    for words, goal in subtasks(course, course.start).items():
        goal.check_names(course.world.vocabulary())
        assert not goal.facts() <= course.start.facts, words
    red, blue = state.pair
    state.apply({red.setter: '{"at": "nowhere at all"}', blue.setter: '{"at": "exit"}'})
    bad, good = told(state, "direct")
    assert (bad["goal"] is None and "got 'nowhere at all'" in bad["reason"]) or "belongs to" in bad["reason"]
    assert good["goal"] == {"at": "exit"} and "reason" not in good


def test_a_subtask_ends_when_it_holds_or_at_the_leash_and_the_next_runner_takes_over() -> None:
    state = relay(seats=6, leash=2)
    first = state.pair[0].runner
    state.apply(dict.fromkeys(state.turns(), SILENT))
    for _ in range(2):
        assert state.pair[0].runner == first
        state.apply(dict.fromkeys(state.turns(), "wait"))
    assert isinstance(state.turns()[state.pair[0].setter], Choice)
    assert state.pair[0].runner != first


@pytest.mark.parametrize("fault", ["silent", "careless"])
@pytest.mark.parametrize("seat", [0, 2])
def test_in_a_team_of_two_the_steps_lost_tell_who_is_to_blame(fault: str, seat: int) -> None:
    state = relay(seed=3, rounds=6)
    while state.turns():
        run_leg(state, **{fault: (seat,)})
    setting, running = dict.fromkeys((0, 2), 0), dict.fromkeys((0, 2), 0)
    for leg in state.view(None).legs:
        if leg.team == 0:
            setting[leg.setter] += leg.lost_setting
            running[leg.runners[0]] += leg.lost_running[0]
        else:
            assert (leg.lost_setting, leg.lost_running) == (0, (0,))
    accounts = {("silent", s): lost for s, lost in setting.items()}
    accounts |= {("careless", s): lost for s, lost in running.items()}
    blamed = accounts.pop((fault, seat))
    assert blamed > 10
    assert all(lost == 0 for lost in accounts.values())


def test_a_silent_setter_and_a_careless_runner_are_told_apart_by_the_legs() -> None:
    """In a team of three, who is silent spoils the legs that it directs, who is careless those that it runs."""
    spoilt: dict[tuple[str, int], set[int]] = {}
    for fault in ("silent", "careless"):
        for seat in (0, 2, 4):
            earned = dict.fromkeys((0, 2, 4), 0.0)
            for seed in range(2):
                state = relay(seed=seed, seats=6, rounds=6, leash=50)
                while state.turns():
                    run_leg(state, **{fault: (seat,)})
                for leg in state.view(None).legs:
                    if leg.team == 0:
                        earned[leg.setter] += leg.earned / 4
            spoilt[fault, seat] = {setter for setter, mean in earned.items() if mean < 0.6}
    for seat in (0, 2, 4):
        assert spoilt["silent", seat] == {seat}
        assert spoilt["careless", seat] == {0, 2, 4} - {seat}
