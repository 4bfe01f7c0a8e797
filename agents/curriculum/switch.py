"""Which attempts may train, and which are quarantined. Pure functions over rows and the `[switch]` of the config."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from agents.curriculum.config import Switch
from agents.curriculum.rows import AttemptRow


@dataclass(frozen=True, slots=True)
class Sorted:
    """Attempts by what they may be used for."""

    train: tuple[AttemptRow, ...]
    held_out: tuple[AttemptRow, ...]
    """Tests and probes: never to be trained on, and nothing wrong with them."""
    quarantined: tuple[tuple[AttemptRow, str], ...]
    """With the reason, in words."""


def reason_not_to_train(row: AttemptRow, switch: Switch, *, suspects: Collection[str] = ()) -> str | None:
    """Return why an attempt may not train, or None if it may. `suspects` are hashes from `hopeless` or a judge."""
    if not switch.train:
        return "training is switched off"
    if row.task in switch.quarantined_tasks:
        return f"task {row.task[:12]} is quarantined"
    if row.generator in switch.quarantined_generators:
        return f"generator {row.generator} is quarantined"
    if row.judge in switch.quarantined_judges:
        return f"judge {row.judge} is quarantined"
    if switch.skills is not None and row.skill not in switch.skills:
        return f"skill {row.skill} does not train"
    if row.task in suspects:
        return f"task {row.task[:12]} is suspect"
    return None


def hopeless(rows: Iterable[AttemptRow], switch: Switch) -> frozenset[str]:
    """Return tasks that were attempted `hopeless_after` times or more and never solved."""
    tried: Counter[str] = Counter()
    solved = set()
    for row in rows:
        tried[row.task] += 1
        if row.success:
            solved.add(row.task)
    return frozenset(
        task for task, count in tried.items() if count >= switch.hopeless_after and task not in solved
    )


def sort(rows: Sequence[AttemptRow], switch: Switch, *, suspects: Collection[str] = ()) -> Sorted:
    """Sort attempts: what may train, what is held out, what is quarantined and why; hopeless tasks are suspects."""
    doubted = {*suspects, *hopeless(rows, switch)}
    train, held_out, quarantined = [], [], []
    for row in rows:
        if row.purpose in ("test", "probe"):
            held_out.append(row)
        elif reason := reason_not_to_train(row, switch, suspects=doubted):
            quarantined.append((row, reason))
        else:
            train.append(row)
    return Sorted(tuple(train), tuple(held_out), tuple(quarantined))
