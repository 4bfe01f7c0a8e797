"""Tournaments over connected agents: who takes part, what is planned, and which match can begin now.

Players register by name while the tournament is open. Then the schedule is made, as for any tournament
(`arena.schedule`), and a match begins as soon as its players are free. A player whose connection is gone is
waited for as long as the grace; then its matches begin without it, and its seats forfeit. In a match a player has
one seat at most: a connection must not know what two seats know. Where there are fewer players than seats, house
bots take part.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.players import agent_type
from arena.errors import RequestRefused, TournamentError
from arena.live import Clock, Timer
from arena.lobby import Applicant, Client, Setup, read_setup
from arena.schedule import MatchPlan, plan
from clients.protocol.messages import Left, Waiting
from games.errors import ArenaError
from games.text import clean_name

MAX_PLAYERS = 256
REMEMBERED = 256
"""Tournaments that are over whose players are still told so."""


class OnlineTournament(BaseModel):
    """What is asked for. Malformed values raise pydantic's `ValidationError`; `check` raises `TournamentError`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=40, description="The name to join it by.")
    game: str = Field(description="The game.")
    seats: int | None = Field(None, ge=2, le=64, description="Seats of a match; by default the game's.")
    options: dict[str, Any] = Field(default={}, description="The game's options.")
    matches: int = Field(ge=1, le=100_000, description="How many, all players together.")
    format: Literal["round-robin", "gauntlet"] = Field("round-robin", description="Who meets whom.")
    seed: int = Field(0, ge=0, lt=2**63, description="Of the deals and of every choice.")
    starts_in_s: float = Field(
        60.0, ge=0, le=604_800, allow_inf_nan=False, description="Seconds that it is open for registration."
    )
    players: int | None = Field(
        None, ge=1, le=MAX_PLAYERS, description="Begin at once when so many have registered."
    )
    bots: tuple[str, ...] = Field((), max_length=64, description="Specs of bots that take part.")
    fill_with: str = Field("scripted", description="The bot that takes part where players are too few.")

    def check(self) -> Setup:
        """Return what is played. Raises `TournamentError` in one line."""
        if clean_name(self.name) != self.name:
            raise TournamentError(f"tournament name: got {self.name!r}, printable characters are needed")
        try:
            setup = read_setup(self.game, seats=self.seats, options=self.options)
            for spec in (*self.bots, self.fill_with):
                agent_type(spec, game=self.game)
        except ArenaError as error:
            raise TournamentError(f"tournament {self.name}: {error}") from None
        if setup.seats < 2:
            raise TournamentError(f"tournament {self.name}: {self.game} is played alone")
        if self.format == "gauntlet" and setup.seats != 2:
            raise TournamentError(
                f"tournament {self.name}: a gauntlet is for games with two seats; allowed is round-robin"
            )
        return setup


@dataclass(slots=True, eq=False)
class Entrant:
    """A registered player. `ticket` stands for its registration; `applicant` is its connection, if there is one."""

    name: str
    owner: str
    ticket: str
    spec: str
    agent: str = ""
    applicant: Applicant | None = None
    absent_since: float = 0.0
    busy: bool = False

    @property
    def remote(self) -> bool:
        """Whether it plays over a connection."""
        return self.spec.startswith("ws:")


@dataclass(slots=True, eq=False)
class Contest:
    """One tournament: open for registration until it has a `row` in the store, then running."""

    asked: OnlineTournament
    setup: Setup
    entrants: dict[str, Entrant] = field(default_factory=dict)
    row: int | None = None
    plans: dict[int, MatchPlan] = field(default_factory=dict)
    """What is left to begin, by index."""
    playing: set[int] = field(default_factory=set)
    planned: int = 0
    starting: bool = False
    timer: Timer | None = None
    starts_at: float = 0.0

    @property
    def done(self) -> bool:
        """Whether every match has been played."""
        return self.row is not None and not self.plans and not self.playing

    def state(self, now: float) -> dict[str, Any]:
        """Return what everyone may know of it, as JSON-compatible data; `now` is the host's clock."""
        open_now = self.row is None
        return {
            "tournament": self.asked.name,
            "id": None if self.row is None else f"t{self.row}",
            "game": self.asked.game,
            "status": "open" if open_now else "running",
            "players": list(self.entrants),
            "planned": self.planned or self.asked.matches,
            "played": self.planned - len(self.plans) - len(self.playing),
            "playing": len(self.playing),
            "starts_in_s": max(0.0, self.starts_at - now) if open_now else None,
        }

    def config(self) -> dict[str, Any]:
        """Return what the store keeps, enough to go on after a kill."""
        players = [[who.name, who.owner, who.spec] for who in self.entrants.values()]
        return {"online": self.asked.model_dump(mode="json"), "players": players}


class Tournaments:
    """All tournaments of a host.

    Args:
        clock: time.
        grace_s: seconds that an absent player is waited for.
        ticket: makes a ticket.
        enrol: called when a tournament is to be entered in the store; must call `begin` afterwards.
        seat: called to begin a match: the tournament, its plan, and the entrant of each seat.
        finished: called when a tournament is over.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        grace_s: float,
        ticket: Callable[[], str],
        enrol: Callable[[Contest], None],
        seat: Callable[[Contest, MatchPlan, list[Entrant]], None],
        finished: Callable[[Contest], None],
    ) -> None:
        self.open: dict[str, Contest] = {}
        self._clock = clock
        self._grace_s = grace_s
        self._ticket = ticket
        self._enrol = enrol
        self._seat = seat
        self._finished = finished
        self._closed = False
        self._ended: OrderedDict[str, set[tuple[str, str]]] = OrderedDict()

    def add(self, asked: OnlineTournament) -> Contest:
        """Open a tournament for registration. Raises `TournamentError`."""
        setup = asked.check()
        if asked.name in self.open:
            raise TournamentError(f"tournament name: {asked.name!r} is open already, take another")
        contest = self.open[asked.name] = Contest(asked, setup)
        contest.starts_at = self._clock.time() + asked.starts_in_s
        contest.timer = self._clock.call_later(asked.starts_in_s, lambda: self._close(contest))
        for spec in asked.bots:
            self._add_bot(contest, spec)
        return contest

    def restore(
        self, asked: OnlineTournament, *, row: int, players: list[list[str]], played: set[int]
    ) -> Contest:
        """Take up a tournament that was running when the host died; players are absent as of now."""
        contest = self.open[asked.name] = Contest(asked, asked.check(), row=row)
        for name, owner, spec in players:
            contest.entrants[name] = Entrant(
                name, owner, self._ticket(), spec, absent_since=self._clock.time()
            )
        self._plan(contest)
        for index in played:
            contest.plans.pop(index, None)
        return contest

    def ended(self, name: str, players: Iterable[Sequence[str]]) -> None:
        """Remember who played in a tournament that is over, so that one who was away then is told: (name, owner)s."""
        self._ended[name] = {(player[0], player[1]) for player in players}
        self._ended.move_to_end(name)
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)

    def join(self, applicant: Applicant, *, tournament: str) -> Entrant | None:
        """Register a player, or take its registration up again; None where it is over and the player was told.

        Raises `RequestRefused`.
        """
        contest = self.open.get(tournament)
        if contest is None:
            if (applicant.name, applicant.owner) in self._ended.get(tournament, ()):
                applicant.client.send(Left(id=applicant.id, reason="over"))
                return None
            raise RequestRefused("unknown_tournament", "tournament: none of that name is open")
        entrant = contest.entrants.get(applicant.name)
        if entrant is None:
            if contest.row is not None or contest.starting:
                raise RequestRefused("unknown_tournament", "tournament: registration is closed")
            if len(contest.entrants) >= MAX_PLAYERS:
                raise RequestRefused("limit", f"tournament: it has {MAX_PLAYERS} players, no more are taken")
            if any(
                who.applicant and who.applicant.client is applicant.client
                for who in contest.entrants.values()
            ):
                raise RequestRefused("limit", "tournament: a connection registers one player")
            spec = f"ws:{applicant.name}"
            entrant = Entrant(applicant.name, applicant.owner, self._ticket(), spec, applicant.agent)
            contest.entrants[applicant.name] = entrant
        elif not entrant.remote or entrant.owner != applicant.owner:
            raise RequestRefused("limit", f"tournament: the name {applicant.name!r} is taken")
        elif (
            entrant.applicant is not None
            and entrant.applicant.client is not applicant.client
            and not entrant.owner
        ):
            raise RequestRefused(
                "limit", f"tournament: {applicant.name!r} is connected; only a token takes over"
            )
        entrant.applicant = applicant
        entrant.agent = applicant.agent
        self._tell(contest)
        if contest.row is None and contest.asked.players == sum(
            who.remote for who in contest.entrants.values()
        ):
            self._close(contest)
        elif contest.row is not None:
            self.proceed(contest)
        return entrant

    def leave(self, ticket: str, *, client: Client) -> bool:
        """Withdraw a registration; of a running tournament the player's matches begin without it, and forfeit."""
        for contest in list(self.open.values()):
            for entrant in list(contest.entrants.values()):
                applicant = entrant.applicant
                if entrant.ticket != ticket or applicant is None or applicant.client is not client:
                    continue
                client.send(Left(id=applicant.id, ticket=ticket, reason="left"))
                entrant.applicant = None
                entrant.absent_since = self._clock.time() - self._grace_s
                if contest.row is None and not contest.starting:
                    del contest.entrants[entrant.name]
                    self._tell(contest)
                else:
                    self.proceed(contest)
                return True
        return False

    def lost(self, client: Client) -> None:
        """Note that a connection is gone. Registrations stand; the player may come back."""
        for contest in self.open.values():
            for entrant in contest.entrants.values():
                if entrant.applicant is not None and entrant.applicant.client is client:
                    entrant.applicant = None
                    entrant.absent_since = self._clock.time()
                    self._wait_for(contest)

    def entrant_of(self, tournament: str, name: str) -> Entrant | None:
        """Return a registered player."""
        contest = self.open.get(tournament)
        return None if contest is None else contest.entrants.get(name)

    def begin(self, contest: Contest, row: int) -> None:
        """Begin a tournament that the store knows as `row`."""
        contest.row = row
        self._plan(contest)
        self.proceed(contest)

    def abandon(self, contest: Contest) -> None:
        """Give up a tournament that cannot be entered in the store; its players are told."""
        self.open.pop(contest.asked.name, None)
        for entrant in contest.entrants.values():
            if entrant.applicant is not None:
                left = Left(id=entrant.applicant.id, ticket=entrant.ticket, reason="unavailable")
                entrant.applicant.client.send(left)

    def resumed(self, contest: Contest, index: int) -> None:
        """Note that a match goes on from its record."""
        match = contest.plans.pop(index)
        contest.playing.add(index)
        for name in match.players:
            contest.entrants[name].busy = True

    def over(self, contest: Contest, match: MatchPlan) -> None:
        """Note that a match has ended."""
        contest.playing.discard(match.index)
        for name in match.players:
            contest.entrants[name].busy = False
        self.proceed(contest)

    def proceed(self, contest: Contest) -> None:
        """Begin every match that can begin now; end the tournament where none is left."""
        if self._closed or contest.row is None:
            return
        if contest.done:
            if self.open.pop(contest.asked.name, None) is contest:
                self.ended(contest.asked.name, [(who.name, who.owner) for who in contest.entrants.values()])
                self._finished(contest)
                for entrant in contest.entrants.values():
                    if entrant.applicant is not None:
                        left = Left(id=entrant.applicant.id, ticket=entrant.ticket, reason="over")
                        entrant.applicant.client.send(left)
            return
        free = {name for name, who in contest.entrants.items() if not who.busy}
        for match in list(contest.plans.values()):
            if len(free) < contest.setup.seats:
                break
            if not free.issuperset(match.players):
                continue
            entrants = [contest.entrants[name] for name in match.seated(("",) * contest.setup.seats)]
            if not all(map(self._ready, entrants)):
                continue
            free.difference_update(match.players)
            del contest.plans[match.index]
            contest.playing.add(match.index)
            for entrant in entrants:
                entrant.busy = True
            self._seat(contest, match, entrants)

    def waiting_for_players(self) -> None:
        """Begin what can begin, now and when the grace is over: called once after all were restored."""
        for contest in list(self.open.values()):
            self._wait_for(contest)
            self.proceed(contest)

    def close(self) -> None:
        """Let go of everything; nobody is told."""
        self._closed = True
        for contest in self.open.values():
            if contest.timer is not None:
                contest.timer.cancel()

    def _ready(self, entrant: Entrant) -> bool:
        here = not entrant.remote or entrant.applicant is not None
        return here or self._clock.time() >= entrant.absent_since + self._grace_s

    def _wait_for(self, contest: Contest) -> None:
        self._clock.call_later(self._grace_s, lambda: self.proceed(contest))

    def _close(self, contest: Contest) -> None:
        """End the registration."""
        if contest.timer is not None:
            contest.timer.cancel()
        if contest.starting or contest.row is not None:
            return
        if not any(who.remote for who in contest.entrants.values()):
            del self.open[contest.asked.name]
            return
        while len(contest.entrants) < contest.setup.seats:
            self._add_bot(contest, contest.asked.fill_with)
        contest.starting = True
        self._enrol(contest)

    def _add_bot(self, contest: Contest, spec: str) -> None:
        number = 1
        while (name := spec if number == 1 else f"{spec} {number}") in contest.entrants:
            number += 1
        contest.entrants[name] = Entrant(name, "", self._ticket(), spec)

    def _plan(self, contest: Contest) -> None:
        asked = contest.asked
        made = plan(
            list(contest.entrants),
            game=asked.game,
            seats=contest.setup.seats,
            team_names=contest.setup.game.team_names,
            matches=asked.matches,
            seed=asked.seed,
            format=asked.format,
            mode="seats" if contest.setup.seats == 2 else "mixed",
        )
        contest.planned = len(made)
        contest.plans = {match.index: match for match in made}

    def _tell(self, contest: Contest) -> None:
        if contest.row is not None:
            return
        left_s = max(0.0, contest.starts_at - self._clock.time())
        players = max(contest.asked.players or 0, len(contest.entrants))
        for entrant in contest.entrants.values():
            if entrant.applicant is not None:
                entrant.applicant.client.send(
                    Waiting(
                        id=entrant.applicant.id,
                        ticket=entrant.ticket,
                        game=contest.asked.game,
                        filled=len(contest.entrants),
                        seats=players,
                        starts_in_s=left_s,
                    )
                )
