"""The lobby: the matches that go on, who waits for players, and what has ended. Enter watches a match."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer

from clients.spectator.rest import Facts
from clients.spectator.screens.match import MatchScreen
from clients.spectator.screens.polled import POLL_S, WIDE, PolledScreen, fill, key_of, names_of, title_of
from clients.spectator.source import EventSource
from clients.spectator.widgets.heading import Banner, Heading
from clients.spectator.widgets.table import clock
from games.text import clean_name

Told = tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]
"""Matches, and lobbies."""


class LobbyScreen(PolledScreen[Told]):
    """Lists matches and lobbies.

    Args:
        facts: where to ask.
        source: returns the source of a match by its id.
        join: says how to take a seat in a lobby of a game.
        poll_s: seconds between two questions.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Watch", priority=True, tooltip="Watch the chosen match"),
        Binding("g", "game", "Game", tooltip="Show one game after the other, then all"),
    ]

    def __init__(
        self,
        facts: Facts,
        *,
        source: Callable[[str], EventSource],
        join: Callable[[str], str],
        poll_s: float = POLL_S,
    ) -> None:
        super().__init__(poll_s=poll_s)
        self.facts = facts
        self.game: str | None = None
        """The one game that is shown, None for all."""
        self._source = source
        self._join = join

    def compose(self) -> ComposeResult:
        yield Heading(f"Lobby · {clean_name(self.facts.name)}")
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Banner(id="banner")
        yield Footer()

    async def fetch(self) -> Told:
        matches, lobbies = await asyncio.gather(self.facts.matches(), self.facts.lobbies())
        return matches, lobbies

    def show(self, told: Told) -> None:
        matches, lobbies = told
        live, recent = self._of_game(matches["live"]), self._of_game(matches["recent"])
        waiting = self._of_game(lobbies)
        rows = [
            *((f"live/{row.get('match')}", self._live(row)) for row in live),
            *((f"wait/{index}/{row.get('game')}", self._waiting(row)) for index, row in enumerate(waiting)),
            *((f"over/{row.get('number')}/{row.get('match')}", self._over(row)) for row in recent),
        ]
        columns = ["", "Match", "Game", "Players", "How it stands"]
        if not self._wide:
            columns.remove("Match")
            rows = [(name, [*cells[:1], *cells[2:]]) for name, cells in rows]
        fill(self._table, columns, rows)
        game = "" if self.game is None else f" · {title_of(self.game)} alone, g goes on"
        counts = f"● {len(live)} going on · ○ {len(waiting)} waiting · ■ {len(recent)} over"
        self.query_one(Heading).show(f"Lobby · {clean_name(self.facts.name)}{game}", counts)
        if not rows:
            self.say("Nothing was played here yet; " + self._join(self.game or "GAME"))

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    @property
    def _wide(self) -> bool:
        return self.size.width >= WIDE

    @property
    def _room(self) -> int:
        return max(self.size.width - (78 if self._wide else 46), 10)

    def _of_game(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in rows if self.game in (None, row.get("game"))]

    def _row(self, sign: str, style: str, row: dict[str, Any], how: str, how_style: str) -> list[Text]:
        match = clean_name(str(row.get("match", "")))
        return [
            self.text([(sign, f"{style} bold")]),
            self.text([(match if len(match) <= 22 else f"{match[:21]}…", "dim")]),
            self.text([(title_of(str(row.get("game", ""))).rpartition(": ")[2][:14], "text")]),
            self.text([(names_of(row.get("names"), cells=self._room), "text")]),
            self.text([(how, how_style)]),
        ]

    def _live(self, row: dict[str, Any]) -> list[Text]:
        watchers, delay = row.get("watchers") or 0, row.get("delay_s") or 0
        how = f"{watchers} watching" if watchers else "going on"
        return self._row("●", "error", row, how + (f", {delay:g} s late" if delay else ""), "text")

    def _waiting(self, row: dict[str, Any]) -> list[Text]:
        names = row.get("names") or []
        starts = row.get("starts_in_s")
        how = f"{len(names)} of {row.get('seats', '?')}"
        how += "" if starts is None else f", bots in {clock(starts)}"
        return self._row("○", "accent", row, how, "accent")

    def _over(self, row: dict[str, Any]) -> list[Text]:
        returns, teams = row.get("returns") or [], row.get("teams") or []
        winners = dict.fromkeys(
            clean_name(str(team)) for team, value in zip(teams, returns, strict=False) if value and value > 0
        )
        reason = clean_name(str(row.get("reason", "")))
        if len(winners) == 1:
            (winner,) = winners
            return self._row(
                "■",
                "dim",
                row,
                f"{winner}: {reason}",
                winner if winner in ("good", "evil") else "text",
            )
        return self._row("■", "dim", row, reason, "text")

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Watch the match of the row that was clicked."""
        self._open(str(event.row_key.value))

    def action_open(self) -> None:
        """Watch the chosen match."""
        if name := key_of(self._table):
            self._open(name)

    def _open(self, name: str) -> None:
        kind, _, rest = name.partition("/")
        if kind == "wait":
            game = rest.partition("/")[2]
            self.notify(f"Nobody plays there yet; {self._join(game)}", markup=False)
            return
        match = rest if kind == "live" else rest.partition("/")[2]
        self.app.push_screen(MatchScreen(self._source(match)))

    def action_game(self) -> None:
        """Show the next game alone, after the last all."""
        if self.told is None:
            return
        matches, lobbies = self.told
        rows = [*matches["live"], *lobbies, *matches["recent"]]
        games: list[str | None] = [None, *sorted({str(row.get("game", "")) for row in rows})]
        here = games.index(self.game) if self.game in games else 0
        self.game = games[(here + 1) % len(games)]
        self.redraw()
