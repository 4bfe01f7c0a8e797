"""The application of a person who plays."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.screen import Screen

from clients.human import Sat, Seats
from clients.spectator.app import SpectatorApp
from clients.spectator.screens.dialogs import AskDialog
from clients.spectator.screens.seat import SeatScreen
from clients.spectator.screens.waiting import WaitingScreen
from games.errors import ArenaError


class PersonApp(SpectatorApp):
    """Seats a person.

    Args:
        seats: where the seats come from.
        count: how many there are, one after another; None where that is not known.
        settings_path: where theme, bell and the question before a move are remembered; None forgets them.
    """

    TITLE: ClassVar[str] = "arena join"  # type: ignore[misc]

    def __init__(self, seats: Seats, *, count: int | None = 1, settings_path: Path | None = None) -> None:
        self._waiting = WaitingScreen(seats, count=count)
        super().__init__({"seat": lambda: self._waiting}, settings_path=settings_path)

    @property
    def sat(self) -> list[Sat]:
        """The seats that were had."""
        return self._waiting.sat

    @property
    def error(self) -> ArenaError | None:
        """Why there were no more, where it went wrong."""
        return self._waiting.error

    async def action_quit(self) -> None:
        """Leave; at a table, ask first, for it forfeits the seat."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, AskDialog):
                return
            if isinstance(screen, SeatScreen):
                if screen.is_current:
                    screen.action_leave_seat()
                return
        self.exit()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Offer the person's settings beside the rest."""
        yield from super().get_system_commands(screen)
        confirm, bell = self.settings.confirm, self.settings.bell
        yield SystemCommand(
            "Send moves at once" if confirm else "Ask before each move",
            "Whether a move is asked about before it is sent",
            lambda: self.keep(confirm=not confirm),
        )
        yield SystemCommand(
            "No bell at my turn" if bell else "Ring the bell at my turn",
            "Whether the terminal rings when it is your turn",
            lambda: self.keep(bell=not bell),
        )
