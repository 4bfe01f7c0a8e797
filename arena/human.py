"""A person at a seat of a match in this process: `arena play GAME --seats human,…`.

The match runs in a thread of its own, as any match does; the screen has the main one. Between them stands a
`clients.match.Match`, fed as a server would feed it, so that the screen knows no difference.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from agents.base import Agent, Decision, Gone, Seat
from agents.policy.settings import PolicySettings
from arena.policy_pool import has_policy, play_one
from arena.report import MatchReport
from arena.runner import MatchJob, run_match
from clients.errors import SeatLost
from clients.human import Seats
from clients.match import Match
from clients.protocol import messages as wire
from games.base import Event
from games.errors import ArenaError
from games.referee import Turn
from games.text import neutralise

NO_CLOCK_S = 1e9
"""Stands for no deadline, as a message needs one."""


class LocalSeats(Seats):
    """The one seat of a match that is played here.

    Args:
        job: the match; exactly one of its players is the person.
        person: the name of that player.
        policy: how language models are run, where some play.
        home: the directory of the state, for their adapters.
    """

    def __init__(
        self, job: MatchJob, *, person: str, policy: PolicySettings | None = None, home: Path = Path()
    ) -> None:
        super().__init__()
        self.job = job
        self.policy = policy or PolicySettings()
        self.home = home
        self.person = person
        self.report: MatchReport | None = None
        """How the match ended, once it has."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seated: asyncio.Queue[Match | ArenaError] = asyncio.Queue()
        self._agent: HumanAgent | None = None
        self._error: ArenaError | None = None
        self._thread: threading.Thread | None = None

    async def matches(self) -> AsyncIterator[Match]:
        self.tell("The match begins …")
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="match", daemon=True)
        self._thread.start()
        try:
            seated = await self._seated.get()
            if isinstance(seated, ArenaError):
                raise seated
            yield seated
        finally:
            self.leave()
            await asyncio.to_thread(self._thread.join)
        if self._error is not None:
            raise self._error

    def leave(self) -> None:
        """Give the seat up, if it has not been played to its end."""
        if self._agent is not None:
            self._agent.gone()

    def make(self, spec: str, seat: Seat) -> Agent:
        """Return the agent of a seat: the person's, or any other player's."""
        from agents.players import HUMAN, make_agent

        if spec != HUMAN:
            return make_agent(spec, seat)
        assert self._loop is not None
        self._agent = HumanAgent(
            seat, loop=self._loop, match=self.job.match or self.job.plan.game, retries=self.job.retries
        )
        self._loop.call_soon_threadsafe(self._agent.seated, self._seated.put_nowait)
        return self._agent

    def _run(self) -> None:
        assert self._loop is not None
        error: ArenaError | None = None
        try:
            if has_policy(self.job):
                self.report = play_one(self.job, settings=self.policy, home=self.home, make=self.make)
            else:
                with asyncio.Runner() as runner:
                    self.report = run_match(self.job, loop=runner, make=self.make)
            if self.report.error is not None:
                error = ArenaError(f"the match could not be played: {self.report.error}")
        except ArenaError as failed:
            error = failed
        except Exception as failed:
            error = ArenaError(
                f"the match could not be played: {neutralise(f'{type(failed).__name__}: {failed}')}"
            )
        self._loop.call_soon_threadsafe(self._over, error)

    def _over(self, error: ArenaError | None) -> None:
        self._error = error
        if error is not None and self._agent is not None:
            self._agent.failed(error)
        elif error is not None:
            self._seated.put_nowait(error)
        elif self._agent is not None and self.report is not None:
            self._agent.over(self.report)


class HumanAgent(Agent):
    """Asks a person at the screen, which runs in another thread's `loop`."""

    keeps_time = True

    def __init__(self, seat: Seat, *, loop: asyncio.AbstractEventLoop, match: str, retries: int) -> None:
        super().__init__(seat)
        self._loop = loop
        self._left = False
        self._request = 0
        self._told = 0
        self._waiting: concurrent.futures.Future[Decision] | None = None
        self._seated = wire.Seated(
            match=match,
            game=seat.game.name,
            rules=seat.game.version,
            options=seat.options.model_dump(mode="json"),
            seats=seat.seats,
            seat=seat.seat,
            names=list(seat.names),
            resume="",
            events=0,
            retries=retries,
            deadline_s=NO_CLOCK_S,
        )
        self._match: Match | None = None

    # In the match's thread

    def observe(self, events: Sequence[Event]) -> None:
        rows = [[event.kind, dict(event.data)] for event in events]
        message = wire.Events(match=self._seated.match, first=self._told, events=rows)
        self._told += len(rows)
        self._loop.call_soon_threadsafe(self._take, message)

    async def act(self, turn: Turn) -> Decision:
        if self._left:
            raise Gone("the person has left")
        self._request += 1
        answer: concurrent.futures.Future[Decision] = concurrent.futures.Future()
        asked = wire.Turn(
            match=self._seated.match,
            request=self._request,
            schema=None,
            space=turn.space.to_data(),
            describe=turn.space.describe(),
            attempt=turn.attempt,
            failure=turn.failure,
            reason=turn.reason,
            deadline_s=NO_CLOCK_S,
        )
        self._loop.call_soon_threadsafe(self._ask, asked, answer)
        return await asyncio.wrap_future(answer)

    # In the screen's thread

    def seated(self, tell: Callable[[Match], None]) -> None:
        """Make the seat that the screen knows."""
        self._match = Match(_Line(self), self._seated)
        tell(self._match)

    def gone(self) -> None:
        """Give the seat up."""
        self._left = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Gone("the person has left"))

    def over(self, report: MatchReport) -> None:
        """Say how the match ended, unless the person has left it."""
        if self._left:
            return
        seats = report.seats
        self._take(
            wire.Over(
                match=self._seated.match,
                reason=report.reason,
                returns=[seat.value for seat in seats],
                teams=[seat.team for seat in seats],
                roles=[seat.role for seat in seats],
                ended=[seat.ended for seat in seats],
                counts=report.counts,
            )
        )

    def _take(self, message: wire.Message) -> None:
        assert self._match is not None
        self._match.take(message)

    def _ask(self, asked: wire.Turn, answer: "concurrent.futures.Future[Decision]") -> None:
        self._waiting = answer
        if self._left:
            answer.set_exception(Gone("the person has left"))
        else:
            self._take(asked)

    def answer(self, request: int, decision: Decision) -> bool:
        """Take the person's answer; False where nobody waits for it."""
        waiting = self._waiting
        if waiting is None or waiting.done() or request != self._request:
            return False
        waiting.set_result(decision)
        acted = wire.Acted(match=self._seated.match, request=request)
        self._loop.call_soon(self._take, acted)  # not at once: the caller does not wait for it yet
        return True

    def failed(self, error: ArenaError) -> None:
        """Say that the match could not be played."""
        if self._match is not None:
            self._match.fail(SeatLost("unavailable", str(error)))

    def parted(self) -> None:
        """Give the seat up, and tell the screen."""
        self.gone()
        if self._match is not None:
            self._match.fail(SeatLost("left", "the seat was given up"))


class _Line:
    """What the screen's seat calls."""

    def __init__(self, agent: HumanAgent) -> None:
        self._agent = agent

    def act(self, match: str, **answer: Any) -> bool:
        failure = answer.get("failure")
        action = answer.get("action")
        decision = Decision(
            tuple(action) if isinstance(action, list | tuple) else action,
            answer.get("thought"),
            failure=failure,
            reason=answer.get("reason", ""),
        )
        return self._agent.answer(answer["request"], decision)

    def leave(self, match: str) -> None:
        self._agent.parted()
