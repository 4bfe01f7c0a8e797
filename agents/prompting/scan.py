"""Where a reply commits itself: JSON objects, boxes and answer lines, found in one linear pass each.

Nothing here knows what is legal. Each scan returns places in the text; work grows linearly with the text,
whatever is in it.
"""

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Literal

BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters that end a line."""

MAX_JSON_DEPTH = 64
"""Values nested deeper than this are not decoded; no action is."""

KEY = "action"
_MAX_KEY_CHARS = 6 * len(KEY) + 2  # every letter of the key may be written as \uXXXX

_WS = r"[ \t\n\r]*+"
_OPEN_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_ANY_STRING = _OPEN_STRING + '"'
_ANY_SCALAR = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|NaN|-?Infinity"
_SPACE = re.compile(_WS)
_STRING = re.compile(_ANY_STRING, re.DOTALL)
_SCALAR = re.compile(_ANY_SCALAR)
_START = re.compile(rf'\{{(?={_WS}(?:\}}|{_OPEN_STRING}(?:"{_WS}(?::|\Z)|\\?\Z)))', re.DOTALL)
"""A brace that can begin an object: it is empty, has a first key, or is cut off within one."""
_MEMBER = re.compile(
    rf"({_ANY_STRING}){_WS}:{_WS}(?:({_ANY_STRING}|{_ANY_SCALAR}){_WS}(?=[,}}]))?", re.DOTALL
)
"""A key with its value where that is simple, else the key alone."""
_CUT_SCALAR = re.compile(r"[-+.0-9A-Za-z]{0,9}")
_ATTEMPT = re.compile(r"""["'“”]action["'“”]\s*+:|[{,]\s*+action\s*+:""", re.IGNORECASE | re.ASCII)
_BRACE = re.compile(r"(?<=\\)boxed[ \t\n\r]*+\{|(?<!\\)[{}]")
_WRAPPER = re.compile(
    r"\s*+\\(?:text|textbf|textit|textrm|texttt|textsf|mathrm|mathbf|mathit|mathtt|mathsf|mbox|emph|operatorname)"
    r"\s*+\{"
)
_GAP = rf"(?:[^\S{BREAKS}]|[\u200b\u2060\ufeff])"
_LINE = re.compile(
    rf"(?:^|(?<=[{BREAKS}]))(?:{_GAP}|[>#+•-]|\*(?={_GAP}))*+(?:[0-9]{{1,3}}[.)]{_GAP}*+)?"
    rf"(?P<open>[*_`]*+)(?ai:action)(?P<inner>[*_`]*+){_GAP}*+[:：](?P<close>[*_`]*+)"
)
_LINE_END = re.compile(f"[^{BREAKS}]*+")

_BROKEN = -1
_CUT = -2

Form = Literal["json", "boxed", "line", "malformed", "unfinished"]


@dataclass(frozen=True, slots=True)
class Commitment:
    """A place where the reply commits itself.

    `value` is the decoded JSON value for `json`, the written text for `boxed` and `line`, and None for what
    is no readable answer (`malformed`, `unfinished`). For a `line`, `rest` is all that follows its colon.
    """

    at: int
    form: Form
    value: Any = None
    rest: str = ""


class Unreadable:
    """Stands for a JSON value that is well formed and cannot be an action: nested too deep, or a huge number."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What `scan` found: the last commitment (None: there is none), and whether a JSON object stands alone."""

    last: Commitment | None
    only_object: bool


def scan(text: str) -> Scan:
    """Return the last commitment in `text`, by where each begins; a JSON object hides all that is inside it."""
    objects = _Objects(text)
    found = [
        commitment
        for commitment in (objects.last(), _last_box(text, objects), _last_line(text, objects))
        if commitment is not None
    ]
    last = max(found, key=lambda commitment: commitment.at, default=None)
    return Scan(last, objects.alone())


class _Objects:
    """All JSON objects of a text.

    The grammar is read by memoised descent from the last brace to the first, so that an object met inside
    another is already known: every character is read at most once as part of a string and once outside of
    one, and nesting costs no stack. Beyond JSON, raw control characters in strings and NaN are let pass.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends: dict[int, int] = {}
        self.children: dict[int, list[int]] = {}
        self.values: dict[int, tuple[int, int, int]] = {}
        self.depths: dict[int, int] = {}
        self.unfinished = False
        starts = [match.start() for match in _START.finditer(text)]
        for start in reversed(starts):
            self.ends[start] = self._object(start)
        self.roots: list[int] = []
        self.root_ends: list[int] = []
        clear = 0
        for start in starts:
            end = self.ends[start]
            if start < clear:
                continue
            if end >= 0:
                self.roots.append(start)
                self.root_ends.append(end)
                clear = end
            elif end == _CUT:
                self.unfinished = True

    def covers(self, place: int) -> bool:
        """Whether `place` is inside a complete object."""
        index = bisect_right(self.roots, place) - 1
        return index >= 0 and place < self.root_ends[index]

    def alone(self) -> bool:
        """Whether the text is one object and nothing else, but for space and a code fence."""
        if len(self.roots) != 1:
            return False
        before, after = self.text[: self.roots[0]].strip(), self.text[self.root_ends[0] :].strip()
        return before in ("", "```", "```json") and after in ("", "```")

    def last(self) -> Commitment | None:
        """Return the last object with the key, or what was meant as one and cannot be read, if that is later."""
        if self.unfinished:
            return Commitment(len(self.text), "unfinished")
        answer = self._last_answer()
        after = -1 if answer is None else answer.at
        for match in _ATTEMPT.finditer(self.text):
            if match.start() > after and not self.covers(match.start()):
                answer = Commitment(match.start(), "malformed")
        return answer

    def _last_answer(self) -> Commitment | None:
        for root in reversed(self.roots):
            open_objects = [root]
            while open_objects:
                start = open_objects.pop()
                if start in self.values:
                    return self._decode(start)
                open_objects.extend(self.children.get(start, ()))
        return None

    def _decode(self, start: int) -> Commitment:
        begin, end, depth = self.values[start]
        if depth > MAX_JSON_DEPTH:
            return Commitment(start, "json", Unreadable())
        try:
            return Commitment(start, "json", json.loads(self.text[begin:end], strict=False))
        except json.JSONDecodeError:
            return Commitment(start, "malformed")
        except ValueError:  # an integer of more digits than Python converts
            return Commitment(start, "json", Unreadable())

    def _object(self, start: int) -> int:
        """Return where the object at `start` ends, `_CUT` where the text ends within it, else `_BROKEN`."""
        text, skip = self.text, self._skip
        place = skip(start + 1)
        if text.startswith("}", place):
            return place + 1
        children: list[int] = []
        found: tuple[int, int, int] | None = None
        depth = 1
        while True:
            member = _MEMBER.match(text, place)
            if member is None:
                key = _STRING.match(text, place)
                return self._fault(place, string=True) if key is None else self._fault(skip(key.end()))
            begin, stop = member.span(2)
            place, value_depth = member.end(), 0
            if begin < 0:
                begin = place
                stop, value_depth = self._value(begin, children)
                if stop < 0:
                    return stop
                depth = max(depth, 1 + value_depth)
                place = skip(stop)
            if _is_key(member[1]):
                found = begin, stop, value_depth
            if text.startswith("}", place):
                self.depths[start] = depth
                if children:
                    self.children[start] = children
                if found is not None:
                    self.values[start] = found
                return place + 1
            if not text.startswith(",", place):
                return self._fault(place)
            place = skip(place + 1)

    def _value(self, place: int, children: list[int]) -> tuple[int, int]:
        """Return where the value at `place` ends (or `_CUT`, `_BROKEN`) and how deep it nests; note its objects."""
        text, skip = self.text, self._skip
        arrays = depth = 0
        while True:
            c = text[place : place + 1]
            if c == "[":
                arrays += 1
                depth = max(depth, arrays)
                place = skip(place + 1)
                if not text.startswith("]", place):
                    continue
                arrays -= 1
                place += 1
            elif c == "{":
                end = self.ends.get(place, 0) or self._fault(skip(place + 1))
                if end < 0:
                    return end, 0
                children.append(place)
                depth = max(depth, arrays + self.depths.get(place, 1))
                place = end
            else:
                token = (_STRING if c == '"' else _SCALAR).match(text, place)
                if token is None:
                    return self._fault(place, string=True), 0
                place = token.end()
            while arrays and text.startswith("]", after := skip(place)):
                arrays -= 1
                place = after + 1
            if not arrays:
                return place, depth
            if not text.startswith(",", after):
                return self._fault(after), 0
            place = skip(after + 1)

    def _skip(self, place: int) -> int:
        return _SPACE.match(self.text, place).end()  # type: ignore[union-attr]

    def _fault(self, place: int, *, string: bool = False) -> int:
        """Return whether what is wrong at `place` is only that the text ends (`string`: one may begin there)."""
        if string and self.text.startswith('"', place):
            return _CUT
        return _CUT if len(self.text) - place < 10 and _CUT_SCALAR.fullmatch(self.text, place) else _BROKEN


def _is_key(literal: str) -> bool:
    if "\\" not in literal:
        return literal == f'"{KEY}"'
    if len(literal) > _MAX_KEY_CHARS:
        return False
    try:
        return bool(json.loads(literal, strict=False) == KEY)
    except json.JSONDecodeError:
        return False


def _last_box(text: str, objects: _Objects) -> Commitment | None:
    if "boxed" not in text:
        return None
    open_braces: list[tuple[int, int]] = []
    closed_by: dict[int, int] = {}
    boxes: list[tuple[int, int]] = []
    for match in _BRACE.finditer(text):
        if match[0] == "}":
            if open_braces:
                closed_by[open_braces.pop()[1]] = match.start()
            continue
        brace = match.end() - 1
        open_braces.append((match.start(), brace))
        if len(match[0]) > 1 and not objects.covers(match.start()):
            boxes.append((match.start(), brace))
    if not boxes:
        return None
    at, brace = boxes[-1]
    if brace not in closed_by:
        return Commitment(len(text), "unfinished")
    begin, end = brace + 1, closed_by[brace]
    while wrapper := _WRAPPER.match(text, begin, end):
        inner = closed_by.get(wrapper.end() - 1)
        if inner is None or text[inner + 1 : end].strip():
            break
        begin, end = wrapper.end(), inner
    return Commitment(at, "boxed", re.sub(r"\\([_ #%&${},])", r"\1", text[begin:end]))


def _last_line(text: str, objects: _Objects) -> Commitment | None:
    last: re.Match[str] | None = None
    for match in _LINE.finditer(text):
        if not objects.covers(match.start()):
            last = match
    if last is None:
        return None
    line = _LINE_END.match(text, last.end())
    rest = text[last.end() :].strip()
    if not last["inner"] and not last["close"]:
        rest = rest.removesuffix(last["open"])
    return Commitment(last.start(), "line", line[0] if line else "", rest)
