"""Writes the parts of docs/ that are generated: `python -m tests.generate_docs`; a test compares them."""

import re
from pathlib import Path

import click
from pydantic import BaseModel

from agents.training.config import PlayedGame, TrainConfig
from arena.cli.main import cli
from arena.config import ENV_PREFIX, Settings
from tests.clients.protocol import pages as protocol

CLI_PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
CONFIGURATION_PAGE = CLI_PAGE.parent / "configuration.md"
TRAINING_PAGE = CLI_PAGE.parent / "training.md"
KEYS = re.compile(r"(?<=<!-- keys -->\n)(.*?)(?=<!-- end of keys -->)", re.DOTALL)
SETTINGS = re.compile(r"(?<=<!-- settings -->\n)(.*?)(?=<!-- end of settings -->)", re.DOTALL)

HEAD = """\
# The command line

One command, `arena`. This page is what `--help` says, made by `make docs`.

What holds for every command:

- Commands that read take `--json`: one JSON document on stdout and nothing else there. Logs and progress go
  to stderr: a bar on a terminal, otherwise a line every ten seconds. `NO_COLOR` is honoured.
- Exit codes: 0 done; 1 failed; 2 bad input, with one line on stderr that names what, the value, and what is
  allowed; 3 a record does not verify; 130 interrupted, and what was finished is kept. A traceback is printed
  with `--debug` alone.
- A player is written `SPEC` or `NAME=SPEC`; `arena players` lists the specs and what each can play.
- State lives in one directory, `--home`: `arena.db` (SQLite) and `replays/`. See
  [configuration](configuration.md) for the other ways to set it.
- The same command and `--seed` give the same matches, byte for byte. `arena play` without `--seed` takes a
  new one and prints it.
- Where another project's package has the name of one of ours and comes first on the path, the command says
  which and stops.
"""


def cli_page() -> str:
    """Return docs/cli.md as it should be."""
    parts = [HEAD, *_sections(cli, "arena")]
    return "\n".join(parts)


def _sections(command: click.Command, path: str, parent: click.Context | None = None) -> list[str]:
    context = click.Context(
        command,
        parent=parent,
        info_name=path.rpartition(" ")[2],
        **{**command.context_settings, "terminal_width": 80},
    )
    parts = [f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                parts += _sections(child, f"{path} {name}", context)
    return parts


def configuration_page() -> str:
    """Return docs/configuration.md with its table of settings as it should be."""
    lines = ["| key | environment | default | what it is |", "|---|---|---|---|", *_settings(Settings, "")]
    table = "\n" + "\n".join(lines) + "\n\n"
    return SETTINGS.sub(lambda _: table, CONFIGURATION_PAGE.read_text(encoding="utf-8"))


def _settings(model: type[BaseModel], prefix: str) -> list[str]:
    rows: list[str] = []
    for name, info in model.model_fields.items():
        key = f"{prefix}{name}"
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            rows += _settings(info.annotation, f"{key}.")
            continue
        default = "by the machine" if info.default_factory is not None else f"`{info.default}`"
        if info.default_factory is None and info.default in (None, ()):
            default = "none"
        variable = f"{ENV_PREFIX}{key.upper().replace('.', '__')}"
        rows.append(f"| `{key}` | `{variable}` | {default} | {info.description} |")
    return rows


def training_page() -> str:
    """Return docs/training.md with its table of keys as it should be."""
    games = [
        "| `games` | none | What is played: a list of tables with these keys. |",
        *_keys(PlayedGame, "games.N."),
    ]
    rows = [row for row in _keys(TrainConfig, "") if not row.startswith("| `games` ")]
    table = "\n" + "\n".join(["| key | default | what it is |", "|---|---|---|", *games, *rows]) + "\n\n"
    return KEYS.sub(lambda _: table, TRAINING_PAGE.read_text(encoding="utf-8"))


def _keys(model: type[BaseModel], prefix: str) -> list[str]:
    rows: list[str] = []
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            rows += _keys(info.annotation, f"{prefix}{name}.")
            continue
        default = "needed" if info.is_required() else f"`{_toml(info.default)}`"
        if not info.is_required() and (info.default in (None, ()) or info.default_factory is not None):
            default = "none"
        rows.append(f"| `{prefix}{name}` | {default} | {info.description} |")
    return rows


def _toml(value: object) -> str:
    """Return a default as a file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


if __name__ == "__main__":
    TRAINING_PAGE.write_text(training_page(), encoding="utf-8")
    CLI_PAGE.write_text(cli_page(), encoding="utf-8")
    CONFIGURATION_PAGE.write_text(configuration_page(), encoding="utf-8")
    protocol.PAGE.write_text(protocol.protocol_page(), encoding="utf-8")
    protocol.SCHEMA.write_text(protocol.schema_text(), encoding="utf-8")
