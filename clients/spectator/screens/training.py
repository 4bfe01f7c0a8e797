"""A run of training, watched while it goes on: what it measures, as numbers and as curves, and what is wrong."""

from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static

from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.training import Training, read_training, spark
from games.text import clean_name

POLL_S = 2.0
"""Seconds between two looks."""
CELLS = 40
"""Of a curve."""
SHOWN_ALARMS = 3


class TrainingScreen(Screen[None]):
    """Shows the run in `folder`, and looks again every `poll_s` seconds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "reload", "Look now", tooltip="Read the metrics now"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="Keys"),
    ]

    def __init__(self, folder: Path, *, poll_s: float = POLL_S) -> None:
        super().__init__()
        self.folder = folder
        self._poll_s = poll_s
        self._rows: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Static("", id="banner", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Look, and go on looking."""
        table = self._table
        for name, key in (("Figure", "name"), ("Latest", "latest"), ("Curve", "curve")):
            table.add_column(name, key=key)
        table.focus()
        self.action_reload()
        self.set_interval(self._poll_s, self.action_reload)

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    def action_reload(self) -> None:
        """Read the metrics again."""
        self.run_worker(self._look, name="look", thread=True, exclusive=True)

    def _look(self) -> None:
        found = read_training(self.folder)
        self.app.call_from_thread(self._show, found)

    def _show(self, found: Training) -> None:
        self.query_one("#title", Static).update(f" {clean_name(found.head())}")
        figures = found.figures()
        names = [figure.name for figure in figures]
        table = self._table
        if names != self._rows:  # else the cursor stays where it is
            table.clear()
            for name in names:
                table.add_row(Text(clean_name(name)), Text(""), Text(""), key=name)
            self._rows = names
        for figure in figures:
            table.update_cell(figure.name, "latest", Text(f"{figure.latest:,.4g}", justify="right"))
            table.update_cell(
                figure.name, "curve", Text(spark(figure.values, cells=CELLS)), update_width=True
            )
        told = [f"Update {one.get('update')}: {one.get('text')}" for one in found.alarms[-SHOWN_ALARMS:]]
        if not figures:
            told.append("Nothing was measured yet.")
        banner = self.query_one("#banner", Static)
        banner.display = bool(told)
        banner.update("\n".join(map(clean_name, told)))

    def action_help(self) -> None:
        """Show the keys."""
        keys = [
            (b.key_display or b.key, b.tooltip) for b in self.BINDINGS if isinstance(b, Binding) and b.tooltip
        ]
        self.app.push_screen(HelpScreen("Keys", [*keys, ("q", "Quit")], ()))

    def commands(self) -> Any:
        """Yield what the command palette offers here."""
        for binding in self.BINDINGS:
            if isinstance(binding, Binding) and binding.tooltip:
                action: Any = getattr(self, f"action_{binding.action}")
                yield SystemCommand(binding.description, binding.tooltip, action)
