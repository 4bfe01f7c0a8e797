"""A model's free reply to an action, or to a typed failure. The rule is stated in `docs/replies.md`.

In short: thoughts are taken out; of all commitments (a JSON object with the key `action`, a box, a line
`Action: …`) the last one counts, also when it is wrong; without any, a reply that is one legal answer and
nothing else is that answer. Prose is never searched for options, and nothing is ever guessed.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agents.prompting.scan import BREAKS, Commitment, Unreadable, scan
from games.referee import MAX_REASON_CHARS
from games.spaces import Action, ActionSpace, Choice, Subset, Text
from games.text import neutralise, quote

MAX_WRONG_CHARS = 180
MAX_SHOWN_CHARS = 60

FailureKind = Literal["unparsed", "ambiguous", "illegal"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply means `action`, which is legal."""

    action: Action


@dataclass(frozen=True, slots=True)
class Failure:
    """The reply means no legal action; `reason` is one line, at most 300 characters, fit to be sent back."""

    kind: FailureKind
    reason: str


Parsed = Answer | Failure


def parse_reply(space: ActionSpace, reply: str) -> Parsed:
    """Return what `reply` means in `space`. Total, and linear in the reply's length.

    Args:
        space: what may be answered; an `Answer` always holds one of its members.
        reply: what a model wrote, thoughts included.
    """
    text = without_thoughts(reply)
    if not _trim(text):
        wrong = (
            "the reply holds an unfinished thought and no answer" if _trim(reply) else "the reply is empty"
        )
        return _failure("unparsed", wrong, space)
    seen = scan(text)
    reader: _Reader = _READERS.get(type(space), _Reader)(space)
    if seen.last is None:
        if seen.only_object:
            return _failure("unparsed", 'the JSON object has no key "action"', space)
        return reader.alone(text)
    return _committed(reader, seen.last)


def without_thoughts(reply: str) -> str:
    """Return the reply without `<think>…</think>` and `<thinking>…</thinking>`, each become a line break.

    They nest. An unfinished thought runs to the end; where one ends that never began, all before is thought.
    """
    kept: list[str] = []
    depth = clear = 0
    for tag in _THINK.finditer(reply):
        if tag[1]:
            if depth == 0:
                kept.clear()
            depth = max(depth - 1, 0)
            clear = tag.end()
        else:
            if depth == 0:
                kept.append(reply[clear : tag.start()])
            depth += 1
    if depth == 0:
        kept.append(reply[clear:])
    return "\n".join(kept)


_THINK = re.compile(r"<(/?)think(?:ing)?\s*+>", re.IGNORECASE | re.ASCII)


class _Reader:
    """Reads committed values for a space it knows nothing of: as JSON, exactly."""

    def __init__(self, space: Any) -> None:
        self.space = space

    def alone(self, text: str) -> Parsed:
        """Read a reply that commits itself nowhere."""
        return _failure("unparsed", "the reply commits to no answer", self.space)

    def json(self, value: object) -> Parsed:
        """Read the value of the key `action`."""
        action = self.space.from_json(value)
        if self.space.contains(action):
            return Answer(action)
        return self.illegal(value)

    def text(self, written: str, rest: str) -> Parsed:
        """Read what stands in a box or on an answer line; `rest` is all from there to the end of the reply."""
        return self.json(_trim(written))

    def illegal(self, value: object) -> Parsed:
        return _failure("illegal", f"{_show(value)} is not a legal action", self.space)


class _TextReader(_Reader):
    """Free text: taken whole or not at all."""

    space: Text

    def alone(self, text: str) -> Parsed:
        return self.json(text.strip())

    def text(self, written: str, rest: str) -> Parsed:
        return self.json(rest)

    def illegal(self, value: object) -> Parsed:
        if not isinstance(value, str):
            wrong = f"{_show(value)} is not a string"
        elif len(value) > self.space.max_chars:
            wrong = f"the text has {len(value)} characters"
        else:
            wrong = f"{_show(value)} holds characters that are no valid Unicode text"
        return _failure("illegal", wrong, self.space)


class _ChoiceReader(_Reader):
    """One option."""

    space: Choice

    def __init__(self, space: Choice) -> None:
        super().__init__(space)
        self.options = _Options(space.options)

    def alone(self, text: str) -> Parsed:
        hits = self.options.find(_unwrapped(text))
        if len(hits) == 1:
            return Answer(hits[0])
        if hits:
            return self._ambiguous(hits)
        return super().alone(text)

    def json(self, value: object) -> Parsed:
        if isinstance(value, list):
            if len(value) == 1:
                return self.illegal(value) if isinstance(value[0], list) else self.json(value[0])
            items = [item for item in map(_word, value[:_MAX_WORDS]) if item is not None]
            return self._several(value, [hit for item in items for hit in self.options.find(item)])
        word = _word(value)
        if word is None:
            return self.illegal(value)
        if isinstance(value, int):
            return Answer(word) if word in self.options.exact else self.illegal(value)
        return self.text(word, word)

    def text(self, written: str, rest: str) -> Parsed:
        hits = self.options.find(written)
        if len(hits) == 1:
            return Answer(hits[0])
        if hits:
            return self._ambiguous(hits)
        words = [*_SEPARATOR.split(written, maxsplit=_MAX_WORDS)[::2], *written.split(maxsplit=_MAX_WORDS)]
        return self._several(written, [hit for word in words for hit in self.options.find(word)])

    def _several(self, value: object, hits: Sequence[str]) -> Parsed:
        return self._ambiguous(hits) if len(set(hits)) > 1 else self.illegal(value)

    def _ambiguous(self, hits: Sequence[str]) -> Parsed:
        return _ambiguous(self.space, list(dict.fromkeys(hits)))


class _SubsetReader(_Reader):
    """Several options: a JSON array, or a list in words."""

    space: Subset

    def __init__(self, space: Subset) -> None:
        super().__init__(space)
        self.options = _Options(space.options)

    def alone(self, text: str) -> Parsed:
        words, alternatives = self._split(_unwrapped(text))
        if not words or alternatives or any(len(self.options.find(word)) != 1 for word in words):
            return super().alone(text)
        return self._items(words, text)

    def json(self, value: object) -> Parsed:
        if isinstance(value, str):
            return self.text(value, value)
        items = value if isinstance(value, list) else [value]
        words: list[str] = []
        for item in items[: len(self.space.options) + 1]:
            word = _word(item)
            if word is None or (isinstance(item, int) and word not in self.options.exact):
                return self._unknown(item, value)
            words.append(word)
        return self._items(words, value)

    def text(self, written: str, rest: str) -> Parsed:
        words, alternatives = self._split(written)
        if alternatives:
            hits = [hit for word in words for hit in self.options.find(word)]
            if len(set(hits)) > 1:
                return _ambiguous(self.space, list(dict.fromkeys(hits)))
        return self._items(words, written)

    def _items(self, words: Sequence[str], value: object) -> Parsed:
        chosen: list[str] = []
        for word in words:
            hits = self.options.find(word)
            if len(hits) > 1:
                return _ambiguous(self.space, hits)
            if not hits:
                return self._unknown(word, value)
            chosen.append(hits[0])
        action = self.space.from_json(chosen)
        if isinstance(action, tuple) and self.space.contains(action):
            return Answer(action)
        if len(set(chosen)) < len(chosen):
            return _failure("illegal", f"{_show(value)} names one option twice", self.space)
        count = f"{len(chosen)} option{'' if len(chosen) == 1 else 's'}"
        return _failure("illegal", f"{_show(value)} names {count}", self.space)

    def _unknown(self, item: object, value: object) -> Failure:
        whole, part = _show(value), _show(item)
        wrong = part if part == whole else f"{part} in {whole}"
        return _failure("illegal", f"{wrong} is not among the options", self.space)

    def _split(self, written: str) -> tuple[list[str], bool]:
        """Return the items of a list in words, and whether some are offered as alternatives."""
        whole = _trim(written)
        if self.options.find(whole):
            return [whole], False
        inner = _PLURAL.sub("", _strip_outer(whole))
        parts = _SEPARATOR.split(inner, maxsplit=4 * len(self.space.options))
        words = [part for part in parts[::2] if _trim(part)]
        return words, any(separator.casefold() in _ALTERNATIVES for separator in parts[1::2])


_READERS: dict[type[ActionSpace], type[_Reader]] = {
    Text: _TextReader,
    Choice: _ChoiceReader,
    Subset: _SubsetReader,
}


def _committed(reader: _Reader, commitment: Commitment) -> Parsed:
    space = reader.space
    match commitment.form:
        case "unfinished":
            return _failure("unparsed", "the reply was cut off within an answer", space)
        case "malformed":
            return _failure("unparsed", "the last answer is not valid JSON", space)
        case "json":
            if isinstance(commitment.value, Unreadable):
                return _failure("illegal", 'the value of the key "action" is no action', space)
            return reader.json(commitment.value)
    form = "box" if commitment.form == "boxed" else "Action line"
    written: str = commitment.value
    rest = commitment.rest if commitment.form == "line" else written.strip()
    if not _trim(rest if isinstance(space, Text) else written):
        return _failure("unparsed", f"the {form} is empty", space)
    return reader.text(written, rest)


class _Options:
    """The options of a space, to be found by what was written for one of them."""

    def __init__(self, options: Sequence[str]) -> None:
        self.exact = frozenset(options)
        self.limit = 2 * max(map(len, options)) + 64
        self.loose: dict[str, list[str]] = {}
        for option in options:
            self.loose.setdefault(_fold(option), []).append(option)

    def find(self, written: str) -> list[str]:
        """Return the options that `written` may mean: the exact one, else all that are equal but for case."""
        if written in self.exact:
            return [written]
        trimmed = _trim(written)
        if len(trimmed) > self.limit:  # also keeps what is folded short: normalising is not linear
            return []
        for candidate in (trimmed, _strip_outer(trimmed)):
            if candidate in self.exact:
                return [candidate]
            if hits := self.loose.get(_fold(candidate)):
                return hits
        label = _LABEL.fullmatch(_fold(candidate))
        if label is None:
            return []
        number = label[1] or label[2]
        return [number] if number in self.exact else []


_HIDDEN = (
    "\u00ad\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
)
_SPACES = (
    BREAKS
    + " \t\x1f\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
_BLANK = _SPACES + _HIDDEN
_QUOTES = "\"'“”‘’„‚«»‹›「」『』`*_"
_OPENERS = _BLANK + _QUOTES + "([{"
_CLOSERS = _BLANK + _QUOTES + ")]}.,;:!…。，；：！"
"""What is forgiven around an option. Signs that could change what is meant (`-`, `?`, `~`, `<`) are not."""

_WIDE = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_LABEL = re.compile(r"(?:player|seat)[ _-]?(?:(?:#|no\.?|number) ?)?([0-9]+)|# ?([0-9]+)", re.ASCII)
_PLURAL = re.compile(r"\A(?:players|seats)[: ] *+", re.IGNORECASE | re.ASCII)
_SEPARATOR = re.compile(r"([,;&/|、，；]|(?<=\s)(?:and|or)(?=\s))", re.IGNORECASE)
_ALTERNATIVES = frozenset({"or", "/", "|"})
_BULLET = re.compile(r"\A(?:[>#+•*-]\s++)+")
_FENCE = "```"
_MAX_WORDS = 64


def _trim(text: str) -> str:
    return text.strip(_BLANK)


def _strip_outer(text: str) -> str:
    return text.lstrip(_OPENERS).rstrip(_CLOSERS)


def _fold(text: str) -> str:
    """Return `text` without differences of case, of full width, of composition and of inner space."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text.translate(_WIDE))
    return " ".join(plain.split()).casefold()


def _word(value: object) -> str | None:
    """Return a JSON string, or a JSON integer as its digits; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _unwrapped(text: str) -> str:
    """Return a whole reply without a code fence or a bullet around it."""
    whole = _trim(text)
    if whole.startswith(_FENCE) and whole.endswith(_FENCE) and len(whole) >= 2 * len(_FENCE):
        head, newline, body = whole[len(_FENCE) : -len(_FENCE)].partition("\n")
        if newline and head.strip().isalnum():
            return _trim(body)
    return _BULLET.sub("", whole)


def _show(value: object) -> str:
    written = (
        _trim(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace('"', "'")
    )
    return quote(written if len(written) <= MAX_SHOWN_CHARS else written[: MAX_SHOWN_CHARS - 1] + "…")


def _ambiguous(space: ActionSpace, hits: Sequence[str]) -> Failure:
    named = " or ".join(_show(hit) for hit in hits[:4])
    return _failure("ambiguous", f"the answer may mean {named}", space)


def _failure(kind: FailureKind, wrong: str, space: ActionSpace) -> Failure:
    allowed = space.describe()[:MAX_REASON_CHARS]
    reason = neutralise(f'{wrong[:MAX_WRONG_CHARS]}; write {{"action": …}} with {allowed}')
    return Failure(kind, reason if len(reason) <= MAX_REASON_CHARS else reason[: MAX_REASON_CHARS - 1] + "…")
