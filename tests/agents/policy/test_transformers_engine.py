"""The engine on transformers, whose process is a real one."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.errors import BadModel, EngineFailed, PromptTooLong, UnknownAdapter
from agents.policy.base import Completion, Request
from agents.policy.chat import ChatTokenizer
from agents.policy.restarting import RestartingEngine
from agents.policy.transformers_engine import TransformersEngine
from tests.agents.policy.asked import MIXED, VOTE, ask, endless, settings

pytest.importorskip("torch")
pytest.importorskip("transformers")

ROOT = Path(__file__).parents[3]


def run(model: Path, work: Any, **changes: Any) -> Any:
    async def inside() -> Any:
        engine = TransformersEngine(settings(model, **changes))
        try:
            await engine.start()
            return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(inside())


async def held(engine: TransformersEngine, *requests: list[Request]) -> list[asyncio.Task[Any]]:
    """Stop the process, and return calls that it has been sent and will not answer."""
    assert engine._process is not None
    engine._process.send_signal(signal.SIGSTOP)
    calls = [asyncio.ensure_future(engine.complete(one)) for one in requests]
    while len(engine._owed) < sum(map(len, requests)) or engine._outbox:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    return calls


def go_on(engine: TransformersEngine) -> None:
    assert engine._process is not None
    engine._process.send_signal(signal.SIGCONT)


def kill(engine: TransformersEngine) -> None:
    assert engine._process is not None
    engine._process.kill()


def test_it_answers_counts_and_tells_what_it_did(model_folder: Path) -> None:
    tokenizer = ChatTokenizer(model_folder)

    async def work(engine: TransformersEngine) -> Any:
        assert engine.model.endswith(" on transformers") and "@" in engine.model
        for text in ("", "seat", MIXED[3].messages[0].content, "naïve – ☃ <|end|>"):
            assert engine.count_tokens(text) == tokenizer.count(text)
        return await engine.complete(MIXED), engine.facts()

    found, facts = run(model_folder, work)
    for one, done in zip(MIXED, found, strict=True):
        assert done.prompt_ids == tokenizer.prompt_ids(one.messages) and done.queue_s >= 0
        assert one.constraint is None or one.constraint.choices is None or done.text in one.constraint.choices
    assert facts["requests"] == len(MIXED) and facts["failures"] == 0
    assert facts["prompt_tokens"] == sum(len(one.prompt_ids) for one in found)
    assert facts["cached_tokens"] == sum(one.cached_tokens for one in found)
    assert facts["completion_tokens"] == sum(len(one.token_ids) for one in found)
    assert facts["forced_tokens"] > 0 and facts["passes"] > 0 and facts["waiting"] == 0


def test_a_cancelled_request_is_dropped_and_the_others_go_on(model_folder: Path) -> None:
    async def work(engine: TransformersEngine) -> Any:
        alone = await engine.complete(MIXED)
        before = engine.facts()
        *long, kept = await held(engine, *([endless(i)] for i in range(4)), MIXED)
        for task in long:
            task.cancel()
        go_on(engine)
        results = await asyncio.gather(*long, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in results)
        found = await kept
        # Whatever comes after it is told after it.
        await engine.complete([ask(1)])
        return alone, found, before, engine.facts()

    alone, found, before, facts = run(model_folder, work, max_batch=28)
    assert [one.token_ids for one in found] == [one.token_ids for one in alone]
    longest = facts["completion_tokens"] - before["completion_tokens"]
    assert longest <= sum(len(one.token_ids) for one in found) + 12
    assert facts["waiting"] == 0


def test_adapters_are_published_while_it_answers(
    model_folder: Path, lora_folder: Path, full_folder: Path
) -> None:
    async def work(engine: TransformersEngine) -> Any:
        running = asyncio.ensure_future(engine.complete(MIXED))
        await engine.publish("a@1", str(lora_folder))
        await engine.publish("whole@1", str(full_folder))
        before = await running
        versions = ("base", "a@1", "whole@1", "b@1")
        mixed = await engine.complete([replace(MIXED[0], adapter=version) for version in versions])
        with pytest.raises(UnknownAdapter, match="published already"):
            await engine.publish("a@1", str(full_folder))
        with pytest.raises(UnknownAdapter, match=r"has no adapter_config\.json"):
            await engine.publish("c@1", str(lora_folder.parent))
        return before, mixed

    before, (base, lora, whole, unknown) = run(model_folder, work)
    assert base.token_ids == before[0].token_ids
    assert (base.adapter, lora.adapter, whole.adapter) == ("base", "a@1", "whole@1")
    assert len({base.logprobs, lora.logprobs, whole.logprobs}) == 3
    assert isinstance(unknown, UnknownAdapter)
    assert "published to this engine are: a@1, whole@1" in str(unknown)


def test_prompts_without_room_are_refused_alone(model_folder: Path) -> None:
    async def work(engine: TransformersEngine) -> list[Any]:
        assert engine.context_tokens == 256
        return await engine.complete([ask(1), ask(2, rules="far too long " * 200), ask(3, constraint=VOTE)])

    found = run(model_folder, work, context_tokens=256)
    assert [type(one) for one in found] == [Completion, PromptTooLong, Completion]


def test_the_loop_never_waits(model_folder: Path, lora_folder: Path) -> None:
    from blockbuster import blockbuster_ctx

    async def work(engine: TransformersEngine) -> None:
        await engine.complete(MIXED)
        await engine.publish("a@1", str(lora_folder))
        kill(engine)
        with pytest.raises(EngineFailed):
            await engine.complete([endless(1)])

    with blockbuster_ctx(["agents"]):
        run(model_folder, work)


def test_a_process_that_dies_fails_all_that_it_owes_and_what_follows(model_folder: Path) -> None:
    async def work(engine: TransformersEngine) -> None:
        several = ([ask(2 * i), ask(2 * i + 1)] for i in range(4))
        owed = await held(engine, *several, MIXED)
        kill(engine)
        results = await asyncio.gather(*owed, return_exceptions=True)
        assert all(isinstance(one, EngineFailed) for one in results), results
        assert str(results[0]) == "the process of the transformers engine died of SIGKILL"
        with pytest.raises(EngineFailed, match="died of SIGKILL"):
            await engine.complete(MIXED[:1])
        with pytest.raises(EngineFailed, match="died of SIGKILL"):
            await engine.publish("a@1", "/nowhere")
        assert engine.count_tokens("seat") > 0

    run(model_folder, work)


def test_a_process_that_died_is_followed_by_another_with_its_adapters(
    model_folder: Path, full_folder: Path
) -> None:
    made: list[TransformersEngine] = []

    def make() -> TransformersEngine:
        made.append(TransformersEngine(settings(model_folder)))
        return made[-1]

    async def work() -> Any:
        engine = RestartingEngine(make, first_delay_s=0.01)
        await engine.start()
        try:
            await engine.publish("whole@1", str(full_folder))
            engine.hold("whole@1")
            wanted = replace(MIXED[0], adapter="whole@1")
            before = await engine.complete([wanted])
            assert made[0]._process is not None
            made[0]._process.send_signal(signal.SIGSTOP)
            running = asyncio.ensure_future(engine.complete([ask(1), wanted]))
            while not made[0]._owed:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
            kill(made[0])
            _, after = await running
            assert engine.facts()["restarts"] == 1
            return before[0], after
        finally:
            await engine.close()

    before, after = asyncio.run(work())
    assert isinstance(after, Completion) and after.token_ids == before.token_ids
    assert len(made) == 2


def test_closing_fails_what_runs_and_leaves_no_process(model_folder: Path) -> None:
    async def work() -> None:
        engine = TransformersEngine(settings(model_folder))
        with pytest.raises(EngineFailed, match="start it first"):
            await engine.complete(MIXED)
        with pytest.raises(EngineFailed, match="start it first"):
            engine.count_tokens("seat")
        await engine.start()
        running = asyncio.ensure_future(engine.complete([endless(1)]))
        await asyncio.sleep(0)
        await engine.close()
        with pytest.raises(EngineFailed, match="was closed"):
            await running
        assert engine._process is not None and engine._process.returncode is not None
        await TransformersEngine(settings(model_folder)).close()

    asyncio.run(work())


def test_a_start_that_is_called_off_leaves_no_process(model_folder: Path) -> None:
    async def work() -> None:
        engine = TransformersEngine(settings(model_folder))
        starting = asyncio.ensure_future(engine.start())
        while engine._link is None:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await engine.close()
        assert engine._process is not None and engine._process.returncode == -signal.SIGKILL

    asyncio.run(work())


def test_a_model_that_cannot_be_loaded_is_told_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=rf"^model '{tmp_path / 'none'}': no such folder$"):
        run(tmp_path / "none", None)


SCRIPT = """
import asyncio, sys
from agents.policy.transformers_engine import TransformersEngine
from agents.policy.local_model import TransformersSettings
from agents.policy.base import Message, Request

print("main module", flush=True)

async def main():
    engine = TransformersEngine(TransformersSettings(sys.argv[1], threads=1))
    await engine.start()
    assert not {"torch", "transformers"} & set(sys.modules)
    (answer,) = await engine.complete([Request((Message("user", "seat"),), max_tokens=3, temperature=0)])
    print(len(answer.token_ids), engine._process.pid, flush=True)
    sys.stdin.read(1)
    await engine.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["peace", "kill"])
def test_the_process_ends_with_the_one_that_started_it(end: str, model_folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)  # without a guard for its main module, which is run once
    # A path of its own, as a program has that was started elsewhere.
    owner = subprocess.Popen(
        [sys.executable, str(script), str(model_folder)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None and owner.stdin is not None
        assert owner.stdout.readline() == "main module\n"
        tokens, pid = owner.stdout.readline().split()
        assert int(tokens) > 0
        # It can be waited for though it is no child of this process.
        handle = os.pidfd_open(int(pid)) if hasattr(os, "pidfd_open") else None
        if end == "kill":
            owner.kill()
        else:
            owner.stdin.close()
        assert owner.wait(60) == (-signal.SIGKILL if end == "kill" else 0)
    if handle is not None:
        import select

        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(60_000), "the process outlived the one that started it"
        os.close(handle)
