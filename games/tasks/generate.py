"""Grid tasks from a seed, each proven solvable, with a knob for every dimension of difficulty.

The inside is cut into rooms by walls with locked doors; a room's key lies in a room before it, perhaps in a box;
gems, pads, patrols, obstacles and distractors go where room is left; the actor starts in the first room and the
exit is in the last. The solver then proves a shortest plan, from which the budget follows. The same seed and
knobs give the same task on every machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from games.errors import BadTask
from games.rng import Chance, derive_seed
from games.tasks.difficulty import SKILLS, measure, skills_of
from games.tasks.goals import Goal, short
from games.tasks.grid import Grid
from games.tasks.grid_layout import COLORS, MAX_SIDE, MIN_SIDE, Thing
from games.tasks.solver import SOLVABLE, solve
from games.tasks.spec import MAX_BUDGET, TaskSpec
from games.tasks.world import World

GENERATOR = "grid-1"
MAX_TRIES = 64
MAX_NODES = 50_000

_LIMITS: dict[str, tuple[float, float]] = {
    "side": (MIN_SIDE, MAX_SIDE),
    "objects": (0, 12),
    "path_length": (0, 120),
    "rule_depth": (1, 8),
    "time_pressure": (0.05, 1),
    "distractors": (0, 12),
    "patrols": (0, 4),
    "obstacles": (0, 60),
}


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a generated task is like; `objects` to `distractors` are the dimensions of difficulty.

    `side` is the length of both sides, walls included. `path_length` is a target: the closest of a few tries is
    taken, and 0 means any. `objects` counts keys, doors, boxes and gems that are needed. `rule_depth` counts the
    goal's conditions. `time_pressure` is the shortest plan's length over the budget.
    """

    side: int = 8
    objects: int = 2
    path_length: int = 0
    rule_depth: int = 1
    time_pressure: float = 0.5
    distractors: int = 0
    patrols: int = 0
    obstacles: int = 3
    avoid: bool = False
    """Whether one of the conditions is a pad never to stand at (from a `rule_depth` of 2 on)."""

    deliver: bool = False
    """Whether one of the objects is a gem to be delivered."""

    before: bool = False
    """Whether the first two conditions are a `before`: whoever meets the second too soon has failed.

    It takes two conditions beside the pad to avoid; the first is a place to visit, unless all are things to carry.
    """

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            value = getattr(self, name)
            whole = name != "time_pressure"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                raise BadTask(
                    f"knob {name}: got {short(value)}, a {'whole ' if whole else ''}number is needed"
                )
            if not low <= value <= high:
                raise BadTask(f"knob {name}: got {short(value)}, allowed is {low:g} to {high:g}")


W = TypeVar("W", bound=World[Any])


class Level(NamedTuple, Generic[W]):
    """A world and a goal with a shortest plan: a task that is proven, but not yet written down."""

    world: W
    goal: Goal
    plan: tuple[str, ...]


def level(seed: int, knobs: Knobs | None = None) -> Level[Grid]:
    """Return the level of `seed`. Raises `BadTask` if no try of this seed gave a solvable one."""
    knobs = _DEFAULT if knobs is None else knobs
    return proven(lambda chance: _Maker(chance, knobs).make(), seed=seed, knobs=knobs, generator=GENERATOR)


def generate(seed: int, knobs: Knobs | None = None, *, parent: str | None = None) -> TaskSpec:
    """Return the task of `seed`, measured. Raises `BadTask` if no try of this seed gave a solvable one."""
    knobs = _DEFAULT if knobs is None else knobs
    return written(level(seed, knobs), knobs=knobs, generator=GENERATOR, parent=parent)


# What the generators of all worlds share


def proven(
    make: Callable[[Chance], tuple[W, Goal] | None],
    *,
    seed: int,
    knobs: Knobs,
    generator: str,
    max_nodes: int = MAX_NODES,
) -> Level[W]:
    """Try `make` until it gives a solvable level near the wanted path length; the nearest of `MAX_TRIES` otherwise.

    Raises `BadTask` if no try of this seed gave a solvable one.
    """
    best: tuple[int, Level[W]] | None = None
    for i in range(MAX_TRIES):
        made = make(Chance(derive_seed(seed, generator, i)))
        if made is None:
            continue
        found = solve(*made, max_steps=MAX_BUDGET, max_nodes=max_nodes)
        if found.status != SOLVABLE or not found.plan:
            continue
        far = abs(len(found.plan) - knobs.path_length) if knobs.path_length else 0
        if best is None or far < best[0]:
            best = (far, Level(*made, found.plan))
        if far <= knobs.path_length // 10:
            break
    if best is None:
        raise BadTask(f"seed {seed}: no solvable task with {knobs} in {MAX_TRIES} tries")
    return best[1]


def written(made: Level[W], *, knobs: Knobs, generator: str, parent: str | None = None) -> TaskSpec:
    """Return a level as a measured task, with the budget that the time pressure gives."""
    world, goal, plan = made
    budget = min(MAX_BUDGET, max(len(plan), round(len(plan) / knobs.time_pressure)))
    skills = skills_of(world, goal, plan=plan)
    spec = TaskSpec.make(world, goal=goal, budget=budget, skills=skills, generator=generator, parent=parent)
    return spec.with_difficulty(measure(world, goal, budget=budget, plan=plan))


def goal_of(steps: Sequence[dict[str, Any]], *, before: bool, shunned: str | None) -> dict[str, Any]:
    """Return the goal of the last eight conditions in that order, and of a place never to stand at."""
    steps = list(steps)[-8:]
    if before and len(steps) > 1:
        steps = [{"before": steps[:2]}, *steps[2:]]
    goal = {"then": steps} if len(steps) > 1 else steps[0]
    return goal if shunned is None else {"and": [goal, {"never": {"at": shunned}}]}


_DEFAULT = Knobs()


def stepped(knobs: Knobs, dimension: str, step: float) -> Knobs:
    """Return knobs with one dimension moved by `step`, kept within its limits."""
    low, high = _LIMITS[dimension]
    value = min(high, max(low, getattr(knobs, dimension) + step))
    return replace(knobs, **{dimension: value if dimension == "time_pressure" else round(value)})


def focused(knobs: Knobs, skill: str) -> Knobs:
    """Return the nearest knobs whose tasks take `skill`, one of `games.tasks.difficulty.SKILLS`."""
    match skill:
        case "fetch" | "open":
            return replace(knobs, objects=max(knobs.objects, 3 if knobs.deliver else 2))
        case "deliver":
            return replace(knobs, objects=max(knobs.objects, 1), deliver=True)
        case "order":
            return replace(knobs, rule_depth=max(knobs.rule_depth, 3 if knobs.avoid else 2))
        case "avoid":
            return replace(knobs, rule_depth=max(knobs.rule_depth, 2), avoid=True)
        case "dodge":
            return replace(knobs, patrols=max(knobs.patrols, 1))
        case "navigate":
            return knobs
    raise BadTask(f"skill: got {short(skill)}, allowed are {', '.join(SKILLS)}")


class _Maker:
    """One try: everything is drawn from one chance source, in a fixed order."""

    def __init__(self, chance: Chance, knobs: Knobs) -> None:
        self.draw = chance.draw
        self.knobs = knobs
        self.side = knobs.side
        self.colors = [COLORS[i] for i in chance.order(len(COLORS))]
        self.things: list[Thing] = []
        self.milestones: list[dict[str, Any]] = []

    def make(self) -> tuple[Grid, Goal] | None:
        """Return a world and a goal in it, not yet proven; None where something found no room."""
        knobs, side = self.knobs, self.side
        kept = 1 if knobs.deliver and knobs.objects else 0
        doors = min((knobs.objects - kept) // 2, (side - 2 - 2) // 3 + 1, 4)
        rest = knobs.objects - kept - 2 * doors
        boxed = min(rest, doors)
        gems = min(rest - boxed + kept, len(COLORS) - 1)
        self.lay_walls(doors)
        spots = [cell for room in range(doors) if (cell := self.take(room)) is not None]
        start, exit_cell = self.take(0), self.take(doors)
        if start is None or exit_cell is None or len(spots) < doors:
            return None
        self.add_locks(spots, boxed)
        self.things.append(Thing("exit", "", exit_cell))
        goal = self.goal(gems)
        if goal is None or not self.add_distractors() or not self.add_obstacles():
            return None
        paths = self.patrol_paths(start)
        if paths is None:
            return None
        rows = ["".join(self.flat[y * side : (y + 1) * side]) for y in range(side)]
        grid = Grid(rows, start=start, things=self.things, paths=paths)
        return (Grid.parse(grid.to_data()), Goal.parse(goal)) if paths else (grid, Goal.parse(goal))

    def lay_walls(self, doors: int) -> None:
        """Cut the inside into `doors + 1` rooms, side by side or one above the other."""
        side = self.side
        inner = side - 2
        width, extra = divmod(inner - doors, doors + 1)
        cuts, at = [], 0
        grow = self.draw(doors + 1)
        for i in range(doors):
            at += width + (1 if (i - grow) % (doors + 1) < extra else 0) + 1
            cuts.append(at)
        turned = bool(self.draw(2))
        self.flat = ["#"] * (side * side)
        self.rooms: list[list[int]] = [[] for _ in range(doors + 1)]
        for across in range(1, side - 1):
            room = 0
            for along in range(1, side - 1):
                if room < doors and along == cuts[room]:
                    room += 1
                    continue
                cell = along * side + across if turned else across * side + along
                self.flat[cell] = "."
                self.rooms[room].append(cell)
        self.door_cells = []
        for cut in cuts:
            across = 1 + self.draw(inner)
            cell = cut * side + across if turned else across * side + cut
            self.flat[cell] = "."
            self.door_cells.append(cell)

    def take(self, room: int | None = None) -> int | None:
        """Remove and return a free cell of the room (of any room, with None), or None if none is left."""
        if room is None:
            sizes = [len(cells) for cells in self.rooms]
            pick = self.draw(sum(sizes)) if sum(sizes) else -1
            for room, size in enumerate(sizes):  # noqa: B007  the room found is used below
                if pick < size:
                    break
                pick -= size
        cells = self.rooms[room or 0]
        if not cells:
            return None
        i = self.draw(len(cells))
        cells[i], cells[-1] = cells[-1], cells[i]
        return cells.pop()

    def add_locks(self, spots: list[int], boxed: int) -> None:
        """Put a locked door in each wall, its key in a cell before it, the first few keys into boxes."""
        for i, (cell, spot) in enumerate(zip(self.door_cells, spots, strict=True)):
            color = self.colors[i]
            self.things.append(Thing("door", color, cell))
            box = None
            if i < boxed:
                box = f"{color} box"
                self.things.append(Thing("box", color, spot))
            self.things.append(Thing("key", color, spot, box))
            self.milestones += [{"has": f"{color} key"}, {"opened": f"{color} door"}]

    def goal(self, gems: int) -> dict[str, Any] | None:
        """Return a goal of `rule_depth` conditions (more if there are more gems), with the pads that it needs."""
        depth, shunned = self.knobs.rule_depth, None
        if self.knobs.avoid and depth > 1:
            depth, shunned = depth - 1, self.pad()
            if shunned is None:
                return None
        last: dict[str, Any] = {"at": "exit"}
        parts: list[dict[str, Any]] = []
        for color in self.colors[:gems]:
            cell = self.take()
            if cell is None:
                return None
            self.things.append(Thing("gem", color, cell))
            if gems == 1 and depth == 1:
                last = {"delivered": [f"{color} gem", "exit"]}
                break
            where = self.pad()
            if where is None:
                return None
            parts.append({"delivered": [f"{color} gem", where]})
        room = depth - 1 - len(parts)
        first = int(self.knobs.before and room > 0)
        kept = self.milestones[first - room :] if room > first else []
        while len(kept) < room:
            where = self.pad(0 if first and len(kept) == room - 1 else None)
            if where is None:
                return None
            kept = [{"visited": where}, *kept]
        return goal_of([*kept, *parts, last], before=self.knobs.before, shunned=shunned)

    def pad(self, room: int | None = None) -> str | None:
        """Add a pad, perhaps in a certain room, and return its name; None if there is no colour or no cell left."""
        used = sum(1 for thing in self.things if thing.kind == "pad")
        cell = self.take(room) if used < len(COLORS) else None
        if cell is None:
            return None
        self.things.append(Thing("pad", COLORS[used], cell))
        return f"{COLORS[used]} pad"

    def add_distractors(self) -> bool:
        """Add keys without doors, boxes and gems that nobody needs."""
        names = {thing.name for thing in self.things}
        doors = {thing.color for thing in self.things if thing.kind == "door"}
        spare = [
            (kind, color)
            for color in reversed(self.colors)
            for kind in ("gem", "key", "box")
            if f"{color} {kind}" not in names and not (kind == "key" and color in doors)
        ]
        for _ in range(self.knobs.distractors):
            cell = self.take() if spare else None
            if cell is None:
                return False
            kind, color = spare.pop(self.draw(min(6, len(spare))))
            self.things.append(Thing(kind, color, cell))
        return True

    def add_obstacles(self) -> bool:
        """Turn free cells into walls, none beside a door."""
        side = self.side
        kept = {cell + offset for cell in self.door_cells for offset in (1, -1, side, -side)}
        for _ in range(min(self.knobs.obstacles, sum(map(len, self.rooms)) // 2)):
            cell = self.take()
            if cell is None:
                return False
            if cell not in kept:
                self.flat[cell] = "#"
        return True

    def patrol_paths(self, start: int) -> list[tuple[int, ...]] | None:
        """Return straight walks over free floor, each of 2 to 4 cells and away from the start."""
        side, doors = self.side, set(self.door_cells)
        paths: list[tuple[int, ...]] = []
        for _ in range(8 * self.knobs.patrols):
            if len(paths) == self.knobs.patrols:
                break
            cell = self.draw(side * side)
            offset = (1, -1, side, -side)[self.draw(4)]
            path: list[int] = []
            while len(path) < 4 and self.flat[cell] == "." and cell not in doors and cell != start:
                path.append(cell)
                cell += offset
            if len(path) > 1 and tuple(path) not in paths:
                paths.append(tuple(path))
        return paths if len(paths) == self.knobs.patrols else None
