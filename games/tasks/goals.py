"""The goal language: what a task asks for, over facts that every world states the same way.

A fact is a tuple such as `("at", "exit")`. A goal is JSON: an object with one key.

    {"at": "exit"}                            the actor stands there now
    {"has": "red key"}                        the actor carries it now
    {"opened": "red door"}                    it is open now
    {"delivered": ["blue gem", "red pad"]}    it lies there now
    {"visited": "red pad"}                    the actor stood there at this step or an earlier one
    {"and": [G, G, …]}                        all hold at one step
    {"then": [G, G, …]}                       one after the other, each at a later step than the one before
    {"before": [C, C]}                        the first holds at an earlier step than the second ever does
    {"never": C}                              must not hold at any step; stands in an `and` beside something to do

G is any goal, C a condition: a predicate, or an `and` of predicates. In a `then`, a part is looked at only from
the step after the one that finished the part before it: what happened earlier does not count for it.
A task is solved at the first step at which its goal holds. `Goal.parse` brings equal goals to one form: nested
`and` and `then` are flattened, the parts of an `and` sorted. The text is rendered from that form, and different
goals have different texts, so a goal and its text cannot disagree.

Progress is a value (nested tuples of integers): `start` folds the facts of step 0, `fold` those of each step
after it. It is hashable, so a search can carry it along with the world's state.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from games.errors import BadGoal, TaskTooBig

Fact = tuple[str, ...]
Facts = Set[Fact]
Progress = Any
"""Nested tuples of integers; compare and hash it, look into it only through `Goal`."""

Vocabulary = Mapping[str, tuple[Set[str], ...]]
"""What a world can say: for each predicate, the names allowed in each of its places."""

OPEN, HOLDS, BROKEN = 0, 1, 2
"""The status of a goal: not yet, met, can no longer be met."""

MAX_GOAL_PARTS = 32
MAX_GOAL_DEPTH = 6
MAX_PARTS = 8

PREDICATES = {
    "at": ("stand at the {}", 1),
    "has": ("hold the {}", 1),
    "opened": ("have the {} open", 1),
    "delivered": ("have the {} lie at the {}", 2),
    "visited": ("visit the {}", 1),
}
"""Each predicate with its words and the number of names it takes."""

OPERATORS = ("and", "then", "before", "never")

RESERVED = frozenset(
    "and at before first have hold lie never open ready stand the then to visit with without you".split()
)
"""Words that a name may not contain: they would make the text of a goal ambiguous."""

_NAME = re.compile(r"[a-z0-9]{1,16}(?: [a-z0-9]{1,16}){0,3}")
_UNSTARTED: Progress = ()


def check_name(name: object, *, what: str) -> str:
    """Return `name` if it may name a thing or a place, else raise `BadGoal`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadGoal(
            f"{what}: got {short(name)}, a name is one to four words of a-z and 0-9, such as 'red key'"
        )
    taken = RESERVED.intersection(name.split())
    if taken:
        raise BadGoal(f"{what}: got {short(name)}, the word {min(taken)!r} belongs to the goal language")
    return name


def short(value: object) -> str:
    """Return `repr(value)` on one line of at most 60 characters, without walking through much of it."""
    if isinstance(value, list | tuple | dict | set | frozenset):
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)}" if value else f"an empty {kind.split()[1]}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return "a huge number"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 60 else text[:57] + "..."


class Part(ABC):
    """A node of a goal. Immutable; knows how its progress starts, folds and reads."""

    __slots__ = ()

    @abstractmethod
    def start(self, facts: Facts) -> Progress:
        """Return the progress after the first step that this part is looked at."""

    @abstractmethod
    def fold(self, progress: Progress, facts: Facts) -> Progress:
        """Return the progress after one more step."""

    @abstractmethod
    def status(self, progress: Progress) -> int:
        """Return `OPEN`, `HOLDS` or `BROKEN`."""

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """Return the JSON form."""

    @abstractmethod
    def words(self) -> str:
        """Return the part in words, without an end mark."""

    def parts(self) -> "tuple[Part, ...]":
        """Return the parts directly below."""
        return ()

    def culprit(self, progress: Progress) -> "tuple[int, ...]":
        """Return the path (indices of `parts`) to the part that keeps this one from holding."""
        return ()

    def key(self) -> str:
        """Return the canonical JSON form, by which the parts of an `and` are sorted."""
        return json.dumps(self.to_data(), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Predicate(Part):
    """One fact; `visited` stays true once it was."""

    fact: Fact

    def start(self, facts: Facts) -> Progress:
        return self.fold(OPEN, facts)

    def fold(self, progress: Progress, facts: Facts) -> Progress:
        if self.fact[0] == "visited":
            return HOLDS if progress == HOLDS or ("at", self.fact[1]) in facts else OPEN
        return HOLDS if self.fact in facts else OPEN

    def status(self, progress: Progress) -> int:
        return OPEN if progress == OPEN else HOLDS

    def to_data(self) -> dict[str, Any]:
        predicate, *names = self.fact
        return {predicate: names[0] if len(names) == 1 else names}

    def words(self) -> str:
        predicate, *names = self.fact
        return PREDICATES[predicate][0].format(*names)


@dataclass(frozen=True, slots=True)
class And(Part):
    """All parts hold at one step."""

    inner: tuple[Part, ...]

    def start(self, facts: Facts) -> Progress:
        return tuple([part.start(facts) for part in self.inner])

    def fold(self, progress: Progress, facts: Facts) -> Progress:
        return tuple([part.fold(p, facts) for part, p in zip(self.inner, progress, strict=True)])

    def status(self, progress: Progress) -> int:
        worst = HOLDS
        for part, p in zip(self.inner, progress, strict=True):
            status = part.status(p)
            if status == BROKEN:
                return BROKEN
            if status == OPEN:
                worst = OPEN
        return worst

    def to_data(self) -> dict[str, Any]:
        return {"and": [part.to_data() for part in self.inner]}

    def words(self) -> str:
        *most, last = (_bracketed(part) for part in self.inner)
        return f"{', '.join(most)} and {last}"

    def parts(self) -> tuple[Part, ...]:
        return self.inner

    def culprit(self, progress: Progress) -> tuple[int, ...]:
        statuses = [part.status(p) for part, p in zip(self.inner, progress, strict=True)]
        index = statuses.index(BROKEN) if BROKEN in statuses else statuses.index(OPEN)
        return (index, *self.inner[index].culprit(progress[index]))


@dataclass(frozen=True, slots=True)
class Then(Part):
    """One part after the other. Progress: (how many are done, the progress of the one that is next)."""

    inner: tuple[Part, ...]

    def start(self, facts: Facts) -> Progress:
        return self.fold((0, _UNSTARTED), facts)

    def fold(self, progress: Progress, facts: Facts) -> Progress:
        done, current = progress
        if done == len(self.inner):
            return progress
        part = self.inner[done]
        current = part.start(facts) if current == _UNSTARTED else part.fold(current, facts)
        return (done + 1, _UNSTARTED) if part.status(current) == HOLDS else (done, current)

    def status(self, progress: Progress) -> int:
        done, current = progress
        if done == len(self.inner):
            return HOLDS
        if current != _UNSTARTED and self.inner[done].status(current) == BROKEN:
            return BROKEN
        return OPEN

    def to_data(self) -> dict[str, Any]:
        return {"then": [part.to_data() for part in self.inner]}

    def words(self) -> str:
        return "first " + ", then ".join(_bracketed(part) for part in self.inner)

    def parts(self) -> tuple[Part, ...]:
        return self.inner

    def culprit(self, progress: Progress) -> tuple[int, ...]:
        done, current = progress
        return (done,) if current == _UNSTARTED else (done, *self.inner[done].culprit(current))


@dataclass(frozen=True, slots=True)
class Before(Part):
    """The first holds at an earlier step than the second. Progress: (stage, of the first, of the second)."""

    first: Part
    second: Part

    def start(self, facts: Facts) -> Progress:
        return self._next(0, self.first.start(facts), self.second.start(facts))

    def fold(self, progress: Progress, facts: Facts) -> Progress:
        stage, first, second = progress
        if stage >= 2:
            return progress
        if stage == 0:
            first = self.first.fold(first, facts)
        return self._next(stage, first, self.second.fold(second, facts))

    def _next(self, stage: int, first: Progress, second: Progress) -> Progress:
        if self.second.status(second) == HOLDS:
            return (2 if stage == 1 else 3, _UNSTARTED, _UNSTARTED)
        if stage == 1 or self.first.status(first) == HOLDS:
            return (1, _UNSTARTED, second)
        return (0, first, second)

    def status(self, progress: Progress) -> int:
        return (OPEN, OPEN, HOLDS, BROKEN)[progress[0]]

    def to_data(self) -> dict[str, Any]:
        return {"before": [self.first.to_data(), self.second.to_data()]}

    def words(self) -> str:
        return f"{_bracketed(self.first)} before you {_bracketed(self.second)}"

    def parts(self) -> tuple[Part, ...]:
        return (self.first, self.second)

    def culprit(self, progress: Progress) -> tuple[int, ...]:
        return {0: (0,), 1: (1,)}.get(progress[0], ())


@dataclass(frozen=True, slots=True)
class Never(Part):
    """Must not hold at any step. Progress: that of the condition, or -1 once it held."""

    inner: Part

    def start(self, facts: Facts) -> Progress:
        return self._seen(self.inner.start(facts))

    def fold(self, progress: Progress, facts: Facts) -> Progress:
        return progress if progress == -1 else self._seen(self.inner.fold(progress, facts))

    def _seen(self, progress: Progress) -> Progress:
        return -1 if self.inner.status(progress) == HOLDS else progress

    def status(self, progress: Progress) -> int:
        return BROKEN if progress == -1 else HOLDS

    def to_data(self) -> dict[str, Any]:
        return {"never": self.inner.to_data()}

    def words(self) -> str:
        return f"never {_bracketed(self.inner)}"

    def parts(self) -> tuple[Part, ...]:
        return (self.inner,)


def _bracketed(part: Part) -> str:
    return part.words() if isinstance(part, Predicate | Never) else f"({part.words()})"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a task asks for. Equal goals are equal values with equal hashes."""

    root: Part

    @classmethod
    def parse(cls, data: object) -> "Goal":
        """Read a goal from JSON-compatible data. Raises `BadGoal` or `TaskTooBig`, in one line."""
        goal = cls(_read(data, "goal", 1))
        size = sum(1 for _ in goal.walk())
        if size > MAX_GOAL_PARTS:
            raise TaskTooBig(f"goal: got {size} parts, at most {MAX_GOAL_PARTS} are allowed")
        if isinstance(goal.root, Never):
            raise BadGoal(
                "goal: 'never' alone asks for nothing to be done, put it in an 'and' beside something"
            )
        return goal

    def to_data(self) -> dict[str, Any]:
        """Return the canonical JSON form; `parse` reads it back."""
        return self.root.to_data()

    def render(self) -> str:
        """Return the goal as a sentence. Different goals have different sentences."""
        words = self.root.words()
        return f"{words[0].upper()}{words[1:]}."

    def walk(self) -> "Iterator[tuple[tuple[int, ...], Part]]":
        """Yield every part with its path, the root (path `()`) first."""
        stack: list[tuple[tuple[int, ...], Part]] = [((), self.root)]
        while stack:
            path, part = stack.pop()
            yield path, part
            stack.extend(((*path, i), inner) for i, inner in reversed(list(enumerate(part.parts()))))

    def part(self, path: Sequence[int]) -> Part:
        """Return the part at `path`."""
        part = self.root
        for index in path:
            part = part.parts()[index]
        return part

    def facts(self) -> frozenset[Fact]:
        """Return the facts that the goal speaks of (`visited` as it is written)."""
        return frozenset(part.fact for _, part in self.walk() if isinstance(part, Predicate))

    def names(self) -> frozenset[str]:
        """Return every thing and place that the goal speaks of."""
        return frozenset(name for fact in self.facts() for name in fact[1:])

    def is_timed(self) -> bool:
        """Whether the step at which something holds matters, so that passing time can be progress."""
        return any(isinstance(part, Then | Before) for _, part in self.walk())

    def check_names(self, vocabulary: Vocabulary) -> None:
        """Raise `BadGoal` if the goal speaks of something that a world with this vocabulary does not have."""
        for predicate, *names in sorted(self.facts()):
            places = vocabulary.get(predicate)
            if places is None:
                raise BadGoal(f"goal: got {predicate!r}, this world knows {', '.join(sorted(vocabulary))}")
            for name, allowed in zip(names, places, strict=True):
                if name not in allowed:
                    known = ", ".join(sorted(allowed)[:12]) or "nothing"
                    raise BadGoal(f"goal {predicate}: got {name!r}, this world has {known}")

    def start(self, facts: Facts) -> Progress:
        """Return the progress at step 0."""
        return self.root.start(facts)

    def fold(self, progress: Progress, facts: Facts) -> Progress:
        """Return the progress after one more step, at whose end `facts` hold."""
        return self.root.fold(progress, facts)

    def status(self, progress: Progress) -> int:
        """Return `OPEN`, `HOLDS` or `BROKEN`; a broken goal stays broken."""
        return self.root.status(progress)

    def culprit(self, progress: Progress) -> tuple[int, ...]:
        """Return the path of the innermost part that keeps the goal from holding.

        Raises `ValueError` if it holds.
        """
        if self.status(progress) == HOLDS:
            raise ValueError("the goal holds, no part keeps it from that")
        return self.root.culprit(progress)


def _read(data: object, where: str, depth: int) -> Part:
    if depth > MAX_GOAL_DEPTH:
        raise TaskTooBig(f"goal: nested deeper than {MAX_GOAL_DEPTH}")
    if not isinstance(data, Mapping) or len(data) != 1:
        raise BadGoal(f"{where}: got {short(data)}, an object with exactly one key is needed")
    ((head, body),) = data.items()
    if head in PREDICATES:
        return _read_predicate(head, body, where)
    where = f"{where}.{head}" if head in OPERATORS else where
    if head in ("and", "then"):
        if not isinstance(body, list) or not 2 <= len(body) <= MAX_PARTS:
            raise BadGoal(f"{where}: got {short(body)}, a list of 2 to {MAX_PARTS} goals is needed")
        parts = [_read(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(body)]
        return _all_of(parts, where) if head == "and" else _in_order(parts, where)
    if head == "before":
        if not isinstance(body, list) or len(body) != 2:
            raise BadGoal(f"{where}: got {short(body)}, a list of two conditions is needed")
        first, second = (_condition(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(body))
        if first == second:
            raise BadGoal(f"{where}: got the same condition twice, it cannot come before itself")
        return Before(first, second)
    if head == "never":
        return Never(_condition(body, where, depth + 1))
    raise BadGoal(f"{where}: got {short(head)}, allowed are {', '.join((*PREDICATES, *OPERATORS))}")


def _read_predicate(head: str, body: object, where: str) -> Predicate:
    count = PREDICATES[head][1]
    names = [body] if count == 1 else body
    if not isinstance(names, list) or len(names) != count:
        raise BadGoal(f"{where}.{head}: got {short(body)}, a list of {count} names is needed")
    return Predicate((head, *(check_name(name, what=f"{where}.{head}") for name in names)))


def _condition(data: object, where: str, depth: int) -> Part:
    part = _read(data, where, depth)
    inner = part.inner if isinstance(part, And) else (part,)
    if not all(isinstance(item, Predicate) for item in inner):
        raise BadGoal(f"{where}: a condition is a predicate or an 'and' of predicates")
    return part


def _all_of(parts: list[Part], where: str) -> Part:
    flat = [inner for part in parts for inner in (part.inner if isinstance(part, And) else (part,))]
    flat.sort(key=lambda part: (isinstance(part, Never), part.key()))
    _few_enough(flat, where)
    if len(set(flat)) != len(flat):
        raise BadGoal(f"{where}: got the same part twice, each must differ")
    if all(isinstance(part, Never) for part in flat):
        raise BadGoal(f"{where}: got nothing but 'never', something to do must stand beside it")
    return And(tuple(flat))


def _in_order(parts: list[Part], where: str) -> Part:
    flat = tuple([inner for part in parts for inner in (part.inner if isinstance(part, Then) else (part,))])
    _few_enough(flat, where)
    if any(isinstance(part, Never) for part in flat):
        raise BadGoal(f"{where}: 'never' is no step of a 'then', put it in an 'and' beside something to do")
    return Then(flat)


def _few_enough(flat: Sequence[Part], where: str) -> None:
    if len(flat) > MAX_PARTS:
        raise TaskTooBig(f"{where}: got {len(flat)} parts when flattened, at most {MAX_PARTS} are allowed")
