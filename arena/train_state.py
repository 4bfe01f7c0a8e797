"""What a run of `arena train` is besides its weights: counters, league, alarms; kept as plain data in checkpoints."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from agents.errors import BadCheckpoint
from agents.training.config import TrainConfig
from arena.errors import TrainError

RUN_FILE = "run.json"
FORMAT = 1
"""Of a run's folder; raised whenever an older one cannot be gone on with."""
KIND = "train"
NEEDED = frozenset({"name", "created", "digest", "model", "config"})
"""Of a run's file, beside its format and kind."""


@dataclass(slots=True)
class Progress:
    """The counters of a run.

    Args:
        update: updates so far.
        matches, failed: matches that were played, and those that gave nothing.
        attempts: at tasks.
        tokens: that the learner wrote in what it learned from.
        seconds: of all tries together.
        version: the adapter version of the weights of now; empty where they are not published yet.
        parent: the version before it.
        measured: the version of the averaged weights that was measured last; empty without averaging.
        published: versions of this run that are still on the disk.
        evaluated: the update after which it was measured last; -1 for never.
        metrics_bytes: the length of the metrics then.
    """

    update: int = 0
    matches: int = 0
    failed: int = 0
    attempts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    version: str = ""
    parent: str = ""
    measured: str = ""
    published: list[str] = field(default_factory=list)
    evaluated: int = -1
    metrics_bytes: int = 0

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read what `asdict` gave. Raises `BadCheckpoint`."""
        try:
            return cls(**data)
        except TypeError as error:
            raise BadCheckpoint(f"checkpoint: its counters cannot be read: {error}") from None

    def to_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def spent(self, config: TrainConfig) -> str | None:
        """Return which bound of the budget is reached, if any."""
        budget = config.budget
        if budget.limit_minutes is not None and self.seconds >= 60 * budget.limit_minutes:
            return "minutes"
        for name, bound, have in (
            ("matches", budget.matches, self.matches),
            ("tokens", budget.tokens, self.tokens),
            ("updates", budget.updates, self.update),
        ):
            if bound is not None and have >= bound:
                return name
        return None


def write_run(folder: Path, config: TrainConfig, *, model: str) -> None:
    """Write a run's `run.json`: what it is and what it was made with, whole or not at all."""
    path = folder / RUN_FILE
    created = datetime.now(UTC).isoformat(timespec="seconds")
    if path.exists():
        created = read_run(folder)["created"]
    told = {
        "format": FORMAT,
        "kind": KIND,
        "name": config.name,
        "created": created,
        "digest": config.digest,
        "model": model,
        "config": config.model_dump(mode="json"),
    }
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def read_run(folder: Path) -> dict[str, Any]:
    """Return a run's `run.json`. Raises `TrainError` in one line, also for one of an older version."""
    path = folder / RUN_FILE
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise TrainError(f"{path}: is no JSON") from None
    if not isinstance(told, dict) or told.get("kind") != KIND:
        raise TrainError(f"{path}: is not of `arena train`")
    if told.get("format") != FORMAT:
        raise TrainError(
            f"{folder}: was made by another version (format {told.get('format')!r}, this one has {FORMAT}): "
            "it cannot go on; give the new run another name"
        )
    if missing := sorted(NEEDED - told.keys()):
        raise TrainError(f"{path}: is damaged, it has no {', '.join(missing)}; give the new run another name")
    return told
