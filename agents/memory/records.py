"""What the experience store holds, as values. Nothing here reads a clock, a file or a generator of chance."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from agents.errors import BadExperience
from games.tasks.check import Attempt, Replay, Verdict, replay
from games.tasks.goals import Never, Part, Predicate, short
from games.tasks.spec import TaskSpec, canonical_json

KINDS = ("generator", "judge", "policy", "actor", "config")
"""Kinds of things that have versions."""
STATUSES = ("train", "test", "quarantine")
"""What a task may be used for: `quarantine` is for nothing until somebody looked."""
PURPOSES = ("train", "test", "review", "trial")
"""Why a task was attempted: to learn, to measure on what is never trained on, to keep old skills, to try a task out."""
LESSON_KINDS = ("success", "failure", "contrast")
LESSON_STATUSES = ("active", "merged", "retired", "evicted")

MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 4_000
MAX_JSON_CHARS = 1_000_000
MAX_GENERATION = 2**31 - 1
STATE_HASH_BYTES = 8
_STATE_HASH = re.compile(f"[0-9a-f]{{{2 * STATE_HASH_BYTES}}}")
PRIOR_OFFERS = 10
"""So many offers without effect are added to every lesson's count: a lesson offered once is worth little either way."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of something that had a part in an attempt, and what it was made of."""

    kind: str
    """One of `KINDS`."""
    name: str
    parent: str | None = None
    """The version from which it was made, of the same kind."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """JSON-compatible: hashes, settings, whatever is needed to make it again."""

    def __post_init__(self) -> None:
        _one_of("version kind", self.kind, KINDS)
        _name("version name", self.name)
        if self.parent is not None:
            _name("version parent", self.parent)


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task with what the store must know of it beyond the task itself."""

    spec: TaskSpec
    skill: str
    """The skill that it is set for: its attempts count in the profile under this one."""
    strategy: str = ""
    """The strategy that chose it, if one did."""
    status: str = "train"
    """One of `STATUSES`."""
    generation: int = 0
    time: float = 0.0
    """Seconds since 1970, as the caller says."""
    generator: str = ""
    """The version of the generator; the task's own word for it where this is empty."""

    def __post_init__(self) -> None:
        _name("task skill", self.skill)
        _name("task strategy", self.strategy, empty=True)
        _one_of("task status", self.status, STATUSES)
        _generation("task generation", self.generation)
        _finite("task time", self.time)
        _name("task generator", self.generator, empty=True)


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a task of the store, as it happened and as it was judged."""

    id: str
    """The caller's, unique: an episode whose id is in the store already is not stored again."""
    task: str
    """`TaskSpec.hash`."""
    actions: tuple[str, ...]
    success: bool
    verdict: str
    """What kind of ending the judge found (`Verdict.kind`, say)."""
    actor: str
    """Who acted: a player's spec."""
    steps: int = 0
    policy: str = ""
    """The version of the weights behind the actor; empty where there are none."""
    judge: str = ""
    purpose: str = "train"
    """One of `PURPOSES`."""
    generation: int = 0
    time: float = 0.0
    """Seconds since 1970, as the caller says."""
    progress: float = 0.0
    """How much of the goal was reached, from 0 to 1: what makes a failure a near miss."""
    feedback: str = ""
    """What the actor was told, in words."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The judge's chain of evidence, JSON-compatible."""
    states: tuple[str, ...] = ()
    """A hash of every state from the initial one on (`state_hashes`); empty where they were not kept."""
    lessons: tuple[str, ...] = ()
    """Ids of the lessons that were offered to the actor: their use is counted from here."""

    def __post_init__(self) -> None:
        _name("episode id", self.id)
        where = f"episode {self.id}"
        _name(f"{where}: task", self.task)
        _name(f"{where}: verdict", self.verdict)
        _name(f"{where}: actor", self.actor)
        _name(f"{where}: policy", self.policy, empty=True)
        _name(f"{where}: judge", self.judge, empty=True)
        _one_of(f"{where}: purpose", self.purpose, PURPOSES)
        _generation(f"{where}: generation", self.generation)
        _generation(f"{where}: steps", self.steps)
        _finite(f"{where}: time", self.time)
        _finite(f"{where}: progress", self.progress)
        if not 0 <= self.progress <= 1:
            raise BadExperience(f"{where}: progress: got {self.progress!r}, allowed is 0 to 1")
        if not isinstance(self.success, bool):
            raise BadExperience(f"{where}: success: got {short(self.success)}, allowed are True and False")
        wrong = next((value for value in self.states if not _is_state_hash(value)), None)
        if wrong is not None:
            raise BadExperience(
                f"{where}: states: got {short(wrong)}, {2 * STATE_HASH_BYTES} hexadecimal digits are needed"
            )

    @classmethod
    def of(
        cls,
        spec: TaskSpec,
        *,
        id: str,
        attempt: Attempt,
        verdict: Verdict,
        played: Replay | None = None,
        **rest: Any,
    ) -> Self:
        """Return the episode of a judged attempt; `rest` are the other fields (`actor` at least).

        `played` is the attempt's replay, if it is at hand; states, steps and progress are taken from it.
        """
        played = replay(spec, attempt.actions) if played is None else played
        values: dict[str, Any] = {
            "success": verdict.success,
            "verdict": verdict.kind,
            "steps": played.step,
            "progress": 1.0 if verdict.success else progress_of(spec, played.states),
            "feedback": verdict.reason,
            "evidence": verdict.to_data(),
            "states": state_hashes(played.states),
        }
        return cls(id=id, task=spec.hash, actions=attempt.actions, **(values | rest))


@dataclass(frozen=True, slots=True)
class Lesson:
    """A short piece of advice, distilled from attempts, with when to use it."""

    id: str
    text: str
    when: str
    """In what situation it applies, in words: what it is found by."""
    skill: str
    kind: str
    """One of `LESSON_KINDS`: drawn from successes, failures, or both at the same task."""
    sources: tuple[str, ...] = ()
    """Ids of the episodes it was drawn from."""
    generation: int = 0
    time: float = 0.0

    def __post_init__(self) -> None:
        _name("lesson id", self.id)
        where = f"lesson {self.id}"
        for label, text in (("text", self.text), ("when", self.when)):
            if not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT_CHARS:
                raise BadExperience(
                    f"{where}: {label}: got {short(text)}, 1 to {MAX_TEXT_CHARS} characters are needed"
                )
        _name(f"{where}: skill", self.skill)
        _one_of(f"{where}: kind", self.kind, LESSON_KINDS)
        _generation(f"{where}: generation", self.generation)
        _finite(f"{where}: time", self.time)


class TaskEntry(NamedTuple):
    """A task of the store with how its attempts went: of one actor where one was asked for, else of all."""

    record: TaskRecord
    episodes: int
    successes: int
    progress: float
    """The most that a failed attempt reached."""
    last_generation: int | None
    """The generation of the last attempt; None without one."""

    @property
    def spec(self) -> TaskSpec:
        """The task."""
        return self.record.spec

    @property
    def hash(self) -> str:
        """The task's identity."""
        return self.record.spec.hash

    @property
    def success(self) -> float | None:
        """The share of attempts that succeeded; None without one."""
        return self.successes / self.episodes if self.episodes else None

    @property
    def learnability(self) -> float:
        """p(1 − p) of the share of successes p: 0 for what always or never succeeds, and without attempts."""
        share = self.success
        return 0.0 if share is None else share * (1 - share)


class StoredEpisode(NamedTuple):
    """An episode with what the store knows of it beside."""

    episode: Episode
    spec: TaskSpec
    skill: str
    difficulty: dict[str, float]
    """By dimension; empty where the task was never measured."""
    first: bool
    """Whether it was this actor's first attempt at the task."""
    number: int
    """Its place in the order of storing."""


class Found(NamedTuple):
    """A task that was found."""

    key: str
    """`TaskSpec.hash`."""
    similarity: float
    """From 0 to 1."""


class LessonEntry(NamedTuple):
    """A lesson of the store, and how those fared to whom it was offered."""

    lesson: Lesson
    status: str
    """One of `LESSON_STATUSES`."""
    merged_into: str | None
    offered: int
    succeeded: int
    expected: float
    """How many of those attempts would have succeeded at the rate of that skill without advice."""
    variance: float
    """Of `expected`, if that rate is right."""
    last_used: int
    """The generation in which it was offered last, or made."""

    @property
    def worth(self) -> float:
        """Successes above expectation, by offer; drawn to 0 while offers are few."""
        return (self.succeeded - self.expected) / (self.offered + PRIOR_OFFERS)


class Advice(NamedTuple):
    """A lesson offered for a task."""

    lesson: Lesson
    similarity: float
    worth: float


def state_hashes(states: Iterable[Any]) -> tuple[str, ...]:
    """Return a hash of each state: what a replay must come to again, step for step."""
    return tuple(
        hashlib.blake2b(
            canonical_json(listed(state)).encode("ascii"), digest_size=STATE_HASH_BYTES
        ).hexdigest()
        for state in states
    )


def listed(value: Any) -> Any:
    """Return a state as JSON-compatible data: tuples become lists, sets sorted lists."""
    if isinstance(value, tuple | list):
        return [listed(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted((listed(item) for item in value), key=canonical_json)
    return value


def progress_of(spec: TaskSpec, states: Sequence[Any]) -> float:
    """Return which share of what the goal asks for was true at some step; below 1, for it is asked of failures."""
    needed = _wanted(spec.goal.root)
    if not needed:
        return 0.0
    world, seen = spec.make_world(), set[tuple[str, ...]]()
    for state in states:
        seen |= world.facts(state)
    return len(needed & seen) / (len(needed) + 1)


def _wanted(part: Part) -> set[tuple[str, ...]]:
    if isinstance(part, Predicate):
        return {("at", *part.fact[1:]) if part.fact[0] == "visited" else part.fact}
    if isinstance(part, Never):
        return set()
    return set().union(*(_wanted(inner) for inner in part.parts()))


def _is_state_hash(value: object) -> bool:
    return isinstance(value, str) and _STATE_HASH.fullmatch(value) is not None


def _name(what: str, value: object, *, empty: bool = False) -> None:
    if not isinstance(value, str) or not (empty or value) or len(value) > MAX_NAME_CHARS:
        least = 0 if empty else 1
        raise BadExperience(f"{what}: got {short(value)}, {least} to {MAX_NAME_CHARS} characters are needed")


def _one_of(what: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise BadExperience(f"{what}: got {short(value)}, allowed are {', '.join(allowed)}")


def _generation(what: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= MAX_GENERATION:
        raise BadExperience(
            f"{what}: got {short(value)}, allowed are whole numbers from 0 to {MAX_GENERATION}"
        )


def _finite(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadExperience(f"{what}: got {short(value)}, a finite number is needed")
