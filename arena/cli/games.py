"""`arena games`: the games there are, and their rules."""

import json
from collections.abc import Mapping
from typing import Any

import click

from arena.cli.common import debug_option, json_option, print_json, stdout_console, table
from games.base import Game
from games.registry import game_names, load_game


@click.command()
@click.argument("name", required=False)
@json_option
@debug_option
def games(name: str | None, as_json: bool) -> None:
    """List the games, or print the rules of one.

    With NAME the rules as text, for people and prompts.
    """
    if name is not None:
        game = load_game(name)
        if as_json:
            print_json([describe(game) | {"rules": game.rules}])
        else:
            click.echo(game.rules.rstrip())
            click.echo(_options_text(game))
        return
    found = [load_game(known) for known in game_names()]
    if as_json:
        print_json([describe(game) for game in found])
        return
    rows = table("", ["game", "title", "seats", "sides", "turns"])
    for game in found:
        low, high = game.seats
        seats = str(low) if low == high else f"{low}-{high}"
        rows.add_row(
            game.name,
            game.title,
            seats,
            ", ".join(game.team_names),
            "several at once" if game.simultaneous else "one at a time",
        )
    stdout_console().print(rows)
    click.echo("arena games NAME prints the rules and the options.")


def describe(game: Game) -> dict[str, Any]:
    """Return a game as `arena games --json` lists it."""
    return {
        "name": game.name,
        "title": game.title,
        "version": game.version,
        "seats": list(game.seats),
        "default_seats": game.default_seats,
        "teams": list(game.team_names),
        "roles": list(game.role_names),
        "simultaneous": game.simultaneous,
        "options": options(game),
    }


def options(game: Game) -> dict[str, Any]:
    """Return a game's options by name: the JSON schema of each, with its default."""
    schema = game.options_type.model_json_schema()
    found: dict[str, Any] = {}
    defaults = game.parse_options(None).model_dump(mode="json")
    for name, about in schema.get("properties", {}).items():
        found[name] = {key: value for key, value in about.items() if key != "title"} | {
            "default": defaults[name]
        }
    return found


def _options_text(game: Game) -> str:
    found = options(game)
    if not found:
        return "\nNo options."
    lines = ["", "## Options", ""]
    for name, about in found.items():
        facts = [fact for fact in (_allowed(about), f"default {_value(about['default'])}") if fact]
        text = f": {about['description']}" if "description" in about else ""
        lines.append(f"- `{name}` ({'; '.join(facts)}){text}")
    example = next(iter(found))
    lines += ["", f"Set them with `--option`, as in `arena play {game.name} --option {example}=…`."]
    return "\n".join(lines)


def _allowed(about: Mapping[str, Any]) -> str:
    """Return which values an option's schema allows, in words; nothing where the description has to say it."""
    kinds = [kind for kind in about.get("anyOf", [about]) if kind.get("type") != "null"]
    match kinds:
        case [{"enum": [*values]}]:
            return " or ".join(map(_value, values))
        case [{"type": "boolean"}]:
            return "true or false"
        case [{"minimum": low, "maximum": high}]:
            return f"{low} to {high}"
    return ""


def _value(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
