"""Text tasks from a seed, each proven solvable, with the same knobs as the grid's (`games.tasks.generate.Knobs`).

Rooms stand on a lattice, so that compass directions agree, in zones one behind the other; a locked door leads from
each zone to the next, and its key lies in a zone before it, perhaps in a container. Items, some of them what a recipe
needs, lie anywhere, some in a locked container. The solver then proves a shortest plan, from which the budget
follows. The same seed and knobs give the same task on every machine.

`side` is the number of rooms, `obstacles` how many of six short cuts between rooms are missing; there are no
patrols.
"""

from typing import Any

from games.errors import BadTask
from games.rng import Chance
from games.tasks.generate import MAX_NODES, Knobs, Level, goal_of, proven, written
from games.tasks.goals import Goal
from games.tasks.spec import TaskSpec
from games.tasks.text import TextWorld
from games.tasks.text_layout import DIRECTIONS, Recipe, Thing, Way

GENERATOR = "text-1"
SHORT_CUTS = 6
MAX_PAIRS = 4
RECIPE_FROM = 5
"""From how many objects on a recipe may be among them."""

ROOMS = (
    "hall kitchen pantry cellar attic library study bedroom bathroom garden shed garage gallery chapel tower "
    "courtyard workshop laundry nursery parlor greenhouse stable armory vault"
).split()
ITEMS = (
    "lamp rope candle coin book mirror bell drum map needle feather scarf statue violin compass hammer kettle mask"
).split()
CONTAINERS = (
    "chest crate barrel basket cupboard trunk drawer box casket sack wardrobe jar suitcase coffer urn locker"
).split()
SURFACES = "table bench shelf altar stove desk counter pedestal stool sideboard anvil windowsill".split()
METALS = "brass iron silver copper golden bronze steel tin nickel leaden glass bone".split()
WOODS = "oak pine ash elm cedar birch walnut maple".split()
RECIPES = (
    ("soup", "carrot", "water"),
    ("dough", "flour", "milk"),
    ("tea", "leaves", "honey"),
    ("glue", "resin", "chalk"),
    ("ink", "soot", "gum"),
    ("potion", "root", "salt"),
)
_STEPS = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}


def text_level(seed: int, knobs: Knobs | None = None, *, max_nodes: int = MAX_NODES) -> Level[TextWorld]:
    """Return the level of `seed`. Raises `BadTask` if no try of this seed gave a solvable one."""
    knobs = _DEFAULT if knobs is None else knobs
    if knobs.patrols:
        raise BadTask(f"knob patrols: got {knobs.patrols}, the text world has none")
    return proven(
        lambda chance: _Maker(chance, knobs).make(),
        seed=seed,
        knobs=knobs,
        generator=GENERATOR,
        max_nodes=max_nodes,
    )


def generate_text(seed: int, knobs: Knobs | None = None, *, parent: str | None = None) -> TaskSpec:
    """Return the text task of `seed`, measured. Raises `BadTask` if no try of this seed gave a solvable one."""
    knobs = _DEFAULT if knobs is None else knobs
    return written(text_level(seed, knobs), knobs=knobs, generator=GENERATOR, parent=parent)


_DEFAULT = Knobs()


class _Maker:
    """One try: everything is drawn from one chance source, in a fixed order."""

    def __init__(self, chance: Chance, knobs: Knobs) -> None:
        self.draw = chance.draw
        self.knobs = knobs
        pools = {
            "room": ROOMS,
            "item": ITEMS,
            "container": CONTAINERS,
            "surface": SURFACES,
            "metal": METALS,
            "wood": WOODS,
        }
        self.names = {kind: [pool[i] for i in chance.order(len(pool))] for kind, pool in pools.items()}
        self.cookery = [RECIPES[i] for i in chance.order(len(RECIPES))]
        self.things: list[Thing] = []
        self.recipes: list[Recipe] = []
        self.milestones: list[dict[str, Any]] = []

    def make(self) -> tuple[TextWorld, Goal] | None:
        """Return a world and a goal in it, not yet proven; None where something found no room."""
        knobs = self.knobs
        items = max(knobs.objects // 3, 1 if knobs.deliver and knobs.objects else 0)
        pairs, boxed = divmod(knobs.objects - items, 2)
        more = boxed if not pairs else 2 * max(0, pairs - MAX_PAIRS)
        pairs, boxed, items = min(pairs, MAX_PAIRS), min(boxed, pairs), items + more
        groups = [1] * items
        if knobs.objects >= RECIPE_FROM and self.draw(2):  # instead of a lock, its key and an item
            groups[0], pairs, boxed = 3, pairs - 1, min(boxed, pairs - 1)
        chests = sum(1 for _ in range(min(pairs, len(groups))) if not self.draw(3))
        doors = pairs - chests
        if not self.lay_rooms(doors + 1):
            return None
        carried = [self.add_items(group) for group in groups]
        self.add_locks(doors, carried[:chests], boxed)
        start = self.any_room(0)
        goal = self.goal(carried, start)
        if goal is None or not self.add_distractors():
            return None
        world = TextWorld.made_of(
            [room for zone in self.zones for room in zone],
            start=start,
            ways=self.ways,
            things=self.things,
            recipes=self.recipes,
        )
        return world, Goal.parse(goal)

    def lay_rooms(self, zones: int) -> bool:
        """Grow every zone room by room on a lattice, then add short cuts within zones; False if one got stuck."""
        size = self.knobs.side
        if zones > size:
            return False
        self.zones: list[list[str]] = [[] for _ in range(zones)]
        self.gates: list[Way] = []
        self.ways: list[Way] = []
        at: dict[tuple[int, int], str] = {}
        cells: dict[str, tuple[int, int]] = {}
        zone_of: dict[str, int] = {}
        for i in range(size):
            zone, room = i * zones // size, self.names["room"][i]
            cell = (0, 0)
            if i:
                before = self.zones[zone] or self.zones[zone - 1]
                free = [
                    (old, go, (x + dx, y + dy))
                    for old in before
                    for x, y in (cells[old],)
                    for go, (dx, dy) in _STEPS.items()
                    if (x + dx, y + dy) not in at
                ]
                if not free:
                    return False
                old, go, cell = free[self.draw(len(free))]
                (self.ways if self.zones[zone] else self.gates).append(Way(old, go, room))
            at[cell], cells[room], zone_of[room] = room, cell, zone
            self.zones[zone].append(room)
        linked = {frozenset(way[:3:2]) for way in self.ways}
        near = [
            Way(room, go, at[x + dx, y + dy])
            for room, (x, y) in cells.items()
            for go, (dx, dy) in _STEPS.items()
            if go in tuple(DIRECTIONS)[:3] and (x + dx, y + dy) in at
        ]
        near = [
            w for w in near if zone_of[w.room] == zone_of[w.to] and frozenset((w.room, w.to)) not in linked
        ]
        for _ in range(min(len(near), max(0, SHORT_CUTS - self.knobs.obstacles))):
            self.ways.append(near.pop(self.draw(len(near))))
        return True

    def any_room(self, zone: int | None = None) -> str:
        """Return a room of a zone, or any."""
        rooms = [room for rooms in self.zones for room in rooms] if zone is None else self.zones[zone]
        return rooms[self.draw(len(rooms))]

    def add_items(self, count: int) -> str:
        """Add an item to be carried about, or a recipe with the two that it takes (`count` 3); return its name."""
        if count == 1:
            made = self.names["item"].pop()
            self.things.append(Thing("item", made, self.any_room()))
            return made
        made, *of = self.cookery.pop()
        self.things += [Thing("item", item, self.any_room()) for item in of]
        self.recipes.append(Recipe(made, tuple(of), self.surface()))
        return made

    def surface(self, zone: int | None = None) -> str:
        """Add a surface in a zone, or anywhere, and return its name."""
        name = self.names["surface"].pop()
        self.things.append(Thing("surface", name, self.any_room(zone)))
        return name

    def add_locks(self, doors: int, chested: list[str], boxed: int) -> None:
        """Lock every gate and a container around each of `chested`, the first few keys being in containers."""
        for i, gate in enumerate(self.gates):
            door, key = f"{self.names['wood'].pop()} door", f"{self.names['metal'].pop()} key"
            self.ways.append(gate._replace(door=door, key=key))
            self.milestones += [{"has": key}, {"opened": door}]
            self.add_key(key, self.any_room(self.draw(i + 1)), i < boxed)
        for i, name in enumerate(chested, start=doors):
            made = next((recipe for recipe in self.recipes if recipe.makes == name), None)
            inside = made.of[0] if made else name
            chest, key = self.names["container"].pop(), f"{self.names['metal'].pop()} key"
            where = next(j for j, thing in enumerate(self.things) if thing.name == inside)
            self.things.append(Thing("container", chest, self.things[where].inside, key))
            self.things[where] = self.things[where]._replace(inside=chest)
            self.milestones += [{"has": key}, {"opened": chest}]
            self.add_key(key, self.any_room(), i < boxed)

    def add_key(self, key: str, room: str, boxed: bool) -> None:
        """Put a key into a room, or into a closed container there."""
        if boxed:
            box = self.names["container"].pop()
            self.things.append(Thing("container", box, room))
            room = box
        self.things.append(Thing("key", key, room))

    def goal(self, carried: list[str], start: str) -> dict[str, Any] | None:
        """Return a goal of `rule_depth` conditions, more if there is more to carry."""
        depth, shunned = self.knobs.rule_depth, None
        rooms = [room for zone in self.zones for room in zone]
        end = self.zones[-1][-1] if self.zones[-1][-1] != start else self.any_room(len(self.zones) - 1)
        free = [room for room in rooms if room not in (start, end)]
        if self.knobs.avoid and depth > 1:
            ends = [room for room in free if sum(room in way[:3:2] for way in self.ways) == 1] or free
            depth, shunned = depth - 1, ends[self.draw(len(ends))]
            free.remove(shunned)
        last: dict[str, Any] = {"at": end}
        parts: list[dict[str, Any]] = []
        lone = len(carried) == depth == 1
        for name in carried:
            made = any(recipe.makes == name for recipe in self.recipes)
            if made and not (self.knobs.deliver or lone):
                parts.append({"has": name})
            elif lone:  # in the last zone, so that every lock is on the way
                last = {"delivered": [name, self.surface(len(self.zones) - 1)]}
            else:
                parts.append({"delivered": [name, self.surface()]})
        room = depth - 1 - len(parts)
        first = int(self.knobs.before and room > 0)
        kept = self.milestones[first - room :] if room > first else []
        while len(kept) < room:
            near = [place for place in free if place in self.zones[0]] if first else []
            pick = near if near and len(kept) == room - 1 else free
            if not pick:
                return None
            where = pick[self.draw(len(pick))]
            free.remove(where)
            kept = [{"visited": where}, *kept]
        return goal_of([*kept, *parts, last], before=self.knobs.before, shunned=shunned)

    def add_distractors(self) -> bool:
        """Add items, keys without locks and containers that nobody needs."""
        for _ in range(self.knobs.distractors):
            kind = ("item", "item", "key", "container")[self.draw(4)]
            pool = self.names["metal" if kind == "key" else kind]
            if not pool:
                return False
            name = f"{pool.pop()} key" if kind == "key" else pool.pop()
            self.things.append(Thing(kind, name, self.any_room()))
        return True
