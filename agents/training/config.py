"""The configuration of `arena train`: what is played and learned from, against whom, and when to stop.

The digest covers everything that can change what happens. The budget and what is only written down are not in it: a
run may be given more time without becoming another run.
"""

import hashlib
import json
import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from agents.policy.spec import is_policy
from agents.training.settings import AdvantageSettings, LearnerSettings
from games.rng import MAX_SEED

DEFAULT_MINUTES = 10.0
MAX_MATCHES = 100_000
"""Matches in one update."""
FOREIGN = ("human", "ws")
"""Players that are not made here."""

Action = Literal["ignore", "note", "back_off", "stop"]
"""What an alarm does: nothing, a line in the metrics, a smaller step as well, or the end of the run."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _present(spec: str) -> str:
    if spec.partition(":")[0] in FOREIGN:
        raise ValueError("nobody is there to play it")
    return spec


Spec = Annotated[str, Field(min_length=1), AfterValidator(_present)]
"""Of a player that can be made here."""


class Budget(_Section):
    """When to stop: whichever comes first, looked at between updates."""

    minutes: float | None = Field(
        default=None, gt=0, le=10**6, description="Of all tries together; 10 where no budget is given at all."
    )
    matches: int | None = Field(default=None, ge=1, le=10**10, description="Matches that were played.")
    tokens: int | None = Field(default=None, ge=1, le=10**13, description="Tokens that the learner wrote.")
    updates: int | None = Field(default=None, ge=1, le=10**8, description="Updates of the weights.")

    @property
    def limit_minutes(self) -> float | None:
        """The bound in minutes, None where there is none."""
        given = (self.minutes, self.matches, self.tokens, self.updates)
        return DEFAULT_MINUTES if all(one is None for one in given) else self.minutes


class Start(_Section):
    """The weights that a run begins with."""

    weights: Literal["model", "fresh"] = Field(
        default="model",
        description="model: those of policy.model; fresh: random ones, for a small model with its tokenizer.",
    )
    adapter: str | None = Field(
        default=None, min_length=1, max_length=80, description="An adapter version, NAME[@N], to go on from."
    )
    hidden: int = Field(
        default=192, ge=32, le=1024, description="Width of fresh weights, a multiple of 32 (vllm: of 64)."
    )
    layers: int = Field(default=4, ge=1, le=32, description="Layers of fresh weights.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.hidden % 32:
            raise ValueError(f"hidden: got {self.hidden}, allowed are multiples of 32")
        if self.weights == "fresh" and self.adapter is not None:
            raise ValueError("adapter: fresh weights belong to no adapter; give one of the two")
        return self


class PlayedGame(_Section):
    """A game that is trained on."""

    game: str = Field(min_length=1, max_length=64, description="Its name, see `arena games`.")
    seats: int | None = Field(default=None, ge=1, le=64, description="By default the game's own number.")
    options: dict[str, Any] = Field(default_factory=dict, description="Of the game.")
    weight: float = Field(default=1.0, gt=0, le=10**6, description="How often, beside the other games.")


class Rollout(_Section):
    """The matches between two updates."""

    deals: int = Field(default=32, ge=0, le=MAX_MATCHES, description="Different deals in an update.")
    plays: int = Field(
        default=4, ge=1, le=1000, description="Matches on each deal: they are compared with one another."
    )
    seeds: tuple[int, ...] = Field(
        default=(),
        max_length=10_000,
        description="Seeds of the deals, taken in turn: one for each deal of a small game. By default always new ones.",
    )
    max_failed: float = Field(
        default=0.5, ge=0, le=1, description="Share of an update's matches that may fail before the run ends."
    )
    keep_records: Literal["none", "last", "all"] = Field(
        default="last",
        description="Which records stay in the run's folder: those of the last update, all, none.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.deals * self.plays > MAX_MATCHES:
            raise ValueError(
                f"got {self.deals} deals of {self.plays} plays, at most {MAX_MATCHES} matches are allowed"
            )
        for seed in self.seeds:
            if not 0 <= seed <= MAX_SEED:
                raise ValueError(f"seeds: got {seed}, allowed are whole numbers from 0 to {MAX_SEED}")
        return self


class Schedule(_Section):
    """How the learning rate falls, over the budget of updates (without one it stays)."""

    hold: float = Field(default=0.0, ge=0, le=1, description="Share of the updates before it begins to fall.")
    final: float = Field(default=1.0, ge=0, le=1, description="What is left of it at the end.")
    shape: Literal["linear", "cosine"] = Field(default="linear", description="The way down.")

    def factor(self, update: int, *, updates: int | None) -> float:
        """Return what the learning rate is multiplied with at an update, counted from 0."""
        if updates is None or self.final == 1.0:
            return 1.0
        done = min(1.0, update / max(1, updates - 1))
        way = 0.0 if self.hold >= 1 else max(0.0, (done - self.hold) / (1 - self.hold))
        if self.shape == "cosine":
            way = (1 - math.cos(math.pi * way)) / 2
        return 1 + (self.final - 1) * way


class LeagueSettings(_Section):
    """Against whom the learner plays. Shares are weights; a kind of which there is none is left out."""

    itself: float = Field(
        default=1.0, ge=0, le=1000, description="Share of matches of the learner with itself."
    )
    past: float = Field(default=0.0, ge=0, le=1000, description="Share against its past versions.")
    bots: float = Field(default=0.0, ge=0, le=1000, description="Share against the bots below.")
    opponents: tuple[Spec, ...] = Field(
        default=(), max_length=64, description="Specs of the bots (or other models), see `arena players`."
    )
    mates: Spec | None = Field(
        default=None,
        description=(
            "Who sits beside the learner, which then has one seat of its side, each in turn: a spec that plays all "
            "the run's games. By default it fills its side. Against itself it fills all seats."
        ),
    )
    sampling: Literal["uniform", "prioritised", "latest"] = Field(
        default="prioritised",
        description=(
            "Which of a kind: all alike; (1 - p)^power by the learner's share p of points against each; "
            "or for past versions the latest."
        ),
    )
    power: float = Field(default=2.0, ge=0, le=20, description="Of prioritised sampling.")
    memory: float = Field(
        default=0.98, gt=0, le=1, description="What is left of an old result's weight after an update."
    )
    snapshot_every: int = Field(
        default=20, ge=1, le=10**6, description="Updates from one past version that is kept to the next."
    )
    keep: int = Field(default=16, ge=1, le=1000, description="Past versions that are kept.")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.itself + self.past + self.bots <= 0:
            raise ValueError("itself, past and bots are all 0: somebody must be played")
        if self.bots > 0 and not self.opponents:
            raise ValueError(f"bots: got {self.bots:g}, but opponents names none")
        if self.itself == 0 and self.bots == 0:
            raise ValueError("itself and bots are 0: at first there are no past versions to play")
        if self.mates is not None and self.past + self.bots <= 0:
            raise ValueError(
                f"mates: got {self.mates!r}, but past and bots are 0, and against itself the learner has all seats"
            )
        return self


class EvaluationSettings(_Section):
    """How the learner is measured, at intervals and at the end; nothing of it is trained on."""

    every: int = Field(
        default=25, ge=0, le=10**6, description="Updates from one to the next; 0 measures only the ends."
    )
    opponents: tuple[Spec, ...] = Field(
        default=(), max_length=16, description="Fixed opponents; each deal is played from every side."
    )
    mates: Spec | None = Field(
        default=None,
        description=(
            "Who sits beside the learner, which then has one seat of its side, and plays each deal from every seat: a "
            "spec. By default it fills its side."
        ),
    )
    deals: int = Field(default=32, ge=1, le=10_000, description="Deals against each opponent and game.")
    nash_conv: bool = Field(
        default=False, description="In small games: what a best response would gain, computed exactly."
    )

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.mates is not None and not self.opponents:
            raise ValueError(f"mates: got {self.mates!r}, but opponents names none")
        return self


class CreditSettings(_Section):
    """How a team's result is divided before it is learned from."""

    method: Literal["none", "adca", "shapley"] = Field(
        default="none",
        description="none: the outcome; adca: step labels beside it; shapley: each seat's counterfactual share.",
    )
    alpha: float = Field(
        default=0.1, ge=0, le=10, description="Weight of the process beside the outcome (adca)."
    )
    labels: Literal["rules", "model", "learned"] = Field(
        default="rules", description="Who labels steps as good or bad (adca)."
    )
    judge: str | None = Field(default=None, description="The file of the learned judge (labels = learned).")
    bound: float = Field(
        default=0.5,
        ge=0,
        le=10,
        description="The most that labels may add to an advantage, as a part of it (adca, and of tasks' steps).",
    )
    discount: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description=(
            "What labels of later steps count for a step; 0: each answers for its own alone (adca, and of tasks' "
            "steps)."
        ),
    )
    reference: Spec = Field(default="random", description="Whose decisions stand in for a seat's (shapley).")
    stand_in: Spec | None = Field(
        default=None,
        description=(
            "A bot that plays on in replays for every model: far cheaper, and shares then tell what decisions were "
            "worth had the bot played on; by default the models play on themselves (shapley)."
        ),
    )
    least_replicates: int = Field(
        default=4, ge=2, le=32, description="Replays of each coalition, at the fewest (shapley)."
    )
    error: float = Field(
        default=0.25,
        gt=0,
        le=100,
        description="Half of a share's 95 % interval, at which replays end (shapley).",
    )
    share: float = Field(
        default=1.0, gt=0, le=1, description="Share of the matches whose results are divided so (shapley)."
    )


class Questioning(_Section):
    """Self-questioning: the tasks are set at the edge of what the learner can do."""

    enabled: bool | None = Field(default=None, description="By default as the mode has it.")
    interval: int = Field(default=5, ge=1, le=10**6, description="Updates after which new tasks are set.")
    new: int = Field(default=16, ge=1, le=1000, description="Tasks that are then set.")
    pool: int = Field(default=64, ge=1, le=10**5, description="Tasks that are kept to train on, the latest.")


class Navigating(_Section):
    """Self-navigating: experiences of past attempts are offered as advice, and stripped from what is trained on."""

    enabled: bool | None = Field(default=None, description="By default as the mode has it.")
    share: float = Field(default=0.5, ge=0, le=1, description="Of the attempts that are given advice.")
    top: int = Field(default=3, ge=1, le=16, description="Experiences in a prompt, at most.")
    floor: float = Field(default=0.25, ge=0, le=1, description="Similarity below which none is offered.")
    keep: int = Field(default=500, ge=1, le=10**6, description="Experiences that are kept.")


class Attributing(_Section):
    """Self-attributing: steps of attempts are labelled by the task's own rules."""

    enabled: bool | None = Field(default=None, description="By default as the mode has it.")
    alpha: float = Field(default=0.1, ge=0, le=10, description="Weight of the process beside the outcome.")


class TaskSettings(_Section):
    """Task worlds beside, or instead of, games. `tasks` is the number attempted in an update; 0 leaves them out."""

    tasks: int = Field(default=0, ge=0, le=10_000, description="Tasks in an update; 0 for none.")
    attempts: int = Field(default=8, ge=1, le=1000, description="Attempts at each: they are compared.")
    world: Literal["grid", "text"] = Field(default="grid", description="The world of the tasks.")
    skills: tuple[str, ...] = Field(
        default=(), max_length=32, description="Those that are practised; by default all of the curriculum's."
    )
    mode: Literal["basic", "overall"] = Field(
        default="basic", description="basic: none of the three mechanisms below; overall: all of them."
    )
    level: float = Field(
        default=2.0, ge=0, le=10, description="Difficulty of the tasks where they are not set by questioning."
    )
    validation: int = Field(
        default=4,
        ge=0,
        le=200,
        description="Fixed tasks of each skill that measure, and are never trained on.",
    )
    retention: int = Field(
        default=16,
        ge=0,
        le=1000,
        description="Of the tasks that training solves first, so many are attempted again in each evaluation.",
    )
    validation_attempts: int = Field(
        default=2, ge=1, le=100, description="Attempts at each task that measures."
    )
    questioning: Questioning = Field(default=Questioning(), description="A1.")
    navigating: Navigating = Field(default=Navigating(), description="A2.")
    attributing: Attributing = Field(default=Attributing(), description="A3.")

    def has(self, mechanism: Literal["questioning", "navigating", "attributing"]) -> bool:
        """Whether a mechanism is on: by its own switch, else by the mode."""
        own: bool | None = getattr(self, mechanism).enabled
        return self.mode == "overall" if own is None else own


class AlarmSettings(_Section):
    """What is watched, from which value on, and what is then done."""

    flat_updates: int = Field(
        default=10, ge=1, le=10**6, description="Updates in a row whose advantages are all zero."
    )
    flat: Action = Field(default="stop", description="Then there is nothing to learn from.")
    kl: float = Field(
        default=0.5, gt=0, description="Divergence from the sampler in one update, in nats a token."
    )
    kl_spike: Action = Field(default="back_off", description="Of a step that went too far.")
    failures: float = Field(
        default=0.3, gt=0, le=1, description="Share of answers that are unreadable, illegal or late."
    )
    format_failures: Action = Field(default="note", description="Of a policy that forgets how to answer.")
    not_finite_updates: int = Field(
        default=3, ge=1, le=1000, description="Updates in a row that gave no finite numbers."
    )
    not_finite: Action = Field(
        default="stop", description="Of an update that diverged; the weights stay as before."
    )
    retrieval_attempts: int = Field(
        default=200,
        ge=10,
        le=10**6,
        description="Attempts with and without advice, before they are compared.",
    )
    retrieval_hurts: Action = Field(
        default="back_off",
        description="Of advice with which fewer succeed, for certain: its share is halved.",
    )
    judge_tokens: float = Field(
        default=0.5,
        gt=0,
        le=1000,
        description="Tokens of judges for each token that the learner reads and writes.",
    )
    judge_cost: Action = Field(default="note", description="Of judges that cost more than they may.")
    step: float = Field(default=0.5, gt=0, lt=1, description="What backing off leaves of the learning rate.")
    recover: float = Field(
        default=1.02,
        ge=1,
        le=10,
        description="What it is multiplied with by each update after that, up to 1.",
    )


class TrainConfig(_Section):
    """The whole configuration of a run."""

    name: str = Field(
        default="train",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$",
        description="Of the run's folder and its adapters.",
    )
    seed: int = Field(default=0, ge=0, le=MAX_SEED, description="Of everything that is drawn.")
    budget: Budget = Field(default=Budget(), description="When to stop.")
    start: Start = Field(default=Start(), description="The weights to begin with.")
    games: tuple[PlayedGame, ...] = Field(default=(), max_length=16, description="What is played.")
    rollout: Rollout = Field(default=Rollout(), description="The matches between two updates.")
    credit: CreditSettings = Field(default=CreditSettings(), description="How results are divided.")
    advantage: AdvantageSettings = Field(
        default=AdvantageSettings(), description="From outcomes to advantages."
    )
    learner: LearnerSettings = Field(default=LearnerSettings(), description="How the weights step.")
    schedule: Schedule = Field(default=Schedule(), description="How the learning rate falls.")
    league: LeagueSettings = Field(default=LeagueSettings(), description="Against whom.")
    tasks: TaskSettings = Field(default=TaskSettings(), description="Task worlds.")
    evaluation: EvaluationSettings = Field(default=EvaluationSettings(), description="How it is measured.")
    alarms: AlarmSettings = Field(
        default=AlarmSettings(), description="What is wrong, and what is then done."
    )
    checkpoint_every: int = Field(
        default=10,
        ge=1,
        le=10**6,
        description="Updates from one checkpoint to the next; a killed run loses so many.",
    )
    checkpoints: int = Field(default=2, ge=1, le=100, description="Checkpoints that are kept.")
    tensorboard: bool | None = Field(
        default=None, description="Whether TensorBoard's files are written; by default where it is installed."
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.games and not self.tasks.tasks:
            raise ValueError("games: names none, and tasks.tasks is 0: there is nothing to train on")
        if self.games and not self.rollout.deals:
            raise ValueError("rollout.deals: got 0, but games are to be played")
        if self.start.weights == "fresh" and self.learner.weights != "all":
            raise ValueError('learner.weights: fresh weights are trained as a whole: weights = "all"')
        if self.league.mates is not None and self.credit.method == "shapley" and self.credit.share < 1:
            raise ValueError(
                f"credit.share: got {self.credit.share:g}, but beside league.mates shares do not add up to results, so "
                "the two are not compared: 1 is allowed"
            )
        stand_in = self.credit.stand_in
        for key, spec in (("stand_in", stand_in), ("reference", self.credit.reference)):
            if spec is not None:
                if stand_in is not None and is_policy(spec):
                    raise ValueError(
                        f"credit.{key}: got {spec!r}, but with credit.stand_in no model plays in replays: name a bot"
                    )
        tried = self.tasks.tasks and self.tasks.has("attributing")
        if self.games and self.credit.method == "adca" and tried:
            own, other = self.credit.alpha, self.tasks.attributing.alpha
            if own != other:  # one process fuses the labels of both
                raise ValueError(
                    f"tasks.attributing.alpha: got {other:g}, but games are labelled with credit.alpha {own:g}: "
                    "give both the same"
                )
        return self

    @property
    def digest(self) -> str:
        """The sha-256 of all values that decide what happens, as 64 hexadecimal digits."""
        text = json.dumps(self.recorded(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def recorded(self) -> dict[str, Any]:
        """Return, JSON-compatible, what the digest is taken of."""
        free = {"budget", "checkpoint_every", "checkpoints", "tensorboard"}
        found = self.model_dump(mode="json", exclude=free)
        if self.schedule.final != 1.0:  # then the bound of updates decides the learning rate
            found["updates"] = self.budget.updates
        return found

    @property
    def matches(self) -> int:
        """Matches in an update."""
        return self.rollout.deals * self.rollout.plays if self.games else 0
