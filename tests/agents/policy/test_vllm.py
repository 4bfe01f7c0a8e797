"""A real vLLM in this process, on whatever the machine has. One engine serves all tests here, in their order."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agents.base import Agent, Decision, Seat
from agents.errors import EngineFailed, PolicyError, PromptTooLong, UnknownAdapter
from agents.players import make_agent
from agents.policy.base import BASE, Completion, Constraint, Message, Request
from agents.policy.batcher import Batcher
from agents.policy.chat import describe_model
from agents.policy.local_model import TransformersSettings
from agents.policy.presets import tiny_folder
from agents.policy.restarting import RestartingEngine
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.transformers_engine import TransformersEngine
from agents.policy.vllm_local import VllmEngine
from games.referee import Turn
from tests.agents.policy.engines import (
    AGREE,
    REAL,
    Loop,
    apart,
    compare,
    job,
    make_adapter,
    mixed_requests,
    played,
    traces,
    until,
)

pytestmark = [*REAL, pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed")]

TALK = Request((Message("user", "talk"),), Constraint(choices=("0 1 2 3 4 5 " * 70,)), match="talk")
"""Hundreds of tokens, whatever the model would like."""
VOTE = Request((Message("user", "vote"),), Constraint(choices=("approve", "reject")), match="vote")


class Running:
    """The policies on vLLM, and the loop that they run on."""

    def __init__(self, home: Path) -> None:
        self.loop = Loop()
        self.home = home
        self.settings = PolicySettings(backend="vllm", model="tiny", max_batch=32, engine_retries=0)
        self.policies = Policies(self.settings, home=home)

    @property
    def batcher(self) -> Batcher:
        return self.policies.batcher("policy")

    def complete(self, *requests: Request) -> list[Completion | PolicyError]:
        """Return the answers of the engine to a batch."""
        answers: list[Completion | PolicyError] = self.loop.run(self.batcher.engine.complete(requests))
        return answers

    def facts(self) -> dict[str, float]:
        return self.policies.facts()["policy"]

    def publish(self, name: str, *, seed: int) -> str:
        """Publish a version of an adapter in the store, as training would."""
        made = make_adapter(self.home / f"made-{name}-{seed}", seed=seed)
        return self.policies.adapters.publish(name, made, base=describe_model(tiny_folder())).ref


def engine_of(running: Running) -> VllmEngine:
    """Return the engine that runs now, behind that which restarts it."""
    engine = running.batcher.engine
    assert isinstance(engine, RestartingEngine) and isinstance(engine._engine, VllmEngine)
    return engine._engine


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Running(tmp_path_factory.mktemp("home"))
    try:
        made.loop.run(made.policies.start(["policy"]))
        yield made
    finally:
        made.loop.run(made.policies.close())
        made.loop.close()


def test_it_plays_avalon_and_every_constrained_choice_is_legal(running: Running, tmp_path: Path) -> None:
    before = running.facts()
    jobs = [job(tmp_path, "m" * n, ["tiny"] * 5, tiny="policy") for n in range(1, 4)]
    reports = running.loop.run(played(running.policies, jobs))
    for report in reports:
        assert report.counts["turns"] > 20
        wrong = {kind: n for kind, n in report.counts.items() if kind != "turns" and n}
        assert not wrong, wrong
    after = running.facts()
    gained = {key: after[key] - before[key] for key in after}
    decided = [trace for one in jobs for trace in traces(one)]
    assert gained["engine_requests"] == len(decided)
    assert all(len(trace["token_ids"]) == len(trace["logprobs"]) > 0 for trace in decided)
    assert {trace["adapter"] for trace in decided} == {BASE}
    assert {trace["model"] for trace in decided} == {f"{describe_model(tiny_folder())} on vllm"}
    assert gained["engine_completion_tokens"] == sum(len(trace["token_ids"]) for trace in decided)
    assert gained["engine_prefix_cache_queries"] == sum(len(trace["prompt_ids"]) for trace in decided)
    assert gained["engine_prefix_cache_hits"] > 0.5 * gained["engine_prefix_cache_queries"]


def test_log_probabilities_agree_with_transformers(running: Running, tmp_path: Path) -> None:
    ref = running.publish("agree", seed=3)
    path = str(running.policies.adapters.resolve(ref).path)

    async def both() -> tuple[list[Request], list[Any], list[Any]]:
        local = TransformersEngine(TransformersSettings(str(tiny_folder()), device="cpu", threads=1))
        try:
            await local.start()
            await local.publish(ref, path)
            await running.policies.pin("policy:agree")
            requests = mixed_requests(BASE, ref)
            return requests, await running.batcher.engine.complete(requests), await local.complete(requests)
        finally:
            await local.close()

    requests, ours, theirs = running.loop.run(both())
    same = compare(requests, ours, theirs)
    assert same > len(requests) / 2
    greedy = [answer for request, answer in zip(requests, ours, strict=True) if request.temperature == 0]
    assert {answer.logprobs for answer in greedy} <= {(0.0,) * n for n in range(1, 20)}
    assert apart(requests, ours, ref) > 10 * AGREE


def test_a_schema_constrains_too(running: Running) -> None:
    import json

    schema = {
        "type": "array",
        "items": {"enum": [0, 1, 2]},
        "minItems": 2,
        "maxItems": 2,
        "uniqueItems": True,
    }
    (answer,) = running.complete(
        Request((Message("user", "team"),), Constraint(schema=schema), max_tokens=40)
    )
    assert isinstance(answer, Completion)
    assert len(json.loads(answer.text)) == 2 and set(json.loads(answer.text)) <= {0, 1, 2}


def test_seeds_repeat_and_bounds_hold(running: Running) -> None:
    seeded = Request((Message("user", "say"),), max_tokens=8, seed=2**63 - 1)
    first, again, other = running.complete(seeded, seeded, replace(seeded, seed=5))
    assert isinstance(first, Completion) and isinstance(again, Completion) and isinstance(other, Completion)
    assert first.token_ids == again.token_ids != other.token_ids
    assert len(first.token_ids) <= 8


def test_what_fails_for_one_request_fails_alone(running: Running) -> None:
    long = Request((Message("user", "approve " * 3000),), VOTE.constraint)
    too_long, unknown, fine = running.complete(long, replace(VOTE, adapter="red@9"), VOTE)
    assert isinstance(too_long, PromptTooLong) and isinstance(fine, Completion)
    assert isinstance(unknown, UnknownAdapter) and "got 'red@9'" in str(unknown)


def test_a_cancelled_request_ends_in_the_engine(running: Running) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(running.batcher.engine.complete([TALK] * 4))
        await until(lambda: task.done() or running.facts().get("engine_running", 0) == 4)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The engine tells its gauges with its answers. Those that were not cancelled would still be running.
        for _ in range(5):
            await running.batcher.engine.complete([VOTE])
        assert running.facts()["engine_running"] <= 1

    running.loop.run(cancel(), timeout_s=120)


class Gated(Agent):
    """Waits at its first turn until it is told to go on, then does as `random` does."""

    waiting: asyncio.Event
    go_on: asyncio.Event

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._bot = make_agent("random", seat)

    def observe(self, events: Any) -> None:
        self._bot.observe(events)

    async def act(self, turn: Turn) -> Decision:
        type(self).waiting.set()
        await type(self).go_on.wait()
        return await self._bot.act(turn)


def test_an_adapter_published_in_mid_tournament_is_used_by_new_matches_only(
    running: Running, tmp_path: Path
) -> None:
    running.publish("red", seed=1)
    seating = ["tiny", "gate", "gate", "tiny", "gate"]
    old = job(tmp_path, "old", seating, tiny="policy:red", gate="random")
    new = job(tmp_path, "new", ["bot", "tiny", "bot", "bot", "tiny"], tiny="policy:red", bot="random")

    async def tournament() -> None:
        Gated.waiting, Gated.go_on = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(played(running.policies, [old], make=lambda spec, seat: Gated(seat)))
        await Gated.waiting.wait()
        await asyncio.to_thread(running.publish, "red", seed=2)
        await played(running.policies, [new])
        assert not first.done()
        Gated.go_on.set()
        await first

    running.loop.run(tournament())
    assert {trace["adapter"] for trace in traces(old)} == {"red@1"} and len(traces(old)) > 5
    assert {trace["adapter"] for trace in traces(new)} == {"red@2"}


def test_weights_that_are_no_lora_are_refused(running: Running, tmp_path: Path) -> None:
    engine = running.batcher.engine
    with pytest.raises(UnknownAdapter, match="is a whole model, and vllm exchanges LoRA adapters alone"):
        running.loop.run(engine.publish("whole@1", str(tiny_folder())))
    with pytest.raises(UnknownAdapter, match=r"has no adapter_config\.json"):
        running.loop.run(engine.publish("none@1", str(tmp_path)))
    (tmp_path / "adapter_config.json").write_text('{"r": 512}')
    with pytest.raises(UnknownAdapter, match="got rank 512, this engine takes 1 to 16"):
        running.loop.run(engine.publish("wide@1", str(tmp_path)))
    (tmp_path / "adapter_config.json").write_text('{"r": 8}')
    with pytest.raises(UnknownAdapter, match="vllm cannot load it"):
        running.loop.run(engine.publish("empty@1", str(tmp_path)))
    (answer,) = running.complete(VOTE)
    assert isinstance(answer, Completion)


def test_a_killed_engine_costs_turns_and_the_tournament_goes_on(running: Running, tmp_path: Path) -> None:
    async def kill(publishing: Callable[[], object]) -> None:
        talking = asyncio.create_task(running.batcher.engine.complete([TALK]))
        await until(lambda: talking.done() or running.facts().get("engine_running", 0) > 0)
        (core,) = [
            child for child in multiprocessing.active_children() if child.name.startswith("EngineCore")
        ]
        assert core.pid is not None
        os.kill(core.pid, signal.SIGSTOP)
        # What is asked of it from here on can only end with it: completions, and the adapter that matches wait for.
        publishing()
        await until(lambda: engine_of(running)._llm.engine_core.utility_results)
        os.kill(core.pid, signal.SIGKILL)
        with pytest.raises(EngineFailed, match="the process of the vllm engine has died"):
            await talking

    ref = running.publish("blue", seed=2)
    jobs = [
        job(tmp_path, f"k{n}", ["tiny", "bot", "bot", "tiny", "bot"], tiny="policy:blue", bot="random")
        for n in range(3)
    ]

    async def tournament() -> Any:
        matches: list[asyncio.Task[Any]] = []
        await kill(lambda: matches.append(asyncio.create_task(played(running.policies, jobs))))
        return await matches[0]

    reports = running.loop.run(tournament())
    facts = running.facts()
    assert (facts["engine_restarts"], facts["engine_up"]) == (1.0, 1.0)
    assert all(report.counts["turns"] > 20 and not report.counts.get("illegal") for report in reports)
    # The adapter is there again, in the engine that was started.
    assert {trace["adapter"] for one in jobs for trace in traces(one)} == {ref}
    assert facts["engine_requests"] > 0
