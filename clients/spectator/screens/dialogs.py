"""Small questions over a screen: where to jump, what to show, which keys there are."""

from collections.abc import Callable, Collection, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, SelectionList

from clients.spectator.drawing import Line, fit, wrap
from clients.spectator.telling import CATEGORIES, CATEGORY_TITLES
from clients.spectator.widgets.lines import Lines

KEY_CELLS = 14
"""Cells for the key or sign before its meaning."""

CLOSE: list[BindingType] = [Binding("escape", "dismiss", "Close")]


class JumpDialog(ModalScreen[int | None]):
    """Asks for a place; `read` turns the answer into a step, or raises `ValueError` in words."""

    BINDINGS = CLOSE

    def __init__(self, question: str, read: Callable[[str], int]) -> None:
        super().__init__()
        self._question = question
        self._read = read

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False)
            yield Input(id="place")
            yield Label("", id="wrong", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Jump, or say what is wrong with the answer."""
        try:
            step = self._read(event.value.strip())
        except ValueError as error:
            self.query_one("#wrong", Label).update(str(error))
            return
        self.dismiss(step)


class FilterDialog(ModalScreen[Collection[str] | None]):
    """Asks which categories the feed shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("enter", "accept", "Show these", priority=True),
    ]

    def __init__(self, chosen: Collection[str]) -> None:
        super().__init__()
        self._chosen = frozenset(chosen)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label("Show in the feed (space chooses, enter closes)", markup=False)
            yield SelectionList[str](
                *((CATEGORY_TITLES[name], name, name in self._chosen) for name in CATEGORIES)
            )

    def action_accept(self) -> None:
        """Show what is chosen."""
        self.dismiss(frozenset(self.query_one(SelectionList).selected))

    def action_cancel(self) -> None:
        """Leave the filter as it was."""
        self.dismiss(None)


class AskDialog(ModalScreen[bool]):
    """Asks yes or no; `about` is what it is asked of, for whoever must take the question back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]

    def __init__(self, question: str, text: str, *, about: object = None) -> None:
        super().__init__()
        self.about = about
        self._question, self._text = question, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._question, markup=False, classes="question")
            yield Label(self._text, markup=False)
            yield Label("y or enter: yes    n or esc: no", markup=False, classes="keys")

    def action_answer(self, yes: bool) -> None:
        """Answer."""
        self.dismiss(yes)


class HelpScreen(ModalScreen[None]):
    """The keys of the screen below, and what its signs mean."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close"),
    ]

    def __init__(
        self, title: str, keys: Sequence[tuple[str, str]], signs: Sequence[tuple[str, str, str]]
    ) -> None:
        super().__init__()
        self._title = title
        self._keys = keys
        self._signs = signs

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help"):
            yield _Help(self._title, self._keys, self._signs)


class _Help(Lines):
    def __init__(
        self, title: str, keys: Sequence[tuple[str, str]], signs: Sequence[tuple[str, str, str]]
    ) -> None:
        super().__init__()
        self._title = title
        self._keys = keys
        self._signs = signs

    def draw(self, width: int) -> list[Line]:
        lines: list[Line] = [[(self._title, "title bold")], []]
        for key, text in self._keys:
            lines += _entry(key, "accent bold", text, width)
        if self._signs:
            lines += [[], [("Signs", "title bold")], []]
            for sign, style, text in self._signs:
                lines += _entry(sign, style, text, width)
        return lines


def _entry(head: str, style: str, text: str, width: int) -> list[Line]:
    first, *rest = wrap(text, width - KEY_CELLS)
    return [
        [(fit(head, KEY_CELLS), style), (first, "text")],
        *([(" " * KEY_CELLS + more, "text")] for more in rest),
    ]
