"""The worlds that a task may be set in, by name."""

from typing import Any

from games.errors import BadTask
from games.tasks.goals import short
from games.tasks.grid import Grid
from games.tasks.text import TextWorld
from games.tasks.world import World

WORLDS: dict[str, type[World[Any]]] = {Grid.name: Grid, TextWorld.name: TextWorld}


def world_type(name: object) -> type[World[Any]]:
    """Return the class of the world called `name`. Raises `BadTask` with those that exist."""
    if not isinstance(name, str) or name not in WORLDS:
        raise BadTask(f"task world: got {short(name)}, allowed are {', '.join(sorted(WORLDS))}")
    return WORLDS[name]
