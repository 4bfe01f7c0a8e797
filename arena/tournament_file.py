"""What a tournament is asked to be: a TOML file, with flags laid over it, checked as a whole.

seed = 0                    # of the deals, the plan and the bots
format = "round-robin"      # or "swiss", "gauntlet"
seating = "auto"            # or "seats", "sides", "mixed": see `arena.schedule`
matches = 120               # in each game that says no other number
sprt = [0, 20, 0.05, 0.05]  # elo0, elo1, alpha, beta: stop early, with two players

[players]                   # NAME = "SPEC"
a = "scripted"
b = "random"

[games.avalon]              # in the order in which they are played
seats = 5
matches = 200
options = { lady = true }
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.match import DEFAULT_DEADLINE_S
from agents.players import Player, check_plays, parse_players
from arena.config import did_you_mean, explain, read_toml
from arena.errors import ConfigError, TournamentError
from arena.schedule import Mode, table
from arena.sprt import SprtTest
from games.base import Game
from games.referee import DEFAULT_RETRIES
from games.registry import game_names, load_game
from games.rng import MAX_SEED, derive_seed

MAX_MATCHES = 1_000_000
"""In all games together. Plan and results are held in memory, 2 to 5 kB a match."""
DEFAULT_MATCHES = 120

Format = Literal["round-robin", "swiss", "gauntlet"]


class GameEntry(BaseModel):
    """One game of a tournament; what is left out is the tournament's, or the game's default."""

    model_config = ConfigDict(extra="forbid")

    seats: int | None = None
    matches: int | None = Field(default=None, ge=0, le=MAX_MATCHES)
    options: dict[str, Any] = Field(default_factory=dict)


class TournamentFile(BaseModel):
    """A tournament as it is written."""

    model_config = ConfigDict(extra="forbid")

    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    format: Format = "round-robin"
    seating: Mode = "auto"
    matches: int = Field(default=DEFAULT_MATCHES, ge=0, le=MAX_MATCHES)
    sprt: tuple[float, float, float, float] | None = None
    players: dict[str, str] = Field(default_factory=dict)
    games: dict[str, GameEntry] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GameSetup:
    """One game of a tournament, checked; `options` are complete."""

    game: str
    rules: str
    seats: int
    matches: int
    options: dict[str, Any]
    seating: Literal["seats", "sides", "mixed"]


@dataclass(frozen=True, slots=True)
class Tournament:
    """Everything that decides a tournament's matches."""

    seed: int
    format: Format
    players: tuple[Player, ...]
    games: tuple[GameSetup, ...]
    sprt: SprtTest | None = None
    retries: int = DEFAULT_RETRIES
    deadline_s: float = DEFAULT_DEADLINE_S

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return asdict(self)

    def hash(self) -> str:
        """Return the hexadecimal hash of all that decides the matches."""
        text = json.dumps(self.to_data(), sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def planned(self) -> int:
        """Matches in all games together."""
        return sum(game.matches for game in self.games)


@dataclass(frozen=True, slots=True)
class Overrides:
    """What flags say; None and empty were not given."""

    games: Sequence[str] = ()
    players: Sequence[str] = ()
    seats: int | None = None
    matches: int | None = None
    format: Format | None = None
    seating: Mode | None = None
    seed: int | None = None
    sprt: str | None = None
    options: Mapping[str, str] | None = None
    """By `game.option`."""


def read_tournament(
    path: Path | None,
    *,
    overrides: Overrides | None = None,
    retries: int = DEFAULT_RETRIES,
    deadline_s: float = DEFAULT_DEADLINE_S,
) -> Tournament:
    """Return the tournament that a file (None: the default one) and flags ask for.

    Raises `ConfigError`, `TournamentError`, a `PlayerError`, a `GameError`, `ScheduleError` or `SprtError`,
    each in one line.
    """
    where = "the default tournament" if path is None else str(path)
    data = default_data() if path is None else read_toml(path)
    try:
        written = TournamentFile.model_validate(data)
    except ValidationError as error:
        raise ConfigError(explain(error, TournamentFile, where=where)) from None
    over = overrides or Overrides()
    players = parse_players(over.players or [f"{name}={spec}" for name, spec in written.players.items()])
    if not players:
        raise TournamentError(f"{where}: no players; add [players] or --player NAME=SPEC")
    entries = _entries(written, over)
    if not entries:
        raise TournamentError(f"{where}: no games; add [games.NAME] or --game NAME")
    sprt = _sprt(written, over)
    made = Tournament(
        seed=written.seed if over.seed is None else over.seed,
        format=over.format or written.format,
        players=tuple(players),
        games=(),
        sprt=sprt,
        retries=retries,
        deadline_s=deadline_s,
    )
    seating = over.seating or written.seating
    made = replace(
        made,
        games=tuple(
            _setup(load_game(name), entry, made, seating=seating, default_matches=written.matches)
            for name, entry in entries.items()
        ),
    )
    if made.planned > MAX_MATCHES:
        raise TournamentError(
            f"matches: got {made.planned} in all games together, allowed are at most {MAX_MATCHES}"
        )
    _check_sprt(made)
    return made


def default_data() -> dict[str, Any]:
    """Return the default tournament as its file says it."""
    return read_toml(Path(str(files("arena") / "defaults" / "tournament.toml")))


def _entries(written: TournamentFile, over: Overrides) -> dict[str, GameEntry]:
    names = list(dict.fromkeys(over.games)) or list(written.games)
    known = game_names()
    for name in names:
        if name not in known:
            raise TournamentError(
                f"game: got {name[:80]!r}{did_you_mean(name, known)}, known are {', '.join(known)}"
            )
    entries = {name: written.games.get(name, GameEntry()).model_copy(deep=True) for name in names}
    for entry in entries.values():
        if over.seats is not None:
            entry.seats = over.seats
        if over.matches is not None:
            entry.matches = over.matches
    for key, value in (over.options or {}).items():
        name, dot, option = key.partition(".")
        if not dot:
            name, option = (next(iter(entries)) if len(entries) == 1 else ""), key
        if name not in entries:
            raise TournamentError(
                f"--option {key[:80]}: write GAME.OPTION=VALUE, with GAME one of {', '.join(entries)}"
            )
        entries[name].options[option] = value
    return entries


def _setup(
    game: Game, entry: GameEntry, made: Tournament, *, seating: Mode, default_matches: int
) -> GameSetup:
    for player in made.players:
        check_plays(player, game=game.name)
    matches = default_matches if entry.matches is None else entry.matches
    if not 0 <= matches <= MAX_MATCHES:
        raise TournamentError(f"matches: got {matches}, allowed are whole numbers from 0 to {MAX_MATCHES}")
    # A state is made once, so that a set-up which breaks the rules is refused before anything is played.
    state = game.new(seed=derive_seed(made.seed, "check"), seats=entry.seats, options=entry.options)
    at = table(
        [player.name for player in made.players],
        game=game.name,
        seats=state.seats,
        team_names=game.team_names,
        matches=matches,
        seed=made.seed,
        mode=seating,
    )
    options = state.options.model_dump(mode="json")
    return GameSetup(game.name, game.version, state.seats, matches, options, at.mode)


def _sprt(written: TournamentFile, over: Overrides) -> SprtTest | None:
    if over.sprt is not None:
        return SprtTest.parse(over.sprt)
    return None if written.sprt is None else SprtTest(*written.sprt)


def _check_sprt(made: Tournament) -> None:
    if made.sprt is None:
        return
    if len(made.players) != 2:
        raise TournamentError(f"sprt: got {len(made.players)} players, the test compares exactly two")
    if made.format != "round-robin":
        raise TournamentError(f"sprt: got format {made.format!r}, the test runs over a round-robin")
    for game in made.games:
        if game.seating == "mixed":
            raise TournamentError(
                f"sprt: {game.game} is seated 'mixed', the test needs each player on a side of its own"
            )
