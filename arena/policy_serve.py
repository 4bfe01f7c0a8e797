"""A policy for others: OpenAI's chat completions over the configured engine, for this machine or a network.

What is asked is checked before a model sees it, and a field that would change the answer and is not known is refused:
a constraint that is passed over in silence is worse than an error. The dialect is that of vLLM's server (choices and
JSON schemas in `structured_outputs`, token ids, log-probabilities of the distribution that was sampled), so whoever
speaks to one speaks to this.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from agents.errors import (
    BadAdapter,
    BadModel,
    EngineBusy,
    EngineFailed,
    EngineMissing,
    PolicyError,
    PromptTooLong,
    UnknownAdapter,
)
from agents.policy.adapters import Adapter, base_of
from agents.policy.base import BASE, Request
from agents.policy.service import MakeEngine, Policies
from agents.policy.settings import PolicySettings
from agents.policy.spec import POLICY
from arena.errors import ServeError
from arena.limits import is_loopback
from arena.policy_info import model_folder, usable_adapters
from arena.policy_metrics import PolicyMetrics
from arena.policy_requests import ChatBody, Refused, explain_body, reply_body
from games.errors import ArenaError

DEFAULT_PORT = 8430
DEFAULT_MAX_REQUESTS = 256
MAX_BODY_BYTES = 1 << 20
TIMEOUT_S = 300.0
RETRY_AFTER_S = 1
KEY_ENV = "ARENA_POLICY_KEY"
"""The environment variable that holds the key which callers must send, where there is one."""

OWNER = "evoke-arena"
"""Our own clients tell by this which dialect of constraints, token ids and log-probabilities the server speaks."""

HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Server": "evoke-arena"}

log = logging.getLogger("arena.policy_serve")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PolicyServer:
    """Serves one policy.

    Args:
        settings: which one, and how it runs.
        home: the directory of the state; its adapters are served beside the model.
        host, port: where to listen; port 0 takes a free one.
        key: what callers must send as a bearer token; None lets everybody in.
        max_requests: that are open at the same time; more are told to come again.
        timeout_s: seconds until a request is given up.
        make: makes the engine, see `Policies`.

    Raises `ServeError` for an address that others reach and that no key guards.
    """

    def __init__(
        self,
        settings: PolicySettings,
        *,
        home: Path,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        key: str | None = None,
        max_requests: int = DEFAULT_MAX_REQUESTS,
        timeout_s: float = TIMEOUT_S,
        make: MakeEngine | None = None,
    ) -> None:
        self._local = is_loopback(host)
        if not self._local and not key:
            raise ServeError(
                f"host: got {host!r}, other machines can reach it; put a key into {KEY_ENV}, or take 127.0.0.1"
            )
        self.settings = settings
        self.home = home
        self.name = served_name(settings)
        self.max_requests = max_requests
        self.timeout_s = timeout_s
        self._host, self._port = host, port
        self._key = key
        self._policies = Policies(settings, home=home, make=make)
        self._open = 0
        self._metrics = PolicyMetrics(self._policies.facts, open_requests=lambda: self._open)
        self._runner: web.AppRunner | None = None
        self._decode: Callable[[int], str] = _as_number
        self._since = int(time.time())

    @property
    def url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        assert self._runner is not None
        host, port = self._runner.addresses[0][:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

    @property
    def model(self) -> str:
        """What the engine calls its model."""
        return self._policies.batcher(POLICY).engine.model

    async def start(self) -> None:
        """Load the model, then listen. Raises `PolicyError`, or `ServeError` where the address cannot be had."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._show_metrics)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(
            app, handle_signals=False, access_log=None, handler_cancellation=True, shutdown_timeout=2.0
        )
        await self._runner.setup()
        try:
            # The address first: whether it is free shows at once, a model may take minutes.
            site = web.TCPSite(self._runner, self._host, self._port)
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            reason = error.strerror or str(error)
            raise ServeError(f"cannot listen on {self._host} port {self._port}: {reason}") from None
        try:
            await self._policies.start([POLICY])
            self._decode = await asyncio.to_thread(self._decoder)
        except BaseException:
            await self.close()
            raise

    def _decoder(self) -> Callable[[int], str]:
        """Return what writes a token id as text; where the tokenizer is not here, as a number."""
        from agents.policy.chat import ChatTokenizer

        folder = model_folder(self.settings, home=self.home)
        if folder is None:
            return _as_number
        inner = ChatTokenizer(folder).inner
        return lambda one: str(inner.decode([one], skip_special_tokens=False))

    async def close(self) -> None:
        """Call off what runs, and let go of the model."""
        if self._runner is not None:
            await self._runner.cleanup()
        await self._policies.close()

    @contextlib.asynccontextmanager
    async def running(self, stop: "asyncio.Future[int]") -> AsyncIterator[bool]:
        """Start, and close in the end; yields False where `stop` was set before the model was there."""
        starting = asyncio.create_task(self.start())
        try:
            await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
            yield starting.done()
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.close()

    # Around every request

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response: web.StreamResponse
        began = time.monotonic()
        try:
            self._check(request)
            response = await handler(request)
        except Refused as error:
            response = _error(error)
        except web.HTTPException as error:
            code = {404: "not_found", 413: "request_too_large"}.get(error.status, "invalid_request")
            response = _error(Refused(error.reason.lower(), status=error.status, code=code))
        except PolicyError as error:
            response = _error(refused_by_policy(error))
        except Exception:
            log.exception("%s failed", request.path)
            response = _error(Refused("the server failed; it has been logged", status=500, code="internal"))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        self._metrics.answered(request.path, response.status, time.monotonic() - began)
        return response

    def _check(self, request: web.Request) -> None:
        if self._local and not is_loopback(request.url.host or ""):
            # A page elsewhere that made its name lead here must not use what is meant for this machine.
            raise Refused("host: this server is for this machine alone", status=403, code="forbidden")
        if self._key is None or request.path == "/health":
            return
        kind, _, sent = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), self._key.encode()):
            raise Refused("Authorization: a bearer key is needed", status=401, code="invalid_api_key")

    # What is served

    async def _health(self, request: web.Request) -> web.Response:
        up = self._policies.facts().get(POLICY, {}).get("engine_up", 0.0) > 0
        if not up:
            return web.json_response({"status": "the model is not running"}, status=503)
        return web.json_response({"status": "ok"})

    async def _show_metrics(self, request: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.render(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def _models(self, request: web.Request) -> web.Response:
        engine = self._policies.batcher(POLICY).engine
        adapters = await asyncio.to_thread(_usable, self.home, self._identity())
        length = {"max_model_len": engine.context_tokens}
        card = {"object": "model", "created": self._since, "owned_by": OWNER, **length}
        cards = [{"id": self.name, "root": None, "parent": None, **card}]
        cards += [{"id": one.ref, "root": None, "parent": self.name, **card} for one in adapters]
        return web.json_response({"object": "list", "data": cards})

    def _identity(self) -> str:
        return base_of(self.model)

    async def _chat(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            # Which no page elsewhere can send without being asked first.
            raise Refused(
                f"Content-Type: got {request.content_type[:60]!r}, application/json is needed", status=415
            )
        if self._open >= self.max_requests:
            raise Refused(
                f"{self._open} requests are open, and {self.max_requests} are allowed; come again",
                status=429,
                code="rate_limit_exceeded",
            )
        self._open += 1
        try:
            # From the first byte of the body on: who sends it slowly must not hold a place for ever.
            async with asyncio.timeout(self.timeout_s):
                return await self._completed(request)
        except TimeoutError:
            raise Refused(
                f"the request was not answered within {self.timeout_s:g} s", status=504, code="timeout"
            ) from None
        finally:
            self._open -= 1

    async def _completed(self, request: web.Request) -> web.Response:
        try:
            body = ChatBody.model_validate_json(await request.read())
        except ValidationError as error:
            raise Refused(*explain_body(error)) from None
        adapter = await self._adapter(body.model)
        asked = body.to_request(adapter=adapter, match=body.user or request.remote or "")
        return web.json_response(await self._answer(body, asked))

    async def _adapter(self, model: str) -> str:
        """Return the adapter version that a request's model stands for, known to the engine."""
        if model == self.name:
            return BASE
        try:
            return await self._policies.pin(f"{POLICY}:{model}")
        except EngineFailed:
            raise
        except ArenaError:
            known = [
                self.name,
                *(one.ref for one in await asyncio.to_thread(_usable, self.home, self._identity())),
            ]
            raise Refused(
                f"model: got {model[:80]!r}, served are: {', '.join(known)[:300]}",
                status=404,
                param="model",
                code="model_not_found",
            ) from None

    async def _answer(self, body: ChatBody, asked: Request) -> dict[str, Any]:
        completion = await self._policies.batcher(POLICY).submit(asked)
        self._metrics.completed(completion)
        number = f"chatcmpl-{secrets.token_hex(12)}"
        return reply_body(
            body, completion, number=number, created=int(time.time()), model=body.model, decode=self._decode
        )


def served_name(settings: PolicySettings) -> str:
    """Return the name under which the configured model is served: the preset's, or the folder's."""
    if settings.backend == "openai":
        return settings.model.rpartition("@")[0]
    return Path(settings.model).expanduser().name or settings.model


def _usable(home: Path, identity: str) -> list[Adapter]:
    with contextlib.suppress(BadAdapter):
        return usable_adapters(home, identity)[0]
    return []


def refused_by_policy(error: PolicyError) -> Refused:
    """Return the answer to a request that the policy refused or failed."""
    match error:
        case PromptTooLong():
            return Refused(str(error), param="messages", code="context_length_exceeded")
        case UnknownAdapter() | BadAdapter():
            return Refused(str(error), status=404, param="model", code="model_not_found")
        case BadModel():
            return Refused(str(error))
        case EngineFailed() | EngineBusy() | EngineMissing():
            return Refused(str(error), status=503, code="model_unavailable")
    return Refused(str(error), status=500, code="internal")


def _as_number(one: int) -> str:
    return f"token_id:{one}"


def _error(error: Refused) -> web.Response:
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    told = {"message": str(error), "type": kind, "param": error.param, "code": error.code}
    response = web.json_response({"error": told}, status=error.status)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.status in (429, 503):
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
