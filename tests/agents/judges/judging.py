"""An engine that answers as a test says, and cases about the seed task."""

import asyncio
import math
from collections.abc import Callable, Sequence

from agents.errors import PolicyError
from agents.judges.base import SOLVED, Case
from agents.policy.base import Completion, Engine, Request
from games.tasks.cases import seed_case
from games.tasks.check import Attempt
from games.tasks.solver import solve_task

SEED = seed_case()
PLAN = solve_task(SEED).plan or ()


def case(actions: Sequence[str] = PLAN, question: str = SOLVED) -> Case:
    """Return a question about an attempt at the seed task."""
    return Case(SEED, Attempt(SEED.hash, tuple(actions)), question)


def completion(text: str, *, share: float | None = None) -> Completion:
    """Return what an engine answers, with the probability of the whole text."""
    logprobs = () if share is None else (math.log(share),)
    return Completion(text, (1,), (2,), logprobs, "stop")


class ScriptedEngine(Engine):
    """Answers with what `reply` makes of a request; None keeps it waiting for ever."""

    model = "scripted"
    max_batch = 64
    context_tokens = 4096

    def __init__(self, reply: Callable[[Request], Completion | PolicyError | None]) -> None:
        self.reply = reply
        self.asked: list[Request] = []

    async def start(self) -> None:
        return

    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        self.asked += requests
        answers = [self.reply(request) for request in requests]
        if None in answers:
            await asyncio.Event().wait()
        return [answer for answer in answers if answer is not None]

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def publish(self, version: str, path: str) -> None:
        return

    async def close(self) -> None:
        return
