"""One match in asyncio: agents seated at a referee, with deadlines, every entry handed to the record.

Tournaments, servers and training all play through here. An agent that fails, answers late or never costs
its own seat a turn, never the match.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.base import Agent, Decision, Gone
from games.base import Event, Outcome
from games.referee import REFEREE_KINDS, Entry, Input, Referee, Turn, tally
from games.text import neutralise
from replays.record import recordable

DEFAULT_DEADLINE_S = 60.0
Emit = Callable[[Sequence[Entry]], None]

_log = logging.getLogger("agents.match")


@dataclass(frozen=True, slots=True)
class MatchResult:
    """How a match ended: the rules' outcome, how each seat ended, and the referee's counts."""

    outcome: Outcome
    ended: tuple[str, ...]
    counts: dict[str, int]
    seat_counts: tuple[dict[str, int], ...]
    """The same counts for each seat (without turns)."""


class _Table:
    """The agents of one match and what they have been told."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents = agents
        self.broken: dict[int, str] = {}
        self.counts: list[Counter[str]] = [Counter() for _ in agents]
        self._pending: list[list[Event]] = [[] for _ in agents]
        self._observing = [seat for seat, agent in enumerate(agents) if agent.observes]

    def tell(self, entries: Sequence[Entry]) -> None:
        """Note the events for the seats that may see them; they are delivered before the seat's next turn."""
        for entry in entries:
            if isinstance(entry, Event):
                for seat in self._observing:
                    if entry.audience is None or seat in entry.audience:
                        self._pending[seat].append(entry)
                if entry.kind in REFEREE_KINDS:
                    tally(self.counts[entry.data["seat"]], entry)

    def deliver(self, seat: int) -> None:
        """Let `seat` observe what it was told since its last turn. An agent that raises is broken for good."""
        events, self._pending[seat] = self._pending[seat], []
        if not events or seat in self.broken:
            return
        try:
            self.agents[seat].observe(events)
        except Exception as error:
            self.broken[seat] = _describe(error)


async def play(
    referee: Referee,
    agents: Sequence[Agent],
    *,
    emit: Emit | None = None,
    deadline_s: float = DEFAULT_DEADLINE_S,
    past: Sequence[Event] | None = None,
) -> MatchResult:
    """Play a match to its end.

    Args:
        referee: fresh, or rebuilt from a record that was cut short.
        agents: one for each seat; closed at the end, whatever happens.
        emit: takes every new entry in order; what it raises ends the match.
        deadline_s: seconds a seat has for one turn, retries included; agents that are instant or keep time
            themselves have no clock here.
        past: all events so far, where the match goes on from a record; they are not emitted again.
    """
    table = _Table(agents)

    def take(entries: Sequence[Entry]) -> None:
        if emit is not None:
            emit(entries)
        table.tell(entries)

    try:
        if past is None:
            take(referee.opening())
        else:
            table.tell(past)
        if all(agent.instant for agent in agents):
            await _run_instant(referee, table, take)
        else:
            await _run_waiting(referee, table, take, deadline_s)
        for seat in range(len(agents)):
            table.deliver(seat)
    finally:
        for agent in agents:
            await _close(agent)
    outcome = referee.outcome()
    assert outcome is not None
    ended = tuple(referee.ended(seat) for seat in range(len(agents)))
    return MatchResult(outcome, ended, dict(referee.counts), tuple(dict(counts) for counts in table.counts))


async def _run_instant(referee: Referee, table: _Table, take: Emit) -> None:
    while turns := referee.turns():
        for seat, turn in turns.items():
            take(referee.feed(await _ask(table, seat, turn)))


async def _run_waiting(referee: Referee, table: _Table, take: Emit, deadline_s: float) -> None:
    loop = asyncio.get_running_loop()
    asked: dict[int, tuple[Turn, asyncio.Future[Decision]]] = {}
    deadlines: dict[tuple[int, int], float] = {}
    more: asyncio.Future[None] = loop.create_future()

    def answered(answer: asyncio.Future[Decision]) -> None:
        if not more.done():
            more.set_result(None)

    try:
        while turns := referee.turns():
            for seat, turn in turns.items():
                if seat not in asked:
                    end = None
                    if not table.agents[seat].keeps_time:
                        end = deadlines.setdefault((seat, turn.ply), loop.time() + deadline_s)
                    answer = _begin(loop, table, seat, turn, end)
                    answer.add_done_callback(answered)
                    asked[seat] = (turn, answer)
            await more
            more = loop.create_future()
            # What came in the same round of the loop is one write of the record.
            entries: list[Entry] = []
            for seat in [seat for seat, (_, answer) in asked.items() if answer.done()]:
                entries += referee.feed(_taken(seat, *asked.pop(seat)))
            if entries:
                take(entries)
    finally:
        for _, answer in asked.values():
            answer.cancel()
        await asyncio.gather(*(answer for _, answer in asked.values()), return_exceptions=True)


def _begin(
    loop: asyncio.AbstractEventLoop, table: _Table, seat: int, turn: Turn, end: float | None
) -> asyncio.Future[Decision]:
    """Ask a seat, and return where its answer will be."""
    table.deliver(seat)
    try:
        if seat in table.broken:
            raise _Broken(table.broken[seat])
        if end is None:
            return table.agents[seat].begin(turn)
        return loop.create_task(_in_time(table.agents[seat], turn, end))
    except Exception as error:
        answer: asyncio.Future[Decision] = loop.create_future()
        answer.set_exception(error)
        return answer


async def _in_time(agent: Agent, turn: Turn, end: float) -> Decision:
    timeout = asyncio.timeout_at(end)
    try:
        async with timeout:
            return await agent.act(turn)
    except TimeoutError:
        if not timeout.expired():
            raise
        return Decision(None, failure="timeout")


class _Broken(Exception):
    """An agent that cannot observe."""


def _taken(seat: int, turn: Turn, answer: asyncio.Future[Decision]) -> Input:
    """Return what an answer that has come, or will not, is for the referee."""
    try:
        return recordable(_input(seat, turn, answer.result()))
    except (Exception, asyncio.CancelledError) as error:
        return _failed(seat, turn, error)


async def _ask(table: _Table, seat: int, turn: Turn) -> Input:
    """Ask an agent that answers at once."""
    table.deliver(seat)
    try:
        if seat in table.broken:
            raise _Broken(table.broken[seat])
        return recordable(_input(seat, turn, await table.agents[seat].act(turn)))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # it is the match that is called off
        return _failed(seat, turn, error)
    except Exception as error:
        return _failed(seat, turn, error)


def _failed(seat: int, turn: Turn, error: BaseException) -> Input:
    if isinstance(error, Gone):
        return Input(seat, turn.ply, None, "forfeit", neutralise(str(error))[:200])
    reason = str(error) if isinstance(error, _Broken) else _describe(error)
    return Input(seat, turn.ply, None, "error", reason)


async def _close(agent: Agent) -> None:
    try:
        await agent.close()
    except Exception as error:
        _log.warning("an agent of type %s failed to close: %s", type(agent).__name__, _describe(error))


def _input(seat: int, turn: Turn, decision: Decision) -> Input:
    failure = decision.failure
    if failure is None and decision.action is None:
        failure = "unparsed"
    return Input(seat, turn.ply, decision.action, failure, decision.reason, decision.thought, decision.trace)


def _describe(error: BaseException) -> str:
    return neutralise(f"{type(error).__name__}: {error}")[:200]
