"""An engine that is started again when it dies."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence

from agents.errors import EngineFailed, PolicyError
from agents.policy.base import Completion, Engine, Request

FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30.0
PATIENCE = 4
"""Failures in a row after which requests are refused at once, until a start has worked."""

_log = logging.getLogger("agents.policy")


class RestartingEngine(Engine):
    """Runs engines from `make`, one after another: a dead one is closed, and the next started after a pause.

    The pause doubles with every failure and is short again after a completion. A request whose engine died is given
    to the next one at most `retries` times, then it fails with `EngineFailed`; meanwhile its caller's deadline counts.

    Args:
        make: returns a fresh engine.
        retries: how often a request is given again.
        first_delay_s, max_delay_s: the pause before a start.
        verify: is called, off the loop, before an adapter version is given to a fresh engine; raises `PolicyError`
            where it is no longer what was published.
    """

    def __init__(
        self,
        make: Callable[[], Engine],
        *,
        retries: int = 1,
        first_delay_s: float = FIRST_DELAY_S,
        max_delay_s: float = MAX_DELAY_S,
        verify: Callable[[str], None] = lambda version: None,
    ) -> None:
        self._make = make
        self.retries = retries
        self.first_delay_s, self.max_delay_s = first_delay_s, max_delay_s
        self._engine = make()
        self._describe()
        self._verify = verify
        self._adapters: dict[str, str] = {}
        self._expected: set[str] = set()
        self._holds: Counter[str] = Counter()
        self._up = False
        self._news = asyncio.Event()
        """Set, and replaced, whenever the engine is up or has failed again."""
        self._restart: asyncio.Task[None] | None = None
        self._strikes = 0
        self._error = EngineFailed("the engine is not running: start it first")
        self._closed = False
        self.restarts = 0

    def _describe(self) -> None:
        engine = self._engine
        self.model, self.context_tokens = engine.model, engine.context_tokens
        self.max_batch = engine.max_batch

    async def start(self) -> None:
        """Start the first engine; its failure is raised, not mended."""
        try:
            await self._engine.start()
        except BaseException:
            await self._engine.close()
            raise
        self._describe()
        self._up = True

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        for attempt in range(self.retries + 1):
            engine = await self._ready()
            try:
                answers = await engine.complete(requests)
            except EngineFailed as error:
                self._died(engine, error)
                if attempt == self.retries:
                    raise
                continue
            self._strikes = 0
            return answers
        raise AssertionError("unreachable")

    async def _ready(self) -> Engine:
        while not self._up:
            if self._closed or self._restart is None or self._strikes > PATIENCE:
                raise EngineFailed(str(self._error))
            await self._news.wait()
        return self._engine

    def _tell(self) -> None:
        """Wake those who wait for the engine."""
        self._news.set()
        self._news = asyncio.Event()

    def _died(self, engine: Engine, error: EngineFailed) -> None:
        if engine is not self._engine or not self._up or self._closed:
            return
        _log.warning("the engine of %s died and is started again: %s", self.model, error)
        self._up = False
        self._error = error
        self._strikes += 1
        self._restart = asyncio.get_running_loop().create_task(self._again())

    async def _again(self) -> None:
        """Start engines until one runs."""
        await _close(self._engine)
        while True:
            await asyncio.sleep(min(self.first_delay_s * 2 ** (self._strikes - 1), self.max_delay_s))
            engine: Engine | None = None
            try:
                engine = self._make()
                await engine.start()
                await self._publish_again(engine)
            except Exception as error:
                self._strikes += 1
                self._error = EngineFailed(f"the engine does not start again: {error}")
                self._tell()
                _log.warning("%s", self._error)
                if engine is not None:
                    await _close(engine)
                continue
            except BaseException:
                if engine is not None:
                    await _close(engine)
                raise
            self._engine = engine
            self._describe()
            self.restarts += 1
            self._up = True
            self._tell()
            return

    async def _publish_again(self, engine: Engine) -> None:
        """Give a fresh engine the adapters that are in use.

        One that is not to be had any more costs those who play it, nobody else.
        """
        for version, path in list(self._adapters.items()):
            if not self._holds[version] and version not in self._expected:
                del self._adapters[version]
                continue
            try:
                await asyncio.to_thread(self._verify, version)
                await engine.publish(version, path)
            except EngineFailed:
                raise
            except PolicyError as error:
                _log.warning("adapter %s is lost with the engine that died: %s", version, error)
                self._adapters.pop(version, None)

    def count_tokens(self, text: str) -> int:
        return self._engine.count_tokens(text)

    def published(self, version: str) -> bool:
        """Whether an adapter version has been published, and is not lost."""
        return version in self._adapters

    async def publish(self, version: str, path: str) -> None:
        """Publish to the engine that runs, and to those that follow as long as the version is in use.

        An engine that dies of it, or meanwhile, is followed by one more that is asked, whatever `retries` says: no
        caller's deadline counts here, and a match cannot begin without its adapter.
        """
        self.expect(version)
        if self._adapters.get(version) == path:
            return
        for last in (False, True):
            engine = await self._ready()
            try:
                await engine.publish(version, path)
            except EngineFailed as error:
                self._died(engine, error)
                if last:
                    raise
            else:
                self._adapters[version] = path
                return

    def expect(self, version: str) -> None:
        """Keep a version until its first holder comes."""
        self._expected.add(version)

    def hold(self, version: str) -> None:
        """Count one more who plays a version; it is kept over restarts until the last has let go of it."""
        self._expected.discard(version)
        self._holds[version] += 1

    def release(self, version: str) -> None:
        """Count one less who plays a version."""
        self._holds[version] -= 1
        if self._holds[version] <= 0:
            del self._holds[version]

    async def close(self) -> None:
        self._closed = True
        self._tell()
        if self._restart is not None:
            self._restart.cancel()
            await asyncio.gather(self._restart, return_exceptions=True)
        if self._up:
            self._up = False
            await self._engine.close()

    def facts(self) -> dict[str, float]:
        """Return the running engine's facts, and how often it was started again."""
        return {**self._engine.facts(), "restarts": float(self.restarts), "up": float(self._up)}


async def _close(engine: Engine) -> None:
    try:
        await engine.close()
    except Exception as error:
        _log.warning("an engine failed to close: %s", error)
