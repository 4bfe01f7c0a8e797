"""What the spectator remembers between runs: the theme, and how a person plays."""

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

DEFAULT_THEME = "textual-dark"


@dataclass(slots=True)
class Settings:
    """The remembered choices."""

    theme: str = DEFAULT_THEME
    confirm: bool = True
    """Whether a person is asked before a move that cannot be taken back is sent."""
    bell: bool = False
    """Whether the terminal rings at a person's turn."""


def load_settings(path: Path | None) -> Settings:
    """Return what `path` holds. Where it cannot be read the defaults hold: a look must never keep anybody out."""
    if path is None:
        return Settings()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Settings()
    if not isinstance(data, dict):
        return Settings()
    known: dict[str, Any] = {field.name: type(field.default) for field in fields(Settings)}
    return replace(
        Settings(), **{name: value for name, value in data.items() if type(value) is known.get(name)}
    )


def save_settings(path: Path | None, settings: Settings) -> bool:
    """Write the settings and say whether that worked; without a path nothing is kept."""
    if path is None:
        return True
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        spare = path.with_suffix(".tmp")
        spare.write_text(json.dumps(asdict(settings), indent=2) + "\n", encoding="utf-8")
        spare.replace(path)
    except OSError:
        return False
    return True
