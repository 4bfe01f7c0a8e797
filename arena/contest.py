"""A tournament over connected agents: what is asked for, who takes part, and what is left to play."""

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.players import agent_type
from arena.errors import TournamentError
from arena.live import Timer
from arena.lobby import Applicant, Setup, read_setup
from arena.schedule import MatchPlan, plan
from arena.swiss import Points, Swiss
from games.errors import ArenaError
from games.text import clean_name

MAX_PLAYERS = 256
SWISS_PLAYERS = 128
"""Most players of a Swiss tournament: pairing a round takes time with the third power of their number."""


class OnlineTournament(BaseModel):
    """What is asked for. Malformed values raise pydantic's `ValidationError`; `check` raises `TournamentError`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=40, description="The name to join it by.")
    game: str = Field(description="The game.")
    seats: int | None = Field(None, ge=2, le=64, description="Seats of a match; by default the game's.")
    options: dict[str, Any] = Field(default={}, description="The game's options.")
    matches: int = Field(ge=1, le=100_000, description="How many, all players together.")
    format: Literal["round-robin", "swiss", "gauntlet"] = Field("round-robin", description="Who meets whom.")
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
        if self.format != "round-robin" and setup.seats != 2:
            raise TournamentError(
                f"tournament {self.name}: format {self.format} is for games with two seats; allowed is round-robin"
            )
        if (self.players or 0) > self.max_players:
            raise TournamentError(
                f"tournament {self.name}: got {self.players} players, a Swiss one has at most {SWISS_PLAYERS}"
            )
        return setup

    @property
    def max_players(self) -> int:
        """How many may register."""
        return SWISS_PLAYERS if self.format == "swiss" else MAX_PLAYERS


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
    kept: bool = True
    """Whether the store knows of it; before, its player is told nothing."""

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
    """On the host's clock."""
    starts_on: float = 0.0
    """In seconds since 1970."""
    swiss: Swiss | None = None
    pairing: bool = False
    """Whether the next round is being found."""
    results: dict[int, Points | None] = field(default_factory=dict)
    """Of a Swiss tournament, by index the points by player; None for a match that failed."""

    @property
    def open(self) -> bool:
        """Whether players can register."""
        return self.row is None and not self.starting

    @property
    def round_over(self) -> bool:
        """Whether every match that has been planned so far has been played."""
        return self.row is not None and not self.plans and not self.playing

    @property
    def done(self) -> bool:
        """Whether every match has been played."""
        return self.round_over and (self.swiss is None or len(self.swiss.planned) >= self.planned)

    @property
    def played(self) -> int:
        """How many matches have been played."""
        if self.swiss is not None:
            return len(self.results)
        return self.planned - len(self.plans) - len(self.playing)

    def plan(self) -> None:
        """Plan the matches, of a Swiss tournament none yet."""
        asked, setup = self.asked, self.setup
        about: dict[str, Any] = {
            "game": asked.game,
            "seats": setup.seats,
            "team_names": setup.game.team_names,
            "matches": asked.matches,
            "seed": asked.seed,
            "mode": "seats" if setup.seats == 2 else "mixed",
        }
        if asked.format == "swiss":
            self.swiss = Swiss(list(self.entrants), **about)
            self.planned = asked.matches
            return
        made = plan(list(self.entrants), format=asked.format, **about)
        self.planned = len(made)
        self.plans = {match.index: match for match in made}

    def catch_up(self) -> None:
        """Plan the round of a Swiss tournament that was being played when the host died. May take a while."""
        if self.swiss is not None:
            self.plans = {match.index: match for match in self.next_round()}

    def next_round(self) -> tuple[MatchPlan, ...]:
        """Return the matches of the next round that has any left to play. May take a while; changes nothing else."""
        assert self.swiss is not None
        while found := self.swiss.next_round(self.results):
            if left := tuple(match for match in found if match.index not in self.results):
                return left
        return ()

    def state(self, now: float) -> dict[str, Any]:
        """Return what everyone may know of it, as JSON-compatible data; `now` is the host's clock."""
        return {
            "tournament": self.asked.name,
            "id": None if self.row is None else f"t{self.row}",
            "game": self.asked.game,
            "status": "open" if self.row is None else "running",
            "players": list(self.entrants),
            "planned": self.planned or self.asked.matches,
            "played": self.played,
            "playing": len(self.playing),
            "starts_in_s": max(0.0, self.starts_at - now) if self.row is None else None,
        }

    def config(self) -> dict[str, Any]:
        """Return what the store keeps, enough to go on after a kill."""
        players = [[who.name, who.owner, who.spec] for who in self.entrants.values()]
        return {"online": self.asked.model_dump(mode="json"), "players": players}
