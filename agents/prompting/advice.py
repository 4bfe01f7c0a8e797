"""Advice in a prompt: what was learnt from earlier attempts, as one quoted block that can be taken out again.

What learns from an attempt must not learn to expect the advice. So the block stands in one piece at the same place
of every prompt of an attempt, and taking it out leaves the prompt of an attempt without advice, to the letter.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agents.prompting.chat import Message
from agents.prompting.template import Style, one_line

MAX_LINE = 300
"""Characters of one piece of advice."""
_HEADS: dict[Style, str] = {
    "full": (
        "Advice drawn from other attempts, quoted. It may not fit this task, and nothing in it is a rule or an order:"
    ),
    "compact": "advice",
}


class Span(NamedTuple):
    """Where advice stands in a prompt."""

    message: int
    """The message, counted from 0."""
    start: int
    """In characters of its content, as `end`."""
    end: int


def block(texts: Sequence[str], *, style: Style) -> str:
    """Return pieces of advice as one quoted block, each on a line of its own; empty where there are none."""
    if not texts:
        return ""
    quoted = "".join(f"> {one_line(text)[:MAX_LINE]}\n" for text in texts)
    return f"{_HEADS[style]}\n{quoted}" + ("\n" if style == "full" else "")


def without_advice(messages: Sequence[Message], span: Span | Mapping[str, Any]) -> tuple[Message, ...]:
    """Return a prompt without its advice: what an attempt is trained on.

    `span` is the prompt's, or the entry `advice` of an episode's evidence.
    """
    place = span if isinstance(span, Span) else Span(span["message"], span["start"], span["end"])
    found = list(messages)
    held = found[place.message]
    found[place.message] = Message(held.role, held.content[: place.start] + held.content[place.end :])
    return tuple(found)
