"""The text world: rooms with ways and locked doors, containers, surfaces, keys, items, recipes; typed commands.

    go north                        walk a way; a closed door bars it
    take lamp                       from the floor, an open container or a surface of this room
    open chest                      a closed container here, or a closed door of this room, that has no lock
    unlock chest with brass key     the same with a lock: its key must be carried; it is open then
    put lamp on table               on a surface of this room; nowhere else can a thing be put down
    make soup                       by its recipe: all it is made of lies on its surface in this room; it is used
                                    up, and the soup is in the hands
    wait

Keys go on a ring that holds any number; the hands carry two things. Doors and containers stay open; a recipe works
once. Nothing moves by itself.

The layout is an object:

    "rooms":  ["hall", "kitchen", …]                       "start": "hall"
    "ways":   [{"from": "hall", "go": "north", "to": "kitchen", "door": "oak door", "key": "brass key"}, …]
    "things": [{"kind": "container" | "surface" | "key" | "item", "name": "chest", "in": "hall", "key": …}, …]
    "recipes": [{"makes": "soup", "of": ["carrot", "water"], "on": "stove"}, …]

A way is walked in both directions; `door` and the `key` of a lock may be left out, as may `recipes`. Containers and
surfaces stand in rooms, keys and items lie in rooms or in containers. No name comes twice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from games.tasks.goals import Before, Fact, Goal, Never, Vocabulary
from games.tasks.text_layout import DIRECTIONS, Parts, Recipe, Thing, Way, canonical, parse_layout
from games.tasks.text_words import observe, render
from games.tasks.world import WAIT, World

HANDS = 2
"""How many items can be carried."""

_KIND_OF_VERB = {
    "go": "move",
    "take": "take",
    "make": "take",
    "open": "open",
    "unlock": "open",
    "put": "drop",
    WAIT: "wait",
}
_CACHE_LIMIT = 65_536


class TextState(NamedTuple):
    """Where the actor is, as a room's number, and what has changed (`TextWorld.changed` reads `bits`)."""

    room: int
    bits: int


class Rule(NamedTuple):
    """A command in one room: possible where `bits & mask == value`; adds `change` to the bits and leads to `room`."""

    command: str
    mask: int
    value: int
    change: int
    room: int


class TextWorld(World[TextState]):
    """A text world with its layout, every command of every room looked up beforehand.

    Bits, from the lowest: one for each door and container (open), one for each key (taken), a field of
    `item_width` bits for each item and product (0 where it began or not made yet, 1 in the hands, 2 + i on surface
    i, the number after those used up), and above them, in two bits, how many things the hands carry.
    """

    name = "text"
    version = "1"

    __slots__ = (
        "_facts_cache", "_fields", "_open_bits", "_rules", "_vocabulary", "by_command", "carried_shift", "commands",
        "doors", "item_width", "items", "keys", "kinds", "openables", "parts", "places", "recipes", "rooms", "start",
        "surfaces", "things", "used_up", "ways",
    )  # fmt: skip

    def __init__(self, parts: Parts) -> None:
        """Build from parts in canonical order that `parse_layout` has checked, or a generator made so."""
        self.parts = parts
        self.rooms, _, self.ways, self.things, self.recipes = parts
        self.places = {room: i for i, room in enumerate(self.rooms)}
        self.start = self.places[parts.start]
        by_kind: dict[str, list[Thing]] = {"container": [], "surface": [], "key": [], "item": []}
        for thing in self.things:
            by_kind[thing.kind].append(thing)
        self.doors = tuple(sorted([way.door for way in self.ways if way.door is not None]))
        self.openables = self.doors + tuple([thing.name for thing in by_kind["container"]])
        self.keys = tuple([thing.name for thing in by_kind["key"]])
        self.surfaces = tuple([thing.name for thing in by_kind["surface"]])
        self.items = tuple([thing.name for thing in by_kind["item"]]) + tuple([r.makes for r in self.recipes])
        self._index_bits()
        self._rules: list[list[Rule]] = [[] for _ in self.rooms]
        self._add_moves()
        self._add_takes(by_kind)
        self._add_opens(by_kind["container"])
        self._add_puts_and_makes(by_kind["surface"])
        self.by_command: list[dict[str, tuple[Rule, ...]]] = []
        for rules in self._rules:
            table: dict[str, tuple[Rule, ...]] = {}
            for rule in rules:
                table[rule.command] = (*table.get(rule.command, ()), rule)
            self.by_command.append(table)
        self.commands = frozenset([WAIT, *(rule.command for rules in self._rules for rule in rules)])
        self._vocabulary: Vocabulary | None = None
        self._facts_cache: dict[TextState, frozenset[Fact]] = {}

    def _index_bits(self) -> None:
        self._open_bits = {name: 1 << i for i, name in enumerate((*self.openables, *self.keys))}
        shift, self.used_up = len(self._open_bits), 2 + len(self.surfaces)
        self.item_width = self.used_up.bit_length()
        self._fields = {name: shift + i * self.item_width for i, name in enumerate(self.items)}
        self.carried_shift = shift + self.item_width * len(self.items)

    # What a command needs and does

    def _add(
        self, room: str, command: str, needs: list[tuple[int, int]], change: int, to: str | None = None
    ) -> None:
        mask = value = 0
        for part, wanted in needs:
            mask |= part
            value |= wanted
        self._rules[self.places[room]].append(Rule(command, mask, value, change, self.places[to or room]))

    def _is_open(self, name: str | None, value: bool = True) -> list[tuple[int, int]]:
        """Return the need that a door or container is open, or a key taken; nothing for None."""
        if name is None:
            return []
        bit = self._open_bits[name]
        return [(bit, bit if value else 0)]

    def _is_at(self, item: str, where: int) -> tuple[int, int]:
        shift = self._fields[item]
        return (((1 << self.item_width) - 1) << shift, where << shift)

    def _hand_free(self) -> tuple[int, int]:
        return (HANDS << self.carried_shift, 0)

    def _add_moves(self) -> None:
        ends = [(way.room, way.go, way.to, way.door) for way in self.ways]
        ends += [(way.to, DIRECTIONS[way.go], way.room, way.door) for way in self.ways]
        order = list(DIRECTIONS)
        for room, go, to, door in sorted(ends, key=lambda end: order.index(end[1])):
            self._add(room, f"go {go}", self._is_open(door), 0, to)

    def _add_takes(self, by_kind: dict[str, list[Thing]]) -> None:
        homes = {box.name: box.inside for box in by_kind["container"]}
        for key in by_kind["key"]:
            box = key.inside if key.inside in homes else None
            needs = self._is_open(box) + self._is_open(key.name, False)
            self._add(homes.get(key.inside, key.inside), f"take {key.name}", needs, self._open_bits[key.name])
        for item in by_kind["item"]:
            box = item.inside if item.inside in homes else None
            needs = [*self._is_open(box), self._is_at(item.name, 0), self._hand_free()]
            change = (1 << self._fields[item.name]) + (1 << self.carried_shift)
            self._add(homes.get(item.inside, item.inside), f"take {item.name}", needs, change)

    def _add_opens(self, containers: list[Thing]) -> None:
        shut = [(room, way.door, way.key) for way in self.ways if way.door for room in (way.room, way.to)]
        shut += [(box.inside, box.name, box.key) for box in containers]
        for room, name, key in sorted(shut, key=lambda entry: entry[1]):
            command = f"open {name}" if key is None else f"unlock {name} with {key}"
            needs = self._is_open(name, False) + self._is_open(key)
            self._add(room, command, needs, self._open_bits[name])

    def _add_puts_and_makes(self, surfaces: list[Thing]) -> None:
        one_more = 1 << self.carried_shift
        for i, surface in enumerate(surfaces):
            for item in self.items:
                change = ((1 + i) << self._fields[item]) - one_more
                self._add(surface.inside, f"put {item} on {surface.name}", [self._is_at(item, 1)], change)
                needs = [self._is_at(item, 2 + i), self._hand_free()]
                self._add(surface.inside, f"take {item}", needs, -change)
            for recipe in self.recipes:
                if recipe.on == surface.name:
                    needs = [self._is_at(item, 2 + i) for item in recipe.of]
                    used = sum((self.used_up - 2 - i) << self._fields[item] for item in recipe.of)
                    needs += [self._is_at(recipe.makes, 0), self._hand_free()]
                    change = used + (1 << self._fields[recipe.makes]) + one_more
                    self._add(surface.inside, f"make {recipe.makes}", needs, change)

    # Layout

    @classmethod
    def parse(cls, layout: object) -> Self:
        return cls(parse_layout(layout))

    @classmethod
    def made_of(
        cls, rooms: list[str], *, start: str, ways: list[Way], things: list[Thing], recipes: list[Recipe]
    ) -> Self:
        """Build from parts in any order that a generator has made so that `parse` would accept them."""
        return cls(canonical(rooms, start=start, ways=ways, things=things, recipes=recipes))

    def to_data(self) -> dict[str, Any]:
        ways = []
        for way in self.ways:
            entry = {"from": way.room, "go": way.go, "to": way.to}
            entry |= {name: value for name, value in (("door", way.door), ("key", way.key)) if value}
            ways.append(entry)
        things = []
        for thing in self.things:
            entry = {"kind": thing.kind, "name": thing.name, "in": thing.inside}
            things.append(entry | ({"key": thing.key} if thing.key else {}))
        data: dict[str, Any] = {
            "rooms": list(self.rooms),
            "start": self.rooms[self.start],
            "ways": ways,
            "things": things,
        }
        if self.recipes:
            data["recipes"] = [{"makes": made, "of": list(of), "on": on} for made, of, on in self.recipes]
        return data

    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            rooms, items = frozenset(self.rooms), frozenset(self.items)
            self._vocabulary = {
                "at": (rooms,),
                "visited": (rooms,),
                "has": (items.union(self.keys),),
                "opened": (frozenset(self.openables),),
                "delivered": (items, frozenset(self.surfaces)),
            }
        return self._vocabulary

    @property
    def hazards(self) -> int:
        return 0

    # Transitions

    def initial(self) -> TextState:
        return TextState(self.start, 0)

    def legal(self, state: TextState) -> tuple[str, ...]:
        room, bits = state
        found = [command for command, mask, value, _, _ in self._rules[room] if bits & mask == value]
        found.append(WAIT)
        return tuple(found)

    def step(self, state: TextState, action: str) -> TextState:
        room, bits = state
        for _, mask, value, change, to in self.by_command[room].get(action, ()):
            if bits & mask == value:
                return tuple.__new__(TextState, (to, bits + change))
        return state

    def fault(self, state: TextState, action: str) -> str | None:
        room, bits = state
        if action == WAIT:
            return None
        rules = self.by_command[room].get(action, ())
        if any(bits & rule.mask == rule.value for rule in rules):
            return None
        verb, _, rest = action.partition(" ")
        if verb == "go" and rest in DIRECTIONS:
            return "locked" if rules else "blocked"
        if self.act_kind(action) is None:
            return "unknown"
        if verb in ("take", "make") and rules and bits & HANDS << self.carried_shift:
            return "full"
        if verb in ("open", "unlock"):
            name = rest.partition(" with ")[0]
            here = any(_opens(command) == name for command in self.by_command[room])
            return "no_key" if here and not bits & self._open_bits[name] else "nothing"
        if verb == "put":
            item = rest.partition(" on ")[0]
            mask, value = self._is_at(item, 1)
            return "no_place" if bits & mask == value else "empty"
        return "nothing"

    def lost(self, state: TextState) -> str | None:
        return None

    def act_kind(self, action: str) -> str | None:
        verb, _, rest = action.partition(" ")
        if action in self.commands or (verb == "go" and rest in DIRECTIONS):
            return _KIND_OF_VERB[verb]
        name, _, key = rest.partition(" with ")
        tried = (verb == "open" and not key) or (verb == "unlock" and key in self.keys)
        return "open" if tried and name in self.openables else None

    # Readings

    def facts(self, state: TextState) -> frozenset[Fact]:
        known = self._facts_cache.get(state)
        if known is None:
            if len(self._facts_cache) >= _CACHE_LIMIT:
                self._facts_cache.clear()
            known = self._facts_cache[state] = frozenset(self._facts(state))
        return known

    def _facts(self, state: TextState) -> list[Fact]:
        changed = self.changed(state.bits)
        facts: list[Fact] = [("at", self.rooms[state.room])]
        facts.extend(("opened", name) for name in changed["opened"])
        facts.extend(("has", name) for name in changed["held"])
        facts.extend(("delivered", item, where) for item, where in changed["lying"].items())
        return facts

    def changed(self, bits: int) -> dict[str, Any]:
        """Read `TextState.bits`: names `opened`, `held` and `used`, and `lying` (item to surface)."""
        opened = [name for name in self.openables if bits & self._open_bits[name]]
        held = [name for name in self.keys if bits & self._open_bits[name]]
        lying, used = {}, []
        for item, shift in self._fields.items():
            where = bits >> shift & ((1 << self.item_width) - 1)
            if where == 1:
                held.append(item)
            elif where == self.used_up:
                used.append(item)
            elif where:
                lying[item] = self.surfaces[where - 2]
        return {"opened": opened, "held": held, "used": used, "lying": lying}

    def observe(self, state: TextState, *, radius: int | None = None) -> dict[str, Any]:
        seen = observe(self.parts, self.rooms[state.room], self.changed(state.bits), radius=radius)
        return {**seen, "legal": list(self.legal(state))}

    def render(self, state: TextState, *, radius: int | None = None) -> str:
        return render(observe(self.parts, self.rooms[state.room], self.changed(state.bits), radius=radius))

    # Search

    def useful(self, goal: Goal) -> Callable[[TextState], tuple[str, ...]]:
        kept = self._serving(goal)
        rules = [[rule for rule in rules if rule.command in kept] for rules in self._rules]
        waits = (WAIT,) if goal.is_timed() else ()

        def actions(state: TextState) -> tuple[str, ...]:
            room, bits = state
            return (*[command for command, mask, value, _, _ in rules[room] if bits & mask == value], *waits)

        return actions

    def _serving(self, goal: Goal) -> set[str]:
        """Return the commands that can serve `goal` or the way to what it speaks of.

        Wanted are the things it names, what they are made of, the containers they lie in, and the keys of those and
        of all doors. Where the hands can carry all wanted items and nothing is forbidden, an item need be put only
        where the goal or a recipe asks for it: to hold one more thing never does harm then.
        """
        wanted = set(goal.names()).union(way.key for way in self.ways if way.key)
        size = -1
        while len(wanted) > size:
            size = len(wanted)
            for recipe in self.recipes:
                if recipe.makes in wanted:
                    wanted.update(recipe.of)
            for thing in self.things:
                if thing.name in wanted:
                    wanted.add(thing.inside)
                    if thing.key:
                        wanted.add(thing.key)
        items = wanted.intersection(self.items)
        puts = {(fact[1], fact[2]) for fact in goal.facts() if fact[0] == "delivered"}
        puts |= {(item, r.on) for r in self.recipes if r.makes in wanted for item in r.of}
        if len(items) > HANDS or any(isinstance(part, Never | Before) for _, part in goal.walk()):
            puts = {(item, surface) for item in items for surface in self.surfaces}
        opened = wanted.intersection(self.openables).union(self.doors)
        return {
            *(f"go {direction}" for direction in DIRECTIONS),
            *(f"take {name}" for name in (*items, *wanted.intersection(self.keys))),
            *(command for command in self.commands if _opens(command) in opened),
            *(f"put {item} on {surface}" for item, surface in puts),
            *(f"make {recipe.makes}" for recipe in self.recipes if recipe.makes in wanted),
        }


def _opens(command: str) -> str | None:
    """Return what a command opens, if it is of that kind."""
    verb, _, rest = command.partition(" ")
    return rest.partition(" with ")[0] if verb in ("open", "unlock") else None
