"""How alike two tasks are, for telling near-duplicates and for searching among many tasks.

`features` turns a task into a vector of `SIZE` numbers, none negative, of length 1; `similarity` is their dot
product, from 0 to 1 (so a matrix of vectors is searched by one product). It is a weighted sum of cosines:

    goal      what is asked: predicates with the kinds of what they name, the operators above them, what comes
              right after what, and which parts name things of one colour
    layout    in a grid, how many steps apart the start, the things and the patrols are (closed doors count as
              floor); in other worlds, what the layout says where, its names reduced to what they are for
    ground    in a grid, how much floor lies how far from the start and the places
    size      how many places, things and hazards there are
    budget    how many steps there are

Colours, mirror images and turns of a grid change nothing, nor do other names in other worlds: such copies have
similarity 1. A distance or a count
falls softly into neighbouring slots, so a thing moved by one cell changes little. Nothing is solved, and what a
task says about itself (skills, difficulty, generator, parent, text) does not count.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from operator import mul
from typing import Any
from zlib import crc32

from games.tasks.goals import And, Goal, Part, Predicate, Then
from games.tasks.grid import Grid
from games.tasks.spec import TaskSpec
from games.tasks.world import World

Vector = tuple[float, ...]

BLOCKS = {
    "goal": (48, 0.3),
    "layout": (112, 0.4),
    "ground": (48, 0.1),
    "size": (32, 0.1),
    "budget": (16, 0.1),
}
"""Each block with its number of slots and its weight in the similarity."""

SIZE = sum(slots for slots, _ in BLOCKS.values())
"""How many numbers a vector has."""

NEAR_DUPLICATE = 0.97
"""From this similarity on, two tasks are called near-duplicates: a copy that is mirrored or recoloured, has a step
more or less of budget, or, among many things, one moved by a cell. A proper edit of a parent mostly stays below."""


def similarity(first: Vector, second: Vector) -> float:
    """Return how alike two tasks are by their `features`: 0 to 1, and 1 for tasks that are played alike."""
    product: float = sum(map(mul, first, second))
    return min(1.0, product)


def features(spec: TaskSpec, *, world: World[Any] | None = None) -> Vector:
    """Return the vector of a task: `SIZE` numbers of 0 or more, of length 1.

    `world` is `spec.make_world()`, if it is at hand. Pure: the same task gives the same vector on every machine.
    """
    world = spec.make_world() if world is None else world
    blocks = {
        "goal": _goal(spec.goal, _roles(world), colored=isinstance(world, Grid)),
        "layout": _distances(world) if isinstance(world, Grid) else _leaves(world),
        "ground": _ground(world) if isinstance(world, Grid) else iter(()),
        "size": _sizes(world),
        "budget": _soft("budget", 4 * math.log2(spec.budget)),
    }
    vector: list[float] = []
    for name, (slots, weight) in BLOCKS.items():
        found = [0.0] * slots
        for token, amount in blocks[name]:
            found[_hash(token) % slots] += amount
        length = math.sqrt(sum(map(mul, found, found)))
        scale = math.sqrt(weight) / length if length else 0.0
        vector += [amount * scale for amount in found]
    length = math.sqrt(sum(map(mul, vector, vector)))
    return tuple([amount / length for amount in vector])


Tokens = Iterator[tuple[str, float]]


@lru_cache(maxsize=16_384)
def _hash(token: str) -> int:
    return crc32(token.encode())


def _soft(label: str, value: float) -> Tokens:
    """Share a number out among the whole numbers around it, so that near numbers share much."""
    low = math.floor(value)
    for slot in range(low - 1, low + 3):
        amount = max(0.0, 1 - abs(value - slot) / 2)
        if amount:
            yield f"{label}={slot}", amount


def _kind(name: str) -> str:
    """Return what a grid calls a thing besides its colour."""
    return name.rpartition(" ")[2]


def _roles(world: World[Any]) -> dict[str, str]:
    """Return for every name that goals may use what can be said of it, whatever it is called."""
    if isinstance(world, Grid):
        return {
            name: _kind(name) for places in world.vocabulary().values() for part in places for name in part
        }
    roles: dict[str, str] = {}
    for head, places in sorted(world.vocabulary().items()):
        for i, part in enumerate(places):
            for name in part:
                roles[name] = f"{roles.get(name, '')} {head}{i}"
    return roles


def _goal(goal: Goal, roles: Mapping[str, str], *, colored: bool) -> Tokens:
    predicates: list[tuple[str, str]] = []
    for path, part in goal.walk():
        above = "/".join(type(goal.part(path[:i])).__name__ for i in range(len(path)))
        if isinstance(part, Predicate):
            predicates.append((_short(part, roles), part.fact[1]))
            yield f"{above}:{_short(part, roles)}", 2.0
        elif not isinstance(part, And):
            yield f"{above}:{type(part).__name__}", 1.0
        if isinstance(part, Then):
            for first, second in zip(part.inner, part.inner[1:], strict=False):
                yield f"{_short(first, roles)}>{_short(second, roles)}", 1.0
    for i, (first_words, name) in enumerate(predicates):
        for second_words, other in predicates[i + 1 :]:
            alike = colored and " " in name and name.partition(" ")[0] == other.partition(" ")[0]
            if alike or name == other:
                yield f"{first_words}~{second_words}", 1.0


def _short(part: Part, roles: Mapping[str, str]) -> str:
    if isinstance(part, Predicate):
        return ",".join([part.fact[0], *(roles[name] for name in part.fact[1:])])
    return f"{type(part).__name__}({';'.join(_short(inner, roles) for inner in part.parts())})"


def _sizes(world: World[Any]) -> Tokens:
    kinds: dict[str, int] = {"hazards": world.hazards}
    for head, places in world.vocabulary().items():
        kinds[head] = len(places[0])
    for kind, count in kinds.items():
        yield from _soft(kind, count)


def _distances(grid: Grid) -> Tokens:
    """Pairs of marked cells by kind, with the steps between them."""
    marks = [("start", 1 << grid.start)]
    marks += [(thing.kind, 1 << thing.cell) for thing in grid.openables + grid.portables + grid.places]
    marks += [("patrol", sum(1 << cell for cell in path)) for path in grid.paths]
    for i, (kind, cells) in enumerate(marks):
        left = dict(enumerate(marks[:i]))
        for steps, (seen, _) in enumerate(_waves(grid, cells)):
            for j in [j for j, (_, others) in left.items() if others & seen]:
                yield from _soft("-".join(sorted((kind, left.pop(j)[0]))), steps)
            if not left:
                break
        for other, _ in left.values():
            yield f"{'-'.join(sorted((kind, other)))}=never", 1.0


def _ground(grid: Grid) -> Tokens:
    for kind, cell in [("start", grid.start), *((place.kind, place.cell) for place in grid.places)]:
        for steps, (_, wave) in enumerate(_waves(grid, 1 << cell)):
            yield f"{kind}={steps}", wave.bit_count()


def _waves(grid: Grid, cells: int) -> Iterator[tuple[int, int]]:
    """From a set of cells (bits), yield what is reached after 0, 1, 2, … steps, and what of it is new."""
    width = grid.width
    floor = sum(1 << cell for cell, mark in enumerate("".join(grid.rows)) if mark == ".")
    seen = wave = cells
    while wave:
        yield seen, wave
        wave = (wave << 1 | wave >> 1 | wave << width | wave >> width) & floor & ~seen
        seen |= wave


def _leaves(world: World[Any]) -> Tokens:
    """What any layout says, whatever things are called: where each name stands, and what stands beside it."""
    roles = _roles(world)
    found: dict[str, list[str]] = {}
    records: list[list[tuple[str, str]]] = []
    stack: list[tuple[str, object]] = [("", world.to_data())]
    while stack:
        path, value = stack.pop()
        if isinstance(value, list | tuple):
            stack += [(path, inner) for inner in value]
        elif isinstance(value, Mapping):
            stack += [(f"{path}.{key}", inner) for key, inner in value.items()]
            records.append([(key, inner) for key, inner in value.items() if isinstance(inner, str)])
        else:
            found.setdefault(value if isinstance(value, str) else json.dumps(value), []).append(path)
    labels = {leaf: ",".join([roles.get(leaf, leaf), *sorted(paths)]) for leaf, paths in found.items()}
    for leaf, paths in found.items():
        for path in paths if leaf not in roles else [labels[leaf]]:
            yield f"{path}={roles.get(leaf, leaf)}", 0.25
    around: dict[str, list[str]] = {leaf: [] for leaf in roles}
    for record in records:
        beside = sorted(f"{key}={labels[leaf] if leaf in roles else leaf}" for key, leaf in record)
        yield ";".join(beside), 1.0
        for key, leaf in record:
            if leaf in roles:
                around[leaf].append(f"{key}:{beside}")
    for beside in around.values():
        yield ";".join(sorted(beside)), 1.0
