"""Between matches: what a person waits for, and since when in vain."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from clients.human import Sat, Seats
from clients.match import Match
from clients.spectator.drawing import Line, wrap
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.seat import SeatScreen
from clients.spectator.widgets.heading import Heading
from clients.spectator.widgets.lines import Lines
from clients.spectator.widgets.table import clock
from games.errors import ArenaError
from games.text import neutralise

NEXT = "Your next match has begun, and its clock runs: q goes there."


class WaitingScreen(Screen[None]):
    """Waits for seats, and shows each match as it comes.

    Args:
        seats: where they come from.
        count: how many there are, one after another; None where that is not known.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Keys"),
    ]

    def __init__(self, seats: Seats, *, count: int | None = 1) -> None:
        super().__init__()
        self.seats = seats
        self.sat: list[Sat] = []
        """The seats that were had so far."""
        self.error: ArenaError | None = None
        """Why there are no more, where it went wrong."""
        self._count = count
        self._since = 0.0
        self._seat: SeatScreen | None = None

    def compose(self) -> ComposeResult:
        yield Heading("Waiting for a seat")
        yield Place()
        yield Footer()

    def on_mount(self) -> None:
        """Begin to ask."""
        self.seats.on_change = self.changed
        self.set_interval(1.0, self._tick)
        self.run_worker(self._run(), name="seats")

    def changed(self) -> None:
        """Show what is being waited for now, or what is wrong."""
        self._since = asyncio.get_running_loop().time()
        self._tick()

    def _tick(self) -> None:
        if not self.query(Place):
            return
        if self._seat is not None:
            next_up = NEXT if self.seats.ready and self._seat.ended else ""
            self._seat.connection(self.seats.trouble or next_up)
        starts = self.seats.starts_in_s
        if starts is not None:
            starts = max(starts - (asyncio.get_running_loop().time() - self._since), 0.0)
        place = self.query_one(Place)
        place.waits = self.error is None
        place.show(self.seats.state, self.seats.trouble, starts)

    async def _run(self) -> None:
        try:
            async with aclosing(self.seats.matches()) as matches:  # type: ignore[type-var]
                async for match in matches:
                    await self._play(match)
        except ArenaError as error:
            self._none(error)
            return
        except Exception as error:
            # A game's own code may raise anything; it costs this seat, and is said in a line.
            self._none(ArenaError(neutralise(f"{type(error).__name__}: {error}")[:300]))
            return
        self.app.exit()

    def _none(self, error: ArenaError) -> None:
        self.error = error
        self.seats.trouble = str(error)
        self.seats.tell("There is no seat to be had.")

    async def _play(self, match: Match) -> None:
        screen = SeatScreen(match, last=self._count is not None and len(self.sat) + 1 >= self._count)
        self.sat.append(screen.sat)
        self._seat = screen
        try:
            await self.app.push_screen(screen, wait_for_dismiss=True)
        finally:
            self._seat = None

    def action_help(self) -> None:
        """Show the keys."""
        keys = [("ctrl+p", "All commands"), ("q", "Give the waiting place up and leave")]
        self.app.push_screen(HelpScreen("Keys", keys, ()))

    def commands(self) -> Iterator[SystemCommand]:
        """Yield what the command palette offers here."""
        yield SystemCommand("Help", "Keys", self.action_help)


class Place(Lines):
    """What is waited for."""

    DEFAULT_CSS = """
    Place {
        height: 1fr;
        padding: 2 4;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits = True
        """Whether there is still something to come."""
        self._told: tuple[str, str, float | None] = ("", "", None)

    def show(self, state: str, trouble: str, starts_in_s: float | None) -> None:
        """Say something else."""
        self._told = (state, trouble, starts_in_s)
        self.refresh()

    def draw(self, width: int) -> list[Line]:
        state, trouble, starts = self._told
        lines: list[Line] = [[(part, "text bold")] for part in wrap(state, width)]
        if starts is not None:
            lines.append([("Bots take the free places in ", "dim"), (clock(starts), "accent bold")])
        if trouble:
            lines += [[], *([(part, "warn bold")] for part in wrap(neutralise(trouble), width))]
        if self.waits:
            lines += [[], [("The match begins here by itself. q gives the place up.", "dim")]]
        else:
            lines += [[], [("q leaves.", "dim")]]
        return lines
