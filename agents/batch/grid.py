"""Thousands of grid worlds stepped at once, each equal to `games.tasks.grid.Grid` step for step.

The worlds may have different layouts and sizes. Every array has one row a world: cells count as y × 16 + x inside,
whatever the width, so that one table of offsets serves all. What a step needs is looked up by cell: `_need` (the
doors that must be open to stand there; `_WALL` is never open) and `_slot` (the number of a spot where something
may lie, see `_Slots`). Acts other than moves are few at any step, and are done for the worlds concerned alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from games.errors import BadTask
from games.tasks.goals import Fact, short
from games.tasks.grid import ACTIONS, Grid, GridState
from games.tasks.grid_layout import COLORS, Thing

UP, DOWN, LEFT, RIGHT, TAKE, OPEN, DROP, WAIT = range(len(ACTIONS))
"""The numbers of the actions."""

STRIDE = 16
CELLS = STRIDE * STRIDE

_OFFSETS = np.array([-STRIDE, STRIDE, -1, 1, 0, 0, 0, 0], dtype=np.intp)
_WALL = 0x100
_LOWEST = np.array([0] + [(i & -i).bit_length() - 1 for i in range(1, 256)], dtype=np.intp)


COLOR_CODES = {color: i for i, color in enumerate(COLORS)}
CODES = {
    "wall": 0,
    "floor": 1,
    "exit": 2,
    "patrol": 3,
    "key": 8,
    "gem": 16,
    "door": 24,
    "open door": 32,
    "box": 40,
    "open box": 48,
    "pad": 56,
}
"""What a cell looks like in `looks` and `view`; to those from 8 on the number of the colour is added."""


class _Slots:
    """Numbers of spots: 0 none, places from 1, where gems and keys begin, boxes with nothing inside."""

    PLACE, GEM, KEY, BOX, COUNT = 1, 10, 18, 26, 34


class _Columns:
    """What became of things, a column each: where a gem is (0 origin, 1 hands, 2 + place), 1 for a key that was
    taken, 1 for what is open, and the slot underfoot."""

    GEM, KEY, OPEN, UNDER, COUNT = 0, 8, 16, 32, 33


Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]


class GridBatch:
    """Worlds side by side. `step` moves all of them; `reset` brings some back to their initial state.

    `lost` and `hand` are live arrays, to be read only.
    """

    def __init__(self, grids: Sequence[Grid]) -> None:
        if not grids:
            raise BadTask("batch: got no world, one or more are needed")
        self.grids = tuple(grids)
        count = len(grids)
        self._base = np.arange(count, dtype=np.intp) * CELLS
        self._need = np.full((count, CELLS), _WALL, dtype=np.uint16)
        self._slot = np.zeros((count, CELLS), dtype=np.uint8)
        self._box_of = np.zeros((count, _Slots.COUNT), dtype=np.uint8)
        self._unlocks = np.zeros((count, 8), dtype=np.uint8)
        self._doors = np.array([len(grid.doors) for grid in grids], dtype=np.intp)
        self._widths = np.array([grid.width for grid in grids], dtype=np.intp)
        self._last_phase = np.array([grid.period - 1 for grid in grids], dtype=np.intp)
        start: dict[str, NDArray[Any]] = {
            "_cell": np.zeros(count, dtype=np.intp),
            "_phase": np.zeros(count, dtype=np.intp),
            "_closed": np.full(count, _WALL, dtype=np.uint16),
            "_shut": np.zeros(count, dtype=np.uint8),
            "_unlocked": np.zeros(count, dtype=np.uint8),
            "_on": np.zeros((count, _Slots.COUNT), dtype=np.uint8),
            "hand": np.zeros(count, dtype=np.uint8),
            "lost": np.zeros(count, dtype=np.bool_),
            "_things": np.zeros((count, _Columns.COUNT), dtype=np.uint8),
            "_looks": np.zeros((count, CELLS), dtype=np.uint8),
        }
        self._item_looks = np.zeros((count, 17), dtype=np.uint8)
        self._bare_looks = np.zeros((count, _Slots.COUNT), dtype=np.uint8)
        for i, grid in enumerate(grids):
            self._lay(i, grid, start)
        self._lay_patrols()
        self._initial = start
        self._cell: Ints = start["_cell"].copy()
        self._phase: Ints = start["_phase"].copy()
        self._closed: NDArray[np.uint16] = start["_closed"].copy()
        self._shut: NDArray[np.uint8] = start["_shut"].copy()
        self._unlocked: NDArray[np.uint8] = start["_unlocked"].copy()
        self._on: NDArray[np.uint8] = start["_on"].copy()
        self.hand: NDArray[np.uint8] = start["hand"].copy()
        """0, or 1 + the number of the gem that is carried."""
        self.lost: Bools = start["lost"].copy()
        """Whether the actor was caught."""
        self._things: NDArray[np.uint8] = start["_things"].copy()
        self._looks: NDArray[np.uint8] = start["_looks"].copy()
        self._target = np.empty(count, dtype=np.intp)
        self._at = np.empty(count, dtype=np.intp)
        self._facts: dict[Fact, tuple[Ints, NDArray[np.uint8]]] = {}

    def __len__(self) -> int:
        return len(self.grids)

    def _lay(self, i: int, grid: Grid, start: dict[str, NDArray[Any]]) -> None:
        """Enter one world into the tables and the initial arrays."""
        width, height = grid.width, grid.height

        def padded(cell: int) -> int:
            return cell // width * STRIDE + cell % width

        flat = np.frombuffer("".join(grid.rows).encode("ascii"), dtype=np.uint8).reshape(height, width)
        self._need[i].reshape(STRIDE, STRIDE)[:height, :width][flat == ord(".")] = 0
        looks = start["_looks"][i]
        looks.reshape(STRIDE, STRIDE)[:height, :width][flat == ord(".")] = CODES["floor"]
        for d, door in enumerate(grid.doors):
            self._need[i, padded(door.cell)] = 1 << d
            looks[padded(door.cell)] = _code(door)
        boxes = grid.openables[len(grid.doors) :]
        box_bit = {box.name: 1 << b for b, box in enumerate(boxes)}
        self._bare_looks[i] = CODES["floor"]
        slots = self._slot[i]
        for b, box in enumerate(boxes):
            slots[padded(box.cell)] = _Slots.BOX + b
            self._box_of[i, _Slots.BOX + b] = 1 << b
            looks[padded(box.cell)] = _code(box)
            self._bare_looks[i, _Slots.BOX + b] = _code(box, opened=True)
        for p, place in enumerate(grid.places):
            slots[padded(place.cell)] = _Slots.PLACE + p
            looks[padded(place.cell)] = self._bare_looks[i, _Slots.PLACE + p] = _code(place)
        for first, item, things in ((_Slots.GEM, 1, grid.gems), (_Slots.KEY, 9, grid.keys)):
            for k, thing in enumerate(things):
                slots[padded(thing.cell)] = first + k
                start["_on"][i, first + k] = item + k
                self._item_looks[i, item + k] = _code(thing)
                if thing.inside:
                    box = boxes[box_bit[thing.inside].bit_length() - 1]
                    self._box_of[i, first + k] = box_bit[thing.inside]
                    self._bare_looks[i, first + k] = _code(box, opened=True)
                else:
                    looks[padded(thing.cell)] = _code(thing)
        for k, key in enumerate(grid.keys):
            self._unlocks[i, k] = sum(1 << d for d, door in enumerate(grid.doors) if door.color == key.color)
        cell = padded(grid.start)
        start["_cell"][i] = cell
        start["_closed"][i] |= (1 << len(grid.doors)) - 1
        start["_shut"][i] = (1 << len(boxes)) - 1
        start["_things"][i, _Columns.UNDER] = slots[cell]

    def _lay_patrols(self) -> None:
        """Write out every patrol's cells over its world's whole period, one after the other."""
        owners: list[int] = []
        begins: list[int] = []
        rounds: list[Ints] = []
        begin = 0
        for i, grid in enumerate(self.grids):
            for cells in grid.tracks:
                track = np.array(cells, dtype=np.intp)
                track = track // grid.width * STRIDE + track % grid.width
                owners.append(i)
                begins.append(begin)
                rounds.append(np.resize(track, grid.period))
                begin += grid.period
        self._owners = np.array(owners, dtype=np.intp)
        self._begins = np.array(begins, dtype=np.intp)
        self._rounds = np.concatenate(rounds) if rounds else np.empty(0, dtype=np.intp)

    # Transitions

    def reset(self, which: Bools | Ints) -> None:
        """Bring the worlds that `which` picks (a mask or indices) back to their initial state."""
        for name, values in self._initial.items():
            getattr(self, name)[which] = values[which]

    def step(self, actions: NDArray[Any]) -> None:
        """Take one step in every world: `actions[i]` is the number (in `ACTIONS`) of the one in world i.

        An action that cannot be done is a wait; a lost world stays as it is. Raises `BadTask` for an array of
        another shape, or for numbers of no action.
        """
        actions = self._checked(actions)
        cell, target, at = self._cell, self._target, self._at
        if self.lost.any():
            actions = np.where(self.lost, np.uint8(WAIT), actions)
        _OFFSETS.take(actions, out=target, mode="clip")
        target += cell
        np.add(self._base, target, out=at)
        blocked = self._need.take(at)
        blocked &= self._closed
        np.copyto(target, cell, where=blocked != 0)
        for number, act in ((TAKE, self._take), (OPEN, self._open), (DROP, self._drop)):
            worlds = np.flatnonzero(actions == number)
            if len(worlds):
                act(worlds)
        if len(self._owners):
            self._move_patrols(cell, target)
        cell[:] = target
        np.add(self._base, target, out=at)
        under = self._slot.take(at)
        if self.lost.any():
            under[self.lost] = 0
        self._things[:, _Columns.UNDER] = under

    def _checked(self, actions: NDArray[Any]) -> NDArray[np.uint8]:
        if actions.shape != (len(self),) or actions.dtype.kind not in "iu":
            raise BadTask(
                f"batch actions: got {actions.dtype} of shape {actions.shape}, "
                f"whole numbers of shape ({len(self)},) are needed"
            )
        if actions.min() < 0 or actions.max() >= len(ACTIONS):
            raise BadTask(
                f"batch actions: got {int(actions.min())} to {int(actions.max())}, allowed are 0 to {WAIT}"
            )
        return actions.astype(np.uint8, copy=False)

    def _take(self, worlds: Ints) -> None:
        spot = worlds * _Slots.COUNT + self._slot.take(worlds * CELLS + self._cell[worlds])
        item = self._on.take(spot)
        found = np.flatnonzero(item)
        worlds, spot, item = worlds[found], spot[found], item[found]
        can = (self._box_of.take(spot) & self._shut[worlds]) == 0
        can &= (item > 8) | (self.hand[worlds] == 0)
        worlds, spot, item = worlds[can], spot[can], item[can]
        self._on.reshape(-1)[spot] = 0
        self._things.reshape(-1)[worlds * _Columns.COUNT + item - 1] = 1
        self._looks[worlds, self._cell[worlds]] = self._bare_looks.take(spot)
        is_key = item > 8
        owners, keys = worlds[is_key], item[is_key]
        self._unlocked[owners] |= self._unlocks.take(owners * 8 + keys - 9)
        self.hand[worlds[~is_key]] = item[~is_key]

    def _open(self, worlds: Ints) -> None:
        at = worlds * CELLS + self._cell[worlds]
        spot = worlds * _Slots.COUNT + self._slot.take(at)
        box = self._box_of.take(spot) & self._shut[worlds]
        done = box != 0
        if done.any():
            owners, box, spot = worlds[done], box[done], spot[done]
            item = self._on.take(spot)
            inside = np.where(item > 0, self._item_looks[owners, item], self._bare_looks.take(spot))
            self._looks.reshape(-1)[at[done]] = inside
            self._shut[owners] ^= box
            self._things[owners, _Columns.OPEN + self._doors[owners] + _LOWEST[box]] = 1
            worlds, at = worlds[~done], at[~done]
        ready = self._closed[worlds] & self._unlocked[worlds]
        can = np.flatnonzero(ready)
        worlds, at, ready = worlds[can], at[can], ready[can]
        if not len(worlds):
            return
        door = np.zeros(len(worlds), dtype=np.uint16)
        where = at.copy()
        for offset in _OFFSETS[:4]:
            np.copyto(where, at + offset, where=door == 0)
            np.copyto(door, self._need.take(where) & ready, where=door == 0)
        can = np.flatnonzero(door)
        worlds, door, where = worlds[can], door[can], where[can]
        self._looks.reshape(-1)[where] += CODES["open door"] - CODES["door"]
        self._closed[worlds] ^= door
        self._things[worlds, _Columns.OPEN + _LOWEST[door]] = 1

    def _drop(self, worlds: Ints) -> None:
        worlds = worlds[self.hand[worlds] > 0]
        slot = self._slot.take(worlds * CELLS + self._cell[worlds])
        place = (slot >= _Slots.PLACE) & (slot < _Slots.GEM)
        place &= self._on[worlds, slot] == 0
        worlds, slot = worlds[place], slot[place]
        item = self.hand[worlds]
        self._on[worlds, slot] = item
        self._looks[worlds, self._cell[worlds]] = self._item_looks[worlds, item]
        self._things[worlds, item - 1] = slot + 1
        self.hand[worlds] = 0

    def _move_patrols(self, cell: Ints, target: Ints) -> None:
        """Move every patrol of the worlds that are not lost, and find who was caught."""
        owners, phase = self._owners, self._phase
        before = self._patrol_cells()
        after = np.where(phase == self._last_phase, 0, phase + 1)
        np.copyto(phase, after, where=~self.lost)
        now = self._patrol_cells()
        going_to = target.take(owners)
        caught = now == going_to
        caught |= (now == cell.take(owners)) & (before == going_to)
        self.lost[owners[caught]] = True

    # Readings

    @property
    def cells(self) -> Ints:
        """`GridState.cell` of every world (its complement where the actor was caught)."""
        cell = self._cell // STRIDE * self._widths + self._cell % STRIDE
        return np.where(self.lost, ~cell, cell)

    @property
    def phases(self) -> Ints:
        """`GridState.phase` of every world."""
        return self._phase.copy()

    @property
    def bits(self) -> NDArray[np.int64]:
        """`GridState.bits` of every world."""
        things = self._things.astype(np.int64)
        shifts = np.array(
            [(len(g.openables), g.gem_shift, g.gem_width, g.hand_shift) for g in self.grids], dtype=np.int64
        )
        key_shift, gem_shift, gem_width, hand_shift = shifts.T
        powers = np.arange(16, dtype=np.int64)
        found: NDArray[np.int64] = (things[:, _Columns.OPEN : _Columns.UNDER] << powers).sum(axis=1)
        found |= (things[:, _Columns.KEY : _Columns.OPEN] << powers[:8]).sum(axis=1) << key_shift
        for gem in range(8):
            found |= things[:, _Columns.GEM + gem] << (gem_shift + gem * gem_width) % 64
        found |= self.hand.astype(np.int64) << hand_shift
        return found

    def state(self, i: int) -> GridState:
        """Return the state of world i as `Grid` has it."""
        one = self.bits  # the whole column: this is for looking at a world, not for the inner loop
        return GridState(int(self.cells[i]), int(self._phase[i]), int(one[i]))

    def atom(self, i: int, fact: Fact) -> tuple[int, int] | None:
        """Return where in `things` the fact is found in world i, and the value that it has if it holds.

        None where the world has no such fact. `visited` reads as `at`.
        """
        head, name = fact[0], fact[1]
        grid = self.grids[i]
        places = {place.name: p for p, place in enumerate(grid.places)}
        if head in ("at", "visited"):
            return None if name not in places else self._flat(i, _Columns.UNDER, _Slots.PLACE + places[name])
        if head == "opened":
            found = [k for k, thing in enumerate(grid.openables) if thing.name == name]
            return self._flat(i, _Columns.OPEN + found[0], 1) if found else None
        gems = [k for k, thing in enumerate(grid.gems) if thing.name == name]
        if head == "delivered":
            if not gems or fact[2] not in places:
                return None
            return self._flat(i, _Columns.GEM + gems[0], 2 + places[fact[2]])
        keys = [k for k, thing in enumerate(grid.keys) if thing.name == name]
        if head != "has":
            raise BadTask(f"batch fact: got {short(head)}, allowed are at, has, opened, delivered, visited")
        if gems:
            return self._flat(i, _Columns.GEM + gems[0], 1)
        return self._flat(i, _Columns.KEY + keys[0], 1) if keys else None

    def _flat(self, i: int, column: int, value: int) -> tuple[int, int]:
        return i * _Columns.COUNT + column, value

    def holds(self, fact: Fact) -> Bools:
        """Return in which worlds the fact holds now; never in a world that has no such fact."""
        known = self._facts.get(fact)
        if known is None:
            atoms = [self.atom(i, fact) or (i * _Columns.COUNT, 255) for i in range(len(self))]
            where, values = zip(*atoms, strict=True)
            known = (np.array(where, dtype=np.intp), np.array(values, dtype=np.uint8))
            self._facts[fact] = known
        held: Bools = self.values(known[0]) == known[1]
        return held

    def values(self, where: Ints) -> NDArray[np.uint8]:
        """Return what stands at places found by `atom`."""
        return self._things.take(where)

    def looks(self) -> NDArray[np.uint8]:
        """Return what every cell looks like now (`CODES`), patrols included: (worlds, 16, 16), walls outside."""
        found: NDArray[np.uint8] = self._looks.copy()
        found[self._owners, self._patrol_cells()] = CODES["patrol"]
        return found.reshape(-1, STRIDE, STRIDE)

    def view(self, radius: int) -> NDArray[np.uint8]:
        """Return the window around every actor, who stands in its middle: (worlds, 2 radius + 1, 2 radius + 1)."""
        reach = np.arange(-radius, radius + 1)
        patrols = self._owners * CELLS + self._patrol_cells()
        flat = self._looks.reshape(-1)
        under = flat[patrols]
        flat[patrols] = CODES["patrol"]
        at = (self._base + self._cell)[:, None, None] + reach[:, None] * STRIDE + reach
        found: NDArray[np.uint8] = flat.take(at, mode="wrap")
        flat[patrols] = under
        if radius > 2:  # up to 2, what lies past the edge is another edge
            x, y = (self._cell % STRIDE)[:, None] + reach, (self._cell // STRIDE)[:, None] + reach
            inside_x, inside_y = (x >= 0) & (x < STRIDE), (y >= 0) & (y < STRIDE)
            found[~(inside_y[:, :, None] & inside_x[:, None, :])] = CODES["wall"]
        return found

    def _patrol_cells(self) -> Ints:
        found: Ints = self._rounds.take(self._begins + self._phase.take(self._owners))
        return found

    def legal(self) -> Bools:
        """Return which actions can be done, as `Grid.legal` has it: one row a world, one column an action."""
        count = len(self)
        worlds = np.arange(count, dtype=np.intp)
        at = self._base + self._cell
        beside = self._need.take(at[:, None] + _OFFSETS[:4])
        found = np.empty((count, len(ACTIONS)), dtype=np.bool_)
        found[:, :TAKE] = (beside & self._closed[:, None]) == 0
        slot = self._slot.take(at)
        box = self._box_of[worlds, slot] & self._shut
        item = self._on[worlds, slot]
        found[:, TAKE] = (item > 0) & (box == 0) & ((item > 8) | (self.hand == 0))
        ready = self._closed & self._unlocked
        found[:, OPEN] = (box != 0) | ((beside & ready[:, None]) != 0).any(axis=1)
        place = (slot >= _Slots.PLACE) & (slot < _Slots.GEM)
        found[:, DROP] = (self.hand > 0) & place & (item == 0)
        found[:, WAIT] = True
        found[self.lost] = False
        return found


def _code(thing: Thing, *, opened: bool = False) -> int:
    if not thing.color:
        return CODES[thing.kind]
    return CODES[f"open {thing.kind}" if opened else thing.kind] + COLOR_CODES[thing.color]
