"""`arena reply check`: what a model's reply means in an action space."""

import json
from pathlib import Path
from typing import Any

import click

from agents.prompting import Answer, parse_reply
from arena.cli.common import debug_option, json_option, print_json
from games.errors import BadSpace
from games.spaces import space_from_data


@click.group()
@debug_option
def reply() -> None:
    """Say what a model's reply means."""


@reply.command()
@click.option(
    "--space",
    "space_json",
    required=True,
    metavar="JSON",
    help='The action space, as in {"kind":"choice","options":["yes","no"]}.',
)
@click.option("--reply", "text", metavar="TEXT", help="The reply itself.")
@click.option(
    "--reply-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A file that holds the reply; - is stdin.",
)
@json_option
@debug_option
def check(space_json: str, text: str | None, reply_file: Path | None, as_json: bool) -> None:
    """Print the action that a reply commits to, or why it commits to none.

    A structured answer is final and the last one counts; nothing is guessed. Both outcomes are exit code 0.
    """
    try:
        data: Any = json.loads(space_json)
    except (ValueError, RecursionError) as error:
        raise BadSpace(f"--space: got {space_json[:80]!r}, no JSON: {error}") from None
    space = space_from_data(data)
    if (text is None) == (reply_file is None):
        raise click.UsageError("give either --reply TEXT or --reply-file FILE", click.get_current_context())
    found = parse_reply(space, _read(reply_file) if text is None and reply_file is not None else text or "")
    if isinstance(found, Answer):
        action = list(found.action) if isinstance(found.action, tuple) else found.action
        if as_json:
            print_json({"action": action})
        else:
            click.echo(f"action: {json.dumps(action, ensure_ascii=False)}")
    elif as_json:
        print_json({"failure": found.kind, "reason": found.reason})
    else:
        click.echo(f"{found.kind}: {found.reason}")


def _read(path: Path) -> str:
    try:
        with click.open_file(str(path), "rb") as file:
            content: bytes = file.read()
    except OSError as error:
        raise click.UsageError(
            f"--reply-file {str(path)!r}: cannot read the file: {error.strerror or error}",
            click.get_current_context(),
        ) from None
    return content.decode("utf-8", errors="replace")
