import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.errors import BadLayout, BadTask, TaskTooBig
from games.tasks.goals import Goal
from games.tasks.grid import ACTIONS, LEGEND, Grid, GridState
from games.tasks.world import FAULTS, WAIT
from tests.games.tasks.worlds_for_tests import SEED_LAYOUT, Plain, grids

CORRIDOR = ["######", "#....#", "#....#", "#....#", "#....#", "######"]


def grid(*things: dict[str, Any], start: tuple[int, int] = (1, 1)) -> Grid:
    return Grid.parse({"rows": CORRIDOR, "start": list(start), "things": list(things)})


def play(world: Grid, actions: str) -> GridState:
    state = world.initial()
    for action in actions.split():
        assert world.fault(state, action) is None, f"{action}: {world.fault(state, action)}"
        state = world.step(state, action)
    return state


@given(grids(), st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_every_step_agrees_with_the_rules_written_out_plainly(world: Grid, actions: list[str]) -> None:
    plain, state = Plain(world.to_data()), world.initial()
    for action in actions:
        plain.step(action)
        state = world.step(state, action)
        assert (state.cell < 0) == plain.caught
        assert world.observe(state)["at"] == list(plain.at)
        assert world.facts(state) == plain.facts()


@given(grids(), st.integers(0, 2**32))
def test_legal_fault_and_step_tell_one_story(world: Grid, seed: int) -> None:
    rng, state = random.Random(seed), world.initial()
    for _ in range(60):
        legal = world.legal(state)
        assert legal == tuple(a for a in ACTIONS if world.fault(state, a) is None)
        waited = world.step(state, WAIT)
        for action in ("fly", *ACTIONS):
            fault = world.fault(state, action)
            if fault is not None:
                assert fault in FAULTS
                assert world.step(state, action) == waited
            assert world.step(state, action) == world.step(state, action)
        if world.lost(state):
            assert legal == ()
            assert world.step(state, "up") == state
            return
        assert WAIT in legal
        state = world.step(state, rng.choice(legal))
        assert hash(state) == hash(GridState(*state))
        assert world.render(state).count("@ ") + world.render(state).count("X ") == 1


@given(grids())
def test_a_layout_survives_its_data(world: Grid) -> None:
    data = world.to_data()
    assert Grid.parse(json.loads(json.dumps(data))).to_data() == data
    shuffled = {**data, "things": data["things"][::-1]}
    assert Grid.parse(shuffled).to_data() == data


def test_the_seed_case_is_played_to_its_end() -> None:
    world = Grid.parse(SEED_LAYOUT)
    state = play(world, "down down down take down right open right right right right")
    assert state == play(world, "down down down take down right open right right right right")
    state = world.step(state, "down")
    assert ("at", "exit") in world.facts(state)
    assert world.render(state) == (
        "## ## ## ## ## ## ## ##\n"
        "## .  .  ## .  .  .  ##\n"
        "## .  .  ## .  ## .  ##\n"
        "## .  ## ## .  .  .  ##\n"
        "## .  .  ## .  ## .  ##\n"
        "## .  .  /y .  .  .  ##\n"
        "## .  .  ## .  .  @  ##\n"
        "## ## ## ## ## ## ## ##\n"
        "You stand at x=6, y=6, holding yellow key.\n"
    )


def test_a_locked_door_stops_and_a_key_opens_it() -> None:
    world = grid(
        {"kind": "door", "color": "red", "at": [2, 1]}, {"kind": "key", "color": "red", "at": [1, 2]}
    )
    assert world.fault(world.initial(), "right") == "locked"
    assert world.fault(world.initial(), "open") == "no_key"
    assert world.fault(world.initial(), "up") == "blocked"
    assert world.fault(world.initial(), "take") == "nothing"
    assert world.fault(world.initial(), "drop") == "empty"
    state = play(world, "down take up open right")
    assert world.facts(state) == {("opened", "red door"), ("has", "red key")}


def test_hands_hold_one_gem_and_put_it_down_on_places_alone() -> None:
    world = grid(
        {"kind": "gem", "color": "red", "at": [2, 1]},
        {"kind": "box", "color": "blue", "at": [3, 1]},
        {"kind": "gem", "color": "blue", "in": "blue box"},
        {"kind": "pad", "color": "grey", "at": [4, 1]},
    )
    state = play(world, "right take right open")
    assert world.fault(state, "take") == "full"
    assert world.fault(state, "drop") == "no_place"
    state = play(world, "right take right open right drop left take right")
    assert world.facts(state) >= {
        ("delivered", "red gem", "grey pad"),
        ("has", "blue gem"),
        ("at", "grey pad"),
    }
    assert world.fault(state, "drop") == "occupied"
    assert world.fault(state, "take") == "full"
    assert "gr" not in world.render(state)
    assert "gr" in world.render(world.step(state, "left"))


def test_a_patrol_catches_who_meets_it_or_changes_places_with_it() -> None:
    patrol = {"kind": "patrol", "path": [[3, 1], [2, 1], [1, 1]]}
    meets = grid(patrol)
    assert "!<" in meets.render(meets.initial())
    assert meets.step(meets.initial(), "right").cell < 0
    swaps = grid({"kind": "patrol", "path": [[2, 1], [1, 1]]})
    caught = swaps.step(swaps.initial(), "right")
    assert swaps.lost(caught) == "a patrol caught you"
    assert swaps.legal(caught) == ()
    assert swaps.fault(caught, "wait") == "lost"
    assert "X " in swaps.render(caught)
    assert play(meets, "down wait wait wait up").cell == meets.start


def test_a_radius_hides_what_is_far() -> None:
    world = Grid.parse(SEED_LAYOUT)
    near = world.render(world.initial(), radius=2)
    assert "ky" not in near
    assert "ky" in world.render(world.initial())
    assert "x=0, y=0" in near
    assert len(world.observe(world.initial(), radius=2)["rows"]) == 4


def test_distractors_are_left_out_of_a_search_and_needed_things_are_not() -> None:
    world = grid(
        {"kind": "gem", "color": "red", "at": [1, 1]},
        {"kind": "key", "color": "blue", "at": [2, 1]},
        {"kind": "key", "color": "red", "at": [3, 1]},
        {"kind": "door", "color": "red", "at": [4, 4]},
        {"kind": "exit", "at": [4, 1]},
        start=(1, 1),
    )
    useful = world.useful(Goal.parse({"at": "exit"}))
    start = world.initial()
    assert "take" in world.legal(start)
    assert "take" not in useful(start)
    assert "wait" not in useful(start)
    assert "take" not in useful(play(world, "right"))
    assert "take" in useful(play(world, "right right"))
    timed = Goal.parse({"then": [{"has": "red gem"}, {"at": "exit"}]})
    assert {"take", "wait"} <= set(world.useful(timed)(start))


@given(grids(), st.integers(0, 2**32))
def test_useful_actions_are_legal(world: Grid, seed: int) -> None:
    rng, state = random.Random(seed), world.initial()
    goal = Goal.parse({"at": "exit"})
    useful = world.useful(goal)
    while not world.lost(state) and rng.random() < 0.97:
        assert set(useful(state)) <= set(world.legal(state))
        state = world.step(state, rng.choice(world.legal(state)))


def test_the_legend_names_every_mark() -> None:
    for mark in ("##", "@", "E", "k", "D", "/", "B", "u", "g", "p", "!", "X"):
        assert f"{mark} " in LEGEND


EXIT = {"kind": "exit", "at": [4, 4]}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (None, BadLayout, "layout: got None, an object is needed"),
        ({"walls": []}, BadLayout, "got the field 'walls', allowed are rows, start, things"),
        ({"rows": ["####"] * 4}, BadLayout, "a list of 6 to 16 strings"),
        ({"rows": [*CORRIDOR[:5], "####.#"]}, BadLayout, "rows[5]: got '####.#', the edge must be all #"),
        ({"rows": [*CORRIDOR[:5], "#######"]}, BadLayout, "7 characters long, the first row has 6"),
        ({"rows": [*CORRIDOR[:5], "##x###"]}, BadLayout, "characters # or . are needed"),
        ({"rows": "######"}, BadLayout, "layout rows"),
        ({"start": [0, 0]}, BadLayout, "layout start: got [0, 0], a wall is there"),
        ({"start": [1, 9]}, BadLayout, "[x, y] inside 6 x 6 is needed"),
        ({"start": [True, 1]}, BadLayout, "layout start"),
        ({"start": [10**4000, 1]}, BadLayout, "got [a huge number, 1]"),
        ({"things": {}}, BadLayout, "layout things: got an empty object, a list is needed"),
        ({"things": [EXIT] * 41}, TaskTooBig, "got 41 of them, at most 40"),
        ({"things": [EXIT, EXIT]}, BadLayout, "got a second exit"),
        ({"things": ["exit"]}, BadLayout, "things[0]: got 'exit', an object is needed"),
        ({"things": [{"kind": "dragon"}]}, BadLayout, "kind: got 'dragon', allowed are key, door"),
        ({"things": [{"kind": "exit"}]}, BadLayout, "got the fields kind; needed are at, kind"),
        ({"things": [{"kind": "key", "color": "pink", "at": [1, 1]}]}, BadLayout, "got 'pink', allowed are red"),
        ({"things": [{"kind": "key", "color": [], "at": [1, 1]}]}, BadLayout, "color: got an empty list"),
        ({"things": [{"kind": "key", "color": "red", "in": "red box"}]}, BadLayout, "there is no such box"),
        ({"things": [{"kind": "key", "color": "red", "in": {}}]}, BadLayout, "the name of a box is needed"),
        ({"things": [EXIT, {"kind": "pad", "color": "red", "at": [4, 4]}]}, BadLayout, "are in one cell"),
        ({"things": [{"kind": "door", "color": "red", "at": [1, 1]}]}, BadLayout, "start: a door stands there"),
        ({"things": [{"kind": "patrol", "path": [[1, 1], [2, 1]]}]}, BadLayout, "start: a patrol stands there"),
        ({"things": [{"kind": "patrol", "path": [[2, 1], [4, 1]]}]}, BadLayout, "not beside the cell before"),
        ({"things": [{"kind": "patrol", "path": [[2, 1], [3, 1], [2, 1]]}]}, BadLayout, "through a cell twice"),
        ({"things": [{"kind": "patrol", "path": [[2, 1]]}]}, BadLayout, "a list of 2 to 16 cells"),
    ],
)  # fmt: skip
def test_layouts_that_cannot_be_are_refused_in_one_line(
    change: Any, error: type[BadTask], words: str
) -> None:
    layout = None if change is None else {"rows": CORRIDOR, "start": [1, 1], "things": [], **change}
    with pytest.raises(error) as caught:
        Grid.parse(layout)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_doors_on_a_patrol_and_two_things_in_a_box_are_refused() -> None:
    with pytest.raises(BadLayout, match="path goes through a door"):
        grid({"kind": "door", "color": "red", "at": [2, 2]}, {"kind": "patrol", "path": [[2, 2], [3, 2]]})
    with pytest.raises(BadLayout, match="a box holds one thing"):
        grid(
            {"kind": "box", "color": "red", "at": [2, 2]},
            {"kind": "gem", "color": "red", "in": "red box"},
            {"kind": "key", "color": "red", "in": "red box"},
        )
