"""The palette: every style readable on every theme's ground."""

import pytest
from textual.app import App

from clients.spectator.palette import CONTRAST, DIM_CONTRAST, SEAT_HUES, Palette, _contrast

APP: App[None] = App()


@pytest.mark.parametrize("name", sorted(APP.available_themes))
def test_every_color_stands_out_from_the_ground(name: str) -> None:
    APP.theme = name
    palette = Palette(APP.current_theme, APP.get_css_variables())
    text = _contrast(palette.colors["text"], palette.ground)
    for word, color in palette.colors.items():
        wanted = DIM_CONTRAST if word == "dim" else CONTRAST
        assert _contrast(color, palette.ground) >= min(wanted, text) * 0.95, word


def test_style_words_are_put_together() -> None:
    palette = Palette(APP.current_theme, APP.get_css_variables())
    style = palette.style("seat3 bold strike")
    assert style.bold and style.strike and style.color == palette.style("seat3").color
    assert palette.style("").color is None
    assert palette.style("evil dim").color != palette.style("evil").color
    assert palette.style(f"seat{len(SEAT_HUES)}").color == palette.style("seat0").color
