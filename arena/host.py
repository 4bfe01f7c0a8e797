"""The host: every match of a server, from the players who wait for it to its row in the store.

A match has a row in the store before anyone is told of it, and every input is in its record before anyone hears
of it. So a host that is killed leaves nothing untold: `start` of the next one on the same home reads what was
left, rebuilds the referees, writes what the records lack, and the matches go on as their seats are taken up. What
is over is dropped from memory; its seats are then told the rest from the record.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arena import hosted
from arena.contest import Contest, Entrant, OnlineTournament
from arena.desk import Desk
from arena.errors import RequestRefused
from arena.hosted import HostedMatch
from arena.hub import Hub
from arena.ledger import DeskLedger
from arena.live import Clock, RemoteAgent
from arena.lobby import Applicant, Challenges, Client, Lobbies, Setup, read_setup
from arena.online import Tournaments
from arena.report import MatchReport, match_report, result_of
from arena.schedule import MatchPlan
from arena.table import REMOTE, Chair, Table, Tables, read, token_hash, warm_up
from arena.table import HostSettings as HostSettings
from clients.protocol.messages import Challenge, Join, Left, Respond, Resume
from games.errors import ArenaError
from games.rng import MAX_SEED, Chance, derive_seed
from games.text import clean_name

logger = logging.getLogger("arena.host")


class Host:
    """All matches of one home.

    Args:
        home: the directory of the store and the records. One host at a time uses it.
        clock: time; an asyncio loop, or a clock of a test.
        hub: shows matches to spectators.
        settings: how matches are hosted.
        desk: where blocking work is done; by default a thread of its own.
        entropy: returns so many random bytes: for tokens, seeds and names of matches.
        observe: takes measurements by name: `turnaround_s`, the server's own time from the last action to the next
            turn; `match_finished` and `match_failed`, 1 each.
        wall: seconds since 1970.
    """

    def __init__(
        self,
        home: Path,
        *,
        clock: Clock,
        hub: Hub,
        settings: HostSettings | None = None,
        desk: Desk | None = None,
        entropy: Callable[[int], bytes] = secrets.token_bytes,
        observe: Callable[[str, float], None] = lambda name, value: None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.home = home
        self.clock = clock
        self.hub = hub
        self.settings = settings or HostSettings()
        self.clients: dict[Client, None] = {}
        """Open connections that said hello."""
        self.stopping = False
        self._desk = desk or Desk(home)
        self._entropy = entropy
        self._matches = Tables(
            home,
            clock=clock,
            hub=hub,
            settings=self.settings,
            desk=self._desk,
            entropy=entropy,
            observe=observe,
        )
        self.tables = self._matches.running
        """Matches that are being played."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = 0
        self._seating: dict[tuple[str, str], Chair] = {}
        """Who is to sit in matches that begin, by the request: it may come again, over another connection."""
        self.waiting = Lobbies(
            clock=clock,
            start=self._seat_players,
            ticket=self._ticket,
            fill_after_s=self.settings.fill_after_s,
            named_fill_after_s=self.settings.named_fill_after_s,
            max_lobbies=self.settings.max_lobbies,
        )
        self.challenges = Challenges(
            clock=clock,
            start=self._seat_players,
            ticket=self._ticket,
            expire_after_s=self.settings.challenge_s,
        )
        self.contests = Tournaments(
            clock=clock,
            wall=wall,
            grace_s=self.settings.grace_s,
            ticket=self._ticket,
            ledger=DeskLedger(self._desk, spawn=self._spawn),
            seat=self._seat_entrants,
        )

    # Beginning and end

    async def start(self) -> None:
        """Take up what an earlier host left. Call it before any connection. Raises `StoreError`."""
        await asyncio.to_thread(warm_up, self.settings.fill_with)
        left = await self._desk.run(lambda store: hosted.left(store, home=self.home))
        for name, players in left.over:
            self.contests.ended(name, players)
        for row, asked, players, played in left.running:
            try:
                await self._catch_up(self.contests.restore(asked, row=row, players=players, played=played))
            except ArenaError as error:
                logger.error("tournament %s cannot go on: %s", asked.name, error)
        for asked, players, starts_on in left.open:
            try:
                self.contests.restore_open(asked, players=players, starts_on=starts_on)
            except ArenaError as error:
                logger.error("tournament %s cannot be opened again: %s", asked.name, error)
        for match in left.matches:
            try:
                await self._take_up(match)
            except ArenaError as error:
                logger.error("match %s cannot go on: %s", match.match, error)
        self.contests.waiting_for_players()

    async def stop(self) -> None:
        """End all matches where they stand; the next host goes on with them."""
        self.stopping = True
        self.waiting.close()
        self.challenges.close()
        self.contests.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._matches.owed.settle()
        await self._desk.close()

    async def _catch_up(self, contest: Contest) -> None:
        await self._desk.run(lambda store: contest.catch_up())

    async def _take_up(self, match: HostedMatch) -> None:
        """Go on with a match from its record, or put its result where it belongs."""
        record = await self._desk.run(lambda store: read(match.record))
        if record is None:
            await self._desk.run(lambda store: hosted.drop_hosted(store, match.id))
            return
        contest, plan = self._contest_of(match)
        failure = await self._desk.run(lambda store: hosted.noted_failure(match.record))
        if failure is not None:
            report = MatchReport(
                match.match, record.header.game, record.header.seed, failure, record=match.record
            )
            await self._store_left(match, report, contest, plan)
            return
        if record.footer is not None:
            size = await self._desk.run(lambda store: match.record.stat().st_size)
            report = match_report(
                record.header,
                result_of(record),
                players=match.setup["players"],
                record=match.record,
                record_bytes=size,
            )
            await self._store_left(match, report, contest, plan)
            return
        if contest is not None and plan is not None:
            self.contests.resumed(contest, plan.index)
        try:
            table = await self._desk.run(lambda store: self._matches.rebuild(match, record))
        except ArenaError as error:
            logger.error("match %s cannot go on: %s", match.match, error)
            report = MatchReport(match.match, record.header.game, record.header.seed, str(error)[:500])
            await self._store_left(match, report, contest, plan)
            return
        table.contest, table.plan = contest, plan
        for seat in match.seats:
            agent = table.live.remote[seat.seat]
            agent.owner = seat.owner
            agent.detach(None)
            self._matches.tokens[seat.resume] = agent
            if contest is None:
                self._matches.claim(seat.owner, seat.request, agent)
        self._matches.open(table)
        self._spawn(self._play(table))

    async def _store_left(
        self, match: HostedMatch, report: MatchReport, contest: Contest | None, plan: MatchPlan | None
    ) -> None:
        """Store how a match ended that the host before could not."""
        await self._matches.store(match.id, report, contest=contest, plan=plan)
        if contest is not None and plan is not None:
            self.contests.over(contest, plan, report.points)

    def _contest_of(self, match: HostedMatch) -> tuple[Contest | None, MatchPlan | None]:
        row = match.setup.get("tournament")
        for contest in self.contests.open.values():
            if row is not None and contest.row == row:
                return contest, contest.plans.get(match.setup["index"])
        return None, None

    # What connections ask for

    def opened(self, client: Client) -> None:
        """Note a connection that said hello."""
        self.clients[client] = None

    def lost(self, client: Client) -> None:
        """Note that a connection is gone: its waiting places are free, its registrations stand.

        The connection itself lets go of its seats.
        """
        self.clients.pop(client, None)
        self.waiting.lost(client)
        self.challenges.lost(client)
        self.contests.lost(client)

    def join(self, applicant: Applicant, message: Join) -> None:
        """Seat a player, now or when there are enough. Raises `RequestRefused`."""
        if message.where == "tournament":
            entrant = self.contests.join(applicant, tournament=message.tournament)
            if entrant is not None:
                self._reseat(message.tournament, entrant, applicant)
            return
        if self._again(applicant):
            return
        setup = None
        if message.game or message.where == "lobby":
            setup = self._setup(message.game, message.seats, message.options)
        name = ""
        if message.where == "match":
            name = clean_name(message.match)
            if not name:
                raise RequestRefused("unknown_match", "match: a name is needed")
        self._make_room(applicant.client)
        self.waiting.join(applicant, setup=setup, name=name)

    def challenge(self, applicant: Applicant, message: Challenge) -> None:
        """Challenge another player who is connected. Raises `RequestRefused`."""
        if self._again(applicant):
            return
        setup = self._setup(message.game, None, message.options)
        self._make_room(applicant.client)
        self.challenges.challenge(
            applicant, setup=setup, opponent=self._player(message.opponent, applicant.client)
        )

    def respond(self, applicant: Applicant, message: Respond) -> None:
        """Accept or decline a challenge. Raises `RequestRefused`."""
        if self._again(applicant):
            return
        for place in self.waiting.waiting():
            if place.client is applicant.client:
                applicant = replace(applicant, name=place.name, agent=place.agent)
                break
        if not self.challenges.respond(applicant, ticket=message.ticket, accept=message.accept):
            raise RequestRefused("unknown_ticket", "ticket: no such challenge waits for you")
        if message.accept:
            # Who plays a challenge no longer waits in a lobby.
            for ticket in self.waiting.places(applicant.client):
                self.waiting.leave(ticket, client=applicant.client, reason="withdrawn")

    def leave(self, ticket: str, *, client: Client) -> None:
        """Give up a waiting place, a challenge or a registration. Raises `RequestRefused`."""
        if not (
            self.waiting.leave(ticket, client=client)
            or self.challenges.leave(ticket, client=client)
            or self.contests.leave(ticket, client=client)
        ):
            raise RequestRefused("unknown_ticket", "ticket: no such waiting place or challenge is yours")

    def resume(self, client: Client, message: Resume) -> None:
        """Let a connection hold a seat of which it knows the token. Raises `RequestRefused`."""
        if (agent := self._matches.tokens.get(token_hash(message.resume))) is None:
            self._spawn(self._resume_ended(client, message))
            return
        if agent.gone or message.seen > len(agent.log):
            raise RequestRefused("bad_resume", "resume: the seat was given up, or never saw as many events")
        agent.resume = message.resume
        client.seat(agent, request=message.id, seen=message.seen)

    def own_seats(self, match: str, owner: str) -> set[int]:
        """Return the seats of a live match that are played under the token named `owner`."""
        table = self.tables.get(match)
        if table is None or not owner:
            return set()
        return {seat for seat, agent in table.live.remote.items() if agent.owner == owner}

    # For pages, REST and metrics

    def add_tournament(self, asked: OnlineTournament) -> None:
        """Open a tournament for registration. Raises `TournamentError`."""
        self.contests.add(asked)

    def lobbies(self) -> list[dict[str, Any]]:
        """Return who waits, as JSON-compatible data; named matches are for those who know the name."""
        return self.waiting.state()

    def tournaments(self) -> list[dict[str, Any]]:
        """Return the tournaments that are open or running, as JSON-compatible data."""
        now = self.clock.time()
        live: dict[str, list[str]] = {}
        for match, table in self.tables.items():
            if table.contest is not None:
                live.setdefault(table.contest.asked.name, []).append(match)
        return [
            {**contest.state(now), "live": live.get(name, [])} for name, contest in self.contests.open.items()
        ]

    def kept(self) -> dict[str, int]:
        """Return how much is held in memory, by kind."""
        return {
            "tables": len(self.tables),
            "tasks": len(self._tasks),
            "tokens": len(self._matches.tokens),
            "claims": len(self._matches.claims),
            "lobbies": len(self.waiting.open),
            "challenges": len(self.challenges.open),
            "clients": len(self.clients),
        }

    # Seating

    def _setup(self, game: str, seats: int | None, options: dict[str, Any]) -> Setup:
        setup = read_setup(game, seats=seats, options=options)
        if not self._matches.bot(setup.game.name):
            raise RequestRefused("bad_setup", f"game: no bot plays {setup.game.name}, so it cannot be hosted")
        return setup

    def _make_room(self, client: Client) -> None:
        if len(self.tables) + self._starting >= self.settings.max_matches:
            limit = self.settings.max_matches
            raise RequestRefused("limit", f"matches: {limit} are being played, no more are begun")
        waits = len(self.waiting.places(client)) + len(self.challenges.places(client))
        if waits >= self.settings.max_held:
            raise RequestRefused("limit", f"places: you hold {waits}, no more are given")

    def _player(self, name: str, asker: Client) -> Client | None:
        """Return the connection of a player: one who waits in a lobby under that name, else by its token's name."""
        name = clean_name(name)
        for place in self.waiting.waiting():
            if place.name == name and place.client is not asker:
                return place.client
        for client in self.clients:
            if name and client.player_name == name and client is not asker:
                return client
        return None

    def _again(self, applicant: Applicant) -> bool:
        """Whether the request was answered by a seat already, as its player may not know; then seat it again."""
        if applicant.claim is None:
            return False
        if (chair := self._seating.get(applicant.claim)) is not None:
            chair.applicant = applicant
            return True
        if (agent := self._matches.claims.get(applicant.claim)) is None or agent.gone:
            return False
        self._give(agent, applicant)
        return True

    def _reseat(self, tournament: str, entrant: Entrant, applicant: Applicant) -> None:
        """Give a tournament's player the seat that nobody holds for it, if there is one."""
        for table in self.tables.values():
            if table.contest is None or table.contest.asked.name != tournament:
                continue
            for agent in table.live.remote.values():
                name = table.players[agent.seat.seat]
                if name == entrant.name and agent.link is None and not agent.gone:
                    self._give(agent, applicant)

    def _give(self, agent: RemoteAgent, applicant: Applicant) -> None:
        client = applicant.client
        if agent.resume:
            self._hand_over(agent, applicant)
        elif (table := self.tables.get(agent.info.match)) is not None and client in self.clients:
            self._spawn(self._give_token(table, agent, applicant))

    async def _give_token(self, table: Table, agent: RemoteAgent, applicant: Applicant) -> None:
        # After a kill the token itself is unknown, so the seat gets another.
        if await self._matches.give_token(table, agent):
            self._hand_over(agent, applicant)

    def _hand_over(self, agent: RemoteAgent, applicant: Applicant) -> None:
        if applicant.client in self.clients:
            try:
                applicant.client.seat(agent, request=applicant.id)
            except RequestRefused as error:
                applicant.client.refuse(error, id=applicant.id)

    def _seat_players(self, setup: Setup, players: list[Applicant]) -> None:
        chairs = [
            Chair(player.name, f"{REMOTE}{player.name}", player.owner, player.agent, player)
            for player in players
        ]
        bot = self._matches.bot(setup.game.name)
        chairs += [Chair(bot, bot) for _ in range(setup.seats - len(chairs))]
        seed = int.from_bytes(self._entropy(8), "big") & MAX_SEED
        chairs = [chairs[at] for at in Chance(derive_seed(seed, "seats")).order(len(chairs))]
        self._seating |= {chair.claim: chair for chair in chairs if chair.claim is not None}
        self._spawn(self._begin(self._entropy(6).hex(), setup, chairs, seed))

    def _seat_entrants(self, contest: Contest, plan: MatchPlan, entrants: list[Entrant]) -> None:
        chairs = [
            Chair(entrant.name, entrant.spec, entrant.owner, entrant.agent, entrant.applicant)
            for entrant in entrants
        ]
        match = f"t{contest.row}-{plan.index}"
        # A deal of its own for every match: who had played the same deal before would know what is hidden.
        seed = derive_seed(plan.seed, "match", plan.index)
        self._spawn(self._begin(match, contest.setup, chairs, seed, contest, plan))

    # One match

    async def _begin(
        self,
        match: str,
        setup: Setup,
        chairs: Sequence[Chair],
        seed: int,
        contest: Contest | None = None,
        plan: MatchPlan | None = None,
    ) -> None:
        self._starting += 1
        try:
            table, tokens = await self._matches.make(match, setup, chairs, seed, contest, plan)
        except ArenaError as error:
            logger.error("match %s cannot begin: %s", match, error)
            for chair in chairs:
                if chair.applicant is not None:
                    chair.applicant.client.send(Left(id=chair.applicant.id, reason="unavailable"))
            if contest is not None and plan is not None:
                await self._matches.store_unplayed(match, seed, contest=contest, plan=plan, error=str(error))
                self.contests.over(contest, plan, None)
            return
        finally:
            self._starting -= 1
            for chair in chairs:
                if chair.claim is not None and self._seating.get(chair.claim) is chair:
                    del self._seating[chair.claim]
        for seat, chair in enumerate(chairs):
            if not chair.remote:
                continue
            agent = table.live.remote[seat]
            agent.resume = tokens[seat]
            self._matches.tokens[token_hash(tokens[seat])] = agent
            if chair.applicant is not None:
                if contest is None:
                    self._matches.claim(chair.owner, chair.applicant.id, agent)
                self._hand_over(agent, chair.applicant)
                if agent.link is None:
                    agent.detach(None)
            elif contest is not None:
                agent.leave()
        self._matches.open(table)
        await self._play(table)

    async def _play(self, table: Table) -> None:
        report = await self._matches.play(table)
        if table.contest is not None and table.plan is not None:
            self.contests.over(table.contest, table.plan, report.points)

    async def _resume_ended(self, client: Client, message: Resume) -> None:
        """Tell the rest of a match that is over to who held a seat in it."""
        agent = await self._matches.find_ended(message.resume)
        if client not in self.clients:
            return
        try:
            if agent is None or message.seen > len(agent.log):
                raise RequestRefused("bad_resume", "resume: no seat is held for this token")
            client.seat(agent, request=message.id, seen=message.seen)
        except RequestRefused as error:
            client.refuse(error, id=message.id)

    # Small things

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self.stopping:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended_task)

    def _ended_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a task failed", exc_info=error)

    def _ticket(self) -> str:
        return self._entropy(8).hex()
