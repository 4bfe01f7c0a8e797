"""A person at a seat: what is shown and asked, every key, what is sent, and how one goes."""

import asyncio
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from clients.human import ServerSeats
from clients.match import Turn
from clients.spectator.screens import seat as seat_screen
from clients.spectator.screens.dialogs import AskDialog, HelpScreen
from clients.spectator.screens.seat import LATE, SeatScreen
from clients.spectator.screens.waiting import WaitingScreen
from clients.spectator.settings import load_settings
from clients.spectator.widgets.answer import Speech
from games.base import Event
from games.spaces import Choice, Subset, Text
from replays.reader import read_record
from replays.record import SUFFIX
from replays.verify import verify
from tests.arena.connected import serving
from tests.clients.spectator.seats import Table, asked, opening, person, play_on, seated
from tests.clients.spectator.showing import screen_text, until

SIZE = (110, 34)
VOTE = Choice(("approve", "reject"), label="vote")
TEAM = Subset(("0", "1", "2", "3", "4"), 2, label="propose")
SPEECH = Text(40, label="speak")
SEAT = Choice(("1", "2", "3", "abstain"), label="vote", fallback="abstain")

pytestmark = pytest.mark.asyncio


async def _quiet(condition: Callable[[], bool]) -> None:
    """Wait without a pilot, whose application may be gone; the test's timeout ends it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_turn_is_plain_to_see_with_its_clock_and_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "seconds_left", lambda self: 105.0)
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.happen(*opening("avalon", seats=5, seed=1, at=0))
        await until(pilot, lambda: "The match begins" in screen_text(pilot))
        assert "YOUR TURN" not in screen_text(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        text = screen_text(pilot)
        for words in (
            "YOUR TURN",
            "Vote: choose one",
            "+ 0:30 bank",
            "If you do nothing: approve",
            "1 approve",
        ):
            assert words in text, words
        assert "◐ seat 0 Ada" in text and "◷ 1:15" in text
        assert screen.query_one("#answer").has_class("-turn")


async def test_the_clock_says_when_the_bank_is_used_and_when_it_is_urgent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        for left, words in (
            (61.0, "◷ 0:31 + 0:30 bank"),
            (22.0, "◷ 0:22 of the bank"),
            (0.0, "◷ 0:00 of the bank"),
        ):
            monkeypatch.setattr(Turn, "seconds_left", lambda self, left=left: left)
            screen.tick()
            await pilot.pause()
            assert words in screen_text(pilot)
        monkeypatch.setattr(Turn, "seconds_left", lambda self: 1e9)
        screen.tick()
        await pilot.pause()
        assert "◷" not in screen_text(pilot)


async def test_a_choice_is_sent_when_it_is_meant() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        await pilot.press("2")
        assert isinstance(pilot.app.screen, AskDialog) and "Vote: reject?" in screen_text(pilot)
        await pilot.press("n")
        assert table.sent == []
        await pilot.press("up", "enter")
        assert "Vote: approve?" in screen_text(pilot)
        await pilot.press("escape")
        await pilot.press("down", "enter", "enter")
        await until(pilot, lambda: bool(table.sent))
        assert table.sent == [{"request": 1, "action": "reject", "thought": None}]
        await until(pilot, lambda: screen.asked is None)
        assert "Waiting for the others" in screen_text(pilot)
        await pilot.press("1", "enter", "y")
        assert len(table.sent) == 1, "what was answered is not answered again"


async def test_a_seat_is_chosen_by_its_own_number_and_a_word_by_a_letter() -> None:
    table = Table("werewolf", seats=7)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        for key, action in (("3", "3"), ("a", "abstain"), ("1", "1")):
            table.ask(SEAT)
            await asked(pilot, screen)
            assert "3 seat 3 Dinadan" in screen_text(pilot) and "a abstain" in screen_text(pilot)
            await pilot.press("0", "9", "z")
            assert not isinstance(pilot.app.screen, AskDialog), "these are no options"
            await pilot.press(key, "y")
            await until(pilot, lambda action=action: bool(table.sent) and table.sent[-1]["action"] == action)
            await until(pilot, lambda: screen.asked is None)


async def test_a_subset_is_sent_with_the_exact_count_alone() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(TEAM)
        await asked(pilot, screen)
        await pilot.press("4", "enter")
        assert "Choose exactly 2; you have chosen 1." in screen_text(pilot)
        assert "1 of 2 chosen" in screen_text(pilot)
        await pilot.press("1", "3", "enter")
        assert "you have chosen 3" in screen_text(pilot) and table.sent == []
        await pilot.press("3", "enter")
        assert "Propose: seat 1 Bors, seat 4 Elaine?" in screen_text(pilot)
        await pilot.press("y")
        await until(pilot, lambda: bool(table.sent))
        assert table.sent[0]["action"] == ("1", "4"), "in the order of the options"


async def test_a_speech_is_counted_and_sent_without_a_question() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(SPEECH)
        await asked(pilot, screen)
        assert "40 left" in screen_text(pilot)
        await pilot.press(*"I am good, q1?/")
        assert "25 left" in screen_text(pilot) and isinstance(pilot.app.screen, SeatScreen)
        widget = screen._panel_widget.widget
        assert isinstance(widget, Speech)
        widget.load_text("x" * 42)
        await pilot.press("enter")
        assert "2 characters too many" in screen_text(pilot) and table.sent == []
        widget.load_text("I trust nobody.")
        await pilot.press("enter")
        await until(pilot, lambda: bool(table.sent))
        assert table.sent[0]["action"] == "I trust nobody."
        table.ask(SPEECH)
        await until(pilot, lambda: screen.asked is not None and screen.asked.request == 2)
        await asked(pilot, screen)
        await pilot.press("enter")
        await until(pilot, lambda: len(table.sent) == 2)
        assert table.sent[1]["action"] == "", "nothing said is an answer as well"


async def test_an_answer_that_is_not_taken_is_asked_again_with_the_reason() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(SPEECH)
        await asked(pilot, screen)
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: screen.asked is None)
        table.ask(SPEECH, attempt=1, failure="illegal", reason="the \x1b[31mrules say no.")
        await asked(pilot, screen)
        text = screen_text(pilot)
        assert "Not taken (illegal): the \\u001b[31mrules say no. Attempt 2 of 3." in text
        widget = screen._panel_widget.widget
        assert isinstance(widget, Speech) and widget.text == "hello", "what was written is there again"
        assert screen.sat.turns == 1


@pytest.mark.parametrize("reason", sorted(LATE))
async def test_an_answer_that_comes_too_late_is_told(reason: str) -> None:
    table = Table("avalon", seats=5)
    table.accepts = False
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        await pilot.press("1", "y")
        await until(pilot, lambda: bool(table.sent))
        assert "Sent: approve" in screen_text(pilot)
        table.stale(reason)
        await until(pilot, lambda: LATE[reason][:40] in screen_text(pilot))


async def test_a_question_is_taken_back_when_the_time_is_over() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        await pilot.press("1")
        assert isinstance(pilot.app.screen, AskDialog)
        table.happen(Event("forced", {"seat": 0, "ply": 3, "action": "approve", "failure": "timeout"}))
        await until(pilot, lambda: pilot.app.screen is screen)
        assert "The default was played for you." in screen_text(pilot)
        await pilot.press("y")
        assert table.sent == []


async def test_the_question_before_a_move_can_be_turned_off_and_stays_off(tmp_path: Path) -> None:
    table, settings = Table("avalon", seats=5), tmp_path / "watch.json"
    app = person(table, settings_path=settings)
    async with app.run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        commands = {command.title: command.callback for command in app.get_system_commands(screen)}
        commands["Send moves at once"]()
        assert "Ask before each move" in {command.title for command in app.get_system_commands(screen)}
        table.ask(VOTE)
        await asked(pilot, screen)
        await pilot.press("1")
        await until(pilot, lambda: bool(table.sent))
    assert not load_settings(settings).confirm


async def test_the_bell_rings_at_a_turn_if_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("avalon", seats=5)
    app = person(table)
    rung: list[bool] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append(True))
    async with app.run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        assert not rung
        app.keep(bell=True)
        table.ask(VOTE)
        await until(pilot, lambda: bool(rung))


async def test_leaving_asks_and_forfeits() -> None:
    table = Table("avalon", seats=5)
    app = person(table)
    async with app.run_test(size=SIZE) as pilot:
        await seated(pilot)
        await pilot.press("q")
        assert "Your seat is forfeited then" in screen_text(pilot)
        await pilot.press("n")
        assert not table.left
        await pilot.press("ctrl+q")
        assert isinstance(pilot.app.screen, AskDialog), "the way out of every application asks as well"
        await pilot.press("ctrl+q")
        assert isinstance(pilot.app.screen, AskDialog)
        await pilot.press("y")
        await _quiet(lambda: table.left)
        await _quiet(lambda: not app.is_running or app._exit)
    (sat,) = app.sat
    assert sat.error is not None and "left" in sat.error and app.return_code == 0


async def test_after_the_end_one_leaves_without_a_question() -> None:
    table = Table("kuhn", seats=2)
    app = person(table)
    async with app.run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        await pilot.press("1")
        table.end()
        await until(pilot, lambda: screen.ended and pilot.app.screen is screen)
        assert "You won as king (+1): by the test" in screen_text(pilot) and "q leaves" in screen_text(pilot)
        await pilot.press("q")
        await _quiet(lambda: app._exit)
    assert app.sat[0].error is None and app.sat[0].match.over is not None


async def test_a_lost_connection_is_said_until_it_is_back() -> None:
    table = Table("kuhn", seats=2)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.trouble = "The connection is lost; trying again."
        table.on_change()
        await pilot.pause()
        assert "The connection is lost" in screen_text(pilot)
        table.trouble = ""
        table.on_change()
        await pilot.pause()
        assert "The connection is lost" not in screen_text(pilot)
        assert not screen.query_one("#connection", Static).display


async def test_a_seat_that_is_gone_is_said() -> None:
    from clients.errors import SeatLost

    table = Table("kuhn", seats=2)
    app = person(table)
    async with app.run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.ask(VOTE)
        await asked(pilot, screen)
        table.match.fail(SeatLost("taken", "another window plays this seat"))
        await until(pilot, lambda: screen.ended)
        assert "another window plays this seat" in screen_text(pilot)
        await pilot.press("q")
        await _quiet(lambda: app._exit)
    assert "taken" in str(app.sat[0].error)


async def test_the_feed_is_read_and_searched_between_turns_and_tab_goes_back() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        table.happen(*opening("avalon", seats=5, seed=1, at=0))
        table.ask(SPEECH)
        await asked(pilot, screen)
        await pilot.press(*"draft", "escape")
        assert screen._feed.has_focus
        await pilot.press("slash", *"roles", "enter", "left", "f", "tab")
        widget = screen._panel_widget.widget
        assert isinstance(widget, Speech) and widget.has_focus and widget.text == "draft"
        await pilot.press("tab", "question_mark")
        assert isinstance(pilot.app.screen, HelpScreen) and "which forfeits the seat" in screen_text(pilot)


async def test_a_turn_does_not_take_the_keys_of_who_searches() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        await pilot.press("slash", *"ro")
        table.ask(VOTE)
        await until(pilot, lambda: "YOUR TURN" in screen_text(pilot))
        await pilot.press("2")
        assert not isinstance(pilot.app.screen, AskDialog)
        assert screen.query_one("#search").has_focus


async def test_others_eyes_are_not_to_be_had() -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=SIZE) as pilot:
        screen = await seated(pilot)
        await pilot.press("a", "o", "p", "3")
        await pilot.pause()
        assert screen.info is not None and screen.info.perspective == 0 and screen.info.allowed == (0,)


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (40, 14), (20, 8)])
async def test_every_kind_of_turn_can_be_answered_in_a_narrow_terminal(size: tuple[int, int]) -> None:
    table = Table("avalon", seats=5)
    async with person(table).run_test(size=size) as pilot:
        screen = await seated(pilot)
        table.happen(*opening("avalon", seats=5, seed=1, at=0))
        for space, keys, action in (
            (VOTE, ("2", "y"), "reject"),
            (TEAM, ("0", "4", "enter", "y"), ("0", "4")),
            (SPEECH, ("h", "i", "enter"), "hi"),
        ):
            table.ask(space)
            await asked(pilot, screen)
            assert "YOUR TURN" in screen_text(pilot)
            await pilot.press(*keys)
            await until(pilot, lambda action=action: bool(table.sent) and table.sent[-1]["action"] == action)
            await until(pilot, lambda: screen.asked is None)


async def test_names_that_are_not_told_are_not_shown() -> None:
    table = Table("avalon", seats=5)
    table._seated = table._seated.model_copy(update={"names": []})
    async with person(table).run_test(size=SIZE) as pilot:
        await seated(pilot)
        await until(pilot, lambda: "seat 0 you" in screen_text(pilot))


# With a server


async def test_the_wait_for_a_seat_says_who_is_there_and_when_bots_come(tmp_path: Path) -> None:
    async with serving(tmp_path, fill_after_s=3600.0) as server:
        seats = ServerSeats(server.addresses.websocket, ask={"game": "avalon", "name": "Eve"})
        app = person(seats)
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: "1 of 5 players are here" in screen_text(pilot))
            assert isinstance(pilot.app.screen, WaitingScreen)
            assert re.search(r"free places in \d\d:\d\d", screen_text(pilot))
            await pilot.press("q")
            await _quiet(lambda: app._exit)
        await _quiet(lambda: not server.host.lobbies())
    assert app.sat == [] and app.error is None


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        ({"game": "chess"}, "unknown_game"),
        ({"match": "none"}, "unknown_match"),
        ({"tournament": "x"}, "tournament"),
    ],
)
async def test_a_refusal_is_shown_and_reported(tmp_path: Path, ask: dict[str, Any], text: str) -> None:
    async with serving(tmp_path) as server:
        app = person(ServerSeats(server.addresses.websocket, ask=ask))
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: app.error is not None)
            await until(pilot, lambda: "There is no seat to be had." in screen_text(pilot))
            assert text in str(app.error)
            await pilot.press("q")
            await _quiet(lambda: app._exit)


async def test_a_server_that_is_not_there_is_named() -> None:
    app = person(ServerSeats("ws://127.0.0.1:1", ask={"game": "kuhn"}))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.error is not None and "nothing listens" in screen_text(pilot))


async def test_kuhn_is_played_twice_at_a_server_with_keys_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, fill_after_s=0.0) as server:
        seats = ServerSeats(server.addresses.websocket, ask={"game": "kuhn", "name": "Eve"}, matches=2)
        app = person(seats, count=2)
        rng = random.Random(4)
        async with app.run_test(size=(80, 24)) as pilot:
            for number in (1, 2):
                await until(pilot, lambda number=number: len(app.sat) == number)
                screen = await seated(pilot)
                await play_on(pilot, screen, rng)
                after = "q leaves" if number == 2 else "q goes on to the next match"
                assert after in screen_text(pilot)
                await pilot.press("q")
            await _quiet(lambda: app._exit)
        assert [sat.error for sat in app.sat] == [None, None]
        assert all(sat.match.over is not None for sat in app.sat)
    assert _records(tmp_path) == ["Eve", "Eve"]


async def test_avalon_is_played_at_a_server_with_keys_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, fill_after_s=0.0) as server:
        app = person(ServerSeats(server.addresses.websocket, ask={"game": "avalon", "name": "Eve"}))
        async with app.run_test(size=(100, 30)) as pilot:
            screen = await seated(pilot)
            answers = await play_on(pilot, screen, random.Random(1))
            over = screen.match.over
            assert over is not None and screen.sat.turns == answers > 5
            assert over.counts.get("forced", 0) == over.counts.get("illegal", 0) == 0
            assert screen.timeline is not None and len(screen.timeline) == len(screen.match.events)
            assert over.roles[screen.match.seat] in screen_text(pilot)
            await pilot.press("q")
            await _quiet(lambda: app._exit)
    assert _records(tmp_path) == ["Eve"]


async def test_leaving_a_table_at_a_server_forfeits_the_seat_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat_screen, "PARTING_S", 3600.0)
    async with serving(tmp_path, fill_after_s=0.0) as server:
        app = person(ServerSeats(server.addresses.websocket, ask={"game": "avalon", "name": "Eve"}))
        async with app.run_test(size=(100, 30)) as pilot:
            await seated(pilot)
            await pilot.press("escape", "q", "y")
            await _quiet(lambda: app._exit)
        assert "left" in str(app.sat[0].error)
        await _quiet(lambda: len(_footers(tmp_path)) == 1)
    (record,) = _footers(tmp_path)
    assert record.footer.ended[app.sat[0].match.seat] == "forfeit"
    assert record.footer.ended.count("forfeit") == 1


def _footers(home: Path) -> list[Any]:
    found = [read_record(path) for path in sorted(home.rglob(f"*{SUFFIX}"))]
    return [record for record in found if record.footer is not None]


def _records(home: Path) -> list[str]:
    """Return who of the people sat in each record; all must verify."""
    records = _footers(home)
    assert all(verify(record).ok for record in records)
    return [
        name for record in records for name in (seat.name for seat in record.header.seats) if name == "Eve"
    ]


async def test_a_tournament_is_played_match_by_match(tmp_path: Path) -> None:
    from arena.contest import OnlineTournament

    async with serving(tmp_path) as server:
        server.host.add_tournament(
            OnlineTournament(
                name="cup", game="kuhn", matches=2, players=1, bots=("random",), starts_in_s=3600
            )
        )
        app = person(
            ServerSeats(server.addresses.websocket, ask={"tournament": "cup", "name": "Eve"}), count=None
        )
        async with app.run_test(size=(100, 30)) as pilot:
            for number in (1, 2):
                await until(pilot, lambda number=number: len(app.sat) == number)
                screen = await seated(pilot)
                await play_on(pilot, screen, random.Random(number))
                if number == 1:
                    await until(pilot, lambda: "Your next match has begun" in screen_text(pilot))
                await pilot.press("q")
            await _quiet(lambda: app._exit)
    assert [sat.error for sat in app.sat] == [None, None] and app.error is None
    assert _records(tmp_path) == ["Eve", "Eve"]
