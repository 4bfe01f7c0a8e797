"""A run of the loop on the screen: its figures, its tasks, stepping through attempts, and following as it goes on."""

from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable

from clients.spectator.app import SpectatorApp
from clients.spectator.home_app import HomeApp
from clients.spectator.runs import RunTold
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.evolve import EASE, EvolveScreen
from clients.spectator.screens.polled import PolledScreen
from clients.spectator.screens.runs import RunsScreen
from clients.spectator.widgets.task_pane import TaskPane
from tests.clients.spectator.showing import screen_text, until
from tests.clients.spectator.told import FAILED, PLAN, TASKS, TOLD, StillRun, StillRuns, figures, task

pytestmark = pytest.mark.asyncio

WIDE, NARROW = (150, 50), (80, 24)


def following(source: StillRun) -> SpectatorApp:
    return SpectatorApp({"run": lambda: EvolveScreen(source, poll_s=3600)})


async def shown(pilot: Pilot[None]) -> EvolveScreen:
    def told() -> bool:
        return isinstance(pilot.app.screen, EvolveScreen) and pilot.app.screen.told is not None

    await until(pilot, told)
    screen = pilot.app.screen
    assert isinstance(screen, EvolveScreen)
    return screen


async def goes_on(pilot: Pilot[None], source: StillRun, told: RunTold) -> None:
    """Let the run go on, and the screen read it."""
    source.told = told
    asked = source.asked
    await pilot.press("r")
    await until(pilot, lambda: source.asked > asked)


async def test_every_figure_of_a_run_stands_on_the_screen() -> None:
    source = StillRun()
    app = following(source)
    async with app.run_test(size=(160, 66)) as pilot:
        await shown(pilot)
        text = screen_text(pilot)
        for words in (
            "Run frontier · learner",
            "● under way · generation 22 · 384 tasks · 480 attempts · 1:01",
            "generation 9  collapse: success of 'open' fell",
            "set to train       55% 45–65",
            "first tries        40% 30–50",
            "retention          90% 80–100",
            "fixed, level 2    100% 90–100    from 25%",
            "fixed, level 4       –",
            "far beyond          0% 0–10",
            "open   20%",
            "2.0 → 7.0",
            "the learner's true level",
            "path length   8.0 → 28.0",
            "bottleneck █████░░░ 62%",
            "refused before they were set: duplicate 7",
            "highest similarity         0.90",
            "5 in use · solved with advice 60% · held back 50% · gain +10% (-20% to +40%) · given up 2",
            "the model proposed 9 tasks, 4 were taken · solved 50%, all others 50%",
            "2 in quarantine",
            "tasks in quarantine: nobody ever solved it 1",
            "3 cases for a person: arena judge audit",
            "1 task whose verdict a person disputes",
            "1 attempt ended by no doing of the actor",
            "judge regression: 20 of 20 right",
            "rolled back to generation 3",
            "Lately the tasks got harder; the agent did not get worse. Success 60% → 50%",
            "✔ solved at step 12 of 30",
            "holding yellow key",
        ):
            assert words in text, words
        lowest = text.index("duplicates: 60%")
        assert text.index("collapse: success") < lowest < text.index("── Success")


async def test_an_attempt_is_stepped_through() -> None:
    app = following(StillRun())
    async with app.run_test(size=WIDE) as pilot:
        screen = await shown(pilot)
        pane = screen.query_one(TaskPane)
        assert pane.step == pane.steps == len(PLAN)
        await pilot.press("home")
        assert pane.step == 0 and "step 0 of 12  the start" in screen_text(pilot)
        await pilot.press("right", "right", "right", "right")
        assert "step 4 of 12  take  + has yellow key" in screen_text(pilot)
        await pilot.press("left", "end", "right")
        assert pane.step == len(PLAN)
        await pilot.press("down", "down")
        assert "✔ try 3 of 3: solved at step 12" in screen_text(pilot)
        await pilot.press("left_square_bracket")
        assert "◌ try 2 of 3: the model did not answer" in screen_text(pilot)
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert "✘ try 1 of 3: 'stand at the exit'" in screen_text(pilot)
        await pilot.press("down")
        assert "held out for the test set" in screen_text(pilot) and "step 0 of 0" in screen_text(pilot)
        await pilot.press("right", "left_square_bracket", "down")
        assert "⊘ nobody ever solved it" in screen_text(pilot)
        await pilot.press("down")
        assert "You are in the kitchen, holding the lamp." in screen_text(pilot)


async def test_the_newest_task_is_followed_until_an_older_one_is_looked_at() -> None:
    source = StillRun()
    app = following(source)
    async with app.run_test(size=WIDE) as pilot:
        screen = await shown(pilot)
        pane = screen.query_one(TaskPane)
        newer = replace(TOLD, tasks=(task(6, FAILED), *TASKS))
        await goes_on(pilot, source, newer)
        assert pane.shown == newer.tasks[0] and pane.step == 7
        await pilot.press("down", "left", "left")
        assert pane.shown == TASKS[0] and pane.step == 10 and not screen.following
        later = tuple(task(number) for number in range(99, 59, -1))
        await goes_on(pilot, source, replace(TOLD, figures=figures(20), tasks=later))
        assert pane.shown == TASKS[0] and pane.step == 10
        assert "93 tasks were set since; f goes on to the newest." in screen_text(pilot)
        assert "generation 38" in screen_text(pilot)
        await pilot.press("f")
        assert pane.shown == later[0] and screen.following
        assert "were set since" not in screen_text(pilot)
        await goes_on(pilot, source, replace(TOLD, tasks=()))
        assert pane.shown is None


async def test_a_narrow_screen_shows_figures_or_tasks() -> None:
    app = following(StillRun())
    async with app.run_test(size=NARROW) as pilot:
        await shown(pilot)
        assert "── Alerts" in screen_text(pilot) and "step 12 of 12" not in screen_text(pilot)
        await pilot.press("v")
        assert "── Alerts" not in screen_text(pilot) and "step 12 of 12" in screen_text(pilot)
        await pilot.press("down")
        assert "✘ 'stand at the exit'" in screen_text(pilot)
        await pilot.press("v")
        assert "── Alerts" in screen_text(pilot)


@pytest.mark.parametrize("width", [60, 109, 110, 200])
async def test_it_is_drawn_at_every_width(width: int) -> None:
    app = following(StillRun())
    async with app.run_test(size=(width, 24)) as pilot:
        await shown(pilot)
        await pilot.press("v")
        assert "frontier" in screen_text(pilot)


async def test_a_run_that_has_not_begun_and_one_without_a_generation() -> None:
    source = StillRun(RunTold("young", None))
    app = following(source)
    async with app.run_test(size=WIDE) as pilot:
        await shown(pilot)
        assert "The run has not begun yet." in screen_text(pilot)
        await pilot.press("right", "f", "left_square_bracket", "down")
        await goes_on(pilot, source, RunTold("young", True, {**figures(0), "series": []}))
        text = screen_text(pilot)
        assert "No generation is done yet." in text and "The run has not begun yet." not in text
        assert "generation –" in text


async def test_what_cannot_be_read_is_said_and_what_was_told_stays() -> None:
    source = StillRun()
    app = following(source)
    async with app.run_test(size=WIDE) as pilot:
        screen = await shown(pilot)
        source.away = True
        await pilot.press("r")
        await until(pilot, lambda: screen.failures == 1)
        text = screen_text(pilot)
        assert "memory.db: the file is damaged" in text and "What is shown was told before." in text
        assert "── Success" in text


async def test_who_watches_asks_the_less_the_longer_it_takes() -> None:
    app = following(StillRun())
    async with app.run_test(size=WIDE) as pilot:
        screen = await shown(pilot)
        screen._poll_s = 1.0
        assert await screen._ask() >= 1.0
        screen.fetch = slow(screen)  # type: ignore[method-assign]
        assert await screen._ask() == EASE * 60.0


def slow(screen: EvolveScreen):  # type: ignore[no-untyped-def]
    async def fetch() -> RunTold:
        screen._took_s = 60.0
        return TOLD

    return fetch


async def test_help_explains_the_keys_and_the_signs_once() -> None:
    app = following(StillRun())
    async with app.run_test(size=(120, 60)) as pilot:
        screen = await shown(pilot)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        text = screen_text(pilot)
        assert "Read the files now" in text and "Ask the server now" not in text
        assert "a patrol, with the way it goes next" in text
        await pilot.press("escape", "escape")
        assert app.screen is screen  # there is no list to go back to
        titles = [command.title for command in app.get_system_commands(screen)]
        assert {"Follow", "Read now", "Next try", "Theme"} <= set(titles) and len(titles) == len(set(titles))


async def test_the_runs_of_a_home_are_listed_and_opened() -> None:
    runs = StillRuns()
    app = HomeApp(
        {"records": lambda: RunsScreen(StillRuns(empty=True)), "runs": lambda: RunsScreen(runs, poll_s=3600)},
        first="runs",
    )
    async with app.run_test(size=(110, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.told is not None)
        text = screen_text(pilot)
        assert "● under way" in text and "■ at rest" in text and "● 1 under way · 2 in all" in text
        assert "24" in text and "55%" in text
        await pilot.press("down", "enter")
        assert (await shown(pilot)).source.name == "young"
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)
        await pilot.press("1")
        await until(pilot, lambda: "No run here yet" in screen_text(pilot))
        await pilot.press("enter", "question_mark")
        assert "To the runs" in screen_text(pilot)


async def test_the_one_run_that_is_under_way_is_opened_over_the_list() -> None:
    runs = StillRuns()
    app = HomeApp({"runs": lambda: RunsScreen(runs, opened="frontier", poll_s=3600)}, first="runs")
    async with app.run_test(size=WIDE) as pilot:
        await shown(pilot)
        assert runs.opened == ["frontier"]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and app.screen.told is not None)
        table = app.screen.query_one(DataTable)
        assert table.row_count == 2 and isinstance(app.screen, PolledScreen)
