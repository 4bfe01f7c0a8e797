"""`arena token`: make, list and revoke the tokens that a server takes."""

import time
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
def token() -> None:
    """Make, list and revoke the tokens that a server takes."""


@token.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["play", "watch", "admin"]),
    help="What it allows; repeatable. admin allows everything.",
)
@click.option("--expires", metavar="SPAN", help="When it expires, such as 12h or 30d.  [default: never]")
@home_option
@config_option
@json_option
@debug_option
def create(
    name: str,
    scopes: tuple[str, ...],
    expires: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Make a token for NAME and print it, this once.

    Players are rated under the token's NAME. The store keeps a hash alone: a token that is lost is revoked
    and made anew.
    """
    from arena.auth import create_token, read_life

    life_s = None if expires is None else read_life(expires)
    with _store(home, config_file) as store:
        made = create_token(store, name, scopes=scopes, life_s=life_s, now=time.time())
    if as_json:
        print_json({"name": name, "scopes": list(scopes), "token": made})
        return
    click.echo(made)
    click.echo("Keep it: it is not shown again.", err=True)


@token.command("list")
@home_option
@config_option
@json_option
@debug_option
def list_(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """List the tokens: whose they are, what they allow, and whether they are valid."""
    from arena.auth import list_tokens

    now = time.time()
    with _store(home, config_file) as store:
        rows = list_tokens(store)
    if as_json:
        print_json(
            [
                {
                    "id": row.id,
                    "name": row.name,
                    "scopes": list(row.scopes),
                    "state": row.state(now),
                    "created": _time(row.created),
                    "expires": _time(row.until),
                }
                for row in rows
            ]
        )
        return
    shown = table("", ["id", "name", "scopes", "state", "created", "expires"])
    for row in rows:
        shown.add_row(
            row.id,
            row.name,
            ", ".join(row.scopes),
            row.state(now),
            _time(row.created) or "",
            _time(row.until) or "never",
        )
    stdout_console().print(shown)


@token.command()
@click.argument("which", metavar="NAME|ID")
@home_option
@config_option
@json_option
@debug_option
def revoke(which: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Revoke a token. It is taken nowhere from now on, and a server ends its connections within a second."""
    from arena.auth import revoke_token

    with _store(home, config_file) as store:
        row = revoke_token(store, which, now=time.time())
    if as_json:
        print_json({"id": row.id, "name": row.name, "state": "revoked"})
    else:
        click.echo(f"Revoked {row.id} of {row.name}.")


def _store(home: Path | None, config_file: Path | None) -> Any:
    from arena.config import load
    from arena.store import Store

    return Store(load(file=config_file, flags={"home": home}).settings.home)


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
