"""A decision, its prompt and its replies, for people on a terminal and as JSON."""

import json
from collections.abc import Iterable, Sequence
from math import exp, fsum
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text as Line

from agents.policy.agent import GenerationSettings
from arena.policy_chat import Asked, Call, Lens, Options, Sample, Token
from arena.policy_moments import Moment, Moments
from games.text import clean_name, neutralise

MAX_OPTIONS = 12
"""Of a table of options; the others are summed up."""

MAX_NAMED = 6
ROUNDED = 0.0005
"""Less than this is 0.0 %."""

WANTS = {"action": "the answer", "thought": "a thought", "both": "a thought and the answer"}


def document(
    moments: Moments, moment: Moment, calls: Sequence[Call], asked: Asked | None, *, raw: bool, lens: Lens
) -> dict[str, Any]:
    """Return all of it as JSON-compatible data."""
    info = moments.record.header.seats[moment.turn.seat]
    given, turn = moment.given, moment.turn
    trace = given.trace or {}
    return {
        "file": str(moments.path),
        "game": moments.game.name,
        "decision": moment.index,
        "decisions": len(moments.all),
        "ply": turn.ply,
        "seat": turn.seat,
        "attempt": turn.attempt,
        "player": info.name,
        "spec": info.spec,
        "policy": moment.policy,
        "space": turn.space.to_data(),
        "why_again": turn.reason,
        "recorded": {
            "action": _plain(given.action),
            "failure": given.failure,
            "reason": given.reason,
            "fate": moment.fate,
            "thought": given.thought,
            "model": trace.get("model"),
            "adapter": trace.get("adapter"),
            "prompt": trace.get("prompt"),
            "calls": [_call(call, raw) for call in calls],
        },
        "asked": None if asked is None else _asked(asked, raw),
        "note": "; ".join(filter(None, (moments.damage, lens.note))),
    }


def _asked(asked: Asked, raw: bool) -> dict[str, Any]:
    how = asked.playing
    return {
        "model": asked.model,
        "adapter": asked.adapter,
        "mode": how.mode,
        "style": how.style,
        "temperature": how.temperature,
        "top_p": how.top_p,
        "samples": [
            {
                "action": _plain(sample.decision.action),
                "failure": sample.decision.failure,
                "reason": sample.decision.reason,
                "thought": sample.decision.thought,
                "calls": [_call(call, raw) for call in sample.calls],
            }
            for sample in asked.samples
        ],
        "options": None
        if asked.options is None
        else [
            {"option": option.text, "drawn": option.drawn, "probability": option.probability}
            for option in asked.options.options
        ],
        "rest": None if asked.options is None else asked.options.rest,
    }


def _call(call: Call, raw: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "want": call.want,
        "messages": [{"role": message.role, "content": message.content} for message in call.messages],
        "exact": call.exact,
        "prompt_tokens": call.prompt_tokens,
        "reply": call.reply,
        "finish": call.finish or None,
        "tokens": [{"id": one.id, "text": one.text, "logprob": one.logprob} for one in call.tokens],
    }
    return found | ({"raw": call.raw} if raw else {})


def _plain(action: object) -> object:
    return list(action) if isinstance(action, tuple) else action


class View:
    """Prints decisions on a console.

    Args:
        console: where.
        raw: show the very string that the model continues, instead of the messages.
    """

    def __init__(self, console: Console, *, raw: bool = False) -> None:
        self.console = console
        self.raw = raw

    def moment(self, moments: Moments, moment: Moment) -> None:
        """Print which decision it is."""
        info = moments.record.header.seats[moment.turn.seat]
        spec = "" if info.spec == info.name else f" ({clean_name(info.spec)})"
        turn = moment.turn
        attempts = moments.attempts(moment)
        again = f", attempt {turn.attempt + 1} of {attempts}" if attempts > 1 else ""
        self._say(
            f"{moments.game.title} · decision {moment.index + 1} of {len(moments.all)} · ply {turn.ply} · "
            f"seat {turn.seat}, {clean_name(info.name)}{spec}{again}",
            style="bold",
        )
        self._say(f"{turn.space.label}: {turn.space.describe()}", style="dim")

    def calls(self, calls: Iterable[Call], *, replies: bool = True) -> None:
        """Print prompts, each with its reply."""
        for call in calls:
            self._prompt(call)
            if replies:
                self._reply(call, "reply")

    def _prompt(self, call: Call) -> None:
        for message in () if self._is_raw(call) else call.messages:
            self._rule(message.role)
            self._lines(message.content)
        if self._is_raw(call):
            self._rule("the very string")
            self._lines(call.raw or "")
        tokens = "" if call.prompt_tokens is None else f"{call.prompt_tokens} tokens after the chat template"
        doubt = {
            True: "",
            None: "",
            False: "the model saw another prompt than these settings give; it is shown as recorded",
        }[call.exact]
        note = "; ".join(filter(None, (tokens, doubt)))
        self._rule("")
        if note:
            self._say(note, style="dim")

    def _is_raw(self, call: Call) -> bool:
        return call.raw is not None and (self.raw or call.exact is False)

    def _reply(self, call: Call, title: str) -> None:
        if call.reply is not None:
            self._say(f"{title} ({WANTS[call.want]}):", style="bold")
            self._lines(call.reply, style="green")
        if call.tokens:
            self._tokens(call.tokens)
            if not any(token.text for token in call.tokens):
                self._say("tokens by number: they are not known to be the configured model's", style="dim")

    def _tokens(self, tokens: Sequence[Token]) -> None:
        parts = []
        for token in tokens:
            shown = f'"{neutralise(token.text)}"' if token.text else f"#{token.id}"
            parts.append(shown if token.logprob is None else f"{shown} {exp(token.logprob):.3f}")
        self._say(f"tokens: {'  '.join(parts)}", style="dim")
        scores = [token.logprob for token in tokens if token.logprob is not None]
        if scores and len(scores) == len(tokens):
            whole = fsum(scores)
            self._say(
                f"log-probability of all {len(scores)}: {whole:.4f} (probability {exp(whole):.4g})",
                style="dim",
            )

    def recorded(self, moments: Moments, moment: Moment) -> None:
        """Print what was decided in the match, and what came of it."""
        given, trace = moment.given, moment.given.trace or {}
        info = moments.record.header.seats[moment.turn.seat]
        who = f"{info.spec}, {'whose tokens were not recorded' if moment.policy else 'no language model'}"
        if trace.get("model"):
            who = (
                f"{trace['model']}, adapter {trace.get('adapter', 'base')}, prompt {trace.get('prompt', '?')}"
            )
        if given.thought:
            self._say("thought:", style="bold")
            self._lines(given.thought, style="italic")
        self._say(f"in the match: {self._answer(given.action, given.failure, given.reason)}", style="bold")
        if moment.fate != "played":
            self._say(f"what came of it: {moment.fate}", style="yellow")
        self._say(f"by {neutralise(who)}", style="dim")

    def _answer(self, action: object, failure: str | None, reason: str) -> str:
        if failure is not None:
            return f"{neutralise(failure)}{': ' if reason else ''}{neutralise(reason)}"
        shown = json.dumps(_plain(action), ensure_ascii=False)
        return neutralise(shown)

    def asked(self, asked: Asked) -> None:
        """Print what was answered now; the prompt is that of the first sample."""
        self.calls(asked.samples[0].calls, replies=False)
        several = len(asked.samples) > 1
        for number, sample in enumerate(asked.samples, 1):
            self._sample(sample, f"reply {number} of {len(asked.samples)}" if several else "reply")
        if asked.options is not None:
            self._options(asked.options, asked.playing)
        how = asked.playing
        self._say(
            f"by {asked.model}, adapter {asked.adapter}, {how.style} prompts, mode {how.mode}, "
            f"temperature {how.temperature:g}, top-p {how.top_p:g}",
            style="dim",
        )

    def _sample(self, sample: Sample, title: str) -> None:
        for call in sample.calls:
            self._reply(call, title)
        decision = sample.decision
        self._say(
            f"it means: {self._answer(decision.action, decision.failure, decision.reason)}", style="bold"
        )

    def _options(self, options: Options, how: GenerationSettings) -> None:
        shown = [option for option in options.options if option.probability is not None]
        if not shown:
            drawn = (f"{option.text} {option.drawn}×" for option in options.options if option.drawn)
            self._say(f"drawn: {', '.join(drawn)}; the server tells no probabilities")
            return
        self._say(f"probability of each option, at temperature {how.temperature:g}:", style="bold")
        width = min(24, max(len(option.text) for option in shown))
        bar = max(4, min(30, self.console.width - width - 12))
        for option in shown[:MAX_OPTIONS]:
            p = option.probability or 0.0
            name = neutralise(option.text)
            name = name if len(name) <= width else f"{name[: width - 1]}…"
            line = Line(f"  {name:<{width}} {p:6.1%} ")
            line.append("█" * round(p * bar), style="green")
            self.console.print(line)
        more = fsum(option.probability or 0.0 for option in shown[MAX_OPTIONS:])
        if len(shown) > MAX_OPTIONS:
            self._say(f"  {len(shown) - MAX_OPTIONS} others that were drawn: {more:.1%}", style="dim")
        undrawn = [neutralise(option.text) for option in options.options if option.probability is None]
        if undrawn or (options.rest or 0.0) >= ROUNDED:
            names = ", ".join(undrawn[:MAX_NAMED]) + (" …" if len(undrawn) > MAX_NAMED else "")
            what = f" ({names})" if names else ""
            self._say(f"  what was not drawn{what}: {options.rest or 0.0:.1%} together", style="dim")

    def note(self, text: str) -> None:
        """Print a remark."""
        self._say(text, style="yellow")

    def _rule(self, title: str) -> None:
        self.console.print(Rule(Line(title), align="left", style="dim"))

    def _say(self, text: str, *, style: str = "") -> None:
        self.console.print(Line(text, style=style, overflow="fold"))

    def _lines(self, text: str, *, style: str = "") -> None:
        for line in text.split("\n"):
            self._say(neutralise(line), style=style)
