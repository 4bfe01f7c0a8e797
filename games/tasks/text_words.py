"""What an actor sees of a text world, as data and in words, rendered from the state.

What lies in a closed container is not seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from games.tasks.text_layout import DIRECTIONS, Parts

COMMANDS = (
    "go DIRECTION, take THING, open THING, unlock THING with KEY, put THING on SURFACE, make PRODUCT, wait; "
    "keys are carried besides, of other things two at a time."
)
"""The commands of the text world, in one line."""


def observe(parts: Parts, room: str, changed: Mapping[str, Any], *, radius: int | None) -> dict[str, Any]:
    """Return what is seen from `room`: the rooms within `radius` steps over open ways (all, for None)."""
    opened = set(changed["opened"])
    ways = _ways(parts, opened)
    seen = _near(ways, room, radius)
    order = [room, *(other for other in parts.rooms if other in seen and other != room)]
    return {
        "at": room,
        "holding": list(changed["held"]),
        "rooms": [_room(parts, name, ways[name], changed, opened) for name in order],
        "recipes": [{"makes": made, "of": list(of), "on": on} for made, of, on in parts.recipes],
    }


def _ways(parts: Parts, opened: set[str]) -> dict[str, list[dict[str, Any]]]:
    ways: dict[str, list[dict[str, Any]]] = {room: [] for room in parts.rooms}
    for way in parts.ways:
        door = {} if way.door is None else {"door": way.door, "open": way.door in opened}
        if way.key is not None and way.door not in opened:
            door["key"] = way.key
        ways[way.room].append({"go": way.go, "to": way.to, **door})
        ways[way.to].append({"go": DIRECTIONS[way.go], "to": way.room, **door})
    order = list(DIRECTIONS)
    return {room: sorted(found, key=lambda way: order.index(way["go"])) for room, found in ways.items()}


def _near(ways: Mapping[str, list[dict[str, Any]]], room: str, radius: int | None) -> set[str]:
    if radius is None:
        return set(ways)
    near = edge = {room}
    for _ in range(min(radius, len(ways))):
        edge = {way["to"] for name in edge for way in ways[name] if way.get("open", True)} - near
        near = near | edge
    return near


def _room(
    parts: Parts, room: str, ways: list[dict[str, Any]], changed: Mapping[str, Any], opened: set[str]
) -> dict[str, Any]:
    gone = {*changed["held"], *changed["used"], *changed["lying"]}
    things: list[dict[str, Any]] = []
    for thing in parts.things:
        if thing.inside != room or thing.name in gone:
            continue
        entry: dict[str, Any] = {"name": thing.name, "kind": thing.kind}
        if thing.kind == "container":
            entry["open"] = thing.name in opened
            if thing.key is not None and not entry["open"]:
                entry["key"] = thing.key
            if entry["open"]:
                entry["holds"] = [
                    t.name for t in parts.things if t.inside == thing.name and t.name not in gone
                ]
        if thing.kind == "surface":
            entry["holds"] = sorted(item for item, where in changed["lying"].items() if where == thing.name)
        things.append(entry)
    return {"name": room, "ways": ways, "things": things}


def render(seen: Mapping[str, Any]) -> str:
    """Return in sentences what `observe` gave."""
    here, *others = seen["rooms"]
    holding = _listed(seen["holding"]) or "nothing"
    lines = [f"You are in the {here['name']}, holding {holding}.", _described(here)]
    lines += [f"In the {room['name']}: {_described(room)}" for room in others]
    for recipe in seen["recipes"]:
        lines.append(f"To make {recipe['makes']}: put {_listed(recipe['of'])} on the {recipe['on']}.")
    return "\n".join(lines) + "\n"


def _described(room: Mapping[str, Any]) -> str:
    things = _listed(_thing(thing) for thing in room["things"])
    ways = [f"{way['go']} to the {way['to']}{_door(way)}" for way in room["ways"]]
    return f"{_capital(things)}. " * bool(things) + (
        f"Ways: {'; '.join(ways)}." if ways else "No way leads out."
    )


def _door(way: Mapping[str, Any]) -> str:
    if "door" not in way:
        return ""
    return f" by the {way['door']} ({_shut(way)})"


def _thing(thing: Mapping[str, Any]) -> str:
    name = f"the {thing['name']}"
    if thing["kind"] == "container":
        inside = ", in it " + (_listed(thing["holds"]) or "nothing") if thing["open"] else ""
        return f"{name} ({_shut(thing)}{inside})"
    if thing["kind"] == "surface":
        return f"{name} (on it {_listed(thing['holds']) or 'nothing'})"
    return name


def _shut(thing: Mapping[str, Any]) -> str:
    if thing["open"]:
        return "open"
    return f"locked, needs the {thing['key']}" if "key" in thing else "closed"


def _listed(names: Iterable[str]) -> str:
    parts: Sequence[str] = [name if name.startswith("the ") else f"the {name}" for name in names]
    return ", ".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
