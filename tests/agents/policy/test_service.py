import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.base import Seat
from agents.errors import BadAdapter, BadModel, EngineFailed, UnknownAdapter
from agents.match import play
from agents.policy.adapters import FOLDER, AdapterStore
from agents.policy.base import BASE, Engine
from agents.policy.presets import TINY
from agents.policy.service import Policies, make_engine, playing
from agents.policy.settings import PolicySettings
from agents.policy.spec import PolicySpec, parse_spec
from games.referee import Referee
from games.registry import load_game
from tests.agents.policy.counting import CountingEngine, request

BASE_MODEL = "counting@0"


class Makes:
    """Makes counting engines, and remembers them by what they are for."""

    def __init__(self) -> None:
        self.made: dict[str, list[CountingEngine]] = {}

    def __call__(self, spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        engine = CountingEngine()
        self.made.setdefault(spec.engine, []).append(engine)
        return engine


@pytest.fixture
def lora(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    return folder


def served(
    tmp_path: Path, work: Callable[[Policies, Makes], Any], specs: tuple[str, ...] = ("policy",)
) -> Any:
    async def inside() -> Any:
        makes = Makes()
        policies = Policies(PolicySettings(), home=tmp_path, make=makes)
        await policies.start(specs)
        try:
            return await work(policies, makes)
        finally:
            await policies.close()
            assert all(engine.closed == 1 for made in makes.made.values() for engine in made)

    return asyncio.run(inside())


def test_one_engine_serves_all_specs_that_mean_it(tmp_path: Path) -> None:
    specs = ("policy", "policy", "openai:m@http://localhost:1", "openai:m@http://localhost:1")

    async def work(policies: Policies, makes: Makes) -> None:
        assert {name: len(made) for name, made in makes.made.items()} == {"policy": 1, specs[2]: 1}
        assert policies.facts()["policy"]["queue_requests"] == 0
        assert policies.facts()[specs[2]]["engine_restarts"] == 0

    served(tmp_path, work, specs)


def test_agents_play_through_the_shared_engine(tmp_path: Path) -> None:
    async def work(policies: Policies, makes: Makes) -> None:
        game = load_game("avalon")

        async def one(match: str) -> None:
            state = game.new(seed=1)
            agents = [
                policies.agent("policy", Seat(game, state.seats, state.options, seat, seat), match=match)
                for seat in range(state.seats)
            ]
            result = await play(Referee(state), agents)
            assert not result.counts.get("error")

        await asyncio.gather(*(one(f"m{i}") for i in range(4)))
        (engine,) = makes.made["policy"]
        assert set(engine.order) == {"m0", "m1", "m2", "m3"}
        assert policies.facts()["policy"]["queue_requests"] == len(engine.order)

    served(tmp_path, work)


def test_an_adapter_is_pinned_and_its_successor_waits_for_the_next_match(tmp_path: Path, lora: Path) -> None:
    store = AdapterStore(tmp_path / FOLDER)

    async def work(policies: Policies, makes: Makes) -> None:
        (engine,) = makes.made["policy"]
        assert await policies.pin("policy") == BASE
        with pytest.raises(UnknownAdapter):
            await policies.pin("policy:good")
        one = store.publish("good", lora, base=BASE_MODEL)
        assert await policies.pin("policy:good") == "good@1"
        two = store.publish("good", lora, base=BASE_MODEL)
        assert await policies.pin("policy:good") == "good@2"
        assert await policies.pin("policy:good@1") == "good@1"
        assert engine.adapters == {"good@1": str(one.path), "good@2": str(two.path)}
        store.retire("good@2")
        assert await policies.pin("policy:good") == "good@1"

    served(tmp_path, work)


def test_an_adapter_is_checked_before_it_is_loaded(tmp_path: Path, lora: Path) -> None:
    store = AdapterStore(tmp_path / FOLDER)

    async def work(policies: Policies, makes: Makes) -> None:
        store.publish("other", lora, base="another@1")
        with pytest.raises(BadAdapter, match="it belongs to another@1, the model is counting@0"):
            await policies.pin("policy:other")
        bad = store.publish("bad", lora, base=BASE_MODEL)
        (bad.path / "adapter_config.json").write_text("[]")
        with pytest.raises(BadAdapter, match="is not what was published"):
            await policies.pin("policy:bad")
        assert makes.made["policy"][0].adapters == {}

    served(tmp_path, work)


def test_an_engine_that_was_not_started_is_told(tmp_path: Path) -> None:
    async def work(policies: Policies, makes: Makes) -> None:
        with pytest.raises(EngineFailed, match="its engine was not started"):
            policies.batcher("openai:m@http://localhost:1")

    served(tmp_path, work)


def test_an_adapter_that_is_not_there_is_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    makes = Makes()
    policies = Policies(PolicySettings(), home=tmp_path, make=makes)
    with pytest.raises(UnknownAdapter, match="got 'nope'"):
        asyncio.run(policies.start(["policy", "policy:nope"]))
    assert makes.made == {}


def test_a_start_that_fails_closes_what_was_started(tmp_path: Path) -> None:
    made: list[CountingEngine] = []

    class Broken(CountingEngine):
        async def start(self) -> None:
            raise BadModel("no weights")

    def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
        made.append(CountingEngine() if spec.engine == "policy" else Broken())
        return made[-1]

    async def work() -> None:
        with pytest.raises(BadModel, match="no weights"):
            await Policies(PolicySettings(), home=tmp_path, make=make).start(
                ["policy", "openai:m@http://localhost:1"]
            )

    asyncio.run(work())
    assert [one.closed for one in made] == [1, 1]


def test_an_engine_that_dies_is_replaced_under_the_matches(tmp_path: Path) -> None:
    async def work(policies: Policies, makes: Makes) -> None:
        (first,) = makes.made["policy"]
        first.dies = lambda: len(first.calls) > 7
        policies._running["policy"].engine.first_delay_s = 0.001
        game = load_game("avalon")
        state = game.new(seed=1)
        agents = [
            policies.agent("policy", Seat(game, state.seats, state.options, seat, seat))
            for seat in range(state.seats)
        ]
        result = await play(Referee(state), agents)
        assert not result.counts.get("error")
        assert [len(made) for made in makes.made.values()] == [2]
        assert policies.facts()["policy"]["engine_restarts"] == 1

    served(tmp_path, work)


def test_a_restart_keeps_the_adapters_of_running_matches_that_are_still_what_they_were(
    tmp_path: Path, lora: Path
) -> None:
    store = AdapterStore(tmp_path / FOLDER)
    game = load_game("kuhn")
    state = game.new(seed=1)
    seat = Seat(game, state.seats, state.options, 0, 0)

    async def work(policies: Policies, makes: Makes) -> None:
        agents = {}
        for name in ("over", "runs", "spoilt"):
            store.publish(name, lora, base=BASE_MODEL)
            ref = await policies.pin(f"policy:{name}")
            agents[name] = policies.agent(f"policy:{name}", seat, adapter=ref)
        await agents["over"].close()
        (store.root / "spoilt" / "1" / "adapter_config.json").write_text("[]")
        store.retire("runs@1")
        (first,) = makes.made["policy"]
        first.dies = lambda: True
        policies._running["policy"].engine.first_delay_s = 0.001
        await policies.batcher("policy").submit(request(text="on"))
        assert set(makes.made["policy"][1].adapters) == {"runs@1"}
        with pytest.raises(BadAdapter, match="not what was published"):
            await policies.pin("policy:spoilt")

    served(tmp_path, work)


@pytest.mark.parametrize(
    ("changes", "style", "budget"),
    [
        ({}, TINY.style, TINY.budget_tokens),
        ({"style": "full", "budget_tokens": 99}, "full", 99),
        ({"model": "smollm2"}, "full", None),
        ({"backend": "openai", "model": "m@http://h"}, "full", None),
    ],
)
def test_prompts_are_in_the_style_of_the_model(changes: Any, style: str, budget: int | None) -> None:
    found = playing(PolicySettings(**changes), PolicySpec("policy"))
    assert (found.style, found.budget_tokens) == (style, budget)


def test_settings_reach_the_engines() -> None:
    pytest.importorskip("transformers")
    engine: Any = make_engine(
        PolicySpec("policy"),
        PolicySettings(max_batch=7, threads=1, prefix_cache_mb=3, kv_cache_mb=5, context_tokens=99),
        "/m",
    )
    asked = engine.settings
    assert (asked.model, asked.max_batch, asked.threads, asked.prefix_cache_mb, asked.kv_cache_mb) == (
        "/m",
        7,
        1,
        3,
        5,
    )
    vllm: Any = make_engine(PolicySpec("policy"), PolicySettings(backend="vllm", max_batch=7), "/m")
    assert (vllm.settings.model, vllm.settings.max_batch) == ("/m", 7)
    for spec, settings in (
        ("openai:m@http://h:1", PolicySettings()),
        ("policy", PolicySettings(backend="openai", model="m@http://h:1")),
    ):
        over_http: Any = make_engine(parse_spec(spec), settings, "unused")
        assert (over_http.settings.model, over_http.settings.url) == ("m", "http://h:1")
