"""A run of training on the screen: read from its folder as it grows."""

import json
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import DataTable

from clients.spectator.app import SpectatorApp
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.training import TrainingScreen
from clients.spectator.training import METRICS, RUN_FILE, is_training, read_training, spark
from tests.clients.spectator.showing import SIZE, screen_text, until


def _line(kind: str, update: int, **values: Any) -> str:
    return json.dumps({"kind": kind, "update": update, **values}) + "\n"


def _update(update: int, **values: Any) -> str:
    learner = {"kl": 0.01 * update, "entropy": 0.5}
    whole = {"matches": 24 * update, "seconds": 3.0, "return": 0.25, "by_role": {"kuhn first": -0.1}}
    return _line("update", update, learner=learner, **whole, **values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "kuhn"
    path.mkdir()
    (path / RUN_FILE).write_text('{"kind": "train"}')
    against = [{"game": "kuhn", "opponent": "equilibrium", "score": 0.47}]
    (path / METRICS).write_text(
        _line("start", 0)
        + _line("evaluation", 0, nash_conv={"kuhn": 0.917}, against=against)
        + _update(1)
        + _line("alarm", 1, text="an update moved \x1b[2Jthe policy", action="back_off")
    )
    return path


def test_a_run_is_read_as_far_as_it_is_written(folder: Path) -> None:
    assert is_training(folder) and not is_training(folder.parent)
    with (folder / METRICS).open("a") as file:
        file.write(_update(2)[:-20])
    found = read_training(folder)
    assert found.head() == "kuhn: 1 updates, 24 matches, 3 s"
    assert {figure.name: figure.latest for figure in found.figures()} == {
        "NashConv at kuhn": 0.917,
        "kuhn against equilibrium": 0.47,
        "return": 0.25,
        "KL from reference": 0.01,
        "entropy": 0.5,
        "return, kuhn first": -0.1,
    }
    with (folder / METRICS).open("a") as file:
        file.write("\n" + _line("stop", 2, why="updates"))
    assert read_training(folder).head().endswith("stopped by updates")
    assert read_training(folder.parent).figures() == []


def test_a_curve_is_as_wide_as_there_is_room() -> None:
    assert spark([], cells=5) == spark([1.0], cells=0) == ""
    assert spark([0, 1, 2, 3, 4, 5, 6, 7], cells=8) == "▁▂▃▄▅▆▇█"
    assert spark([2, 2, 2], cells=8) == "▄▄▄"
    assert spark([0.0] * 50 + [1.0] * 50, cells=4) == "▁▁██"


@pytest.mark.asyncio
async def test_the_screen_shows_what_is_measured_and_follows_it(folder: Path) -> None:
    app = SpectatorApp({"training": lambda: TrainingScreen(folder, poll_s=0.05)})
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.screen.query_one(DataTable).row_count == 6)
        text = screen_text(pilot)
        for words in ("kuhn: 1 updates", "NashConv at kuhn", "0.917", "Update 1: an update moved"):
            assert words in text, words
        assert "\x1b" not in text
        with (folder / METRICS).open("a") as file:
            file.write(_update(2))
        await until(pilot, lambda: "kuhn: 2 updates, 48 matches" in screen_text(pilot))
        assert "▁█" in screen_text(pilot)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)


@pytest.mark.asyncio
async def test_a_run_without_measures_says_so(tmp_path: Path) -> None:
    app = SpectatorApp({"training": lambda: TrainingScreen(tmp_path)})
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Nothing was measured yet." in screen_text(pilot))
