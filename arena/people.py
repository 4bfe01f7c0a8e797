"""People as players: `human` is no agent, so it stands beside those of `agents.players`, not among them."""

from agents.errors import BadPlayer
from agents.players import HUMAN, Player
from games.registry import game_names
from games.text import clean_name

TITLE = "a person at a terminal, with `arena join` or `arena play`"


def as_person(text: str) -> Player | None:
    """Return the person that `human` or `NAME=human` stands for, None for any other player. Raises `BadPlayer`."""
    name, equals, spec = text.partition("=")
    if (spec if equals else name).strip() != HUMAN:
        return None
    shown = clean_name(name)
    if not shown:
        raise BadPlayer(f"player name: got {name[:40]!r}, a name of 1 or more visible characters is needed")
    return Player(shown, HUMAN)


def games() -> list[str]:
    """Return the games that people play: all."""
    return game_names()
