import asyncio
from typing import Any

import pytest

from agents.errors import BadAdapter, BadModel, EngineFailed
from agents.policy.restarting import PATIENCE, RestartingEngine
from tests.agents.policy.counting import CountingEngine, request


class Factory:
    """Makes engines; `mortal` of them die on their first call, `broken` of the later ones do not start."""

    def __init__(self, *, mortal: int = 0, broken: int = 0) -> None:
        self.made: list[CountingEngine] = []
        self.mortal, self.broken = mortal, broken

    def __call__(self) -> CountingEngine:
        number = len(self.made)
        engine = CountingEngine()
        if number < self.mortal:
            engine.dies = lambda: True
        elif number - self.mortal < self.broken:

            async def fail() -> None:
                raise BadModel("no weights")

            engine.start = fail  # type: ignore[method-assign]
        self.made.append(engine)
        return engine


def restarting(factory: Factory, **changes: Any) -> RestartingEngine:
    return RestartingEngine(factory, **{"first_delay_s": 0.001, "max_delay_s": 0.004} | changes)


def test_a_dead_engine_is_closed_and_another_answers() -> None:
    async def work() -> None:
        factory = Factory(mortal=1)
        engine = restarting(factory)
        await engine.start()
        await engine.publish("a@1", "/a")
        answers = await asyncio.gather(*(engine.complete([request(text=str(i))]) for i in range(5)))
        assert [answer[0].text for answer in answers] == list("01234")  # type: ignore[union-attr]
        assert engine.restarts == 1 and len(factory.made) == 2
        assert factory.made[0].closed == 1
        assert factory.made[1].adapters == {"a@1": "/a"}
        await engine.close()
        assert [one.closed for one in factory.made] == [1, 1]

    asyncio.run(work())


def test_an_adapter_is_published_to_the_next_engine_where_one_dies_meanwhile() -> None:
    async def work(mortal: int) -> RestartingEngine:
        factory = Factory()
        engine = restarting(factory)
        await engine.start()
        made = engine._make

        async def die(version: str, path: str) -> None:
            raise EngineFailed("killed")

        def make() -> CountingEngine:
            one = made()
            assert isinstance(one, CountingEngine)
            if len(factory.made) < mortal + 1:
                one.publish = die  # type: ignore[method-assign]
            return one

        engine._make = make
        factory.made[0].publish = die  # type: ignore[method-assign]
        try:
            await engine.publish("a@1", "/a")
        finally:
            await engine.close()
        return engine

    engine = asyncio.run(work(mortal=1))
    assert engine.restarts == 1 and engine.published("a@1")
    with pytest.raises(EngineFailed, match="killed"):
        asyncio.run(work(mortal=2))


def test_an_adapter_that_is_gone_does_not_keep_the_next_engine_from_starting() -> None:
    async def work() -> None:
        factory = Factory(mortal=1)
        engine = restarting(factory)
        await engine.start()
        for version in ("a@1", "b@1"):
            await engine.publish(version, f"/{version}")
        make = engine._make

        def without_a() -> CountingEngine:
            made = make()
            publish = made.publish

            async def refuse(version: str, path: str) -> None:
                if version == "a@1":
                    raise BadModel("its weights are gone")
                await publish(version, path)

            made.publish = refuse  # type: ignore[method-assign]
            assert isinstance(made, CountingEngine)
            return made

        engine._make = without_a
        answers = await engine.complete([request(text="on")])
        assert answers[0].text == "on"  # type: ignore[union-attr]
        assert factory.made[1].adapters == {"b@1": "/b@1"}
        assert engine.published("b@1") and not engine.published("a@1")
        await engine.close()

    asyncio.run(work())


def test_the_next_engine_gets_the_adapters_that_are_in_use() -> None:
    async def work() -> None:
        factory = Factory(mortal=1)
        engine = restarting(factory)
        await engine.start()
        for version in ("gone@1", "held@1", "soon@1"):
            await engine.publish(version, f"/{version}")
        for version in ("gone@1", "held@1", "held@1"):
            engine.hold(version)
        for version in ("gone@1", "held@1"):
            engine.release(version)
        await engine.complete([request(text="on")])
        assert factory.made[1].adapters == {"held@1": "/held@1", "soon@1": "/soon@1"}
        assert not engine.published("gone@1")
        await engine.publish("gone@1", "/gone@1")
        assert "gone@1" in factory.made[1].adapters
        await engine.close()

    asyncio.run(work())


def test_an_adapter_is_verified_before_the_next_engine_gets_it() -> None:
    def verify(version: str) -> None:
        if version == "a@1":
            raise BadAdapter("its files are not those that were published")

    async def work() -> None:
        factory = Factory(mortal=1)
        engine = restarting(factory, verify=verify)
        await engine.start()
        for version in ("a@1", "b@1"):
            await engine.publish(version, f"/{version}")
        await engine.complete([request(text="on")])
        assert factory.made[1].adapters == {"b@1": "/b@1"}
        assert not engine.published("a@1")
        await engine.close()

    asyncio.run(work())


def test_an_engine_that_cannot_even_be_made_is_tried_again() -> None:
    async def work() -> None:
        factory = Factory(mortal=1)
        engine = restarting(factory)
        await engine.start()
        fails = iter((True, True))

        def make() -> CountingEngine:
            if next(fails, False):
                raise BadModel("no such device")
            return factory()

        engine._make = make
        (answer,) = await engine.complete([request(text="back")])
        assert answer.text == "back"  # type: ignore[union-attr]
        assert engine.restarts == 1
        await engine.close()

    asyncio.run(work())


def test_a_request_that_kills_every_engine_fails_and_others_go_on() -> None:
    killer = request(text="poison")

    class Mortal(CountingEngine):
        async def complete(self, requests: Any) -> Any:
            if killer in requests:
                raise EngineFailed("killed")
            return await super().complete(requests)

    async def work() -> None:
        engine = RestartingEngine(lambda: Mortal(), retries=1, first_delay_s=0.001)
        await engine.start()
        with pytest.raises(EngineFailed, match="killed"):
            await engine.complete([killer])
        answers = await engine.complete([request(text="fine")])
        assert answers[0].text == "fine"  # type: ignore[union-attr]
        assert engine.restarts == 2
        await engine.close()

    asyncio.run(work())


def test_starts_that_fail_are_tried_again_and_patience_ends() -> None:
    async def work() -> None:
        factory = Factory(mortal=1, broken=PATIENCE + 3)
        engine = restarting(factory)
        await engine.start()
        with pytest.raises(EngineFailed, match="does not start again: no weights"):
            await engine.complete([request()])
        tried = len(factory.made)
        assert tried >= PATIENCE
        with pytest.raises(EngineFailed, match="does not start again"):
            await engine.complete([request()])
        while engine.restarts == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        answers = await engine.complete([request(text="back")])
        assert answers[0].text == "back"  # type: ignore[union-attr]
        assert all(one.closed == 1 for one in factory.made[:-1])
        await engine.close()

    asyncio.run(work())


def test_who_waits_for_a_restart_keeps_its_own_deadline() -> None:
    async def work() -> None:
        factory = Factory(mortal=1)
        engine = restarting(factory, first_delay_s=60, max_delay_s=60)
        await engine.start()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await engine.complete([request()])
        await engine.close()
        assert factory.made[0].closed == 1
        with pytest.raises(EngineFailed):
            await engine.complete([request()])

    asyncio.run(work())


def test_closing_lets_those_who_wait_go() -> None:
    async def work() -> None:
        engine = restarting(Factory(mortal=1), first_delay_s=60, max_delay_s=60)
        await engine.start()
        waiting = asyncio.ensure_future(engine.complete([request()]))
        for _ in range(20):
            await asyncio.sleep(0)
        await engine.close()
        with pytest.raises(EngineFailed, match="died"):
            await waiting

    asyncio.run(work())


def test_the_first_start_is_not_mended() -> None:
    async def work() -> None:
        factory = Factory(broken=1)
        engine = restarting(factory)
        with pytest.raises(BadModel, match="no weights"):
            await engine.start()
        assert factory.made[0].closed == 1 and len(factory.made) == 1

    asyncio.run(work())
