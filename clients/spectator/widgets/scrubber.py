"""The scrubber: where the reader is, and where something happened."""

from collections.abc import Sequence

from textual import events
from textual.message import Message

from clients.spectator.credit import BAD, GOOD, MARKS, MIXED
from clients.spectator.drawing import Line, spread
from clients.spectator.panels.base import GamePanel
from clients.spectator.timeline import Step
from clients.spectator.widgets.lines import Lines


class Ticks:
    """Where something happened that the game's panel marks; each step is looked at once."""

    def __init__(self, panel: GamePanel) -> None:
        self._panel = panel
        self._known = 0
        self._ticks: list[tuple[int, str, str]] = []

    def of(self, steps: Sequence[Step]) -> Sequence[tuple[int, str, str]]:
        """Return (step, glyph, style) for the steps so far, of which there may be more each time."""
        for step in range(self._known, len(steps)):
            try:
                tick = self._panel.tick(steps[step].event)
            except Exception:
                tick = None  # an event that the game did not write
            if tick is not None:
                self._ticks.append((step, *tick))
        self._known = len(steps)
        return self._ticks


class Scrubber(Lines):
    """A line with ticks and a handle; a click jumps there."""

    class Sought(Message):
        """A place on the line was clicked; `share` is from 0 to 1."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._at = 0
        self._whole = 0
        self._ticks: Sequence[tuple[int, str, str]] = ()
        self._state = ""
        self._style = "dim"
        self._stage = ""
        self._place = ""
        self._note = ""
        self.credit: Sequence[tuple[int, int]] | None = None
        """A line of credit: (step, whether more of its ply was good, above 0, or bad), None for no such line."""

    def show(
        self,
        *,
        at: int,
        whole: int,
        ticks: Sequence[tuple[int, str, str]],
        state: tuple[str, str],
        stage: str,
        place: str,
        note: str = "",
    ) -> None:
        """Show the place `at` among `whole` steps; ticks are (step, glyph, style)."""
        self._at, self._whole, self._ticks = at, whole, ticks
        self._state, self._style = state
        self._stage, self._place, self._note = stage, place, note
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        head: Line = [(f" {self._state} ", f"{self._style} bold"), (f" {self._stage}", "text")]
        head += [("  ", ""), (self._note, "warn")] if self._note else []
        foot = spread(head, [(f"{self._place} ", "dim")], width)
        if self.credit is None:
            return [self._track(width), foot]
        return [self._track(width), self._credits(self.credit, width), foot]

    def _credits(self, credit: Sequence[tuple[int, int]], width: int) -> Line:
        cells = max(width - 2, 1)
        sums: dict[int, int] = {}
        for step, value in credit:
            if step < self._at:  # what is still to come is not given away
                cell = self._cell(step + 1, cells)
                sums[cell] = sums.get(cell, 0) + value
        line: Line = [(" ", "")]
        for cell in range(cells):
            if cell not in sums:
                line.append((" ", ""))
            else:
                balance = sums[cell]
                line.append(MIXED if balance == 0 else MARKS[GOOD if balance > 0 else BAD])
        return line

    def _track(self, width: int) -> Line:
        cells = max(width - 2, 1)
        handle = self._cell(self._at, cells)
        marks: dict[int, tuple[str, str]] = {}
        for step, glyph, style in self._ticks:
            cell = self._cell(step + 1, cells)
            if marks.get(cell, ("╵", ""))[0] == "╵":  # a vote gives way to what matters more
                marks[cell] = glyph, style
        line: Line = [(" ", "")]
        for cell in range(cells):
            if cell == handle:
                line.append(("●", "accent bold"))
            elif cell in marks:
                glyph, style = marks[cell]
                ahead = "╵" if glyph == "╵" else "◇"  # what is still to come is not given away
                line.append((glyph, style) if cell < handle else (ahead, "dim"))
            else:
                line.append(("━", "accent") if cell < handle else ("─", "dim"))
        return line

    def _cell(self, step: int, cells: int) -> int:
        return min(round((cells - 1) * step / self._whole), cells - 1) if self._whole else 0

    def on_click(self, event: events.Click) -> None:
        """Jump to where the line was clicked."""
        if event.y == 0:
            self.post_message(self.Sought(min(max((event.x - 1) / max(self.size.width - 3, 1), 0.0), 1.0)))
