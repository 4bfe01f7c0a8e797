"""Answers as a policy writes them: what a completion may be, and what it means.

An answer is the bare option ("approve"), the options of a subset in their order ("0, 2"), or a speech. What has
no such form is JSON. `parse_answer` reads back every text that `answer_text` writes, and holds to `docs/replies.md`
for all others.
"""

import json
import re
from functools import lru_cache
from itertools import combinations
from math import comb

from agents.prompting.chat import Constraint
from agents.prompting.parse import Answer, Failure, Parsed, parse_reply
from games.spaces import MAX_TEXT_CHARS, Action, ActionSpace, Choice, Subset, Text

MAX_CHOICES = 2000
"""Subsets of more combinations are written as JSON."""
SEPARATOR = ", "

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*(?=\s|$)")


def constraint_of(space: ActionSpace) -> Constraint | None:
    """Return what a completion may be, so that it is a legal action; None for free text."""
    if isinstance(space, Text):
        return None
    choices = _choices(space)
    return Constraint(schema=space.schema()) if choices is None else Constraint(choices=tuple(choices))


def answer_text(space: ActionSpace, action: Action) -> str:
    """Return `action` as a policy answers it: one of the constraint's choices, JSON, or the speech itself.

    A speech that would not be read back as it stands (silence, or one that looks like an answer line) is the
    JSON object of `docs/replies.md`.
    """
    if isinstance(space, Text):
        speech = str(action)
        if parse_answer(space, speech) == Answer(speech):
            return speech
        return json.dumps({"action": speech}).replace("<", "\\u003c")
    if _choices(space) is None:
        return json.dumps(list(action) if isinstance(action, tuple) else action)
    return action if isinstance(action, str) else SEPARATOR.join(action)


def parse_answer(space: ActionSpace, text: str) -> Parsed:
    """Return what a completion means in `space`: an `Answer`, which is always legal, or a `Failure`.

    A speech that is too long is cut (`fit_text`): the bound is the speaker's own to keep.
    """
    if isinstance(space, Text):
        parsed = parse_reply(Text(MAX_TEXT_CHARS, space.label), text)
        if isinstance(parsed, Failure):
            return parsed
        return Answer(fit_text(str(parsed.action), max_chars=space.max_chars))
    choices = _choices(space)
    if choices is not None:
        action = choices.get(text, choices.get(text.strip()))
        return parse_reply(space, text) if action is None else Answer(action)
    try:
        value = space.from_json(json.loads(text))
    except (ValueError, RecursionError):
        return parse_reply(space, text)
    return Answer(value) if space.contains(value) else parse_reply(space, text)  # type: ignore[arg-type]


def fit_text(text: str, *, max_chars: int) -> str:
    """Return `text` within `max_chars` characters: cut after the last whole sentence, else the last whole word."""
    if len(text) <= max_chars:
        return text
    return unbroken(text[:max_chars], following=text[max_chars])


def unbroken(text: str, *, following: str = "") -> str:
    """Return a text that breaks off, up to its last whole sentence, else its last whole word.

    `following` is the first character of what was cut off, where that is known.
    """
    whole = text + following
    ends = [match.end() for match in _SENTENCE_END.finditer(whole) if match.end() <= len(text)]
    if ends:
        return text[: ends[-1]]
    if not following.isspace():
        words = re.match(r"(.*\S)\s+\S*\Z", text, re.DOTALL)
        if words is not None:
            return words[1]
    return text.rstrip()


@lru_cache(maxsize=1024)
def _choices(space: ActionSpace) -> dict[str, Action] | None:
    """Return the actions by how they are written, in order; None where they are written as JSON."""
    if isinstance(space, Choice):
        written: dict[str, Action] = {option: option for option in space.options}
        count = len(space.options)
    elif isinstance(space, Subset) and (count := comb(len(space.options), space.size)) <= MAX_CHOICES:
        written = {SEPARATOR.join(chosen): chosen for chosen in combinations(space.options, space.size)}
    else:
        return None
    return written if len(written) == count and "" not in written else None
