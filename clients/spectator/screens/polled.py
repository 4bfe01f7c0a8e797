"""What the server's screens share: they ask for facts again and again, and say when there are none."""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.screen import Screen
from textual.widgets import DataTable, Static

from clients.spectator.drawing import Line
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.widgets.lines import palette_of
from games.errors import ArenaError, UnknownGame
from games.registry import load_game
from games.text import clean_name

T = TypeVar("T")

POLL_S = 2.0
"""Seconds between two questions while the screen is looked at."""
LONGEST_WAIT_S = 30.0
"""Seconds between two questions at most, while there is no answer; each wait is twice the one before."""
WIDE = 100
"""Columns from which on tables have all their columns."""


class PolledScreen(Screen[None], Generic[T]):
    """A screen that shows what `fetch` returns, as long as it is looked at.

    Args:
        poll_s: seconds between two questions.
    """

    asking: ClassVar[str] = "Asking the server …"
    """Said until there is a first answer."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "reload", "Ask now", tooltip="Ask the server now"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Keys"),
    ]

    def __init__(self, *, poll_s: float = POLL_S) -> None:
        super().__init__()
        self.told: T | None = None
        """What was told last."""
        self.failures = 0
        """How many questions in a row had no answer."""
        self._poll_s = poll_s
        self._wake = asyncio.Event()

    async def fetch(self) -> T:
        """Return what is to be shown. Raises `ArenaError`."""
        raise NotImplementedError

    def show(self, told: T) -> None:
        """Show it."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Begin to ask."""
        self.say(self.asking)
        self.run_worker(self._poll(), name="poll")

    def on_screen_resume(self) -> None:
        """Ask at once when the screen is looked at again."""
        self._wake.set()

    def on_resize(self) -> None:
        """Fit the tables to the new size."""
        self.redraw()

    def redraw(self) -> None:
        """Show what was told last once more."""
        if self.told is not None and self.is_mounted:
            self.show(self.told)

    def action_reload(self) -> None:
        """Ask now."""
        self._wake.set()

    def say(self, text: str) -> None:
        """Show a line above the footer; empty for none."""
        for banner in self.query("#banner").results(Static):  # there is none while the screen is taken down
            banner.display = bool(text)
            banner.update(text)

    async def _poll(self) -> None:
        while True:
            self._wake.clear()
            wait_s: float | None = None
            if self.is_current:
                wait_s = await self._ask()
            try:
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _ask(self) -> float:
        """Ask once, show what came of it, and return the seconds until it is to be asked again."""
        try:
            told = await self.fetch()
        except ArenaError as error:
            self.failures += 1
            wait_s: float = min(self._poll_s * 2**self.failures, LONGEST_WAIT_S)
            kept = " What is shown was told before." if self.told is not None else ""
            self.say(f"{error}. Trying again in {wait_s:.0f} s, r tries now.{kept}")
            return wait_s
        self.failures = 0
        self.told = told
        if self.query("#banner"):
            self.say("")
            self.show(told)
        return self._poll_s

    def action_help(self) -> None:
        """Show the keys."""
        keys = [(key(binding), binding.tooltip) for binding in self.own_bindings()]
        more = [("↑ ↓", "Choose"), ("tab", "To the next table"), ("ctrl+p", "All commands"), ("q", "Quit")]
        modes = [(binding.key, binding.tooltip) for binding in getattr(self.app, "mode_bindings", ())]
        self.app.push_screen(HelpScreen("Keys", [*keys, *modes, *more], ()))

    def own_bindings(self) -> Iterator[Binding]:
        """Yield the bindings that are to be explained."""
        told: set[str] = set()
        for kind in type(self).__mro__:
            for binding in vars(kind).get("BINDINGS", ()) if issubclass(kind, PolledScreen) else ():
                if isinstance(binding, Binding) and binding.tooltip and binding.key not in told:
                    told.add(binding.key)
                    yield binding

    def commands(self) -> Iterator[SystemCommand]:
        """Yield what the command palette offers here."""
        for binding in self.own_bindings():
            action: Any = partial(self.run_action, binding.action)
            yield SystemCommand(binding.description, binding.tooltip, action)

    def text(self, line: Line) -> Text:
        """Return a line as a cell of a table."""
        palette = palette_of(self)
        made = Text(no_wrap=True, end="")
        for span, words in line:
            made.append(span, style=palette.style(words) if words else "")
        return made


def key(binding: Binding) -> str:
    """Return a binding's key as it is shown."""
    return binding.key_display or binding.key.split(",")[0]


def fill(
    table: "DataTable[Text]", columns: Sequence[str], rows: Sequence[tuple[str, Sequence[Text]]]
) -> None:
    """Show rows, each with its key, and keep the cursor on the row that it was on."""
    here = key_of(table)
    where, offset = table.cursor_row, table.scroll_offset
    table.clear(columns=True)
    for at, column in enumerate(columns):
        table.add_column(column, width=max([cell_len(column), *(cells[at].cell_len for _, cells in rows)]))
    for name, cells in rows:
        table.add_row(*cells, key=name)
    places = {name: place for place, (name, _) in enumerate(rows)}
    if rows:
        table.move_cursor(row=places.get(here, min(where, len(rows) - 1)), animate=False, scroll=False)
        table.scroll_to(y=offset.y, animate=False, immediate=True)


def key_of(table: "DataTable[Text]") -> str:
    """Return the key of the row that the cursor is on, empty where there is none."""
    if not 0 <= table.cursor_row < table.row_count:
        return ""
    return str(table.coordinate_to_cell_key(Coordinate(table.cursor_row, 0)).row_key.value)


def title_of(game: str) -> str:
    """Return a game's title, or its name where it is not installed."""
    try:
        return load_game(game).title
    except UnknownGame:
        return clean_name(game)


def names_of(names: object, *, cells: int) -> str:
    """Return players' names in so many cells, those alike counted."""
    found = [clean_name(str(name)) for name in names] if isinstance(names, list) else []
    parts = [
        name if found.count(name) == 1 else f"{name} ×{found.count(name)}" for name in dict.fromkeys(found)
    ]
    shown: list[str] = []
    for index, part in enumerate(parts):
        left = len(parts) - index - 1
        tail = f" +{left}" if left else ""
        if shown and len(", ".join([*shown, part])) + len(tail) > cells:
            return f"{', '.join(shown)} +{left + 1}"
        shown.append(part)
    text = ", ".join(shown)
    return text if len(text) <= cells else text[: max(cells - 1, 0)] + "…"
