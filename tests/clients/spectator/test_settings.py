"""What is remembered: the theme, whatever stands in the file."""

from pathlib import Path

import pytest

from clients.spectator.settings import DEFAULT_THEME, Settings, load_settings, save_settings
from tests.clients.spectator.showing import SIZE, opened, watching, write


@pytest.mark.parametrize("content", ["", "{", "[]", '{"theme": 3}', "\xff"])
def test_settings_that_cannot_be_read_are_the_defaults(tmp_path: Path, content: str) -> None:
    path = tmp_path / "watch.json"
    assert load_settings(path) == Settings(DEFAULT_THEME)
    path.write_bytes(content.encode("latin-1"))
    assert load_settings(path) == load_settings(None) == Settings(DEFAULT_THEME)


def test_settings_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    path = tmp_path / "new" / "watch.json"
    assert save_settings(path, Settings("nord")) and load_settings(path) == Settings("nord")
    (tmp_path / "file").touch()
    assert not save_settings(tmp_path / "file" / "watch.json", Settings("nord"))


@pytest.mark.asyncio
async def test_a_chosen_theme_is_there_again_next_time(tmp_path: Path) -> None:
    path, settings = write(tmp_path, "kuhn", seats=2), tmp_path / "watch.json"
    async with watching(path, settings=settings).run_test(size=SIZE) as pilot:
        await opened(pilot)
        pilot.app.theme = "textual-light"
        await pilot.pause()
    assert load_settings(settings).theme == "textual-light"
    async with watching(path, settings=settings).run_test(size=SIZE) as pilot:
        await opened(pilot)
        assert pilot.app.theme == "textual-light"


@pytest.mark.asyncio
async def test_a_theme_that_is_not_installed_is_passed_over(tmp_path: Path) -> None:
    settings = tmp_path / "watch.json"
    save_settings(settings, Settings("a theme from elsewhere"))
    async with watching(write(tmp_path, "kuhn", seats=2), settings=settings).run_test(size=SIZE) as pilot:
        await opened(pilot)
        assert pilot.app.theme == DEFAULT_THEME


@pytest.mark.asyncio
@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "gruvbox"])
async def test_every_kind_of_theme_draws(tmp_path: Path, theme: str) -> None:
    async with watching(write(tmp_path, "avalon", seats=5), "all").run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        if theme not in pilot.app.available_themes:
            theme = "textual-ansi"
        pilot.app.theme = theme
        await pilot.press("end")
        assert screen.timeline is not None and screen.position == len(screen.timeline)
