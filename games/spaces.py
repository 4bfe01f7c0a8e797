"""Action spaces: what a seat may do now, as data.

A space can sample itself, test membership, print itself for a prompt, give a JSON schema, and be written
as data and read back. `label` names the decision ("vote", "propose", …); `default` is the move that the
referee plays for a seat that gives no legal answer.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from games.errors import BadSpace

Action = str | tuple[str, ...]
"""A choice or a text is a string, a subset a tuple of strings in the order of the space's options."""

MAX_OPTIONS = 10_000
MAX_TEXT_CHARS = 100_000


class ActionSpace(ABC):
    """What a seat may do now. Instances are immutable and hashable."""

    __slots__ = ()

    label: str

    @property
    @abstractmethod
    def default(self) -> Action:
        """The move played for a seat that gives no legal answer."""

    @abstractmethod
    def contains(self, action: object) -> bool:
        """Whether `action` is legal, exactly as it stands (no coercion)."""

    @abstractmethod
    def sample(self, rng: random.Random) -> Action:
        """Return a uniformly drawn legal action (for a text, some short legal text)."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Return a JSON schema (draft 2020-12) that accepts exactly the legal actions as JSON."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line that tells a player what may be answered."""

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """Return the space as JSON-compatible data; `space_from_data` reads it back."""

    def from_json(self, value: object) -> object:
        """Return a decoded JSON value in the form that `contains` tests (lists become tuples)."""
        return value


@dataclass(frozen=True, slots=True)
class Choice(ActionSpace):
    """One of `options`."""

    options: tuple[str, ...]
    label: str = "choose"
    fallback: str | None = None

    @property
    def default(self) -> str:
        return self.options[0] if self.fallback is None else self.fallback

    def contains(self, action: object) -> bool:
        return isinstance(action, str) and action in self.options

    def sample(self, rng: random.Random) -> str:
        return rng.choice(self.options)

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.options)}

    def describe(self) -> str:
        return "one of: " + ", ".join(self.options)

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": "choice", "label": self.label, "options": list(self.options)}
        if self.fallback is not None:
            data["default"] = self.fallback
        return data


@dataclass(frozen=True, slots=True)
class Subset(ActionSpace):
    """Exactly `size` different ones of `options`, written in the order of `options`."""

    options: tuple[str, ...]
    size: int
    label: str = "choose"
    fallback: tuple[str, ...] | None = None

    @property
    def default(self) -> tuple[str, ...]:
        return self.options[: self.size] if self.fallback is None else self.fallback

    def contains(self, action: object) -> bool:
        if not isinstance(action, tuple) or len(action) != self.size:
            return False
        options = iter(self.options)
        return all(isinstance(item, str) and item in options for item in action)

    def sample(self, rng: random.Random) -> tuple[str, ...]:
        chosen = sorted(rng.sample(range(len(self.options)), self.size))
        return tuple(self.options[i] for i in chosen)

    def schema(self) -> dict[str, Any]:
        return _subset_schema(self.options, self.size)

    def describe(self) -> str:
        return f"exactly {self.size} different of: " + ", ".join(self.options)

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "kind": "subset",
            "label": self.label,
            "options": list(self.options),
            "size": self.size,
        }
        if self.fallback is not None:
            data["default"] = list(self.fallback)
        return data

    def from_json(self, value: object) -> object:
        """Lists of known options become tuples in the order of `options`; anything else stays as it is."""
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            return value
        place = {option: i for i, option in enumerate(self.options)}
        if len(set(value)) != len(value) or not all(item in place for item in value):
            return tuple(value)
        return tuple(sorted(value, key=place.__getitem__))


@lru_cache(maxsize=256)
def _subset_schema(options: tuple[str, ...], size: int) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"enum": list(options)},
        "minItems": size,
        "maxItems": size,
        "uniqueItems": True,
    }


@dataclass(frozen=True, slots=True)
class Text(ActionSpace):
    """Any text of at most `max_chars` characters that is valid Unicode; the default is silence."""

    max_chars: int = 500
    label: str = "speak"

    @property
    def default(self) -> str:
        return ""

    def contains(self, action: object) -> bool:
        if not isinstance(action, str) or len(action) > self.max_chars:
            return False
        return action.isascii() or not any("\ud800" <= c <= "\udfff" for c in action)

    def sample(self, rng: random.Random) -> str:
        words = rng.choices(("I", "we", "trust", "doubt", "seat", "you", "them", "now"), k=rng.randint(0, 8))
        return " ".join(words)[: self.max_chars]

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.max_chars}

    def describe(self) -> str:
        return f"free text of at most {self.max_chars} characters"

    def to_data(self) -> dict[str, Any]:
        return {"kind": "text", "label": self.label, "max_chars": self.max_chars}


def space_from_data(data: object) -> ActionSpace:
    """Read a space written by `to_data` (or by hand: `label` and `default` may be left out).

    Raises `BadSpace` with what is wrong and what is allowed.
    """
    if not isinstance(data, Mapping):
        raise BadSpace(f"space: got {_short(data)}, a JSON object with the key 'kind' is needed")
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in _READERS:
        raise BadSpace(f"space kind: got {_short(kind)}, allowed are {', '.join(sorted(_READERS))}")
    allowed, read = _READERS[kind]
    extra = sorted(str(key) for key in data if key not in allowed)
    if extra:
        raise BadSpace(f"space key: got {_short(extra[0])}, a {kind} has {', '.join(sorted(allowed))}")
    label = data.get("label")
    if label is not None and not isinstance(label, str):
        raise BadSpace(f"space label: got {_short(label)}, a string is needed")
    return read(data)


def _read_choice(data: Mapping[str, Any]) -> ActionSpace:
    space = Choice(_options(data), data.get("label") or "choose", data.get("default"))
    return _with_legal_default(space)


def _read_subset(data: Mapping[str, Any]) -> ActionSpace:
    options = _options(data)
    size = _whole(data, "size", 0, len(options))
    default = data.get("default")
    if isinstance(default, list) and all(isinstance(item, str) for item in default):
        default = tuple(default)
    return _with_legal_default(Subset(options, size, data.get("label") or "choose", default))


def _read_text(data: Mapping[str, Any]) -> ActionSpace:
    return Text(_whole(data, "max_chars", 0, MAX_TEXT_CHARS), data.get("label") or "speak")


_READERS = {
    "choice": (frozenset({"kind", "label", "options", "default"}), _read_choice),
    "subset": (frozenset({"kind", "label", "options", "size", "default"}), _read_subset),
    "text": (frozenset({"kind", "label", "max_chars"}), _read_text),
}


def _options(data: Mapping[str, Any]) -> tuple[str, ...]:
    options = data.get("options")
    if not isinstance(options, list) or not options or not all(isinstance(o, str) and o for o in options):
        raise BadSpace(f"space options: got {_short(options)}, a list of non-empty strings is needed")
    if len(options) > MAX_OPTIONS:
        raise BadSpace(f"space options: got {len(options)} of them, at most {MAX_OPTIONS} are allowed")
    if len(set(options)) != len(options):
        raise BadSpace(f"space options: got a repeated option in {_short(options)}, each must differ")
    return tuple(options)


def _whole(data: Mapping[str, Any], key: str, low: int, high: int) -> int:
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadSpace(f"space {key}: got {_short(value)}, allowed are whole numbers from {low} to {high}")
    return value


def _with_legal_default(space: ActionSpace) -> ActionSpace:
    if not space.contains(space.default):
        raise BadSpace(f"space default: got {_short(space.default)}, allowed is {space.describe()[:200]}")
    return space


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
