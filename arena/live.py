"""One live match: remote seats at a table whose every input is on disk before anyone hears of it.

A remote seat is an agent whose answers come over a connection. It outlives connections: it keeps what its seat
was told, numbered for that seat alone, its open request, and its clocks. Whoever holds its resume token takes it
up again. It keeps time itself: a turn that nobody answers ends at its deadline, and a seat whose connection
stays away longer than the grace is gone, and forfeits when it next owes a turn.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agents.base import Agent, Decision, Gone, Seat
from agents.match import MatchResult, play
from arena.clocks import TurnClock
from arena.errors import MatchAbandoned
from arena.frames import SharedEvent
from arena.hub import Hub
from arena.watcher import MatchInfo
from clients.protocol.messages import Over, WireEvent
from games.base import Event, View
from games.referee import Entry, Input, Referee, Turn
from games.registry import load_game
from replays.record import Footer, Header
from replays.writer import RecordWriter

Closed = Literal["answered", "deadline", "closed"]
"""Why a request is no longer open."""

EARLY_S = 0.002
"""By how much a timer may ring too early: clocks of loops move in steps."""

_CLOSED_BY: dict[str, Closed] = {"timeout": "deadline", "disconnect": "deadline", "forfeit": "closed"}


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """Let it not happen."""


class Clock(Protocol):
    """Time in seconds, never going back, and what is to happen later; an asyncio loop is one."""

    def time(self) -> float:
        """Return the time."""
        ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        """Call `callback` in `delay` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Clocks:
    """How long a remote seat has: for a turn (retries included), in the bank for all turns, after a disconnect."""

    deadline_s: float = 60.0
    bank_s: float = 0.0
    grace_s: float = 30.0


class Link(Protocol):
    """A connection that holds a seat."""

    def news(self, agent: "RemoteAgent") -> None:
        """The seat has events, a turn or an end that were not sent yet."""

    def settled(self, agent: "RemoteAgent", request: int) -> None:
        """The answer to `request` is recorded."""

    def taken_over(self, agent: "RemoteAgent") -> None:
        """Another connection holds the seat from now on."""

    def failed(self, agent: "RemoteAgent", reason: str) -> None:
        """The match cannot go on."""


@dataclass(slots=True, eq=False)
class Stopwatch:
    """Measures the server's own time: from the last answer that a turn waited for to when it is asked.

    `seconds` is the system's finest clock by default; a loop's moves in steps, those of uvloop a millisecond long.
    """

    observe: Callable[[float], None]
    seconds: Callable[[], float] = time.perf_counter
    _answered: float | None = None

    def reply(self) -> None:
        """An answer has come."""
        self._answered = self.seconds()

    def ask(self) -> None:
        """A turn is asked."""
        if self._answered is not None:
            self.observe(self.seconds() - self._answered)
            self._answered = None


@dataclass(slots=True, eq=False)
class Asked:
    """An open request: the turn, when it ends (on the host's clock), and where its answer goes."""

    request: int
    turn: Turn
    ends_at: float
    answer: asyncio.Future[Decision]
    state: Closed | None = None
    """None while the answer is awaited; then why no other is taken."""


class RemoteAgent(Agent):
    """A seat that is played over a connection.

    Args:
        seat: where it sits.
        info: the match.
        retries: how often an illegal answer is asked again.
        clock: time.
        clocks: how long it has.
        owner: the name of the identity that plays it, empty for nobody in particular.
        stopwatch: the match's.
    """

    keeps_time = True
    observes = False

    def __init__(
        self,
        seat: Seat,
        *,
        info: MatchInfo,
        retries: int,
        clock: Clock,
        clocks: Clocks,
        owner: str = "",
        stopwatch: Stopwatch | None = None,
    ) -> None:
        super().__init__(seat)
        self.stopwatch = stopwatch
        self.info = info
        self.retries = retries
        self.clock = clock
        self.clocks = clocks
        self.owner = owner
        self.resume = ""
        """The token, where it is known; the store knows its hash."""
        self.log: list[WireEvent] = []
        """What the seat was told, as `[kind, data]`."""
        self._told = 0
        """Events of which the connection knows."""
        self.closed: list[Closed] = []
        """Why each request is no longer open; the first request is number 1."""
        self.asked: Asked | None = None
        self.over: Over | None = None
        self.gone = False
        self.held = False
        """Whether a connection has ever held the seat, since the server was started."""
        self.link: Link | None = None
        self.bank_s = clocks.bank_s
        self._ply: int | None = None
        self._began = 0.0
        self._bank_before = clocks.bank_s
        self._grace: Timer | None = None
        self._timer: Timer | None = None
        """Rings when the turn for which it was set would end. Turns come and go far more often than it rings, so
        it is not set anew for each: whoever is then asked has it set to when that turn ends."""
        self._rings_at = 0.0

    # The match's side

    def observe(self, events: Sequence[Event]) -> None:
        """Events are sent when they fall."""

    def begin(self, turn: Turn) -> asyncio.Future[Decision]:
        if self.gone:
            raise Gone("the player is gone")
        return self._ask(turn).answer

    async def act(self, turn: Turn) -> Decision:
        return await self.begin(turn)

    async def close(self) -> None:
        self._stop_grace()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def tell(self, events: Sequence[WireEvent] = ()) -> None:
        """Note events that the seat may see, and let the connection know of what is new in the log."""
        self.log.extend(events)
        if self._told < len(self.log):
            self._told = len(self.log)
            if self.link is not None:
                self.link.news(self)

    def record(self, given: Input) -> None:
        """Note that an input of this seat is on disk."""
        asked, self.asked = self.asked, None
        request = len(self.closed) + 1
        self.closed.append(_CLOSED_BY.get(given.failure or "", "answered"))
        if asked is not None:
            used_s = self.clock.time() - self._began
            self.bank_s = max(0.0, self._bank_before - max(0.0, used_s - self.clocks.deadline_s))
            if self.link is not None and asked.state == "answered":
                self.link.settled(self, request)

    def began(self, ply: int) -> float | None:
        """Return when the seat was first asked in this ply, None where it was not."""
        return self._began if ply == self._ply else None

    def left_s(self, ply: int, now: float) -> float:
        """Return what the seat has left of its turn in this ply, banked time included, in seconds."""
        began, bank_s = (self._began, self._bank_before) if ply == self._ply else (now, self.bank_s)
        return max(0.0, began + self.clocks.deadline_s + bank_s - now)

    def finish(self, over: Over) -> None:
        """Note how the match ended."""
        self.over = over
        if self.link is not None:
            self.link.news(self)

    def fail(self, reason: str) -> None:
        """Say that the match cannot go on."""
        link, self.link = self.link, None
        if link is not None:
            link.failed(self, reason)

    def _ask(self, turn: Turn) -> Asked:
        now = self.clock.time()
        if turn.ply != self._ply:
            self._ply, self._began, self._bank_before = turn.ply, now, self.bank_s
        ends_at = self._began + self.clocks.deadline_s + self._bank_before
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        if self._timer is None or ends_at < self._rings_at:
            self._set_timer(ends_at, now)
        self.asked = Asked(len(self.closed) + 1, turn, ends_at, answer)
        if self.stopwatch is not None:
            self.stopwatch.ask()
        if self.link is not None:
            self.link.news(self)
        return self.asked

    def _set_timer(self, rings_at: float, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = rings_at
        self._timer = self.clock.call_later(max(0.0, rings_at - now), self._ring)

    def _ring(self) -> None:
        self._timer = None
        asked, now = self.asked, self.clock.time()
        if asked is None or asked.state is not None:
            return
        # A timer may ring a little early, and what was asked since it was set has later to end.
        if asked.ends_at - now > EARLY_S:
            self._set_timer(asked.ends_at, now)
        else:
            asked.state = "deadline"
            failure = "timeout" if self.link is not None else "disconnect"
            if not asked.answer.done():
                asked.answer.set_result(Decision(None, failure=failure))

    # The connection's side

    def attach(self, link: Link) -> None:
        """Let a connection hold the seat; one that held it before is told."""
        before, self.link = self.link, link
        self.held = True
        self._stop_grace()
        if before is not None and before is not link:
            before.taken_over(self)

    def detach(self, link: Link | None) -> None:
        """Note that the connection is lost, if it is the one that holds the seat: the grace begins."""
        if self.link is not link:
            return
        self.link = None
        self._stop_grace()
        if not self.gone and self.over is None:
            self._grace = self.clock.call_later(self.clocks.grace_s, self.leave)

    def leave(self) -> None:
        """Give the seat up for good."""
        self.gone = True
        self.link = None
        self._stop_grace()
        asked = self.asked
        if asked is not None and asked.state is None:
            asked.state = "closed"
            if not asked.answer.done():
                asked.answer.set_exception(Gone("the player is gone"))

    def reply(self, request: int, decision: Decision) -> str | None:
        """Take the answer to a request; return why it is dropped, None where it is not (a receipt follows)."""
        asked = self.asked
        if asked is not None and asked.request == request:
            if asked.state is None:
                asked.state = "answered"
                if self.stopwatch is not None:
                    self.stopwatch.reply()
                if not asked.answer.done():
                    asked.answer.set_result(decision)
            return None if asked.state == "answered" else asked.state
        if 1 <= request <= len(self.closed):
            return self.closed[request - 1]
        return "unknown"

    def _stop_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None


@dataclass(slots=True, eq=False)
class LiveMatch:
    """A match that is being played.

    `past` holds every entry so far where it goes on from a record; they are neither written nor published again.
    Such a match fails, with `MatchAbandoned`, where none of its players has come back within the grace: that nobody
    did is the server's doing and no forfeit of theirs.
    """

    info: MatchInfo
    header: Header
    referee: Referee
    agents: Sequence[Agent]
    writer: RecordWriter
    hub: Hub
    past: Sequence[Entry] = ()
    remote: dict[int, RemoteAgent] = field(init=False)
    entries: int = 0
    _public: View = field(init=False)
    """What everyone knows, as far as `_folded` of the rules' events."""
    _folded: int = 0

    def __post_init__(self) -> None:
        self._public = load_game(self.header.game).view(None)
        self.remote = {
            seat: agent for seat, agent in enumerate(self.agents) if isinstance(agent, RemoteAgent)
        }
        self._note(self.past)

    async def run(self) -> MatchResult:
        """Play to the end, the footer written and the seats told.

        Raises `RecordWriteFailed` where the disk refuses; the record then ends with the last whole entry.
        """
        past = [entry for entry in self.past if isinstance(entry, Event)] if self.past else None
        try:
            result = await play(self.referee, self.agents, emit=self._emit, past=past)
            self.writer.finish(Footer(result.outcome, result.ended, result.counts))
        finally:
            self.writer.close()
        over = over_message(self.info.match, result)
        for agent in self.remote.values():
            agent.finish(over)
        return result

    def clocks(self) -> dict[int, TurnClock]:
        """Return what is left of the turns of remote seats; only of those that everyone knows of, for everyone."""
        if not self.remote:
            return {}
        ply, turns = self.referee.ply, self.referee.turns()
        now = next(iter(self.remote.values())).clock.time()
        public = set(self._publicly_asked())
        begun = [at for agent in self.remote.values() if (at := agent.began(ply)) is not None]
        began = min(begun, default=now)
        found = {}
        for seat, agent in self.remote.items():
            regular_s = max(0.0, began + agent.clocks.deadline_s - now)
            own_s = agent.left_s(ply, now) if seat in turns else None
            if own_s is not None or seat in public:
                found[seat] = TurnClock(own_s, regular_s if seat in public else None)
        return found

    def _publicly_asked(self) -> Sequence[int]:
        """Return the seats that everyone knows to be asked, whether or not they have answered since."""
        state = self.referee.state
        history = state.history
        try:
            for event in history[self._folded :]:
                if event.visible_to(None):
                    self._public.update(event)
            self._folded = len(history)
            return self._public.asked(state.options)
        except Exception:
            # A game from elsewhere may be wrong about this; its match must not suffer, and in doubt nobody is told.
            return ()

    def fail(self, reason: str) -> None:
        """Tell the seats that the match cannot go on."""
        for agent in self.remote.values():
            agent.fail(reason)

    def _emit(self, entries: Sequence[Entry]) -> None:
        if self.past and any(isinstance(entry, Input) and entry.failure == "forfeit" for entry in entries):
            self._expect_somebody()
        self.writer.write(entries)
        self._note(entries)
        self.hub.publish(self.info.match, entries)

    def _expect_somebody(self) -> None:
        if not any(agent.held for agent in self.remote.values()):
            raise MatchAbandoned(
                f"match {self.info.match}: no player came back after the server was started again"
            )

    def _note(self, entries: Sequence[Entry]) -> None:
        """Tell each remote seat what it may see of these entries, all of which are on disk."""
        remote, told = self.remote, False
        self.entries += len(entries)
        for entry in entries:
            if isinstance(entry, Input):
                if entry.seat in remote:
                    remote[entry.seat].record(entry)
                continue
            told = True
            wire = SharedEvent([entry.kind, entry.data])
            if entry.audience is None:
                for agent in remote.values():
                    agent.log.append(wire)
            else:
                for seat in entry.audience:
                    if seat in remote:
                        remote[seat].log.append(wire)
        if told:
            for agent in remote.values():
                agent.tell()


def over_message(match: str, result: MatchResult) -> Over:
    """Return what the seats are told at the end."""
    outcome = result.outcome
    return Over(
        match=match,
        reason=outcome.reason,
        returns=list(outcome.returns),
        teams=list(outcome.teams),
        roles=list(outcome.roles),
        ended=list(result.ended),
        counts={name: count for name, count in sorted(result.counts.items()) if count},
    )
