"""`arena players`: who can be seated."""

import click

from agents.players import HUMAN, KINDS, MODELS
from arena import people
from arena.cli.common import debug_option, json_option, print_json, stdout_console, table


@click.command()
@json_option
@debug_option
def players(as_json: bool) -> None:
    """List the players with the games each can play."""
    listed = [(kind.spec, kind.title, kind.games()) for kind in (*KINDS.values(), *MODELS.values())]
    listed.append((HUMAN, people.TITLE, people.games()))
    if as_json:
        print_json([{"player": spec, "title": title, "games": games} for spec, title, games in listed])
        return
    rows = table("", ["player", "what it does", "games"])
    for spec, title, games in listed:
        rows.add_row(spec, title, ", ".join(games))
    stdout_console().print(rows)
    click.echo("Write a player as SPEC or NAME=SPEC, as in a=scripted.")
