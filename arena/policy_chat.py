"""What a language model is told and what it answers, for any decision of any record: recorded, and asked anew.

The prompt of a recorded decision is written again from the events. Where the record holds the tokens of the prompt,
they decide whether that is what the model saw.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agents.base import Decision
from agents.errors import BadModel, EngineMissing
from agents.policy.adapters import base_of
from agents.policy.agent import GenerationSettings, PolicyAgent
from agents.policy.base import Completion, Message, Request
from agents.policy.batcher import Batcher
from agents.policy.chat import ChatTokenizer, describe_model, guess_tokens
from agents.policy.service import Policies, playing
from agents.policy.settings import Mode, PolicySettings
from agents.policy.spec import POLICY, parse_spec, served_model
from agents.prompting.answers import answer_text
from agents.prompting.prompter import Prompter
from agents.prompting.template import Style, Want
from arena.policy_info import budget_of, model_folder
from arena.policy_moments import Moment, Moments
from games.rng import derive_seed

PROBES = 64
"""Answers that are drawn beside those asked for, to tell how likely each option is; of a local model only."""
KNOWN = 0.999
"""Of the probability of all options: what is enough to stop."""
ROUNDING = 1e-3
"""How far above 0 a log-probability may be."""

_WANTS: dict[str, tuple[Want, ...]] = {"direct": ("action",), "one": ("both",), "two": ("thought", "action")}
"""What an agent asks for in each mode, call by call."""
_HOW = re.compile(r"\(([\w.-]+)/(full|compact)/\S+, (direct|one|two), ")
"""In a seat's `agent`, as `PolicyAgent.version` writes it."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply; `logprob` is None where it was not recorded."""

    id: int
    text: str
    logprob: float | None


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a model, and what came back.

    Args:
        want: what was asked for.
        messages: the prompt.
        reply: the text; None where no model answered, or its tokens cannot be told.
        tokens: of the reply; none where they are not known.
        exact: whether the messages are known to be those that the model saw, None where that cannot be told.
        raw: the very string after the chat template, None where the template is not known.
        prompt_tokens: of that string, None where they cannot be counted.
        finish: `stop` or `length`, where it is known.
    """

    want: Want
    messages: tuple[Message, ...]
    reply: str | None = None
    tokens: tuple[Token, ...] = ()
    exact: bool | None = None
    raw: str | None = None
    prompt_tokens: int | None = None
    finish: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer that the configured policy gave now."""

    calls: tuple[Call, ...]
    decision: Decision


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a constrained answer: how often it was drawn, and how likely it is where that is known."""

    text: str
    drawn: int
    probability: float | None


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a constrained answer, the likeliest first.

    `rest` is the probability of all that was not drawn: of other options, and of other ways to write the same.
    """

    options: tuple[Option, ...]
    rest: float | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the configured policy answered now."""

    model: str
    adapter: str
    playing: GenerationSettings
    samples: tuple[Sample, ...]
    options: Options | None


class Lens:
    """Tells prompts and tokens as the configured model has them. Loads its tokenizer when it is needed.

    Args:
        settings: of the policy; its style and mode hold where the record does not say otherwise.
        home: the directory of the state.
        style, mode: given by hand; they hold whatever the record says.
    """

    def __init__(
        self, settings: PolicySettings, *, home: Path, style: Style | None = None, mode: Mode | None = None
    ) -> None:
        self.settings = settings
        self.home = home
        self.playing = playing(settings, parse_spec(POLICY))
        if style is not None:
            self.playing = replace(self.playing, style=style)
        if mode is not None:
            self.playing = replace(self.playing, mode=mode)
        self._by_hand = (style, mode)
        if settings.backend == "openai":
            served_model(settings.model)
        self.folder = model_folder(settings, home=home)
        self.note = ""
        """Why tokens cannot be told, where they cannot."""
        self.tokenizer = self._load()
        self.identity = None if self.folder is None else describe_model(self.folder)

    def _load(self) -> ChatTokenizer | None:
        if self.folder is None:
            server = self.settings.backend == "openai"
            self.note = (
                "the chat template is the server's, so tokens are not known here"
                if server
                else "the model is not here yet, so its tokens are not known"
            )
            return None
        try:
            return ChatTokenizer(self.folder)
        except (EngineMissing, BadModel) as error:
            self.note = str(error)
            return None

    def count(self, text: str) -> int:
        """Return how many tokens a text has, about where there is no tokenizer."""
        if self.tokenizer is not None:
            return self.tokenizer.count(text)
        return guess_tokens(text)

    def how(self, moments: Moments, moment: Moment) -> GenerationSettings:
        """Return how a decision was asked for: as the record says, in what it does not say as configured."""
        style, mode = self._by_hand
        if not moment.policy:
            return self.playing
        prompt = str((moment.given.trace or {}).get("prompt", ""))
        named = _HOW.search(moments.record.header.seats[moment.turn.seat].agent)
        told: GenerationSettings = self.playing
        if prompt.count("/") == 2 and prompt.split("/")[1] in ("full", "compact"):
            told = replace(told, style=prompt.split("/")[1])  # type: ignore[arg-type]
        elif named is not None:
            told = replace(told, style=named[2])  # type: ignore[arg-type]
        if named is not None:
            told = replace(told, mode=named[3])  # type: ignore[arg-type]
        return replace(told, style=style or told.style, mode=mode or told.mode)

    def prompter(self, moments: Moments, moment: Moment, how: GenerationSettings) -> Prompter:
        """Return the prompter of the seat, told all that the seat had seen."""
        prompter = Prompter(
            moments.seat(moment.turn.seat),
            style=how.style,
            budget_tokens=budget_of(how, self.folder, self.settings),
            count=self.count,
        )
        prompter.observe(moments.before(moment))
        return prompter

    def recorded(self, moments: Moments, moment: Moment) -> list[Call]:
        """Return what was asked and answered in the match. A bot's decision is shown as if a model had been asked.

        Raises `PromptTooLong` where the budget is too small for the prompt.
        """
        how = self.how(moments, moment)
        prompter = self.prompter(moments, moment, how)
        turn, trace = moment.turn, moment.given.trace or {}
        if how.mode == "two":
            thinking = trace.get("thought")
            asked = self._call("thought", prompter.messages(turn, want="thought"), thinking)
            thought = asked.reply if asked.reply is not None else moment.given.thought or ""
            then = prompter.messages(turn, want="action", thought=thought.strip())
            return [asked, self._answered(moment, "action", then, trace)]
        want: Want = "both" if how.mode == "one" else "action"
        return [self._answered(moment, want, prompter.messages(turn, want=want), trace)]

    def _answered(
        self, moment: Moment, want: Want, messages: tuple[Message, ...], trace: dict[str, Any]
    ) -> Call:
        call = self._call(want, messages, trace)
        if call.reply is None and want == "action" and moment.given.action is not None:
            action = moment.turn.space.from_json(moment.given.action)
            if moment.turn.space.contains(action):
                return replace(call, reply=answer_text(moment.turn.space, action))  # type: ignore[arg-type]
        return call

    def _call(self, want: Want, messages: tuple[Message, ...], trace: Any) -> Call:
        """Return a call whose tokens are in `trace`, where they are."""
        call = self.call(want, messages)
        if not isinstance(trace, dict):
            return call
        ids = _numbers(trace.get("token_ids"))
        logprobs = trace.get("logprobs")
        prompt_ids = _numbers(trace.get("prompt_ids"))
        if self.tokenizer is None or not ids:
            return replace(call, tokens=self._tokens(ids, logprobs, readable=False))
        exact: bool | None = None
        if prompt_ids:
            exact = prompt_ids == self.tokenizer.prompt_ids(messages)
        elif not self._same_model(trace):
            return call
        if exact is False and not self._same_model(trace):
            # Another model's tokens: nothing here can read them.
            return replace(call, tokens=self._tokens(ids, logprobs, readable=False))
        known = replace(call, exact=exact, reply=self._decode(ids), tokens=self._tokens(ids, logprobs))
        if exact is False:
            raw = self._decode(prompt_ids, special=True)
            return replace(known, raw=raw, prompt_tokens=len(prompt_ids))
        return known

    def _same_model(self, trace: dict[str, Any]) -> bool:
        return base_of(str(trace.get("model", ""))) == self.identity

    def call(self, want: Want, messages: tuple[Message, ...]) -> Call:
        """Return a call with the prompt alone."""
        if self.tokenizer is None:
            return Call(want, messages)
        raw = self.tokenizer.render(messages)
        return Call(want, messages, raw=raw, prompt_tokens=len(self.tokenizer.prompt_ids(messages)))

    def answered(self, want: Want, request: Request, completion: Completion) -> Call:
        """Return a call that was made now."""
        call = replace(
            self.call(want, request.messages),
            reply=completion.text,
            finish=completion.finish_reason,
            exact=True,
            tokens=self._tokens(completion.token_ids, completion.logprobs),
        )
        if completion.prompt_ids:
            return replace(call, prompt_tokens=len(completion.prompt_ids))
        return call

    def _tokens(self, ids: Sequence[int], logprobs: Any, *, readable: bool = True) -> tuple[Token, ...]:
        scores = list(logprobs) if isinstance(logprobs, list | tuple) else []
        known = len(scores) == len(ids) and all(map(_is_logprob, scores))
        return tuple(
            Token(
                one,
                self._decode([one], special=True) if readable else "",
                float(scores[at]) if known else None,
            )
            for at, one in enumerate(ids)
        )

    def _decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        if self.tokenizer is None:
            return ""
        inner = self.tokenizer.inner
        known = [one for one in ids if one < len(inner)]
        return str(inner.decode(known, skip_special_tokens=not special, clean_up_tokenization_spaces=False))


def _numbers(value: Any) -> tuple[int, ...]:
    """Return token ids of a record, which may hold anything."""
    if not isinstance(value, list) or not all(type(one) is int and one >= 0 for one in value):
        return ()
    return tuple(value)


def _is_logprob(value: Any) -> bool:
    return isinstance(value, int | float) and -inf < value < ROUNDING


class _Listening(Batcher):
    """Notes what is asked and answered on the way to another batcher."""

    def __init__(self, inner: Batcher) -> None:
        super().__init__(inner.engine)
        self.inner = inner
        self.heard: list[tuple[Request, Completion]] = []

    async def submit(self, request: Request) -> Completion:
        completion = await self.inner.submit(request)
        self.heard.append((request, completion))
        return completion


class Asking:
    """Asks the configured policy, in `with`. The model is loaded at the first question and kept.

    Args:
        lens: how prompts are told; its settings say which policy it is.
        adapter: NAME or NAME@VERSION of an adapter; empty for the model as it is.
        loading: called before the model is loaded.
    """

    def __init__(self, lens: Lens, *, adapter: str = "", loading: Callable[[], None] | None = None) -> None:
        self.lens = lens
        self.spec = f"{POLICY}:{adapter}" if adapter else POLICY
        parse_spec(self.spec)
        self._loading = loading
        self._runner = asyncio.Runner()
        self._policies: Policies | None = None
        self._pinned = ""
        self._drawn: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._policies is not None:
                self._runner.run(self._policies.close())
        finally:
            self._runner.close()

    def ask(self, moments: Moments, moment: Moment, *, how: GenerationSettings, samples: int = 1) -> Asked:
        """Return `samples` answers to a turn; asked again, others than before.

        The first is the one that this policy gives in a match of these seeds. Raises `PolicyError`.
        """
        return self._runner.run(self._ask(moments, moment, how, samples))

    async def _ask(self, moments: Moments, moment: Moment, how: GenerationSettings, samples: int) -> Asked:
        policies = await self._started()
        batcher = policies.batcher(self.spec)
        first = self._drawn.get(moment.index, 0)
        self._drawn[moment.index] = first + samples
        told = await asyncio.gather(
            *(self._sample(moments, moment, how, batcher, number) for number in range(first, first + samples))
        )
        options = await self._options(told, batcher)
        return Asked(
            model=batcher.engine.model,
            adapter=self._pinned,
            playing=how,
            samples=tuple(sample for sample, _ in told),
            options=options,
        )

    async def _started(self) -> Policies:
        if self._policies is None:
            if self._loading is not None:
                self._loading()
            policies = Policies(self.lens.settings, home=self.lens.home)
            await policies.start([self.spec])
            self._policies = policies
            self._pinned = await policies.pin(self.spec)
        elif not self._pinned:
            self._pinned = await self._policies.pin(self.spec)
        return self._policies

    async def _sample(
        self, moments: Moments, moment: Moment, how: GenerationSettings, batcher: Batcher, number: int
    ) -> tuple[Sample, list[tuple[Request, Completion]]]:
        seat = moments.seat(moment.turn.seat)
        if number:
            seat = replace(seat, seed=derive_seed(seat.seed, "asked again", number))
        listening = _Listening(batcher)
        agent = PolicyAgent(
            seat, batcher=listening, playing=how, adapter=self._pinned, match=f"chat {number}"
        )
        agent.observe(moments.before(moment))
        decision = await agent.act(moment.turn)
        wants = _WANTS[how.mode]
        calls = tuple(
            self.lens.answered(want, request, completion)
            for want, (request, completion) in zip(wants, listening.heard, strict=True)
        )
        return Sample(calls, decision), listening.heard

    async def _options(
        self, told: Sequence[tuple[Sample, list[tuple[Request, Completion]]]], batcher: Batcher
    ) -> Options | None:
        """Return how likely each option is. After a thought that is told of the first sample's."""
        request, _ = told[0][1][-1]
        if request.constraint is None or request.constraint.choices is None:
            return None
        drawn = [heard[-1][1] for _, heard in told if heard[-1][0].messages == request.messages]
        found = weigh(request.constraint.choices, drawn)
        local = self.lens.settings.backend != "openai"
        if local and request.temperature > 0 and found.rest is not None and found.rest > 1 - KNOWN:
            seeds = (derive_seed(request.seed or 0, "probe", number) for number in range(PROBES))
            more = await asyncio.gather(*(batcher.submit(replace(request, seed=seed)) for seed in seeds))
            found = weigh(request.constraint.choices, [*drawn, *more])
        return found


def weigh(choices: Sequence[str], completions: Sequence[Completion]) -> Options:
    """Return how likely each choice is, from completions that were drawn among them.

    The probability of what was drawn is exact: the log-probabilities are those of the sampling distribution. A text
    that can be written in several ways has the sum of those that were seen.
    """
    paths: dict[str, dict[tuple[int, ...], float]] = {choice: {} for choice in choices}
    drawn = dict.fromkeys(choices, 0)
    for completion in completions:
        if completion.text in drawn:
            drawn[completion.text] += 1
            if completion.logprobs:
                paths[completion.text][completion.token_ids] = exp(fsum(completion.logprobs))
    told = [
        Option(choice, drawn[choice], min(1.0, fsum(paths[choice].values())) if paths[choice] else None)
        for choice in choices
    ]
    known = [option.probability for option in told if option.probability is not None]
    rest = max(0.0, 1.0 - fsum(known)) if known else None
    place = {choice: at for at, choice in enumerate(choices)}
    told.sort(key=lambda option: (-(option.probability or 0.0), -option.drawn, place[option.text]))
    return Options(tuple(told), rest)
