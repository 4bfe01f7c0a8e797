"""A policy on a server that speaks OpenAI's chat completions: vLLM, llama.cpp, a hosted model.

The key comes from the environment alone, is sent over https or to this machine, and is never part of a message.
What may pass (429, 5xx, a lost connection) is asked again, within the deadline, when the server said or later and
later; everything else is the request's own failure.
"""

import asyncio
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

from agents.errors import BadModel, EngineFailed, EngineMissing, PolicyError, UnknownAdapter
from agents.policy.base import BASE, Completion, Constraint, Engine, Message, Request
from agents.policy.chat import ChatTokenizer, guess_tokens, one_line
from agents.policy.openai_chat import (
    RETRIED,
    Dialect,
    LengthField,
    Usage,
    read_reply,
    refusal,
    request_body,
)

OWNERS = frozenset({"vllm", "evoke-arena"})
"""Whose lists of models tell that a server speaks vLLM's dialect."""

CONTEXT_TOKENS = 8192
"""Assumed where neither the settings nor the server say."""

ADAPTER_LOAD_S = 120.0
FIRST_WAIT_S = 0.25
"""Before the second attempt, and up to as much more by chance; each later wait is twice as long."""
LONGEST_WAIT_S = 10.0
MAX_REPLY_BYTES = 8 * 1024 * 1024
START_S = 180.0
"""A vLLM server compiles on the first constrained request."""


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """Which server, and how it is spoken to.

    Args:
        model: the model's name there.
        url: of the server, such as `http://127.0.0.1:8000` (then `/v1` is added) or one that ends in its version.
        dialect: how completions are constrained; `auto` takes `vllm` where the server speaks it, else `json_schema`.
        key_env: the environment variable that holds the API key; a server may need none.
        key_in_clear: whether the key may be sent over plain http to another machine.
        max_batch: requests that are open at the same time.
        context_tokens: of prompt and completion; None takes what the server says.
        timeout_s: seconds of one request, repetitions and waits included.
        attempts: how often a request is sent at most.
        length_field: the name of the bound of a completion; newer hosted models want `max_completion_tokens`.
        tokenizer: a folder with the model's tokenizer, for exact counts.
        publish: whether adapters may be loaded on the server (`POST /v1/load_lora_adapter` of vLLM).
        max_total_tokens: of prompts and completions together, after which nothing more is asked; None sets no bound.
        prompt_price, completion_price: of a million tokens, in any currency.
        cached_price: of a million prompt tokens that the server had already; None is the price of the others.
    """

    model: str
    url: str
    dialect: Dialect | Literal["auto"] = "auto"
    key_env: str = "OPENAI_API_KEY"
    key_in_clear: bool = False
    max_batch: int = 32
    context_tokens: int | None = None
    timeout_s: float = 60.0
    attempts: int = 6
    length_field: LengthField = "max_tokens"
    tokenizer: str | None = None
    publish: bool = False
    max_total_tokens: int | None = None
    prompt_price: float = 0.0
    cached_price: float | None = None
    completion_price: float = 0.0


class _Again(Exception):
    """An attempt that failed in a way that may pass; `after_s` is what the server asked to wait."""

    def __init__(self, error: PolicyError, after_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_s = after_s


class OpenAIEngine(Engine):
    """A back end over HTTP.

    Token ids and log-probabilities come from vLLM servers alone; the latter only where the server was started with
    `--logprobs-mode processed_logprobs`, which `start` finds out by asking.

    Raises `BadModel` for a URL or a key that cannot be used.
    """

    def __init__(self, settings: OpenAISettings) -> None:
        self.settings = settings
        self.base = _base_url(settings.url)
        self.model = f"{settings.model} at {self.base}"
        self.max_batch = settings.max_batch
        self.context_tokens = settings.context_tokens or CONTEXT_TOKENS
        self.dialect: Dialect = "json_schema" if settings.dialect == "auto" else settings.dialect
        self.logprobs = True
        self._key = _key(settings.key_env)
        if self._key and not settings.key_in_clear and not _is_private(self.base):
            raise BadModel(
                f"url: got {self.base}, and the key in {settings.key_env} would cross the network unencrypted: "
                "use https, unset the variable, or set policy.openai_key_in_clear"
            )
        self._tokenizer: ChatTokenizer | None = None
        self._session: Any = None
        self._slots = asyncio.Semaphore(settings.max_batch)
        self._names: dict[str, str | None] = {}
        self._counts = dict.fromkeys(
            (
                "requests",
                "failures",
                "attempts",
                "prompt_tokens",
                "cached_tokens",
                "completion_tokens",
                "cost",
            ),
            0.0,
        )

    async def start(self) -> None:
        """Ask the server what it serves; of a vLLM server, also whether its log-probabilities can be learned from."""
        try:
            import aiohttp
            import stamina  # noqa: F401
        except ImportError as error:
            raise EngineMissing(
                f"the HTTP back end cannot be imported: {one_line(error)}; install the extra 'openai'"
            ) from None
        # Stamina tells its log of every wait; that is this program's log, and nobody may have set it up.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        if self.settings.tokenizer is not None:
            self._tokenizer = await asyncio.to_thread(_tokenizer, self.settings.tokenizer)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=None))
        listed = await self._models()
        if self.settings.dialect == "auto" and any(
            entry.get("owned_by") in OWNERS for entry in listed.values()
        ):
            self.dialect = "vllm"
        length = listed.get(self.settings.model, {}).get("max_model_len")
        if self.settings.context_tokens is None and isinstance(length, int) and length > 0:
            self.context_tokens = length
        if self.dialect == "vllm":
            if listed and self.settings.model not in listed:
                raise BadModel(
                    f"model: got {self.settings.model!r}, {self.base} serves: {', '.join(sorted(listed))}"
                )
            await self._probe()

    async def _models(self) -> dict[str, Any]:
        """Return what the server lists, by name, and note its adapters.

        Servers without such a list are taken at the caller's word.
        """
        try:
            status, _, raw = await self._exchange("GET", "/models", None, deadline_s=self.settings.timeout_s)
        except PolicyError as error:
            raise EngineFailed(f"{self.base} cannot be reached: {error}") from None
        if status in (401, 403):
            raise BadModel(
                f"{self.base}: {refusal(status, raw, secret=self._key)}; "
                f"the key is read from the environment variable {self.settings.key_env}"
            )
        listed = _listed(raw) if status == 200 else {}
        if listed:
            self._names = {
                name: entry.get("root") for name, entry in listed.items() if name != self.settings.model
            }
        return listed

    async def _probe(self) -> None:
        """Ask for the only choice: what was sampled then has probability 1, what the model alone says has not."""
        only = Request((Message("user", "."),), Constraint(choices=("zq",)))
        answer = await self._answer(only, timeout_s=max(START_S, self.settings.timeout_s))
        if isinstance(answer, PolicyError):
            raise answer
        self.logprobs = all(score > -1e-3 for score in answer.logprobs)

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        self._counts["requests"] += len(requests)
        answers = await asyncio.gather(
            *(self._answer(request, timeout_s=self.settings.timeout_s) for request in requests)
        )
        self._counts["failures"] += sum(isinstance(answer, PolicyError) for answer in answers)
        return answers

    async def _answer(self, request: Request, *, timeout_s: float) -> Completion | PolicyError:
        if request.adapter != BASE and request.adapter not in self._names:
            known = ", ".join(sorted(self._names)) or "none"
            return UnknownAdapter(f"adapter: got {request.adapter!r}, the server has: {known}")
        spent, bound = self._spent(), self.settings.max_total_tokens
        if bound is not None and spent >= bound:
            return PolicyError(f"{spent} tokens were used, and {bound} are allowed in all")
        model = self.settings.model if request.adapter == BASE else request.adapter
        body = request_body(
            request, model=model, dialect=self.dialect, length_field=self.settings.length_field
        )
        arrived = time.monotonic()
        try:
            status, sent, raw = await self._exchange("POST", "/chat/completions", body, deadline_s=timeout_s)
            if status != 200:
                return refusal(status, raw, secret=self._key)
            completion, usage = read_reply(
                raw,
                request,
                dialect=self.dialect,
                logprobs=self.logprobs,
                queue_s=max(0.0, sent - arrived),
            )
        except PolicyError as error:
            return error
        self._count(usage)
        return completion

    async def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, deadline_s: float
    ) -> tuple[int, float, bytes]:
        """Send until there is an answer that stands; return its status, when it was asked for, and its body.

        Raises `EngineFailed` where there is none within `deadline_s` or `attempts`.
        """
        import stamina

        if self._session is None:
            raise EngineFailed("the HTTP back end is not running: start it first")
        until = time.monotonic() + deadline_s
        last: PolicyError | None = None

        def again(error: Exception) -> bool | float:
            nonlocal last
            if not isinstance(error, _Again):
                return False
            last = error.error
            if error.after_s is None:
                return True
            return error.after_s if time.monotonic() + error.after_s < until else False

        try:
            async with asyncio.timeout(deadline_s):
                async for attempt in stamina.retry_context(
                    on=again,
                    attempts=self.settings.attempts,
                    timeout=None,
                    wait_initial=FIRST_WAIT_S,
                    wait_max=LONGEST_WAIT_S,
                    wait_jitter=FIRST_WAIT_S,
                ):
                    with attempt:
                        async with self._slots:
                            return await self._attempt(method, path, body)
        except _Again as error:
            waited = f" and asked to wait {error.after_s:g} s" if error.after_s else ""
            raise EngineFailed(f"{error.error}{waited}") from None
        except TimeoutError:
            because = f"; the last attempt: {last}" if last is not None else ""
            raise EngineFailed(f"the server did not answer within {deadline_s:g} s{because}") from None
        raise AssertionError("the loop above returns or raises")

    async def _attempt(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[int, float, bytes]:
        import aiohttp

        self._counts["attempts"] += 1
        sent = time.monotonic()
        try:
            async with self._session.request(
                method, f"{self.base}{path}", json=body, allow_redirects=False
            ) as response:
                raw = await self._read(response)
                status = int(response.status)
                after_s = _retry_after(response.headers.get("Retry-After"))
        except aiohttp.ClientError as error:
            raise _Again(EngineFailed(f"the connection failed: {one_line(error)}")) from None
        if status in RETRIED or status >= 500:
            raise _Again(refusal(status, raw, secret=self._key), after_s)
        if 300 <= status < 400:
            raise refusal(status, raw, secret=self._key)
        return status, sent, raw

    async def _read(self, response: Any) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > MAX_REPLY_BYTES:
                raise EngineFailed(
                    f"the server's reply is longer than {MAX_REPLY_BYTES} bytes, which is the bound"
                )
            parts.append(part)
        return b"".join(parts)

    def _spent(self) -> int:
        return int(self._counts["prompt_tokens"] + self._counts["completion_tokens"])

    def _count(self, usage: Usage) -> None:
        settings, counts = self.settings, self._counts
        cached_price = settings.prompt_price if settings.cached_price is None else settings.cached_price
        counts["prompt_tokens"] += usage.prompt
        counts["cached_tokens"] += usage.cached
        counts["completion_tokens"] += usage.completion
        counts["cost"] += (
            (usage.prompt - usage.cached) * settings.prompt_price
            + usage.cached * cached_price
            + usage.completion * settings.completion_price
        ) / 1_000_000

    def count_tokens(self, text: str) -> int:
        if self._tokenizer is not None:
            return self._tokenizer.count(text)
        return guess_tokens(text)

    async def publish(self, version: str, path: str) -> None:
        """See that the server has an adapter: one that it lists, now if not at the start, or else loads from `path`.

        Only a vLLM server loads any, and `path` must be a folder that it sees.
        """
        await self._models()
        if version in self._names:
            if self._names[version] in (path, None):
                return
            raise UnknownAdapter(
                f"adapter {version!r}: the server has one of that name from another folder already"
            )
        if not self.settings.publish:
            raise UnknownAdapter(
                f"adapter {version!r}: {self.base} does not have it, and policy.openai_publish is off"
            )
        body = {"lora_name": version, "lora_path": path}
        status, _, raw = await self._exchange("POST", "/load_lora_adapter", body, deadline_s=ADAPTER_LOAD_S)
        if status != 200:
            raise UnknownAdapter(
                f"adapter {version!r} was not loaded: {refusal(status, raw, secret=self._key)}"
            )
        self._names[version] = path

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def facts(self) -> dict[str, float]:
        """Return counters; `cost` in the currency of the prices, `logprobs` 1 where they can be learned from."""
        return {**self._counts, "logprobs": float(self.dialect == "vllm" and self.logprobs)}


def _key(variable: str) -> str | None:
    """Return the key in an environment variable. Raises `BadModel` for one that no header can hold."""
    key = os.environ.get(variable, "").strip()
    if not key.isprintable():
        raise BadModel(
            f"the key in {variable} holds control characters or line breaks: set it to the key alone"
        )
    return key or None


def _tokenizer(folder: str) -> ChatTokenizer:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise BadModel(
            f"policy.openai_tokenizer: got {folder!r}, a folder with the model's tokenizer is needed"
        )
    return ChatTokenizer(path)


def _base_url(url: str) -> str:
    """Return the URL under which `/chat/completions` lies. Raises `BadModel` for one that is none."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise BadModel(f"url: got {url[:80]!r}, the form is http://HOST:PORT or https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise BadModel("url: it holds a user name or password; put the key in the environment instead")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def _is_private(base: str) -> bool:
    """Return whether nobody on a network can read what is sent to `base`."""
    from urllib.parse import urlsplit

    parts = urlsplit(base)
    if parts.scheme == "https":
        return True
    host = parts.hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listed(raw: bytes) -> dict[str, Any]:
    import json

    try:
        entries = json.loads(raw)["data"]
        return {entry["id"]: entry for entry in entries if isinstance(entry["id"], str)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, written as seconds or as a date; None where it says nothing."""
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
