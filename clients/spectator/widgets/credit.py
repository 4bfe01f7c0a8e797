"""The credit of a finished match beside its board: a line for each seat, summed up to where the reader is."""

from collections.abc import Sequence

from clients.spectator.credit import CreditSheet, draw_credit
from clients.spectator.drawing import Line, crop
from clients.spectator.widgets.lines import Lines


class CreditPanel(Lines):
    """Draws a `CreditSheet` at a ply."""

    def __init__(self, sheet: CreditSheet, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sheet = sheet
        self._names: Sequence[str] = ()
        self._ply: int | None = None
        self._over = False

    def show(self, *, names: Sequence[str], ply: int | None, over: bool) -> None:
        """Show what stands after `ply`; None is a view in which no plies are told."""
        self._names, self._ply, self._over = names, ply, over
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        if not self._names:
            return []
        if self._ply is None:
            return [crop([("Credit: a shows everything.", "dim")], width)]
        return draw_credit(self._sheet, names=self._names, ply=self._ply, over=self._over, width=width)
