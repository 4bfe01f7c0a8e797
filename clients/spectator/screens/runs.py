"""The runs of `arena evolve` in a home: how far each has come. Enter follows one."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer

from clients.spectator.drawing import Line
from clients.spectator.runs import RunFolder, RunRow
from clients.spectator.screens.evolve import EvolveScreen, standing
from clients.spectator.screens.polled import POLL_S, WIDE, PolledScreen, fill, key_of
from clients.spectator.widgets.heading import Banner, Heading
from games.text import clean_name


class RunsScreen(PolledScreen[list[RunRow]]):
    """Lists runs.

    Args:
        folder: where they are.
        opened: the run that is shown at once, over the list.
        poll_s: seconds between two looks.
    """

    asking = "Reading the runs …"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Follow", priority=True, tooltip="Follow the chosen run"),
        Binding("r", "reload", "Read now", tooltip="Read the files now"),
    ]

    def __init__(self, folder: RunFolder, *, opened: str = "", poll_s: float = POLL_S) -> None:
        super().__init__(poll_s=poll_s)
        self.folder = folder
        self._opened = opened

    def compose(self) -> ComposeResult:
        yield Heading(f"Runs in {clean_name(self.folder.name)}")
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Banner(id="banner")
        yield Footer()

    def on_mount(self) -> None:
        """Show the run that is to be shown at once."""
        if self._opened:
            self.app.push_screen(EvolveScreen(self.folder.source(self._opened)))

    async def fetch(self) -> list[RunRow]:
        return await self.folder.runs()

    def show(self, told: list[RunRow]) -> None:
        wide = self.size.width >= WIDE
        columns = ["", "Run", "Actor", "Generations", "Tasks", "Latest"]
        columns += ["First tries", "Retention", "Alerts"] if wide else []
        rows = []
        for row in told:
            found = row.figures
            success = found.get("success") or {}
            sign, words, style = standing(row.under_way)
            cells: list[Line] = [
                [(sign, style), (f" {words}" if wide else "", style)],
                [(clean_name(row.name), "text bold")],
                [(clean_name(str(found.get("actor", "")))[:24], "text")],
                [(f"{found['generations']:,}" if "generations" in found else "–", "text")],
                [(f"{found['tasks']:,}" if "tasks" in found else "–", "text")],
                [(_share(success.get("latest")), "accent")],
            ]
            if wide:
                alerts = len(found.get("alerts") or ())
                cells += [
                    [(_share(success.get("first_try")), "text")],
                    [(_share(success.get("retention")), "text")],
                    [(str(alerts), "error" if alerts else "dim")],
                ]
            texts = [self.text(cell) for cell in cells]
            for text in texts[3:]:
                text.justify = "right"
            rows.append((row.name, texts))
        fill(self._table, columns, rows)
        going = sum(row.under_way is True for row in told)
        self.query_one(Heading).show(
            f"Runs in {clean_name(self.folder.name)}", f"● {going} under way · {len(told)} in all"
        )
        if not rows:
            self.say("No run here yet; `arena evolve FILE` makes one.")

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Follow the run that was clicked."""
        self.action_open()

    def action_open(self) -> None:
        """Follow the chosen run."""
        if name := key_of(self._table):
            self.app.push_screen(EvolveScreen(self.folder.source(name)))


def _share(share: object) -> str:
    value = share.get("value") if isinstance(share, dict) else None
    return "–" if value is None else f"{value:.0%}"
