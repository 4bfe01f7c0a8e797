"""A policy on transformers, on a processor or a GPU, in a process of its own.

The process (`agents.policy.worker`) computes; between two tokens it takes in what came meanwhile (see
`agents.policy.decoder`), so a short answer never waits for a long one. Sampling is seeded by request: the same request
gives the same answer, whatever it is computed together with, but for rounding that differs with a batch's shape.

This process needs neither torch nor transformers. When the other one dies, requests get `EngineFailed`, and a fresh
engine may be started once this one is closed; a guard sees to it that it ends with this one, however that ends.
"""

import asyncio
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from typing import Any

from agents.errors import EngineFailed, PolicyError
from agents.policy.base import Completion, Engine, Request
from agents.policy.chat import TokenCount
from agents.policy.guard import Guard
from agents.policy.local_model import TransformersSettings
from agents.policy.worker import Broken, Frames, Given, Loaded, Note, Publish, Told, Withdrawn, framed

AHEAD = 2
"""Requests that are worth giving, for each sequence that runs: whoever ends is followed at once."""
SHUTDOWN_S = 3.0
"""How long the process may take for a last forward pass."""

BOOT = "import sys; sys.path[:] = sys.argv[2:]; from agents.policy.worker import main; main()"
"""What the process runs: with the path of this one, whose main module it leaves alone."""

_log = logging.getLogger("agents.policy")


class TransformersEngine(Engine):
    """A back end on transformers. `max_batch` of the settings run at a time; twice as many are worth giving."""

    def __init__(self, settings: TransformersSettings) -> None:
        self.settings = settings
        self.model = settings.model
        self.max_batch = settings.max_batch * AHEAD
        self.context_tokens = settings.context_tokens or 0
        self._launching: asyncio.Future[None] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None
        self._socket: socket.socket | None = None
        self._link: asyncio.Transport | None = None
        self._loaded: asyncio.Future[Loaded] | None = None
        self._burial: asyncio.Task[None] | None = None
        self._tokens: TokenCount | None = None
        self._numbers = count(1)
        self._owed: dict[int, asyncio.Future[Any]] = {}
        self._outbox: list[Any] = []
        self._facts: dict[str, float] = {}
        self._dead: PolicyError | None = None
        self._closing = False

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._loaded = loop.create_future()
        self._launching = asyncio.ensure_future(asyncio.to_thread(self._launch))
        await asyncio.shield(self._launching)
        self._link, _ = await loop.create_unix_connection(lambda: _Link(self), sock=self._socket)
        self._link.write(framed([self.settings]))
        loaded = await self._loaded
        self._tokens = await asyncio.to_thread(TokenCount, loaded.tokenizer)
        self.context_tokens = loaded.context_tokens
        self.model = f"{loaded.name} on transformers"

    def _launch(self) -> None:
        """Start the process, and the guard that ends it with this one."""
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            warnings = [f"-W{one}" for one in sys.warnoptions]
            number = theirs.fileno()
            try:
                self._process = subprocess.Popen(
                    [sys.executable, *warnings, "-c", BOOT, str(number), *map(str, sys.path)],
                    pass_fds=[number],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # what interrupts this process leaves it to close the other
                )
                self._guard = Guard([self._process.pid])
            except OSError as error:
                raise EngineFailed(f"the transformers engine did not start: {error.strerror}") from None

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        now = time.monotonic()
        owed = [self._ask(lambda number, one=one: Given(number, one, now)) for one in requests]
        try:
            return [await answer for _, answer in owed]
        except asyncio.CancelledError:
            left = tuple(number for number, _ in owed if self._owed.pop(number, None) is not None)
            self._say(Withdrawn(left))
            raise
        except EngineFailed:
            for _, answer in owed:
                if answer.done() and not answer.cancelled():
                    answer.exception()  # counts as seen
            raise

    def count_tokens(self, text: str) -> int:
        if self._tokens is None:
            raise EngineFailed("the transformers engine is not running: start it first")
        return self._tokens.count(text)

    async def publish(self, version: str, path: str) -> None:
        """Load a LoRA adapter, or a whole model of the same vocabulary, from the folder `path`."""
        _, answer = self._ask(lambda number: Publish(number, version, path))
        error = await answer
        if error is not None:
            raise error

    def facts(self) -> dict[str, float]:
        """Return the decoder's counters (`agents.policy.decoder`), and the gauges `cached_blocks` and `waiting`.

        They are as old as the last answer, and at most a tenth of a second and a forward pass.
        """
        return dict(self._facts)

    async def close(self) -> None:
        """Let go of everything, to the end even where the caller is cancelled."""
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise

    async def _close(self) -> None:
        self._closing = True
        self._fail(EngineFailed("the transformers engine was closed"))
        if self._launching is not None:
            await asyncio.wait([self._launching])
            if not self._launching.cancelled():
                self._launching.exception()  # `start` has raised it; here it counts as seen
        if self._link is not None:
            self._link.abort()
        elif self._socket is not None:
            self._socket.close()
        if self._burial is not None:
            await asyncio.wait([self._burial])
        if self._process is not None:
            await asyncio.to_thread(_end, self._process, patience_s=SHUTDOWN_S if self._tokens else 0.0)
        guard, self._guard = self._guard, None
        if guard is not None:
            await asyncio.to_thread(guard.release)

    # What is said

    def _ask(self, message: Any) -> tuple[int, "asyncio.Future[Any]"]:
        """Send `message(number)`, and return the number and what will be its answer."""
        if self._dead is not None:
            raise EngineFailed(str(self._dead))
        if self._tokens is None:
            raise EngineFailed("the transformers engine is not running: start it first")
        number = next(self._numbers)
        answer = self._owed[number] = asyncio.get_running_loop().create_future()
        self._say(message(number))
        return number, answer

    def _say(self, message: Any) -> None:
        # Once in a round of the loop: calls made in the same round start together.
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._post)
        self._outbox.append(message)

    def _post(self) -> None:
        messages, self._outbox = self._outbox, []
        if self._link is not None and self._dead is None:
            self._link.write(framed(messages))

    # What is heard

    def hear(self, message: Any) -> None:
        """Take in what the process says."""
        match message:
            case Told(answers, facts):
                self._facts = facts
                for number, answer in answers:
                    owed = self._owed.pop(number, None)
                    if owed is not None and not owed.done():
                        owed.set_result(answer)
            case Note(text):
                _log.debug("from the process of the transformers engine: %s", text)
            case Broken(reason):
                self._fail(reason)
            case Loaded() if self._loaded is not None and not self._loaded.done():
                self._loaded.set_result(message)

    def lost(self) -> None:
        """Take in that the process says no more."""
        if not self._closing:
            self._burial = asyncio.get_running_loop().create_task(self._bury())

    async def _bury(self) -> None:
        assert self._process is not None
        code = await asyncio.to_thread(_end, self._process, patience_s=SHUTDOWN_S)
        self._fail(EngineFailed(f"the process of the transformers engine {_told_by(code)}"))

    def _fail(self, reason: PolicyError) -> None:
        if self._dead is None:
            self._dead = reason
        for owed in (self._loaded, *self._owed.values()):
            if owed is not None and not owed.done():
                owed.set_exception(self._dead)
        self._owed.clear()
        if self._loaded is not None and not self._loaded.cancelled():
            self._loaded.exception()  # counts as seen, where nobody waits for it any more


class _Link(asyncio.Protocol):
    def __init__(self, engine: TransformersEngine) -> None:
        self._engine = engine
        self._frames = Frames()

    def data_received(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            self._engine.hear(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._engine.lost()


def _end(process: "subprocess.Popen[bytes]", *, patience_s: float) -> int:
    """Wait for a process, or kill it; return its exit code."""
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _told_by(code: int) -> str:
    """Return how a process ended."""
    if code >= 0:
        return f"ended (exit code {code})"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"
