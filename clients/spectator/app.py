"""The spectator as a Textual application: modes, themes, the command palette."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from clients.spectator.settings import load_settings, save_settings


class SpectatorApp(App[None]):
    """Shows one of its modes; each is a stack of screens of its own.

    Args:
        modes: by name what makes a mode's first screen; the first named is shown first.
        settings_path: where the theme is remembered; None forgets it.
    """

    TITLE = "arena watch"
    CSS_PATH = "spectator.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "quit", "Quit", tooltip="Leave")]

    def __init__(
        self, modes: Mapping[str, Callable[[], Screen[Any]]], *, settings_path: Path | None = None
    ) -> None:
        super().__init__()
        self._settings_path = settings_path
        self._first = next(iter(modes))
        for name, screen in modes.items():
            self.add_mode(name, screen)
        self._names = tuple(modes)
        self.settings = load_settings(settings_path)
        if self.settings.theme in self.available_themes:
            self.theme = self.settings.theme

    async def on_mount(self) -> None:
        """Show the first mode; remember the theme from here on."""
        await self.switch_mode(self._first)
        self.theme_changed_signal.subscribe(self, self._remember)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Offer the screen's own commands first."""
        commands = getattr(screen, "commands", None)
        if commands is not None:
            yield from commands()
        for name in self._names:
            if name != self.current_mode:
                yield SystemCommand(f"Go to {name}", "Another mode", partial(self.switch_mode, name))
        yield from super().get_system_commands(screen)

    def keep(self, **changes: Any) -> None:
        """Change settings and remember them."""
        self.settings = replace(self.settings, **changes)
        if not save_settings(self._settings_path, self.settings):
            self.notify(f"The settings could not be kept in {self._settings_path}.", markup=False)

    def _remember(self, _theme: object) -> None:
        self.keep(theme=self.theme)
