"""The table: who sits where, what is known of them, what they did, and how long they have."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from clients.spectator.drawing import Line, crop, fit, flow, spread, width_of
from clients.spectator.panels.base import GamePanel, RoleLook, SeatLook
from clients.spectator.widgets.lines import Lines

MAX_NAME_CELLS = 16
CLOCK_TICK_S = 1.0
ROOMY = 72
"""Columns from which on short seats keep longer names."""


def clock(seconds: float) -> str:
    """Return seconds as `m:ss`."""
    whole = max(int(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def fault_marks(faults: Mapping[str, int]) -> Line:
    """Return what the referee had to do at a seat, as marks."""
    marks: Line = []
    if faults.get("rejected"):
        marks.append((f"↻{faults['rejected']}", "warn"))
    if faults.get("forced"):
        marks.append((f"!{faults['forced']}", "error"))
    if faults.get("late"):
        marks.append((f"◷{faults['late']}", "warn"))
    if faults.get("forfeit"):
        marks.append(("⚑", "error bold"))
    return marks


def _spaced(marks: Line) -> Line:
    spaced: Line = []
    for index, (text, style) in enumerate(marks):
        # An arrow and the seat that it points at belong together.
        spaced += [(" ", "")] if index and marks[index - 1][0] != "→" else []
        spaced.append((text, style))
    return spaced


class SeatTable(Lines):
    """One line per seat; two or three seats to a line where the terminal is narrow."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names: Sequence[str] = ()
        self.looks: Sequence[SeatLook] = ()
        self.panel: GamePanel | None = None
        self.faults: Mapping[int, Counter[str]] = {}
        self.speaking: int | None = None
        self.brief = False
        self.newest = True
        """Whether what is shown is how things stand now; clocks run only then."""
        self.seconds: Callable[[], float] = time.monotonic
        self._ends: dict[int, float] = {}

    def wind(self, clocks: Mapping[int, float]) -> None:
        """Take the seconds that seats have left as of now; they run down from here on."""
        now = self.seconds()
        self._ends = {seat: now + left_s for seat, left_s in clocks.items()}

    def on_mount(self) -> None:
        """Begin to draw the clocks anew as time passes."""
        self.set_interval(CLOCK_TICK_S, self._tick)

    def _tick(self) -> None:
        if self.newest and self._ends:
            self.redraw()

    def draw(self, width: int) -> list[Line]:
        if self.panel is None:
            return []
        seats = range(len(self.looks))
        if self.brief:
            chips = [self._chip(seat, 6 if width < ROOMY else 10) for seat in seats]
            cells = max(map(width_of, chips), default=0)
            return flow([[*chip, (" " * (cells - width_of(chip)), "")] for chip in chips], width, gap=" ")
        longest = max((cell_len(name) for name in self.names), default=1)
        cells = max(min(longest, MAX_NAME_CELLS, width - 24), 6)
        return [self._row(seat, width, cells) for seat in seats]

    def _seat(self, seat: int) -> tuple[SeatLook, RoleLook, Line]:
        look = self.looks[seat]
        assert self.panel is not None
        marks = [*look.marks, *fault_marks(self.faults.get(seat, Counter()))]
        if self.newest and seat in self._ends:
            marks.append((clock(self._ends[seat] - self.seconds()), "accent bold"))
        return look, self.panel.role(look.role), marks

    def _row(self, seat: int, width: int, cells: int) -> Line:
        look, role, marks = self._seat(seat)
        speaks = seat == self.speaking
        color = "dim" if look.out else f"seat{seat}{' bold' if speaks else ''}"
        name = fit(self.names[seat], min(cells, cell_len(self.names[seat])))
        left: Line = [
            ("▶" if speaks else " ", "accent bold"),
            (f"{seat:>2} ", color),
            (name, f"{color} strike" if look.out else color),
            (" " * (cells - cell_len(name) + 2), ""),
            (f"{role.glyph} {look.role or ''}", f"{role.style}{' dim' if look.out else ''}"),
        ]
        return spread(left, [*_spaced(marks), (" ", "")], width)

    def _chip(self, seat: int, cells: int) -> Line:
        look, role, marks = self._seat(seat)
        style = "dim strike" if look.out else f"seat{seat} bold"
        line: Line = [("▶" if seat == self.speaking else " ", "accent bold"), (str(seat), style)]
        if look.role is not None:
            line.append((role.glyph, role.style))
        line += [(" ", ""), (set_cell_size(self.names[seat], min(cells, cell_len(self.names[seat]))), style)]
        if marks:
            line += [(" ", ""), *_spaced(marks)]
        return crop(line, 24)


class Board(Lines):
    """The board of the game, drawn by its panel from the view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.panel: GamePanel | None = None
        self.view: Any = None
        self.brief = False

    def draw(self, width: int) -> list[Line]:
        if self.panel is None or self.view is None:
            return []
        room = max(width, 10)
        try:
            if self.brief:
                return self.panel.brief(self.view, width=room)
            return self.panel.board(self.view, width=room)
        except Exception:
            # A view folded from events that no rules emitted; the feed still tells them one by one.
            return [[("The board cannot be drawn from these events.", "dim")]]
