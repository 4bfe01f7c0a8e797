"""The person's queue on the screen: cases stepped through, answered, skipped; and nothing that was answered is lost."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from clients.spectator.app import SpectatorApp
from clients.spectator.screens.audit import AuditScreen
from clients.spectator.screens.dialogs import AskDialog
from clients.spectator.settings import Settings, load_settings, save_settings
from clients.spectator.widgets.case_pane import AttemptPane
from clients.spectator.widgets.walk import UNKNOWN_ACTION
from tests.clients.spectator.showing import screen_text, until
from tests.clients.spectator.told import CASES, StillQueue

pytestmark = pytest.mark.asyncio

SIZE = (120, 40)


def auditing(queue: StillQueue, settings: Path | None = None) -> SpectatorApp:
    return SpectatorApp({"audit": lambda: AuditScreen(queue, poll_s=3600)}, settings_path=settings)


async def opened(pilot: Pilot[None]) -> AuditScreen:
    def told() -> bool:
        return isinstance(pilot.app.screen, AuditScreen) and pilot.app.screen.told is not None

    await until(pilot, told)
    screen = pilot.app.screen
    assert isinstance(screen, AuditScreen)
    return screen


async def kept(pilot: Pilot[None], screen: AuditScreen, queue: StillQueue, count: int) -> None:
    """Wait until so many answers are kept and the screen has gone on."""
    await until(pilot, lambda: len(queue.answers) == count)
    await until(pilot, lambda: screen.told is not None and len(screen.told.cases) == len(queue.cases))


async def test_a_case_is_shown_with_its_whole_chain() -> None:
    app = auditing(StillQueue())
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot)
        text = screen_text(pilot)
        for words in (
            "case 1 of 3 · 3 wait · 0 answered · 0 disputed",
            "First hold the yellow key, then have the yellow door open",
            "Did the actor solve the task within its steps?",
            "step 0 of 7  the start",
            "1–4    down x3, take",
            "+ has yellow key",
            "unmet at step 7; open: stand at the exit",
            "rules    no   'stand at the exit' was open",
            "model    was not asked",
            "decided  no, by the rules",
            "drawn for a look, whatever was decided",
            "run frontier · case a1a1a1a1a1a1",
        ):
            assert words in text, words
        await pilot.press("s")
        text = screen_text(pilot)
        assert "model    yes  sure to 62%  near" in text and "decided  nobody yet" in text
        assert "… 3 stretches left out …" in text and "the model was not sure enough" in text
        await pilot.press("s")
        text = screen_text(pilot)
        assert "model    open judge_timeout: no answer within 30 s" in text and "at first at hall" in text
        assert "You are in the hall" in text


async def test_the_attempt_is_stepped_through_and_says_no_word_of_whoever_made_it() -> None:
    app = auditing(StillQueue())
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        pane = screen.query_one(AttemptPane)
        await pilot.press("right_square_bracket")
        text = screen_text(pilot)
        assert pane.step == 4 and "▶ 1–4" in text and "step 4 of 7  take" in text and "@" in text
        await pilot.press("right")
        assert "▶ 5–7" in screen_text(pilot) and "▶ 1–4" not in screen_text(pilot)
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert pane.step == 0
        await pilot.press("end")
        assert pane.step == 7
        await pilot.press("right_square_bracket", "home", "left")
        assert pane.step == 0
        await pilot.press("s", "end")
        text = screen_text(pilot)
        assert UNKNOWN_ACTION in text or pane.step < 5
        assert "sudo" not in text


async def test_answers_are_asked_about_and_kept_before_the_next_case() -> None:
    queue = StillQueue()
    app = auditing(queue)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("n")
        assert isinstance(app.screen, AskDialog) and "cannot be taken back" in screen_text(pilot)
        await pilot.press("escape")
        assert queue.answers == [] and screen.case == CASES[0]
        await pilot.press("y")
        assert "Decided was no, by the rules. To say yes is a dispute" in screen_text(pilot)
        await pilot.press("y")
        await kept(pilot, screen, queue, 1)
        text = screen_text(pilot)
        assert screen.case == CASES[1] and "Kept: yes, which disputes the decision (case a1a1a1a1)." in text
        assert "case 1 of 2 · 2 wait · 1 answered" in text
        await pilot.press("n", "enter")
        await kept(pilot, screen, queue, 2)
        await pilot.press("y", "enter")
        await kept(pilot, screen, queue, 3)
        assert queue.answers == [(CASES[0].id, True), (CASES[1].id, False), (CASES[2].id, True)]
        assert "3 answers of yours kept. Nothing waits. q leaves." in screen_text(pilot)
        await pilot.press("y", "n", "s", "b", "left", "right_square_bracket", "end")
        assert len(queue.answers) == 3
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_skipped_case_stays_and_comes_again() -> None:
    queue = StillQueue()
    app = auditing(queue)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("s", "y", "y")
        await kept(pilot, screen, queue, 1)
        assert queue.answers == [(CASES[1].id, True)] and screen.case == CASES[2]
        await pilot.press("s")
        assert screen.case == CASES[0]
        await pilot.press("b")
        assert screen.case == CASES[2] and "Kept" not in screen_text(pilot)


async def test_what_cannot_be_kept_is_said_and_the_case_stays() -> None:
    queue = StillQueue()
    app = auditing(queue)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        queue.refuses = True
        await pilot.press("n", "y")
        await until(pilot, lambda: "Not kept: case a1a1: bob answered no before" in screen_text(pilot))
        assert screen.case == CASES[0] and screen.answered == 0


@pytest.mark.parametrize("disputes", [False, True])
async def test_answers_are_kept_at_once_where_that_is_wished(tmp_path: Path, disputes: bool) -> None:
    path = tmp_path / "watch.json"
    save_settings(path, Settings(confirm=False))
    queue = StillQueue()
    app = auditing(queue, path)
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await pilot.press("y" if disputes else "n")
        if disputes:
            assert isinstance(app.screen, AskDialog)
            return
        await kept(pilot, screen, queue, 1)
        (command,) = [c for c in app.get_system_commands(screen) if c.title == "Ask before each answer"]
        command.callback()
    assert load_settings(path).confirm


async def test_new_cases_join_the_others_while_one_is_looked_at() -> None:
    queue = StillQueue(CASES[1:])
    app = auditing(queue)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("right", "right")
        queue.cases.insert(0, CASES[0])
        await pilot.press("r")
        await until(pilot, lambda: "case 2 of 3" in screen_text(pilot))
        assert screen.case == CASES[1] and screen.query_one(AttemptPane).step == 2
        await pilot.press("question_mark")
        assert "Leave the case open and go to the next one" in screen_text(pilot)
