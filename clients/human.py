"""A person at a seat: where the seats come from. The screens are in `clients.spectator`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clients.link import Status
from clients.match import Match, Turn
from clients.protocol.messages import Waiting
from clients.sdk import Arena, connect
from games.base import Event
from games.errors import UnknownGame
from games.referee import REFEREE_KINDS
from games.registry import load_game
from games.spaces import Action, Choice, Subset, Text
from games.text import clean_name, quote


class Seats(ABC):
    """Where a person's seats come from.

    Attributes:
        state: one line on what is being waited for.
        trouble: one line on what is wrong just now; empty for nothing.
        starts_in_s: seconds until bots take the places that are free, as they were told last; None for never.
        ready: how many matches have begun and wait for the person.
        on_change: called when one of them has changed.
    """

    def __init__(self) -> None:
        self.state = ""
        self.trouble = ""
        self.starts_in_s: float | None = None
        self.ready = 0
        self.on_change: Callable[[], None] = lambda: None

    @abstractmethod
    def matches(self) -> AsyncIterator[Match]:
        """Yield the seats as they come; the next is asked for when the last one has been played.

        Raises `ArenaError` where there are none to be had.
        """

    def tell(self, state: str, *, starts_in_s: float | None = None) -> None:
        """Say what is being waited for."""
        self.state, self.starts_in_s = state, starts_in_s
        self.on_change()


class ServerSeats(Seats):
    """Seats on a server.

    Args:
        url: of the server.
        token: shown to the server; empty shows none.
        ask: what is asked for, the arguments of `clients.sdk.Arena.ask`.
        matches: how many lobbies, one after another.
    """

    def __init__(self, url: str, *, token: str = "", ask: Mapping[str, Any], matches: int = 1) -> None:
        super().__init__()
        self.url = url
        self._token = token
        self._ask = dict(ask)
        self._count = matches

    async def matches(self) -> AsyncIterator[Match]:
        self.tell(f"Connecting to {self.url} …")
        async with connect(
            self.url, token=self._token, client="arena join (a person)", on_status=self._status
        ) as arena:
            if self._ask.get("tournament"):
                self.tell(f"Registered for the tournament {clean_name(self._ask['tournament'])}.")
                async for match in self._tournament(arena):
                    yield match
                    self.tell("Waiting for the next match of the tournament.")
                return
            for _ in range(self._count):
                self.tell("Asking for a seat …")
                yield await arena.join(**self._ask, on_waiting=self._waiting)

    async def _tournament(self, arena: Arena) -> AsyncIterator[Match]:
        """Yield a tournament's matches one after another, and note when one waits for the person."""
        ticket = arena.ask(**self._ask, on_waiting=self._waiting)
        begun: asyncio.Queue[Match | None] = asyncio.Queue()

        async def collect() -> None:
            try:
                async for match in ticket:
                    begun.put_nowait(match)
                    self.ready = begun.qsize()
                    self.on_change()
            finally:
                begun.put_nowait(None)

        collecting = asyncio.create_task(collect())
        try:
            while (match := await begun.get()) is not None:
                self.ready = begun.qsize()
                yield match
            await collecting
        finally:
            collecting.cancel()
            await asyncio.gather(collecting, return_exceptions=True)

    def _waiting(self, told: Waiting) -> None:
        try:
            title = load_game(told.game).title
        except UnknownGame:
            title = clean_name(told.game)
        self.tell(f"{title}: {told.filled} of {told.seats} players are here.", starts_in_s=told.starts_in_s)

    def _status(self, status: Status, why: str) -> None:
        self.trouble = ""
        if status == "reconnecting":
            self.trouble = f"The connection is lost ({why}); trying again. Your seat is held for a while."
        elif status == "closed":
            self.trouble = why
        self.on_change()


@dataclass(slots=True)
class Sat:
    """One seat that a person had. `error` is one line where it was lost."""

    match: Match
    turns: int = 0
    error: str | None = None


def is_seat(option: str, *, seats: int) -> bool:
    """Whether an option names a seat."""
    return option.isascii() and option.isdigit() and str(int(option)) == option and int(option) < seats


def option_title(option: str, *, names: tuple[str, ...], seats: int) -> str:
    """Return an option for people: a seat with its player's name."""
    if not is_seat(option, seats=seats):
        return clean_name(option)
    name = clean_name(names[int(option)]) if int(option) < len(names) else ""
    return f"seat {option} {name}".rstrip()


def action_title(action: Action, *, names: tuple[str, ...] = (), seats: int = 0) -> str:
    """Return an action for people."""
    if isinstance(action, tuple):
        return ", ".join(option_title(option, names=names, seats=seats) for option in action) or "nobody"
    return option_title(action, names=names, seats=seats)


def default_title(turn: Turn) -> str:
    """Return what is played for somebody who does nothing."""
    match = turn.match
    if isinstance(turn.space, Text):
        return "you say nothing" if not turn.space.default else quote(turn.space.default)
    return action_title(turn.space.default, names=match.names, seats=match.seats)


def question(turn: Turn) -> str:
    """Return what is asked, in a few words."""
    label = clean_name(turn.space.label.replace("_", " ")).capitalize()
    match turn.space:
        case Subset(size=size):
            return f"{label}: choose exactly {size}"
        case Choice():
            return f"{label}: choose one"
        case Text(max_chars=limit):
            return f"{label}: at most {limit} characters"
    return label


RESERVED = frozenset("qfgvn")
"""Letters that are keys of the screen."""


def option_keys(options: tuple[str, ...], *, seats: int) -> dict[str, str]:
    """Return the key that picks each option, by key.

    A seat is picked by its own number; where no seats are among the options the first nine are numbered; words
    among seats have a letter of theirs.
    """
    if not any(is_seat(option, seats=seats) for option in options):
        return {str(number): option for number, option in enumerate(options[:9], 1)}
    keys: dict[str, str] = {}
    for option in options:
        if is_seat(option, seats=seats):
            if len(option) == 1:
                keys[option] = option
            continue
        for letter in option.lower():
            if letter.isascii() and letter.isalpha() and letter not in RESERVED and letter not in keys:
                keys[letter] = option
                break
    return keys


def result_title(match: Match) -> str:
    """Return in a line how the match ended for the seat."""
    over = match.over
    assert over is not None
    seat = match.seat
    how = {
        "won": "You won",
        "lost": "You lost",
        "drawn": "It is drawn",
        "turn_limit": "The turns are over",
        "forfeit": "You have forfeited",
    }.get(over.ended[seat], clean_name(over.ended[seat]))
    role = clean_name(over.roles[seat])
    as_role = f" as {role}" if role and over.roles[seat] != over.teams[seat] else ""
    return f"{how}{as_role} ({over.returns[seat]:+g}): {clean_name(over.reason)}"


def trouble_of(match: Match, event: Event) -> str:
    """Return in a line what the referee had to do at the seat; empty for any other event."""
    if event.kind not in REFEREE_KINDS or event.data.get("seat") != match.seat:
        return ""
    if event.kind == "forced":
        return "The default was played for you."
    if event.kind == "late":
        return "Your answer came too late."
    if event.kind == "forfeit":
        return "Your seat is forfeited; the default is played for it from here on."
    return ""
