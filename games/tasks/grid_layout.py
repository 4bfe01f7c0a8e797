"""Reading a grid's layout: data in, checked parts out, every refusal one line that says what and where.

`games.tasks.grid` says what a layout looks like and what it means.
"""

from collections.abc import Mapping
from math import lcm
from typing import Any, NamedTuple

from games.errors import BadLayout, TaskTooBig
from games.tasks.goals import short

MIN_SIDE, MAX_SIDE = 6, 16
MAX_THINGS = 40
MAX_PATH = 16
MAX_PERIOD = 240
COLORS = ("red", "green", "blue", "yellow", "purple", "orange", "white", "grey")
KINDS = ("key", "door", "box", "gem", "pad", "exit", "patrol")


class Thing(NamedTuple):
    """A thing of the layout. `cell` is where it starts (its box's cell if it lies in a box `inside`)."""

    kind: str
    color: str
    cell: int
    inside: str | None = None

    @property
    def name(self) -> str:
        """The name that goals use."""
        return f"{self.color} {self.kind}" if self.color else self.kind


Path = tuple[int, ...]


def parse_layout(layout: object) -> tuple[list[str], int, list[Thing], list[Path]]:
    """Return rows, the start's cell, the things and the patrols' paths. Raises `BadLayout` or `TaskTooBig`."""
    data = _object(layout, "layout", {"rows", "start", "things"})
    rows = _read_rows(data.get("rows"))
    things, paths = _read_things(data.get("things"), rows)
    start = _read_cell(data.get("start"), rows, "layout start")
    if any(thing.kind == "door" and thing.cell == start for thing in things):
        raise BadLayout("layout start: a door stands there")
    tracks = [track(path, len(rows[0])) for path in paths]
    period = lcm(*(len(cells) for cells in tracks))
    if period > MAX_PERIOD:
        raise TaskTooBig(
            f"layout: the patrols are back together after {period} steps, allowed are {MAX_PERIOD}"
        )
    if any(cells[0] == start for cells in tracks):
        raise BadLayout("layout start: a patrol stands there")
    return rows, start, things, paths


def track(path: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Return the cells of one round of a patrol: the path, and the way back where it does not close."""
    if len(path) > 2 and beside(path[-1], path[0], width):
        return path
    return path + path[-2:0:-1]


def beside(a: int, b: int, width: int) -> bool:
    """Whether two cells share a side."""
    (ay, ax), (by, bx) = divmod(a, width), divmod(b, width)
    return abs(ax - bx) + abs(ay - by) == 1


def _object(value: object, where: str, allowed: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadLayout(f"{where}: got {short(value)}, an object is needed")
    extra = sorted(str(key) for key in value if key not in allowed)
    if extra:
        raise BadLayout(f"{where}: got the field {short(extra[0])}, allowed are {', '.join(sorted(allowed))}")
    return value


def _read_rows(rows: object) -> list[str]:
    if not isinstance(rows, list) or not MIN_SIDE <= len(rows) <= MAX_SIDE:
        raise BadLayout(
            f"layout rows: got {short(rows)}, a list of {MIN_SIDE} to {MAX_SIDE} strings is needed"
        )
    for y, row in enumerate(rows):
        if not isinstance(row, str) or not MIN_SIDE <= len(row) <= MAX_SIDE or set(row) - {"#", "."}:
            raise BadLayout(
                f"layout rows[{y}]: got {short(row)}, {MIN_SIDE} to {MAX_SIDE} characters # or . are needed"
            )
        if len(row) != len(rows[0]):
            raise BadLayout(f"layout rows[{y}]: {len(row)} characters long, the first row has {len(rows[0])}")
        if row[0] != "#" or row[-1] != "#" or (y in (0, len(rows) - 1) and "." in row):
            raise BadLayout(f"layout rows[{y}]: got {row!r}, the edge must be all #")
    return rows


def _read_cell(value: object, rows: list[str], where: str) -> int:
    if (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or not all(type(part) is int for part in value)
        or not (0 <= value[0] < len(rows[0]) and 0 <= value[1] < len(rows))
    ):
        raise BadLayout(f"{where}: got {_pair(value)}, [x, y] inside {len(rows[0])} x {len(rows)} is needed")
    x, y = value
    if rows[y][x] == "#":
        raise BadLayout(f"{where}: got [{x}, {y}], a wall is there")
    return int(y * len(rows[0]) + x)


def _pair(value: object) -> str:
    if isinstance(value, list | tuple) and len(value) == 2 and all(type(part) is int for part in value):
        return f"[{short(value[0])}, {short(value[1])}]"
    return short(value)


def _read_things(value: object, rows: list[str]) -> tuple[list[Thing], list[Path]]:
    if not isinstance(value, list):
        raise BadLayout(f"layout things: got {short(value)}, a list is needed")
    if len(value) > MAX_THINGS:
        raise TaskTooBig(f"layout things: got {len(value)} of them, at most {MAX_THINGS} are allowed")
    things: dict[str, Thing] = {}
    paths: list[Path] = []
    held: list[tuple[str, Thing]] = []
    for i, item in enumerate(value):
        where = f"layout things[{i}]"
        data = _object(item, where, {"kind", "color", "at", "in", "path"})
        kind = data.get("kind")
        if kind not in KINDS:
            raise BadLayout(f"{where} kind: got {short(kind)}, allowed are {', '.join(KINDS)}")
        if kind == "patrol":
            _only(data, where, {"kind", "path"})
            paths.append(_read_path(data["path"], rows, where))
            continue
        thing = _read_thing(kind, data, rows, where)
        if thing.name in things:
            raise BadLayout(f"{where}: got a second {thing.name}, each name may come once")
        things[thing.name] = thing
        if thing.inside is not None:
            held.append((where, thing))
    for where, thing in held:
        box = things.get(str(thing.inside))
        if box is None or box.kind != "box":
            raise BadLayout(f"{where} in: got {short(thing.inside)}, there is no such box")
        things[thing.name] = thing._replace(cell=box.cell)
    _check_cells(things, paths, rows)
    return list(things.values()), paths


def _only(data: Mapping[str, Any], where: str, needed: set[str]) -> None:
    if data.keys() != needed:
        raise BadLayout(
            f"{where}: got the fields {', '.join(sorted(data))}; needed are {', '.join(sorted(needed))}"
        )


def _read_thing(kind: str, data: Mapping[str, Any], rows: list[str], where: str) -> Thing:
    if kind == "exit":
        _only(data, where, {"kind", "at"})
        return Thing(kind, "", _read_cell(data["at"], rows, f"{where} at"))
    inside = kind in ("key", "gem") and "in" in data
    _only(data, where, {"kind", "color", "in" if inside else "at"})
    color = data["color"]
    if color not in COLORS:
        raise BadLayout(f"{where} color: got {short(color)}, allowed are {', '.join(COLORS)}")
    if inside:
        if not isinstance(data["in"], str):
            raise BadLayout(f"{where} in: got {short(data['in'])}, the name of a box is needed")
        return Thing(kind, color, 0, data["in"])
    return Thing(kind, color, _read_cell(data["at"], rows, f"{where} at"))


def _read_path(value: object, rows: list[str], where: str) -> Path:
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_PATH:
        raise BadLayout(f"{where} path: got {short(value)}, a list of 2 to {MAX_PATH} cells is needed")
    path = tuple([_read_cell(item, rows, f"{where} path[{i}]") for i, item in enumerate(value)])
    width = len(rows[0])
    for i in range(1, len(path)):
        if not beside(path[i - 1], path[i], width):
            raise BadLayout(f"{where} path[{i}]: not beside the cell before it")
    if len(set(path)) != len(path):
        raise BadLayout(f"{where} path: goes through a cell twice")
    return path


def _check_cells(things: Mapping[str, Thing], paths: list[Path], rows: list[str]) -> None:
    taken: dict[int, str] = {}
    holders: dict[str, str] = {}
    for thing in things.values():
        owner = holders.setdefault(thing.inside, thing.name) if thing.inside else None
        if owner not in (None, thing.name):
            raise BadLayout(f"layout: the {owner} and the {thing.name} are in one box, a box holds one thing")
        if thing.inside is None and taken.setdefault(thing.cell, thing.name) != thing.name:
            raise BadLayout(f"layout: the {taken[thing.cell]} and the {thing.name} are in one cell")
    doors = {thing.cell for thing in things.values() if thing.kind == "door"}
    for path in paths:
        if doors.intersection(path):
            raise BadLayout("layout: a patrol's path goes through a door")
    if len(set(paths)) != len(paths):
        raise BadLayout("layout: two patrols have the same path")
