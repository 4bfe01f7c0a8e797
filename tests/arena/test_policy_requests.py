"""Bodies of chat completions: what they mean, and what is refused in one line."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from agents.policy.base import Completion, Constraint, Message, Request
from agents.policy.openai_chat import read_reply, request_body
from arena.policy_requests import DEFAULT_TOKENS, MAX_CHARS, ChatBody, explain_body, reply_body

PLAIN = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}


def parsed(**more: Any) -> ChatBody:
    return ChatBody.model_validate_json(json.dumps(PLAIN | more))


def refused(**more: Any) -> tuple[str, str | None]:
    with pytest.raises(ValidationError) as caught:
        parsed(**more)
    said, param = explain_body(caught.value)
    assert "\n" not in said and len(said) < 300
    return said, param


def test_a_plain_body() -> None:
    asked = parsed().to_request(adapter="base", match="m")
    assert asked == Request((Message("user", "hello"),), max_tokens=DEFAULT_TOKENS, match="m")


def test_every_field_of_a_body() -> None:
    asked = parsed(
        messages=[
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c", "name": "x"},
        ],
        max_tokens=5,
        max_completion_tokens=7,
        temperature=0,
        top_p=0.5,
        seed=3,
        stop=["x", "y"],
        structured_outputs={"choice": ["b", "a"]},
        user="me",
    ).to_request(adapter="a@1", match="m")
    assert asked.messages == (Message("system", "be brief"), Message("user", "ab"), Message("assistant", "c"))
    assert (asked.max_tokens, asked.temperature, asked.top_p, asked.seed) == (7, 0.0, 0.5, 3)
    assert (asked.stop, asked.constraint, asked.adapter) == (
        ("x", "y"),
        Constraint(choices=("b", "a")),
        "a@1",
    )
    assert parsed(stop="x").to_request(adapter="", match="").stop == ("x",)


def test_a_schema_in_either_form() -> None:
    schema = {"type": "object", "properties": {}}
    ours = parsed(structured_outputs={"json": schema, "disable_any_whitespace": True})
    theirs = parsed(
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "strict": True, "schema": schema},
        }
    )
    for body in (ours, theirs):
        assert body.to_request(adapter="", match="").constraint == Constraint(schema=schema)
    assert parsed(response_format={"type": "text"}).to_request(adapter="", match="").constraint is None


@pytest.mark.parametrize("dialect", ["vllm", "json_schema", "plain"])
def test_what_our_own_client_writes_is_read_as_it_was_meant(dialect: Any) -> None:
    request = Request(
        (Message("system", "s"), Message("user", "u")),
        Constraint(choices=("yes", "no")),
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        seed=12,
        stop=("x",),
    )
    body = ChatBody.model_validate_json(json.dumps(request_body(request, model="tiny", dialect=dialect)))
    asked = body.to_request(adapter="base", match="")
    assert (asked.messages, asked.temperature, asked.top_p, asked.seed, asked.stop) == (
        request.messages,
        request.temperature,
        request.top_p,
        request.seed,
        request.stop,
    )
    assert (asked.constraint == request.constraint) == (dialect == "vllm")


@pytest.mark.parametrize("dialect", ["vllm", "json_schema"])
def test_our_own_client_reads_what_is_answered(dialect: Any) -> None:
    request = Request((Message("user", "u"),), Constraint(choices=("yes", "no")))
    body = ChatBody.model_validate_json(json.dumps(request_body(request, model="tiny", dialect=dialect)))
    text = "yes" if dialect == "vllm" else '{"answer": "yes"}'
    given = Completion(text, (1, 2, 3), (7, 0), (-0.5, 0.0), "stop", cached_tokens=2)
    reply = reply_body(body, given, number="c", created=1, model="tiny", decode=str)
    read, usage = read_reply(json.dumps(reply).encode(), request, dialect=dialect)
    assert (read.text, read.finish_reason, read.cached_tokens) == ("yes", "stop", 2)
    assert (usage.prompt, usage.completion, usage.cached) == (3, 2, 2)
    if dialect == "vllm":
        assert (read.prompt_ids, read.token_ids, read.logprobs) == ((1, 2, 3), (7, 0), (-0.5, 0.0))


@pytest.mark.parametrize(
    ("more", "said", "param"),
    [
        ({"stream": True}, "stream: got true, this server gives whole replies alone", "stream"),
        ({"guided_choice": ["a"]}, "guided_choice: this server does not know the field", "guided_choice"),
        ({"tools": []}, "tools: this server does not know the field", "tools"),
        ({"n": 2}, "n: got 2, it should be 1", "n"),
        ({"top_k": 40}, "top_k: got 40", "top_k"),
        ({"min_p": 0.1}, "min_p: got 0.1", "min_p"),
        ({"frequency_penalty": 1}, "frequency_penalty: got 1", "frequency_penalty"),
        ({"top_logprobs": 5}, "top_logprobs: got 5", "top_logprobs"),
        ({"temperature": "hot"}, 'temperature: got "hot"', "temperature"),
        ({"temperature": -1}, "temperature: got -1", "temperature"),
        ({"top_p": 0}, "top_p: got 0", "top_p"),
        ({"max_tokens": 0}, "max_tokens: got 0", "max_tokens"),
        ({"max_tokens": True}, "max_tokens: got true", "max_tokens"),
        ({"seed": -1}, "seed: got -1", "seed"),
        ({"stop": ["a"] * 9}, "stop: got", "stop"),
        ({"stop": ""}, 'stop: got "", allowed are up to 8 texts', "stop"),
        ({"model": ""}, 'model: got ""', "model"),
        ({"messages": []}, "messages: got []", "messages"),
        ({"messages": "x"}, 'messages: got "x"', "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 'messages.0.role: got "tool"', "messages.0.role"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: it is missing", "messages.0.content"),
        ({"messages": [{"role": "user", "content": "x" * (MAX_CHARS + 1)}]}, "messages: they have", None),
        ({"structured_outputs": {}}, "give either choice or json", "structured_outputs"),
        ({"structured_outputs": {"choice": []}}, "choice: needed is a list", "structured_outputs"),
        ({"structured_outputs": {"choice": ["a", "a"]}}, "different texts", "structured_outputs"),
        ({"structured_outputs": {"regex": "a"}}, "structured_outputs.regex: this server", None),
        ({"response_format": {"type": "json_object"}}, "response_format.type", "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "json_schema: it goes with", "response_format"),
        (
            {"structured_outputs": {"choice": ["a"]}, "response_format": {"type": "text"}},
            "give either structured_outputs or response_format",
            None,
        ),
    ],
)
def test_what_is_refused(more: dict[str, Any], said: str, param: str | None) -> None:
    line, place = refused(**more)
    assert said in line
    assert param is None or place == param


def test_a_body_that_is_none() -> None:
    for raw, said in ((b"{", "no valid JSON"), (b"[]", "object"), (b"{}", "is missing")):
        with pytest.raises(ValidationError) as caught:
            ChatBody.model_validate_json(raw)
        assert said in explain_body(caught.value)[0]
