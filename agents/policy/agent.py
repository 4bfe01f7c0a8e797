"""A language model at a seat: prompts from what the seat saw, actions from what the model wrote."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agents.base import Agent, Decision, Seat
from agents.errors import PolicyError
from agents.policy.base import BASE, Completion, Message, Request
from agents.policy.batcher import Batcher
from agents.policy.settings import Mode
from agents.prompting.answers import constraint_of, parse_answer, unbroken
from agents.prompting.parse import Answer, parse_reply
from agents.prompting.prompter import Prompter
from games.base import Event
from games.referee import Turn
from games.rng import derive_seed
from games.text import neutralise

MARGIN_TOKENS = 64
"""Of a context, what the chat template's own tokens may take."""
MAX_THOUGHT_CHARS = 4000
_PATH = re.compile(r"(?<![\w./:~-])~?/(?:[^/\s'\"]+/+)*([^/\s'\"]+)")


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How a policy plays, the same for every seat it takes.

    Args:
        mode: `direct` asks for the action; `one` for thought and action in one reply; `two` in two.
        style: of the prompts.
        temperature, top_p: of the sampling.
        budget_tokens: of a prompt; None takes what the context leaves.
        speech_tokens, thought_tokens: bounds of a speech and of a thought.
    """

    mode: Mode = "direct"
    style: Literal["full", "compact"] = "full"
    temperature: float = 1.0
    top_p: float = 1.0
    budget_tokens: int | None = None
    speech_tokens: int = 96
    thought_tokens: int = 160

    def answer_tokens(self) -> int:
        """Return the most that a completion may need beside its prompt, choices apart."""
        thought = 0 if self.mode == "direct" else self.thought_tokens
        return self.speech_tokens + thought

    def budget(self, context_tokens: int) -> int:
        """Return the bound of a prompt where the context has `context_tokens`."""
        room = context_tokens - self.answer_tokens() - MARGIN_TOKENS
        return max(room, 32) if self.budget_tokens is None else min(self.budget_tokens, max(room, 32))


class PolicyAgent(Agent):
    """Plays by a model that it shares with other seats and matches.

    Args:
        seat: where it sits.
        batcher: of the engine that answers.
        playing: how it plays.
        adapter: the adapter version that answers throughout the match.
        match: whose requests its are.
        on_close: is called when it is closed.
        count: about how many tokens a text has; by default the engine's own count.
    """

    def __init__(
        self,
        seat: Seat,
        *,
        batcher: Batcher,
        playing: GenerationSettings,
        adapter: str = BASE,
        match: str = "",
        count: Callable[[str], int] | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(seat)
        self.batcher = batcher
        self.playing = playing
        self.adapter = adapter
        self.match = match
        self._on_close = on_close
        self.model = batcher.engine.model
        self.prompter = Prompter(
            seat,
            style=playing.style,
            budget_tokens=playing.budget(batcher.engine.context_tokens),
            count=count or batcher.engine.count_tokens,
        )
        how = f"{playing.mode}, temperature {playing.temperature:g}, top-p {playing.top_p:g}"
        bounds = f"{self.prompter.budget_tokens} + {playing.answer_tokens()} tokens"
        self.version = f"1 ({self.prompter.version}, {how}, {bounds})"
        self.policy = f"{self.model}, adapter {adapter}"

    def observe(self, events: Sequence[Event]) -> None:
        self.prompter.observe(events)

    async def act(self, turn: Turn) -> Decision:
        if self.playing.mode == "one":
            return await self._one(turn)
        thought, trace = "", {}
        if self.playing.mode == "two":
            messages = self.prompter.messages(turn, want="thought")
            told = await self._ask(messages, turn, "thought", max_tokens=self.playing.thought_tokens)
            thought, trace = told.text.strip()[:MAX_THOUGHT_CHARS], {"thought": _sampled(told)}
        messages = self.prompter.messages(turn, want="action", thought=thought)
        constraint = constraint_of(turn.space)
        completion = await self._ask(
            messages, turn, "action", max_tokens=self.playing.speech_tokens, constraint=constraint
        )
        text = completion.text
        if constraint is None and completion.finish_reason == "length":
            text = unbroken(text)
        return self._decision(parse_answer(turn.space, text), completion, thought, trace)

    async def _one(self, turn: Turn) -> Decision:
        messages = self.prompter.messages(turn, want="both")
        completion = await self._ask(messages, turn, "both", max_tokens=self.playing.answer_tokens())
        thought = completion.text.strip()[:MAX_THOUGHT_CHARS]
        return self._decision(parse_reply(turn.space, completion.text), completion, thought, {})

    async def _ask(
        self, messages: tuple[Message, ...], turn: Turn, want: str, *, max_tokens: int, constraint: Any = None
    ) -> Completion:
        request = Request(
            messages,
            constraint=constraint,
            max_tokens=max_tokens,
            temperature=self.playing.temperature,
            top_p=self.playing.top_p,
            seed=derive_seed(self.seat.seed, "policy", turn.ply, turn.attempt, want),
            adapter=self.adapter,
            match=self.match,
        )
        try:
            return await self.batcher.submit(request)
        except PolicyError as error:
            raise type(error)(without_folders(str(error))) from error

    async def close(self) -> None:
        self._on_close()

    def _decision(self, parsed: Any, completion: Completion, thought: str, trace: dict[str, Any]) -> Decision:
        trace = {
            **_sampled(completion),
            "adapter": completion.adapter,
            "model": self.model,
            "prompt": self.prompter.version,
            "mode": self.playing.mode,
            "temperature": self.playing.temperature,
            "top_p": self.playing.top_p,
            **trace,
        }
        shown = "\n".join(map(neutralise, thought.splitlines())) or None
        if isinstance(parsed, Answer):
            return Decision(parsed.action, shown, trace)
        return Decision(None, shown, trace, parsed.kind, parsed.reason)


def without_folders(text: str) -> str:
    """Return an engine's words as a record may keep them: of each absolute path its last part; URLs stay."""
    return _PATH.sub(r"\1", text)


def _sampled(completion: Completion) -> dict[str, Any]:
    return {
        "prompt_ids": list(completion.prompt_ids),
        "token_ids": list(completion.token_ids),
        "logprobs": list(completion.logprobs),
    }
