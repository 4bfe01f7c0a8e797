"""One queue before an engine: fair between matches, bounded, and rid of what nobody waits for any more."""

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.errors import EngineBusy, EngineFailed, PolicyError
from agents.policy.base import Completion, Engine, Request

DEFAULT_MAX_WAIT_S = 60.0
DEFAULT_MAX_QUEUED = 1024

_log = logging.getLogger("agents.policy")


@dataclass(eq=False, slots=True)
class _Entry:
    request: Request
    answer: "asyncio.Future[Completion]"
    queued_at: float
    """By the loop's clock."""
    call: "asyncio.Task[None] | None" = None


class _FairQueue:
    """First in, first out within a match; the matches take turns."""

    def __init__(self) -> None:
        self._matches: OrderedDict[str, deque[_Entry]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, entry: _Entry) -> None:
        self._matches.setdefault(entry.request.match, deque()).append(entry)
        self._size += 1

    def pop(self) -> _Entry:
        match, entries = self._matches.popitem(last=False)
        entry = entries.popleft()
        if entries:
            self._matches[match] = entries
        self._size -= 1
        return entry

    def remove(self, entry: _Entry) -> bool:
        entries = self._matches.get(entry.request.match)
        if entries is None or entry not in entries:
            return False
        entries.remove(entry)
        if not entries:
            del self._matches[entry.request.match]
        self._size -= 1
        return True

    def drain(self) -> list[_Entry]:
        return [self.pop() for _ in range(self._size)]


class Batcher:
    """Stands between seats and an engine, and keeps it full.

    A request that has waited too long for the engine to take it fails. A caller that is cancelled takes its request
    back, from the engine as well.

    Args:
        engine: must be started.
        max_wait_s: seconds that a request waits, by the loop's clock, before it fails with `EngineBusy`.
        max_queued: requests that wait; who comes then waits to be let in, in turns between matches as well.

    `on_completion`, where it is set, is called with every completion that somebody waited for.
    """

    def __init__(
        self, engine: Engine, *, max_wait_s: float = DEFAULT_MAX_WAIT_S, max_queued: int = DEFAULT_MAX_QUEUED
    ) -> None:
        self.engine = engine
        self.max_wait_s = max_wait_s
        self.max_queued = max_queued
        self._queue = _FairQueue()
        self._outside = _FairQueue()
        self._running: set[asyncio.Task[None]] = set()
        self._soon = False
        self._closed = False
        self._counts: Counter[str] = Counter()
        self.on_completion: Callable[[Completion], None] | None = None

    async def submit(self, request: Request) -> Completion:
        """Return the completion of one request. Raises `PolicyError`."""
        if self._closed:
            raise EngineFailed("the policy is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Completion] = loop.create_future()
        entry = _Entry(request, answer, loop.time())
        patience = loop.call_later(self.max_wait_s, self._expire, entry)
        self._counts["requests"] += 1
        full = len(self._queue) >= self.max_queued
        (self._outside if full else self._queue).push(entry)
        self._pump_soon()
        try:
            return await answer
        except asyncio.CancelledError:
            self._counts["cancelled"] += 1
            if not self._withdraw(entry) and entry.call is not None:
                entry.call.cancel()
            raise
        finally:
            patience.cancel()

    def facts(self) -> dict[str, float]:
        """Return counts and gauges: requests, failures, cancelled, calls, waiting, running.

        And queue_s, the seconds that requests waited, those in the engine's own queue included.
        """
        counted = {
            name: float(self._counts[name])
            for name in ("requests", "failures", "cancelled", "calls", "queue_s")
        }
        return {
            **counted,
            "waiting": float(len(self._queue) + len(self._outside)),
            "running": float(len(self._running)),
        }

    async def close(self) -> None:
        """Refuse what waits, and call off what runs."""
        self._closed = True
        for entry in (*self._queue.drain(), *self._outside.drain()):
            _fail(entry, EngineFailed("the policy was closed"))
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _pump_soon(self) -> None:
        # Once in a round of the loop: what comes in the same round goes out together.
        if not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._soon = False
        while not self._closed and self._queue and len(self._running) < self.engine.max_batch:
            entry = self._queue.pop()
            self._let_in()
            self._call(entry)

    def _let_in(self) -> None:
        if self._outside:
            self._queue.push(self._outside.pop())

    def _call(self, entry: _Entry) -> None:
        self._counts["calls"] += 1
        task = entry.call = asyncio.get_running_loop().create_task(self._run(entry))
        self._running.add(task)

        def ended(task: "asyncio.Task[None]") -> None:
            self._running.discard(task)
            _fail(entry, EngineFailed("the policy was closed"))  # only where the task was called off
            if not self._closed:
                self._pump_soon()

        task.add_done_callback(ended)

    async def _run(self, entry: _Entry) -> None:
        waited = asyncio.get_running_loop().time() - entry.queued_at
        self._counts["queue_s"] += waited  # type: ignore[assignment]
        try:
            (answer,) = await self.engine.complete([entry.request])
        except PolicyError as error:
            answer = error
        except Exception as error:
            answer = EngineFailed(f"the engine failed: {type(error).__name__}: {str(error)[:200]}")
        if isinstance(answer, PolicyError):
            self._counts["failures"] += 1
            _fail(entry, answer)
        elif not entry.answer.done():
            self._counts["queue_s"] += answer.queue_s  # type: ignore[assignment]
            completion = replace(answer, queue_s=answer.queue_s + waited)
            entry.answer.set_result(completion)
            self._tell(completion)

    def _tell(self, completion: Completion) -> None:
        if self.on_completion is None:
            return
        try:
            self.on_completion(completion)
        except Exception:
            _log.exception("what was to be told of a completion failed")

    def _expire(self, entry: _Entry) -> None:
        if self._withdraw(entry):
            self._counts["failures"] += 1
            _fail(
                entry,
                EngineBusy(f"the model took no request for {self.max_wait_s:g} s (policy.max_wait_s)"),
            )

    def _withdraw(self, entry: _Entry) -> bool:
        """Take a request back that still waits; return whether it did."""
        if self._queue.remove(entry):
            self._let_in()
            return True
        return self._outside.remove(entry)


def _fail(entry: _Entry, error: PolicyError) -> None:
    if not entry.answer.done():
        entry.answer.set_exception(error)
