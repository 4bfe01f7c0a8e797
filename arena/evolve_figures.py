"""Figures of a run's proposer and of its lessons, read off the log alone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agents.curriculum.metrics import Share
from agents.memory.usefulness import Arms, Gain, gain
from arena.evolve_lessons import Tallies
from arena.evolve_log import Entry

SHOWN_LESSONS = 40
"""Lessons in the table: those that were told most often."""
COUNTED = ("made", "revived", "retired", "merged", "evicted")


def proposer_figures(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Return what the proposer was asked for and what came of it; None where there was none.

    `success` is that of training attempts at its tasks, `others` that of those at all other tasks.
    """
    told = [entry.proposals for entry in entries if entry.proposals]
    if not told:
        return None
    versions = {one["version"] for one in told}
    refused: Counter[str] = Counter()
    for one in told:
        refused.update(one["refused"])
    rows = [row for entry in entries for row in entry.attempts if row.purpose == "train"]
    own = [row for row in rows if row.generator in versions]
    return {
        "version": told[-1]["version"],
        **{
            name: sum(one[name] for one in told)
            for name in ("numbers", "tries", "accepted", "test", "failed")
        },
        "refused": dict(refused),
        "success": Share.of(own).to_data(),
        "others": Share.of([row for row in rows if row.generator not in versions]).to_data(),
    }


def lesson_figures(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return what was learnt, told and given up, and what it gained, each gain with its 95 % interval."""
    tallies = Tallies()
    counts: Counter[str] = Counter()
    state: dict[str, str] = {}
    active = 0
    for entry in entries:
        log = entry.lessons
        tallies.fold(log, {row.number: row.success for row in entry.attempts})
        counts.update({name: len(log.get(name, ())) for name in COUNTED})
        active = log.get("active", active)
        _keep_state(state, log)
    overall = tallies.overall
    ranked = sorted(tallies.strata, key=lambda key: (-tallies.arms(key).with_attempts, key))
    return {
        "active": active,
        **{name: counts[name] for name in COUNTED},
        "retired_for": dict(
            Counter(why for entry in entries for why in entry.lessons.get("retired", {}).values())
        ),
        "found_for": overall.with_attempts + overall.without_attempts,
        "advised": Share(overall.with_attempts, overall.with_successes).to_data(),
        "control": Share(overall.without_attempts, overall.without_successes).to_data(),
        "gain": _gain(gain([overall])),
        "table": [
            {
                "id": key,
                "text": tallies.texts.get(key, ""),
                "status": state.get(key, "active"),
                **_arms(tallies.arms(key)),
                "gain": _gain(tallies.gain(key)),
            }
            for key in ranked[:SHOWN_LESSONS]
        ],
    }


def _keep_state(state: dict[str, str], log: Mapping[str, Any]) -> None:
    for name, word in (
        ("revived", "active"),
        ("retired", "retired"),
        ("merged", "merged"),
        ("evicted", "evicted"),
    ):
        state.update(dict.fromkeys(log.get(name, ()), word))


def _arms(arms: Arms) -> dict[str, Any]:
    return {
        "offers": arms.with_attempts,
        "with": Share(arms.with_attempts, arms.with_successes).value,
        "held_back": arms.without_attempts,
        "without": Share(arms.without_attempts, arms.without_successes).value,
    }


def _gain(found: Gain | None) -> dict[str, Any] | None:
    return None if found is None else {"value": found.value, "interval": list(found.interval)}
