"""The text world against its rules written once more, plainly, and against brute force."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from games.errors import BadGoal, BadLayout, BadTask, TaskTooBig
from games.spaces import Choice
from games.tasks.check import Attempt, cheats, check, replay
from games.tasks.goals import BROKEN, HOLDS, Goal
from games.tasks.solver import SOLVABLE, UNKNOWN, UNSOLVABLE, solve
from games.tasks.spec import TaskSpec
from games.tasks.text import TextState, TextWorld
from games.tasks.text_layout import DIRECTIONS
from tests.games.tasks.worlds_for_tests import goal_data, parsed, text_layouts, text_worlds

HOUSE: dict[str, Any] = {
    "rooms": ["hall", "kitchen", "cellar"],
    "start": "hall",
    "ways": [
        {"from": "hall", "go": "north", "to": "kitchen"},
        {"from": "kitchen", "go": "down", "to": "cellar", "door": "oak door", "key": "iron key"},
    ],
    "things": [
        {"kind": "container", "name": "chest", "in": "hall", "key": "brass key"},
        {"kind": "container", "name": "basket", "in": "kitchen"},
        {"kind": "surface", "name": "stove", "in": "kitchen"},
        {"kind": "key", "name": "brass key", "in": "kitchen"},
        {"kind": "key", "name": "iron key", "in": "chest"},
        {"kind": "item", "name": "carrot", "in": "basket"},
        {"kind": "item", "name": "water", "in": "cellar"},
        {"kind": "item", "name": "lamp", "in": "hall"},
    ],
    "recipes": [{"makes": "soup", "of": ["carrot", "water"], "on": "stove"}],
}
COOK = (
    "go north", "take brass key", "go south", "unlock chest with brass key", "take iron key", "go north",
    "unlock oak door with iron key", "open basket", "take carrot", "put carrot on stove", "go down", "take water",
    "go up", "put water on stove", "make soup",
)  # fmt: skip


def house(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy({**HOUSE, **changes})


class Plain:
    """The rules once more: where everything is, by name, read from the layout data alone."""

    def __init__(self, layout: dict[str, Any]) -> None:
        self.layout = layout
        self.room = layout["start"]
        self.open: set[str] = set()
        self.where = {thing["name"]: thing["in"] for thing in layout["things"]}
        self.kind = {thing["name"]: thing["kind"] for thing in layout["things"]}
        for recipe in layout.get("recipes", ()):
            self.where[recipe["makes"]] = "nowhere"
            self.kind[recipe["makes"]] = "item"

    def carried(self) -> list[str]:
        return [name for name, where in self.where.items() if where == "hands" and self.kind[name] == "item"]

    def reach(self, name: str) -> bool:
        """Whether a thing lies openly in this room."""
        holder = self.where[name]
        if holder in self.where:
            shut = self.kind[holder] == "container" and holder not in self.open
            return self.where[holder] == self.room and not shut
        return bool(holder == self.room)

    def ways(self) -> dict[str, dict[str, Any]]:
        found = {}
        for way in self.layout["ways"]:
            if way["from"] == self.room:
                found[way["go"]] = {**way, "leads": way["to"]}
            if way["to"] == self.room:
                found[DIRECTIONS[way["go"]]] = {**way, "leads": way["from"]}
        return found

    def locks(self) -> dict[str, str | None]:
        """Return what is closed here, with its key."""
        found = {way["door"]: way.get("key") for way in self.ways().values() if "door" in way}
        found |= {
            t["name"]: t.get("key")
            for t in self.layout["things"]
            if t["kind"] == "container" and t["in"] == self.room
        }
        return {name: key for name, key in found.items() if name not in self.open}

    def does(self, command: str) -> bool:
        """Do it; return whether it could be done."""
        words = command.split()
        rest = " ".join(words[1:])
        if words[0] == "go":
            way = self.ways().get(rest)
            if way is None or ("door" in way and way["door"] not in self.open):
                return False
            self.room = way["leads"]
        elif words[0] == "take":
            if self.kind.get(rest) not in ("key", "item") or not self.reach(rest):
                return False
            if self.kind[rest] == "item" and len(self.carried()) == 2:
                return False
            self.where[rest] = "hands"
        elif words[0] in ("open", "unlock"):
            name, _, key = rest.partition(" with ")
            lock = self.locks().get(name, "none such")
            if lock != (key or None) or (lock is not None and self.where.get(lock) != "hands"):
                return False
            self.open.add(name)
        elif words[0] == "put":
            item, _, surface = rest.partition(" on ")
            if item not in self.carried() or self.kind.get(surface) != "surface" or not self.reach(surface):
                return False
            self.where[item] = surface
        elif words[0] == "make":
            recipe = next((r for r in self.layout.get("recipes", ()) if r["makes"] == rest), None)
            if recipe is None or self.where[rest] != "nowhere" or not self.reach(recipe["on"]):
                return False
            if len(self.carried()) == 2 or any(self.where[name] != recipe["on"] for name in recipe["of"]):
                return False
            self.where.update(dict.fromkeys(recipe["of"], "used up"))
            self.where[rest] = "hands"
        else:
            return command == "wait"
        return True

    def facts(self) -> set[tuple[str, ...]]:
        facts = {("at", self.room)} | {("opened", name) for name in self.open}
        for name, where in self.where.items():
            if where == "hands":
                facts.add(("has", name))
            elif self.kind.get(where) == "surface":
                facts.add(("delivered", name, where))
        return facts

    def commands(self) -> list[str]:
        names = list(self.where)
        doors = [way["door"] for way in self.layout["ways"] if "door" in way]
        return [
            "wait",
            *(f"go {go}" for go in DIRECTIONS),
            *(f"{verb} {name}" for verb in ("take", "open", "make") for name in names + doors),
            *(f"unlock {name} with {key}" for name in names + doors for key in names),
            *(f"put {item} on {surface}" for item in names for surface in names),
        ]

    def twin(self) -> "Plain":
        twin = copy.copy(self)
        twin.open, twin.where = set(self.open), dict(self.where)
        return twin


@given(text_layouts(), st.integers(0, 2**32))
def test_play_goes_as_the_plain_rules_say(layout: dict[str, Any], seed: int) -> None:
    world, plain, rng = TextWorld.parse(layout), Plain(layout), random.Random(seed)
    state, commands = world.initial(), plain.commands()
    for _ in range(25):
        assert world.facts(state) == plain.facts()
        can = {command for command in commands if plain.twin().does(command)}
        assert set(world.legal(state)) == can
        for command in commands:
            assert (world.fault(state, command) is None) == (command in can)
        # what opens a way or takes a thing comes up more often than walking about
        telling = [command for command in can if not command.startswith(("go", "wait"))]
        command = rng.choice(sorted(telling if telling and rng.random() < 0.6 else can))
        state = world.step(state, command)
        plain.does(command)


def brute_force(layout: dict[str, Any], goal: Goal, *, most: int) -> int | str | None:
    """Return the length of a shortest plan by trying every command in the plain world; a word if it is too much."""
    plain = Plain(layout)
    progress = goal.start(plain.facts())
    if goal.status(progress) == HOLDS:
        return 0
    if goal.status(progress) == BROKEN:
        return None
    frontier, depth = [(plain, progress)], 0
    seen = {(plain.room, frozenset(plain.open), frozenset(plain.where.items()), progress)}
    while frontier:
        depth += 1
        reached = []
        for before, old in frontier:
            for command in before.commands():
                after = before.twin()
                if not after.does(command):
                    continue
                progress = goal.fold(old, after.facts())
                key = (after.room, frozenset(after.open), frozenset(after.where.items()), progress)
                if key in seen or goal.status(progress) == BROKEN:
                    continue
                if goal.status(progress) == HOLDS:
                    return depth
                seen.add(key)
                reached.append((after, progress))
                if len(seen) > most:
                    return "too much"
        frontier = reached
    return None


small_tasks = text_worlds(most_rooms=3).flatmap(
    lambda world: st.tuples(
        st.just(world), goal_data(world.vocabulary()).map(parsed).filter(lambda goal: goal is not None)
    )
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(small_tasks)
def test_the_solver_answers_as_brute_force_does(task: tuple[TextWorld, Goal]) -> None:
    world, goal = task
    expected = brute_force(world.to_data(), goal, most=600)
    assume(expected != "too much")
    found = solve(world, goal)
    assert found.status == (UNSOLVABLE if expected is None else SOLVABLE)
    assert found.length == expected


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(small_tasks, st.integers(0, 3))
def test_every_shortest_plan_is_accepted_and_every_cheat_made_of_it_refused(
    task: tuple[TextWorld, Goal], spare: int
) -> None:
    world, goal = task
    found = solve(world, goal, max_nodes=3_000)
    assume(found.status == SOLVABLE and found.plan)
    plan = found.plan or ()
    spec = TaskSpec.make(world, goal=goal, budget=len(plan) + spare)
    states = replay(spec, plan).states
    assert check(spec, Attempt(spec.hash, plan, states)).success
    other = TaskSpec.make(TextWorld.parse(HOUSE), goal=Goal.parse({"has": "soup"}), budget=40)
    for cheat in cheats(spec, plan, other=(other, COOK)):
        assert not check(spec, cheat.attempt).success, cheat


def test_soup_is_cooked_in_fifteen_steps() -> None:
    world, goal = TextWorld.parse(HOUSE), Goal.parse({"has": "soup"})
    found = solve(world, goal)
    assert found.length == len(COOK) == 15
    spec = TaskSpec.make(world, goal=goal, budget=15)
    assert check(spec, Attempt(spec.hash, COOK)).reason == "solved at step 15 of 15"
    end = replay(spec, COOK).states[-1]
    assert world.changed(end.bits) == {
        "opened": ["oak door", "basket", "chest"],
        "held": ["brass key", "iron key", "soup"],
        "used": ["carrot", "water"],
        "lying": {},
    }


@pytest.mark.parametrize(
    ("done", "command", "fault"),
    [
        ((), "go south", "blocked"),
        ((), "go nowhere", "unknown"),
        (COOK[:1], "go down", "locked"),
        ((), "take carrot", "nothing"),
        ((), "take fire", "unknown"),
        ((), "unlock chest with brass key", "no_key"),
        ((), "unlock chest with iron key", "no_key"),
        ((), "open chest", "no_key"),
        ((), "unlock chest with lamp", "unknown"),
        (COOK[:4], "unlock chest with brass key", "nothing"),
        ((), "open basket", "nothing"),
        ((), "put carrot on stove", "empty"),
        (("take lamp",), "put lamp on stove", "no_place"),
        ((), "put lamp on chest", "unknown"),
        (COOK[:1], "make soup", "nothing"),
        (("take lamp", *COOK[:9], *COOK[10:11]), "take water", "full"),
        ((), "GO NORTH", "unknown"),
        ((), "", "unknown"),
    ],
)
def test_why_a_command_cannot_be_done(done: tuple[str, ...], command: str, fault: str) -> None:
    world = TextWorld.parse(HOUSE)
    state = world.initial()
    for action in done:
        assert world.fault(state, action) is None, action
        state = world.step(state, action)
    assert world.fault(state, command) == fault
    assert world.step(state, command) == state


def test_descriptions_are_rendered_from_the_state() -> None:
    world = TextWorld.parse(HOUSE)
    state = world.initial()
    assert world.render(state) == (
        "You are in the hall, holding nothing.\n"
        "The chest (locked, needs the brass key), the lamp. Ways: north to the kitchen.\n"
        "In the cellar: The water. Ways: up to the kitchen by the oak door (locked, needs the iron key).\n"
        "In the kitchen: The basket (closed), the stove (on it nothing), the brass key. "
        "Ways: south to the hall; down to the cellar by the oak door (locked, needs the iron key).\n"
        "To make soup: put the carrot, the water on the stove.\n"
    )
    for action in ("take lamp", *COOK[:10]):
        state = world.step(state, action)
    near = world.render(state, radius=0)
    assert near == (
        "You are in the kitchen, holding the brass key, the iron key, the lamp.\n"
        "The basket (open, in it nothing), the stove (on it the carrot). "
        "Ways: south to the hall; down to the cellar by the oak door (open).\n"
        "To make soup: put the carrot, the water on the stove.\n"
    )


def test_a_radius_ends_at_closed_doors_and_closed_containers_hide() -> None:
    world = TextWorld.parse(HOUSE)
    seen = world.observe(world.initial(), radius=5)
    assert [room["name"] for room in seen["rooms"]] == ["hall", "kitchen"]
    assert "iron key" not in json.dumps([room["things"] for room in seen["rooms"]])
    assert len(world.observe(world.initial(), radius=0)["rooms"]) == 1
    assert len(world.observe(world.initial())["rooms"]) == 3


def test_typed_commands_make_an_action_space() -> None:
    world = TextWorld.parse(HOUSE)
    space = Choice(world.legal(world.initial()), label="command")
    assert space.contains("go north")
    assert not space.contains("go south")
    assert space.sample(random.Random(0)) in world.legal(TextState(world.start, 0))


def test_distractors_do_not_slow_the_search_down() -> None:
    goal = Goal.parse({"has": "soup"})
    extra = [{"kind": "item", "name": f"toy {i}", "in": "hall"} for i in range(20)]
    full = TextWorld.parse(house(things=HOUSE["things"] + extra))
    assert solve(full, goal) == solve(TextWorld.parse(HOUSE), goal)


def test_a_big_world_is_bounded_by_the_work_allowed() -> None:
    things = [{"kind": "surface", "name": f"shelf {i}", "in": "hall"} for i in range(8)]
    things += [{"kind": "item", "name": f"toy {i}", "in": "cellar"} for i in range(8)]
    world = TextWorld.parse({**house(ways=HOUSE["ways"][:1]), "things": things, "recipes": []})
    assert solve(world, Goal.parse({"at": "cellar"})).status == UNSOLVABLE
    things = [{**thing, "in": "kitchen"} for thing in things]
    world = TextWorld.parse({**house(ways=HOUSE["ways"][:1]), "things": things, "recipes": []})
    goal = Goal.parse({"and": [{"delivered": [f"toy {i}", f"shelf {i}"]} for i in range(8)]})
    assert solve(world, goal, max_nodes=5_000).status == UNKNOWN


def test_equal_layouts_have_one_form_however_they_are_written() -> None:
    turned = house()
    turned["rooms"].reverse()
    turned["things"].reverse()
    turned["ways"] = [
        {"from": "kitchen", "go": "south", "to": "hall"},
        {"from": "cellar", "go": "up", "to": "kitchen", "door": "oak door", "key": "iron key"},
    ]
    turned["recipes"][0]["of"].reverse()
    assert TextWorld.parse(turned).to_data() == TextWorld.parse(HOUSE).to_data()


def with_thing(**thing: Any) -> dict[str, Any]:
    return house(things=[*HOUSE["things"], thing])


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (None, "layout: got None, an object is needed"),
        ({}, "layout: the field 'rooms' is missing"),
        (house(colour="red"), "layout: got the field 'colour', allowed are recipes, rooms, start, things, ways"),
        (house(rooms=["hall"]), "layout rooms: got a list of 1, a list of 2 to 24 names is needed"),
        (house(rooms=["hall", "hall"]), "layout rooms[1]: got a second hall"),
        (house(rooms=["hall", "Hall"]), "layout rooms[1]: got 'Hall', a name is one to four words"),
        (house(rooms=["hall", "on top"]), "layout rooms[1]: got 'on top', the word 'on' belongs to the commands"),
        (house(start="attic"), "layout start: got 'attic', there is no such room"),
        (house(ways={}), "layout ways: got an empty object, a list is needed"),
        (house(ways=[{"from": "hall", "go": "left", "to": "cellar"}]), "layout ways[0] go: got 'left', allowed"),
        (house(ways=[{"from": "hall", "go": "up", "to": "hall"}]), "leads from the hall back into it"),
        (
            house(ways=[*HOUSE["ways"], {"from": "cellar", "go": "south", "to": "kitchen"}] * 1
                  + [{"from": "hall", "go": "north", "to": "cellar"}]),
            "layout ways: two of them lead",
        ),
        (house(ways=[{"from": "hall", "go": "up", "to": "cellar", "key": "iron key"}]), "got a key without a door"),
        (
            house(ways=[{"from": "hall", "go": "up", "to": "cellar", "door": "gate", "key": "lamp"}]),
            "layout ways[0] key: got 'lamp', there is no such key",
        ),
        (with_thing(kind="dragon", name="smaug", **{"in": "hall"}), "layout things[8] kind: got 'dragon'"),
        (with_thing(kind="item", name="lamp", **{"in": "hall"}), "layout things[8] name: got a second lamp"),
        (with_thing(kind="item", name="rope", **{"in": "stove"}), "layout things[8] in: got 'stove', there is no"),
        (with_thing(kind="item", name="rope", **{"in": []}), "layout things[8] in: got an empty list"),
        (with_thing(kind="container", name="box", **{"in": "chest"}), "there is no such room"),
        (with_thing(kind="surface", name="bench", key="iron key", **{"in": "hall"}), "only a container may be"),
        (with_thing(kind="container", name="box", key=3, **{"in": "hall"}), "layout things[8] key: got 3"),
        (house(things=[{}] * 41), "layout things: got 41 of them, at most 40 are allowed"),
        (house(recipes=[{"makes": "soup", "of": [], "on": "stove"}]), "layout recipes[0] of: got an empty list"),
        (house(recipes=[{"makes": "soup", "of": ["lamp"] * 2, "on": "stove"}]), "names of different items"),
        (house(recipes=[{"makes": "soup", "of": ["soup"], "on": "stove"}]), "got 'soup', there is no such item"),
        (house(recipes=[{"makes": "soup", "of": ["lamp"], "on": "chest"}]), "on: got 'chest', there is no such"),
        (house(recipes=[{"makes": "soup", "of": ["lamp"], "on": None}]), "on: got None"),
        (house(recipes=[{"makes": "lamp", "of": ["lamp"], "on": "stove"}]), "got a second lamp"),
    ],
)  # fmt: skip
def test_what_is_no_layout_is_refused_in_one_line(layout: Any, words: str) -> None:
    with pytest.raises((BadLayout, TaskTooBig)) as caught:
        TextWorld.parse(layout)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_goal_about_what_is_not_there_is_refused() -> None:
    with pytest.raises(BadGoal, match="goal has: got 'sword', this world has brass key"):
        TaskSpec.make(TextWorld.parse(HOUSE), goal=Goal.parse({"has": "sword"}), budget=3)


@settings(max_examples=200)
@given(st.data())
def test_damaged_layouts_give_a_world_or_one_line(data: st.DataObject) -> None:
    layout = house()
    for _ in range(data.draw(st.integers(1, 3))):
        part: Any = layout
        while isinstance(part, dict | list) and part:
            keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
            key = data.draw(st.sampled_from(keys))
            if data.draw(st.booleans()) or not isinstance(part[key], dict | list):
                part[key] = data.draw(
                    st.sampled_from(
                        [None, True, -1, 1e9, "", "lamp", "hall", "\n", [], {}, ["lamp"], {"in": 1}]
                    )
                )
                break
            part = part[key]
    try:
        world = TextWorld.parse(layout)
    except BadTask as error:
        assert "\n" not in str(error)
    else:
        assert TextWorld.parse(world.to_data()).to_data() == world.to_data()
