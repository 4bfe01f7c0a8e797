"""Answering a turn: what is asked, until when, and the legal actions as widgets."""

from collections.abc import Mapping
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text as RichText
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.css.styles import RenderStyles, Styles
from textual.message import Message
from textual.widgets import OptionList, SelectionList, TextArea
from textual.widgets.option_list import Option
from textual.widgets.selection_list import Selection

from clients.human import default_title, option_keys, option_title, question
from clients.match import Match, Turn
from clients.spectator.drawing import Line, crop, spread, wrap
from clients.spectator.widgets.lines import Lines
from clients.spectator.widgets.table import clock
from games.spaces import Action, Choice, Subset, Text
from games.text import neutralise

URGENT_S = 15.0
NARROW = 50
"""Columns from which on the question and the clock share a line."""
UNLIMITED_S = 86_400.0
"""Seconds from which on a clock is none."""


SAY = "What do you say? Enter sends it; an empty line says nothing."


class Given(Message):
    """The person answers."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action


class Choices(OptionList):
    """One of several; a key or enter chooses."""

    def __init__(self, space: Choice, *, keys: Mapping[str, str], match: Match) -> None:
        self._by_key = keys
        self._options_given = space.options
        shown = {option: key for key, option in keys.items()}
        super().__init__(
            *(
                Option(_prompt(option, shown.get(option, ""), match), id=f"o{index}")
                for index, option in enumerate(space.options)
            ),
            markup=False,
        )

    def pick(self, key: str) -> bool:
        """Choose by key; say whether the key is one."""
        if key not in self._by_key:
            return False
        self.highlighted = self._options_given.index(self._by_key[key])
        self.post_message(Given(self._by_key[key]))
        return True

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose what was clicked, or entered."""
        event.stop()
        self.post_message(Given(self._options_given[event.option_index]))


class Subsets(SelectionList[str]):
    """So many of several; a key or space chooses, enter sends."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "send", "Send", tooltip="Send what is chosen")]

    class Wrong(Message):
        """Not so many as are asked for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, space: Subset, *, keys: Mapping[str, str], match: Match) -> None:
        self._space = space
        self._by_key = keys
        shown = {option: key for key, option in keys.items()}
        super().__init__(
            *(Selection(_prompt(option, shown.get(option, ""), match), option) for option in space.options)
        )

    def pick(self, key: str) -> bool:
        """Choose, or choose no longer, by key; say whether the key is one."""
        if key not in self._by_key:
            return False
        self.highlighted = self._space.options.index(self._by_key[key])
        self.toggle(self._by_key[key])
        return True

    def action_send(self) -> None:
        """Send what is chosen, if it is so many as are asked for."""
        chosen = set(self.selected)
        action = tuple(option for option in self._space.options if option in chosen)
        if self._space.contains(action):
            self.post_message(Given(action))
        else:
            size = self._space.size
            self.post_message(self.Wrong(f"Choose exactly {size}; you have chosen {len(action)}."))


class Speech(TextArea):
    """What is said; enter sends."""

    def __init__(self, space: Text) -> None:
        super().__init__(
            soft_wrap=True, show_line_numbers=False, tab_behavior="focus", compact=True, placeholder=SAY
        )
        self.space = space

    def get_component_styles(self, *names: str) -> RenderStyles:
        """Return the styles of a part; plain ones where the screen draws it before its style sheet has come to it."""
        try:
            return super().get_component_styles(*names)
        except KeyError:
            return RenderStyles(self, Styles(), Styles())

    @property
    def left(self) -> int:
        """How many characters are left."""
        return self.space.max_chars - len(self.text)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.left < 0:
                over = -self.left
                self.post_message(
                    Subsets.Wrong(f"{over} character{'' if over == 1 else 's'} too many; shorten it.")
                )
            else:
                self.post_message(Given(self.text))
            return
        await super()._on_key(event)


class Headline(Lines):
    """What is asked, until when, what happens otherwise, and what was wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.turn: Turn | None = None
        self.count = ""
        self.sent = ""
        self.trouble = ""
        self.rest: tuple[str, str] = ("", "dim")
        """What is said between turns."""

    def draw(self, width: int) -> list[Line]:
        lines: list[Line] = []
        turn = self.turn
        if turn is None:
            lines.append([(f" {self.rest[0]}", self.rest[1])])
        else:
            turn_sign, asks = (" ▶ YOUR TURN ", "accent bold reverse"), question(turn)
            count: Line = [(f"  {self.count}", "accent")] if self.count else []
            if width >= NARROW:
                left: Line = [turn_sign, (f" {asks}", "text bold"), *count]
                lines.append(spread(left, [*_clock(turn), (" ", "")], width))
            else:
                lines += [crop([turn_sign, (" ", ""), *_clock(turn)[:1]], width)]
                lines += [[(f" {part}", "text bold")] for part in wrap(asks, max(width - 2, 8))]
                lines += [count] if count else []
            room = max(width - 2, 8)
            if self.sent:
                told = f"Sent: {self.sent}"
            else:
                told = f"If you do nothing: {default_title(turn)}"
                hint = f"{told}  ·  {_how(turn.space)}"
                told = hint if cell_len(hint) <= room else told
            lines += [[(f" {part}", "dim")] for part in wrap(told, room)[:2]]
        if self.trouble:
            lines += [
                [(f" {part}", "warn bold")] for part in wrap(neutralise(self.trouble), max(width - 2, 8))[:3]
            ]
        return lines


class AnswerPanel(Vertical):
    """The headline, and the widget that fits the turn."""

    DEFAULT_CSS = """
    AnswerPanel {
        height: auto;
        max-height: 60%;
        border-top: heavy $panel-lighten-2;
        background: $surface;
    }
    AnswerPanel.-turn {
        border-top: heavy $accent;
    }
    AnswerPanel > OptionList, AnswerPanel > SelectionList {
        height: auto;
        max-height: 8;
        border: none;
        padding: 0 1;
        background: $surface;
    }
    AnswerPanel > OptionList:focus, AnswerPanel > SelectionList:focus {
        border: none;
    }
    AnswerPanel > TextArea {
        height: 4;
        margin: 0 1;
        border: none;
        background: $boost;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.widget: Choices | Subsets | Speech | None = None

    def compose(self) -> ComposeResult:
        yield Headline()

    @property
    def headline(self) -> Headline:
        """The lines above the widget."""
        return self.query_one(Headline)

    async def ask(self, turn: Turn, *, trouble: str, draft: str = "") -> None:
        """Show a turn; a `draft` is what was written before, where a text is asked again."""
        await self._drop()
        head = self.headline
        head.turn, head.sent, head.trouble = turn, "", trouble
        match = turn.match
        options = getattr(turn.space, "options", ())
        keys = option_keys(options, seats=match.seats)
        match turn.space:
            case Choice():
                self.widget = Choices(turn.space, keys=keys, match=match)
            case Subset():
                self.widget = Subsets(turn.space, keys=keys, match=match)
            case Text():
                self.widget = Speech(turn.space)
                self.widget.load_text(draft)
        self.add_class("-turn")
        self._count()
        if self.widget is not None:
            await self.mount(self.widget)

    def sent(self, what: str) -> None:
        """Show that an answer is on its way."""
        self.headline.sent, self.headline.trouble = what, ""
        if self.widget is not None:
            self.widget.disabled = True
        self.headline.redraw()

    async def rest(self, text: str, style: str = "dim", *, trouble: str = "") -> None:
        """Show that nothing is asked."""
        await self._drop()
        head = self.headline
        head.turn, head.sent, head.count, head.trouble, head.rest = None, "", "", trouble, (text, style)
        self.remove_class("-turn")
        head.redraw()

    def wrong(self, text: str) -> None:
        """Say what is wrong with what was about to be sent."""
        self.headline.trouble = text
        self.headline.redraw()

    def pick(self, key: str) -> bool:
        """Choose by key; say whether the key is one here."""
        if self.widget is None or self.widget.disabled or isinstance(self.widget, Speech):
            return False
        return self.widget.pick(key)

    def on_selection_list_selected_changed(self) -> None:
        """Count anew."""
        self._count()

    def on_text_area_changed(self) -> None:
        """Count anew."""
        self._count()

    def on_subsets_wrong(self, event: Subsets.Wrong) -> None:
        """Say what is wrong."""
        event.stop()
        self.wrong(event.text)

    async def _drop(self) -> None:
        if self.widget is not None:
            widget, self.widget = self.widget, None
            await widget.remove()

    def _count(self) -> None:
        head = self.headline
        match self.widget:
            case Subsets() as widget:
                assert head.turn is not None and isinstance(head.turn.space, Subset)
                head.count = f"{len(widget.selected)} of {head.turn.space.size} chosen"
            case Speech() as widget:
                head.count = f"{widget.left} left"
            case _:
                head.count = ""
        head.redraw()


def _prompt(option: str, key: str, match: Match) -> RichText:
    text = RichText(no_wrap=True)
    text.append(f"{key or ' '} ", style="bold")
    return text.append(option_title(option, names=match.names, seats=match.seats))


def _clock(turn: Turn) -> Line:
    left = turn.seconds_left()
    if left >= UNLIMITED_S:
        return []
    base = left - turn.bank_s
    style = "error bold" if left < URGENT_S else "accent bold"
    if turn.bank_s <= 0:
        return [(f"◷ {clock(left)}", style)]
    if base > 0:
        return [(f"◷ {clock(base)}", style), (f" + {clock(turn.bank_s)} bank", "dim")]
    return [(f"◷ {clock(left)} of the bank", "error bold")]


def _how(space: object) -> str:
    if isinstance(space, Subset):
        return "a key or space chooses, enter sends"
    if isinstance(space, Text):
        return "enter sends, esc leaves the box"
    return "a key or enter chooses"
