"""The application that shows a home directory: its records, its ratings, its runs of `arena evolve`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textual.binding import Binding
from textual.screen import Screen

from clients.spectator.app import SpectatorApp


class HomeApp(SpectatorApp):
    """Shows a directory.

    Args:
        modes: as of `SpectatorApp`; with more than one of them the digits go from mode to mode.
        first: the one that is shown first.
        settings_path: where the theme is remembered; None forgets it.
    """

    def __init__(
        self,
        modes: Mapping[str, Callable[[], Screen[Any]]],
        *,
        first: str,
        settings_path: Path | None = None,
    ) -> None:
        super().__init__({first: modes[first], **modes}, settings_path=settings_path)
        self.mode_bindings = tuple(
            Binding(str(place), f"mode({mode!r})", mode.capitalize(), tooltip=f"To the {mode}")
            for place, mode in enumerate(modes if len(modes) > 1 else (), start=1)
        )
        for binding in self.mode_bindings:
            self.bind(binding.key, binding.action, description=binding.description)

    async def action_mode(self, mode: str) -> None:
        """Go to a mode."""
        await self.switch_mode(mode)
