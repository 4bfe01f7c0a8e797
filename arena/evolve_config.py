"""The configuration of `arena evolve`: one TOML file, whose hash a run records.

The hash covers everything that can change what happens. The budget and where the report goes are not in it: a run may
be given more time without becoming another run.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agents.curriculum.config import CurriculumConfig
from agents.curriculum.learners import Nature
from agents.judges.base import QUESTIONS, SOLVED
from agents.judges.evaluator import JudgeSettings
from agents.policy.spec import is_policy
from arena.config import explain, read_toml
from arena.errors import EvolveError
from games.rng import MAX_SEED
from games.tasks.spec import canonical_json

DEFAULT_SECONDS = 120.0
MAX_ATTEMPTS = 2_000
"""Attempts in one generation."""


_NATURE = Nature()


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Budget(_Section):
    """When to stop: whichever comes first, looked at between generations."""

    seconds: float | None = Field(
        default=None, gt=0, le=10**8, description="Seconds, all tries together; 120 where nothing is given."
    )
    tasks: int | None = Field(default=None, ge=1, le=10**9, description="Tasks that were attempted.")

    @property
    def limit_s(self) -> float | None:
        """The bound in seconds, None where there is none."""
        return DEFAULT_SECONDS if self.seconds is None and self.tasks is None else self.seconds


class Loop(_Section):
    """What one generation is."""

    tasks: int = Field(default=16, ge=1, le=1000, description="Tasks that are asked for in a generation.")
    attempts: int = Field(default=1, ge=1, le=64, description="Attempts at each of them.")
    concurrency: int = Field(
        default=32,
        ge=1,
        le=1024,
        description="Attempts at a time: of language models all, of planners and ladders one a processor.",
    )
    report_every_s: float = Field(default=10.0, gt=0, le=86_400, description="Seconds between two reports.")


class Probe(_Section):
    """Fixed tasks that are attempted again and again and never trained on: success at fixed difficulty."""

    every: int = Field(default=5, ge=1, le=100_000, description="Generations from one probe to the next.")
    levels: tuple[float, ...] = Field(
        default=(2.0, 4.0, 6.0), max_length=10, description="Of the tasks, 0 to 10."
    )
    each: int = Field(default=1, ge=0, le=20, description="Tasks of each skill and level; 0 probes nothing.")
    test: int = Field(
        default=4, ge=0, le=200, description="Tasks of the test set, the latest, in each probe."
    )


class Judge(_Section):
    """How attempts are judged."""

    trust: float = Field(
        default=0.8, ge=0, le=1, description="A model's opinion counts above this confidence."
    )
    audit_share: float = Field(
        default=0.1, ge=0, le=1, description="Of all cases, what a person looks at too."
    )
    max_waiting: int = Field(
        default=200, ge=0, le=10**6, description="Cases of this run that wait at a time."
    )
    model: str | None = Field(
        default=None, description="A model that judges: policy[:ADAPTER] or openai:MODEL@URL."
    )
    mode: Literal["choices", "json"] = Field(default="choices", description="How it is asked.")
    timeout_s: float = Field(default=30.0, gt=0, le=3600, description="Seconds that it has.")
    ask: tuple[str, ...] = Field(default=(), description="Asked of failed attempts: purposeful, near_miss.")
    regress_every: int = Field(
        default=50, ge=1, le=10**6, description="Generations from one judge regression to the next."
    )

    @model_validator(mode="after")
    def _known(self) -> Self:
        allowed = [name for name in QUESTIONS if name != SOLVED]
        for name in self.ask:
            if name not in allowed:
                raise ValueError(f"ask: got {name!r}, allowed are {', '.join(allowed)}")
        return self

    def settings(self, seed: int) -> JudgeSettings:
        """Return the evaluator's settings."""
        return JudgeSettings(trust=self.trust, audit_share=self.audit_share, seed=seed)


class ProposerSection(_Section):
    """A language model that sets some of the new tasks."""

    spec: str | None = Field(
        default=None,
        max_length=200,
        description="Who proposes: policy[:ADAPTER] or openai:MODEL@URL; nobody by default.",
    )
    share: float = Field(
        default=0.25,
        ge=0,
        le=0.9,
        description="Of the new tasks; a tenth stays the generator's, whatever a model proposes.",
    )
    mode: Literal["auto", "offers", "json"] = Field(
        default="auto",
        description="offers: a choice among proven edits of a parent; json: a task under the schema; auto: offers for "
        "models that are prompted in few words.",
    )
    tokens: int = Field(default=2048, ge=64, le=32_768, description="That a task as JSON may take.")

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.spec is not None and not is_policy(self.spec):
            raise ValueError(
                f"spec: got {self.spec[:80]!r}, allowed are policy[:ADAPTER] and openai:MODEL@URL"
            )
        return self


class LessonsSection(_Section):
    """What is learnt from attempts and told in others."""

    share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Of the training attempts of actors that read, those with advice.",
    )
    k: int = Field(default=3, ge=1, le=8, description="Lessons that are offered at a time, at most.")
    floor: float = Field(default=0.25, ge=0, le=1, description='Similarity of a task to their "when to use".')
    held_back: float = Field(
        default=0.3,
        ge=0,
        le=0.9,
        description="Chance that one of several lessons is left out, so that each is told apart from the others.",
    )
    keep: int = Field(
        default=200, ge=0, le=5000, description="Lessons that are active at a time; 0 distils none."
    )
    min_offers: int = Field(
        default=20, ge=5, le=10**6, description="Offers after which a lesson that surely hurts is retired."
    )
    patience: int = Field(
        default=100, ge=5, le=10**6, description="Offers after which one that gained nothing is retired."
    )
    alarm_attempts: int = Field(
        default=50,
        ge=10,
        le=10**6,
        description="Latest attempts with and without advice that the alert takes.",
    )
    back_off: float = Field(
        default=0.25, ge=0, le=1, description="What the share is multiplied by while advice hurts."
    )


class LearnerNature(_Section):
    """How the simulated learner learns and forgets; levels are 0 to 10."""

    start: float = Field(default=_NATURE.start, ge=0, le=10, description="Its ability at the beginning.")
    start_spread: float = Field(
        default=_NATURE.start_spread, ge=0, le=5, description="How skills differ then."
    )
    slope: float = Field(
        default=_NATURE.slope, gt=0, le=10, description="Logits of success that a level costs."
    )
    gain: float = Field(
        default=_NATURE.gain, ge=0, le=1, description="Levels that an attempt gains at chance 0.5."
    )
    edge: bool = Field(
        default=_NATURE.edge, description="Whether practice at the edge of ability gains most."
    )
    grace: int = Field(default=_NATURE.grace, ge=0, le=10**6, description="Attempts that a skill may rest.")
    forget: float = Field(
        default=_NATURE.forget, ge=0, le=1, description="What is lost with each one after that."
    )

    def nature(self) -> Nature:
        """Return it as the learner takes it."""
        return Nature(**self.model_dump())


class EvolveConfig(_Section):
    """The whole configuration of a run."""

    name: str = Field(
        default="evolve", pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", description="The run's folder."
    )
    seed: int = Field(default=0, ge=0, le=MAX_SEED, description="Of everything that is drawn.")
    actor: str = Field(
        default="learner",
        min_length=1,
        max_length=200,
        description="Who attempts: learner, random, planner[:SKILL], ladder:RUNG, policy[:ADAPTER], openai:MODEL@URL.",
    )
    world: Literal["grid", "text"] = Field(default="grid", description="The world of the tasks.")
    stop_on_alert: bool = Field(default=False, description="Whether an alert ends the run.")
    budget: Budget = Budget()
    loop: Loop = Loop()
    probe: Probe = Probe()
    judge: Judge = Judge()
    learner: LearnerNature = LearnerNature()
    proposer: ProposerSection = ProposerSection()
    lessons: LessonsSection = LessonsSection()
    curriculum: CurriculumConfig = CurriculumConfig()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.loop.tasks * self.loop.attempts > MAX_ATTEMPTS:
            raise ValueError(
                f"loop: got {self.loop.tasks} tasks with {self.loop.attempts} attempts each, "
                f"at most {MAX_ATTEMPTS} attempts a generation are allowed"
            )
        return self

    @property
    def digest(self) -> str:
        """The sha-256 of all values but the budget and the reports, as 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.recorded()).encode("ascii")).hexdigest()

    def recorded(self) -> dict[str, Any]:
        """Return, JSON-compatible, what the hash is taken of; with a budget it makes a configuration again."""
        return self.model_dump(mode="json", exclude={"budget": True, "loop": {"report_every_s"}})

    @classmethod
    def from_data(cls, data: Mapping[str, Any], *, where: str) -> Self:
        """Read decoded TOML. Raises `EvolveError` or `BadCurriculum` in one line; `where` says what was read."""
        values = dict(data)
        if "curriculum" in values:
            values["curriculum"] = CurriculumConfig.from_data(
                values["curriculum"], where=f"{where}: curriculum"
            )
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise EvolveError(explain(error, cls, where=where)) from None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a TOML file. Raises `EvolveError`, `BadCurriculum` or `ConfigError` in one line."""
        return cls.from_data(read_toml(path), where=str(path))
