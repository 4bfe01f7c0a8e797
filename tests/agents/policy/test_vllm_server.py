"""A real vLLM server on loopback, spoken to as any server of its kind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agents.errors import BadModel, EngineFailed, PromptTooLong, UnknownAdapter
from agents.policy.base import BASE, Completion, Constraint, Message, Request
from agents.policy.local_model import TransformersSettings
from agents.policy.openai_http import OpenAIEngine, OpenAISettings
from agents.policy.presets import tiny_folder
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.transformers_engine import TransformersEngine
from agents.policy.vllm_local import BLOCK_TOKENS, ENVIRONMENT, GRAMMARS
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
)

pytestmark = [*REAL, pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed")]

START_S = 400.0
VOTE = Request((Message("user", "vote"),), Constraint(choices=("approve", "reject")), match="vote")


class Server:
    """The process of a vLLM server with the embedded model."""

    def __init__(self, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny_folder())]
        command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--dtype", "float32", "--enforce-eager", "--block-size", str(BLOCK_TOKENS)]
        command += ["--enable-lora", "--max-lora-rank", "16", "--max-num-seqs", "32"]
        command += ["--logprobs-mode", "processed_logprobs", "--enable-prompt-tokens-details"]
        command += ["--structured-outputs-config", json.dumps(GRAMMARS)]
        environment = {**ENVIRONMENT, **os.environ, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
        with log.open("wb") as opened:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=opened,
                stderr=opened,
                env=environment,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Return once it answers."""
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.5)
        raise AssertionError(f"the server does not answer:\n{self.log.read_text(errors='replace')[-4000:]}")

    def stop(self) -> None:
        """End it, and the engine that it started, which would outlive it if it was killed."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("server") / "log")
    try:
        made.wait()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def policies(server: Server, loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Policies]:
    settings = PolicySettings(
        backend="openai",
        model=f"tiny@{server.url}",
        style="compact",
        budget_tokens=384,
        openai_publish=True,
        openai_timeout_s=120.0,
        max_batch=32,
    )
    made = Policies(settings, home=tmp_path_factory.mktemp("home"))
    loop.run(made.start(["policy"]))
    yield made
    loop.run(made.close())


def test_the_server_is_known_for_what_it_is(policies: Policies, server: Server, loop: Loop) -> None:
    engine = policies.batcher("policy").engine
    assert engine.model == f"tiny at {server.url}/v1"
    assert engine.context_tokens == 1024
    (answer,) = loop.run(engine.complete([VOTE]))
    assert isinstance(answer, Completion) and answer.text in ("approve", "reject")
    assert answer.prompt_ids and len(answer.token_ids) == len(answer.logprobs) > 0
    assert engine.facts()["logprobs"] == 1.0


def test_it_plays_avalon_and_new_matches_get_a_new_adapter(
    policies: Policies, loop: Loop, tmp_path: Path
) -> None:
    seating = ["tiny", "bot", "bot", "tiny", "bot"]
    for version in (1, 2):
        made = make_adapter(tmp_path / f"made-{version}", seed=version)
        ref = policies.adapters.publish("red", made, base="tiny").ref
        jobs = [
            job(tmp_path, f"adapted-{version}", seating, tiny="policy:red", bot="random"),
            job(tmp_path, f"base-{version}", seating, tiny="policy", bot="random"),
        ]
        for report in loop.run(played(policies, jobs)):
            assert not {kind for kind, n in report.counts.items() if kind != "turns" and n}
        adapted, base = map(traces, jobs)
        assert {trace["adapter"] for trace in adapted} == {ref} == {f"red@{version}"}
        assert {trace["adapter"] for trace in base} == {BASE}
        assert all(len(trace["token_ids"]) == len(trace["logprobs"]) > 0 for trace in (*adapted, *base))


def test_log_probabilities_agree_with_transformers(policies: Policies, loop: Loop, tmp_path: Path) -> None:
    path = str(make_adapter(tmp_path / "made", seed=5))

    async def both() -> tuple[list[Request], list[Any], list[Any]]:
        served = policies.batcher("policy").engine
        local = TransformersEngine(TransformersSettings(str(tiny_folder()), device="cpu", threads=1))
        try:
            await local.start()
            for engine in (served, local):
                await engine.publish("agree@1", path)
            requests = mixed_requests(BASE, "agree@1")
            return requests, await served.complete(requests), await local.complete(requests)
        finally:
            await local.close()

    requests, ours, theirs = loop.run(both())
    assert compare(requests, ours, theirs) > len(requests) / 2
    assert apart(requests, ours, "agree@1") > 10 * AGREE
    assert sum(answer.cached_tokens for answer in ours) > 0


def test_what_the_server_refuses_has_its_type(
    policies: Policies, server: Server, loop: Loop, tmp_path: Path
) -> None:
    engine = policies.batcher("policy").engine
    long = Request((Message("user", "approve " * 3000),), VOTE.constraint)
    too_long, unknown, fine = loop.run(
        engine.complete([long, Request(VOTE.messages, adapter="none@1"), VOTE])
    )
    assert isinstance(too_long, PromptTooLong) and isinstance(fine, Completion)
    assert isinstance(unknown, UnknownAdapter)
    with pytest.raises(UnknownAdapter, match=r"'bad@1' was not loaded"):
        loop.run(engine.publish("bad@1", str(tmp_path)))

    async def other() -> None:
        wrong = OpenAIEngine(OpenAISettings("other", server.url))
        try:
            await wrong.start()
        finally:
            await wrong.close()

    with pytest.raises(BadModel, match=r"got 'other', .* serves: .*tiny"):
        loop.run(other())


def test_a_killed_server_is_a_typed_failure(server: Server, policies: Policies, loop: Loop) -> None:
    async def ask() -> Any:
        engine = OpenAIEngine(OpenAISettings("tiny", server.url, timeout_s=30.0, attempts=2))
        try:
            await engine.start()
            server.process.kill()
            server.process.wait()
            return await engine.complete([VOTE] * 3)
        finally:
            await engine.close()

    answers = loop.run(ask())
    assert [type(answer) for answer in answers] == [EngineFailed] * 3
    assert all(str(answer).startswith("the connection failed: ") for answer in answers)
