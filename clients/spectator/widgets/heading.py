"""The line at the top of a screen, and the line that says what is wrong."""

from collections.abc import Sequence

from textual.widgets import Static

from clients.spectator.drawing import Line, spread
from clients.spectator.widgets.lines import Lines
from replays.visitors import OMNISCIENT, PUBLIC, Perspective


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


class TitleBar(Lines):
    """What is watched, and through whose eyes."""

    def __init__(self) -> None:
        super().__init__()
        self.left = ""
        self.right: tuple[str, str] = ("", "dim")

    def show_eyes(self, perspective: Perspective, names: Sequence[str]) -> None:
        """Say through whose eyes."""
        if perspective == OMNISCIENT:
            self.right = ("◉ everything", "warn bold")
        elif perspective == PUBLIC:
            self.right = ("○ public", "dim bold")
        else:
            self.right = (f"◐ seat {perspective} {names[perspective]}", f"seat{perspective} bold")
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        return [spread([(f" {self.left}", "bold")], [(f"{self.right[0]} ", self.right[1])], width)]


class Banner(Static):
    """A line or two that stand out, as plain text."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
