"""A remote seat: its clocks, its requests, its connections."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from agents.base import Decision, Gone, Seat
from arena.live import Clocks, RemoteAgent, Stopwatch
from arena.watcher import MatchInfo
from games.base import Event
from games.referee import Input, Turn
from games.registry import load_game
from games.spaces import Choice
from tests.arena.hosting import ManualClock

SPACE = Choice(("yes", "no"))


class Line:
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def news(self, agent: RemoteAgent) -> None:
        self.told.append("news")

    def settled(self, agent: RemoteAgent, request: int) -> None:
        self.told.append(request)

    def taken_over(self, agent: RemoteAgent) -> None:
        self.told.append("taken")

    def failed(self, agent: RemoteAgent, reason: str) -> None:
        self.told.append(reason)


class Desk:
    def __init__(self, **clocks: float) -> None:
        self.clock = ManualClock()
        self.measured: list[float] = []
        game = load_game("kuhn")
        self.agent = RemoteAgent(
            Seat(game, 2, game.parse_options(None), 0, 1, ("a", "b")),
            info=MatchInfo("m", "kuhn", "1", {}, ("a", "b")),
            retries=2,
            clock=self.clock,
            clocks=Clocks(**clocks),
            stopwatch=Stopwatch(self.measured.append, self.clock.time),
        )
        self.line = Line()
        self.agent.attach(self.line)

    async def ask(self, ply: int = 0, attempt: int = 0) -> "asyncio.Task[Decision]":
        task = asyncio.get_running_loop().create_task(self.agent.act(Turn(0, ply, SPACE, attempt)))
        await asyncio.sleep(0)
        return task


def run(work: Callable[[Desk], Coroutine[Any, Any, None]], **clocks: float) -> Desk:
    desk = Desk(**clocks)
    asyncio.run(work(desk))
    return desk


def test_an_answer_is_taken_once_and_settled_when_it_is_recorded() -> None:
    async def work(desk: Desk) -> None:
        task = await desk.ask()
        assert desk.agent.asked is not None and desk.agent.asked.request == 1
        assert desk.agent.reply(2, Decision("no")) == "unknown"
        assert desk.agent.reply(1, Decision("yes")) is None
        assert desk.agent.reply(1, Decision("no")) is None  # the same answer again: its receipt follows
        assert (await task).action == "yes"
        assert 1 not in desk.line.told
        desk.agent.record(Input(0, 0, "yes"))
        assert desk.line.told[-1] == 1
        assert desk.agent.reply(1, Decision("no")) == "answered"
        assert desk.agent.reply(0, Decision("no")) == "unknown"
        await desk.ask(1)
        assert desk.agent.asked is not None and desk.agent.asked.request == 2
        assert desk.measured == [0.0]

    run(work)


def test_a_deadline_holds_for_all_attempts_of_a_turn_and_a_late_answer_is_told_so() -> None:
    async def work(desk: Desk) -> None:
        task = await desk.ask()
        desk.clock.pass_to(desk.clock.now + 9)
        desk.agent.reply(1, Decision(None, failure="unparsed"))
        await task
        desk.agent.record(Input(0, 0, None, "unparsed"))
        again = await desk.ask(0, attempt=1)
        desk.clock.pass_to(desk.clock.now + 0.9)
        assert not again.done()
        desk.clock.pass_to(desk.clock.now + 0.2)
        assert desk.agent.reply(2, Decision("yes")) == "deadline"
        assert (await again).failure == "timeout"
        desk.agent.record(Input(0, 0, None, "timeout"))
        assert desk.agent.reply(2, Decision("yes")) == "deadline"
        assert desk.agent.reply(1, Decision("yes")) == "answered"

    run(work, deadline_s=10)


def test_turns_that_are_answered_need_no_timer_of_their_own_and_the_last_one_still_ends() -> None:
    async def work(desk: Desk) -> None:
        for ply in range(50):
            task = await desk.ask(ply)
            desk.clock.pass_to(desk.clock.now + 0.1)
            desk.agent.reply(ply + 1, Decision("yes"))
            await task
            desk.agent.record(Input(0, ply, "yes"))
        assert desk.clock.number == 1
        task = await desk.ask(50)
        began = desk.clock.now
        desk.clock.pass_to(began + 9.9)
        assert not task.done()
        desk.clock.pass_to(began + 10)
        assert (await task).failure == "timeout"
        desk.agent.record(Input(0, 50, None, "timeout"))
        await desk.agent.close()
        assert all(timer.cancelled for timer in desk.clock.timers)

    run(work, deadline_s=10)


def test_a_turn_that_ends_sooner_than_the_one_before_ends_in_time() -> None:
    async def work(desk: Desk) -> None:
        task = await desk.ask(0)
        desk.clock.pass_to(desk.clock.now + 14)  # four seconds of the bank
        desk.agent.reply(1, Decision("yes"))
        await task
        desk.agent.record(Input(0, 0, "yes"))
        desk.agent.bank_s = 0  # whatever took the rest of it
        desk.agent.clocks = Clocks(deadline_s=0.5)
        task = await desk.ask(1)
        desk.clock.pass_to(desk.clock.now + 0.5)
        assert (await task).failure == "timeout"

    run(work, deadline_s=10, bank_s=5)


def test_the_bank_is_drawn_on_beyond_the_deadline_alone_and_never_filled() -> None:
    async def work(desk: Desk) -> None:
        for ply, used_s, left_s in [(0, 4, 5), (1, 12, 3), (2, 10, 3), (3, 11, 2)]:
            task = await desk.ask(ply)
            assert desk.agent.asked is not None
            assert desk.agent.asked.ends_at == desk.clock.now + 10 + desk.agent.bank_s
            desk.clock.pass_to(desk.clock.now + used_s)
            desk.agent.reply(ply + 1, Decision("yes"))
            await task
            desk.agent.record(Input(0, ply, "yes"))
            assert desk.agent.bank_s == left_s
        task = await desk.ask(4)
        desk.clock.pass_to(desk.clock.now + 12.5)
        assert (await task).failure == "timeout"
        desk.agent.record(Input(0, 4, None, "timeout"))
        assert desk.agent.bank_s == 0

    run(work, deadline_s=10, bank_s=5)


def test_a_turn_that_ends_while_the_connection_is_lost_is_a_disconnect() -> None:
    async def work(desk: Desk) -> None:
        task = await desk.ask()
        desk.agent.detach(desk.line)
        desk.clock.pass_to(desk.clock.now + 11)
        assert (await task).failure == "disconnect"

    run(work, deadline_s=10, grace_s=30)


def test_the_grace_begins_with_the_loss_and_ends_with_the_return() -> None:
    async def work(desk: Desk) -> None:
        agent = desk.agent
        agent.detach(desk.line)
        desk.clock.pass_to(desk.clock.now + 29)
        agent.attach(desk.line)
        desk.clock.pass_to(desk.clock.now + 100)
        assert not agent.gone
        agent.detach(Line())  # not the one that holds the seat
        assert agent.link is desk.line
        agent.detach(desk.line)
        desk.clock.pass_to(desk.clock.now + 30)
        assert agent.gone
        with pytest.raises(Gone):
            await (await desk.ask())

    run(work, grace_s=30)


def test_leaving_ends_the_open_turn() -> None:
    async def work(desk: Desk) -> None:
        task = await desk.ask()
        desk.agent.leave()
        assert desk.agent.reply(1, Decision("yes")) == "closed"
        with pytest.raises(Gone):
            await task
        desk.agent.record(Input(0, 0, None, "forfeit"))
        assert desk.agent.reply(1, Decision("yes")) == "closed"

    run(work)


def test_another_connection_takes_the_seat_over() -> None:
    async def work(desk: Desk) -> None:
        other = Line()
        desk.agent.attach(other)
        assert desk.line.told == ["taken"]
        desk.agent.detach(desk.line)  # the old socket closes later: nothing comes of it
        desk.clock.pass_to(desk.clock.now + 1000)
        assert not desk.agent.gone
        desk.agent.tell([["speech", {}]])
        assert other.told == ["news"]
        desk.agent.fail("the disk is full")
        assert other.told[-1] == "the disk is full"

    run(work)


def test_events_are_told_when_they_fall_and_not_twice() -> None:
    desk = Desk()
    desk.agent.observe([Event("move", {})])
    assert desk.agent.log == []
    desk.agent.tell([["move", {"seat": 0}]])
    assert desk.agent.log == [["move", {"seat": 0}]] and desk.line.told == ["news"]


def test_no_timer_is_left_behind() -> None:
    async def work(desk: Desk) -> None:
        task = await desk.ask()
        desk.agent.reply(1, Decision("yes"))
        await task
        desk.agent.detach(desk.line)
        await desk.agent.close()
        assert all(timer.cancelled for timer in desk.clock.timers)

    run(work)
