"""The plan of an update: which completions are computed, what each step of the optimiser learns from them, and where.

Equal completions are one decision with many uses. Each use has its trajectory's advantage and weight.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.errors import NotFinite, TrainingError
from agents.policy.base import Constraint
from agents.training.batches import Asked, Decision, Floats, Ints, Pass, passes
from agents.training.loss import token_weights
from agents.training.settings import LearnerSettings
from agents.training.trajectories import Step, Trajectory

Decide = Callable[[Asked, Constraint | None], Decision]


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a decision occurs: what is to be learned from it there.

    Args:
        decision: its index.
        advantage: of its step.
        weight: of each of its choices in the loss.
        sampler: log-probabilities with which its choices were drawn; empty where the prompt is not the one that they
            were drawn under.
    """

    decision: int
    advantage: float
    weight: float
    sampler: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A forward pass, the decisions in it, and how each is used."""

    one: Pass
    decisions: list[int]
    uses: list[list[Use]]

    def spread(self) -> tuple[Ints, Floats, Floats, Floats]:
        """Return, for every use of every choice: the choice's index in the pass, the advantage, the weight, and the
        log-probability it was drawn with, NaN where that is not known."""
        gather: list[Ints] = []
        advantages: list[float] = []
        weights: list[float] = []
        sampler: list[float] = []
        for at, own in enumerate(self.uses):
            first, last = int(self.one.starts[at]), int(self.one.starts[at + 1])
            size = last - first
            for use in own:
                gather.append(np.arange(first, last, dtype=np.int64))
                advantages += [use.advantage] * size
                weights += [use.weight] * size
                sampler += use.sampler or [math.nan] * size
        return np.concatenate(gather), np.array(advantages), np.array(weights), np.array(sampler)


@dataclass(slots=True)
class Plan:
    """What an update computes.

    Args:
        settings: the learner's.
        trajectories: to learn from.
        advantages: of their steps.
        decide: finds the choices in a completion.
        seed: numbers from which the order within an epoch follows.

    Raises `TrainingError` for advantages that do not fit the steps, `NotFinite`, `BadRollout`.
    """

    settings: LearnerSettings
    trajectories: Sequence[Trajectory]
    advantages: Sequence[Sequence[float]]
    decide: Decide
    seed: tuple[int, ...]
    decisions: list[Decision] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)
    """Of each trajectory, the decisions of its steps."""

    def __post_init__(self) -> None:
        _check(self.trajectories, self.advantages)
        places: dict[Asked, int] = {}
        for one in self.trajectories:
            indices = []
            for step in one.steps:
                asked = asked_of_step(step)
                place = places.get(asked)
                if place is None:
                    place = places[asked] = len(self.decisions)
                    self.decisions.append(self.decide(asked, step.constraint))
                indices.append(place)
            self.found.append(indices)

    @property
    def tokens(self) -> int:
        """Return how many tokens were chosen in all completions."""
        return sum(len(self.decisions[index].chosen) for indices in self.found for index in indices)

    def rounds(self) -> list[list[Use]]:
        """Return what each step of the optimiser learns from, epoch after epoch; the weights of a step sum to 1."""
        settings, decisions = self.settings, self.decisions
        filled = [
            place
            for place, indices in enumerate(self.found)
            if any(decisions[index].chosen for index in indices)
        ]
        found = []
        for epoch in range(settings.epochs):
            order = filled
            if settings.steps > 1:
                shuffled = np.random.default_rng((*self.seed, epoch)).permutation(len(filled))
                order = [filled[at] for at in shuffled]
            parts = np.array_split(np.array(order, dtype=np.int64), settings.steps)
            found += [self._uses(part.tolist()) for part in parts if len(part)]
        return found

    def _uses(self, members: Sequence[int]) -> list[Use]:
        decisions = self.decisions
        sizes = [sum(len(decisions[index].chosen) for index in self.found[place]) for place in members]
        weights = token_weights(sizes, aggregate=self.settings.loss.aggregate)
        return [
            Use(index, advantage, weight, _sampled(step, decisions[index]))
            for place, weight in zip(members, weights, strict=True)
            for step, index, advantage in zip(
                self.trajectories[place].steps, self.found[place], self.advantages[place], strict=True
            )
            if decisions[index].chosen
        ]

    def passes(self, uses: Sequence[Use]) -> list[Planned]:
        """Return the forward passes for these uses.

        What has no advantage is not computed, unless something else is asked of it: it would change nothing.
        """
        loss = self.settings.loss
        everything = bool(loss.kl or loss.entropy)
        by_decision: dict[int, list[Use]] = defaultdict(list)
        for use in uses:
            by_decision[use.decision].append(use)
        wanted = [
            index
            for index, own in sorted(by_decision.items())
            if everything or any(use.advantage != 0.0 for use in own)
        ]
        return [
            Planned(one, members, [by_decision[index] for index in members])
            for one, members in laid_out(self.decisions, wanted, self.settings)
        ]


def laid_out(
    decisions: Sequence[Decision], wanted: Sequence[int], settings: LearnerSettings
) -> Iterator[tuple[Pass, list[int]]]:
    """Yield the forward passes that compute the `wanted` decisions, and which are in each."""
    chosen = [decisions[index] for index in wanted]
    for one in passes(
        chosen,
        max_tokens=settings.pass_tokens,
        max_decisions=settings.pass_decisions,
        least_tokens=settings.pass_least,
        max_trees=settings.pass_trees,
    ):
        yield one, [wanted[at] for at in one.decisions]


def asked_of(
    prompt: Sequence[int],
    tokens: Sequence[int],
    constraint: Constraint | None,
    *,
    temperature: float,
    top_p: float,
) -> Asked:
    """Return a completion's key: what it is computed once for."""
    choices = None if constraint is None else constraint.choices
    schema = "" if constraint is None or constraint.schema is None else repr(constraint.schema)
    return Asked(tuple(prompt), tuple(tokens), choices, schema, temperature, top_p)


def asked_of_step(step: Step) -> Asked:
    """Return the key of a step's completion."""
    return asked_of(
        step.prompt_ids, step.token_ids, step.constraint, temperature=step.temperature, top_p=step.top_p
    )


def _sampled(step: Step, decision: Decision) -> tuple[float, ...]:
    return () if step.stripped else tuple(step.logprobs[choice.place] for choice in decision.chosen)


def _check(trajectories: Sequence[Trajectory], advantages: Sequence[Sequence[float]]) -> None:
    if len(trajectories) != len(advantages):
        raise TrainingError(f"update: {len(trajectories)} trajectories, advantages of {len(advantages)}")
    for one, values in zip(trajectories, advantages, strict=True):
        where = f"match {one.match or '?'}, seat {one.seat}"
        if len(values) != len(one.steps):
            raise TrainingError(f"{where}: {len(values)} advantages for {len(one.steps)} steps")
        if not all(map(math.isfinite, values)):
            raise NotFinite(f"{where}: an advantage is no finite number; nothing is learned from the batch")
        for step in one.steps:
            if not all(map(math.isfinite, step.logprobs)):
                raise NotFinite(
                    f"{where}: a log-probability is no finite number; nothing is learned from the batch"
                )
