"""Werewolf, 5 to 12 seats: `Werewolf` is the game; roles, options, view and state have a module each."""

from games.werewolf.game import Werewolf
from games.werewolf.setup import ROLES, WerewolfOptions, role_mix
from games.werewolf.state import WerewolfState
from games.werewolf.view import WerewolfView

__all__ = ["ROLES", "Werewolf", "WerewolfOptions", "WerewolfState", "WerewolfView", "role_mix"]
