"""The HTTP back end against a server on loopback that speaks the protocol, and one that does everything wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agents.errors import BadModel, EngineFailed, PolicyError, PromptTooLong, UnknownAdapter
from agents.policy import openai_http
from agents.policy.base import Completion, Constraint, Message, Request
from agents.policy.openai_chat import read_reply, refusal, request_body
from agents.policy.openai_http import OpenAIEngine, OpenAISettings, _retry_after
from agents.policy.service import make_engine
from agents.policy.settings import PolicySettings
from agents.policy.spec import parse_spec

ASK = Request((Message("system", "rules"), Message("user", "vote")), max_tokens=20, seed=7, match="m1")
VOTE = Request((Message("user", "vote"),), Constraint(choices=("approve", "reject")), match="m1")
TEAM = Request((Message("user", "team"),), Constraint(schema={"type": "array", "uniqueItems": True}))
KEY = "sk-do-not-show-me"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_http, "FIRST_WAIT_S", 0.0)


def reply(text: str | None = "approve", **extra: Any) -> dict[str, Any]:
    """Return a chat completion as a server writes it; `extra` goes into its choice."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", **extra}
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 40},
    }
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


def vllm_reply(text: str, ids: list[int], logprobs: list[float]) -> dict[str, Any]:
    """Return a chat completion as vLLM writes it, with token ids."""
    content = [
        {"token": str(i), "logprob": p, "top_logprobs": []} for i, p in zip(ids, logprobs, strict=False)
    ]
    return {**reply(text, token_ids=ids, logprobs={"content": content}), "prompt_token_ids": [1, 2, 3]}


@dataclass
class Server:
    """Answers with `answers` in turn, the last of them for ever, and keeps what it was sent."""

    answers: list[Handler]
    models: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "m", "owned_by": "someone"}])
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    loaded: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        self.times.append(asyncio.get_running_loop().time())
        return await self.answers[min(len(self.bodies), len(self.answers)) - 1](request)

    async def list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self.models})

    async def load(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "missing" in body["lora_path"]:
            return web.json_response({"error": {"message": "no such adapter", "code": 400}}, status=400)
        self.loaded.append(body)
        return web.Response(text="Success")


def says(body: Any, status: int = 200, **headers: str) -> Handler:
    """Answer with a JSON document."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(
            body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return answer


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_post("/v1/load_lora_adapter", server.load)
    app.router.add_get("/v1/models", server.list)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        yield server
    finally:
        await runner.cleanup()


def play(
    server: Server, scenario: Callable[[OpenAIEngine], Coroutine[Any, Any, Any]], **settings: Any
) -> Any:
    """Run `scenario` with an engine that is started on `server`."""

    async def main() -> Any:
        async with serving(server):
            defaults: dict[str, Any] = {
                "model": "m",
                "url": server.url,
                "timeout_s": 30.0,
            }
            engine = OpenAIEngine(OpenAISettings(**{**defaults, **settings}))
            try:
                await engine.start()
                return await scenario(engine)
            finally:
                await engine.close()

    return asyncio.run(main())


def ask(server: Server, request: Request, **settings: Any) -> Completion | PolicyError:
    """Return the answer to one request."""

    async def scenario(engine: OpenAIEngine) -> Completion | PolicyError:
        (answer,) = await engine.complete([request])
        return answer

    answer = play(server, scenario, **settings)
    assert isinstance(answer, Completion | PolicyError)
    return answer


def test_free_text_is_asked_for_as_the_protocol_says() -> None:
    server = Server([says(reply("I trust seat 2."))])
    answer = ask(server, ASK)
    assert isinstance(answer, Completion)
    assert (answer.text, answer.finish_reason, answer.cached_tokens) == ("I trust seat 2.", "stop", 40)
    assert answer.token_ids == answer.logprobs == answer.prompt_ids == ()
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": "vote"}],
            "max_tokens": 20,
            "temperature": 1.0,
            "top_p": 1.0,
            "seed": 7,
        }
    ]
    assert "Authorization" not in server.headers[0]


def test_a_choice_is_constrained_by_a_schema_where_the_server_is_no_vllm() -> None:
    server = Server([says(reply('{"answer": "reject"}'))])
    answer = ask(server, VOTE)
    assert isinstance(answer, Completion) and answer.text == "reject"
    schema = server.bodies[0]["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["answer"] == {"type": "string", "enum": ["approve", "reject"]}


def test_an_answer_of_a_schema_is_given_as_json_and_stays_as_it_is_where_it_is_none() -> None:
    server = Server([says(reply('{"answer": ["a", "b"]}')), says(reply("whatever"))])

    async def scenario(engine: OpenAIEngine) -> list[Completion | PolicyError]:
        return [*await engine.complete([TEAM]), *await engine.complete([TEAM])]

    first, second = play(server, scenario)
    assert json.loads(first.text) == ["a", "b"] and second.text == "whatever"
    sent = server.bodies[0]["response_format"]["json_schema"]["schema"]["properties"]["answer"]
    assert sent == {"type": "array"}


def test_plain_sends_no_constraint_and_takes_a_bare_choice() -> None:
    server = Server([says(reply(" approve\n")), says(reply("I approve"))])

    async def scenario(engine: OpenAIEngine) -> list[Completion | PolicyError]:
        return [*await engine.complete([VOTE]), *await engine.complete([VOTE])]

    first, second = play(server, scenario, dialect="plain")
    assert (first.text, second.text) == ("approve", "I approve")
    assert not {"response_format", "structured_outputs", "logprobs"} & set(server.bodies[0])


CARD = {"id": "m", "owned_by": "vllm", "max_model_len": 512, "root": "/models/m"}


def test_a_vllm_server_is_known_by_its_list_and_gives_ids_and_log_probabilities() -> None:
    server = Server(
        [says(vllm_reply("zq", [5, 0], [0.0, 0.0])), says(vllm_reply("reject", [7, 0], [-0.5, -0.25]))],
        models=[CARD],
    )

    async def scenario(engine: OpenAIEngine) -> Completion:
        assert (engine.context_tokens, engine.dialect) == (512, "vllm")
        (answer,) = await engine.complete([VOTE])
        assert isinstance(answer, Completion)
        assert engine.facts()["logprobs"] == 1.0
        return answer

    answer = play(server, scenario)
    assert (answer.prompt_ids, answer.token_ids, answer.logprobs) == ((1, 2, 3), (7, 0), (-0.5, -0.25))
    assert server.bodies[1]["structured_outputs"] == {"choice": ["approve", "reject"]}
    assert server.bodies[1]["return_token_ids"] is True and server.bodies[1]["logprobs"] is True


def test_log_probabilities_that_ignore_the_constraint_are_left_out() -> None:
    raw = [says(vllm_reply("zq", [5, 0], [-9.0, -3.0])), says(vllm_reply("reject", [7, 0], [-4.0, -2.0]))]
    server = Server(raw, models=[CARD])

    async def scenario(engine: OpenAIEngine) -> Completion:
        (answer,) = await engine.complete([VOTE])
        assert isinstance(answer, Completion)
        assert engine.facts()["logprobs"] == 0.0
        return answer

    answer = play(server, scenario)
    assert answer.token_ids == (7, 0) and answer.logprobs == ()


def test_a_model_that_a_vllm_server_does_not_have_is_refused_at_the_start() -> None:
    with pytest.raises(BadModel, match=r"got 'other', http://127.0.0.1:\d+/v1 serves: m"):
        ask(Server([says(reply())], models=[CARD]), ASK, model="other")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_asked_again(status: int) -> None:
    server = Server([says({"error": {"message": "busy"}}, status), says(reply("fine"))])

    async def scenario(engine: OpenAIEngine) -> Completion:
        (answer,) = await engine.complete([ASK])
        assert isinstance(answer, Completion)
        # One attempt was for the list of models.
        assert engine.facts()["attempts"] == 3
        return answer

    assert play(server, scenario).text == "fine"
    assert len(server.bodies) == 2


def test_retry_after_is_waited_for() -> None:
    server = Server([says({}, 429, Retry_After="0.3"), says(reply("fine"))])
    answer = ask(server, ASK)
    assert isinstance(answer, Completion) and answer.text == "fine"
    assert server.times[1] - server.times[0] >= 0.3
    assert answer.queue_s >= 0.3


def test_a_wait_beyond_the_deadline_fails_at_once() -> None:
    server = Server([says({"error": {"message": "slow down"}}, 429, Retry_After="3600")])
    answer = ask(server, ASK)
    assert isinstance(answer, EngineFailed)
    assert str(answer) == 'the server answered 429: "slow down" and asked to wait 3600 s'
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", 5.0),
        ("0", 0.0),
        ("-3", 0.0),
        ("inf", None),
        ("nan", None),
        ("soon", None),
        (None, None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00", 0.0),
    ],
)
def test_retry_after_is_read_in_both_forms(value: str | None, expected: float | None) -> None:
    assert _retry_after(value) == expected


def test_attempts_end_and_the_last_error_is_told() -> None:
    server = Server([says({"error": {"message": "down"}}, 503)])
    answer = ask(server, ASK, attempts=3)
    assert isinstance(answer, EngineFailed) and str(answer) == 'the server answered 503: "down"'
    assert len(server.bodies) == 3


def test_a_slow_server_costs_the_request_alone() -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        if (await request.json())["messages"][-1]["content"] == "team":
            await asyncio.Event().wait()
        return web.json_response(reply("fine"))

    async def scenario(engine: OpenAIEngine) -> list[Completion | PolicyError]:
        return await engine.complete([TEAM, ASK])

    slow, fast = play(Server([never]), scenario, timeout_s=0.5)
    assert isinstance(slow, EngineFailed) and str(slow) == "the server did not answer within 0.5 s"
    assert isinstance(fast, Completion) and fast.text == "fine"


def test_cancelling_ends_the_request() -> None:
    async def scenario(engine: OpenAIEngine) -> None:
        arrived, gone = asyncio.Event(), asyncio.Event()

        async def never(request: web.Request) -> web.StreamResponse:
            arrived.set()
            try:
                await asyncio.Event().wait()
            finally:
                gone.set()
            raise AssertionError

        server.answers = [never]
        task = asyncio.create_task(engine.complete([ASK]))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone.wait()

    server = Server([])
    play(server, scenario)
    assert len(server.bodies) == 1


def test_a_connection_cut_in_the_middle_is_tried_again_and_then_a_failure() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"choices": [')
        assert request.transport is not None
        request.transport.abort()
        return response

    whole = ask(Server([cut, says(reply("fine"))]), ASK)
    assert isinstance(whole, Completion) and whole.text == "fine"
    broken = ask(Server([cut]), ASK, attempts=2)
    assert isinstance(broken, EngineFailed) and str(broken).startswith("the connection failed: ")


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"choices": []},
        {"choices": [{"message": {}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "x"}}]},
        {**reply("x"), "prompt_token_ids": ["a"]},
        {**reply("x"), "usage": {"prompt_tokens": "many"}},
    ],
)
def test_a_reply_that_is_no_completion_is_a_failure_that_shows_it(body: Any) -> None:
    server = Server([says(body)])
    answer = ask(server, ASK)
    assert isinstance(answer, EngineFailed)
    assert str(answer).startswith("the server's reply is no chat completion: ") and "\n" not in str(answer)
    assert len(server.bodies) == 1


def test_a_page_in_place_of_json_is_quoted_on_one_line() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>\n\x1b[31mlogin</html>", content_type="text/html")

    answer = ask(Server([page]), ASK)
    assert isinstance(answer, EngineFailed)
    assert str(answer) == 'the server\'s reply is no JSON: "‹html›\\n\\u001b[31mlogin‹/html›"'


@pytest.mark.parametrize("reason", ["content_filter", "tool_calls", None])
def test_another_reason_to_end_is_a_failure(reason: str | None) -> None:
    answer = ask(Server([says(reply("", finish_reason=reason))]), ASK)
    assert isinstance(answer, EngineFailed) and "expected is stop or length" in str(answer)


def test_a_completion_cut_by_its_bound_says_so_and_no_content_is_empty_text() -> None:
    cut = ask(Server([says(reply("I tru", finish_reason="length"))]), ASK)
    assert isinstance(cut, Completion) and cut.finish_reason == "length"
    empty = ask(Server([says(reply(None))]), ASK)
    assert isinstance(empty, Completion) and empty.text == ""


def test_a_reply_beyond_the_bound_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_http, "MAX_REPLY_BYTES", 4096)
    answer = ask(Server([says(reply("x" * 10_000))]), ASK)
    assert isinstance(answer, EngineFailed) and "longer than 4096 bytes" in str(answer)


@pytest.mark.parametrize(
    ("ids", "logprobs", "words"),
    [
        ([7, 0], [-0.5], "has 1 log-probabilities for 2 tokens"),
        ([7, 0], [-0.5, 0.5], "has a log-probability above 0: 0.5"),
        ([7, 0], [-0.5, float("nan")], "has a log-probability above 0: nan"),
        ([-7, 0], [-0.5, -0.5], "is no chat completion"),
        ([7.5, 0], [-0.5, -0.5], "is no chat completion"),
    ],
)
def test_wrong_tokens_are_failures(ids: list[Any], logprobs: list[float], words: str) -> None:
    raw = json.dumps(vllm_reply("x", ids, logprobs)).encode()
    with pytest.raises(EngineFailed, match="the server's reply") as caught:
        read_reply(raw, VOTE, dialect="vllm")
    assert words in str(caught.value)


def test_greedy_tokens_have_probability_one() -> None:
    raw = json.dumps(vllm_reply("x", [7, 0], [-0.5, -0.1])).encode()
    greedy = Request(VOTE.messages, VOTE.constraint, temperature=0.0)
    completion, _ = read_reply(raw, greedy, dialect="vllm")
    assert completion.logprobs == (0.0, 0.0)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "This model's maximum context length is 512 tokens."}}, PromptTooLong),
        (400, {"error": {"code": "context_length_exceeded", "message": "too much"}}, PromptTooLong),
        (400, {"error": "bad parameter"}, PolicyError),
        (401, {"error": {"message": f"wrong key {KEY}"}}, BadModel),
        (404, {"detail": "Not Found"}, BadModel),
        (418, "teapot", PolicyError),
        (503, None, EngineFailed),
        (307, {}, EngineFailed),
    ],
)
def test_refusals_have_types_and_never_show_the_key(status: int, body: Any, kind: type[PolicyError]) -> None:
    error = refusal(status, json.dumps(body).encode(), secret=KEY)
    assert type(error) is kind
    assert KEY not in str(error) and "\n" not in str(error)


def test_a_redirect_is_not_followed() -> None:
    elsewhere = says({}, 307, Location="http://127.0.0.1:1/elsewhere")
    answer = ask(Server([elsewhere]), ASK)
    assert isinstance(answer, EngineFailed) and "the server answered 307" in str(answer)


def test_the_key_is_read_from_the_environment_and_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_TEST_KEY", KEY)
    server = Server([says(reply("fine"))])
    ask(server, ASK, key_env="ARENA_TEST_KEY")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_key_with_a_line_break_behind_it_is_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_TEST_KEY", f"{KEY}\n")
    server = Server([says(reply("fine"))])
    ask(server, ASK, key_env="ARENA_TEST_KEY")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_blank_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_TEST_KEY", " \n")
    server = Server([says(reply("fine"))])
    ask(server, ASK, key_env="ARENA_TEST_KEY")
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("between", ["\n", "\r\nX-Other: ", "\x07", "\x7f", "\udcff"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(
    between: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_TEST_KEY", f"{KEY}{between}{KEY}")
    with pytest.raises(BadModel, match="the key in ARENA_TEST_KEY holds control characters") as caught:
        OpenAIEngine(OpenAISettings("m", "http://127.0.0.1:1", key_env="ARENA_TEST_KEY"))
    assert KEY not in str(caught.value) and "\n" not in str(caught.value)


def test_the_key_does_not_cross_a_network_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(BadModel, match="use https") as caught:
        OpenAIEngine(OpenAISettings("m", "http://example.org"))
    assert KEY not in str(caught.value)
    for url in ("https://example.org/v1", "http://localhost:1", "http://127.0.0.2:1", "http://[::1]:1"):
        OpenAIEngine(OpenAISettings("m", url))
    OpenAIEngine(OpenAISettings("m", "http://example.org", key_in_clear=True))


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org", "http://", "http://h:99999", "http://h/?k=v", "http://h/#x"],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadModel, match=r"url: got .*, the form is http://HOST:PORT"):
        OpenAIEngine(OpenAISettings("m", url))


def test_a_url_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(BadModel) as caught:
        OpenAIEngine(OpenAISettings("m", "https://me:secret@example.org"))
    assert "secret" not in str(caught.value)


def test_the_url_may_name_its_version() -> None:
    assert OpenAIEngine(OpenAISettings("m", "http://h:1/")).base == "http://h:1/v1"
    assert OpenAIEngine(OpenAISettings("m", "http://h:1/api/v2/")).base == "http://h:1/api/v2"


def test_tokens_and_costs_are_counted_and_bounded() -> None:
    server = Server([says(reply("fine"))])

    async def scenario(engine: OpenAIEngine) -> list[Completion | PolicyError]:
        answers = [(await engine.complete([ASK]))[0] for _ in range(3)]
        facts = engine.facts()
        assert (facts["requests"], facts["failures"]) == (3, 1)
        assert (facts["prompt_tokens"], facts["cached_tokens"], facts["completion_tokens"]) == (200, 80, 20)
        assert facts["cost"] == pytest.approx(2 * (60 * 3.0 + 40 * 1.0 + 10 * 15.0) / 1_000_000)
        return answers

    prices = {"prompt_price": 3.0, "cached_price": 1.0, "completion_price": 15.0}
    *_, last = play(server, scenario, max_total_tokens=220, **prices)
    assert type(last) is PolicyError and str(last) == "220 tokens were used, and 220 are allowed in all"


def test_no_more_requests_are_open_than_allowed() -> None:
    open_now = most = 0

    async def busy(request: web.Request) -> web.StreamResponse:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        for _ in range(5):
            await asyncio.sleep(0)
        open_now -= 1
        return web.json_response(reply("fine"))

    async def scenario(engine: OpenAIEngine) -> list[Completion | PolicyError]:
        return await engine.complete([ASK] * 20)

    answers = play(Server([busy]), scenario, max_batch=3)
    assert all(isinstance(answer, Completion) for answer in answers) and most <= 3


def test_an_adapter_is_loaded_where_allowed_and_used_by_name() -> None:
    server = Server(
        [says(vllm_reply("zq", [5, 0], [0.0, 0.0]))], models=[CARD, {"id": "old", "root": "/a/old"}]
    )

    async def scenario(engine: OpenAIEngine) -> None:
        await engine.publish("old", "/a/old")
        with pytest.raises(UnknownAdapter, match="from another folder"):
            await engine.publish("old", "/a/new")
        with pytest.raises(UnknownAdapter, match=r'was not loaded: .*"no such adapter"'):
            await engine.publish("v2", "/missing")
        unknown, base = await engine.complete([Request(ASK.messages, adapter="v2"), ASK])
        assert isinstance(unknown, UnknownAdapter) and isinstance(base, Completion)
        await engine.publish("v2", "/a/v2")
        (answer,) = await engine.complete([Request(ASK.messages, adapter="v2")])
        assert isinstance(answer, Completion) and answer.adapter == "v2"

    play(server, scenario, publish=True)
    assert server.loaded == [{"lora_name": "v2", "lora_path": "/a/v2"}]
    assert [body["model"] for body in server.bodies] == ["m", "m", "v2"]


def test_an_adapter_is_not_loaded_without_leave() -> None:
    async def scenario(engine: OpenAIEngine) -> None:
        with pytest.raises(UnknownAdapter, match=r"policy\.openai_publish is off"):
            await engine.publish("v2", "/a/v2")

    play(Server([says(reply())]), scenario)


def test_an_adapter_that_the_server_got_later_is_known_when_it_is_published() -> None:
    server = Server([says(vllm_reply("zq", [5, 0], [0.0, 0.0]))], models=[CARD])

    async def scenario(engine: OpenAIEngine) -> None:
        server.models.append({"id": "late", "root": None})
        (unknown,) = await engine.complete([Request(ASK.messages, adapter="late")])
        assert isinstance(unknown, UnknownAdapter)
        await engine.publish("late", "/a/late")
        (answer,) = await engine.complete([Request(ASK.messages, adapter="late")])
        assert isinstance(answer, Completion) and answer.adapter == "late"
        # And one that it has lost is asked for, not taken for granted.
        del server.models[1]
        with pytest.raises(UnknownAdapter, match=r"policy\.openai_publish is off"):
            await engine.publish("late", "/a/late")

    play(server, scenario)
    assert not server.loaded


@pytest.mark.parametrize(
    ("owner", "dialect"), [("vllm", "vllm"), ("evoke-arena", "vllm"), ("other", "json_schema")]
)
def test_the_dialect_is_told_by_who_serves(owner: str, dialect: str) -> None:
    server = Server([says(vllm_reply("zq", [5, 0], [0.0, 0.0]))], models=[{**CARD, "owned_by": owner}])

    async def scenario(engine: OpenAIEngine) -> str:
        return engine.dialect

    assert play(server, scenario) == dialect


def test_tokens_are_counted_by_the_tokenizer_where_there_is_one() -> None:
    from agents.policy.chat import ChatTokenizer, guess_tokens
    from agents.policy.presets import tiny_folder

    text = "seat 2 approves the team of seats 0, 1 and 4"

    async def count(engine: OpenAIEngine) -> int:
        return engine.count_tokens(text)

    exact = ChatTokenizer(tiny_folder()).count(text)
    assert play(Server([says(reply())]), count, tokenizer=str(tiny_folder())) == exact
    assert play(Server([says(reply())]), count) == guess_tokens(text) != exact


def test_a_tokenizer_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"policy\.openai_tokenizer: got .*, a folder"):
        ask(Server([says(reply())]), ASK, tokenizer=str(tmp_path / "none"))


def test_the_settings_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_TEST_KEY", KEY)
    settings = PolicySettings(
        backend="openai",
        model="m@http://example.org",
        openai_key_env="ARENA_TEST_KEY",
        openai_key_in_clear=True,
        openai_max_total_tokens=7,
        openai_tokenizer="there",
    )
    engine = make_engine(parse_spec("policy"), settings, settings.model)
    assert isinstance(engine, OpenAIEngine)
    told = engine.settings
    assert (told.key_in_clear, told.max_total_tokens, told.tokenizer) == (True, 7, "there")


def test_a_server_that_is_not_there_is_told_at_the_start() -> None:
    async def main() -> None:
        server = Server([says(reply())])
        async with serving(server):
            pass
        engine = OpenAIEngine(OpenAISettings("m", server.url, attempts=2))
        try:
            with pytest.raises(EngineFailed, match="cannot be reached: the connection failed"):
                await engine.start()
        finally:
            await engine.close()

    asyncio.run(main())


def test_a_server_without_a_list_is_taken_at_ones_word() -> None:
    server = Server([says(reply("fine"))])
    server.models = [{"no": "id"}]
    answer = ask(server, ASK)
    assert isinstance(answer, Completion) and answer.text == "fine"


def test_the_bound_of_a_choice_is_its_longest() -> None:
    body = request_body(VOTE, model="m", dialect="vllm")
    assert body["max_tokens"] == len("approve") + 1
    newer = request_body(ASK, model="m", dialect="plain", length_field="max_completion_tokens")
    assert newer["max_completion_tokens"] == 20 and "max_tokens" not in newer
