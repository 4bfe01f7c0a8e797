"""`arena ratings`: standings over everything in the store."""

from pathlib import Path

import click

from arena.cli.common import config_option, debug_option, home_option, json_option, print_json


@click.command()
@click.option("--game", "name", metavar="G", help="Only this game.")
@home_option
@config_option
@json_option
@debug_option
def ratings(name: str | None, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Show the standings over everything in the store.

    Players of all tournaments are rated together, by name.
    """
    from arena.cli.standings import print_board
    from arena.config import load
    from arena.standings import leaderboard
    from arena.store import Store
    from games.errors import UnknownGame
    from games.registry import load_game

    if name is not None:
        load_game(name)
    settings = load(file=config_file, flags={"home": home}).settings
    with Store(settings.home, create=False) as store:
        matches = store.rated_matches(game=name)
    sides, titles = {}, {}
    for game in sorted({match.game for match in matches}):
        try:
            sides[game], titles[game] = load_game(game).unlike_sides, load_game(game).title
        except UnknownGame:  # a game of another distribution, no longer installed: its matches still count
            continue
    board = leaderboard(matches, sides=sides)
    if as_json:
        print_json({**board.as_dict(), "matches": len(matches)})
    elif not matches:
        click.echo("No matches yet.")
    else:
        print_board(board, titles=titles)
