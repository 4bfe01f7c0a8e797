"""Every parameter of the curriculum, read from a TOML file; `digest` is the hash that a run records.

A file names only what differs from the defaults. The digest is taken over all values, so two files that mean the
same have the same digest, and a default that changes with a version changes it.
"""

import hashlib
import math
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agents.errors import BadCurriculum
from games.tasks.difficulty import SKILLS
from games.tasks.spec import DIMENSIONS, canonical_json

CURRICULUM_VERSION = 1


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Mix(_Section):
    """Shares of the strategies among the tasks that are no review; they sum to 1."""

    bottleneck: float = Field(
        default=0.7, ge=0, le=1, description="A weak skill: a near miss varied, a step harder."
    )
    coverage: float = Field(default=0.2, ge=0, le=1, description="Combinations that were not seen yet.")
    curve: float = Field(default=0.0, ge=0, le=1, description="Any skill, just above its present success.")
    random: float = Field(
        default=0.1, ge=0, le=1, description="Any skill, drawn freely at the target difficulty."
    )

    @model_validator(mode="after")
    def _sums_to_one(self) -> Self:
        total = self.bottleneck + self.coverage + self.curve + self.random
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(f"the weights sum to {total:g}, they should sum to 1")
        return self


class Bottleneck(_Section):
    """Which skills are weak, and how they are worked on."""

    below: float = Field(
        default=0.6,
        gt=0,
        lt=1,
        description="A skill whose expected success at the common level is lower is weak.",
    )
    cap: float = Field(
        default=0.6, gt=0, le=1, description="No skill takes a greater share of the training tasks."
    )
    window: int = Field(default=20, ge=1, le=1000, description="Tasks over which the cap is kept.")
    near_misses: int = Field(
        default=8, ge=1, le=100, description="Near misses among which a parent is drawn."
    )


class Curve(_Section):
    """How ability is told from success, and where the target lies. Levels run from 0 to 10."""

    target: float = Field(
        default=0.5, ge=0.05, le=0.95, description="The expected success at the target difficulty."
    )
    slope: float = Field(default=1.0, gt=0, le=10, description="Logits of success that one level costs.")
    half_life: float = Field(
        default=6.0, gt=0, le=1000, description="Attempts at a skill after which one counts half."
    )
    rows: int = Field(default=40, ge=4, le=1000, description="Attempts at a skill that are looked at.")
    lag_rows: int = Field(
        default=60,
        ge=1,
        le=1000,
        description="Attempts at any skill whose success tells how far abilities run ahead of their fits.",
    )
    start: float = Field(
        default=2.0, ge=0, le=10, description="The level that is expected of a skill without attempts."
    )
    start_spread: float = Field(
        default=2.5, gt=0, le=10, description="How sure that is: a standard deviation, in levels."
    )
    step: float = Field(
        default=1.0,
        gt=0,
        le=10,
        description="How far, in levels, the target lies above the skill's recent tasks at most.",
    )
    flat_rows: int = Field(
        default=24, ge=4, le=1000, description="Attempts over which a skill that gains nothing is flat."
    )
    flat_gain: float = Field(
        default=0.25, ge=0, le=10, description="Levels that a skill must have gained over them."
    )
    flat_factor: float = Field(
        default=0.5, gt=0, le=1, description="What a flat skill's step is multiplied by."
    )


class Band(_Section):
    """Learnability, as expected success: within the band a task trains, far beyond it is for the test set."""

    low: float = Field(default=0.2, gt=0, lt=1, description="Tasks expected to be harder do not train.")
    high: float = Field(default=0.8, gt=0, lt=1, description="Tasks expected to be easier do not train.")
    far: float = Field(
        default=0.05, gt=0, lt=1, description="Tasks expected to be harder than this go to the test set."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.far < self.low < self.high:
            raise ValueError(
                f"far {self.far:g}, low {self.low:g} and high {self.high:g} should rise in this order"
            )
        return self


class Review(_Section):
    """Packs of old tasks that keep old skills; `size` 0 leaves them out."""

    every: int = Field(default=20, ge=1, le=10_000, description="Tasks from one pack to the next.")
    size: int = Field(default=4, ge=0, le=1000, description="Old tasks in a pack.")
    idle: int = Field(
        default=20, ge=0, le=1_000_000, description="Attempts for which a task must have rested."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.size >= self.every:
            raise ValueError(f"size {self.size} should be below every {self.every}")
        return self


class Likeness(_Section):
    """What counts as a duplicate, and when likeness stays so high that coverage takes over."""

    duplicate: float = Field(
        default=0.97, gt=0, le=1, description="From this similarity to an old task on, a task is refused."
    )
    high: float = Field(
        default=0.9, gt=0, le=1, description="A mean similarity over the window that is too high."
    )
    window: int = Field(default=20, ge=1, le=1000, description="Tasks over which it is looked at.")
    recent: int = Field(
        default=100, ge=1, le=10_000, description="Old tasks with which a new one is compared."
    )


class Scale(_Section):
    """A dimension of difficulty: its easiest and its hardest value, and what it weighs in a level."""

    low: float = Field(ge=0, le=1000, description="The value at level 0.")
    high: float = Field(gt=0, le=1000, description="The value at level 10.")
    weight: float = Field(default=1.0, ge=0, le=100, description="What it weighs in a task's level.")

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low {self.low:g} should be below high {self.high:g}")
        return self


class Scales(_Section):
    """The dimensions of difficulty."""

    objects: Scale = Scale(low=0, high=8)
    path_length: Scale = Scale(low=4, high=44)
    rule_depth: Scale = Scale(low=1, high=6)
    time_pressure: Scale = Scale(low=0.25, high=1)
    distractors: Scale = Scale(low=0, high=6, weight=0.5)

    @model_validator(mode="after")
    def _weighs(self) -> Self:
        if not any(getattr(self, name).weight for name in DIMENSIONS):
            raise ValueError("every weight is 0, one at least should be more")
        return self


class Alarms(_Section):
    """When somebody should be told."""

    window: int = Field(
        default=50, ge=5, le=10_000, description="Attempts, tasks or verdicts that are looked at."
    )
    collapse: float = Field(default=0.2, gt=0, lt=1, description="Success surely below this is a collapse.")
    duplicates: float = Field(
        default=0.5, gt=0, le=1, description="A greater share of refused duplicates is a pile."
    )
    disagreement: float = Field(
        default=0.1, ge=0, le=1, description="A greater share of verdicts that differ is too much."
    )


class Switch(_Section):
    """Which attempts may train."""

    train: bool = Field(default=True, description="Whether anything may train at all.")
    skills: tuple[str, ...] | None = Field(
        default=None, description="The skills that may train; all by default."
    )
    quarantined_tasks: tuple[str, ...] = Field(default=(), description="Hashes of tasks that may not train.")
    quarantined_generators: tuple[str, ...] = Field(
        default=(), description="Generators whose tasks may not train."
    )
    quarantined_judges: tuple[str, ...] = Field(
        default=(), description="Judges whose verdicts may not train."
    )
    hopeless_after: int = Field(
        default=12,
        ge=1,
        le=100_000,
        description="Attempts without a success after which a task may not train.",
    )


class CurriculumConfig(_Section):
    """The whole configuration of a curriculum."""

    version: int = Field(default=CURRICULUM_VERSION, ge=1, description="The version of this format.")
    skills: tuple[str, ...] = Field(default=SKILLS, description="The skills that are trained.")
    max_task_retry: int = Field(
        default=8, ge=1, le=1000, description="Tries to make one task before it is given up."
    )
    mix: Mix = Mix()
    bottleneck: Bottleneck = Bottleneck()
    curve: Curve = Curve()
    band: Band = Band()
    review: Review = Review()
    similarity: Likeness = Likeness()
    scales: Scales = Scales()
    alarms: Alarms = Alarms()
    switch: Switch = Switch()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.version != CURRICULUM_VERSION:
            raise ValueError(f"version: got {self.version}, this program reads {CURRICULUM_VERSION}")
        for field, names in (("skills", self.skills), ("switch.skills", self.switch.skills or ())):
            for name in names:
                if name not in SKILLS:
                    raise ValueError(
                        f"{field}: unknown skill {name!r}{_near(name, SKILLS)}; allowed are: {', '.join(SKILLS)}"
                    )
            if len(set(names)) != len(names):
                raise ValueError(f"{field}: got a skill twice, each may come once")
        if not self.skills:
            raise ValueError("skills: got none, one at least is needed")
        cap, count, band = self.bottleneck.cap, len(self.skills), self.band
        if cap * count < 1 < count:
            raise ValueError(
                f"bottleneck.cap: got {cap:g}, with {count} skills at least {1 / count:.3g} is needed"
            )
        if not band.low <= self.curve.target <= band.high:
            raise ValueError(
                f"curve.target: got {self.curve.target:g}, "
                f"it should lie in the band from {band.low:g} to {band.high:g}"
            )
        return self

    @property
    def digest(self) -> str:
        """The sha-256 of all values, as 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json")).encode("ascii")).hexdigest()

    @classmethod
    def from_data(cls, data: object, *, where: str = "curriculum") -> Self:
        """Read decoded TOML. Raises `BadCurriculum` in one line; `where` says in it what was read."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise BadCurriculum(_explain(error, where)) from None

    @classmethod
    def from_text(cls, text: str, *, where: str = "curriculum") -> Self:
        """Read TOML text. Raises `BadCurriculum` in one line."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            message = str(error)
            raise BadCurriculum(f"{where}: no valid TOML: {message[:1].lower()}{message[1:]}") from None
        return cls.from_data(data, where=where)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a TOML file. Raises `BadCurriculum` in one line."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise BadCurriculum(f"{path}: cannot read the file: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise BadCurriculum(f"{path}: cannot read the file: it is no UTF-8 text") from None
        return cls.from_text(text, where=str(path))


def _near(name: str, allowed: tuple[str, ...]) -> str:
    close = get_close_matches(name, allowed, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _explain(error: ValidationError, where: str) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        model: Any = CurriculumConfig
        for part in first["loc"][:-1]:
            model = model.model_fields[str(part)].annotation
        allowed = tuple(model.model_fields)
        return f"{where}: unknown key {key!r}{_near(str(first['loc'][-1]), allowed)}; allowed are: {', '.join(allowed)}"
    if first["type"] == "missing":
        return f"{where}: {key} is missing"
    if first["type"] == "value_error":
        return f"{where}: {key}: {message}" if key else f"{where}: {message}"
    if first["type"] == "model_type":
        message = "it should be a table"
    message = message.replace("Input should be", "it should be")
    return f"{where}: {key or 'the file'}: got {repr(first.get('input'))[:80]}, {message}"
