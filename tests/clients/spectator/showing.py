"""What the spectator's tests share: records to watch, and what stands on the screen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from textual.pilot import Pilot

from clients.spectator.app import SpectatorApp
from clients.spectator.pace import Alarm
from clients.spectator.screens.match import MatchScreen
from clients.spectator.source import RecordSource
from games.base import Event
from games.referee import Entry, Input
from replays.record import Header, SeatInfo
from replays.visitors import Perspective
from tests.replays.recording import encode, entries, footer, header, referee

NAMES = (
    "Ada",
    "Bors",
    "Cai",
    "Dinadan",
    "Elaine",
    "Fern",
    "Galahad",
    "Hector",
    "Iseult",
    "Jory",
    "Kay",
    "Lot",
)
SIZE = (120, 40)


def named(game: str, *, seats: int, seed: int) -> Header:
    """Return a header whose players have names."""
    head = header(game, seats=seats, seed=seed, match=f"{game}-{seed}")
    return replace(head, seats=tuple(SeatInfo(NAMES[seat], "random", "1") for seat in range(seats)))


def write(
    folder: Path, game: str, *, seats: int, seed: int = 5, messy: bool = False, name: str | None = None
) -> Path:
    """Write the record of one match of random play and return its path."""
    head = named(game, seats=seats, seed=seed)
    path = folder / (name or f"{game}.arena")
    path.write_bytes(encode(head, *entries(head, messy=messy)))
    return path


def write_entries(path: Path, head: Header, made: list[Entry]) -> Path:
    """Write a record of these entries, without an end."""
    return put(path, encode(head, made, None))


def put(path: Path, data: bytes) -> Path:
    """Write a file in one go, so that nobody reads half of it."""
    spare = path.with_suffix(".new")
    spare.write_bytes(data)
    spare.replace(path)
    return path


def long_match(events: int) -> tuple[Header, list[Entry]]:
    """Return a Werewolf match of at least so many events, in which nobody ever dies."""
    options = {"max_days": 100, "speech_rounds": 5, "wolf_talk_rounds": 5, "doctor_repeat": True}
    head = replace(named("werewolf", seats=12, seed=3), options=options, retries=2)
    table = referee(head)
    doctor = str(table.state.doctor)
    made: list[Entry] = list(table.opening())
    count = len(made)
    while count < events:
        for seat, turn in table.turns().items():
            answer = {"wolf_target": doctor, "protect": doctor, "vote": "abstain"}.get(turn.space.label)
            if turn.space.label in ("speak", "wolf_talk"):
                answer = f"I am seat {seat} and trust nobody, as I said at ply {turn.ply}."
            unread = Input(seat, turn.ply, None, "unparsed", "no option was named")
            for given in ([unread] if turn.space.label == "speak" else []) + [
                Input(seat, turn.ply, turn.space.default if answer is None else answer, thought="Hm.")
            ]:
                fed = table.feed(given)
                count += sum(isinstance(entry, Event) for entry in fed)
                made += fed
        assert table.turns(), "the match ended too early"
    return head, made


class Clock:
    """A clock by which a match is played back, which goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[_Call] = []

    def later(self, delay_s: float, callback: Callable[[], None]) -> Alarm:
        """Call back after so many of this clock's seconds."""
        self._due.append(made := _Call(self.now + delay_s, callback))
        return made

    def go_on(self, seconds: float) -> None:
        """Let time pass, and all that is due by then happen in its order."""
        end = self.now + seconds
        while due := [call for call in self._due if call.at <= end and not call.stopped]:
            first = min(due, key=lambda call: call.at)
            self._due.remove(first)
            self.now = first.at
            first.callback()
        self.now = end


@dataclass
class _Call:
    """What a clock has to do."""

    at: float
    callback: Callable[[], None]
    stopped: bool = False

    def stop(self) -> None:
        self.stopped = True


def watching(
    path: Path,
    perspective: Perspective = "public",
    *,
    ply: int | None = None,
    settings: Path | None = None,
    clock: Clock | None = None,
) -> SpectatorApp:
    """Return an app that shows a record."""
    source: Callable[[], MatchScreen] = lambda: MatchScreen(  # noqa: E731
        RecordSource(path, perspective=perspective, poll_s=0.01),
        ply=ply,
        later=None if clock is None else clock.later,
    )
    return SpectatorApp({"match": source}, settings_path=settings)


async def opened(pilot: Pilot[None]) -> MatchScreen:
    """Wait until the match is on the screen, and return the screen."""
    while not (isinstance(pilot.app.screen, MatchScreen) and pilot.app.screen.timeline is not None):
        await pilot.pause(0.01)
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, MatchScreen)
    return screen


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until something holds that comes from outside the loop; the test's timeout ends it."""
    while not condition():
        await pilot.pause(0.01)
    await pilot.pause()


def screen_text(pilot: Pilot[None]) -> str:
    """Return what stands on the screen, as text."""
    width, height = pilot.app.size
    lines = pilot.app.screen._compositor.render_strips()
    assert len(lines) == height
    return "\n".join("".join(segment.text for segment in line)[:width].rstrip() for line in lines)


__all__ = ["encode", "entries", "footer", "named", "referee", "write"]
