"""The JSON schema of a task, for a model that writes one: what a grammar can hold of `games.tasks.spec`.

It bounds the form. What a schema cannot say, such as that names in the goal are in the layout or that the task can be
solved, `TaskSpec` and the solver check.
"""

from typing import Any

from games.tasks.grid_layout import COLORS, MAX_SIDE, MIN_SIDE
from games.tasks.spec import MAX_BUDGET, TASK_VERSION

MAX_PARTS = 4
"""Parts of an `and` or a `then` that a model may write."""
MAX_THINGS = 24
_NAME = {"type": "string", "maxLength": 40}


def task_schema(world: str) -> dict[str, Any]:
    """Return the schema of a task of `grid` or `text`, without references."""
    return _object(
        {
            "version": {"const": TASK_VERSION},
            "world": {"const": world},
            "layout": _text_layout() if world == "text" else _grid_layout(),
            "goal": _goal(),
            "budget": {"type": "integer", "minimum": 1, "maximum": MAX_BUDGET},
        }
    )


def _object(fields: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    needed = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": needed, "additionalProperties": False}


def _list(item: Any, *, least: int = 0, most: int) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": least, "maxItems": most}


def _grid_layout() -> dict[str, Any]:
    cell = _list({"type": "integer", "minimum": 0, "maximum": MAX_SIDE - 1}, least=2, most=2)
    color = {"enum": list(COLORS)}
    things = [
        _object({"kind": {"enum": ["key", "door", "box", "gem", "pad"]}, "color": color, "at": cell}),
        _object({"kind": {"enum": ["key", "gem"]}, "color": color, "in": _NAME}),
        _object({"kind": {"const": "exit"}, "at": cell}),
        _object({"kind": {"const": "patrol"}, "path": _list(cell, least=2, most=16)}),
    ]
    row = {"type": "string", "pattern": f"^[#.]{{{MIN_SIDE},{MAX_SIDE}}}$"}
    return _object(
        {
            "rows": _list(row, least=MIN_SIDE, most=MAX_SIDE),
            "start": cell,
            "things": _list({"anyOf": things}, most=MAX_THINGS),
        }
    )


def _text_layout() -> dict[str, Any]:
    ways = {"enum": ["north", "east", "up", "south", "west", "down"]}
    kinds = {"enum": ["container", "surface", "key", "item"]}
    way = _object(
        {"from": _NAME, "go": ways, "to": _NAME, "door": _NAME, "key": _NAME}, optional=("door", "key")
    )
    thing = _object({"kind": kinds, "name": _NAME, "in": _NAME, "key": _NAME}, optional=("key",))
    recipe = _object({"makes": _NAME, "of": _list(_NAME, least=1, most=4), "on": _NAME})
    return _object(
        {
            "rooms": _list(_NAME, least=1, most=12),
            "start": _NAME,
            "ways": _list(way, most=24),
            "things": _list(thing, most=MAX_THINGS),
            "recipes": _list(recipe, most=2),
        },
        optional=("recipes",),
    )


def _goal() -> dict[str, Any]:
    facts = [_object({head: _NAME}) for head in ("at", "has", "opened", "visited")]
    facts.append(_object({"delivered": _list(_NAME, least=2, most=2)}))
    fact = {"anyOf": facts}
    parts = [*facts, _object({"before": _list(fact, least=2, most=2)})]
    never = _object({"never": fact})
    together = _object({"and": _list({"anyOf": [*parts, never]}, least=2, most=MAX_PARTS)})
    row = _object({"then": _list({"anyOf": [*facts, together]}, least=2, most=MAX_PARTS)})
    guarded = _object({"and": _list({"anyOf": [row, *parts, never]}, least=2, most=MAX_PARTS)})
    return {"anyOf": [*parts, row, guarded]}
