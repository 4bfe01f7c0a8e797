"""How the screens of a server and of a seat look: compared picture by picture, as in `test_snapshots`."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from clients.match import Turn
from clients.spectator.screens.polled import PolledScreen
from clients.spectator.server_app import ServerApp
from games.spaces import Choice, Subset, Text
from tests.clients.spectator.facts import StillFacts
from tests.clients.spectator.seats import Table, asked, opening, person, seated
from tests.clients.spectator.showing import until

Run = Callable[[Pilot[None]], Awaitable[None]]

SERVER: dict[str, tuple[str, tuple[int, int], tuple[str, ...], bool]] = {
    "lobby": ("lobby", (120, 30), ("down",), False),
    "lobby-80": ("lobby", (80, 24), ("g",), False),
    "lobby-help": ("lobby", (100, 30), ("question_mark",), False),
    "lobby-empty": ("lobby", (80, 14), (), True),
    "ratings": ("ratings", (120, 30), ("down",), False),
    "ratings-60": ("ratings", (60, 20), ("g",), False),
    "tournament": ("tournament", (120, 30), (), False),
    "tournament-80": ("tournament", (80, 24), ("t",), False),
}


@pytest.mark.parametrize("look", SERVER)
def test_the_screens_of_a_server_look_as_they_did(snap_compare: Any, look: str) -> None:
    show, size, keys, empty = SERVER[look]

    async def run(pilot: Pilot[None]) -> None:
        def told() -> bool:
            return isinstance(pilot.app.screen, PolledScreen) and pilot.app.screen.told is not None

        await until(pilot, told)
        for key in keys:
            await pilot.press(key)
            await until(pilot, lambda: True)

    app = ServerApp("ws://arena.example:8420", facts=StillFacts(empty=empty), show=show, poll_s=3600)
    assert snap_compare(app, terminal_size=size, run_before=run)


def test_a_server_that_is_away_looks_as_it_did(snap_compare: Any) -> None:
    facts = StillFacts()

    async def run(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, PolledScreen)
        await until(pilot, lambda: screen.told is not None)
        facts.away = True
        await pilot.press("r")
        await until(pilot, lambda: screen.failures == 1)

    app = ServerApp("ws://arena.example:8420", facts=facts, poll_s=3600)
    assert snap_compare(app, terminal_size=(90, 20), run_before=run)


SPACES: dict[str, Any] = {
    "vote": Choice(("approve", "reject"), label="vote"),
    "team": Subset(("0", "1", "2", "3", "4"), 2, label="propose"),
    "speech": Text(300, label="speak"),
    "seat": Choice(("1", "2", "3", "4", "5", "6", "abstain"), label="vote", fallback="abstain"),
}
SEATS: dict[str, tuple[str, int, tuple[int, int], tuple[str, ...], dict[str, Any]]] = {
    "vote": ("avalon", 5, (120, 40), (), {}),
    "vote-asked": ("avalon", 5, (80, 24), ("2",), {}),
    "team": ("avalon", 5, (100, 30), ("1", "3", "4", "enter"), {}),
    "speech-80": ("avalon", 5, (80, 24), tuple("I am good."), {}),
    "speech-again": (
        "avalon",
        5,
        (60, 20),
        (),
        {"attempt": 1, "failure": "illegal", "reason": "No such word."},
    ),
    "seat": ("werewolf", 7, (100, 32), ("down",), {}),
    "leave": ("avalon", 5, (80, 24), ("escape", "q"), {}),
    "help": ("avalon", 5, (100, 50), ("escape", "question_mark"), {}),
}


@pytest.mark.parametrize("look", SEATS)
def test_a_seat_looks_as_it_did(snap_compare: Any, look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game, seats, size, keys, more = SEATS[look]
    table = Table(game, seats=seats)
    monkeypatch.setattr(Turn, "seconds_left", lambda self: 67.0)

    async def run(pilot: Pilot[None]) -> None:
        screen = await seated(pilot)
        table.happen(*opening(game, seats=seats, seed=3, at=0))
        table.ask(SPACES.get(look.partition("-")[0], SPACES["vote"]), **more)
        await asked(pilot, screen)
        await pilot.press(*keys)
        await pilot.pause()

    assert snap_compare(person(table), terminal_size=size, run_before=run)


def test_the_end_of_a_match_looks_as_it_did(snap_compare: Any) -> None:
    table = Table("kuhn", seats=2)

    async def run(pilot: Pilot[None]) -> None:
        screen = await seated(pilot)
        table.happen(*opening("kuhn", seats=2, seed=3, at=0))
        table.end()
        await until(pilot, lambda: screen.ended)

    assert snap_compare(person(table), terminal_size=(80, 24), run_before=run)


class _Waits(Table):
    """A seat that never comes."""

    async def matches(self) -> Any:
        self.tell("The Resistance: Avalon: 2 of 5 players are here.")
        self.trouble = "The connection is lost (it was closed); trying again."
        self.on_change()
        await until_never()
        yield


async def until_never() -> None:
    import asyncio

    await asyncio.Event().wait()


def test_the_wait_for_a_seat_looks_as_it_did(snap_compare: Any) -> None:
    assert snap_compare(person(_Waits("kuhn", seats=2)), terminal_size=(80, 16))
