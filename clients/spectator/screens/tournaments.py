"""Tournaments: how far each has come, its standings, and its matches that go on. Enter watches one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer

from clients.spectator.drawing import Line, crop, flow, meter
from clients.spectator.rest import Facts
from clients.spectator.screens.match import MatchScreen
from clients.spectator.screens.polled import POLL_S, PolledScreen, fill, names_of, title_of
from clients.spectator.screens.ratings import show_standings
from clients.spectator.source import EventSource
from clients.spectator.widgets.heading import Banner, Heading
from clients.spectator.widgets.lines import Lines
from clients.spectator.widgets.table import clock
from games.text import clean_name


@dataclass(frozen=True, slots=True)
class Told:
    """The tournaments, and of the chosen one its standings and matches."""

    tournaments: list[dict[str, Any]]
    chosen: str = ""
    standings: tuple[dict[str, Any], ...] = ()
    live: tuple[dict[str, Any], ...] = ()


class TournamentScreen(PolledScreen[Told]):
    """Shows one tournament at a time.

    Args:
        facts: where to ask.
        source: returns the source of a match by its id.
        poll_s: seconds between two questions.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Watch", priority=True, tooltip="Watch the chosen match"),
        Binding("t", "next", "Next", tooltip="Show the next tournament"),
    ]

    def __init__(self, facts: Facts, *, source: Callable[[str], EventSource], poll_s: float = POLL_S) -> None:
        super().__init__(poll_s=poll_s)
        self.facts = facts
        self.chosen = ""
        """The name of the tournament that is shown."""
        self._source = source
        self._matches: list[str] = []

    def compose(self) -> ComposeResult:
        yield Heading("Tournaments")
        yield Progress()
        yield DataTable[Text](cursor_type="row", zebra_stripes=True, id="standings")
        yield DataTable[Text](cursor_type="row", zebra_stripes=True, id="live")
        yield Banner(id="banner")
        yield Footer()

    async def fetch(self) -> Told:
        tournaments = await self.facts.tournaments()
        chosen = self._find(tournaments)
        if chosen is None:
            return Told(tournaments)
        name = _name(chosen)
        ids = set(chosen.get("live") or ())
        live: tuple[dict[str, Any], ...] = ()
        if ids:
            live = tuple(row for row in (await self.facts.matches())["live"] if row.get("match") in ids)
        standings: list[dict[str, Any]] = []
        if chosen.get("id") is not None:
            standings = (await self.facts.ratings(tournament=str(chosen["id"])))["standings"]
        return Told(tournaments, name, tuple(standings), live)

    def _find(self, tournaments: list[dict[str, Any]]) -> dict[str, Any] | None:
        for row in tournaments:
            if _name(row) == self.chosen:
                return row
        return tournaments[0] if tournaments else None

    def show(self, told: Told) -> None:
        state = next((row for row in told.tournaments if _name(row) == told.chosen), None)
        standings, live = self._standings, self._live
        self._matches = [str(row.get("match")) for row in told.live]
        self.query_one(Progress).show(state)
        live.display = standings.display = state is not None
        if state is None:
            self.query_one(Heading).show("Tournaments")
            self.say("There is no tournament here; `arena serve --tournament FILE` opens one.")
            return
        self.chosen = told.chosen
        names = [_name(row) for row in told.tournaments]
        place = f" ({names.index(told.chosen) + 1} of {len(names)})" if len(names) > 1 else ""
        self.query_one(Heading).show(
            f"Tournament {clean_name(told.chosen)}{place}", title_of(str(state.get("game", "")))
        )
        rows = told.standings or tuple(
            {"player": name, "game": state.get("game"), "played": 0} for name in state.get("players") or ()
        )
        show_standings(self, standings, rows)
        standings.styles.height = len(rows) + 1
        live.display = bool(told.live)
        live.styles.height = len(told.live) + 1
        room = max(self.size.width - 40, 10)
        fill(
            live,
            ["", "Goes on", "Players", ""],
            [
                (
                    str(row.get("match")),
                    [
                        self.text([("●", "error bold")]),
                        self.text([(clean_name(str(row.get("match")))[:18], "dim")]),
                        self.text([(names_of(row.get("names"), cells=room), "text")]),
                        self.text([(f"{row.get('watchers') or 0} watching", "dim")]),
                    ],
                )
                for row in told.live
            ],
        )
        if told.live and not standings.has_focus and not live.has_focus:
            live.focus()

    @property
    def _standings(self) -> "DataTable[Text]":
        return self.query_one("#standings", DataTable)

    @property
    def _live(self) -> "DataTable[Text]":
        return self.query_one("#live", DataTable)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Watch the match that was clicked."""
        if event.data_table is self._live:
            self.action_open()

    def action_open(self) -> None:
        """Watch the chosen match that goes on."""
        if not self._matches:
            self.notify("No match of it goes on just now.", severity="warning")
            return
        row = min(max(self._live.cursor_row, 0), len(self._matches) - 1)
        self.app.push_screen(MatchScreen(self._source(self._matches[row])))

    def action_next(self) -> None:
        """Show the next tournament."""
        names = [_name(row) for row in self.told.tournaments] if self.told is not None else []
        if len(names) > 1:
            here = names.index(self.chosen) if self.chosen in names else -1
            self.chosen = names[(here + 1) % len(names)]
            self.action_reload()


class Progress(Lines):
    """How far a tournament has come."""

    DEFAULT_CSS = """
    Progress {
        padding: 0 1;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._state: dict[str, Any] | None = None

    def show(self, state: dict[str, Any] | None) -> None:
        """Show another one."""
        self._state = state
        self.refresh(layout=True)

    def draw(self, width: int) -> list[Line]:
        state = self._state
        if state is None:
            return []
        planned, played = int(state.get("planned") or 0), int(state.get("played") or 0)
        playing, starts = int(state.get("playing") or 0), state.get("starts_in_s")
        players = state.get("players") or []
        if state.get("status") == "open":
            chunks: list[Line] = [
                [("○ open", "accent bold")],
                [(f"{len(players)} registered", "text")],
                [(f"{planned} matches", "text")],
                [("" if starts is None else f"begins in {clock(starts)}", "accent")],
            ]
        else:
            over = state.get("status") == "over"
            chunks = [
                [("■ over", "dim bold") if over else ("● running", "error bold")],
                [(meter(played, planned, 24), "accent"), (f" {played} of {planned} played", "text")],
                [(f"{playing} going on", "text")],
                [(f"{max(planned - played - playing, 0)} left", "text")],
            ]
        return [*(crop(line, width) for line in flow(chunks, width, gap="   ")), []]


def _name(row: dict[str, Any]) -> str:
    return str(row.get("tournament", ""))
