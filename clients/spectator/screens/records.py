"""The records in a directory: what was played, by whom, and how it ended."""

from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static
from textual.worker import get_current_worker

from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.match import MatchScreen
from clients.spectator.source import RecordSource
from games.base import Event
from games.errors import ArenaError
from games.text import clean_name
from replays.reader import read_record
from replays.record import SUFFIX, Record
from replays.visitors import PUBLIC, Perspective

MAX_PLAYERS_SHOWN = 4


def records_in(folder: Path) -> list[Path]:
    """Return the records in a folder and those below it, by path."""
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.is_file())


def summary(record: Record) -> tuple[str, str, str, str]:
    """Return game, players, outcome and number of events of a record, for people."""
    names = [clean_name(seat.name) for seat in record.header.seats]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    players = [name if count == 1 else f"{name} ×{count}" for name, count in counts.items()]
    if len(players) > MAX_PLAYERS_SHOWN:
        players[MAX_PLAYERS_SHOWN:] = [f"and {len(players) - MAX_PLAYERS_SHOWN} more"]
    if record.footer is None:
        outcome = "damaged" if record.damage and not record.damage.truncated else "no end yet"
    else:
        ended = record.footer.outcome
        winners = dict.fromkeys(t for t, value in zip(ended.teams, ended.returns, strict=False) if value > 0)
        outcome = f"{', '.join(map(clean_name, winners)) or 'drawn'} ({clean_name(ended.reason)})"
    events = sum(1 for entry in record.entries if isinstance(entry, Event))
    return clean_name(record.header.game), ", ".join(players), outcome, str(events)


class RecordsScreen(Screen[None]):
    """Lists the records in `folder`; enter opens one.

    Args:
        folder: is searched with what lies below it.
        perspective: through whose eyes a record is opened.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", priority=True, tooltip="Watch the chosen record"),
        Binding("r", "reload", "Read again", tooltip="Look for records again"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Keys"),
    ]

    def __init__(self, folder: Path, *, perspective: Perspective = PUBLIC) -> None:
        super().__init__()
        self.folder = folder
        self._perspective = perspective
        self._paths: list[Path] = []

    def compose(self) -> ComposeResult:
        yield Static(f" Records in {clean_name(str(self.folder))}", id="title", markup=False)
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Static("", id="banner", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """List the records."""
        table = self._table
        for name, key in (
            ("Record", "file"),
            ("Game", "game"),
            ("Players", "players"),
            ("Outcome", "outcome"),
        ):
            table.add_column(name, key=key)
        table.add_column("Events", key="events")
        table.focus()
        self.action_reload()

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    def action_reload(self) -> None:
        """Look for the records again."""
        self._table.clear()
        self._paths = []
        self.query_one("#banner", Static).display = False
        self.run_worker(self._list, name="list", thread=True, exclusive=True)

    def _list(self) -> None:
        worker = get_current_worker()
        found = records_in(self.folder)
        for path in found:
            if worker.is_cancelled:
                return
            try:
                game, players, outcome, events = summary(read_record(path))
            except ArenaError:
                game, players, outcome, events = "?", "", "not readable", ""
            self.app.call_from_thread(self._add, path, (game, players, outcome, events))
        if not found:
            self.app.call_from_thread(self._say, f"No record here; their names end in {SUFFIX}.")

    def _add(self, path: Path, cells: tuple[str, str, str, str]) -> None:
        name = clean_name(str(path.relative_to(self.folder)))
        self._paths.append(path)
        game, players, outcome, events = map(Text, cells)
        events.justify = "right"
        self._table.add_row(Text(name), game, players, outcome, events)

    def _say(self, text: str) -> None:
        banner = self.query_one("#banner", Static)
        banner.display = True
        banner.update(text)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Watch the record of the row."""
        self._open(event.cursor_row)

    def action_open(self) -> None:
        """Watch the chosen record."""
        self._open(self._table.cursor_row)

    def _open(self, row: int) -> None:
        if 0 <= row < len(self._paths):
            self.app.push_screen(MatchScreen(RecordSource(self._paths[row], perspective=self._perspective)))

    def action_help(self) -> None:
        """Show the keys."""
        keys = [
            (b.key_display or b.key, b.tooltip) for b in self.BINDINGS if isinstance(b, Binding) and b.tooltip
        ]
        modes = [(b.key, b.tooltip) for b in getattr(self.app, "mode_bindings", ())]
        self.app.push_screen(HelpScreen("Keys", [*keys, *modes, ("↑ ↓", "Choose"), ("q", "Quit")], ()))

    def commands(self) -> Any:
        """Yield what the command palette offers here."""
        for binding in self.BINDINGS:
            if isinstance(binding, Binding) and binding.tooltip:
                action: Any = getattr(self, f"action_{binding.action}")
                yield SystemCommand(binding.description, binding.tooltip, action)
