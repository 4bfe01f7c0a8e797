"""The feed: the match in lines, of which only those on the screen are drawn."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from clients.spectator.drawing import Line, crop
from clients.spectator.telling import CATEGORIES, Teller
from clients.spectator.timeline import Timeline
from clients.spectator.widgets.lines import palette_of

CACHED_STEPS = 256


class Feed(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows the steps up to a position; keeps to the end until the reader scrolls up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Scroll up", show=False),
        Binding("down,j", "scroll_down", "Scroll down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
    ]

    class Followed(Message):
        """The reader left the end of the feed, or came back to it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.strips_made = 0
        """Lines drawn since the start, for those who count them."""
        self._timeline: Timeline | None = None
        self._teller: Teller | None = None
        self._shown = 0
        self._unseen_from = 0
        self._categories: Collection[str] = frozenset(CATEGORIES)
        self._query = ""
        self._offsets = [0]
        self._laid = 0
        """The width that the heights are for; a layout may change before it is told."""
        self._stages: dict[int, str] = {}
        self._stages_known = 0
        self._blocks: OrderedDict[int, list[Line]] = OrderedDict()

    @property
    def unseen(self) -> int:
        """How many steps came since the reader left the end."""
        return 0 if self.following else max(self._shown - self._unseen_from, 0)

    @property
    def lines_measured(self) -> int:
        """Up to which step heights are known."""
        return len(self._offsets) - 1

    def begin(self, timeline: Timeline, teller: Teller) -> None:
        """Show another timeline, from its start."""
        self._timeline, self._teller = timeline, teller
        self._shown = 0
        self._stages, self._stages_known = {}, 0
        self._forget()

    def show(self, shown: int, *, follow: bool) -> None:
        """Show the first `shown` steps; with `follow` go to their end, wherever the reader was."""
        self._shown = shown
        if follow:
            self._set_following(True)
        self._measure()

    def filter(self, categories: Collection[str]) -> None:
        """Show only these categories."""
        self._categories = frozenset(categories)
        self._forget()
        self._measure()

    def mark(self, query: str) -> None:
        """Mark where `query` stands; empty for nowhere."""
        self._query = query.casefold()
        self.refresh()

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._set_following(True)
        self._measure()

    def action_scroll_up(self) -> None:
        """Scroll one line up, without any gliding: the feed moves often enough by itself."""
        self.scroll_up(animate=False)

    def action_scroll_down(self) -> None:
        """Scroll one line down."""
        self.scroll_down(animate=False)

    def action_page_up(self) -> None:
        """Scroll one page up."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """Scroll one page down."""
        self.scroll_page_down(animate=False)

    def on_resize(self) -> None:
        """Heights depend on the width: measure them anew."""
        self._measure()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._set_following(round(new_value) >= self.max_scroll_y)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        width = self._width
        base = self.rich_style
        row = y + self.scroll_offset.y
        if row >= self._offsets[min(self._shown, self.lines_measured)]:
            return Strip.blank(width, base)
        step = bisect_right(self._offsets, row) - 1
        place = row - self._offsets[step]
        line = self._block(step)[place]
        self.strips_made += 1
        newest = step == self._shown - 1 and place >= self._heading_lines(step)
        gutter: Line = [("▎" if newest else " ", "accent")]
        if self._query:
            line = _marked(line, self._query)
        return palette_of(self).strip(crop([*gutter, *line], width), width, base)

    def _set_following(self, following: bool) -> None:
        if following != self.following:
            self.following = following
            self._unseen_from = self._shown
            self.post_message(self.Followed())

    def _forget(self) -> None:
        self._offsets = [0]
        self._blocks.clear()

    def _measure(self) -> None:
        timeline, width = self._timeline, self._width
        if timeline is None or width <= 0:
            return
        if width != self._laid:
            self._forget()
            self._laid = width
        for stage in timeline.stages[self._stages_known :]:
            self._stages[stage.step + stage.after] = stage.title
        self._stages_known = len(timeline.stages)
        offsets = self._offsets
        for step in range(len(offsets) - 1, self._shown):
            offsets.append(offsets[-1] + len(self._draw(step)))
        self.virtual_size = Size(width, offsets[self._shown])
        if self.following:
            self.scroll_to(y=self.max_scroll_y, animate=False, immediate=True)
        self.refresh()

    def _block(self, step: int) -> list[Line]:
        block = self._blocks.get(step)
        if block is None:
            block = self._blocks[step] = self._draw(step)
            if len(self._blocks) > CACHED_STEPS:
                self._blocks.popitem(last=False)
        return block

    def _heading_lines(self, step: int) -> int:
        return (2 if step else 1) if step in self._stages else 0

    def _draw(self, step: int) -> list[Line]:
        assert self._timeline is not None and self._teller is not None
        width = self._laid - 1
        lines: list[Line] = []
        title = self._stages.get(step)
        if title is not None:
            lines += [[]] if step else []
            name = title or "The deal"
            lines.append(
                [("── ", "dim"), (name, "title bold"), (" " + "─" * max(width - len(name) - 4, 0), "dim")]
            )
        return lines + self._teller.lines(
            self._timeline.steps[step], width=width, categories=self._categories
        )


def _marked(line: Line, query: str) -> Line:
    marked: Line = []
    for text, style in line:
        folded = text.casefold()
        if len(folded) != len(text) or query not in folded:
            marked.append((text, style))
            continue
        at = 0
        while (found := folded.find(query, at)) >= 0:
            marked += [(text[at:found], style), (text[found : found + len(query)], f"{style} reverse")]
            at = found + len(query)
        marked.append((text[at:], style))
    return marked
