"""A task as data: declarative, versioned, bounded, hashed; never code.

    {"version": 1, "world": "grid", "layout": {…}, "goal": {…}, "budget": 40}

and, where known, `skills` (tags), `difficulty` (measured, see `games.tasks.difficulty`), `generator` (its name and
version), `parent` (the `hash` of the task it was varied from) and `text`. The layout is the world's own
(`games.tasks.grid`), the goal's language is `games.tasks.goals`. The text is rendered from goal and budget and
kept nowhere; data that bring one are refused unless it is exactly that.

`hash` is the sha-256 of the canonical JSON of what is played (version, world with its rules' version, layout,
goal, budget): two tasks that play alike have one hash, whoever made them. `digest` covers every field, so that a
file can be checked.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from games.errors import BadTask, TaskTooBig, TaskVersion
from games.tasks.goals import Goal, short
from games.tasks.world import World
from games.tasks.worlds import world_type

TASK_VERSION = 1
MAX_BYTES = 32_768
MAX_DEPTH = 12
MAX_VALUES = 4_000
MAX_BUDGET = 1_000
MAX_SKILLS = 8

DIMENSIONS = ("objects", "path_length", "rule_depth", "time_pressure", "distractors")
"""The dimensions of a task's difficulty."""

NEEDED = ("version", "world", "layout", "goal", "budget")
FIELDS = (*NEEDED, "skills", "difficulty", "generator", "parent", "text")

_TAG = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_GENERATOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)


def canonical_json(data: object) -> str:
    """Return the one form in which JSON-compatible data are hashed: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One task. Made by `from_data`, `from_text` or `make`, which check everything; `replace` makes variants."""

    world: str
    layout: str
    """The canonical layout, as canonical JSON: a value like the others. `make_world` reads it."""
    goal: Goal
    budget: int
    """How many steps there are."""
    skills: tuple[str, ...] = ()
    difficulty: tuple[tuple[str, float], ...] = ()
    """(dimension, value), in the order of `DIMENSIONS`; empty while unmeasured."""
    generator: str = "hand"
    parent: str | None = None

    @classmethod
    def make(
        cls,
        world: World[Any],
        *,
        goal: Goal,
        budget: int,
        skills: tuple[str, ...] = (),
        generator: str = "hand",
        parent: str | None = None,
    ) -> Self:
        """Return the task of `goal` in `world`. Raises `BadTask` (or a subclass) as `from_data` does."""
        goal.check_names(world.vocabulary())
        return cls(
            world=world.name,
            layout=canonical_json(world.to_data()),
            goal=goal,
            budget=_read_budget(budget),
            skills=_read_skills(list(skills)),
            generator=_read_match("generator", generator, _GENERATOR, "a name such as 'keys-1'"),
            parent=None if parent is None else _read_match("parent", parent, _HASH, "64 hexadecimal digits"),
        )

    @classmethod
    def from_text(cls, text: str | bytes) -> Self:
        """Read a task from JSON text. Raises `BadTask`, `TaskTooBig`, `TaskVersion`, `BadGoal` or `BadLayout`."""
        return cls.from_data(parse_json(text))

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Read a task from decoded JSON. Raises as `from_text` does; the message is one clear line."""
        check_bounds(data)
        if not isinstance(data, Mapping):
            raise BadTask(f"task: got {short(data)}, an object is needed")
        _check_fields(data)
        world = world_type(data["world"]).parse(data["layout"])
        parent = data.get("parent")
        spec = cls.make(
            world,
            goal=Goal.parse(data["goal"]),
            budget=_read_budget(data["budget"]),
            skills=_read_skills(data.get("skills", [])),
            generator=data.get("generator", "hand"),
            parent=parent,
        )
        spec = replace(spec, difficulty=_read_difficulty(data.get("difficulty")))
        if "text" in data and data["text"] != spec.text:
            raise BadTask(f"task text: got {short(data['text'])}, the goal reads {spec.text!r}")
        return spec

    def to_data(self) -> dict[str, Any]:
        """Return the canonical data; `from_data` reads them back. Fields that say nothing are left out."""
        data = self._played()
        if self.skills:
            data["skills"] = list(self.skills)
        if self.difficulty:
            data["difficulty"] = dict(self.difficulty)
        data["generator"] = self.generator
        if self.parent is not None:
            data["parent"] = self.parent
        return data

    def _played(self) -> dict[str, Any]:
        return {
            "version": TASK_VERSION,
            "world": self.world,
            "layout": json.loads(self.layout),
            "goal": self.goal.to_data(),
            "budget": self.budget,
        }

    @property
    def text(self) -> str:
        """The task in words: the goal and how many steps there are."""
        return f"{self.goal.render()} You have {self.budget} step{'' if self.budget == 1 else 's'}."

    @property
    def hash(self) -> str:
        """The sha-256 of what is played, as 64 hexadecimal digits: the task's identity."""
        rules = world_type(self.world).version
        return _sha256({**self._played(), "rules": rules})

    @property
    def digest(self) -> str:
        """The sha-256 of every field, as 64 hexadecimal digits."""
        return _sha256({**self.to_data(), "rules": world_type(self.world).version})

    def make_world(self) -> World[Any]:
        """Build the world of this task."""
        return world_type(self.world).parse(json.loads(self.layout))

    def with_difficulty(self, values: Mapping[str, float]) -> "TaskSpec":
        """Return the task with its measured difficulty; every dimension is needed."""
        return replace(self, difficulty=_read_difficulty(values))


def parse_json(text: str | bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> object:
    """Decode JSON, strictly and in bounds: no repeated key, no NaN or infinity, no nesting deeper than `max_depth`.

    Raises `TaskTooBig` or `BadTask`, in one line.
    """
    if len(text) > max_bytes:
        raise TaskTooBig(f"task: got {len(text)} bytes, at most {max_bytes} are allowed")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadTask(f"task: got bytes that are not UTF-8, at position {error.start}") from None
    elif len(text.encode("utf-8", "surrogatepass")) > max_bytes:
        raise TaskTooBig(f"task: got more than {max_bytes} bytes, no more are allowed")
    depth = 0
    for mark in _STRINGS.sub("", text):
        depth += (mark in "[{") - (mark in "]}")
        if depth > max_depth:
            raise TaskTooBig(f"task: nested deeper than {max_depth}")
    try:
        return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadTask(f"task: not JSON, {error.msg} at line {error.lineno} column {error.colno}") from None
    except ValueError:  # an integer of more digits than Python converts
        raise BadTask("task: got a number too long to read") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadTask(f"task: got the key {short(twice)} twice in one object")
    return data


def _no_constant(name: str) -> None:
    raise BadTask(f"task: got {name}, numbers must be finite")


def check_bounds(data: object) -> None:
    """Raise `TaskTooBig` or `BadTask` unless `data` are JSON values within the bounds. Does not recurse."""
    stack: list[tuple[object, int]] = [(data, 1)]
    values = chars = 0
    while stack:
        value, depth = stack.pop()
        values += 1
        if isinstance(value, Mapping | list | tuple):
            if depth > MAX_DEPTH:
                raise TaskTooBig(f"task: nested deeper than {MAX_DEPTH}")
            values += len(value)
            if values > MAX_VALUES:
                raise TaskTooBig(f"task: got more than {MAX_VALUES} values")
            if isinstance(value, Mapping):
                wrong = next((key for key in value if not isinstance(key, str)), None)
                if wrong is not None or None in value:
                    raise BadTask(f"task: got the key {short(wrong)}, keys must be strings")
                chars += sum(len(key) for key in value)
                value = list(value.values())
            stack.extend((item, depth + 1) for item in value)
        elif isinstance(value, str):
            chars += len(value)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise BadTask(f"task: got {value!r}, numbers must be finite")
        elif not (value is None or isinstance(value, bool | int)):
            raise BadTask(f"task: got a {type(value).__name__}, only JSON values are allowed")
        if chars > MAX_BYTES:
            raise TaskTooBig(f"task: got more than {MAX_BYTES} characters")


def _check_fields(data: Mapping[str, Any]) -> None:
    version = data.get("version")
    if "version" not in data:
        raise BadTask(f"task: the field 'version' is missing, needed are {', '.join(NEEDED)}")
    if type(version) is not int or version != TASK_VERSION:
        raise TaskVersion(f"task version: got {short(version)}, this program reads {TASK_VERSION}")
    extra = sorted(key for key in data if key not in FIELDS)
    if extra:
        raise BadTask(f"task: got the field {short(extra[0])}, allowed are {', '.join(FIELDS)}")
    missing = [field for field in NEEDED if field not in data]
    if missing:
        raise BadTask(f"task: the field {missing[0]!r} is missing, needed are {', '.join(NEEDED)}")


def _read_budget(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_BUDGET:
        raise BadTask(f"task budget: got {short(value)}, allowed are whole numbers from 1 to {MAX_BUDGET}")
    return value


def _read_skills(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadTask(f"task skills: got {short(value)}, a list of tags is needed")
    if len(value) > MAX_SKILLS:
        raise TaskTooBig(f"task skills: got {len(value)} of them, at most {MAX_SKILLS} are allowed")
    tags = [_read_match("skills", tag, _TAG, "a tag such as 'key' or 'two-keys'") for tag in value]
    if len(set(tags)) != len(tags):
        raise BadTask("task skills: got a tag twice, each may come once")
    return tuple(sorted(tags))


def _read_match(field: str, value: object, pattern: re.Pattern[str], needed: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadTask(f"task {field}: got {short(value)}, {needed} is needed")
    return value


def _read_difficulty(value: object) -> tuple[tuple[str, float], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping) or value.keys() != set(DIMENSIONS):
        raise BadTask(f"task difficulty: got {short(value)}, an object of {', '.join(DIMENSIONS)} is needed")
    for name in DIMENSIONS:
        number = value[name]
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1_000_000:
            raise BadTask(f"task difficulty {name}: got {short(number)}, allowed is 0 to 1000000")
    return tuple((name, float(value[name])) for name in DIMENSIONS)


def _sha256(data: object) -> str:
    return hashlib.sha256(canonical_json(data).encode("ascii")).hexdigest()
