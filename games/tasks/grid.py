"""The grid world: rooms of walls, coloured keys and locked doors, boxes, gems, pads, an exit, patrols.

The rules. The actor moves one cell at a time and walks over everything but walls and closed doors.
`take` picks up the key or the gem in the actor's cell, also out of an open box. Keys go on a ring that holds any
number; one gem fits in the hands. `drop` puts the gem down on a pad or on the exit, where nothing else may lie.
`open` opens the closed box in the actor's cell, else the first closed door beside it (up, down, left, right)
whose key is on the ring. Doors and boxes stay open. Every step each patrol moves one cell along its path, round
and round if the path closes, back and forth if not; an actor that shares a cell with one or changes places with
one is caught, and a caught actor does nothing ever again.

The layout is an object with `rows` (strings of `#` and `.`, the edge all `#`), `start` ([x, y], from the left
and from the top) and `things`:

    {"kind": "key" | "gem", "color": C, "at": [x, y]}   or "in": "red box" instead of "at"
    {"kind": "door" | "box" | "pad", "color": C, "at": [x, y]}
    {"kind": "exit", "at": [x, y]}
    {"kind": "patrol", "path": [[x, y], …]}

A thing is named by colour and kind ("red key"), the exit "exit"; no name comes twice, each thing has a cell of
its own. A door is opened by the key of its colour.
"""

from collections.abc import Callable, Mapping, Sequence
from math import lcm
from typing import Any, NamedTuple, Self

from games.tasks.goals import Fact, Goal, Vocabulary
from games.tasks.grid_layout import KINDS, Thing, parse_layout, track
from games.tasks.world import WAIT, World

MOVES: Mapping[str, tuple[int, int]] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
ACTIONS = (*MOVES, "take", "open", "drop", WAIT)
"""Every action, in the order of their numbers elsewhere (batches, encodings)."""

ACT_KINDS = {**dict.fromkeys(MOVES, "move"), "take": "take", "open": "open", "drop": "drop", WAIT: "wait"}

_ARROWS = {(0, -1): "^", (0, 1): "v", (-1, 0): "<", (1, 0): ">", (0, 0): "."}
_CACHE_LIMIT = 65_536


class GridState(NamedTuple):
    """Where the actor is and what has changed.

    `cell` is y × width + x, or its complement (`~cell`) once the actor was caught there; `phase` counts steps
    modulo the common period of all patrols; `bits` says what was opened, taken and laid where (`Grid.changed`).
    """

    cell: int
    phase: int
    bits: int


class Serving(NamedTuple):
    """The cells in which an act can serve a goal, and whether waiting can."""

    takes: frozenset[int]
    opens: frozenset[int]
    drops: frozenset[int]
    waits: bool


class Grid(World[GridState]):
    """A grid with its layout, everything a step needs looked up beforehand.

    Bits, from the lowest: one for each door and box (open), one for each key (taken), a field of `gem_width`
    bits for each gem (0 where it began, 1 in the hands, 2 + i on place i), and above them the hands
    (0 empty, else 1 + the number of the gem).
    """

    name = "grid"
    version = "1"

    __slots__ = (
        "_boxes",
        "_caught",
        "_facts_cache",
        "_gem_at",
        "_key_at",
        "_moves",
        "_next_phase",
        "_place_at", "_vocabulary",
        "arrival",
        "doors",
        "gem_shift",
        "gem_width",
        "gems",
        "hand_shift",
        "height",
        "keys",
        "locked",
        "openables",
        "paths",
        "period",
        "places",
        "portables",
        "rows",
        "start",
        "swaps",
        "tracks",
        "width",
    )  # fmt: skip

    def __init__(
        self, rows: Sequence[str], *, start: int, things: Sequence[Thing], paths: Sequence[tuple[int, ...]]
    ) -> None:
        """Build from parts that `parse` has checked, or a generator has made so that `parse` would accept them."""
        self.rows = tuple(rows)
        self.width, self.height = len(rows[0]), len(rows)
        self.start = start
        self.paths = tuple(sorted(paths))
        named = sorted(things, key=_canonical_order)
        self.doors = tuple([thing for thing in named if thing.kind == "door"])
        self.openables = tuple([thing for thing in named if thing.kind in ("door", "box")])
        self.keys = tuple([thing for thing in named if thing.kind == "key"])
        self.gems = tuple([thing for thing in named if thing.kind == "gem"])
        self.places = tuple([thing for thing in named if thing.kind in ("exit", "pad")])
        self.portables = self.keys + self.gems
        self._index_things()
        self._index_cells()
        self._index_patrols()
        self._vocabulary: Vocabulary | None = None
        self._facts_cache: dict[tuple[int, int], frozenset[Fact]] = {}

    def _index_things(self) -> None:
        key_shift = len(self.openables)
        self.gem_shift = key_shift + len(self.keys)
        self.gem_width = (len(self.places) + 1).bit_length()
        self.hand_shift = self.gem_shift + self.gem_width * len(self.gems)
        bit = {thing.name: 1 << i for i, thing in enumerate(self.openables)}
        key_bit = {key.color: 1 << (key_shift + i) for i, key in enumerate(self.keys)}
        self.locked = {d.cell: (bit[d.name], key_bit.get(d.color, 0)) for d in self.doors}
        self._boxes = {box.cell: bit[box.name] for box in self.openables if box.kind == "box"}
        self._key_at: dict[int, tuple[int, int]] = {}
        for key in self.keys:
            self._key_at[key.cell] = (key_bit[key.color], bit[key.inside] if key.inside else 0)
        self._gem_at: dict[int, tuple[int, int]] = {}
        for i, gem in enumerate(self.gems):
            self._gem_at[gem.cell] = (i, bit[gem.inside] if gem.inside else 0)
        self._place_at = {place.cell: i for i, place in enumerate(self.places)}

    def _index_cells(self) -> None:
        flat = "".join(self.rows)
        floor = [cell for cell, mark in enumerate(flat) if mark == "."]
        self._moves = {}
        for name, (dx, dy) in MOVES.items():
            offset = dy * self.width + dx
            targets = list(range(len(flat)))
            for cell in floor:
                if flat[cell + offset] == ".":
                    targets[cell] = cell + offset
            self._moves[name] = targets

    def _index_patrols(self) -> None:
        tracks = tuple([track(path, self.width) for path in self.paths])
        self.tracks = tracks
        self.period = lcm(*(len(cells) for cells in tracks))
        self._next_phase = [(phase + 1) % self.period for phase in range(self.period)]
        self.arrival: list[frozenset[int]] = []
        self.swaps: list[frozenset[tuple[int, int]]] = []
        if not tracks:
            return
        for phase in range(self.period):
            now = [cells[phase % len(cells)] for cells in tracks]
            before = [cells[(phase - 1) % len(cells)] for cells in tracks]
            self.arrival.append(frozenset(now))
            self.swaps.append(frozenset(zip(now, before, strict=True)))

    # Layout

    @classmethod
    def parse(cls, layout: object) -> Self:
        rows, start, things, paths = parse_layout(layout)
        return cls(rows, start=start, things=things, paths=paths)

    def to_data(self) -> dict[str, Any]:
        things: list[dict[str, Any]] = []
        for thing in (*self.openables, *self.portables, *self.places):
            entry: dict[str, Any] = {"kind": thing.kind}
            if thing.color:
                entry["color"] = thing.color
            if thing.inside:
                entry["in"] = thing.inside
            else:
                entry["at"] = self.xy(thing.cell)
            things.append(entry)
        things.extend({"kind": "patrol", "path": [self.xy(cell) for cell in path]} for path in self.paths)
        return {"rows": list(self.rows), "start": self.xy(self.start), "things": things}

    def xy(self, cell: int) -> list[int]:
        """Return a cell as [x, y]."""
        return [cell % self.width, cell // self.width]

    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            places = frozenset([place.name for place in self.places])
            gems = frozenset([gem.name for gem in self.gems])
            self._vocabulary = {
                "at": (places,),
                "visited": (places,),
                "has": (frozenset([thing.name for thing in self.portables]),),
                "opened": (frozenset([thing.name for thing in self.openables]),),
                "delivered": (gems, places),
            }
        return self._vocabulary

    @property
    def hazards(self) -> int:
        return len(self.tracks)

    # Transitions

    def initial(self) -> GridState:
        return GridState(self.start, 0, 0)

    def step(self, state: GridState, action: str) -> GridState:
        cell, phase, bits = state
        if cell < 0:
            return state
        moves = self._moves.get(action)
        if moves is not None:
            target = moves[cell]
            if target in self.locked and not bits & self.locked[target][0]:
                target = cell
        else:
            target = cell
            if action != WAIT:
                bits = self.handle(cell, bits, action)[0]
        if self.arrival:
            phase = self._next_phase[phase]
            if target in self.arrival[phase] or (cell, target) in self.swaps[phase]:
                target = ~target
        return tuple.__new__(GridState, (target, phase, bits))

    def fault(self, state: GridState, action: str) -> str | None:
        cell, _, bits = state
        if action not in ACT_KINDS:
            return "unknown"
        if cell < 0:
            return "lost"
        if action == WAIT:
            return None
        moves = self._moves.get(action)
        if moves is None:
            return self.handle(cell, bits, action)[1]
        target = moves[cell]
        if target == cell:
            return "blocked"
        return "locked" if target in self.locked and not bits & self.locked[target][0] else None

    def handle(self, cell: int, bits: int, action: str) -> tuple[int, str | None]:
        """Return the bits after `take`, `open` or `drop`, and why nothing came of it (None if something did)."""
        if action == "take":
            return self._take(cell, bits)
        if action == "open":
            return self._open(cell, bits)
        if action == "drop":
            return self._drop(cell, bits)
        return bits, "unknown"

    def _take(self, cell: int, bits: int) -> tuple[int, str | None]:
        if cell in self._key_at:
            bit, box = self._key_at[cell]
            if bits & bit or bits & box != box:
                return bits, "nothing"
            return bits | bit, None
        gem = self._gem_lying(cell, bits)
        if gem is None:
            return bits, "nothing"
        if bits >> self.hand_shift:
            return bits, "full"
        return self._with_gem(bits, gem, 1) | (gem + 1) << self.hand_shift, None

    def _open(self, cell: int, bits: int) -> tuple[int, str | None]:
        box = self._boxes.get(cell, 0)
        if box and not bits & box:
            return bits | box, None
        why = "nothing"
        for moves in self._moves.values():
            if moves[cell] in self.locked and moves[cell] != cell:
                bit, key = self.locked[moves[cell]]
                if not bits & bit:
                    if bits & key:
                        return bits | bit, None
                    why = "no_key"
        return bits, why

    def _drop(self, cell: int, bits: int) -> tuple[int, str | None]:
        hand = bits >> self.hand_shift
        if not hand:
            return bits, "empty"
        place = self._place_at.get(cell)
        if place is None:
            return bits, "no_place"
        if self._gem_lying(cell, bits) is not None:
            return bits, "occupied"
        return self._with_gem(bits, hand - 1, 2 + place) & ((1 << self.hand_shift) - 1), None

    def _gem_lying(self, cell: int, bits: int) -> int | None:
        """Return the number of the gem that can be picked up in `cell`, or None."""
        if cell in self._gem_at:
            gem, box = self._gem_at[cell]
            return gem if self._gem_where(bits, gem) == 0 and bits & box == box else None
        place = self._place_at.get(cell)
        if place is not None:
            for gem in range(len(self.gems)):
                if self._gem_where(bits, gem) == 2 + place:
                    return gem
        return None

    def _gem_where(self, bits: int, gem: int) -> int:
        return (bits >> (self.gem_shift + gem * self.gem_width)) & ((1 << self.gem_width) - 1)

    def _with_gem(self, bits: int, gem: int, where: int) -> int:
        shift = self.gem_shift + gem * self.gem_width
        return bits & ~(((1 << self.gem_width) - 1) << shift) | where << shift

    def legal(self, state: GridState) -> tuple[str, ...]:
        if state.cell < 0:
            return ()
        return tuple([action for action in ACTIONS if self.fault(state, action) is None])

    def lost(self, state: GridState) -> str | None:
        return "a patrol caught you" if state.cell < 0 else None

    def act_kind(self, action: str) -> str | None:
        return ACT_KINDS.get(action)

    # Readings

    def facts(self, state: GridState) -> frozenset[Fact]:
        cell, _, bits = state
        place = self._place_at.get(cell, -1)
        known = self._facts_cache.get((bits, place))
        if known is None:
            if len(self._facts_cache) >= _CACHE_LIMIT:
                self._facts_cache.clear()
            known = self._facts_cache[bits, place] = frozenset(self._facts(bits, place))
        return known

    def _facts(self, bits: int, place: int) -> list[Fact]:
        changed = self.changed(bits)
        facts: list[Fact] = [("opened", name) for name in changed["opened"]]
        facts.extend(("has", name) for name in changed["held"])
        facts.extend(("delivered", gem, where) for gem, where in changed["lying"].items())
        if place >= 0:
            facts.append(("at", self.places[place].name))
        return facts

    def changed(self, bits: int) -> dict[str, Any]:
        """Read `GridState.bits`: names `opened`, names `held`, and `lying` (gem to place)."""
        opened = [thing.name for i, thing in enumerate(self.openables) if bits >> i & 1]
        held = [key.name for i, key in enumerate(self.keys) if bits >> (len(self.openables) + i) & 1]
        lying = {}
        for i, gem in enumerate(self.gems):
            where = self._gem_where(bits, i)
            if where == 1:
                held.append(gem.name)
            elif where:
                lying[gem.name] = self.places[where - 2].name
        return {"opened": opened, "held": held, "lying": lying}

    def observe(self, state: GridState, *, radius: int | None = None) -> dict[str, Any]:
        cell = state.cell if state.cell >= 0 else ~state.cell
        marks = self._marks(state)
        x0, y0, x1, y1 = self._window(cell, radius)
        return {
            "at": self.xy(cell),
            "caught": state.cell < 0,
            "holding": self.changed(state.bits)["held"],
            "from": [x0, y0],
            "rows": [" ".join(marks[y * self.width + x] for x in range(x0, x1)) for y in range(y0, y1)],
            "legal": list(self.legal(state)),
        }

    def render(self, state: GridState, *, radius: int | None = None) -> str:
        seen = self.observe(state, radius=radius)
        holding = ", ".join(seen["holding"]) or "nothing"
        where = f"You stand at x={seen['at'][0]}, y={seen['at'][1]}, holding {holding}."
        if seen["caught"]:
            where = f"A patrol caught you at x={seen['at'][0]}, y={seen['at'][1]}."
        corner = (
            ""
            if radius is None
            else f"The top left cell shown is x={seen['from'][0]}, y={seen['from'][1]}.\n"
        )
        return "\n".join(seen["rows"]) + f"\n{corner}{where}\n"

    def _window(self, cell: int, radius: int | None) -> tuple[int, int, int, int]:
        if radius is None:
            return 0, 0, self.width, self.height
        x, y = self.xy(cell)
        return (
            max(0, x - radius),
            max(0, y - radius),
            min(self.width, x + radius + 1),
            min(self.height, y + radius + 1),
        )

    def _marks(self, state: GridState) -> list[str]:
        """Return two characters for each cell; `LEGEND` says what they mean."""
        bits = state.bits
        marks = ["##" if mark == "#" else ". " for mark in "".join(self.rows)]
        for place in self.places:
            marks[place.cell] = "E " if place.kind == "exit" else "p" + _letter(place.color)
        for i, thing in enumerate(self.openables):
            is_open = bits >> i & 1
            letter = ("/" if is_open else "D") if thing.kind == "door" else ("u" if is_open else "B")
            marks[thing.cell] = letter + _letter(thing.color)
        for cell, (bit, box) in self._key_at.items():
            if not bits & bit and bits & box == box:
                marks[cell] = "k" + _letter(next(key.color for key in self.keys if key.cell == cell))
        for i, gem in enumerate(self.gems):
            where = self._gem_where(bits, i)
            spot = gem.cell if where == 0 else self.places[where - 2].cell if where > 1 else -1
            if spot >= 0 and self._gem_lying(spot, bits) == i:
                marks[spot] = "g" + _letter(gem.color)
        for cells in self.tracks:
            now = cells[state.phase % len(cells)]
            step = cells[(state.phase + 1) % len(cells)] - now
            dx, dy = (step, 0) if abs(step) <= 1 else (0, 1 if step > 0 else -1)
            marks[now] = "!" + _ARROWS[dx, dy]
        marks[~state.cell if state.cell < 0 else state.cell] = "X " if state.cell < 0 else "@ "
        return marks

    # Search

    def serving(self, goal: Goal) -> "Serving":
        """Return where `take`, `open` and `drop` can serve `goal` or the way to it, and whether waiting can."""
        names = goal.names()
        doors = {door.color for door in self.doors}
        wanted = {key.name for key in self.keys if key.name in names or key.color in doors}
        gems = {gem.name for gem in self.gems if gem.name in names}
        wanted |= gems
        holders = {thing.inside for thing in self.portables if thing.name in wanted}
        takes = {thing.cell for thing in self.portables if thing.name in wanted}
        drops = {place.cell for place in self.places} if gems else set()
        opens = {box.cell for box in self.openables[len(self.doors) :] if box.name in names | holders}
        for door in self.doors:
            opens |= {moves[door.cell] for moves in self._moves.values()}
        waits = goal.is_timed() or bool(self.tracks)
        return Serving(frozenset(takes | drops), frozenset(opens), frozenset(drops), waits)

    def useful(self, goal: Goal) -> Callable[[GridState], tuple[str, ...]]:
        takes, opens, drops, waits = self.serving(goal)
        moves, locked = list(self._moves.items()), self.locked

        def actions(state: GridState) -> tuple[str, ...]:
            cell, _, bits = state
            if cell < 0:
                return ()
            found = [
                name
                for name, targets in moves
                if (target := targets[cell]) != cell and (target not in locked or bits & locked[target][0])
            ]
            if cell in takes and self._take(cell, bits)[1] is None:
                found.append("take")
            if cell in opens and self._open(cell, bits)[1] is None:
                found.append("open")
            if cell in drops and self._drop(cell, bits)[1] is None:
                found.append("drop")
            if waits:
                found.append(WAIT)
            return tuple(found)

        return actions


LEGEND = (
    "## wall, . floor, @ you, E exit; with the first letter of a colour (grey is x): k key, D locked door, / open "
    "door, B closed box, u open box, g gem, p pad; ! patrol with the way it goes next, X where one caught you."
)
"""What the two characters of a rendered cell mean."""


def _letter(color: str) -> str:
    return "x" if color == "grey" else color[0]


def _canonical_order(thing: Thing) -> tuple[int, str]:
    return (KINDS.index(thing.kind), thing.color)
