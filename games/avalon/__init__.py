"""The Resistance: Avalon, 5 to 10 seats.

Source: Don Eskridge, "The Resistance: Avalon", rulebook (Indie Boards & Cards, 2012).
"""

from games.avalon.game import Avalon
from games.avalon.rules import AvalonOptions
from games.avalon.state import AvalonState
from games.avalon.view import AvalonView, Examination, Proposal, QuestResult, Speech

__all__ = [
    "Avalon",
    "AvalonOptions",
    "AvalonState",
    "AvalonView",
    "Examination",
    "Proposal",
    "QuestResult",
    "Speech",
]
