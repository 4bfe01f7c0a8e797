"""How each game is drawn: one module per game, by name; the generic one where there is none."""

from functools import cache

from clients.spectator.panels.avalon import AvalonPanel
from clients.spectator.panels.base import GamePanel
from clients.spectator.panels.forge import ForgePanel
from clients.spectator.panels.generic import GenericPanel
from clients.spectator.panels.kuhn import KuhnPanel
from clients.spectator.panels.werewolf import WerewolfPanel

_PANELS: dict[str, type[GamePanel]] = {
    "avalon": AvalonPanel,
    "forge": ForgePanel,
    "kuhn": KuhnPanel,
    "werewolf": WerewolfPanel,
}


@cache
def panel_of(game: str) -> GamePanel:
    """Return the panel that draws `game`."""
    return _PANELS.get(game, GenericPanel)()
