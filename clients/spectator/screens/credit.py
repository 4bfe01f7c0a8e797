"""A finished match with its credit: a panel for the seats, and a mark for each ply under the timeline."""

from typing import Any, ClassVar

from textual.binding import BindingType

from clients.spectator.credit import CreditSheet
from clients.spectator.guide import hidden, signs
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.match import MatchScreen
from clients.spectator.source import EventSource
from clients.spectator.timeline import Timeline
from clients.spectator.widgets.credit import CreditPanel
from clients.spectator.widgets.scrubber import Scrubber

SIGNS = (
    ("▲", "good", "decided well in this ply"),
    ("▼", "evil", "decided badly in this ply"),
    ("·", "dim", "decided, and the credit says neither"),
    ("◆", "warn", "as many decided well as badly (timeline)"),
)


class CreditScreen(MatchScreen):
    """A match and who is credited with it.

    Args:
        source: where the match comes from.
        sheet: the credit.
        settings: those of `MatchScreen`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        hidden("c", "credit", "Credit", "Show or hide the credit"),
    ]

    def __init__(self, source: EventSource, sheet: CreditSheet, **settings: Any) -> None:
        super().__init__(source, **settings)
        self.sheet = sheet
        self._credit = CreditPanel(sheet, id="credit")
        self._credit_shown = True
        self._marked = -1
        self._marks: list[tuple[int, int]] = []

    def on_mount(self) -> None:
        """Put the panel under the board."""
        self.query_one("#side").mount(self._credit)

    def action_credit(self) -> None:
        """Show the credit, or hide it."""
        self._credit_shown = not self._credit_shown
        self._show()

    def action_help(self) -> None:
        """Show the keys and signs, those of the credit among them."""
        self.app.push_screen(HelpScreen("Keys", self._keys(), [*signs(self._panel), *SIGNS]))

    def _keys(self) -> list[tuple[str, str]]:
        first, *others = super()._keys()
        return [first, ("c", "Show or hide the credit"), *others]

    def _show(self, *, follow: bool = False) -> None:
        timeline = self.timeline
        if self.is_mounted and timeline is not None:
            self._show_credit(timeline)
        super()._show(follow=follow)

    def _show_credit(self, timeline: Timeline) -> None:
        ply = self._ply(timeline)
        self._credit.display = self._credit_shown
        over = self.over and self.position == len(timeline)
        self._credit.show(names=self._names, ply=ply, over=over)
        scrubber = self.query_one(Scrubber)
        if len(timeline) != self._marked:
            self._marked = len(timeline)
            self._marks = self.sheet.marks(timeline.steps)
        shown = self._credit_shown and timeline.plies is not None
        scrubber.credit = self._marks if shown else None
        scrubber.styles.height = 3 if shown else 2

    def _ply(self, timeline: Timeline) -> int | None:
        """Return the ply that was played last, -1 before the first, None where this view tells of none."""
        if timeline.plies is None:
            return None
        ply = timeline.steps[self.position - 1].ply if self.position else None
        return -1 if ply is None else ply
