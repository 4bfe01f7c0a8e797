"""Credit of recorded matches: of one, with every decision, or of many, with what each player contributed.

The engines of language models among the players run in this process, and are started once for all records.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.credit.base import METHODS, Credit, make_method
from agents.credit.counterfactual import Counterfactual
from agents.credit.line import Line, read_line
from agents.credit.summary import LEVEL, SABOTEUR, Contribution, PlayerCredit, below_zero, summarise
from agents.errors import BadCredit, NotRebuilt, PolicyError, RecordNotCredited
from agents.players import KINDS
from agents.policy.settings import PolicySettings
from agents.policy.spec import POLICY, is_policy
from games.errors import ArenaError
from replays.errors import RecordDamaged, RecordError, RecordUnreadable
from replays.reader import read_record
from replays.record import SUFFIX, Record

if TYPE_CHECKING:
    from agents.credit.labels import Labeller
    from agents.policy.service import Policies
    from arena.runner import MakeAgent
    from arena.standings import Leaderboard

REPLAYING = ("leave-one-out", "shapley")
"""Methods that play on from the record."""
ADCA = "adca"
RANDOM, SCRIPTED = "random", "scripted"
MANY = {"steps": False, "least": 1, "most": 1, "error": 0.0}
"""Of each of many records one replicate: that there are many of them makes the mean sure."""


@dataclass(frozen=True, slots=True)
class CreditRequest:
    """How records are credited.

    Args:
        method: one of `agents.credit.base.METHODS`.
        team: whose result is divided; None is the first team of two or more seats, and with many records every
            team.
        reference: spec of who takes a seat's place; None is `random`, and with many records the game's `scripted`
            player where there is one: only against a player that does its part is it seen who does not.
        settings: others of the method.
        labels, judge, labeller: of `adca`: who labels its steps.
        policy, home: of the engines of language models.
    """

    method: str = "shapley"
    team: str | None = None
    reference: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    labels: str = "rules"
    judge: Path | None = None
    labeller: str = POLICY
    policy: PolicySettings = field(default_factory=PolicySettings)
    home: Path = Path("arena-data")

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise BadCredit(f"credit method: got {self.method[:40]!r}, allowed are {', '.join(METHODS)}")


@dataclass(slots=True)
class ManyCredits:
    """What came of many records."""

    method: str
    reference: str | None
    credits: list[tuple[Path, Credit]]
    players: list[PlayerCredit]
    skipped: list[tuple[Path, ArenaError]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data."""
        return {
            "method": self.method,
            "reference": self.reference,
            "matches": [{"file": str(path), **credit.as_dict()} for path, credit in self.credits],
            "players": [player.as_dict() for player in self.players],
            "skipped": [{"file": str(path), "error": str(error)} for path, error in self.skipped],
        }


def find_records(paths: Iterable[Path]) -> list[Path]:
    """Return the records at `paths`, directories searched. Raises `RecordUnreadable`."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.rglob(f"*{SUFFIX}") if one.is_file())
            if not inside:
                raise RecordUnreadable(f"{path}: this directory holds no record, their names end in {SUFFIX}")
            found.update(dict.fromkeys(inside))
        elif not path.exists():
            raise RecordUnreadable(f"{path}: cannot read the record: No such file or directory")
        else:
            found[path] = None
    return list(found)


def credit_one(path: Path, asked: CreditRequest, *, make: "MakeAgent | None" = None) -> Credit:
    """Return the credit of one team of one record. Raises an `ArenaError` that names the file."""
    return asyncio.run(_one(path, asked, make))


async def _one(path: Path, asked: CreditRequest, make: "MakeAgent | None") -> Credit:
    record, line = _read(path)
    team = line.default_team() if asked.team is None else asked.team
    line.members(team)
    async with AsyncExitStack() as stack:
        try:
            return await _Open(asked, make, stack).credit(record, line, team, asked.reference or RANDOM)
        except NotRebuilt as error:
            raise NotRebuilt(f"{path}: {error}") from None


def credit_many(
    paths: Sequence[Path],
    asked: CreditRequest,
    *,
    make: "MakeAgent | None" = None,
    progress: Callable[[int, int], None] | None = None,
) -> ManyCredits:
    """Return the credits of many records and what each player contributed; what cannot be credited is skipped.

    Raises `BadCredit` where a team or a player that was asked for is none, and a `PolicyError`.
    """
    return asyncio.run(_many(paths, asked, make, progress))


async def _many(
    paths: Sequence[Path],
    asked: CreditRequest,
    make: "MakeAgent | None",
    progress: Callable[[int, int], None] | None,
) -> ManyCredits:
    asked = replace(
        asked, settings={**MANY, **asked.settings} if asked.method in REPLAYING else asked.settings
    )
    found: list[tuple[Path, Credit]] = []
    skipped: list[tuple[Path, ArenaError]] = []
    rows: list[Contribution] = []
    references: set[str] = set()
    teams: set[str] = set()
    async with AsyncExitStack() as stack:
        opened = _Open(asked, make, stack)
        for number, path in enumerate(paths):
            try:
                record, line = _read(path)
                teams.update(line.team_names)
                reference = asked.reference or usual_reference(line.game.name)
                references.add(reference)
                for team in _teams(line, asked.team):
                    credit = await opened.credit(record, line, team, reference)
                    found.append((path, credit))
                    rows += contributions(line, credit, match=str(path))
            except (RecordError, RecordNotCredited, NotRebuilt) as error:
                skipped.append((path, error))
            if progress is not None:
                progress(number + 1, len(paths))
    if asked.team is not None and teams and asked.team not in teams:
        raise BadCredit(f"team: got {asked.team[:40]!r}, these matches have {', '.join(sorted(teams))}")
    used = ", ".join(sorted(references)) if asked.method in REPLAYING and references else None
    if asked.method not in REPLAYING:
        return ManyCredits(asked.method, used, found, unjudged(rows), skipped)
    players = summarise(rows, idle_reference=used == RANDOM)
    accused = {(player.game, player.player) for player in players if player.accusation is not None}
    if accused and used != RANDOM:
        places = {(path, credit.team) for path, credit in found if _any_of(accused, credit)}
        worse = await _worse_than_random(sorted(places), accused, asked, make)
        players = [
            replace(player, accusation=SABOTEUR) if (player.game, player.player) in worse else player
            for player in players
        ]
    return ManyCredits(asked.method, used, found, players, skipped)


def _any_of(accused: set[tuple[str, str]], credit: Credit) -> bool:
    players = {seat.player for seat in credit.seats}
    return any(player in players for _, player in accused)


async def _worse_than_random(
    places: Sequence[tuple[Path, str]],
    accused: set[tuple[str, str]],
    asked: CreditRequest,
    make: "MakeAgent | None",
) -> set[tuple[str, str]]:
    """Return which of the accused are shown to do worse than `random` would in their seats.

    Beside a player that does its part an idle one and one that works against its team look alike.
    """
    against = replace(asked, method="leave-one-out", reference=RANDOM)
    rows: list[Contribution] = []
    async with AsyncExitStack() as stack:
        opened = _Open(against, make, stack)
        for path, team in places:
            record, line = _read(path)
            rows += contributions(line, await opened.credit(record, line, team, RANDOM), match=str(path))
    return {who for who in accused if below_zero(rows, game=who[0], player=who[1]) <= LEVEL}


def contributions(line: Line, credit: Credit, *, match: str) -> list[Contribution]:
    """Return what each seat of a team contributed, for the summary over many; `match` tells them apart."""
    header = line.header
    return [
        Contribution(
            header.game,
            str(header.seed),
            match,
            credit.team,
            seat.player,
            seat.role,
            seat.credit,
            seat.credit if seat.contribution is None else seat.contribution,
        )
        for seat in credit.seats
    ]


def credit_board(board: "Leaderboard", many: ManyCredits) -> "Leaderboard":
    """Return the standings with the credit that a method found: the mean share of a seat, and who is accused."""
    found = {(player.game, player.player): player for player in many.players}
    for row in board.standings:
        player = found.get((row.game, row.player))
        row.credit = None if player is None else player.credit
        row.accusation = None if player is None else player.accusation
    return replace(board, credit=many.method)


def unjudged(rows: Sequence[Contribution]) -> list[PlayerCredit]:
    """Return the players' credits by a method that cannot tell who did it: nobody is accused."""
    return [replace(row, p=None, accusation=None) for row in summarise(rows, idle_reference=False)]


def usual_reference(game: str) -> str:
    """Return who takes a seat's place where many matches are compared."""
    return SCRIPTED if game in KINDS[SCRIPTED].bots else RANDOM


def _teams(line: Line, team: str | None) -> list[str]:
    if team is not None:
        return [team] if team in line.team_names else []
    return list(line.team_names)


def _read(path: Path) -> tuple[Record, Line]:
    try:
        record = read_record(path)
        return record, read_line(record)
    except (RecordNotCredited, RecordDamaged) as error:
        shown = str(error)
        raise type(error)(shown if shown.startswith(f"{path}:") else f"{path}: {shown}") from None


class _Open:
    """What crediting needs open: engines by the models they run, and judges by game."""

    def __init__(self, asked: CreditRequest, make: "MakeAgent | None", stack: AsyncExitStack) -> None:
        self.asked = asked
        self.make = make
        self._stack = stack
        self._engines: dict[frozenset[str], Policies | None] = {}
        self._judges: dict[str, Labeller] = {}

    async def credit(self, record: Record, line: Line, team: str, reference: str) -> Credit:
        """Return the credit of a team of a record."""
        asked = self.asked
        if asked.method in REPLAYING:
            policies = await self._policies(record)
            settings = {**asked.settings, "reference": reference, "make": self.make, "policies": policies}
            method = make_method(asked.method, **settings)
            assert isinstance(method, Counterfactual)
            return await method.credit_line(line, team=team)
        settings = dict(asked.settings)
        if asked.method == ADCA:
            settings["labeller"] = await self._labeller(line.game.name)
        return await make_method(asked.method, **settings).credit(record, team=team)

    async def _policies(self, record: Record) -> "Policies | None":
        named = [self.asked.reference, self.asked.settings.get("stand_in")]
        seated = [info.spec for info in record.header.seats]
        specs = frozenset(spec for spec in (*named, *seated) if spec is not None and is_policy(spec))
        if specs not in self._engines:
            self._engines[specs] = await self._stack.enter_async_context(_engines(specs, self.asked))
        return self._engines[specs]

    async def _labeller(self, game: str) -> "Labeller":
        from arena.labellers import open_labeller

        if game not in self._judges:
            asked = self.asked
            opening = open_labeller(
                asked.labels,
                game=game,
                home=asked.home,
                settings=asked.policy,
                judge=asked.judge,
                spec=asked.labeller,
            )
            self._judges[game] = await self._stack.enter_async_context(opening)
        return self._judges[game]


@asynccontextmanager
async def _engines(specs: frozenset[str], asked: CreditRequest) -> "AsyncIterator[Policies | None]":
    """Run the engines that replays need; None where none is needed, or none runs and others stand in for its seats."""
    if not specs:
        yield None
        return
    from agents.policy.service import Policies

    policies = Policies(asked.policy, home=asked.home)
    try:
        await policies.start(sorted(specs))
    except PolicyError:
        if asked.settings.get("stand_in") is None:
            raise
        yield None
        return
    try:
        yield policies
    finally:
        await policies.close()
