"""The chat-completions protocol of OpenAI, as data: what is asked, and what a reply or a refusal means. No I/O.

Servers differ in how a completion is constrained, so a request is written in one of three dialects: `vllm`
(`structured_outputs`, with token ids and log-probabilities), `json_schema` (`response_format`: the answer is wrapped
in an object, because strict schemas must be objects), and `plain` (nothing: who reads the reply parses it).
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from agents.errors import BadModel, EngineFailed, PolicyError, PromptTooLong
from agents.policy.base import Completion, Constraint, FinishReason, Request
from agents.policy.schemas import grammar_schema, token_bound
from games.text import quote

Dialect = Literal["vllm", "json_schema", "plain"]
LengthField = Literal["max_tokens", "max_completion_tokens"]

QUOTED_CHARS = 200
ANSWER = "answer"
ROUNDING = 1e-6
WRAPPING_TOKENS = 16
"""What `{"answer": …}` may add to an answer."""

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_TOO_LONG = ("context_length_exceeded", "maximum context length", "max_model_len", "context window")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply cost, in tokens; `cached` are those of the prompt that the server had already."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


def request_body(
    request: Request, *, model: str, dialect: Dialect, length_field: LengthField = "max_tokens"
) -> dict[str, Any]:
    """Return the JSON body that asks for one completion of `model` (a model or an adapter, as the server names it)."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
        length_field: token_bound(request.constraint, request.max_tokens),
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if dialect == "vllm":
        body |= {
            "logprobs": True,
            "return_token_ids": True,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
        }
    if request.constraint is not None and dialect != "plain":
        body |= _constraint(request.constraint, dialect)
    if request.constraint is not None and dialect == "json_schema":
        body[length_field] += WRAPPING_TOKENS
    return body


def _constraint(constraint: Constraint, dialect: Dialect) -> dict[str, Any]:
    if dialect == "vllm" and constraint.choices is not None:
        return {"structured_outputs": {"choice": list(constraint.choices)}}
    if dialect == "vllm":
        schema = grammar_schema(constraint.schema)
        return {"structured_outputs": {"json": schema}}
    answer = (
        {"type": "string", "enum": list(constraint.choices)}
        if constraint.choices is not None
        else grammar_schema(constraint.schema)
    )
    wrapped = {
        "type": "object",
        "properties": {ANSWER: answer},
        "required": [ANSWER],
        "additionalProperties": False,
    }
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": ANSWER, "strict": True, "schema": wrapped},
        }
    }


def read_reply(
    raw: bytes, request: Request, *, dialect: Dialect, logprobs: bool = True, queue_s: float = 0.0
) -> tuple[Completion, Usage]:
    """Return the completion in a reply, and what it cost.

    Args:
        raw: the body of the reply.
        request: what was asked.
        dialect: how it was asked.
        logprobs: whether the server's are those of the distribution that was sampled; others are left out.
        queue_s: seconds that the request waited.

    Raises `EngineFailed` for a reply that is not what the protocol says.
    """
    try:
        reply = json.loads(raw)
    except (ValueError, RecursionError):
        raise EngineFailed(
            f"the server's reply is no JSON: {quote(raw[:QUOTED_CHARS].decode(errors='replace'))}"
        ) from None
    try:
        choice = reply["choices"][0]
        finish = _finish(choice)
        text = choice["message"]["content"]
        if text is None:
            text = ""
        if not isinstance(text, str):
            raise TypeError(text)
        token_ids, scores = _tokens(choice, dialect=dialect)
        prompt_ids = tuple(_ids(reply.get("prompt_token_ids") or ()))
        usage = _usage(reply.get("usage"))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        shown = quote(json.dumps(reply, ensure_ascii=False)[:QUOTED_CHARS])
        raise EngineFailed(f"the server's reply is no chat completion: {shown}") from None
    if request.temperature == 0:
        scores = (0.0,) * len(scores)
    completion = Completion(
        text=_answer(text, request.constraint, dialect=dialect),
        prompt_ids=prompt_ids,
        token_ids=token_ids,
        logprobs=scores if logprobs else (),
        finish_reason=finish,
        adapter=request.adapter,
        cached_tokens=usage.cached,
        queue_s=queue_s,
    )
    return completion, usage


def _finish(choice: dict[str, Any]) -> FinishReason:
    reason = choice["finish_reason"]
    if reason == "stop":
        return "stop"
    if reason == "length":
        return "length"
    raise EngineFailed(
        f"the server ended the reply with {quote(str(reason)[:40])}; expected is stop or length"
    )


def _tokens(choice: dict[str, Any], *, dialect: Dialect) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return token ids and log-probabilities; without ids nothing says what the log-probabilities belong to."""
    if dialect != "vllm" or choice.get("token_ids") is None:
        return (), ()
    token_ids = tuple(_ids(choice["token_ids"]))
    scores = tuple(float(entry["logprob"]) for entry in choice["logprobs"]["content"])
    if len(scores) != len(token_ids):
        raise EngineFailed(
            f"the server's reply has {len(scores)} log-probabilities for {len(token_ids)} tokens"
        )
    wrong = [score for score in scores if not score <= ROUNDING]
    if wrong:
        raise EngineFailed(f"the server's reply has a log-probability above 0: {wrong[0]}")
    return token_ids, tuple(min(score, 0.0) for score in scores)


def _ids(values: Any) -> list[int]:
    ids = list(values)
    if not all(isinstance(value, int) and value >= 0 for value in ids):
        raise TypeError(values)
    return ids


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        prompt=int(usage.get("prompt_tokens") or 0),
        completion=int(usage.get("completion_tokens") or 0),
        cached=int(details.get("cached_tokens") or 0),
    )


def _answer(text: str, constraint: Constraint | None, *, dialect: Dialect) -> str:
    """Return the answer within a reply's text; what is no answer stays as it is, for its reader to refuse."""
    if constraint is None or dialect == "vllm":
        return text
    if dialect == "json_schema":
        try:
            answer = json.loads(text)[ANSWER]
        except (ValueError, KeyError, TypeError, RecursionError):
            return text
        if constraint.choices is None:
            return json.dumps(answer, ensure_ascii=False)
        return answer if isinstance(answer, str) else text
    bare = text.strip()
    return bare if constraint.choices is not None and bare in constraint.choices else text


def refusal(status: int, raw: bytes, *, secret: str | None = None) -> PolicyError:
    """Return what a reply with an error's status means, as an error with the server's own words quoted."""
    said = _said(raw)
    if secret:
        said = said.replace(secret, "…")
    words = f": {quote(said[:QUOTED_CHARS])}" if said else ""
    if status in (400, 413, 422) and any(mark in said.lower() for mark in _TOO_LONG):
        return PromptTooLong(f"the server says that the prompt is too long{words}")
    if status in (401, 403):
        return BadModel(f"the server does not accept the API key ({status}){words}")
    if status == 404:
        return BadModel(f"the server does not have it (404){words}")
    if status in RETRIED or status >= 500 or 300 <= status < 400:
        return EngineFailed(f"the server answered {status}{words}")
    return PolicyError(f"the server refused the request ({status}){words}")


def _said(raw: bytes) -> str:
    """Return the message of an error's body, with its code; of another body, the text."""
    text = raw[:4096].decode(errors="replace").strip()
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return text
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return text
    parts = [str(error[key]) for key in ("code", "message", "detail") if isinstance(error.get(key), str)]
    return ": ".join(parts) or text
