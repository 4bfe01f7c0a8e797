"""A policy on transformers in this process, on a processor or a GPU.

One worker thread computes; between two tokens it takes in what came meanwhile (see `agents.policy.decoder`), so a
short answer never waits for a long one. Sampling is seeded by request: the same request gives the same answer,
whatever it is computed together with, but for rounding that differs with a batch's shape.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from agents.errors import BadModel, EngineFailed, PolicyError
from agents.policy.base import Completion, Engine, Request
from agents.policy.chat import ChatTokenizer, one_line
from agents.policy.decoder import Decoder, Ended, Job
from agents.policy.local_model import LocalModel, TransformersSettings

AHEAD = 2
"""Requests that are worth giving, for each sequence that runs: whoever ends is followed at once."""

_log = logging.getLogger("agents.policy")


class TransformersEngine(Engine):
    """A back end on transformers. `max_batch` of the settings run at a time; twice as many are worth giving."""

    def __init__(self, settings: TransformersSettings) -> None:
        self.settings = settings
        self.model = settings.model
        self.max_batch = settings.max_batch * AHEAD
        self.context_tokens = settings.context_tokens or 0
        self._decoder: Decoder | None = None
        self._tokenizer: ChatTokenizer | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: deque[Job] = deque()
        self._calls: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._wake = threading.Event()
        self._waking = False
        self._stop = False
        self._dead: EngineFailed | None = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._decoder = await asyncio.to_thread(lambda: Decoder(LocalModel(self.settings)))
        model = self._decoder.model
        self.model = f"{model.name} on transformers"
        self.context_tokens = model.context_tokens
        self._tokenizer = model.tokenizer
        self._thread = threading.Thread(target=self._work, args=(self._decoder,), name="policy", daemon=True)
        self._thread.start()

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        loop = self._alive()
        jobs = [Job(request, loop.create_future()) for request in requests]
        self._inbox.extend(jobs)
        # Calls made in the same round of the loop start together.
        if not self._waking:
            self._waking = True
            loop.call_soon(self._ring)
        try:
            return [await job.ticket for job in jobs]
        except asyncio.CancelledError:
            for job in jobs:
                job.cancelled = True
            raise
        except EngineFailed:
            for job in jobs:
                if job.ticket.done() and not job.ticket.cancelled():
                    job.ticket.exception()
            raise

    def _ring(self) -> None:
        self._waking = False
        self._wake.set()

    def _alive(self) -> asyncio.AbstractEventLoop:
        if self._dead is not None:
            raise self._dead
        if self._loop is None or self._thread is None or self._stop:
            raise EngineFailed("the transformers engine is not running: start it first")
        return self._loop

    def count_tokens(self, text: str) -> int:
        if self._tokenizer is None:
            raise EngineFailed("the transformers engine is not running: start it first")
        return self._tokenizer.count(text)

    async def publish(self, version: str, path: str) -> None:
        """Load a LoRA adapter, or a whole model of the same vocabulary, from the folder `path`."""
        loop = self._alive()
        assert self._decoder is not None
        model = self._decoder.model
        done: asyncio.Future[None] = loop.create_future()
        self._calls.append((lambda: model.publish(version, path), done))
        self._wake.set()
        await done

    async def close(self) -> None:
        self._stop = True
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.join)
        decoder, self._decoder = self._decoder, None
        if decoder is not None:
            await asyncio.to_thread(decoder.model.close)

    def facts(self) -> dict[str, float]:
        """Return the decoder's counters (`agents.policy.decoder`), and the gauges `cached_blocks` and `waiting`."""
        if self._decoder is None:
            return {}
        gauges = {"cached_blocks": float(self._decoder.cache.blocks), "waiting": float(len(self._inbox))}
        return {**self._decoder.counts, **gauges}

    def _work(self, decoder: Decoder) -> None:
        """Compute until told to stop; whatever is raised ends the engine, and says so to all who wait."""
        try:
            while not self._stop:
                self._take_in(decoder)
                if decoder.idle:
                    self._wake.wait()
                    self._wake.clear()
                    continue
                ended = decoder.step()
                if ended:
                    self._tell(_hand_over, ended)
            reason = EngineFailed("the transformers engine was closed")
        except Exception as error:
            _log.debug("the transformers engine failed", exc_info=True)
            reason = EngineFailed(f"the transformers engine failed: {one_line(error)}")
        self._dead = reason
        self._take_in(decoder, serve=False)
        self._tell(_hand_over, [(job, reason) for job in decoder.abandon()])
        self._tell(self._refuse, reason)

    def _refuse(self, reason: EngineFailed) -> None:
        """Fail what was given while the worker ended."""
        _hand_over([(job, reason) for job in self._inbox])
        self._inbox.clear()
        while self._calls:
            _settle(self._calls.popleft()[1], reason)

    def _take_in(self, decoder: Decoder, *, serve: bool = True) -> None:
        while self._inbox:
            decoder.add(self._inbox.popleft())
        while self._calls:
            call, done = self._calls.popleft()
            error: BaseException | None = self._dead
            if serve:
                try:
                    call()
                except PolicyError as raised:
                    error = raised
                except Exception as raised:
                    _log.debug("the transformers engine failed at a call", exc_info=True)
                    error = BadModel(f"transformers cannot load it: {one_line(raised)}")
            self._tell(_settle, done, error)

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more


def _hand_over(ended: Sequence[Ended]) -> None:
    for job, answer in ended:
        future: asyncio.Future[Completion | PolicyError] = job.ticket
        if future.done():
            continue
        if isinstance(answer, EngineFailed):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _settle(done: "asyncio.Future[None]", error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
