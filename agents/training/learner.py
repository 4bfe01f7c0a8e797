"""The learner: trajectories and advantages in, better weights out.

One update is, by default, one step of AdamW on the loss of `agents.training.loss` over all its trajectories, computed
in as many forward passes as the memory asks for: their gradients add up to that of one pass over everything. Left out
on purpose: a value function (the groups are the baseline), a scheduler of learning rates beyond a warm-up (the loop
sets them), and more than one process (the engine that samples runs beside the learner, not under it).

Whatever is random follows from the seed and the number of the update, so a learner that is loaded goes on as the one
that was saved would have.
"""

import copy
import io
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.errors import BadCheckpoint, BadLearner, CheckpointFailed, NotFinite
from agents.policy.adapters import Adapter, AdapterStore
from agents.policy.base import Constraint
from agents.policy.chat import one_line
from agents.training.batches import Asked, Decision, Pass
from agents.training.loss import grpo_loss
from agents.training.model import TrainedModel
from agents.training.plan import Plan, Planned, Use, asked_of, laid_out
from agents.training.scoring import Scores, exact_kl, score
from agents.training.settings import LearnerSettings
from agents.training.spellings import spellings
from agents.training.trajectories import Trajectory

STATE = "learner.pt"
MAX_RATE = 10.0
FORMAT = 1
"""Of the state's file."""
SUMS = ("loss", "surrogate")
"""Of an update's values, those over all tokens; the others are means over the tokens that were computed."""


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """What an update came to.

    Args:
        update: its number, from 1.
        trajectories, steps: that were learned from, and their completions.
        tokens: that were chosen, in them; those that a constraint forced do not count.
        computed: tokens of the forward passes, those that prompts share counted once.
        prompt_tokens: of all completions' prompts, each counted whole, and with them `completion_tokens`.
        seconds: that it took.
        values: loss and surrogate; as means over the tokens that were computed: kl (from the reference), entropy,
            ratio, clipped, correction, truncated, drift, gap (absolute difference from the sampler's
            log-probabilities); and grad_norm, lr. Empty but for lr where nothing had an advantage.
    """

    update: int
    trajectories: int
    steps: int
    tokens: int
    computed: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    values: dict[str, float] = field(default_factory=dict)

    def to_data(self) -> dict[str, float]:
        """Return everything by name, as metrics have it."""
        counted = {
            name: float(getattr(self, name))
            for name in (
                "update",
                "trajectories",
                "steps",
                "tokens",
                "computed",
                "prompt_tokens",
                "completion_tokens",
                "seconds",
            )
        }
        return counted | self.values


class Learner:
    """Holds a model and steps it. Everything here blocks: not for an event loop's thread.

    Args:
        model: the folder of the model that is trained, or that adapters are trained for.
        settings: what is trained, and how.
        seed: of everything random.
        adapter: the folder of a version to go on from.

    Raises `EngineMissing`, `BadModel`, `BadAdapter` or `BadLearner` in one line.
    """

    def __init__(
        self, model: Path, *, settings: LearnerSettings, seed: int = 0, adapter: Path | None = None
    ) -> None:
        import torch

        if settings.loss.kl and settings.reference == "none":
            raise BadLearner("learner reference: got 'none', but loss.kl needs one: 'start' or 'moving'")
        self.settings = settings
        self.seed = seed
        self.updates = 0
        self.model = TrainedModel(model, settings=settings, adapter=adapter, seed=seed)
        self.base = self.model.base
        self._optimizer = torch.optim.AdamW(
            list(self.model.trained.values()),
            lr=settings.lr,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
        )
        self._reference = None if settings.reference == "none" else self.model.copy()
        self._average = self.model.copy() if settings.average else None

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantages: Sequence[Sequence[float]],
        *,
        lr: float | None = None,
    ) -> UpdateStats:
        """Learn from trajectories.

        Args:
            trajectories: at least one; those without steps are passed over.
            advantages: of each trajectory's steps.
            lr: the learning rate of this update in place of the settings'.

        Raises `NotFinite` for a loss, gradient, advantage, log-probability or weight that is no finite number, and
        `BadRollout` for tokens that the model cannot have written. An update that raises has changed nothing.
        """
        began = time.perf_counter()
        rate = self._rate(lr)
        plan = Plan(
            self.settings, trajectories, advantages, self.model.encoder.decide, (self.seed, self.updates)
        )
        rounds = plan.rounds()
        known = self._before(plan, rounds)
        planned = [plan.passes(uses) for uses in rounds[: self.settings.steps]]
        before = self._snapshot()
        totals: dict[str, float] = defaultdict(float)
        computed = made = 0
        try:
            for number, uses in enumerate(rounds):
                # Epochs that are not shuffled all go through the same passes.
                same = self.settings.steps == 1 or number < len(planned)
                work = planned[number % len(planned)] if same else plan.passes(uses)
                if work:
                    computed += self._step(work, known, rate=rate, totals=totals)
                    made += 1
            self._check_weights(made)
        except BaseException:
            self._restore(before)
            raise
        self.model.encoder.forget()
        self.updates += 1
        if self.settings.reference == "moving" and self.updates % self.settings.reference_every == 0:
            self.move_reference()
        steps = [step for one in trajectories for step in one.steps]
        return UpdateStats(
            update=self.updates,
            trajectories=sum(1 for one in trajectories if one.steps),
            steps=len(steps),
            tokens=plan.tokens,
            computed=computed,
            prompt_tokens=sum(len(step.prompt_ids) for step in steps),
            completion_tokens=sum(len(step.token_ids) for step in steps),
            seconds=time.perf_counter() - began,
            values={name: value / made for name, value in totals.items()} | {"lr": rate},
        )

    def _rate(self, lr: float | None) -> float:
        rate = self.settings.lr if lr is None else lr
        if not 0 <= rate <= MAX_RATE:
            raise BadLearner(f"learning rate: got {rate}, 0 to {MAX_RATE:g} is allowed")
        return rate * min((self.updates + 1) / (self.settings.warmup + 1), 1.0)

    def _before(self, plan: Plan, rounds: Sequence[Sequence[Use]]) -> dict[int, Any]:
        """Return the choices' log-probabilities at the start, by decision, where the weights move before they are
        used; where there is one step alone, they are those that the step computes."""
        if len(rounds) <= 1:
            return {}
        used = sorted({use.decision for uses in rounds for use in uses})
        return dict(self._each(plan.decisions, used))

    def _score(self, one: Pass) -> Scores:
        return score(
            self.model.module,
            one,
            device=self.model.device,
            precision=self.model.precision(),
            learn_entropy=self.settings.loss.entropy > 0,
        )

    def _each(self, decisions: Sequence[Decision], wanted: Sequence[int]) -> Iterator[tuple[int, Any]]:
        import torch

        with torch.no_grad():
            for one, members in laid_out(decisions, wanted, self.settings):
                scores = self._score(one)
                for at, index in enumerate(members):
                    yield index, scores.logprobs[one.starts[at] : one.starts[at + 1]]

    def _step(
        self, work: Sequence[Planned], known: dict[int, Any], *, rate: float, totals: dict[str, float]
    ) -> int:
        """Make one step of the optimiser, and return how many tokens were computed."""
        import torch

        self._optimizer.zero_grad(set_to_none=True)
        computed, parts = 0, defaultdict[str, float](float)
        for planned in work:
            loss, stats = self._loss(planned, known)
            self._finite("loss", float(loss.detach()))
            loss.backward()
            computed += planned.one.nodes
            for name, value in stats.items():
                parts[name] += float(value)
        most = self.settings.max_grad_norm or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(list(self.model.trained.values()), most))
        self._finite("gradient's norm", norm)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if self._average is not None:
            with torch.no_grad():
                for name, weight in self.model.trained.items():
                    self._average[name].lerp_(weight.detach(), 1 - self.settings.average)
        weighed = parts.pop("weight")
        for name, value in parts.items():
            totals[name] += value if name in SUMS else value / weighed
        totals["grad_norm"] += norm
        return computed

    def _finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            raise NotFinite(
                f"update {self.updates + 1}: the {what} is {value}; the weights before the update are kept"
            )

    def _check_weights(self, made: int) -> None:
        import torch

        if made and not all(bool(torch.isfinite(one).all()) for one in self.model.trained.values()):
            self._finite("weights' size", math.inf)

    def _snapshot(self) -> dict[str, Any]:
        """Return all that a step changes, so that an update is whole or is not."""
        return {
            "weights": self.model.copy(),
            "optimizer": copy.deepcopy(self._optimizer.state_dict()),
            "average": None
            if self._average is None
            else {n: one.clone() for n, one in self._average.items()},
        }

    def _restore(self, before: dict[str, Any]) -> None:
        import torch

        self._optimizer.zero_grad(set_to_none=True)
        self._optimizer.load_state_dict(before["optimizer"])
        self._average = before["average"]
        with torch.no_grad():
            for name, one in self.model.trained.items():
                one.copy_(before["weights"][name])

    def _loss(self, planned: Planned, known: dict[int, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the loss of a pass: each choice once for every use of its decision."""
        import torch

        settings, device, one = self.settings.loss, self.model.device, planned.one
        reference = kl = None
        if self._reference is not None:
            with torch.no_grad(), self.model.with_weights(self._reference):
                reference = self._score(one)
        scores = self._score(one)
        if reference is not None and settings.kl_kind == "exact":
            kl = exact_kl(scores, reference, one)
        gather, advantages, weights, sampler = planned.spread()
        index = torch.from_numpy(gather).to(device)

        def spread(values: Any) -> Any:
            return None if values is None else values[index]

        new = spread(scores.logprobs)
        old = torch.cat([known[at] for at in planned.decisions])[index] if known else new.detach()
        drawn = torch.from_numpy(sampler).to(device, new.dtype)
        unknown = torch.isnan(drawn)
        weighing = torch.from_numpy(weights).to(device, new.dtype)
        loss, stats = grpo_loss(
            new,
            old,
            torch.from_numpy(advantages).to(device, new.dtype),
            weighing,
            settings,
            sampler=torch.where(unknown, old, drawn),
            reference=spread(None if reference is None else reference.logprobs),
            kl=spread(kl),
            entropy=spread(scores.entropy),
        )
        gap = (weighing * torch.where(unknown, 0.0, (old - drawn).abs())).sum()
        return loss, stats | {"loss": loss.detach(), "gap": gap.detach(), "weight": weighing.sum()}

    @contextmanager
    def _weights(self, *, averaged: bool, reference: bool) -> Iterator[None]:
        wanted = self._average if averaged else self._reference if reference else None
        if (averaged or reference) and wanted is None:
            raise BadLearner(f"the learner keeps no {'averaged weights' if averaged else 'reference'}")
        with self.model.with_weights(wanted):
            yield

    def logprobs(
        self,
        asked: Sequence[tuple[Sequence[int], Sequence[int], Constraint | None]],
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        averaged: bool = False,
        reference: bool = False,
    ) -> list[list[float]]:
        """Return the log-probability of each token of completions; 0 where it was the only one allowed.

        Args:
            asked: prompt, completion and what it was held to.
            temperature, top_p: of the distribution.
            averaged, reference: compute with the averaged weights, or the reference.

        Raises `BadRollout` for tokens that were not allowed.
        """
        places: dict[Asked, int] = {}
        decisions: list[Decision] = []
        order = []
        for prompt, tokens, constraint in asked:
            key = asked_of(prompt, tokens, constraint, temperature=temperature, top_p=top_p)
            if key not in places:
                places[key] = len(decisions)
                decisions.append(self.model.encoder.decide(key, constraint))
            order.append(places[key])
        with self._weights(averaged=averaged, reference=reference):
            known = {index: values.tolist() for index, values in self._each(decisions, range(len(decisions)))}
        found = []
        for index in order:
            row = [0.0] * len(decisions[index].asked.token_ids)
            for choice, value in zip(decisions[index].chosen, known.get(index, ()), strict=True):
                row[choice.place] = value
            found.append(row)
        return found

    def spell(self, choices: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
        """Return every completion that spells one of `choices`, with its text; raises as `probabilities`."""
        return spellings(self.model.encoder.guides, tuple(choices))

    def probabilities(
        self,
        asked: Sequence[tuple[Sequence[int], Sequence[str]]],
        *,
        temperature: float = 1.0,
        averaged: bool = False,
        reference: bool = False,
    ) -> list[list[float]]:
        """Return the probability of each choice, exactly: over all the ways to spell it in tokens.

        Args:
            asked: prompts and the choices that answers are held to.
            temperature, averaged, reference: as of `logprobs`.

        Raises `TrainingError` for choices of too many spellings, `BadModel` where the model cannot write one.
        """
        questions: list[tuple[Sequence[int], Sequence[int], Constraint | None]] = []
        owners: list[tuple[int, int]] = []
        for place, (prompt, choices) in enumerate(asked):
            constraint = Constraint(choices=tuple(choices))
            for text, tokens in self.spell(choices):
                questions.append((prompt, tokens, constraint))
                owners.append((place, choices.index(text)))
        found = [[0.0] * len(choices) for _, choices in asked]
        values = self.logprobs(questions, temperature=temperature, averaged=averaged, reference=reference)
        for (place, choice), row in zip(owners, values, strict=True):
            found[place][choice] += math.exp(sum(row))
        return found

    def move_reference(self) -> None:
        """Let the reference be the weights of now."""
        if self._reference is None:
            raise BadLearner("learner reference: got 'none', there is nothing to move")
        self._reference = self.model.copy()

    def save(self, folder: Path, *, averaged: bool = False) -> None:
        """Write the LoRA adapter or the whole model to `folder`, as `AdapterStore.publish` takes it.

        Raises `CheckpointFailed`, or `BadLearner` where no averaged weights are kept.
        """
        with self._weights(averaged=averaged, reference=False):
            self.model.save(folder)

    def publish(self, store: AdapterStore, name: str, *, parent: str = "", averaged: bool = False) -> Adapter:
        """Publish the weights of now as the next version of `name`, and return it.

        Raises `CheckpointFailed` where the disk refuses, `BadAdapter` for a name that none can have.
        """
        import tempfile

        try:
            store.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".learner-", dir=store.root) as made:
                self.save(Path(made), averaged=averaged)
                return store.publish(name, Path(made), base=self.base, parent=parent)
        except OSError as error:
            raise CheckpointFailed(
                f"{store.root}: {name} cannot be published: {error.strerror or error}"
            ) from None

    def save_state(self, folder: Path) -> None:
        """Write all that `load_state` needs to go on exactly from here. Raises `CheckpointFailed`."""
        import torch

        state = {
            "format": FORMAT,
            "base": self.base,
            "weights": self.settings.weights,
            "updates": self.updates,
            "seed": self.seed,
            "trained": {name: one.detach() for name, one in self.model.trained.items()},
            "optimizer": self._optimizer.state_dict(),
            "reference": self._reference,
            "average": self._average,
        }
        written = io.BytesIO()
        torch.save(state, written)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / STATE).write_bytes(written.getbuffer())
        except OSError as error:
            raise CheckpointFailed(
                f"{folder / STATE}: cannot be written: {error.strerror or error}"
            ) from None

    def load_state(self, folder: Path) -> None:
        """Go on from what `save_state` wrote. Raises `BadCheckpoint`, and nothing is changed then."""
        import torch

        path = folder / STATE
        try:
            state = torch.load(path, map_location=self.model.device, weights_only=True)
            if state["format"] != FORMAT:
                raise BadCheckpoint(
                    f"{path}: it is of format {state['format']}, this version reads {FORMAT}: begin a new run"
                )
            if (state["base"], state["weights"]) != (self.base, self.settings.weights):
                raise BadCheckpoint(
                    f"{path}: it is of {state['base']} ({state['weights']}), the learner is of {self.base} "
                    f"({self.settings.weights})"
                )
            trained, own = state["trained"], self.model.trained
            if {k: v.shape for k, v in trained.items()} != {k: v.shape for k, v in own.items()}:
                raise BadCheckpoint(f"{path}: its weights have other shapes than the learner's")
            optimizer, updates, seed = state["optimizer"], int(state["updates"]), int(state["seed"])
            reference, average = state["reference"], state["average"]
        except BadCheckpoint:
            raise
        except OSError as error:
            raise BadCheckpoint(f"{path}: cannot be read: {error.strerror or error}") from None
        except Exception as error:
            raise BadCheckpoint(f"{path}: cannot be read: {one_line(error)}") from None
        try:
            self._optimizer.load_state_dict(optimizer)
        except (ValueError, KeyError, TypeError) as error:
            raise BadCheckpoint(f"{path}: its optimiser cannot be read: {one_line(error)}") from None
        with torch.no_grad():
            for name, one in own.items():
                one.copy_(trained[name])
        self.updates, self.seed = updates, seed
        # A run may be resumed under other settings: what they ask for and the state lacks begins now.
        if self.settings.reference != "none":
            self._reference = reference or self.model.copy()
        if self.settings.average:
            self._average = average or self.model.copy()
