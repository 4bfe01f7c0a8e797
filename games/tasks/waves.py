"""Breadth-first search over a grid, a whole set of cells at a time.

All nodes of one layer are reached at the same step, so the patrols stand alike in all of them. What remains of a
node is a mode (what was opened and taken, and the goal's progress) and a cell; the cells of a mode are the bits
of one integer, and a move shifts them all. Only cells where something can be taken, opened or put down, and
places that the goal may speak of, are looked at one by one.
"""

from collections.abc import Iterable
from typing import NamedTuple

from games.tasks.goals import BROKEN, HOLDS, Goal, Progress
from games.tasks.grid import MOVES, Grid, GridState
from games.tasks.solution import SOLVABLE, UNKNOWN, UNSOLVABLE, Solution
from games.tasks.world import WAIT

Mode = tuple[int, Progress]
Wave = dict[Mode, int]
"""Modes with the set of cells reached in each, as a bit mask."""


_BINARY = str.maketrans("#.", "01")


class _Masks(NamedTuple):
    """Sets of cells: what moves and patrols need, the latter by phase at the end of the step."""

    offsets: tuple[int, ...]
    floor: int
    doors: tuple[tuple[int, int], ...]
    safe: tuple[int, ...]
    unswapped: tuple[tuple[int, ...], ...]
    places: int
    acts: tuple[tuple[str, int], ...]
    touched: int
    waits: bool


def spread(grid: Grid, goal: Goal, progress: Progress, *, max_steps: int | None, max_nodes: int) -> Solution:
    """Search from the initial state, where the goal's progress is `progress` and still open."""
    return _Search(grid, goal).run((0, progress), max_steps, max_nodes)


class _Search:
    def __init__(self, grid: Grid, goal: Goal) -> None:
        self.grid, self.goal = grid, goal
        self.masks = _masks(grid, goal)
        self.floors: dict[int, int] = {}
        self.folds: dict[tuple[Progress, int, int], tuple[Progress, int]] = {}
        self.waves: list[Wave] = []

    def run(self, root: Mode, max_steps: int | None, max_nodes: int) -> Solution:
        """Spread wave by wave until the goal holds, nothing new is reached, or a bound is met."""
        grid, period = self.grid, self.grid.period
        seen: list[Wave] = [{} for _ in range(period)]
        wave: Wave = {root: 1 << grid.start}
        seen[0].update(wave)
        nodes, depth = 1, 0
        while wave and (max_steps is None or depth < max_steps):
            self.waves.append(wave)
            depth += 1
            phase = depth % period
            reached, found = self.next(wave, phase)
            if found is not None:
                return Solution(SOLVABLE, depth, self.plan(*found, depth), nodes)
            known, wave = seen[phase], {}
            for mode, cells in reached.items():
                old = known.get(mode, 0)
                new = cells & ~old
                if new:
                    known[mode] = old | new
                    wave[mode] = new
                    nodes += new.bit_count()
            if nodes >= max_nodes:
                return Solution(UNKNOWN, None, None, nodes)
        return Solution(UNSOLVABLE, None, None, nodes)

    def next(self, wave: Wave, phase: int) -> tuple[Wave, tuple[Mode, int] | None]:
        """Return what is reached from a wave in one step, or a mode and cell in which the goal holds."""
        masks, folds, handle, width = self.masks, self.folds, self.grid.handle, self.grid.width
        safe, places, waits = masks.safe[phase], masks.places, masks.waits
        unswapped = masks.unswapped[phase] if self.grid.tracks else None
        reached: Wave = {}
        for mode, cells in wave.items():
            bits, progress = mode
            if unswapped is None:
                moved = cells << 1 | cells >> 1 | cells << width | cells >> width
            else:
                up, down, left, right = unswapped
                moved = cells >> width & up | cells << width & down | cells >> 1 & left | cells << 1 & right
            moved &= self.floor(bits)
            if waits:
                moved |= cells
            moved &= safe
            apart: list[tuple[int, int]] = []
            here = moved & places
            moved ^= here
            while here:
                low = here & -here
                apart.append((bits, low))
                here ^= low
            if moved:
                apart.append((bits, moved))
            here = cells & masks.touched & safe
            while here:
                low = here & -here
                here ^= low
                for action, where in masks.acts:
                    if low & where:
                        after, fault = handle(low.bit_length() - 1, bits, action)
                        if fault is None:
                            apart.append((after, low))
            for after, mask in apart:
                folded, status = folds.get((progress, after, mask & places)) or self.fold(
                    progress, after, mask & places
                )
                if status == HOLDS:
                    return reached, ((after, folded), mask.bit_length() - 1)
                if status != BROKEN:
                    found = (after, folded)
                    reached[found] = reached.get(found, 0) | mask
        return reached, None

    def fold(self, progress: Progress, bits: int, place: int) -> tuple[Progress, int]:
        """Return the progress and its status at a place (its mask), or with 0 in any cell that is no place."""
        question = (progress, bits, place)
        answer = self.folds.get(question)
        if answer is None:
            folded = self.goal.fold(progress, self.grid.facts(GridState(place.bit_length() - 1, 0, bits)))
            answer = self.folds[question] = (folded, self.goal.status(folded))
        return answer

    def floor(self, bits: int) -> int:
        """Return the cells that can be entered when `bits` say which doors are open."""
        floor = self.floors.get(bits)
        if floor is None:
            floor = self.masks.floor
            for bit, cell in self.masks.doors:
                if bits & bit:
                    floor |= cell
            self.floors[bits] = floor
        return floor

    def plan(self, mode: Mode, cell: int, depth: int) -> tuple[str, ...]:
        """Walk back from where the goal holds to the start, wave by wave, by the same moves and acts."""
        actions: list[str] = []
        for now in range(depth - 1, -1, -1):
            action, mode, cell = self.before(mode, cell, now)
            actions.append(action)
        return tuple(reversed(actions))

    def before(self, mode: Mode, cell: int, now: int) -> tuple[str, Mode, int]:
        """Return an action, and the mode and cell of wave `now` from which it leads to the given ones."""
        bits, progress = mode
        low, period = 1 << cell, self.grid.period
        place, unswapped = low & self.masks.places, self.masks.unswapped[(now + 1) % period]
        for source, cells in self.waves[now].items():
            same = source[0] == bits
            if not (same or cells & low) or self.fold(source[1], bits, place)[0] != progress:
                continue
            if same:
                for name, offset, free in zip(MOVES, self.masks.offsets, unswapped, strict=True):
                    if cells >> (cell - offset) & 1 and free & low:
                        return name, source, cell - offset
                if self.masks.waits and cells & low:
                    return WAIT, source, cell
                continue
            for action, where in self.masks.acts:
                if where & low and self.grid.handle(cell, source[0], action) == (bits, None):
                    return action, source, cell
        raise AssertionError("a cell was reached from nowhere")


def _masks(grid: Grid, goal: Goal) -> _Masks:
    flat = "".join(grid.rows)
    offsets = tuple([dy * grid.width + dx for dx, dy in MOVES.values()])
    everywhere = (1 << len(flat)) - 1
    floor = int(flat[::-1].translate(_BINARY), 2)
    safe: tuple[int, ...] = (everywhere,)
    unswapped: tuple[tuple[int, ...], ...] = ((everywhere,) * len(offsets),)
    if grid.tracks:
        safe = tuple([everywhere & ~_mask(cells) for cells in grid.arrival])
        unswapped = tuple(
            [
                tuple([everywhere & ~_mask(b for a, b in pairs if b - a == offset) for offset in offsets])
                for pairs in grid.swaps
            ]
        )
    takes, opens, drops, waits = grid.serving(goal)
    acts = tuple(
        [(name, _mask(cells)) for name, cells in (("take", takes), ("open", opens), ("drop", drops))]
    )
    return _Masks(
        offsets=offsets,
        floor=floor & ~_mask(grid.locked),
        doors=tuple([(bit, 1 << cell) for cell, (bit, _) in grid.locked.items()]),
        safe=safe,
        unswapped=unswapped,
        places=_mask(place.cell for place in grid.places),
        acts=acts,
        touched=acts[0][1] | acts[1][1] | acts[2][1],
        waits=waits,
    )


def _mask(cells: Iterable[int]) -> int:
    mask = 0
    for cell in cells:
        mask |= 1 << cell
    return mask
