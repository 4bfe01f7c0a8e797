"""A person at a seat, for tests: scripted seats, and a way to play whatever is asked."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from textual.pilot import Pilot

from clients.human import Seats, option_keys
from clients.match import Match, Turn
from clients.protocol import messages as wire
from clients.spectator.person import PersonApp
from clients.spectator.screens.dialogs import AskDialog
from clients.spectator.screens.seat import SeatScreen
from clients.spectator.widgets.answer import Speech
from games.base import Event
from games.registry import load_game
from games.spaces import Choice, Subset
from tests.clients.spectator.showing import NAMES, until


class Table(Seats):
    """One seat of which the test says what it is told; `sent` holds the answers."""

    def __init__(self, game: str, *, seats: int, at: int = 0, options: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.game = load_game(game)
        self.sent: list[dict[str, Any]] = []
        self.left = False
        self.tells_left = True
        """Whether the server says that a seat was given up."""
        self.accepts = True
        """Whether an answer is acknowledged."""
        self.match: Match
        self._count = 0
        self._request = 0
        self._seated = wire.Seated(
            match="a1b2", game=game, rules=self.game.version, options=options or {}, seats=seats, seat=at,
            names=list(NAMES[:seats]), resume="r", events=0, retries=2, deadline_s=60,
        )  # fmt: skip

    async def matches(self) -> AsyncIterator[Match]:
        self.match = Match(self, self._seated)
        yield self.match

    def act(self, match: str, **answer: Any) -> bool:
        self.sent.append(answer)
        if self.accepts:
            acted = wire.Acted(match=match, request=answer["request"])
            asyncio.get_running_loop().call_soon(self.match.take, acted)
        return True

    def leave(self, match: str) -> None:
        from clients.errors import SeatLost

        self.left = True
        if self.tells_left:
            self.match.fail(SeatLost("left", "the seat is gone"))

    def tell(self, state: str, *, starts_in_s: float | None = None) -> None:
        super().tell(state, starts_in_s=starts_in_s)

    def happen(self, *events: Event) -> None:
        """Tell events."""
        rows = [[event.kind, dict(event.data)] for event in events]
        self.match.take(wire.Events(match="a1b2", first=self._count, events=rows))
        self._count += len(rows)

    def ask(self, space: Any, **more: Any) -> None:
        """Ask for an answer."""
        self._request += 1
        what: dict[str, Any] = {"deadline_s": 75.0, "bank_s": 30.0, "schema": None, **more}
        self.match.take(
            wire.Turn(
                match="a1b2", request=self._request, space=space.to_data(), describe=space.describe(), **what
            )
        )

    def stale(self, reason: str) -> None:
        """Say that the answer came too late."""
        self.match.take(wire.Stale(match="a1b2", request=self._request, reason=reason))  # type: ignore[arg-type]

    def end(self, *, ended: str = "won", returns: tuple[float, ...] = (1.0, -1.0)) -> None:
        """End the match."""
        seats = self._seated.seats
        self.match.take(
            wire.Over(
                match="a1b2", reason="by the test", returns=list(returns), teams=["x"] * seats,
                roles=["king"] * seats, ended=[ended] * seats, counts={},
            )
        )  # fmt: skip


def opening(game: str, *, seats: int, seed: int, at: int) -> list[Event]:
    """Return the events of a deal that a seat sees."""
    state = load_game(game).new(seats=seats, seed=seed, options={})
    return [event for event in state.history if event.visible_to(at)]


async def seated(pilot: Pilot[None]) -> SeatScreen:
    """Wait for the seat's screen."""
    await until(pilot, lambda: any(isinstance(screen, SeatScreen) for screen in pilot.app.screen_stack))
    screen = next(screen for screen in pilot.app.screen_stack if isinstance(screen, SeatScreen))
    await until(pilot, lambda: screen.is_mounted and screen.timeline is not None)
    return screen


async def asked(pilot: Pilot[None], screen: SeatScreen) -> None:
    """Wait for a turn."""
    await until(pilot, lambda: screen.asked is not None and screen._panel_widget.widget is not None)
    await until(
        pilot, lambda: screen._panel_widget.widget is not None and screen._panel_widget.widget.has_focus
    )


async def play_on(pilot: Pilot[None], screen: SeatScreen, rng: random.Random) -> int:
    """Play as a person would, with keys alone, to the end; return how many answers were given."""
    count = 0
    while True:
        await until(pilot, lambda: screen.ended or (screen.asked is not None and screen.asked.open))
        turn = screen.asked
        if screen.ended or turn is None:
            return count
        count += await _play(pilot, screen, turn, rng)


async def _play(pilot: Pilot[None], screen: SeatScreen, turn: Turn, rng: random.Random) -> bool:
    """Answer one turn; say whether it was still there."""
    panel = screen._panel_widget

    def there() -> bool:
        return screen.asked is turn and panel.headline.turn is turn and panel.widget is not None

    await until(pilot, lambda: screen.ended or screen.asked is not turn or there())
    if not there():
        return False
    space = turn.space
    keys = {
        option: key
        for key, option in option_keys(getattr(space, "options", ()), seats=turn.match.seats).items()
    }
    if isinstance(panel.widget, Speech):
        await pilot.press("h", "i", "enter")
    elif isinstance(space, Choice):
        await pilot.press(keys[rng.choice(space.options)])
    elif isinstance(space, Subset):
        await pilot.press(*(keys[option] for option in rng.sample(space.options, space.size)), "enter")
    await pilot.pause()
    if isinstance(pilot.app.screen, AskDialog):
        await pilot.press("y")
    await until(pilot, lambda: screen.ended or screen.asked is not turn)
    return True


def person(seats: Seats, **more: Any) -> PersonApp:
    """Return the application."""
    return PersonApp(seats, **more)
