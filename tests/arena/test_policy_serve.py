"""A policy behind HTTP: what is answered, what is refused, and matches of players who sit elsewhere."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agents.errors import EngineFailed, PolicyError
from agents.policy.base import Completion, Constraint, Engine, Message, Request
from agents.policy.local_model import TransformersSettings
from agents.policy.openai_http import OpenAIEngine, OpenAISettings
from agents.policy.presets import tiny_folder
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.transformers_engine import TransformersEngine
from arena.adapter_listing import publish
from arena.errors import ServeError
from arena.policy_serve import MAX_BODY_BYTES, PolicyServer
from tests.agents.policy.engines import AGREE, compare, job, played, some_requests, traces
from tests.agents.policy.models import save_lora

TINY = PolicySettings(threads=1)
FAKE = PolicySettings(backend="openai", model="fake@http://127.0.0.1:9")
ASK = {"model": "fake", "messages": [{"role": "user", "content": "hello"}]}


class Scripted(Engine):
    """An engine whose answers a test gives."""

    model = "fake"
    max_batch = 100
    context_tokens = 512

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.news = asyncio.Event()
        self.asked: list[Request] = []
        self.cancelled = 0
        self.fails: Exception | None = None

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something is true that changes with what is asked here."""
        while not holds():
            self.news.clear()
            await self.news.wait()

    async def start(self) -> None:
        return

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        self.asked += requests
        self.news.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            self.news.set()
            raise
        if self.fails is not None:
            raise self.fails
        return [Completion("hi", (1, 2), (3,), (-0.5,), "stop") for _ in requests]

    def count_tokens(self, text: str) -> int:
        return len(text)

    async def publish(self, version: str, path: str) -> None:
        return

    async def close(self) -> None:
        return


def serve(
    home: Path,
    work: Callable[[PolicyServer, aiohttp.ClientSession], Awaitable[Any]],
    settings: PolicySettings = TINY,
    **more: Any,
) -> Any:
    """Return what `work` returns, with a server that listens on a free port."""

    async def main() -> Any:
        stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        server = PolicyServer(settings, home=home, port=0, **more)
        async with server.running(stop) as started, aiohttp.ClientSession() as session:
            assert started
            return await work(server, session)

    return asyncio.run(main())


def with_engine(
    home: Path, work: Callable[[PolicyServer, aiohttp.ClientSession, Scripted], Awaitable[Any]], **more: Any
) -> Any:
    """Do as `serve` does, over an engine whose answers the test gives."""
    made: list[Scripted] = []

    def make(*_: Any) -> Engine:
        made.append(Scripted())
        return made[-1]

    return serve(home, lambda server, session: work(server, session, made[-1]), FAKE, make=make, **more)


async def ask(
    server: PolicyServer, session: aiohttp.ClientSession, body: Any = ASK, **extra: Any
) -> tuple[int, Any, Any]:
    """Return status, body and headers of one completion."""
    async with session.post(f"{server.url}/chat/completions", json=body, **extra) as response:
        return response.status, await response.json(), response.headers


async def get(
    server: PolicyServer, session: aiohttp.ClientSession, path: str, **extra: Any
) -> tuple[int, str]:
    root = server.url.removesuffix("/v1")
    async with session.get(f"{root}{path}", **extra) as response:
        return response.status, await response.text()


def test_the_embedded_model_answers(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession) -> None:
        body = {
            "model": "tiny",
            "messages": [{"role": "user", "content": "ask vote"}],
            "structured_outputs": {"choice": ["approve", "reject"]},
            "logprobs": True,
            "return_token_ids": True,
        }
        status, reply, _ = await ask(server, session, body)
        assert status == 200 and reply["model"] == "tiny" and reply["object"] == "chat.completion"
        (choice,) = reply["choices"]
        text = choice["message"]["content"]
        assert text in ("approve", "reject") and choice["finish_reason"] == "stop"
        scores = choice["logprobs"]["content"]
        assert "".join(one["token"] for one in scores) == f"{text}<|end|>"
        assert all(one["logprob"] <= 0 for one in scores)
        assert len(choice["token_ids"]) == len(scores) and reply["prompt_token_ids"]
        assert reply["usage"]["total_tokens"] == len(reply["prompt_token_ids"]) + len(scores)

        plain = {"model": "tiny", "messages": body["messages"], "max_tokens": 3}
        status, reply, _ = await ask(server, session, plain)
        assert status == 200 and reply["choices"][0]["logprobs"] is None
        assert "token_ids" not in reply["choices"][0] and "prompt_token_ids" not in reply

        schema = {
            "type": "object",
            "properties": {"a": {"enum": ["x", "y"]}},
            "required": ["a"],
            "additionalProperties": False,
        }
        status, reply, _ = await ask(
            server, session, plain | {"structured_outputs": {"json": schema}, "max_tokens": 40}
        )
        assert json.loads(reply["choices"][0]["message"]["content"])["a"] in ("x", "y")

        long = {"model": "tiny", "messages": [{"role": "user", "content": "vote " * 3000}]}
        status, reply, _ = await ask(server, session, long)
        assert status == 400 and reply["error"]["code"] == "context_length_exceeded"

    serve(tmp_path, work)


def test_log_probabilities_are_those_of_the_engine_itself(tmp_path: Path) -> None:
    requests = some_requests(adapter="base", seeds=3)

    async def work(server: PolicyServer, session: aiohttp.ClientSession) -> tuple[Any, Any]:
        theirs = OpenAIEngine(OpenAISettings(model="tiny", url=server.url, timeout_s=300))
        ours = TransformersEngine(TransformersSettings(model=str(tiny_folder()), threads=1))
        await theirs.start()
        await ours.start()
        try:
            async with session.get(f"{server.url}/models") as listed:
                assert {card["owned_by"] for card in (await listed.json())["data"]} == {"evoke-arena"}
            assert theirs.dialect == "vllm" and theirs.logprobs and theirs.context_tokens == 1024
            return await ours.complete(requests), await theirs.complete(requests)
        finally:
            await theirs.close()
            await ours.close()

    ours, theirs = serve(tmp_path, work)
    # The same seeds give the same tokens, but where rounding tips a draw.
    assert compare(requests, theirs, ours) >= len(requests) // 2
    assert AGREE <= 1e-3


def test_a_match_of_players_who_sit_elsewhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    publish(home, "a", save_lora(tiny_folder(), tmp_path / "lora"), model="tiny")

    async def work(server: PolicyServer, session: aiohttp.ClientSession) -> None:
        away = PolicySettings(style="compact", budget_tokens=600, openai_timeout_s=300)
        plain, tuned = f"openai:tiny@{server.url}", f"openai:a@1@{server.url}"
        policies = Policies(away, home=tmp_path / "elsewhere")
        await policies.start([plain, tuned])
        try:
            one = job(tmp_path, "away", ["p", "q", "bot", "bot", "bot"], p=plain, q=tuned, bot="scripted")
            (report,) = await played(policies, [one])
        finally:
            await policies.close()
        assert not report.counts.get("error") and not report.counts.get("timeout")
        found = traces(one)
        assert len(found) > 4
        for trace in found:
            assert trace["prompt_ids"] and len(trace["token_ids"]) == len(trace["logprobs"]) > 0
            assert trace["model"].endswith(f"at {server.url}")
        status, text = await get(server, session, "/metrics")
        requests = next(
            line for line in text.splitlines() if line.startswith("arena_policy_http_requests_total")
        )
        assert status == 200 and float(requests.split()[-1]) >= len(found)

    serve(home, work)


def test_models_are_listed_with_the_adapters_that_fit(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lora = save_lora(tiny_folder(), tmp_path / "lora")
    publish(home, "a", lora, model="tiny")

    async def work(server: PolicyServer, session: aiohttp.ClientSession) -> None:
        listed = json.loads((await get(server, session, "/v1/models"))[1])["data"]
        assert [(card["id"], card["parent"]) for card in listed] == [("tiny", None), ("a@1", "tiny")]
        assert {card["max_model_len"] for card in listed} == {1024}
        body = {
            "model": "tiny",
            "messages": [{"role": "user", "content": "ask vote"}],
            "seed": 1,
            "logprobs": True,
        }
        body |= {"structured_outputs": {"choice": ["approve", "reject"]}, "temperature": 1}
        scores = {}
        for name in ("tiny", "a", "a@1"):
            status, reply, _ = await ask(server, session, body | {"model": name})
            assert status == 200 and reply["model"] == name
            choice = reply["choices"][0]
            scores[name] = (choice["message"]["content"], choice["logprobs"]["content"][0]["logprob"])
        assert scores["a"] == scores["a@1"] != scores["tiny"]
        await asyncio.to_thread(publish, home, "a", lora, model="tiny")  # while it is served
        listed = json.loads((await get(server, session, "/v1/models"))[1])["data"]
        assert [card["id"] for card in listed] == ["tiny", "a@1", "a@2"]
        for name in ("b", "a@7", "../a", "no such"):
            status, reply, _ = await ask(server, session, body | {"model": name})
            assert (status, reply["error"]["code"]) == (404, "model_not_found")
            assert "served are: tiny, a@1, a@2" in reply["error"]["message"]

    serve(home, work)


def test_what_is_refused_never_reaches_the_model(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        for body, code in ((ASK | {"stream": True}, 400), (ASK | {"best_of": 3}, 400), ({}, 400), ([], 400)):
            status, reply, _ = await ask(server, session, body)
            assert status == code and reply["error"]["type"] == "invalid_request_error"
        url = f"{server.url}/chat/completions"
        async with session.post(
            url, data=json.dumps(ASK), headers={"Content-Type": "text/plain"}
        ) as response:
            assert response.status == 415
        async with session.post(url, data=b"{", headers={"Content-Type": "application/json"}) as response:
            assert response.status == 400 and "no valid JSON" in (await response.json())["error"]["message"]
        huge = json.dumps(ASK | {"messages": [{"role": "user", "content": "x" * MAX_BODY_BYTES}]}).encode()
        as_json = {"Content-Type": "application/json"}
        async with session.post(url, data=BytesIO(huge), headers=as_json) as response:
            assert response.status == 413
            assert (await response.json())["error"]["code"] == "request_too_large"
        assert (await get(server, session, "/v1/completions"))[0] == 404
        assert (await get(server, session, "/v1/chat/completions"))[0] == 405
        assert not engine.asked

    with_engine(tmp_path, work)


def test_a_name_elsewhere_that_leads_here_is_refused(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        status, reply, _ = await ask(server, session, headers={"Host": "evil.example"})
        assert status == 403 and not engine.asked and "this machine alone" in reply["error"]["message"]

    with_engine(tmp_path, work)


def test_a_key_is_asked_for_where_there_is_one(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        for header in (
            {},
            {"Authorization": "Bearer no"},
            {"Authorization": "Basic key"},
            {"Authorization": "key"},
        ):
            status, reply, headers = await ask(server, session, headers=header)
            assert status == 401 and headers["WWW-Authenticate"] == "Bearer"
            assert "key-of" not in json.dumps(reply)
        assert (await get(server, session, "/metrics"))[0] == 401
        assert (await get(server, session, "/health"))[0] == 200
        assert not engine.asked
        status, _, _ = await ask(server, session, headers={"Authorization": "Bearer key-of-mine"})
        assert status == 200

    with_engine(tmp_path, work, key="key-of-mine")


def test_beyond_this_machine_a_key_is_needed(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "example.org"):
        with pytest.raises(ServeError, match="ARENA_POLICY_KEY"):
            PolicyServer(FAKE, home=tmp_path, host=host)
    PolicyServer(FAKE, home=tmp_path, host="0.0.0.0", key="k")


def test_more_than_the_bound_are_told_to_come_again(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        engine.go.clear()
        waiting = [asyncio.create_task(ask(server, session)) for _ in range(2)]
        await engine.until(lambda: len(engine.asked) == 2)
        status, reply, headers = await ask(server, session)
        assert status == 429 and headers["Retry-After"] == "1"
        assert reply["error"]["code"] == "rate_limit_exceeded"
        assert "arena_policy_http_open 2.0" in (await get(server, session, "/metrics"))[1]
        engine.go.set()
        assert [status for status, _, _ in await asyncio.gather(*waiting)] == [200, 200]
        assert (await ask(server, session))[0] == 200

    with_engine(tmp_path, work, max_requests=2)


def test_who_leaves_takes_the_request_back(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        engine.go.clear()
        waiting = asyncio.create_task(ask(server, session))
        await engine.until(lambda: bool(engine.asked))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await engine.until(lambda: engine.cancelled > 0)
        engine.go.set()
        assert (await ask(server, session))[0] == 200

    with_engine(tmp_path, work, max_requests=1)


def test_a_model_that_is_too_slow_or_fails(tmp_path: Path) -> None:
    async def slow(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        engine.go.clear()
        status, reply, _ = await ask(server, session)
        assert (status, reply["error"]["code"]) == (504, "timeout")

    with_engine(tmp_path, slow, timeout_s=0.05)


def test_a_body_that_never_comes_holds_no_place_for_ever(tmp_path: Path) -> None:
    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{server.url}/chat/completions", data=never(), headers=headers) as response:
            assert response.status == 504 and (await response.json())["error"]["code"] == "timeout"
        server.timeout_s = 60.0
        assert (await ask(server, session))[0] == 200
        assert server._open == 0

    with_engine(tmp_path, work, timeout_s=0.2, max_requests=1)

    async def odd(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        engine.fails = PolicyError("it refused")
        status, reply, _ = await ask(server, session)
        assert (status, reply["error"]["message"]) == (500, "it refused")
        engine.fails = EngineFailed("it died")
        status, reply, headers = await ask(server, session)
        # It was started again in between, or not yet: both are for the caller to try again.
        assert status in (200, 503)
        assert status == 200 or headers["Retry-After"] == "1"

    with_engine(tmp_path, odd)


def test_users_take_turns(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        await ask(server, session, ASK | {"user": "a"})
        await ask(server, session)
        assert [request.match for request in engine.asked] == ["a", "127.0.0.1"]

    with_engine(tmp_path, work)


def test_an_address_that_is_taken(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        port = int(server.url.split(":")[2].split("/")[0])
        other = PolicyServer(FAKE, home=tmp_path, port=port, make=lambda *_: Scripted())
        with pytest.raises(ServeError, match=f"cannot listen on 127.0.0.1 port {port}"):
            await other.start()

    with_engine(tmp_path, work)


def test_it_is_a_process_that_serves_until_it_is_told_to_stop(
    command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [*command, "policy", "serve", "--port", "0", "--json", "--home", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["player"] == f"openai:tiny@{ready['url']}"
        with urllib.request.urlopen(ready["url"].replace("/v1", "/health")) as reply:
            assert json.load(reply) == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0 and rest == ""
    assert "Loading the model tiny" in errors and "Stopping." in errors


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--port", "99999"], "--port"),
        (["--max-requests", "0"], "--max-requests"),
        (["--host", "0.0.0.0"], "ARENA_POLICY_KEY"),
        (["--model", "nowhere"], "model: got 'nowhere'"),
        (["--backend", "openai", "--model", "x"], "the back end openai needs MODEL@URL"),
    ],
)
def test_bad_input_is_one_line(args: list[str], said: str, arena: Any) -> None:
    result = arena("policy", "serve", "--port", "0", *args)
    assert result.exit_code == 2 and result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("Loading")]
    assert said in line


def test_messages_are_told_as_they_came(tmp_path: Path) -> None:
    async def work(server: PolicyServer, session: aiohttp.ClientSession, engine: Scripted) -> None:
        await ask(
            server,
            session,
            ASK | {"structured_outputs": {"choice": ["a", "b"]}, "max_tokens": 4, "stop": "x"},
        )
        (asked,) = engine.asked
        assert asked.messages == (Message("user", "hello"),)
        assert (asked.constraint, asked.max_tokens, asked.stop) == (Constraint(choices=("a", "b")), 4, ("x",))

    with_engine(tmp_path, work)
