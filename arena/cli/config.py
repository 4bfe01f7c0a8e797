"""`arena config show`: every value and where it came from."""

from pathlib import Path
from typing import Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    print_json,
    stdout_console,
    table,
)


@click.group()
@debug_option
def config() -> None:
    """Show the configuration and where each value came from."""


@config.command()
@home_option
@config_option
@json_option
@debug_option
def show(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Print every value and where it came from.

    A TOML file, then the environment (ARENA_SECTION__KEY), then flags; the later wins.
    """
    from arena.config import load

    rows = load(file=config_file, flags={"home": home}).rows()
    if as_json:
        print_json({key: {"value": _plain(value), "from": origin} for key, value, origin, _ in rows})
        return
    shown = table("", ["key", "value", "from"])
    shown.columns[0].no_wrap = True
    for key, value, origin, _ in rows:
        shown.add_row(key, str(value), origin)
    stdout_console().print(shown)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
