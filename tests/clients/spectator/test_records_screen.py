"""The list of records: what it says of each, and how one is opened."""

from pathlib import Path

import pytest
from textual.widgets import DataTable

from clients.spectator.app import SpectatorApp
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.match import MatchScreen
from clients.spectator.screens.records import RecordsScreen, summary
from replays.reader import read_record
from tests.clients.spectator.showing import (
    SIZE,
    entries,
    named,
    opened,
    screen_text,
    until,
    write,
    write_entries,
)

pytestmark = pytest.mark.asyncio


def listing(folder: Path) -> SpectatorApp:
    return SpectatorApp({"records": lambda: RecordsScreen(folder)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    write(tmp_path, "kuhn", seats=2, seed=3, name="a.arena")
    write(tmp_path / "sub", "werewolf", seats=7, seed=4, name="c.arena")
    head = named("avalon", seats=5, seed=1)
    write_entries(tmp_path / "b.arena", head, entries(head)[0][:30])
    (tmp_path / "d.arena").write_bytes(b"no record")
    return tmp_path


async def test_every_record_is_listed_with_what_it_holds(folder: Path) -> None:
    app = listing(folder)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 4)
        text = screen_text(pilot)
        for words in (
            "a.arena",
            "kuhn",
            "Ada, Bors",
            "sub/c.arena",
            "and 3 more",
            "no end yet",
            "not readable",
        ):
            assert words in text, words


async def test_enter_opens_and_escape_comes_back(folder: Path) -> None:
    app = listing(folder)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 4)
        await pilot.press("enter")
        screen = await opened(pilot)
        assert screen.info is not None and screen.info.game == "kuhn" and screen.info.perspective == "public"
        await pilot.press("escape")
        assert isinstance(app.screen, RecordsScreen)
        await pilot.press("down", "enter")
        screen = await opened(pilot)
        assert screen.info is not None and screen.info.game == "avalon"
        await pilot.press("escape", "question_mark")
        assert isinstance(app.screen, HelpScreen)


async def test_the_list_is_read_again_on_demand(folder: Path) -> None:
    app = listing(folder)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 4)
        write(folder, "kuhn", seats=2, seed=9, name="e.arena")
        await pilot.press("r")
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 5)
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Open", "Read again", "Theme"} <= titles


async def test_a_folder_without_records_says_so(tmp_path: Path) -> None:
    app = listing(tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "No record here; their names end in .arena." in screen_text(pilot))
        await pilot.press("enter")
        assert not isinstance(app.screen, MatchScreen)


async def test_a_summary_names_the_winners_and_why(tmp_path: Path) -> None:
    record = read_record(write(tmp_path, "werewolf", seats=7, seed=4))
    assert record.footer is not None
    game, players, outcome, events = summary(record)
    assert game == "werewolf" and players.startswith("Ada, Bors")
    assert record.footer.outcome.reason in outcome and int(events) == record.footer.events
