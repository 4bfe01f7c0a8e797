"""Chat completions as OpenAI and vLLM write them: what a body may hold, and the body that answers it. No I/O."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from agents.policy.base import Completion, Constraint, Message, Request

MAX_MESSAGES = 256
MAX_CHARS = 400_000
MAX_CHOICES = 4096
MAX_TOKENS = 65_536
DEFAULT_TOKENS = 256

Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Refused(Exception):
    """A request that is answered with an error: status, the field that is wrong, and OpenAI's code for it."""

    def __init__(
        self, message: str, param: str | None = None, *, status: int = 400, code: str = "invalid_request"
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant"]
    content: str | Annotated[list[_Part], Field(max_length=64)]
    name: str | None = None

    def told(self) -> Message:
        """Return the message as a policy has it."""
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return Message(self.role, text)


class _Structured(BaseModel):
    model_config = ConfigDict(extra="forbid")

    choice: (
        Annotated[list[Annotated[str, StringConstraints(min_length=1)]], Field(max_length=MAX_CHOICES)] | None
    ) = None
    json_: dict[str, Any] | None = Field(default=None, alias="json")
    disable_any_whitespace: bool = True

    @model_validator(mode="after")
    def _one(self) -> "_Structured":
        if (self.choice is None) == (self.json_ is None):
            raise ValueError("give either choice or json")
        if self.choice is not None and (not self.choice or len(set(self.choice)) != len(self.choice)):
            raise ValueError("choice: needed is a list of different texts")
        return self

    def constraint(self) -> Constraint:
        """Return what a completion may be."""
        return Constraint(None if self.choice is None else tuple(self.choice), self.json_)


class _Schema(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    schema_: dict[str, Any] = Field(alias="schema")


class _Format(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text", "json_schema"]
    json_schema: _Schema | None = None

    @model_validator(mode="after")
    def _whole(self) -> "_Format":
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("json_schema: it goes with the type json_schema")
        return self


class ChatBody(BaseModel):
    """The body of `POST /v1/chat/completions`. Fields that are not here are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Name
    messages: list[_Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    temperature: float = Field(default=1.0, ge=0, le=10, allow_inf_nan=False)
    top_p: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    stop: str | list[str] | None = None
    structured_outputs: _Structured | None = None
    response_format: _Format | None = None
    logprobs: bool = False
    return_token_ids: bool = False
    user: Annotated[str, StringConstraints(max_length=200)] | None = None
    # Of these only the value that changes nothing is known here.
    stream: bool = False
    n: Literal[1] = 1
    top_logprobs: Literal[0] | None = None
    top_k: Literal[0, -1] = 0
    min_p: float = Field(default=0.0, ge=0, le=0)
    repetition_penalty: float = Field(default=1.0, ge=1, le=1)
    presence_penalty: float = Field(default=0.0, ge=0, le=0)
    frequency_penalty: float = Field(default=0.0, ge=0, le=0)

    @field_validator("stream")
    @classmethod
    def _whole(cls, value: bool) -> bool:
        if value:
            raise ValueError("this server gives whole replies alone: leave stream out, or set it to false")
        return value

    @field_validator("stop")
    @classmethod
    def _some(cls, value: str | list[str] | None) -> str | list[str] | None:
        listed = [value] if isinstance(value, str) else value or []
        if len(listed) > 8 or not all(listed):
            raise ValueError("allowed are up to 8 texts that are not empty")
        return value

    @model_validator(mode="after")
    def _fits(self) -> "ChatBody":
        if self.structured_outputs is not None and self.response_format is not None:
            raise ValueError("give either structured_outputs or response_format")
        chars = sum(len(message.told().content) for message in self.messages)
        if chars > MAX_CHARS:
            raise ValueError(f"messages: they have {chars} characters, {MAX_CHARS} are allowed")
        return self

    def to_request(self, *, adapter: str, match: str) -> Request:
        """Return what a policy is asked."""
        constraint = None
        if self.structured_outputs is not None:
            constraint = self.structured_outputs.constraint()
        elif self.response_format is not None and self.response_format.json_schema is not None:
            constraint = Constraint(schema=self.response_format.json_schema.schema_)
        return Request(
            messages=tuple(message.told() for message in self.messages),
            constraint=constraint,
            max_tokens=self.max_completion_tokens or self.max_tokens or DEFAULT_TOKENS,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=self.seed,
            adapter=adapter,
            match=match,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
        )


def explain_body(error: ValidationError) -> tuple[str, str | None]:
    """Return what is first wrong with a body as one line, and the field's name."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part not in ("str", "list[_Part]", "list[str]")]
    name = ".".join(place)
    if first["type"] == "json_invalid":
        return "the body is no valid JSON", None
    if first["type"] == "extra_forbidden":
        return f"{name}: this server does not know the field, and does not pass over it", name
    if first["type"] == "missing":
        return f"{name}: it is missing", name
    message = str(first["msg"]).removeprefix("Value error, ").replace("Input should be", "it should be", 1)
    if not name:
        return message, None
    got = json.dumps(first.get("input"), ensure_ascii=False)
    return f"{name}: got {got if len(got) <= 80 else got[:77] + '...'}, {message}", name


def reply_body(
    body: ChatBody,
    completion: Completion,
    *,
    number: str,
    created: int,
    model: str,
    decode: Callable[[int], str],
) -> dict[str, Any]:
    """Return the body that answers `body`; `decode` writes a token id as text."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": completion.text},
        "finish_reason": completion.finish_reason,
        "logprobs": None,
    }
    reply: dict[str, Any] = {"id": number, "object": "chat.completion", "created": created, "model": model}
    if body.logprobs and completion.logprobs:
        choice["logprobs"] = {"content": list(_scores(completion, decode))}
    if body.return_token_ids and completion.token_ids:
        choice["token_ids"] = list(completion.token_ids)
        reply["prompt_token_ids"] = list(completion.prompt_ids)
    prompt, written = len(completion.prompt_ids), len(completion.token_ids)
    return reply | {
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": completion.cached_tokens},
        },
    }


def _scores(completion: Completion, decode: Callable[[int], str]) -> Any:
    for one, score in zip(completion.token_ids, completion.logprobs, strict=True):
        text = decode(one)
        yield {"token": text, "logprob": score, "bytes": list(text.encode()), "top_logprobs": []}
