import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import EngineBusy, EngineFailed, PromptTooLong
from agents.policy.base import Completion
from agents.policy.batcher import Batcher
from tests.agents.policy.counting import CountingEngine, request


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def until_idle(rounds: int = 20) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


def test_every_request_gets_its_own_answer() -> None:
    async def work() -> None:
        batcher = Batcher(CountingEngine())
        texts = [str(i) for i in range(30)]
        answers = await asyncio.gather(
            *(batcher.submit(request(f"m{i % 3}", t)) for i, t in enumerate(texts))
        )
        assert [answer.text for answer in answers] == texts
        assert batcher.facts()["requests"] == 30 and batcher.facts()["waiting"] == 0
        await batcher.close()

    run(work())


def test_matches_take_turns_whoever_asks_for_more() -> None:
    async def work() -> None:
        engine = CountingEngine(max_batch=2)
        engine.gate = asyncio.Event()
        batcher = Batcher(engine)
        greedy = [asyncio.ensure_future(batcher.submit(request("greedy", str(i)))) for i in range(12)]
        await until_idle()
        modest = [asyncio.ensure_future(batcher.submit(request(f"m{i}", "x"))) for i in range(3)]
        engine.gate.set()
        await asyncio.gather(*greedy, *modest)
        # Two of the greedy one ran before the others came; from then on each match has its turn.
        assert engine.order[:2] == ["greedy", "greedy"]
        assert engine.order[2:6] == ["greedy", "m0", "m1", "m2"]
        assert [
            given.messages[-1].content for call in engine.calls for given in call if given.match == "greedy"
        ] == [str(i) for i in range(12)]
        await batcher.close()

    run(work())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(1, 6), st.integers(1, 8))
def test_no_match_waits_for_more_than_one_of_each_other(
    matches: list[int], max_batch: int, max_queued: int
) -> None:
    async def work() -> list[str]:
        engine = CountingEngine(max_batch=max_batch)
        batcher = Batcher(engine, max_queued=max(max_queued, len(matches)))
        await asyncio.gather(*(batcher.submit(request(str(match))) for match in matches))
        await batcher.close()
        return engine.order

    order = run(work())
    assert sorted(order) == sorted(map(str, matches))
    # While two matches both wait, neither is served twice in a row without the other.
    for a in set(order):
        for b in set(order) - {a}:
            served = [match for match in order if match in (a, b)]
            both = 2 * min(served.count(a), served.count(b))
            assert all(served[i] != served[i + 1] for i in range(0, both - 1))


class ManualLoop(asyncio.SelectorEventLoop):
    """An event loop on whose clock time passes only when a test lets it."""

    now = 0.0

    def time(self) -> float:
        return self.now


def test_a_request_waits_for_the_engine_a_bounded_time(caplog: pytest.LogCaptureFixture) -> None:
    async def work(loop: ManualLoop) -> None:
        engine = CountingEngine(max_batch=1)
        engine.gate = asyncio.Event()
        batcher = Batcher(engine, max_wait_s=60, max_queued=1)

        async def later(seconds: float) -> None:
            loop.now += seconds
            await until_idle()

        running, queued, outside = (
            asyncio.ensure_future(batcher.submit(request(name, name))) for name in "abc"
        )
        await later(0)
        await later(30)
        young = asyncio.ensure_future(batcher.submit(request("d", "d")))
        await later(29)
        assert not queued.done() and not outside.done()
        await later(2)
        for one in (queued, outside):
            with pytest.raises(EngineBusy, match=r"took no request for 60 s \(policy.max_wait_s\)"):
                await one
        assert batcher.facts()["waiting"] == 1 and batcher.facts()["failures"] == 2
        engine.gate.set()
        await later(3600)  # what the engine took is its caller's to end
        assert (await running).text == "a" and engine.order == ["a"]
        with pytest.raises(EngineBusy):
            await young
        assert (await batcher.submit(request("e", "e"))).text == "e"
        await batcher.close()

    loop = ManualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work(loop))
    assert not caplog.records


def test_who_listens_and_fails_costs_nobody_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        batcher = Batcher(CountingEngine())
        heard: list[str] = []

        def listen(completion: Completion) -> None:
            heard.append(completion.text)
            raise ValueError("disk full")

        batcher.on_completion = listen
        answers = await asyncio.gather(*(batcher.submit(request(text=text)) for text in "ab"))
        assert [answer.text for answer in answers] == heard == ["a", "b"]
        await batcher.close()

    run(work())
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_an_engine_is_given_no_more_than_it_asks_for() -> None:
    async def work() -> None:
        engine = CountingEngine(max_batch=5)
        engine.gate = asyncio.Event()
        batcher = Batcher(engine, max_queued=4)
        tasks = [asyncio.ensure_future(batcher.submit(request(str(i)))) for i in range(20)]
        await until_idle()
        assert len(engine.calls) == 5
        assert batcher.facts()["running"] == 5 and batcher.facts()["waiting"] == 15
        assert len(batcher._queue) == 4  # the others are held up outside
        engine.gate.set()
        await asyncio.gather(*tasks)
        await batcher.close()

    run(work())


def test_a_caller_that_leaves_takes_its_request_with_it() -> None:
    async def work() -> None:
        engine = CountingEngine(max_batch=1)
        engine.gate = asyncio.Event()
        batcher = Batcher(engine, max_queued=1)
        running, queued, outside, last = (
            asyncio.ensure_future(batcher.submit(request(name, name))) for name in "abcd"
        )
        await until_idle()
        assert engine.order == ["a"]
        queued.cancel()
        outside.cancel()
        await until_idle()
        running.cancel()
        await until_idle()
        assert [[given.match for given in call] for call in engine.cancelled] == [["a"]]
        engine.gate.set()
        assert (await last).text == "d"
        assert engine.order == ["a", "d"]
        assert batcher.facts()["cancelled"] == 3
        await batcher.close()

    run(work())


def test_a_deadline_that_passes_takes_the_request_back() -> None:
    async def work() -> None:
        engine = CountingEngine(max_batch=1)
        engine.gate = asyncio.Event()
        batcher = Batcher(engine)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await batcher.submit(request("slow"))
        await until_idle()
        assert len(engine.cancelled) == 1 and batcher.facts()["running"] == 0
        await batcher.close()

    run(work())


def test_a_failure_is_its_requests_own() -> None:
    async def work() -> None:
        engine = CountingEngine(max_batch=8)
        engine.fails = lambda given: PromptTooLong("too long") if given.match == "bad" else None
        batcher = Batcher(engine)
        answers = await asyncio.gather(
            *(batcher.submit(request(match)) for match in ("good", "bad", "good")), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [Completion, PromptTooLong, Completion]
        engine.dies = lambda: True
        with pytest.raises(EngineFailed, match="died"):
            await batcher.submit(request("good"))
        assert batcher.facts()["failures"] == 2
        await batcher.close()

    run(work())


def test_what_an_engine_raises_by_mistake_is_typed() -> None:
    class Broken(CountingEngine):
        async def complete(self, requests: Any) -> Any:
            raise ValueError("shape")

    async def work() -> None:
        batcher = Batcher(Broken())
        with pytest.raises(EngineFailed, match="ValueError: shape"):
            await batcher.submit(request())
        await batcher.close()

    run(work())


def test_closing_refuses_what_waits_and_calls_off_what_runs() -> None:
    async def work() -> None:
        engine = CountingEngine(max_batch=1)
        engine.gate = asyncio.Event()
        batcher = Batcher(engine)
        tasks = [asyncio.ensure_future(batcher.submit(request(str(i)))) for i in range(3)]
        await until_idle()
        await batcher.close()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(answer) for answer in answers] == [EngineFailed] * 3
        with pytest.raises(EngineFailed, match="closed"):
            await batcher.submit(request())

    run(work())
