"""Changes of a text world's layout, for `games.tasks.edits`: each from a task's data to a child's, or None."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from games.tasks.text_generate import CONTAINERS, ITEMS, METALS, WOODS

Draw = Callable[[int], int]


def _pick(items: Sequence[Any], draw: Draw) -> Any:
    return items[draw(len(items))]


def _names(data: Mapping[str, Any]) -> set[str]:
    layout = data["layout"]
    named = {thing["name"] for thing in layout["things"]} | set(layout["rooms"])
    named |= {way["door"] for way in layout["ways"] if "door" in way}
    return named | {recipe["makes"] for recipe in layout.get("recipes", ())}


def _new(data: Mapping[str, Any], pool: Sequence[str], draw: Draw, *, kind: str = "") -> str | None:
    """Return a name of the pool that is still free."""
    taken = _names(data)
    free = [name for name in (f"{word} {kind}".strip() for word in pool) if name not in taken]
    return str(_pick(free, draw)) if free else None


def move(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Move the start or a thing to another room."""
    layout = data["layout"]
    standing = [thing for thing in layout["things"] if thing["in"] in layout["rooms"]]
    which = draw(len(standing) + 1)
    if which == len(standing):
        layout["start"] = _pick(layout["rooms"], draw)
    else:
        standing[which]["in"] = _pick(layout["rooms"], draw)
    return data


def move_or_block(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Move the start or a thing, or take a way without a door out."""
    plain = [way for way in data["layout"]["ways"] if "door" not in way]
    if not plain or draw(3):
        return move(data, draw)
    data["layout"]["ways"].remove(_pick(plain, draw))
    return data


def more_objects(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Shut something into a new container, lock a way or a container, or ask for a new item first."""
    layout = data["layout"]
    things, rooms, kind = layout["things"], layout["rooms"], draw(3)
    if kind == 0:
        loose = [thing for thing in things if thing["kind"] in ("key", "item") and thing["in"] in rooms]
        box = _new(data, CONTAINERS, draw)
        if not loose or box is None:
            return None
        thing = _pick(loose, draw)
        things.append({"kind": "container", "name": box, "in": thing["in"]})
        thing["in"] = box
    elif kind == 1:
        ways = [way for way in layout["ways"] if "key" not in way]
        boxes = [thing for thing in things if thing["kind"] == "container" and "key" not in thing]
        key, door = _new(data, METALS, draw, kind="key"), _new(data, WOODS, draw, kind="door")
        if not ways + boxes or key is None or door is None:
            return None
        shut = _pick(ways + boxes, draw)
        if "to" in shut:
            shut.setdefault("door", door)
        shut["key"] = key
        things.append({"kind": "key", "name": key, "in": _pick(rooms, draw)})
    else:
        name = _new(data, ITEMS, draw)
        if name is None:
            return None
        things.append({"kind": "item", "name": name, "in": _pick(rooms, draw)})
        data["goal"] = {"then": [{"has": name}, data["goal"]]}
    return data


def fewer_objects(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Take a door or a container away; what was in it lies in the room then."""
    layout = data["layout"]
    boxes = [thing for thing in layout["things"] if thing["kind"] == "container"]
    doors = [way for way in layout["ways"] if "door" in way]
    if not boxes + doors:
        return None
    gone = _pick(boxes + doors, draw)
    if "door" in gone:
        gone.pop("door")
        gone.pop("key", None)
        return data
    layout["things"].remove(gone)
    for thing in layout["things"]:
        if thing["in"] == gone["name"]:
            thing["in"] = gone["in"]
    return data


def more_distractors(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Add an item or a container that nobody asks for."""
    kind = _pick(("item", "container"), draw)
    name = _new(data, ITEMS if kind == "item" else CONTAINERS, draw)
    if name is None:
        return None
    data["layout"]["things"].append({"kind": kind, "name": name, "in": _pick(data["layout"]["rooms"], draw)})
    return data


def fewer_distractors(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Take an item, a key or a container away, with what is in it."""
    things = data["layout"]["things"]
    some = [thing for thing in things if thing["kind"] != "surface"]
    if not some:
        return None
    gone = _pick(some, draw)["name"]
    data["layout"]["things"] = [thing for thing in things if gone not in (thing["name"], thing["in"])]
    return data


TEXT_CHANGES: dict[str, Callable[[dict[str, Any], Draw], dict[str, Any] | None]] = {
    "longer": move_or_block,
    "shorter": move,
    "more_objects": more_objects,
    "fewer_objects": fewer_objects,
    "more_distractors": more_distractors,
    "fewer_distractors": fewer_distractors,
}
"""The change of the layout behind each edit that needs one."""
