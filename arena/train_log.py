"""What a run of `arena train` writes down: a line of JSON for everything that happens, and TensorBoard's files.

Lines are dictionaries with a `kind`: `start`, `resume`, `update`, `evaluation`, `alarm` and `stop`. A run that was
killed goes on from its checkpoint, which knows how long the file was then: what came after is cut off, so that no
update stands in it twice.
"""

import json
import logging
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arena.errors import TrainError

METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"

_log = logging.getLogger("arena.train")


class MetricsLog:
    """Appends lines to `metrics.jsonl` in a run's folder.

    Args:
        folder: the run's.
        tensorboard: whether its files are written too; None where it is installed.

    Raises `TrainError` where TensorBoard is asked for and is not installed.
    """

    def __init__(self, folder: Path, *, tensorboard: bool | None = None) -> None:
        self.path = folder / METRICS
        self._board = (
            None if tensorboard is False else _board(folder / TENSORBOARD, needed=tensorboard is True)
        )

    @property
    def size(self) -> int:
        """The length of the file in bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    def cut(self, size: int) -> None:
        """Drop what was written after the file had `size` bytes."""
        if self.size > size:
            os.truncate(self.path, size)

    def write(self, kind: str, update: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """Append a line, whole, and return it. Numbers that are not finite are written as null."""
        head: dict[str, Any] = {"kind": kind, "update": update}
        line: dict[str, Any] = {**head, **_finite(dict(values)), **head}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        if self._board is not None:
            for name, value in numbers(line):
                self._board.add_scalar(name if "/" in name else f"{kind}/{name}", value, update)
        return line

    def close(self) -> None:
        """Let go of the files."""
        if self._board is not None:
            self._board.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's metrics; a last line that a crash cut short is left out.

    Raises `TrainError` in one line for a file that holds something else.
    """
    path = folder / METRICS
    if not path.exists():
        return []
    found = []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, text in enumerate(lines, 1):
        if not text:
            continue
        try:
            line = json.loads(text)
            if not isinstance(line, dict) or "kind" not in line:
                raise ValueError
        except ValueError:
            if number == len(lines):
                break
            raise TrainError(f"{path}: line {number} is none of a run's") from None
        found.append(line)
    return found


def numbers(line: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in a line, those in nested dictionaries as `outer/inner`."""
    for name, value in line.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and (prefix or name != "update"):
            yield f"{prefix}{name}", float(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def _board(folder: Path, *, needed: bool) -> Any:
    """Return a writer of TensorBoard's files, None where there is none and none is needed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        if needed:
            raise TrainError(
                "tensorboard: it is not installed: install the extra 'train', or set tensorboard = false"
            ) from None
        _log.debug("TensorBoard is not installed; metrics go to %s alone", METRICS)
        return None
    return SummaryWriter(log_dir=str(folder))
