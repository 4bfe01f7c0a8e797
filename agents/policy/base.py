"""The contract of a policy: requests in, completions out, whatever computes them.

A back end is an `Engine`. Seats never talk to it directly: `agents.policy.batcher` stands between, fair between
matches. Nothing here loads a model.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agents.errors import PolicyError
from agents.prompting.chat import Constraint as Constraint
from agents.prompting.chat import Message as Message

BASE = "base"
"""The adapter version of the model as it is, without an adapter."""

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Request:
    """One completion that is asked for.

    Args:
        messages: the chat so far; the completion is the assistant's next message.
        constraint: what it may be; None leaves it free.
        max_tokens: bound of its length.
        temperature: of the sampling distribution, in logits; 0 takes the likeliest.
        top_p: mass of the likeliest tokens that may be sampled.
        seed: of the sampling, where the back end takes one.
        adapter: the adapter version that must answer.
        match: whose request this is; the batcher is fair between matches.
        stop: strings at which free text ends; they are not part of it.
    """

    messages: tuple[Message, ...]
    constraint: Constraint | None = None
    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    adapter: str = BASE
    match: str = ""
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What came of a request.

    Args:
        text: without special tokens and stop strings.
        prompt_ids: token ids of the prompt as the model saw it; empty where the back end does not tell.
        token_ids: of the completion, the end token included where it was sampled.
        logprobs: natural log-probability of each of `token_ids` under the distribution it was drawn from:
            temperature, `top_p` and the constraint's mask included.
        finish_reason: `stop` where the model ended, `length` where the bound did.
        adapter: the version that answered.
        cached_tokens: of the prompt, those that were not computed anew.
        queue_s: seconds between the request and the back end taking it.
    """

    text: str
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    adapter: str = BASE
    cached_tokens: int = 0
    queue_s: float = 0.0


class Engine(ABC):
    """A back end. All methods but `start` may be called only between `start` and `close`, on one event loop.

    It takes new requests while others run.

    `complete` never blocks the loop: heavy work runs on a thread or in another process.
    """

    model: str
    """What the model is, with a hash of its weights where they are local; recorded in headers."""
    max_batch: int
    """Requests that are worth giving at once."""
    context_tokens: int
    """Tokens that prompt and completion may have together."""

    @abstractmethod
    async def start(self) -> None:
        """Load the model. Raises `PolicyError`."""

    @abstractmethod
    async def complete(self, requests: Sequence[Request]) -> list[Completion | PolicyError]:
        """Answer requests, in order. What fails for one request is its entry; what fails for all is raised.

        Cancelling the call ends the work.
        """

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Return about how many tokens a text has; exact where the tokenizer is local. Does not block."""

    @abstractmethod
    async def publish(self, version: str, path: str) -> None:
        """Make an adapter version available under `version`, for requests to come. Raises `PolicyError`."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the model. Called once, also after a failure."""

    def facts(self) -> dict[str, float]:
        """Return counters for metrics, by name (tokens, cached tokens, batches, costs …)."""
        return {}
