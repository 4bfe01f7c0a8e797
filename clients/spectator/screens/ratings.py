"""Ratings: the standings of each game, with their intervals, and how the chosen player does in each role."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer

from clients.spectator.bars import interval
from clients.spectator.drawing import Line, crop, fit
from clients.spectator.panels import panel_of
from clients.spectator.rest import Facts
from clients.spectator.screens.polled import POLL_S, WIDE, PolledScreen, fill, title_of
from clients.spectator.widgets.heading import Banner, Heading
from clients.spectator.widgets.lines import Lines
from games.text import clean_name

RATINGS_POLL_S = 5 * POLL_S
"""Ratings change slowly, and cost the server more than a list."""
NAME_CELLS = 18
PLAIN_RATING = 1500.0


class RatingsScreen(PolledScreen[dict[str, Any]]):
    """Shows the standings of one game at a time.

    Args:
        facts: where to ask.
        poll_s: seconds between two questions.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "game", "Next game", tooltip="Show the next game"),
    ]

    def __init__(self, facts: Facts, *, poll_s: float = RATINGS_POLL_S) -> None:
        super().__init__(poll_s=poll_s)
        self.facts = facts
        self.game = ""
        self._rows: list[dict[str, Any]] = []

    def compose(self) -> ComposeResult:
        yield Heading("Ratings")
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Roles()
        yield Banner(id="banner")
        yield Footer()

    async def fetch(self) -> dict[str, Any]:
        return await self.facts.ratings()

    def show(self, told: dict[str, Any]) -> None:
        games = games_of(told)
        if self.game not in games:
            self.game = games[0] if games else ""
        self._rows = [row for row in told["standings"] if row.get("game") == self.game]
        show_standings(self, self.query_one("DataTable", DataTable), self._rows)
        place = f" ({games.index(self.game) + 1} of {len(games)})" if len(games) > 1 else ""
        head = f"Ratings · {title_of(self.game)}{place}" if games else "Ratings"
        counts = f"{len(self._rows)} player{'' if len(self._rows) == 1 else 's'} · ━ is the 95 % interval"
        self.query_one(Heading).show(head, counts if games else "")
        warnings = [
            clean_line(line)
            for line in told.get("warnings") or ()
            if isinstance(line, str) and line.startswith(f"{self.game}:")
        ]
        if not games:
            self.say("No match is over yet, so nobody has a rating.")
        elif warnings:
            self.say("\n".join(warnings[:2]))
        self._show_roles()

    def on_data_table_row_highlighted(self) -> None:
        """Show the roles of the chosen player."""
        self._show_roles()

    def _show_roles(self) -> None:
        table = self.query_one("DataTable", DataTable)
        row = self._rows[table.cursor_row] if 0 <= table.cursor_row < len(self._rows) else None
        self.query_one(Roles).show(self.game, row)

    def action_game(self) -> None:
        """Show the next game."""
        games = games_of(self.told or {})
        if games:
            self.game = games[(games.index(self.game) + 1) % len(games)] if self.game in games else games[0]
            self.redraw()


class Roles(Lines):
    """How a player scores in each role: the games, and the share of points with its interval."""

    DEFAULT_CSS = """
    Roles {
        max-height: 10;
        padding: 0 1;
        border-top: solid $panel-lighten-2;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._game = ""
        self._row: Mapping[str, Any] | None = None

    def show(self, game: str, row: Mapping[str, Any] | None) -> None:
        """Show another player."""
        self._game, self._row = game, row
        self.display = bool(row and row.get("by_role"))
        self.refresh(layout=True)

    def draw(self, width: int) -> list[Line]:
        if self._row is None:
            return []
        panel = panel_of(self._game)
        lines: list[Line] = [
            [
                (fit(clean_name(str(self._row.get("player"))), NAME_CELLS), "title bold"),
                ("  played  score by role", "dim"),
            ]
        ]
        for role, tally in (self._row.get("by_role") or {}).items():
            look = panel.role(role)
            score = _number(tally.get("score"))
            low, high = tally.get("score_low"), tally.get("score_high")
            lines.append(
                [
                    (f"{look.glyph} ", look.style),
                    (fit(clean_name(role), NAME_CELLS - 2), "text"),
                    (f"{tally.get('played', 0):>8}  ", "text"),
                    *(
                        interval(low, score, high, scale=(0.0, 1.0), cells=min(max(width - 44, 10), 30))
                        if score is not None
                        else []
                    ),
                    (f" {score:6.1%}" if score is not None else "", "text"),
                ]
            )
        return [crop(line, width) for line in lines]


def show_standings(
    screen: PolledScreen[Any], table: "DataTable[Text]", rows: Iterable[Mapping[str, Any]]
) -> None:
    """Fill a table with standings, one game's."""
    rows = list(rows)
    wide = screen.size.width >= WIDE
    ends = [
        value
        for row in rows
        for value in (row.get("low"), row.get("high"), row.get("rating"))
        if isinstance(value, int | float)
    ]
    scale = (min(ends), max(ends)) if ends else (PLAIN_RATING, PLAIN_RATING)
    cells = min(max(screen.size.width - (72 if wide else 50), 8), 44)
    columns = ["#", "Player", "Rating", "95 %", "Played", "Score"]
    columns += ["Won", "Drawn", "Lost"] if wide else []
    made = []
    for place, row in enumerate(rows, 1):
        rating = _number(row.get("rating")) or PLAIN_RATING
        low, high = _number(row.get("low")), _number(row.get("high"))
        score = _number(row.get("score"))
        line: list[Line] = [
            [(str(place), "dim")],
            [(fit(clean_name(str(row.get("player", "?"))), NAME_CELLS if wide else 14).rstrip(), "text")],
            [(f"{rating:.0f}", "text bold")],
            interval(low, rating, high, scale=scale, cells=cells),
            [(str(row.get("played", 0)), "text")],
            [("–" if score is None else f"{score:.1%}", "text")],
        ]
        if wide:
            line += [[(str(row.get(name, 0)), style)] for name, style in _RESULTS]
        texts = [screen.text(one) for one in line]
        for index in (0, 2, 4, 5, 6, 7, 8):
            if index < len(texts):
                texts[index].justify = "right"
        made.append((f"{row.get('game')}/{row.get('player')}", texts))
    fill(table, columns, made)


_RESULTS = (("won", "good"), ("drawn", "dim"), ("lost", "evil"))


def games_of(told: Mapping[str, Any]) -> list[str]:
    """Return the games that have standings."""
    return sorted({str(row.get("game")) for row in told.get("standings", ())})


def clean_line(text: str) -> str:
    """Return a line of the server's as it is shown."""
    from games.text import neutralise

    return neutralise(text)[:200]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
