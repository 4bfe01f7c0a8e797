"""The tables of a host: one match from the row that announces it to the row of its result.

The row in the store comes before anyone is told, the record before anyone hears what happened, and the result
after the record's footer. Killed anywhere between, a match can be rebuilt, or its result read from its record.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from agents.base import Agent, Seat
from agents.match import play
from agents.players import EVERY_GAME, KINDS, make_agent
from arena import hosted
from arena.contest import Contest
from arena.desk import Desk, Together
from arena.hosted import HostedMatch, HostedSeat
from arena.hub import Hub
from arena.live import Clock, Clocks, LiveMatch, RemoteAgent, Stopwatch, over_message
from arena.lobby import Applicant, Setup, claim_of
from arena.owed import Owed
from arena.report import MatchReport, match_report, result_of
from arena.schedule import MatchPlan
from arena.store import Store
from arena.watcher import MatchInfo
from games.base import State
from games.errors import ArenaError
from games.referee import DEFAULT_RETRIES, Entry, Referee
from games.registry import game_names, load_game
from games.rng import derive_seed
from replays.errors import NotARecord
from replays.reader import read_record
from replays.record import SUFFIX, Header, Record, SeatInfo
from replays.verify import rebuild
from replays.writer import RecordWriter

FOLDER = Path("replays") / "live"
REMOTE = "ws:"
"""Begins the spec of a player who plays over a connection."""
TOKEN_BYTES = 32

logger = logging.getLogger("arena.host")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How matches are hosted; times in seconds, None never."""

    name: str = "evoke-arena"
    deadline_s: float = 60.0
    bank_s: float = 60.0
    grace_s: float = 30.0
    heartbeat_s: float = 20.0
    fill_after_s: float | None = 10.0
    named_fill_after_s: float | None = 300.0
    challenge_s: float = 60.0
    fill_with: str = "scripted"
    delay_s: float = 0.0
    retries: int = DEFAULT_RETRIES
    max_matches: int = 1000
    max_lobbies: int = 200
    max_held: int = 64
    """Seats and waiting places of one connection, together."""

    @property
    def clocks(self) -> Clocks:
        """The clocks of a seat."""
        return Clocks(self.deadline_s, self.bank_s, self.grace_s)


@dataclass(slots=True, eq=False)
class Chair:
    """Who is to sit at a seat. `applicant` is the connection of a remote player, None where there is none now."""

    name: str
    spec: str
    owner: str = ""
    agent: str = ""
    applicant: Applicant | None = None

    @property
    def remote(self) -> bool:
        """Whether it plays over a connection."""
        return self.spec.startswith(REMOTE)

    @property
    def claim(self) -> tuple[str, str] | None:
        """What the request for it is known by."""
        return None if self.applicant is None else self.applicant.claim


@dataclass(slots=True, eq=False)
class Table:
    """A match that is being played, and where its result belongs."""

    number: int
    """Of the match among those that the store knows as hosted."""
    live: LiveMatch
    players: tuple[str, ...]
    specs: tuple[str, ...]
    requests: dict[int, str]
    """By seat, the request that the seat answers."""
    contest: Contest | None = None
    plan: MatchPlan | None = None


@dataclass(frozen=True, slots=True)
class _Begin:
    """A match that is to have a row and a record; `setup` is what the header does not hold."""

    match: str
    header: Header
    setup: dict[str, Any]
    seats: Sequence[HostedSeat]


class Tables:
    """The matches that are being played, and who may take up which seat.

    Args:
        home: the directory of the store and the records.
        clock: time.
        hub: shows matches to spectators.
        settings: how matches are hosted.
        desk: where blocking work is done.
        entropy: returns so many random bytes.
        observe: takes measurements by name.
    """

    def __init__(
        self,
        home: Path,
        *,
        clock: Clock,
        hub: Hub,
        settings: HostSettings,
        desk: Desk,
        entropy: Callable[[int], bytes],
        observe: Callable[[str, float], None],
    ) -> None:
        self.home = home
        self.clock = clock
        self.hub = hub
        self.settings = settings
        self.running: dict[str, Table] = {}
        """By match."""
        self.tokens: dict[bytes, RemoteAgent] = {}
        """Remote seats by the hash of their resume token."""
        self.claims: dict[tuple[str, str], RemoteAgent] = {}
        """Remote seats by the owner and the request that they answer."""
        self.owed = Owed(desk)
        self._desk = desk
        self._begun = Together(desk, self._create)
        self._entropy = entropy
        self._observe = observe

    async def make(
        self,
        match: str,
        setup: Setup,
        chairs: Sequence[Chair],
        seed: int,
        contest: Contest | None,
        plan: MatchPlan | None,
    ) -> tuple[Table, dict[int, str]]:
        """Set a match up, its row and its header written; return it with the resume token of each remote seat.

        Raises `StoreError` or `RecordWriteFailed`; nothing is left behind then.
        """
        state: State = setup.game.new(seed=seed, seats=setup.seats, options=setup.options)
        names = _distinct([chair.name for chair in chairs])
        header = Header(
            game=setup.game.name,
            rules=setup.game.version,
            options=setup.options_data(),
            seed=seed,
            seats=tuple(
                SeatInfo(name, chair.spec, chair.agent) for name, chair in zip(names, chairs, strict=True)
            ),
            retries=self.settings.retries,
            match=match,
        )
        tokens = {seat: self.token() for seat, chair in enumerate(chairs) if chair.remote}
        requests = {
            seat: chair.applicant.id
            for seat, chair in enumerate(chairs)
            if chair.remote and chair.applicant is not None
        }
        extra: dict[str, Any] = {
            "players": [chair.name for chair in chairs],
            "deadline_s": self.settings.deadline_s,
            "bank_s": self.settings.bank_s,
        }
        if contest is not None and plan is not None:
            extra |= {"tournament": contest.row, "index": plan.index, "deal": plan.deal}
        seats = [
            HostedSeat(seat, chairs[seat].owner, requests.get(seat, ""), token_hash(token))
            for seat, token in tokens.items()
        ]
        number, writer = await self._begun.run(_Begin(match, header, extra, seats))
        referee = Referee(state, retries=self.settings.retries)
        live = self._live(match, header, referee, writer, self.settings.clocks)
        specs = tuple(chair.spec for chair in chairs)
        players = tuple(chair.name for chair in chairs)
        return Table(number, live, players, specs, requests, contest, plan), tokens

    def _create(self, store: Store, asked: Sequence["_Begin"]) -> list[tuple[int, RecordWriter] | ArenaError]:
        """Return the number and the record of each match that begins. Raises `StoreError`."""
        # The rows first: a row without a record is a match of which nobody was told.
        with store.write():
            numbers = [
                hosted.add_hosted(
                    store,
                    match=one.match,
                    record=record_path(one.match).as_posix(),
                    setup=one.setup,
                    seats=one.seats,
                )
                for one in asked
            ]
        made: list[tuple[int, RecordWriter] | ArenaError] = []
        for number, one in zip(numbers, asked, strict=True):
            try:
                made.append((number, RecordWriter(self.home / record_path(one.match), one.header)))
            except ArenaError as error:
                hosted.drop_hosted(store, number)
                made.append(error)
        return made

    def rebuild(self, match: HostedMatch, record: Record) -> Table:
        """Set a match up again from its record, what the record lacks written. Blocks.

        Raises an `ArenaError` where the record is not what these rules give, or the disk refuses.
        """
        referee, missing = rebuild(record)
        writer = RecordWriter.reopen(match.record)
        try:
            writer.write(missing)
        except BaseException:
            writer.close()
            raise
        header, setup = record.header, match.setup
        clocks = Clocks(setup["deadline_s"], setup["bank_s"], self.settings.grace_s)
        live = self._live(match.match, header, referee, writer, clocks, past=[*record.entries, *missing])
        return Table(
            match.id,
            live,
            tuple(setup["players"]),
            tuple(info.spec for info in header.seats),
            {seat.seat: seat.request for seat in match.seats},
        )

    def open(self, table: Table) -> None:
        """Count a match among those that are played, and show it."""
        live = table.live
        self.running[live.info.match] = table
        self.hub.open(live.info, delay_s=self.settings.delay_s, entries=live.past, clocks=live.clocks)

    async def play(self, table: Table) -> MatchReport:
        """Play an open match to its end and return how it ended; whatever goes wrong is in the report."""
        live = table.live
        match, header = live.info.match, live.header
        try:
            result = await live.run()
            report = match_report(
                header,
                result,
                players=table.players,
                record=live.writer.path,
                record_bytes=live.writer.size,
            )
            self.hub.close(match)
            self._observe("match_finished", 1)
        except Exception as error:
            if not isinstance(error, ArenaError):
                logger.exception("match %s failed", match)
            else:
                logger.error("match %s failed: %s", match, error)
            reason = str(error) if isinstance(error, ArenaError) else type(error).__name__
            report = MatchReport(match, header.game, header.seed, reason[:500], record=live.writer.path)
            with suppress(ArenaError):  # on disk before anyone is told, also where the store is full
                await self._desk.run(lambda store: hosted.note_failure(live.writer.path, reason[:500]))
            live.fail("the match failed and is not counted")
            self.hub.abandon(match, wire="internal", reason="the match failed")
            self._observe("match_failed", 1)
        finally:
            self._forget(table)
        await self.store(table.number, report, contest=table.contest, plan=table.plan)
        return report

    async def store(
        self, number: int, report: MatchReport, *, contest: Contest | None, plan: MatchPlan | None
    ) -> None:
        """Put a result where it belongs, and note that the match is over; now, or when the store takes it."""
        row = None if contest is None else contest.row
        index, deal = (0, None) if plan is None else (plan.index, plan.deal)

        def finish(store: Store) -> None:
            hosted.finish_hosted(
                store, number, report=report, home=self.home, tournament=row, index=index, deal=deal
            )

        await self.owed.add(report, finish)

    async def store_unplayed(
        self, match: str, seed: int, *, contest: Contest, plan: MatchPlan, error: str
    ) -> None:
        """Note that a match of a tournament could not begin."""
        report = MatchReport(match, contest.setup.game.name, seed, error[:500])
        row = contest.row
        assert row is not None

        def add(store: Store) -> None:
            store.add_reports(row, reports=[(plan.index, plan.deal, report)], home=self.home)

        await self.owed.add(report, add)

    def bot(self, game: str) -> str:
        """Return the spec of the bot that takes empty seats of a game; empty where none plays it."""
        for spec in (self.settings.fill_with, "random"):
            kind = KINDS.get(spec)
            if kind is not None and (EVERY_GAME in kind.bots or game in kind.bots):
                return spec
        return ""

    async def find_ended(self, token: str) -> RemoteAgent | None:
        """Return a seat of a match that is over, as its record tells it; None where the token is for none."""
        key = token_hash(token)

        def find(store: Store) -> tuple[HostedMatch, int, Record] | None:
            found = hosted.find_seat(store, key, home=self.home)
            record = None if found is None or found[0].running else read(found[0].record)
            if found is None or record is None or record.footer is None:
                return None
            return found[0], found[1], record

        try:
            found = await self._desk.run(find)
        except ArenaError as error:
            logger.error("a seat cannot be taken up: %s", error)
            return None
        if found is None:
            return None
        agent = self._ended(*found)
        agent.resume = token
        return agent

    async def give_token(self, table: Table, agent: RemoteAgent) -> bool:
        """Give a seat a fresh resume token, the old one being void; False where the match is over meanwhile."""
        token = self.token()
        key, seat = token_hash(token), agent.seat.seat
        await self._desk.run(lambda store: hosted.set_resume(store, table.number, seat=seat, resume=key))
        for old in [old for old, holder in self.tokens.items() if holder is agent]:
            del self.tokens[old]
        if agent.info.match not in self.running:
            return False
        self.tokens[key] = agent
        agent.resume = token
        return True

    def claim(self, owner: str, request: str, agent: RemoteAgent) -> None:
        """Note which request a seat answers, if nobody else can have drawn its id."""
        claim = claim_of(owner, request)
        if claim is not None:
            self.claims[claim] = agent

    def token(self) -> str:
        """Return a fresh resume token."""
        return self._entropy(TOKEN_BYTES).hex()

    def _live(
        self,
        match: str,
        header: Header,
        referee: Referee,
        writer: RecordWriter,
        clocks: Clocks,
        *,
        past: Sequence[Entry] = (),
    ) -> LiveMatch:
        game = load_game(header.game)
        names = tuple(info.name for info in header.seats)
        info = MatchInfo(match, header.game, header.rules, header.options, names)
        watch = Stopwatch(partial(self._observe, "turnaround_s"))
        agents: list[Agent] = []
        for index, who in enumerate(header.seats):
            seat = Seat(
                game,
                len(header.seats),
                referee.state.options,
                index,
                derive_seed(header.seed, "agent", match, index),
                names,
            )
            if who.spec.startswith(REMOTE):
                agents.append(
                    RemoteAgent(
                        seat,
                        info=info,
                        retries=header.retries,
                        clock=self.clock,
                        clocks=clocks,
                        stopwatch=watch,
                    )
                )
            else:
                agents.append(make_agent(who.spec, seat))
        return LiveMatch(info, header, referee, agents, writer, self.hub, past)

    def _ended(self, match: HostedMatch, seat: int, record: Record) -> RemoteAgent:
        header = record.header
        game = load_game(header.game)
        names = tuple(info.name for info in header.seats)
        agent = RemoteAgent(
            Seat(game, len(names), game.parse_options(header.options), seat, 0, names),
            info=MatchInfo(match.match, header.game, header.rules, header.options, names),
            retries=header.retries,
            clock=self.clock,
            clocks=self.settings.clocks,
        )
        agent.tell([[event.kind, event.data] for event in record.events() if event.visible_to(seat)])
        agent.finish(over_message(match.match, result_of(record)))
        return agent

    def _forget(self, table: Table) -> None:
        agents = set(table.live.remote.values())
        self.running.pop(table.live.info.match, None)
        for agent in agents:
            self.tokens.pop(token_hash(agent.resume), None)
            self.claims.pop((agent.owner, table.requests.get(agent.seat.seat, "")), None)
        if not all(agent.resume for agent in agents):
            for key in [key for key, agent in self.tokens.items() if agent in agents]:
                del self.tokens[key]


@cache
def warm_up(bot: str) -> None:
    """Play a match of every game among bots, so that the loop never loads a module or a file of theirs. Blocks."""
    for name in game_names():
        try:
            game = load_game(name)
            state: State = game.new()
            spec = bot if bot in KINDS and name in KINDS[bot].games() else "random"
            seats = range(state.seats)
            agents = [make_agent(spec, Seat(game, state.seats, state.options, seat, seat)) for seat in seats]
            if all(agent.instant for agent in agents):
                match = play(Referee(state), agents)
                with suppress(StopIteration):
                    match.send(None)  # instant agents never wait, so this needs no loop
                match.close()
        except Exception:
            logger.exception("game %s: a match among bots failed", name)


def record_path(match: str) -> Path:
    """Return where the record of a match is, relative to the home."""
    head, dash, _ = match.partition("-")
    return FOLDER / (head if dash else head[:2]) / f"{match}{SUFFIX}"


def read(path: Path) -> Record | None:
    """Return a record, None where not even its header was written: nobody was told of that match.

    Raises `RecordUnreadable` for a file that cannot be read, `RecordTooNew` for one of a newer version.
    """
    if not path.exists():
        return None
    try:
        return read_record(path)
    except NotARecord:
        path.unlink()
        return None


def token_hash(token: str) -> bytes:
    """Return what the store keeps of a resume token."""
    return hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=32, person=b"arena-resume").digest()


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names as they are shown: each its own, the second of a kind numbered."""
    found: list[str] = []
    for name in names:
        number, shown = 1, name
        while shown in found:
            number += 1
            shown = f"{name} ({number})"
        found.append(shown)
    return found
