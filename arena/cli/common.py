"""What several commands share: options, output, and the reading of `K=V`."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from games.errors import BadOption, BadSeed
from games.rng import MAX_SEED, check_seed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])

WIDTH = 80
"""Columns that tables keep to where stdout is no terminal."""


def read_seed(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return what `--seed` says: a whole number from 0 to 2**63 - 1; None where it is not given."""
    if value is None:
        return None
    try:
        return check_seed(int(value))
    except (ValueError, BadSeed):
        allowed = f"allowed are whole numbers from 0 to {MAX_SEED}"
        raise click.BadParameter(f"got {value[:40]!r}, {allowed}", ctx, param) from None


def json_option(command: Command) -> Command:
    """Add `--json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else there."
    )(command)


def debug_option(command: Command) -> Command:
    """Add `--debug`, which the root group looks for."""
    return click.option("--debug", is_flag=True, expose_value=False, help="Print the traceback of an error.")(
        command
    )


def home_option(command: Command) -> Command:
    """Add `--home`; None is what the configuration says."""
    return click.option(
        "--home",
        type=click.Path(path_type=Path),
        help="The directory that holds the state.  [default: ./arena-data]",
    )(command)


def config_option(command: Command) -> Command:
    """Add `--config`; None is `arena.toml` where there is one."""
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        help="A configuration file.  [default: ./arena.toml where there is one]",
    )(command)


def policy_options(command: Command) -> Command:
    """Add `--backend` and `--model`, for the player `policy`; None is what the configuration says."""
    backend = click.option(
        "--backend",
        type=click.Choice(["transformers", "vllm", "openai"]),
        help="What computes the player policy.  [default: transformers]",
    )
    model = click.option(
        "--model",
        metavar="MODEL",
        help="Of the player policy: tiny, smollm2, a folder, or MODEL@URL for openai.  [default: tiny]",
    )
    return backend(model(command))


def seed_option(text: str) -> Callable[[Command], Command]:
    """Add `--seed`; None where it is not given."""
    return click.option("--seed", metavar="N", callback=read_seed, help=text)


def warn_of_token(token: str | None, url: str) -> None:
    """Say so where a token would go over a network in the open."""
    from clients.dial import is_loopback

    if token and url.startswith("ws:") and not is_loopback(url):
        click.echo(
            "Warning: the token goes over the network unencrypted; use wss:// where you can.", err=True
        )


def parse_pairs(pairs: Iterable[str], *, what: str) -> dict[str, str]:
    """Return `K=V` arguments as a dictionary. Raises `BadOption` for what is none, or given twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise BadOption(f"{what}: got {pair[:80]!r}, the form is NAME=VALUE")
        if name in found:
            raise BadOption(f"{what}: {name[:80]!r} is given twice")
        found[name] = value
    return found


def print_json(value: Any) -> None:
    """Print `value` as the one JSON document of a command."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def stdout_console() -> "Console":
    """Return a console on stdout: colours only on a terminal, 80 columns where it is none."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    return console


def table(title: str, columns: Sequence[str], *, right: Iterable[str] = ()) -> "Table":
    """Return an empty table; the columns named in `right` hold numbers."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    numeric = set(right)
    for column in columns:
        made.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    return made


def option_table(options: Mapping[str, Any]) -> str:
    """Return options as `a=1, b=true`, for people."""
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in options.items()) or "none"
