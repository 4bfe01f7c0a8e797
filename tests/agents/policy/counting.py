"""An engine without a model, which counts what it is given."""

import asyncio
from collections.abc import Callable, Sequence

from agents.errors import EngineFailed, PolicyError
from agents.policy.base import Completion, Engine, Message, Request


def request(match: str = "", text: str = "") -> Request:
    return Request((Message("user", text),), match=match)


class CountingEngine(Engine):
    """Answers every request with its first choice, or its own text, once `gate` lets it; notes each call."""

    def __init__(self, *, max_batch: int = 4) -> None:
        self.model = "counting@0 on nothing"
        self.max_batch = max_batch
        self.context_tokens = 4096
        self.calls: list[list[Request]] = []
        self.cancelled: list[list[Request]] = []
        self.adapters: dict[str, str] = {}
        self.started = self.closed = 0
        self.gate: asyncio.Event | None = None
        self.fails: Callable[[Request], PolicyError | None] = lambda given: None
        self.dies: Callable[[], bool] = lambda: False

    async def start(self) -> None:
        self.started += 1

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        self.calls.append(list(requests))
        try:
            if self.gate is not None:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled.append(list(requests))
            raise
        if self.dies():
            raise EngineFailed("the counting engine died")
        return [self.fails(given) or self.answer(given) for given in requests]

    def answer(self, given: Request) -> Completion:
        choices = None if given.constraint is None else given.constraint.choices
        text = choices[0] if choices else given.messages[-1].content
        return Completion(text, (1, 2), (3,), (-0.5,), "stop", adapter=given.adapter)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def publish(self, version: str, path: str) -> None:
        self.adapters[version] = path

    async def close(self) -> None:
        self.closed += 1

    @property
    def order(self) -> list[str]:
        """The matches whose requests were given, in order."""
        return [given.match for call in self.calls for given in call]
