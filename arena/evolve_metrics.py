"""What a run of `arena evolve` came to, in figures: one JSON document, read off the log alone."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes, by_dimension
from agents.curriculum.metrics import Share, diversity, first_try, fixed_success, retention, weakest_of
from agents.curriculum.rows import AttemptRow, SkillProfile, TaskRow
from agents.curriculum.shift import compare
from agents.curriculum.switch import sort
from arena.evolve_figures import lesson_figures, proposer_figures
from arena.evolve_log import Entry, State
from games.tasks.spec import DIMENSIONS

BUCKETS = 40
"""Stretches into which a run is cut for the plots."""
SHIFT_ROWS = 200
ROLLING = 30
"""Training attempts at a skill over which its success is drawn."""


def metrics(
    state: State, entries: Sequence[Entry], *, waiting: dict[str, int], disputed: Sequence[str]
) -> dict[str, Any]:
    """Return the figures of a run.

    Args:
        state: of the run.
        entries: the log of its generations in force.
        waiting: the counts of the person's queue.
        disputed: tasks about which a person and the rules disagree.
    """
    config = CurriculumConfig.model_validate(state.current.config["curriculum"])
    axes = Axes(config.scales)
    rows = [row for entry in entries for row in entry.attempts]
    tasks = [row for entry in entries for row in entry.tasks]
    own = [row for row in rows if row.purpose in ("train", "review")]
    probes = [row for row in rows if row.purpose == "probe"]
    levels = state.current.config["probe"]["levels"]
    sorted_rows = sort(rows, config.switch, suspects=set(disputed))
    reasons = Counter(why for entry in entries for why in entry.quarantined.values())
    refused: Counter[str] = Counter()
    for entry in entries:
        refused.update(entry.refused)
    return {
        "run": state.current.config["name"],
        "actor": state.current.config["actor"],
        "config": state.current.digest,
        "curriculum": config.digest,
        "generations": len(entries),
        "tasks": len([row for row in tasks if row.purpose != "test"]),
        "attempts": len(rows),
        "seconds": state.seconds,
        "success": {
            "train": Share.of([row for row in rows if row.purpose == "train"]).to_data(),
            "latest": Share.of([row for row in rows if row.purpose == "train"][-SHIFT_ROWS:]).to_data(),
            "fixed": {
                f"{level:g}": {
                    "first": fixed_success(_first(probes), axes, level=level).to_data(),
                    "latest": fixed_success(_latest(probes), axes, level=level).to_data(),
                }
                for level in levels
            },
            "first_try": first_try(own, axes).to_data(),
            "retention": retention(own, rest=config.review.idle).to_data(),
            "test_set": Share.of([row for row in rows if row.purpose == "test"]).to_data(),
        },
        "profile": _profile(own),
        "frontier": _frontier(entries),
        "diversity": diversity(tasks, axes, weakest=_weakest(own), last=200).to_data(),
        "histograms": _histograms(tasks, config),
        "by_dimension": {
            name: [
                {"low": b.low, "high": b.high, "attempts": b.tasks, "successes": b.successes} for b in bins
            ]
            for name, bins in by_dimension(own, config.scales).items()
        },
        "shift": _shift(rows, axes),
        "strategies": dict(Counter(row.strategy for row in tasks)),
        "refused": dict(refused),
        "proposer": proposer_figures(entries),
        "lessons": lesson_figures(entries),
        "training": {
            "may_train": len(sorted_rows.train),
            "held_out": len(sorted_rows.held_out),
            "quarantined": len(sorted_rows.quarantined),
            "quarantined_tasks": dict(reasons),
        },
        "alerts": [{"generation": entry.generation, **alert} for entry in entries for alert in entry.alerts],
        "faults": sum(len(entry.faults) for entry in entries),
        "judge": {
            "version": state.current.judge,
            "regression": state.regression,
            "queue": waiting,
            "disputed_tasks": list(disputed),
        },
        "bundles": [
            {key: value for key, value in bundle.to_data().items() if key != "config"}
            for bundle in state.bundles
        ],
        "bundle": state.bundle,
        "rollbacks": state.rollbacks,
        "series": _series(entries, axes, levels),
    }


def _first(rows: Sequence[AttemptRow]) -> list[AttemptRow]:
    return list(rows[: max(1, len(rows) // 4)])


def _latest(rows: Sequence[AttemptRow]) -> list[AttemptRow]:
    return list(rows[-max(1, len(rows) // 4) :])


def _profile(rows: Sequence[AttemptRow]) -> list[dict[str, Any]]:
    found = []
    for skill in sorted({row.skill for row in rows}):
        own = [row for row in rows if row.skill == skill]
        found.append({"skill": skill, **Share.of(own).to_data()})
    return found


def _weakest(rows: Sequence[AttemptRow]) -> str | None:
    profiles = [
        SkillProfile(skill, len(own), sum(row.success for row in own) / len(own), (), own[-1].number)
        for skill in sorted({row.skill for row in rows})
        if (own := [row for row in rows if row.skill == skill])
    ]
    return weakest_of(profiles)


def _frontier(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return where each skill's edge of ability was at first and is now, in levels."""
    if not entries:
        return {}
    first, last = entries[0].standing, entries[-1].standing
    truth, began = entries[-1].truth or {}, entries[0].truth or {}
    return {
        skill: {
            "first": first[skill][0],
            "latest": last[skill][0],
            "target": last[skill][1],
            **({"true_first": began[skill], "true_latest": truth[skill]} if skill in truth else {}),
        }
        for skill in sorted(last)
        if skill in first
    }


def _histograms(tasks: Sequence[TaskRow], config: CurriculumConfig) -> dict[str, Any]:
    """Return how tasks lie along each dimension: those of the first and of the last third of the run."""
    own = [row for row in tasks if row.purpose == "train"]
    third = max(1, len(own) // 3)
    axes = Axes(config.scales)
    early, late = (
        diversity(part, axes, weakest=None, last=len(own) or 1).histograms
        for part in (own[:third], own[-third:])
    )
    return {
        name: [
            {"low": a.low, "high": a.high, "first": a.tasks, "latest": b.tasks}
            for a, b in zip(early[name], late[name], strict=True)
        ]
        for name in early
    }


def _shift(rows: Sequence[AttemptRow], axes: Axes) -> dict[str, Any] | None:
    """Return what changed over the latest attempts: the tasks, or the agent?"""
    plain = [row for row in rows if row.purpose in ("train", "probe")]
    size = min(SHIFT_ROWS, len(plain) // 2)
    if size < 1:
        return None
    return compare(plain[-2 * size : -size], plain[-size:], axes).to_data()


def _series(entries: Sequence[Entry], axes: Axes, levels: Sequence[float]) -> list[dict[str, Any]]:
    """Return the run in stretches of generations, oldest first: what the plots show."""
    size = max(1, -(-len(entries) // BUCKETS))
    latest: dict[str, deque[bool]] = {}
    found = []
    for i in range(0, len(entries), size):
        part = entries[i : i + size]
        for entry in part:
            for row in entry.attempts:
                if row.purpose == "train":
                    latest.setdefault(row.skill, deque(maxlen=ROLLING)).append(row.success)
        success = {skill: sum(latest[skill]) / len(latest[skill]) for skill in sorted(latest)}
        found.append({**_stretch(part, axes, levels), "success": success})
    return found


def _stretch(entries: Sequence[Entry], axes: Axes, levels: Sequence[float]) -> dict[str, Any]:
    rows = [row for entry in entries for row in entry.attempts]
    tasks = [row for entry in entries for row in entry.tasks if row.purpose == "train"]
    train = [row for row in rows if row.purpose == "train"]
    probes = [row for row in rows if row.purpose == "probe"]
    skills = sorted(entries[-1].standing)
    counts = Counter(row.skill for row in tasks)
    return {
        "generation": entries[-1].generation,
        "attempts": len(rows),
        "level": {
            skill: _mean([axes.level(row.difficulty) for row in tasks if row.skill == skill])
            for skill in skills
        },
        "ability": {skill: entries[-1].standing[skill][0] for skill in skills},
        "truth": entries[-1].truth,
        "overall": Share.of(train).value,
        "mean_level": _mean([axes.level(row.difficulty) for row in tasks]),
        "fixed": {f"{level:g}": fixed_success(probes, axes, level=level).value for level in levels},
        "similarity": _mean([row.similarity for row in tasks]),
        "highest_similarity": max((row.similarity for row in tasks), default=None),
        "combinations": len({axes.combination(row.skill, row.difficulty) for row in tasks}),
        "difficulty": {
            name: _mean([row.difficulty[place] for row in tasks]) for place, name in enumerate(DIMENSIONS)
        },
        "strategies": dict(Counter(row.strategy for row in tasks)),
        "largest_share": max(counts.values(), default=0) / len(tasks) if tasks else None,
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
