"""Advantages: how much better a trajectory came out than those it may be compared with, for each of its steps.

Source: Shao et al., "DeepSeekMath" (2024), for advantages relative to a group (GRPO); Liu et al., "Understanding
R1-Zero-like Training" (2025), for leaving the standard deviation out.
"""

import math
from collections.abc import Callable, Sequence

from agents.errors import NotFinite, TrainingError
from agents.training.groups import Baselines, Group, form_groups
from agents.training.settings import AdvantageSettings
from agents.training.trajectories import Trajectory

Process = Callable[[Sequence[float], Sequence[Sequence[float]]], list[list[float]]]
"""From a group's outcome advantages and its steps' labels or credits to the advantages of its steps."""

TINY = 1e-9
"""A standard deviation below it is that of rounding."""


def advantages(
    trajectories: Sequence[Trajectory],
    *,
    settings: AdvantageSettings,
    outcomes: Sequence[float] | None = None,
    labels: Sequence[Sequence[float]] | None = None,
    process: Process | None = None,
    baselines: Baselines | None = None,
) -> list[list[float]]:
    """Return the advantage of every step of every trajectory.

    Args:
        trajectories: of one batch; they are grouped by `agents.training.groups.form_groups`.
        settings: baseline, scale and the price of failures.
        outcomes: in place of the trajectories' own: a seat's share of its team's result, for instance.
        labels: of each trajectory's steps; used by `process` alone, such as `agents.credit.adca.fuse`.
        process: fuses them with the outcomes; without it all steps of a trajectory have its outcome's advantage.
        baselines: running ones, for groups of a single match; they are read before they take the batch in.

    Without anything to compare it with, a trajectory's advantage is 0. Raises `NotFinite` for an outcome that is no
    finite number, `TrainingError` for labels that do not fit the steps.
    """
    if (labels is None) != (process is None):
        raise TrainingError(
            "advantages: labels and the process that fuses them are given together, or neither"
        )
    results = [one.outcome for one in trajectories] if outcomes is None else list(outcomes)
    _check(trajectories, results, labels)
    results = [
        value - settings.failure_penalty * one.failures
        for value, one in zip(results, trajectories, strict=True)
    ]
    groups = form_groups(trajectories, by_deal=settings.by_deal, least=settings.least)
    plain = [0.0] * len(trajectories)
    for group in groups:
        for place, value in zip(group.members, _compared(group, results, settings, baselines), strict=True):
            plain[place] = value
    if baselines is not None:
        for group in groups:
            baselines.add(group, [results[place] for place in group.members])
    if settings.scale == "batch":
        spread = math.sqrt(sum(value * value for value in plain) / max(len(plain), 1))
        plain = [value / spread if spread > TINY else 0.0 for value in plain]
    if labels is None or process is None:
        return [[value] * len(one.steps) for value, one in zip(plain, trajectories, strict=True)]
    found: list[list[float]] = [[] for _ in trajectories]
    for group in groups:
        given = [labels[place] for place in group.members]
        for place, steps in zip(
            group.members, process([plain[place] for place in group.members], given), strict=True
        ):
            found[place] = list(steps)
    return found


def _compared(
    group: Group, results: Sequence[float], settings: AdvantageSettings, baselines: Baselines | None
) -> list[float]:
    own = [results[place] for place in group.members]
    if group.matches < 2:
        known = None if baselines is None else baselines.of(group)
        if known is None:
            return [0.0] * len(own)
        mean, spread = known
        return [_scaled(value - mean, spread, settings) for value in own]
    mean = sum(own) / len(own)
    spread = math.sqrt(sum((value - mean) ** 2 for value in own) / len(own))
    if spread <= TINY:
        return [0.0] * len(own)
    rest = len(own) / (len(own) - 1) if settings.baseline == "leave-one-out" else 1.0
    return [_scaled((value - mean) * rest, spread, settings) for value in own]


def _scaled(value: float, spread: float, settings: AdvantageSettings) -> float:
    if settings.scale != "group":
        return value
    return value / spread if spread > TINY else 0.0


def _check(
    trajectories: Sequence[Trajectory], results: Sequence[float], labels: Sequence[Sequence[float]] | None
) -> None:
    if len(results) != len(trajectories) or (labels is not None and len(labels) != len(trajectories)):
        raise TrainingError(
            f"advantages: {len(trajectories)} trajectories, {len(results)} outcomes and "
            f"{'no' if labels is None else len(labels)} labels do not fit together"
        )
    for place, (one, value) in enumerate(zip(trajectories, results, strict=True)):
        if not math.isfinite(value):
            raise NotFinite(f"match {one.match or '?'}, seat {one.seat}: the outcome is {value}")
        if labels is not None and len(labels[place]) != len(one.steps):
            raise TrainingError(
                f"match {one.match or '?'}, seat {one.seat}: {len(labels[place])} labels for {len(one.steps)} steps"
            )
