"""How the screens of runs and of the person's queue look: compared picture by picture, as in `test_snapshots`."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from clients.spectator.app import SpectatorApp
from clients.spectator.screens.audit import AuditScreen
from clients.spectator.screens.evolve import EvolveScreen
from clients.spectator.screens.polled import PolledScreen
from clients.spectator.screens.runs import RunsScreen
from tests.clients.spectator.showing import until
from tests.clients.spectator.told import StillQueue, StillRun, StillRuns

LOOKS: dict[str, tuple[Callable[[], Screen[Any]], tuple[int, int], tuple[str, ...]]] = {
    "run": (lambda: EvolveScreen(StillRun(), poll_s=3600), (160, 60), ("left",) * 6),
    "run-110": (lambda: EvolveScreen(StillRun(), poll_s=3600), (110, 32), ("down", "down")),
    "run-80": (lambda: EvolveScreen(StillRun(), poll_s=3600), (80, 24), ()),
    "run-80-tasks": (lambda: EvolveScreen(StillRun(), poll_s=3600), (80, 24), ("v", "down")),
    "runs": (lambda: RunsScreen(StillRuns(), poll_s=3600), (110, 12), ("down",)),
    "case": (lambda: AuditScreen(StillQueue(), poll_s=3600), (120, 32), ("right_square_bracket",)),
    "case-80": (lambda: AuditScreen(StillQueue(), poll_s=3600), (80, 24), ("s",)),
    "case-asked": (lambda: AuditScreen(StillQueue(), poll_s=3600), (100, 30), ("y",)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_it_looks_as_it_did(snap_compare: Any, look: str) -> None:
    screen, size, keys = LOOKS[look]

    async def run(pilot: Pilot[None]) -> None:
        def told() -> bool:
            return isinstance(pilot.app.screen, PolledScreen) and pilot.app.screen.told is not None

        await until(pilot, told)
        for key in keys:
            await pilot.press(key)
            await until(pilot, lambda: True)

    assert snap_compare(SpectatorApp({"screen": screen}), terminal_size=size, run_before=run)
