"""The application that watches a server: its lobby, its ratings, its tournaments, and any match of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from clients.spectator.app import SpectatorApp
from clients.spectator.live import LiveSource
from clients.spectator.rest import Facts, RestClient
from clients.spectator.screens.lobby import LobbyScreen
from clients.spectator.screens.match import MatchScreen
from clients.spectator.screens.polled import POLL_S
from clients.spectator.screens.ratings import RATINGS_POLL_S, RatingsScreen
from clients.spectator.screens.tournaments import TournamentScreen
from clients.spectator.source import EventSource
from replays.visitors import PUBLIC, Perspective

MODES = ("lobby", "ratings", "tournament")
MODE_BINDINGS = tuple(
    Binding(
        key,
        f"mode({mode!r})",
        mode.capitalize(),
        tooltip=f"To the {mode}{'s' if mode == 'tournament' else ''}",
    )
    for key, mode in zip("123", MODES, strict=True)
)


class ServerApp(SpectatorApp):
    """Watches a server.

    Args:
        url: of the server's websocket side.
        token: shown to the server; empty shows none.
        facts: where lists come from; None asks the server.
        match: shown first, if it is given.
        show: the mode that is shown first without one.
        perspective: through whose eyes matches are opened.
        settings_path: where the theme is remembered; None forgets it.
        poll_s: seconds between two questions; None takes each screen's own.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*MODE_BINDINGS]
    mode_bindings = MODE_BINDINGS

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        facts: Facts | None = None,
        http: str = "",
        match: str | None = None,
        show: str = "lobby",
        perspective: Perspective = PUBLIC,
        settings_path: Path | None = None,
        poll_s: float | None = None,
    ) -> None:
        self._facts = facts = RestClient(url, token=token, http=http) if facts is None else facts
        quick, slow = (POLL_S, RATINGS_POLL_S) if poll_s is None else (poll_s, poll_s)

        def source(name: str) -> EventSource:
            return LiveSource(url, match=name, token=token, perspective=perspective)

        def join(game: str) -> str:
            return f"take a seat with `arena join {url} --player human --game {game}`"

        screens: Mapping[str, Callable[[], Screen[Any]]] = {
            "lobby": lambda: LobbyScreen(facts, source=source, join=join, poll_s=quick),
            "ratings": lambda: RatingsScreen(facts, poll_s=slow),
            "tournament": lambda: TournamentScreen(facts, source=source, poll_s=quick),
        }
        modes: dict[str, Callable[[], Screen[Any]]] = {show: screens[show], **screens}
        if match is not None:
            modes = {"match": lambda: MatchScreen(source(match)), **screens}
        super().__init__(modes, settings_path=settings_path)

    async def action_mode(self, mode: str) -> None:
        """Go to a mode."""
        await self.switch_mode(mode)

    async def on_unmount(self) -> None:
        """Let go of the connection."""
        await self._facts.close()
