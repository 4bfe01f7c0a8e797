"""What a match screen says of itself: its keys, its commands, and the signs that are drawn."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from textual.app import SystemCommand
from textual.binding import Binding, BindingType

from clients.spectator.panels.base import GamePanel
from clients.spectator.telling import CATEGORIES, CATEGORY_TITLES


def hidden(key: str, action: str, title: str, tooltip: str, *, key_display: str | None = None) -> Binding:
    """Return a binding that the footer has no room for."""
    return Binding(key, action, title, show=False, key_display=key_display, tooltip=tooltip)


def explained(bindings: Sequence[BindingType]) -> list[Binding]:
    """Return the bindings that say what they do."""
    return [binding for binding in bindings if isinstance(binding, Binding) and binding.tooltip]


def keys(bindings: Sequence[BindingType]) -> list[tuple[str, str]]:
    """Return each key with what it does."""
    found = [(one.key_display or one.key.split(",")[0], one.tooltip) for one in explained(bindings)]
    return [
        *found,
        ("0 … 9", "Look through the eyes of that seat"),
        ("↑ ↓ PgUp PgDn", "Scroll the feed; it follows again at its end"),
        ("ctrl+p", "All commands, themes among them"),
        ("q", "Quit"),
    ]


def key_commands(bindings: Sequence[BindingType], *, run: Callable[[str], Any]) -> Iterator[SystemCommand]:
    """Yield what each key does as a command; `run` is given the name of the action."""
    for binding in explained(bindings):
        yield SystemCommand(binding.description, binding.tooltip, partial(run, binding.action))


def filter_commands(show_only: Callable[[Collection[str]], None]) -> Iterator[SystemCommand]:
    """Yield the commands that choose what the feed shows; `show_only` is given the categories."""
    yield SystemCommand("Show everything in the feed", "No filter", partial(show_only, CATEGORIES))
    for name in CATEGORIES:
        title = f"Show only: {CATEGORY_TITLES[name].lower()}"
        yield SystemCommand(title, "Filter the feed", partial(show_only, (name,)))


def signs(panel: GamePanel) -> list[tuple[str, str, str]]:
    """Return each sign with its style and what it means in the panel's game."""
    roles = [(look.glyph, look.style, role) for role, look in panel.roles.items()]
    return [
        *roles,
        *panel.legend,
        ("▶", "accent", "speaks"),
        ("↻2", "warn", "was asked again twice, as no answer could be read"),
        ("!1", "error", "played the default once, as no legal answer came"),
        ("◷1", "warn", "answered too late once"),
        ("⚑", "error", "has forfeited"),
        ("◌", "private", "seen by some only"),
        ("┊", "thought", "a thought; the omniscient view alone shows them"),
    ]
