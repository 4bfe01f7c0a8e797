"""Colours: what the style words of a `Line` become under a theme."""

from collections.abc import Mapping
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.theme import Theme

from clients.spectator.drawing import Line

SEAT_HUES = (210, 28, 140, 320, 52, 180, 265, 0, 95, 235, 345, 160)
"""One hue for each of the first twelve seats, neighbours far apart; more seats go round again."""

ATTRIBUTES = frozenset({"bold", "italic", "strike", "reverse", "underline"})


CONTRAST, DIM_CONTRAST = 4.5, 3.0
"""Contrast of a colour with the ground, as WCAG 2 counts it, below which it is drawn towards the text's colour."""


class Palette:
    """The styles of one theme.

    Words: `text dim good evil accent warn error private thought title seatN`, and `bold italic strike reverse
    underline` beside them.
    """

    def __init__(self, theme: Theme, variables: Mapping[str, str]) -> None:
        def color(name: str, otherwise: str) -> Color:
            try:
                return Color.parse(variables.get(name, otherwise))
            except ValueError:  # a terminal's own colours, as in the ansi themes
                return Color.parse(otherwise)

        light = "#e0e0e0" if theme.dark else "#1e1e1e"
        ground = color("background", "#1e1e1e" if theme.dark else "#e0e0e0")
        text = color("foreground", light)
        blue, red = ("#5fafff", "#ff6b6b") if theme.dark else ("#0a5fb4", "#b41e1e")
        lilac = Color.parse("#c792ea" if theme.dark else "#7b2fa0")
        self.ground = ground
        self.colors = {
            "text": text,
            "dim": text.blend(ground, 0.45),
            "good": Color.parse(blue),
            "evil": Color.parse(red),
            "accent": color("accent", "#ffa62b"),
            "warn": color("warning", "#ffa62b"),
            "error": color("error", "#ba3c5b"),
            "private": lilac,
            "thought": text.blend(lilac, 0.45).blend(ground, 0.12),
            "title": color("primary", "#0178d4").blend(text, 0.35),
        }
        for seat, hue in enumerate(SEAT_HUES):
            level = (0.68 if theme.dark else 0.36) - (0.06 if 40 <= hue <= 190 else 0)
            self.colors[f"seat{seat}"] = Color.from_hsl(hue / 360, 0.75, level)
        for name, shade in self.colors.items():
            wanted = DIM_CONTRAST if name == "dim" else CONTRAST
            for _ in range(24):
                if _contrast(shade, ground) >= wanted:
                    break
                shade = shade.blend(text, 0.15)
            self.colors[name] = shade
        self.style = lru_cache(maxsize=1024)(self._style)

    def _style(self, words: str) -> Style:
        color: Color | None = None
        flags: dict[str, bool] = {}
        for word in words.split():
            if word in ATTRIBUTES:
                flags[word] = True
            elif word.startswith("seat"):
                color = self.colors[f"seat{int(word[4:]) % len(SEAT_HUES)}"]
            elif word != "dim" or color is None:
                color = self.colors[word]
            else:
                color = color.blend(self.ground, 0.45)
        return Style(
            color=None if color is None else RichColor.from_rgb(*color.rgb),
            bold=flags.get("bold"),
            italic=flags.get("italic"),
            strike=flags.get("strike"),
            reverse=flags.get("reverse"),
            underline=flags.get("underline"),
        )

    def strip(self, line: Line, width: int, base: Style) -> Strip:
        """Return a line of text as exactly `width` cells on the ground of `base`."""
        segments = [Segment(text, base + self.style(words)) for text, words in line if text]
        return Strip(segments).adjust_cell_length(width, base)


def _contrast(one: Color, other: Color) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    """Return the relative luminance. Source: W3C, "Web Content Accessibility Guidelines 2.1", definitions."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
