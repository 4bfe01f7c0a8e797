"""The games by name: ours, and those that other distributions register under `evoke_arena.games`."""

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from games.base import Game
from games.errors import UnknownGame

ENTRY_POINT_GROUP = "evoke_arena.games"

_OURS = {
    "avalon": "games.avalon:Avalon",
    "forge": "games.tasks.forge:Forge",
    "kuhn": "games.kuhn:Kuhn",
    "werewolf": "games.werewolf:Werewolf",
}


@cache
def load_game(name: str) -> Game:
    """Return the game called `name`. Raises `UnknownGame` with the names there are."""
    if name in _OURS:
        module, _, attribute = _OURS[name].partition(":")
        game: Game = getattr(import_module(module), attribute)()
        return game
    for entry in _foreign():
        if entry.name == name:
            game = entry.load()()
            return game
    raise UnknownGame(f"game: got {name[:80]!r}, known are {', '.join(game_names())}")


def game_names() -> list[str]:
    """Return the names of all games, ours first; a foreign game cannot take the name of one of ours."""
    foreign = sorted({entry.name for entry in _foreign()} - _OURS.keys())
    return [*_OURS, *foreign]


@cache
def _foreign() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINT_GROUP))
