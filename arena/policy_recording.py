"""A back end whose requests are written down: for measuring it, and for giving it the very same ones again."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agents.errors import PolicyError
from agents.policy.base import Completion, Engine, Message, Request


@dataclass(slots=True)
class Given:
    """A request that the back end was given, as it was before the side's digits."""

    request: Request
    answered: bool = False


@dataclass(slots=True)
class Book:
    """What the back end is given during one side of one round."""

    digits: str = ""
    given: list[Given] = field(default_factory=list)
    under_way: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    """Requests by how many were under way when they had come, themselves included."""
    failed: int = 0
    reason: str = ""
    """Of the last failure."""
    waited_s: list[float] = field(default_factory=list)
    closed: bool = False
    """Whether what is measured is over, and what comes is no longer written down."""
    _since: float = 0.0
    _load_s: float = 0.0
    """Integral of `under_way` over time."""
    _busy_s: float = 0.0

    def change(self, by: int) -> None:
        """Note that `by` more requests are under way."""
        now = time.monotonic()
        if self.under_way and not self.closed:
            self._load_s += self.under_way * (now - self._since)
            self._busy_s += now - self._since
        self._since = now
        self.under_way += by

    def waited(self, completion: Completion) -> None:
        """Note how long a request waited."""
        if not self.closed:
            self.waited_s.append(completion.queue_s)

    def close(self) -> list[Request]:
        """Take no more down, and return the requests that have been answered."""
        self.change(0)
        self.closed = True
        return [one.request for one in self.given if one.answered]

    @property
    def mean_under_way(self) -> float:
        """Requests under way on average, while there were any."""
        return self._load_s / self._busy_s if self._busy_s else 0.0


class RecordingEngine(Engine):
    """Passes requests on to a back end, and writes them down.

    Args:
        engine: the back end.
        book: where they are written, by what it holds at that time.
    """

    def __init__(self, engine: Engine, book: Callable[[], Book]) -> None:
        self._engine = engine
        self._book = book
        self._describe()

    def _describe(self) -> None:
        engine = self._engine
        self.model, self.context_tokens = engine.model, engine.context_tokens
        self.max_batch = engine.max_batch

    async def start(self) -> None:
        await self._engine.start()
        self._describe()

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        book = self._book()
        given = [Given(request) for request in requests]
        book.change(len(given))
        if not book.closed:
            book.given += given
            book.sizes[book.under_way] += len(given)
        answers: list[Completion | PolicyError] = []
        try:
            answers = await self._engine.complete([_begun(request, book.digits) for request in requests])
        except PolicyError as error:
            book.reason = str(error)
            raise
        finally:
            book.change(-len(given))
            for one, answer in zip(given, answers, strict=False):
                one.answered = isinstance(answer, Completion)
                if isinstance(answer, PolicyError):
                    book.reason = str(answer)
            book.failed += sum(not one.answered for one in given)
        return answers

    def count_tokens(self, text: str) -> int:
        return self._engine.count_tokens(text)

    async def publish(self, version: str, path: str) -> None:
        await self._engine.publish(version, path)

    async def close(self) -> None:
        await self._engine.close()

    def facts(self) -> dict[str, float]:
        return self._engine.facts()


def _begun(request: Request, digits: str) -> Request:
    """Return the request with digits of its own in front of each message."""
    messages = tuple(Message(role, f"{digits} {content}") for role, content in request.messages)
    return replace(request, messages=messages)
