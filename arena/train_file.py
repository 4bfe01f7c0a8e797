"""The file of `arena train`: TOML, with single values set from the command line."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents.training.config import TrainConfig
from arena.config import explain, read_toml
from arena.errors import TrainError


def load(path: Path, *, sets: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration in a TOML file, with values of `sets` in place of the file's.

    Args:
        path: the file.
        sets: as `learner.lr=0.001` or `games.0.seats=7`; what is no TOML value is text.

    Raises `TrainError` or `ConfigError` in one line.
    """
    values = read_toml(path)
    for one in sets:
        _set(values, one)
    return from_data(values, where=str(path))


def from_data(values: dict[str, Any], *, where: str) -> TrainConfig:
    """Return the configuration in decoded TOML; `where` says what was read. Raises `TrainError` in one line."""
    try:
        return TrainConfig.model_validate(values)
    except ValidationError as error:
        raise TrainError(explain(error, TrainConfig, where=where)) from None


def _set(values: dict[str, Any], one: str) -> None:
    key, equals, text = one.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise TrainError(f"--set: got {one[:80]!r}, the form is KEY=VALUE, as in learner.lr=0.001")
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    place: Any = values
    for part in parts[:-1]:
        place = _inside(place, part, one)
        if not isinstance(place, dict | list):
            raise TrainError(f"--set: got {one[:80]!r}, but {part!r} is a value and holds no others")
    last = parts[-1]
    if isinstance(place, list):
        _inside(place, last, one)
        place[int(last)] = value
    else:
        place[last] = value


def _inside(place: Any, part: str, one: str) -> Any:
    if isinstance(place, list):
        if not part.isdecimal() or int(part) >= len(place):
            allowed = f"0 to {len(place) - 1}" if place else "none"
            raise TrainError(f"--set: got {one[:80]!r}, entries of that list are {allowed}")
        return place[int(part)]
    return place.setdefault(part, {})
