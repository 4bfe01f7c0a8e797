"""Reading a text world's layout: data in, checked parts out, every refusal one line that says what and where.

`games.tasks.text` says what a layout looks like and what it means.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from games.errors import BadGoal, BadLayout, TaskTooBig
from games.tasks.goals import check_name, short

DIRECTIONS: Mapping[str, str] = {
    "north": "south",
    "east": "west",
    "up": "down",
    "south": "north",
    "west": "east",
    "down": "up",
}
"""Each direction with the one that leads back; the first three are those a canonical layout is written in."""

MIN_ROOMS, MAX_ROOMS = 2, 24
MAX_WAYS = 48
MAX_THINGS = 40
MAX_RECIPES = 6
MIN_INGREDIENTS, MAX_INGREDIENTS = 1, 4
KINDS = ("container", "surface", "key", "item")
COMMAND_WORDS = frozenset(("on",))
"""Words that a name may not contain, besides those of the goal language: a command would be ambiguous."""


class Way(NamedTuple):
    """A way between two rooms, walked in both directions; `key` opens its `door`, if it has one and is locked."""

    room: str
    go: str
    to: str
    door: str | None = None
    key: str | None = None


class Thing(NamedTuple):
    """A thing of the layout; `inside` is a room or, for keys and items, a container; `key` unlocks a container."""

    kind: str
    name: str
    inside: str
    key: str | None = None


class Recipe(NamedTuple):
    """What can be made on a surface out of items that lie there."""

    makes: str
    of: tuple[str, ...]
    on: str


class Parts(NamedTuple):
    """A layout in its canonical order."""

    rooms: tuple[str, ...]
    start: str
    ways: tuple[Way, ...]
    things: tuple[Thing, ...]
    recipes: tuple[Recipe, ...]


def canonical(
    rooms: Collection[str],
    *,
    start: str,
    ways: Collection[Way],
    things: Collection[Thing],
    recipes: Collection[Recipe] = (),
) -> Parts:
    """Return the parts in canonical order: equal layouts have equal parts. Checks nothing."""
    forth = tuple(DIRECTIONS)[:3]
    turned = [way if way.go in forth else Way(way.to, DIRECTIONS[way.go], way.room, *way[3:]) for way in ways]
    return Parts(
        tuple(sorted(rooms)),
        start,
        tuple(sorted(turned, key=lambda way: way[:2])),
        tuple(sorted(things, key=lambda thing: (KINDS.index(thing.kind), thing.name))),
        tuple(sorted(Recipe(made, tuple(sorted(of)), on) for made, of, on in recipes)),
    )


def parse_layout(layout: object) -> Parts:
    """Return the checked parts of a layout. Raises `BadLayout` or `TaskTooBig`, in one line."""
    data = _object(layout, "layout", {"rooms", "start", "ways", "things"}, {"recipes"})
    names: dict[str, str] = {}
    rooms = _read_rooms(data["rooms"], names)
    start = _one_of(data["start"], rooms, "layout start", "room")
    ways = [
        _read_way(item, i, rooms, names)
        for i, item in enumerate(_list(data["ways"], "layout ways", MAX_WAYS))
    ]
    _check_directions(ways)
    items = _list(data["things"], "layout things", MAX_THINGS)
    things = [_read_thing(item, i, names) for i, item in enumerate(items)]
    recipes = [
        _read_recipe(item, i, names)
        for i, item in enumerate(_list(data.get("recipes", []), "layout recipes", MAX_RECIPES))
    ]
    _check_references(rooms, ways, things, recipes)
    return canonical(rooms, start=start, ways=ways, things=things, recipes=recipes)


def _object(value: object, where: str, needed: set[str], also: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadLayout(f"{where}: got {short(value)}, an object is needed")
    allowed = needed | also
    extra = sorted(str(key) for key in value if key not in allowed)
    if extra:
        raise BadLayout(f"{where}: got the field {short(extra[0])}, allowed are {', '.join(sorted(allowed))}")
    missing = sorted(needed - value.keys())
    if missing:
        raise BadLayout(
            f"{where}: the field {missing[0]!r} is missing, needed are {', '.join(sorted(needed))}"
        )
    return value


def _list(value: object, where: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise BadLayout(f"{where}: got {short(value)}, a list is needed")
    if len(value) > most:
        raise TaskTooBig(f"{where}: got {len(value)} of them, at most {most} are allowed")
    return value


def _one_of(value: object, known: Collection[str], where: str, what: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise BadLayout(f"{where}: got {short(value)}, there is no such {what}")
    return value


def _new_name(value: object, where: str, names: dict[str, str], kind: str) -> str:
    try:
        name = check_name(value, what=where)
    except BadGoal as error:
        raise BadLayout(str(error)) from None
    taken = COMMAND_WORDS.intersection(name.split())
    if taken:
        raise BadLayout(f"{where}: got {short(name)}, the word {min(taken)!r} belongs to the commands")
    if name in names:
        raise BadLayout(f"{where}: got a second {name}, each name may come once")
    names[name] = kind
    return name


def _read_rooms(value: object, names: dict[str, str]) -> list[str]:
    if not isinstance(value, list) or not MIN_ROOMS <= len(value) <= MAX_ROOMS:
        raise BadLayout(
            f"layout rooms: got {short(value)}, a list of {MIN_ROOMS} to {MAX_ROOMS} names is needed"
        )
    return [_new_name(name, f"layout rooms[{i}]", names, "room") for i, name in enumerate(value)]


def _read_way(value: object, i: int, rooms: Collection[str], names: dict[str, str]) -> Way:
    where = f"layout ways[{i}]"
    data = _object(value, where, {"from", "go", "to"}, {"door", "key"})
    room = _one_of(data["from"], rooms, f"{where} from", "room")
    to = _one_of(data["to"], rooms, f"{where} to", "room")
    go = data["go"]
    if not isinstance(go, str) or go not in DIRECTIONS:
        raise BadLayout(f"{where} go: got {short(go)}, allowed are {', '.join(DIRECTIONS)}")
    if room == to:
        raise BadLayout(f"{where}: leads from the {room} back into it")
    door = _new_name(data["door"], f"{where} door", names, "door") if "door" in data else None
    if door is None and "key" in data:
        raise BadLayout(f"{where}: got a key without a door")
    return Way(room, go, to, door, _key(data, where))


def _key(data: Mapping[str, Any], where: str) -> str | None:
    key = data.get("key")
    if "key" in data and not isinstance(key, str):
        raise BadLayout(f"{where} key: got {short(key)}, the name of a key is needed")
    return key


def _check_directions(ways: list[Way]) -> None:
    taken: set[tuple[str, str]] = set()
    for way in ways:
        for end in ((way.room, way.go), (way.to, DIRECTIONS[way.go])):
            if end in taken:
                raise BadLayout(f"layout ways: two of them lead {end[1]} from the {end[0]}")
            taken.add(end)


def _read_thing(value: object, i: int, names: dict[str, str]) -> Thing:
    where = f"layout things[{i}]"
    data = _object(value, where, {"kind", "name", "in"}, {"key"})
    kind = data["kind"]
    if kind not in KINDS:
        raise BadLayout(f"{where} kind: got {short(kind)}, allowed are {', '.join(KINDS)}")
    if "key" in data and kind != "container":
        raise BadLayout(f"{where}: got a key, only a container may be locked")
    if not isinstance(data["in"], str):
        raise BadLayout(f"{where} in: got {short(data['in'])}, the name of a room or a container is needed")
    return Thing(kind, _new_name(data["name"], f"{where} name", names, kind), data["in"], _key(data, where))


def _read_recipe(value: object, i: int, names: dict[str, str]) -> Recipe:
    where = f"layout recipes[{i}]"
    data = _object(value, where, {"makes", "of", "on"}, set())
    of = data["of"]
    if not isinstance(of, list) or not MIN_INGREDIENTS <= len(of) <= MAX_INGREDIENTS:
        raise BadLayout(
            f"{where} of: got {short(of)}, a list of {MIN_INGREDIENTS} to {MAX_INGREDIENTS} items is needed"
        )
    if not all(isinstance(name, str) for name in of) or len(set(of)) != len(of):
        raise BadLayout(f"{where} of: names of different items are needed")
    if not isinstance(data["on"], str):
        raise BadLayout(f"{where} on: got {short(data['on'])}, the name of a surface is needed")
    return Recipe(_new_name(data["makes"], f"{where} makes", names, "product"), tuple(of), data["on"])


def _check_references(
    rooms: Collection[str], ways: list[Way], things: list[Thing], recipes: list[Recipe]
) -> None:
    of_kind: dict[str, set[str]] = {kind: {t.name for t in things if t.kind == kind} for kind in KINDS}
    for i, way in enumerate(ways):
        if way.key is not None:
            _one_of(way.key, of_kind["key"], f"layout ways[{i}] key", "key")
    for i, thing in enumerate(things):
        where = f"layout things[{i}]"
        holders = {*rooms, *of_kind["container"]} if thing.kind in ("key", "item") else rooms
        _one_of(thing.inside, holders, f"{where} in", "room" if holders is rooms else "room or container")
        if thing.key is not None:
            _one_of(thing.key, of_kind["key"], f"{where} key", "key")
    portable = of_kind["item"] | {recipe.makes for recipe in recipes}
    for i, recipe in enumerate(recipes):
        for name in recipe.of:
            _one_of(name, portable - {recipe.makes}, f"layout recipes[{i}] of", "item to make it of")
        _one_of(recipe.on, of_kind["surface"], f"layout recipes[{i}] on", "surface")
