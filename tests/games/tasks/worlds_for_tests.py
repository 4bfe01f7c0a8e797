"""Random worlds and goals, as hypothesis strategies, and the seed case. Not a test."""

import copy
import math
from typing import Any

from hypothesis import strategies as st

from games.errors import BadTask
from games.tasks.cases import seed_case
from games.tasks.goals import Goal
from games.tasks.grid import MOVES, Grid
from games.tasks.text import TextWorld
from games.tasks.text_layout import DIRECTIONS

SEED_TASK: dict[str, Any] = seed_case().to_data()
SEED_LAYOUT: dict[str, Any] = SEED_TASK["layout"]


@st.composite
def layouts(draw: st.DrawFn, *, side: int = 6, patrols: bool = True) -> dict[str, Any]:
    """Small grids with a few things at random cells, as canonical-looking layout data."""
    inner = [(x, y) for y in range(1, side - 1) for x in range(1, side - 1)]
    order = draw(st.permutations(inner))
    walls = set(order[len(order) - draw(st.integers(0, 4)) :])
    free = [cell for cell in order if cell not in walls]
    rows = [
        "".join("." if (x, y) in inner and (x, y) not in walls else "#" for x in range(side))
        for y in range(side)
    ]
    kinds = draw(st.lists(st.sampled_from(["pair", "gem", "pad", "boxed", "box", "key"]), max_size=4))
    things: list[dict[str, Any]] = [{"kind": "exit", "at": list(free.pop())}]
    for color, kind in zip(("red", "blue", "green", "grey"), kinds, strict=False):
        if kind in ("pair", "key"):
            things.append({"kind": "key", "color": color, "at": list(free.pop())})
        if kind == "pair":
            things.append({"kind": "door", "color": color, "at": list(free.pop())})
        if kind in ("gem", "pad"):
            things.append({"kind": kind, "color": color, "at": list(free.pop())})
        if kind in ("box", "boxed"):
            things.append({"kind": "box", "color": color, "at": list(free.pop())})
        if kind == "boxed":
            held = draw(st.sampled_from(["key", "gem"]))
            things.append({"kind": held, "color": color, "in": f"{color} box"})
    start = free.pop()
    if patrols and draw(st.booleans()):
        doors = [tuple(thing["at"]) for thing in things if thing["kind"] == "door"]
        path = _path(draw, [cell for cell in inner if cell not in walls and cell not in doors], start)
        if path:
            things.append({"kind": "patrol", "path": path})
    return {"rows": rows, "start": list(start), "things": things}


def _path(draw: st.DrawFn, cells: list[tuple[int, int]], start: tuple[int, int]) -> list[list[int]]:
    firsts = [cell for cell in cells if cell != start]
    path = [draw(st.sampled_from(firsts))] if firsts else []
    while path and len(path) < 4:
        x, y = path[-1]
        nexts = [c for c in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)) if c in cells and c not in path]
        if not nexts:
            break
        path.append(draw(st.sampled_from(nexts)))
    return [list(cell) for cell in path] if len(path) > 1 else []


def grids(*, side: int = 6, patrols: bool = True) -> st.SearchStrategy[Grid]:
    return layouts(side=side, patrols=patrols).map(Grid.parse)


@st.composite
def text_layouts(draw: st.DrawFn, *, most_rooms: int = 4) -> dict[str, Any]:
    """Small text worlds: a random tree of rooms, perhaps a loop, and a few things with locks and a recipe."""
    rooms = ["hall", "kitchen", "attic", "cellar", "garden", "shed"][: draw(st.integers(2, most_rooms))]
    keys = ["brass key", "iron key"][: draw(st.integers(0, 2))]
    used: set[tuple[str, str]] = set()
    ways: list[dict[str, Any]] = []
    ends = [(draw(st.sampled_from(rooms[:i])), rooms[i]) for i in range(1, len(rooms))]
    ends += [(rooms[0], rooms[-1])] * draw(st.integers(0, 1))
    for a, b in ends:
        free = [go for go, back in DIRECTIONS.items() if (a, go) not in used and (b, back) not in used]
        if not free:
            continue
        go = draw(st.sampled_from(free))
        used |= {(a, go), (b, DIRECTIONS[go])}
        way: dict[str, Any] = {"from": a, "go": go, "to": b}
        if draw(st.integers(0, 2)) == 0:
            way["door"] = f"door {len(ways)}"
            if keys and draw(st.booleans()):
                way["key"] = draw(st.sampled_from(keys))
        ways.append(way)
    somewhere = st.sampled_from(rooms)
    things: list[dict[str, Any]] = []
    boxes = ["chest", "crate"][: draw(st.integers(0, 2))]
    for name in boxes:
        things.append({"kind": "container", "name": name, "in": draw(somewhere)})
        if keys and draw(st.booleans()):
            things[-1]["key"] = draw(st.sampled_from(keys))
    surfaces = ["table", "stove"][: draw(st.integers(0, 2))]
    things += [{"kind": "surface", "name": name, "in": draw(somewhere)} for name in surfaces]
    things += [{"kind": "key", "name": name, "in": draw(st.sampled_from(rooms + boxes))} for name in keys]
    items = ["lamp", "carrot", "water"][: draw(st.integers(0, 3))]
    things += [{"kind": "item", "name": name, "in": draw(st.sampled_from(rooms + boxes))} for name in items]
    recipes = []
    if surfaces and items and draw(st.booleans()):
        of = draw(st.lists(st.sampled_from(items), min_size=1, max_size=2, unique=True))
        recipes.append({"makes": "soup", "of": of, "on": draw(st.sampled_from(surfaces))})
    data = {"rooms": rooms, "start": draw(somewhere), "ways": ways, "things": draw(st.permutations(things))}
    return {**data, "recipes": recipes} if recipes else data


def text_worlds(*, most_rooms: int = 4) -> st.SearchStrategy[TextWorld]:
    return text_layouts(most_rooms=most_rooms).map(TextWorld.parse)


@st.composite
def goal_data(draw: st.DrawFn, vocabulary: Any, *, depth: int = 3) -> Any:
    """Goals about what a vocabulary names, as JSON data; some are refused by `Goal.parse`."""
    heads = [head for head, places in vocabulary.items() if all(places)]

    def predicate() -> Any:
        head = draw(st.sampled_from(sorted(heads)))
        names = [draw(st.sampled_from(sorted(place))) for place in vocabulary[head]]
        return {head: names if len(names) > 1 else names[0]}

    def condition() -> Any:
        if draw(st.integers(0, 3)):
            return predicate()
        return {"and": [predicate() for _ in range(draw(st.integers(2, 3)))]}

    def goal(left: int) -> Any:
        head = draw(
            st.sampled_from(["predicate", "predicate", "and", "then", "before"] if left else ["predicate"])
        )
        if head == "predicate":
            return predicate()
        if head == "before":
            return {"before": [condition(), condition()]}
        parts = [goal(left - 1) for _ in range(draw(st.integers(2, 3)))]
        if head == "and" and draw(st.booleans()):
            parts.append({"never": condition()})
        return {head: parts}

    return goal(depth - 1)


def parsed(data: Any) -> Goal | None:
    """Return the goal, or None where the language refuses it."""
    try:
        return Goal.parse(data)
    except BadTask:
        return None


def goals_for(grid: Grid, *, depth: int = 3) -> st.SearchStrategy[Goal]:
    return goal_data(grid.vocabulary(), depth=depth).map(parsed).filter(lambda goal: goal is not None)  # type: ignore[return-value]


class Plain:
    """The rules once more, slowly: sets and dictionaries read from the layout data, nothing shared with `Grid`."""

    def __init__(self, layout: dict[str, Any]) -> None:
        self.rows = layout["rows"]
        self.at = tuple(layout["start"])
        self.time = 0
        self.caught = False
        self.opened: set[str] = set()
        self.ring: set[str] = set()
        self.hand: str | None = None
        self.lying: dict[str, tuple[int, int]] = {}
        self.inside: dict[str, str] = {}
        self.fixed: dict[tuple[int, int], str] = {}
        self.rounds: list[list[tuple[int, int]]] = []
        for thing in layout["things"]:
            kind = thing["kind"]
            name = f"{thing['color']} {kind}" if "color" in thing else kind
            if kind == "patrol":
                path = [tuple(cell) for cell in thing["path"]]
                closed = len(path) > 2 and abs(path[0][0] - path[-1][0]) + abs(path[0][1] - path[-1][1]) == 1
                self.rounds.append(path if closed else path + path[1:-1][::-1])
            elif "in" in thing:
                self.inside[thing["in"]] = name
            elif kind in ("key", "gem"):
                self.lying[name] = tuple(thing["at"])
            else:
                self.fixed[tuple(thing["at"])] = name

    def step(self, action: str) -> None:
        if self.caught:
            return
        x, y = here = self.at
        if action in MOVES:
            target = (x + MOVES[action][0], y + MOVES[action][1])
            closed = self.fixed.get(target, "").endswith("door") and self.fixed[target] not in self.opened
            if self.rows[target[1]][target[0]] == "." and not closed:
                self.at = target
        elif action == "take":
            for name in [name for name, where in self.lying.items() if where == here]:
                if name.endswith("key"):
                    self.ring.add(name)
                    del self.lying[name]
                elif self.hand is None:
                    self.hand = name
                    del self.lying[name]
        elif action == "open":
            self._open(here)
        elif action == "drop" and self.hand and self.fixed.get(here, "").split()[-1:] in (["pad"], ["exit"]):
            if here not in self.lying.values():
                self.lying[self.hand], self.hand = here, None
        self.time += 1
        for cells in self.rounds:
            was, now = cells[(self.time - 1) % len(cells)], cells[self.time % len(cells)]
            if now == self.at or (was == self.at and now == here):
                self.caught = True

    def _open(self, here: tuple[int, int]) -> None:
        box = self.fixed.get(here, "")
        if box.endswith("box") and box not in self.opened:
            self.opened.add(box)
            if box in self.inside:
                self.lying[self.inside[box]] = here
            return
        for dx, dy in MOVES.values():
            door = self.fixed.get((here[0] + dx, here[1] + dy), "")
            if door.endswith("door") and door not in self.opened and door.replace("door", "key") in self.ring:
                self.opened.add(door)
                return

    def facts(self) -> set[tuple[str, ...]]:
        facts: set[tuple[str, ...]] = {("opened", name) for name in self.opened}
        facts |= {("has", name) for name in self.ring} | ({("has", self.hand)} if self.hand else set())
        places = {cell: name for cell, name in self.fixed.items() if name.endswith(("pad", "exit"))}
        facts |= {("delivered", name, places[c]) for name, c in self.lying.items() if c in places}
        return facts | ({("at", places[self.at])} if self.at in places and not self.caught else set())

    def twin(self) -> "Plain":
        twin = copy.copy(self)
        twin.opened, twin.ring, twin.lying = set(self.opened), set(self.ring), dict(self.lying)
        return twin

    def key(self) -> Any:
        period = math.lcm(*(len(cells) for cells in self.rounds))
        lying = frozenset(self.lying.items())
        return (self.at, self.time % period, frozenset(self.opened), frozenset(self.ring), self.hand, lying)
