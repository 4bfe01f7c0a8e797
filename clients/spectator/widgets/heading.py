"""The line at the top of a screen, and the line that says what is wrong."""

from textual.widgets import Static

from clients.spectator.drawing import Line, spread
from clients.spectator.widgets.lines import Lines


class Heading(Lines):
    """What is shown here, and a count or two at the right."""

    DEFAULT_CSS = """
    Heading {
        height: 1;
        background: $panel;
    }
    """

    def __init__(self, left: str, right: str = "") -> None:
        super().__init__()
        self._left, self._right = left, right

    def show(self, left: str, right: str = "") -> None:
        """Say something else."""
        self._left, self._right = left, right
        self.refresh()

    def draw(self, width: int) -> list[Line]:
        return [spread([(f" {self._left}", "bold")], [(f"{self._right} ", "dim")], width)]


class Banner(Static):
    """A line or two that stand out, as plain text."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
