"""Where players wait: lobbies, named matches, and challenges. No await and no socket; time is passed in.

A lobby gathers players who ask for the same game, seats and options. It starts when it is full, or when its first
player has waited long enough; bots then take the seats that are left. A named match is a lobby whose name one
must know. A challenge waits for one player's answer. Whatever ends a wait releases everyone who waits for it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol

from arena.errors import RequestRefused
from arena.live import Clock, RemoteAgent, Timer
from clients.protocol.messages import Challenged, Left, Message, Waiting
from games.base import Game, GameOptions
from games.errors import GameError, UnknownGame
from games.registry import load_game

NONCE_CHARS = 16
"""A request's id of so many characters or more is taken for one that nobody else draws."""
MAX_OPTION_CHARS = 2000
LeftReason = Literal["left", "declined", "withdrawn", "expired", "unavailable", "over"]


class Client(Protocol):
    """A connection, as those who host see it."""

    @property
    def player_name(self) -> str:
        """The name of its token, empty without one."""
        ...

    def send(self, message: Message) -> None:
        """Send a message."""

    def refuse(self, error: RequestRefused, *, id: str = "") -> None:
        """Send an error."""

    def seat(self, agent: RemoteAgent, *, request: str, seen: int = 0) -> None:
        """Hold a seat: tell it, then the events from `seen`, then the open turn or the end.

        Raises `RequestRefused` with `limit`.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Applicant:
    """Who asks for a seat. `id` is the request, `owner` the name of the token, empty without one."""

    client: Client
    id: str
    name: str
    owner: str = ""
    agent: str = ""

    @property
    def claim(self) -> tuple[str, str] | None:
        """What the same request has in common however often, and over whichever connection, it is sent."""
        return claim_of(self.owner, self.id)

    def same(self, other: "Applicant") -> bool:
        """Whether the other one is the same request."""
        if self.client is other.client:
            return self.id == other.id
        return self.claim is not None and self.claim == other.claim


def claim_of(owner: str, request: str) -> tuple[str, str] | None:
    """Return what a request is known by, None where somebody else may have drawn its id as well."""
    return (owner, request) if len(request) >= NONCE_CHARS else None


@dataclass(frozen=True, slots=True)
class Setup:
    """What is to be played."""

    game: Game
    seats: int
    options: GameOptions

    @property
    def key(self) -> str:
        """What two requests must share to meet."""
        return json.dumps([self.game.name, self.seats, self.options_data()], sort_keys=True)

    def options_data(self) -> dict[str, Any]:
        """Return the options as JSON-compatible data."""
        return self.options.model_dump(mode="json")


def read_setup(game: str, *, seats: int | None, options: dict[str, Any]) -> Setup:
    """Return what a client asks to play. Raises `RequestRefused` with `unknown_game` or `bad_setup`."""
    try:
        rules = load_game(game)
    except UnknownGame as error:
        raise RequestRefused("unknown_game", str(error)) from None
    if not all(map(_simple, options.values())) or len(str(options)) > MAX_OPTION_CHARS:
        raise RequestRefused(
            "bad_setup",
            f"options: allowed are texts, numbers and lists of them, {MAX_OPTION_CHARS} characters",
        )
    try:
        return _checked(rules, seats, json.dumps(options))
    except GameError as error:
        raise RequestRefused("bad_setup", str(error)) from None


@lru_cache(maxsize=256)
def _checked(rules: Game, seats: int | None, options: str) -> Setup:
    # A state is made once, so that a set-up which the rules refuse is refused before anyone waits for it.
    state = rules.new(seats=seats, options=json.loads(options))
    return Setup(rules, state.seats, state.options)


def _simple(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str | int | float | bool) for item in value)
    return value is None or isinstance(value, str | int | float | bool)


@dataclass(slots=True, eq=False)
class Lobby:
    """Players who wait for each other. `name` is that of a named match, else empty."""

    key: str
    setup: Setup
    name: str = ""
    places: dict[str, Applicant] = field(default_factory=dict)
    """By ticket."""
    timer: Timer | None = None
    fills_at: float | None = None
    """When bots take the seats that are left, on the host's clock; None never."""


Start = Callable[[Setup, list[Applicant]], None]
"""Seats players; bots take the seats that are left."""


class Lobbies:
    """All lobbies and named matches.

    Args:
        clock: time.
        start: called when players are to be seated.
        ticket: makes a ticket.
        fill_after_s: seconds after the first player until bots take the seats that are left; None never.
        named_fill_after_s: the same for named matches.
        max_lobbies: lobbies at the same time.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        start: Start,
        ticket: Callable[[], str],
        fill_after_s: float | None,
        named_fill_after_s: float | None,
        max_lobbies: int,
    ) -> None:
        self.open: dict[str, Lobby] = {}
        self._clock = clock
        self._start = start
        self._ticket = ticket
        self._fill_after_s = fill_after_s
        self._named_fill_after_s = named_fill_after_s
        self._max_lobbies = max_lobbies
        self._by_ticket: dict[str, Lobby] = {}

    def join(self, applicant: Applicant, *, setup: Setup | None, name: str = "") -> None:
        """Take a place in a lobby, or in the named match `name`, which needs no set-up where it is there.

        Raises `RequestRefused`.
        """
        again = self._place_of(applicant)
        if again is not None:
            held, ticket = again
            held.places[ticket] = applicant  # its connection may be lost without anyone's knowing
            self._tell(held, only=ticket)
            return
        if name:
            lobby = self.open.get(f"match/{name}")
            if lobby is None and setup is None:
                raise RequestRefused(
                    "unknown_match", "match: nobody waits in a match of that name; name a game to begin one"
                )
            if lobby is not None and setup is not None and setup.key != lobby.key:
                raise RequestRefused(
                    "bad_setup",
                    f"match: it is {lobby.setup.game.name} with {lobby.setup.seats} seats, or other options",
                )
        else:
            lobby = self._free(setup, applicant) if setup is not None else None
        if lobby is not None and any(place.client is applicant.client for place in lobby.places.values()):
            raise RequestRefused("limit", "match: a connection has one seat in a match")
        if lobby is None:
            if setup is None:
                raise RequestRefused("bad_setup", "game: none is named")
            lobby = self._make(setup, name)
        ticket = self._ticket()
        lobby.places[ticket] = applicant
        self._by_ticket[ticket] = lobby
        if len(lobby.places) == lobby.setup.seats:
            self._begin(lobby)
        else:
            self._tell(lobby)

    def leave(self, ticket: str, *, client: Client, reason: LeftReason = "left") -> bool:
        """Give up a place; return False where it is not one of this client's."""
        lobby = self._by_ticket.get(ticket)
        if lobby is None or lobby.places[ticket].client is not client:
            return False
        applicant = self._drop(lobby, ticket)
        client.send(Left(id=applicant.id, ticket=ticket, reason=reason))
        self._tell(lobby)
        return True

    def lost(self, client: Client) -> None:
        """Free the places of a connection that is gone."""
        for ticket, lobby in list(self._by_ticket.items()):
            if lobby.places[ticket].client is client:
                self._drop(lobby, ticket)
                self._tell(lobby)

    def waiting(self) -> Iterator[Applicant]:
        """Yield everyone who waits, the longest first."""
        for lobby in self.open.values():
            yield from lobby.places.values()

    def places(self, client: Client) -> list[str]:
        """Return the tickets of a client."""
        return [ticket for ticket, lobby in self._by_ticket.items() if lobby.places[ticket].client is client]

    def state(self) -> list[dict[str, Any]]:
        """Return who waits, as JSON-compatible data; named matches are for those who know the name."""
        now = self._clock.time()
        return [
            {
                "game": lobby.setup.game.name,
                "seats": lobby.setup.seats,
                "options": lobby.setup.options_data(),
                "names": [place.name for place in lobby.places.values()],
                "starts_in_s": None if lobby.fills_at is None else max(0.0, lobby.fills_at - now),
            }
            for lobby in self.open.values()
            if not lobby.name
        ]

    def close(self) -> None:
        """Let go of everything; nobody is told."""
        for lobby in list(self.open.values()):
            self._forget(lobby)
        self._by_ticket.clear()

    def _place_of(self, applicant: Applicant) -> tuple[Lobby, str] | None:
        for ticket, lobby in self._by_ticket.items():
            if lobby.places[ticket].same(applicant):
                return lobby, ticket
        return None

    def _free(self, setup: Setup, applicant: Applicant) -> Lobby | None:
        for lobby in self.open.values():
            if lobby.key == setup.key and not lobby.name:
                if all(place.client is not applicant.client for place in lobby.places.values()):
                    return lobby
        return None

    def _make(self, setup: Setup, name: str) -> Lobby:
        if len(self.open) >= self._max_lobbies:
            raise RequestRefused("limit", f"lobbies: {self._max_lobbies} wait already, no more are opened")
        lobby = Lobby(setup.key, setup, name)
        after_s = self._named_fill_after_s if name else self._fill_after_s
        if after_s is not None:
            lobby.fills_at = self._clock.time() + after_s
            lobby.timer = self._clock.call_later(after_s, lambda: self._begin(lobby))
        self.open[f"match/{name}" if name else f"lobby/{id(lobby)}"] = lobby
        return lobby

    def _begin(self, lobby: Lobby) -> None:
        self._forget(lobby)
        places = list(lobby.places.values())
        for ticket in lobby.places:
            del self._by_ticket[ticket]
        if places:
            self._start(lobby.setup, places)

    def _drop(self, lobby: Lobby, ticket: str) -> Applicant:
        del self._by_ticket[ticket]
        applicant = lobby.places.pop(ticket)
        if not lobby.places:
            self._forget(lobby)
        return applicant

    def _forget(self, lobby: Lobby) -> None:
        if lobby.timer is not None:
            lobby.timer.cancel()
        for key, other in list(self.open.items()):
            if other is lobby:
                del self.open[key]

    def _tell(self, lobby: Lobby, *, only: str = "") -> None:
        left_s = None if lobby.fills_at is None else max(0.0, lobby.fills_at - self._clock.time())
        for ticket, place in lobby.places.items():
            if not only or ticket == only:
                place.client.send(
                    Waiting(
                        id=place.id,
                        ticket=ticket,
                        game=lobby.setup.game.name,
                        filled=len(lobby.places),
                        seats=lobby.setup.seats,
                        starts_in_s=left_s,
                    )
                )


@dataclass(slots=True, eq=False)
class Duel:
    """A challenge that waits for its answer."""

    ticket: str
    setup: Setup
    challenger: Applicant
    opponent: Client
    ends_at: float
    timer: Timer


class Challenges:
    """All challenges that wait for an answer.

    Args:
        clock: time.
        start: called when players are to be seated.
        ticket: makes a ticket.
        expire_after_s: seconds that a challenge waits.
    """

    def __init__(
        self, *, clock: Clock, start: Start, ticket: Callable[[], str], expire_after_s: float
    ) -> None:
        self.open: dict[str, Duel] = {}
        self._clock = clock
        self._start = start
        self._ticket = ticket
        self._expire_after_s = expire_after_s

    def challenge(self, applicant: Applicant, *, setup: Setup, opponent: Client | None) -> None:
        """Challenge a connected player, None where there is no such player."""
        for duel in self.open.values():
            if duel.challenger.client is applicant.client and duel.challenger.id == applicant.id:
                self._tell(duel)
                return
        if opponent is None:
            applicant.client.send(Left(id=applicant.id, reason="unavailable"))
            return
        ticket = self._ticket()
        timer = self._clock.call_later(self._expire_after_s, lambda: self._expire(ticket))
        ends_at = self._clock.time() + self._expire_after_s
        duel = self.open[ticket] = Duel(ticket, setup, applicant, opponent, ends_at, timer)
        self._tell(duel)
        opponent.send(
            Challenged(
                ticket=ticket,
                opponent=applicant.name,
                game=setup.game.name,
                options=setup.options_data(),
            )
        )

    def respond(self, applicant: Applicant, *, ticket: str, accept: bool) -> bool:
        """Accept or decline; return False where no such challenge waits for this client."""
        duel = self.open.get(ticket)
        if duel is None or duel.opponent is not applicant.client:
            return False
        self._forget(duel)
        if accept:
            self._start(duel.setup, [duel.challenger, applicant])
        else:
            for who in (duel.challenger, applicant):
                who.client.send(Left(id=who.id, ticket=ticket, reason="declined"))
        return True

    def leave(self, ticket: str, *, client: Client) -> bool:
        """Withdraw a challenge; return False where it is not one of this client's."""
        duel = self.open.get(ticket)
        if duel is None or duel.challenger.client is not client:
            return False
        self._forget(duel)
        client.send(Left(id=duel.challenger.id, ticket=ticket, reason="left"))
        duel.opponent.send(Left(ticket=ticket, reason="withdrawn"))
        return True

    def lost(self, client: Client) -> None:
        """Release whoever waits for a connection that is gone, or is challenged by it."""
        for duel in list(self.open.values()):
            if duel.challenger.client is client:
                self._forget(duel)
                duel.opponent.send(Left(ticket=duel.ticket, reason="withdrawn"))
            elif duel.opponent is client:
                self._forget(duel)
                challenger = duel.challenger
                challenger.client.send(Left(id=challenger.id, ticket=duel.ticket, reason="unavailable"))

    def places(self, client: Client) -> list[str]:
        """Return the tickets of the challenges that a client made."""
        return [ticket for ticket, duel in self.open.items() if duel.challenger.client is client]

    def close(self) -> None:
        """Let go of everything; nobody is told."""
        for duel in list(self.open.values()):
            self._forget(duel)

    def _expire(self, ticket: str) -> None:
        duel = self.open[ticket]
        self._forget(duel)
        duel.challenger.client.send(Left(id=duel.challenger.id, ticket=ticket, reason="expired"))
        duel.opponent.send(Left(ticket=ticket, reason="expired"))

    def _forget(self, duel: Duel) -> None:
        duel.timer.cancel()
        del self.open[duel.ticket]

    def _tell(self, duel: Duel) -> None:
        duel.challenger.client.send(
            Waiting(
                id=duel.challenger.id,
                ticket=duel.ticket,
                game=duel.setup.game.name,
                filled=1,
                seats=duel.setup.seats,
                starts_in_s=max(0.0, duel.ends_at - self._clock.time()),
            )
        )
