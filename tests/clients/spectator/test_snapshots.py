"""How every screen looks: compared picture by picture with those in `__snapshots__`.

After a change that is meant: `pytest tests/clients/spectator/test_snapshots.py --snapshot-update`, and look.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from clients.spectator.app import SpectatorApp
from clients.spectator.screens.records import RecordsScreen
from replays.visitors import Perspective
from tests.clients.spectator.showing import (
    entries,
    long_match,
    named,
    opened,
    until,
    watching,
    write,
    write_entries,
)

Run = Callable[[Pilot[None]], Awaitable[None]]


def pressing(*keys: str) -> Run:
    async def run(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return run


PHASE = "right_square_bracket"

LOOKS: dict[str, tuple[str, int, Perspective, tuple[int, int], tuple[str, ...]]] = {
    "avalon-public": ("avalon", 5, "public", (120, 40), (PHASE,) * 4),
    "avalon-everything": ("avalon", 7, "all", (120, 40), (PHASE,) * 4),
    "avalon-seat": ("avalon", 7, 2, (100, 30), (PHASE,) * 3),
    "avalon-end-80": ("avalon", 5, "all", (80, 24), ("end",)),
    "avalon-small": ("avalon", 10, "public", (60, 20), (PHASE,) * 3),
    "werewolf-everything": ("werewolf", 12, "all", (120, 40), (PHASE, PHASE)),
    "werewolf-public-80": ("werewolf", 9, "public", (80, 24), (PHASE,) * 3),
    "werewolf-small": ("werewolf", 12, "all", (60, 20), (PHASE,)),
    "kuhn": ("kuhn", 2, "all", (80, 24), ("end",)),
    "search": ("avalon", 5, "public", (100, 30), ("slash", *"approved", "enter", "slash", *"seat")),
    "scrolled-and-filtered": (
        "avalon",
        5,
        "all",
        (100, 30),
        ("end", "pageup", "v", "down", "space", "enter"),
    ),
    "jump": ("avalon", 5, "all", (100, 30), ("g", *"9999", "enter")),
    "filter": ("avalon", 5, "all", (100, 30), ("v",)),
    "help": ("werewolf", 9, "public", (100, 50), ("question_mark",)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_match_screen_looks_as_it_did(snap_compare: Any, tmp_path: Path, look: str) -> None:
    game, seats, perspective, size, keys = LOOKS[look]
    path = write(tmp_path, game, seats=seats, seed=3, messy=perspective == "all")
    assert snap_compare(watching(path, perspective), terminal_size=size, run_before=pressing(*keys))


def test_a_match_that_goes_on_looks_as_it_did(snap_compare: Any, tmp_path: Path) -> None:
    head, made = long_match(300)
    path = write_entries(tmp_path / "w.arena", head, made[:500])
    assert snap_compare(watching(path, "all"), terminal_size=(110, 32), run_before=pressing("left"))


def test_a_light_theme_looks_as_it_did(snap_compare: Any, tmp_path: Path) -> None:
    async def run(pilot: Pilot[None]) -> None:
        await opened(pilot)
        pilot.app.theme = "textual-light"
        await pilot.press(PHASE, PHASE)

    path = write(tmp_path, "avalon", seats=7, seed=3)
    assert snap_compare(watching(path, "all"), terminal_size=(100, 30), run_before=run)


def test_the_list_of_records_looks_as_it_did(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("records")
    folder.mkdir()
    write(folder, "kuhn", seats=2, seed=3)
    write(folder, "werewolf", seats=9, seed=4)
    head = named("avalon", seats=5, seed=1)
    write_entries(folder / "cut.arena", head, entries(head)[0][:30])

    async def run(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(getattr(pilot.app.screen, "_paths", ())) == 3)
        await pilot.press("down")

    app = SpectatorApp({"records": lambda: RecordsScreen(folder)})
    assert snap_compare(app, terminal_size=(90, 16), run_before=run)
