"""Edits of a parent task: one step harder or easier along one dimension, each child proven and measured.

An edit draws small changes of the layout or the goal until one gives a solvable task whose measured difficulty
moved the way the edit is meant to; the budget keeps the parent's time pressure unless that is what is edited.
The same parent, edit and seed give the same child.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from games.errors import BadTask
from games.rng import Chance, derive_seed
from games.tasks.difficulty import measure, measured, skills_of
from games.tasks.goals import Goal, short
from games.tasks.grid_layout import COLORS
from games.tasks.solver import SOLVABLE, solve
from games.tasks.spec import MAX_BUDGET, TaskSpec
from games.tasks.text_edits import TEXT_CHANGES
from games.tasks.worlds import world_type

GENERATOR = "edit-1"
MAX_TRIES = 16
MAX_NODES = 50_000

Draw = Callable[[int], int]
Change = Callable[[dict[str, Any], Draw], dict[str, Any] | None]
"""From a task's data (to be changed at will) and a source of draws to the data of a child, or None."""


class Edit(NamedTuple):
    """A kind of edit: which dimension it moves, which way (+1 harder, -1 easier), and how."""

    dimension: str
    direction: int
    change: Change | None = None
    """What it does in any world; None where that is the world's own (`LAYOUT_CHANGES`)."""


def edit_names(spec: TaskSpec) -> tuple[str, ...]:
    """Return the edits that may be tried on a task of this world."""
    own = LAYOUT_CHANGES.get(spec.world, {})
    return tuple(name for name, edit in EDITS.items() if edit.change is not None or name in own)


def vary(spec: TaskSpec, edit: str, *, seed: int) -> TaskSpec | None:
    """Return a child of `spec`, or None if no try gave one (or `spec` itself is not solved within its budget).

    Raises `BadTask` for an edit that there is not.
    """
    if edit not in edit_names(spec):
        raise BadTask(f"edit: got {short(edit)}, allowed are {', '.join(edit_names(spec))}")
    parent = measured(spec, max_nodes=MAX_NODES)
    if parent is None:
        return None
    old, (dimension, direction, change) = dict(parent.difficulty), EDITS[edit]
    change = change or LAYOUT_CHANGES[spec.world][edit]
    draw = Chance(derive_seed(seed, GENERATOR, edit, spec.hash)).draw
    for _ in range(MAX_TRIES):
        child = _child(parent, change, draw, retime=dimension != "time_pressure")
        if child is None or child.hash == spec.hash:
            continue
        if (dict(child.difficulty)[dimension] - old[dimension]) * direction > 0:
            return child
    return None


def _child(parent: TaskSpec, change: Change, draw: Draw, *, retime: bool) -> TaskSpec | None:
    data = change(parent.to_data(), draw)
    if data is None:
        return None
    try:
        world = world_type(parent.world).parse(data["layout"])
        goal = Goal.parse(data["goal"])
        goal.check_names(world.vocabulary())
    except BadTask:
        return None
    found = solve(world, goal, max_steps=MAX_BUDGET, max_nodes=MAX_NODES)
    if found.status != SOLVABLE or not found.plan:
        return None
    budget = data["budget"]
    if retime:
        budget = round(len(found.plan) / dict(parent.difficulty)["time_pressure"])
    budget = min(MAX_BUDGET, max(len(found.plan), budget))
    skills = skills_of(world, goal, plan=found.plan)
    spec = TaskSpec.make(
        world, goal=goal, budget=budget, skills=skills, generator=GENERATOR, parent=parent.hash
    )
    return spec.with_difficulty(measure(world, goal, budget=budget, plan=found.plan))


# Changes of budget and goal, for any world


def _less_time(data: dict[str, Any], draw: Draw) -> dict[str, Any]:
    optimal = round(data["difficulty"]["path_length"])
    return {**data, "budget": optimal + (data["budget"] - optimal) // 2}


def _more_time(data: dict[str, Any], draw: Draw) -> dict[str, Any]:
    return {**data, "budget": min(MAX_BUDGET, data["budget"] + max(1, data["budget"] // 4))}


def _more_rules(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    vocabulary = world_type(data["world"]).parse(data["layout"]).vocabulary()
    heads = [head for head in ("visited", "has", "opened") if vocabulary[head][0]]
    if not heads:
        return None
    head = _pick(heads, draw)
    extra = {head: _pick(sorted(vocabulary[head][0]), draw)}
    goal = data["goal"]
    places = sorted(vocabulary["at"][0])
    kind = draw(3)
    if kind == 0 and len(places) > 1:
        return {**data, "goal": {"and": [goal, {"never": {"at": _pick(places, draw)}}]}}
    if kind == 1:
        return {**data, "goal": {"and": [goal, extra]}}
    return {**data, "goal": {"then": [extra, goal]}}


def _fewer_rules(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    ((head, body),) = data["goal"].items()
    if head == "before":
        return {**data, "goal": body[1]}
    if head not in ("and", "then"):
        return None
    left = list(body)
    left.pop(draw(len(left)))
    return {**data, "goal": {head: left} if len(left) > 1 else left[0]}


# Changes of a grid's layout


def _longer_or_shorter(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    layout, free = data["layout"], _free(data["layout"])
    movable = [thing for thing in layout["things"] if "at" in thing and thing["kind"] != "door"]
    which = draw(len(movable) + 1)
    if not free:
        return None
    if which == len(movable):
        layout["start"] = _pick(free, draw)
    else:
        movable[which]["at"] = _pick(free, draw)
    return data


def _wall(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    layout, free = data["layout"], _free(data["layout"])
    if not free:
        return None
    x, y = _pick(free, draw)
    row = layout["rows"][y]
    layout["rows"][y] = f"{row[:x]}#{row[x + 1 :]}"
    return data


def _either_longer(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    return _longer_or_shorter(data, draw) if draw(2) else _wall(data, draw)


def _more_objects(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Put something into a new box, lock a narrow way, or ask for a new gem first (a condition more)."""
    layout, free = data["layout"], _free(data["layout"])
    things, color, kind = layout["things"], _pick(COLORS, draw), draw(3)
    names = {_name(thing) for thing in things}
    if kind == 0:
        loose = [thing for thing in things if thing["kind"] in ("key", "gem") and "at" in thing]
        if not loose or f"{color} box" in names:
            return None
        thing = _pick(loose, draw)
        things.append({"kind": "box", "color": color, "at": thing.pop("at")})
        thing["in"] = f"{color} box"
    elif kind == 1:
        narrow = [cell for cell in free if _is_narrow(layout["rows"], *cell)]
        if not narrow or len(free) < 2 or names & {f"{color} door", f"{color} key"}:
            return None
        door = _pick(narrow, draw)
        free.remove(door)
        things.append({"kind": "door", "color": color, "at": door})
        things.append({"kind": "key", "color": color, "at": _pick(free, draw)})
    else:
        if not free or f"{color} gem" in names:
            return None
        things.append({"kind": "gem", "color": color, "at": _pick(free, draw)})
        data["goal"] = {"then": [{"has": f"{color} gem"}, data["goal"]]}
    return data


def _is_narrow(rows: list[str], x: int, y: int) -> bool:
    """Whether a cell has walls on two opposite sides."""
    return rows[y][x - 1] == rows[y][x + 1] == "#" or rows[y - 1][x] == rows[y + 1][x] == "#"


def _fewer_objects(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    """Take a door away, or a box (what was in it lies there then)."""
    things = data["layout"]["things"]
    shut = [thing for thing in things if thing["kind"] in ("door", "box")]
    if not shut:
        return None
    gone = _pick(shut, draw)
    things.remove(gone)
    for thing in things:
        if thing.get("in") == _name(gone):
            del thing["in"]
            thing["at"] = gone["at"]
    return data


def _more_distractors(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    things, free = data["layout"]["things"], _free(data["layout"])
    thing = {"kind": _pick(("gem", "box"), draw), "color": _pick(COLORS, draw)}
    if not free or _name(thing) in {_name(other) for other in things}:
        return None
    things.append({**thing, "at": _pick(free, draw)})
    return data


def _fewer_distractors(data: dict[str, Any], draw: Draw) -> dict[str, Any] | None:
    things = data["layout"]["things"]
    some = [thing for thing in things if thing["kind"] in ("gem", "key", "box")]
    if not some:
        return None
    gone = _pick(some, draw)
    data["layout"]["things"] = [
        thing for thing in things if thing is not gone and thing.get("in") != _name(gone)
    ]
    return data


def _name(thing: Mapping[str, Any]) -> str:
    return f"{thing['color']} {thing['kind']}" if "color" in thing else str(thing["kind"])


def _free(layout: dict[str, Any]) -> list[list[int]]:
    """Return the floor cells with nothing on them that are no part of a patrol's path."""
    taken = [layout["start"], *(thing["at"] for thing in layout["things"] if "at" in thing)]
    for thing in layout["things"]:
        taken.extend(thing.get("path", ()))
    return [
        [x, y]
        for y, row in enumerate(layout["rows"])
        for x, mark in enumerate(row)
        if mark == "." and [x, y] not in taken
    ]


def _pick(items: Any, draw: Draw) -> Any:
    return items[draw(len(items))]


GRID_CHANGES: dict[str, Change] = {
    "longer": _either_longer,
    "shorter": _longer_or_shorter,
    "more_objects": _more_objects,
    "fewer_objects": _fewer_objects,
    "more_distractors": _more_distractors,
    "fewer_distractors": _fewer_distractors,
}

LAYOUT_CHANGES: dict[str, dict[str, Change]] = {"grid": GRID_CHANGES, "text": TEXT_CHANGES}
"""For each world, the change of its layouts behind each edit that needs one."""

EDITS: dict[str, Edit] = {
    "less_time": Edit("time_pressure", +1, _less_time),
    "more_time": Edit("time_pressure", -1, _more_time),
    "more_rules": Edit("rule_depth", +1, _more_rules),
    "fewer_rules": Edit("rule_depth", -1, _fewer_rules),
    "longer": Edit("path_length", +1),
    "shorter": Edit("path_length", -1),
    "more_objects": Edit("objects", +1),
    "fewer_objects": Edit("objects", -1),
    "more_distractors": Edit("distractors", +1),
    "fewer_distractors": Edit("distractors", -1),
}
"""Every edit, two for each dimension."""
