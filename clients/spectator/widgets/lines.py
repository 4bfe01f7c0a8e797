"""A widget that shows lines of styled text."""

from typing import Any, Self

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from clients.spectator.drawing import Line, crop
from clients.spectator.palette import Palette

_PALETTES: dict[str, Palette] = {}


def palette_of(widget: Widget) -> Palette:
    """Return the palette of the app's theme (made once per theme)."""
    theme = widget.app.current_theme
    palette = _PALETTES.get(theme.name)
    if palette is None:
        palette = _PALETTES[theme.name] = Palette(theme, widget.app.get_css_variables())
    return palette


class Lines(Widget):
    """Shows what `draw` returns, as high as that is."""

    DEFAULT_CSS = """
    Lines {
        width: 1fr;
        height: auto;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        self._held: tuple[int, list[Line]] | None = None
        super().__init__(id=id)

    def draw(self, width: int) -> list[Line]:
        """Return the lines for a width in cells."""
        return []

    def refresh(self, *regions: Region, **how: Any) -> Self:
        """Draw anew at the next turn; what was drawn before is void."""
        self._held = None
        return super().refresh(*regions, **how)

    def redraw(self) -> None:
        """Draw anew, and lay out anew where the height changed."""
        self._held = None
        width = self.size.width
        self.refresh(layout=bool(width) and len(self._lines(width)) != self.size.height)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines(width))

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        lines = self._lines(width)
        if y >= len(lines):
            return Strip.blank(width, base)
        return palette_of(self).strip(crop(lines[y], width), width, base)

    def _lines(self, width: int) -> list[Line]:
        if self._held is None or self._held[0] != width:
            self._held = width, self.draw(width)
        return self._held[1]
