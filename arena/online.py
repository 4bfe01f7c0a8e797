"""Tournaments over connected agents: who takes part, what is planned, and which match can begin now.

Players register by name while the tournament is open. Then the schedule is made, as for any tournament
(`arena.schedule`, `arena.swiss`), and a match begins as soon as its players are free; a round of a Swiss tournament is
paired when the one before it is over. A player whose connection is gone is waited for as long as the grace; then its
matches begin without it, and its seats forfeit. In a match a player has one seat at most: a connection must not know
what two seats know. Where there are fewer players than seats, house bots take part.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from arena.contest import Contest, Entrant, OnlineTournament
from arena.errors import RequestRefused, TournamentError
from arena.live import Clock
from arena.lobby import Applicant, Client
from arena.schedule import MatchPlan
from arena.swiss import Points
from clients.protocol.messages import Left, Waiting

REMEMBERED = 256
"""Tournaments that are over whose players are still told so."""
AGAIN_S = 5.0
"""Seconds until what the store refused is tried again."""


class Ledger(Protocol):
    """What is done away from the loop; each `then` is called in the loop afterwards."""

    def keep(self, contest: Contest, then: Callable[[bool], None]) -> None:
        """Store who has registered; `then` is told whether that worked."""

    def enrol(self, contest: Contest, then: Callable[[int | None], None]) -> None:
        """Enter a tournament that begins; `then` is told its row, None where that did not work."""

    def pair(self, contest: Contest, then: Callable[[tuple[MatchPlan, ...] | None], None]) -> None:
        """Find the next round; `then` is told its matches, None where that did not work."""

    def finish(self, contest: Contest) -> None:
        """Store that a tournament is over."""


class Tournaments:
    """All tournaments of a host.

    Args:
        clock: time.
        wall: seconds since 1970.
        grace_s: seconds that an absent player is waited for.
        ticket: makes a ticket.
        ledger: what is stored, and paired.
        seat: called to begin a match: the tournament, its plan, and the entrant of each seat.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        wall: Callable[[], float],
        grace_s: float,
        ticket: Callable[[], str],
        ledger: Ledger,
        seat: Callable[[Contest, MatchPlan, list[Entrant]], None],
    ) -> None:
        self.open: dict[str, Contest] = {}
        self._clock = clock
        self._wall = wall
        self._grace_s = grace_s
        self._ticket = ticket
        self._ledger = ledger
        self._seat = seat
        self._closed = False
        self._begun = False
        """Whether all that an earlier host left is taken up, so that matches can begin."""
        self._ended: OrderedDict[str, set[tuple[str, str]]] = OrderedDict()

    def add(self, asked: OnlineTournament) -> Contest:
        """Open a tournament for registration. Raises `TournamentError`."""
        setup = asked.check()
        if asked.name in self.open:
            raise TournamentError(f"tournament name: {asked.name!r} is open already, take another")
        contest = self.open[asked.name] = Contest(asked, setup, starts_on=self._wall() + asked.starts_in_s)
        self._await_start(contest)
        for spec in asked.bots:
            self._add_bot(contest, spec)
        return contest

    def restore_open(self, asked: OnlineTournament, *, players: list[list[str]], starts_on: float) -> Contest:
        """Take up a tournament that was open when the host died, with whoever had registered.

        Raises `TournamentError`.
        """
        contest = self.open[asked.name] = Contest(asked, asked.check(), starts_on=starts_on)
        self._restore_players(contest, players)
        self._await_start(contest)
        self._close_if_full(contest)
        return contest

    def restore(
        self,
        asked: OnlineTournament,
        *,
        row: int,
        players: list[list[str]],
        played: Mapping[int, Points | None],
    ) -> Contest:
        """Take up a tournament that was running when the host died; players are absent as of now.

        The caller calls `catch_up` on it before anything else. Raises `TournamentError`.
        """
        contest = self.open[asked.name] = Contest(asked, asked.check(), row=row)
        self._restore_players(contest, players)
        contest.plan()
        for index, points in played.items():
            self._settle(contest, index, points)
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
            if not contest.open:
                raise RequestRefused("unknown_tournament", "tournament: registration is closed")
            if len(contest.entrants) >= contest.asked.max_players:
                raise RequestRefused(
                    "limit", f"tournament: it has {contest.asked.max_players} players, no more are taken"
                )
            if any(
                who.applicant and who.applicant.client is applicant.client
                for who in contest.entrants.values()
            ):
                raise RequestRefused("limit", "tournament: a connection registers one player")
            spec = f"ws:{applicant.name}"
            entrant = Entrant(
                applicant.name, applicant.owner, self._ticket(), spec, applicant.agent, applicant, kept=False
            )
            contest.entrants[applicant.name] = entrant
            self._ledger.keep(contest, lambda kept: self._registered(contest, entrant, kept=kept))
            return entrant
        if not entrant.remote or entrant.owner != applicant.owner:
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
                if contest.open:
                    del contest.entrants[entrant.name]
                    self._ledger.keep(contest, lambda kept: None)
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

    def _begin(self, contest: Contest, row: int | None) -> None:
        """Begin a tournament that the store knows as `row`."""
        if row is None:
            # Nobody is told: the registrations are stored, and it begins when the store takes it.
            contest.timer = self._clock.call_later(AGAIN_S, lambda: self._enrol(contest))
            return
        contest.row = row
        contest.plan()
        self.proceed(contest)

    def resumed(self, contest: Contest, index: int) -> None:
        """Note that a match goes on from its record."""
        match = contest.plans.pop(index)
        contest.playing.add(index)
        for name in match.players:
            contest.entrants[name].busy = True

    def over(self, contest: Contest, match: MatchPlan, points: Points | None) -> None:
        """Note that a match has ended; `points` by player, None where it failed."""
        self._settle(contest, match.index, points)
        for name in match.players:
            contest.entrants[name].busy = False
        self.proceed(contest)

    def _settle(self, contest: Contest, index: int, points: Points | None) -> None:
        contest.playing.discard(index)
        contest.plans.pop(index, None)
        if contest.swiss is not None:
            contest.results[index] = points

    def proceed(self, contest: Contest) -> None:
        """Begin every match that can begin now; end the tournament where none is left."""
        if self._closed or not self._begun or contest.row is None:
            return
        if contest.round_over and not contest.done:
            if not contest.pairing:
                contest.pairing = True
                self._pair(contest)
            return
        if contest.done:
            if self.open.pop(contest.asked.name, None) is contest:
                self.ended(contest.asked.name, [(who.name, who.owner) for who in contest.entrants.values()])
                self._ledger.finish(contest)
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
        self._begun = True
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

    def _enrol(self, contest: Contest) -> None:
        self._ledger.enrol(contest, lambda row: self._begin(contest, row))

    def _pair(self, contest: Contest) -> None:
        self._ledger.pair(contest, lambda plans: self._paired(contest, plans))

    def _paired(self, contest: Contest, plans: tuple[MatchPlan, ...] | None) -> None:
        if plans is None:
            contest.timer = self._clock.call_later(AGAIN_S, lambda: self._pair(contest))
            return
        contest.pairing = False
        contest.plans = {match.index: match for match in plans}
        self.proceed(contest)

    def _registered(self, contest: Contest, entrant: Entrant, *, kept: bool) -> None:
        """Tell the players of one who has registered; one of whom the store will not know is refused."""
        applicant, present = entrant.applicant, contest.entrants.get(entrant.name) is entrant
        if kept or not contest.open:
            entrant.kept = True
        elif present:
            del contest.entrants[entrant.name]
            if applicant is not None:
                applicant.client.send(Left(id=applicant.id, ticket=entrant.ticket, reason="unavailable"))
            return
        self._tell(contest)
        self._close_if_full(contest)

    def _close_if_full(self, contest: Contest) -> None:
        if contest.open and contest.asked.players == sum(
            who.remote and who.kept for who in contest.entrants.values()
        ):
            self._close(contest)

    def _await_start(self, contest: Contest) -> None:
        """Close the registration when its time is up, however often the host was started again meanwhile."""
        left_s = max(0.0, contest.starts_on - self._wall())
        contest.starts_at = self._clock.time() + left_s
        contest.timer = self._clock.call_later(left_s, lambda: self._close(contest))

    def _restore_players(self, contest: Contest, players: list[list[str]]) -> None:
        for name, owner, spec in players:
            contest.entrants[name] = Entrant(
                name, owner, self._ticket(), spec, absent_since=self._clock.time()
            )

    def _add_bot(self, contest: Contest, spec: str) -> None:
        number = 1
        while (name := spec if number == 1 else f"{spec} {number}") in contest.entrants:
            number += 1
        contest.entrants[name] = Entrant(name, "", self._ticket(), spec)

    def _tell(self, contest: Contest) -> None:
        if contest.row is not None:
            return
        left_s = max(0.0, contest.starts_at - self._clock.time())
        players = max(contest.asked.players or 0, len(contest.entrants))
        for entrant in contest.entrants.values():
            if entrant.applicant is not None and entrant.kept:
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
