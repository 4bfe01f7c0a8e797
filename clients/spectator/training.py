"""What a run of training says of itself, read from its folder as plain data while it goes on.

`run.json` says what it is, and each line of `metrics.jsonl` what happened: see docs/training.md. A line that is being
written is left for the next look.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

RUN_FILE = "run.json"
METRICS = "metrics.jsonl"
ROLLOUTS = "rollouts"
BLOCKS = "▁▂▃▄▅▆▇█"

FIGURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("return", ("return",)),
    ("success", ("success",)),
    ("steps", ("length",)),
    ("failed answers", ("failures",)),
    ("tasks solved", ("tasks", "success")),
    ("KL from reference", ("learner", "kl")),
    ("KL of an update", ("learner", "drift")),
    ("entropy", ("learner", "entropy")),
    ("loss", ("learner", "loss")),
    ("gradient", ("learner", "grad_norm")),
    ("learning rate", ("learner", "lr")),
    ("seconds", ("time", "all")),
)
"""Of an update's line: what it is called, and where it stands."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the screen: what it is, its latest value, and all of them in order."""

    name: str
    latest: float
    values: tuple[float, ...]


@dataclass(slots=True)
class Training:
    """A run as far as it has come."""

    name: str = ""
    updates: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    alarms: list[dict[str, Any]] = field(default_factory=list)
    stopped: str = ""
    """Why it ended; empty while it goes on."""

    def head(self) -> str:
        """Return how far it has come, in a line."""
        last = self.updates[-1] if self.updates else {}
        where = f"{last.get('update', 0)} updates, {last.get('matches', 0)} matches"
        time = f"{float(last.get('seconds', 0.0)):.0f} s"
        return f"{self.name}: {where}, {time}{f', stopped by {self.stopped}' if self.stopped else ''}"

    def figures(self) -> list[Figure]:
        """Return what is known of updates and evaluations, the measured first."""
        return [
            *_evaluated(self.evaluations),
            *_of(self.updates, FIGURES),
            *_of(self.updates, _roles(self.updates)),
        ]


def is_training(folder: Path) -> bool:
    """Whether a folder is that of a run of training."""
    try:
        told = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and told.get("kind") == "train"


def read_training(folder: Path) -> Training:
    """Return the run in a folder as it stands now; what cannot be read is left out."""
    found = Training(name=folder.name)
    try:
        text = (folder / METRICS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return found
    for one in text.split("\n"):
        try:
            line = json.loads(one)
        except ValueError:
            continue
        if not isinstance(line, dict):
            continue
        match line.get("kind"):
            case "update":
                found.updates.append(line)
            case "evaluation":
                found.evaluations.append(line)
            case "alarm":
                found.alarms.append(line)
            case "stop":
                found.stopped = str(line.get("why", ""))
            case "start" | "resume":
                found.stopped = ""
    return found


def spark(values: Sequence[float], *, cells: int) -> str:
    """Return values as a row of blocks, low to high; of more values than cells each block is the mean of some."""
    if not values or cells <= 0:
        return ""
    count = min(cells, len(values))
    bounds = [len(values) * place // count for place in range(count + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(bounds)]
    low, high = min(means), max(means)
    if high == low:
        return BLOCKS[3] * count
    top = len(BLOCKS) - 1
    return "".join(BLOCKS[round((mean - low) / (high - low) * top)] for mean in means)


def _evaluated(lines: Sequence[Mapping[str, Any]]) -> list[Figure]:
    games = sorted({str(game) for line in lines for game in line.get("nash_conv") or ()})
    paths: list[tuple[str, tuple[Any, ...]]] = [
        (f"NashConv at {game}", ("nash_conv", game)) for game in games
    ]
    named: dict[str, tuple[Any, ...]] = {}
    for line in lines:
        for place, one in enumerate(line.get("against") or ()):
            if isinstance(one, Mapping):
                named.setdefault(
                    f"{one.get('game')} against {one.get('opponent')}", ("against", place, "score")
                )
    tasks = [
        ("validation tasks solved", ("tasks", "success")),
        ("solved tasks solved again", ("tasks", "retention", "success")),
    ]
    return list(_of(lines, [*paths, *named.items(), *tasks]))


def _roles(lines: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    roles = sorted({str(role) for line in lines for role in line.get("by_role") or ()})
    return [(f"return, {role}", ("by_role", role)) for role in roles]


def _of(lines: Sequence[Mapping[str, Any]], paths: Sequence[tuple[str, tuple[Any, ...]]]) -> Iterator[Figure]:
    for name, path in paths:
        values = tuple(value for line in lines if (value := _at(line, path)) is not None)
        if values:
            yield Figure(name, values[-1], values)


def _at(line: Any, path: Sequence[Any]) -> float | None:
    for part in path:
        try:
            line = line[part]
        except (KeyError, IndexError, TypeError):
            return None
    return float(line) if isinstance(line, int | float) and not isinstance(line, bool) else None
