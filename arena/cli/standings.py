"""How standings look on a terminal; `arena tournament` and `arena ratings` print them alike."""

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from arena.cli.common import stdout_console, table

if TYPE_CHECKING:
    from arena.standings import Leaderboard, Standing


def print_board(board: "Leaderboard", *, titles: Mapping[str, str]) -> None:
    """Print a table for each game, its roles, and what the ratings cannot tell."""
    console = stdout_console()
    effects = board.as_dict()["side_effect"]
    for game, found in groupby(board.standings, key=lambda row: row.game):
        rows = list(found)
        drawn = ["drawn"] if any(row.tally.drawn for row in rows) else []
        # Where all returns are 1, 0 or -1 their mean is the score once more.
        value = [] if all(row.plain for row in rows) else ["return"]
        credit = ["credit"] if any(row.shared for row in rows) else []
        numbers = ["played", "won", *drawn, "lost", "score", *value, *credit, "rating", "95 % interval"]
        shown = table(titles.get(game, game), ["player", *numbers], right=numbers)
        for row in rows:
            tally = row.tally
            shown.add_row(
                row.player,
                str(tally.played),
                str(tally.won),
                *([str(tally.drawn)] if drawn else []),
                str(tally.lost),
                _share(tally.score),
                *([_return(row)] if value else []),
                *(["-" if row.credit is None else f"{row.credit:+.2f}"] if credit else []),
                f"{row.rating:.0f}",
                "-" if row.low is None or row.high is None else f"{row.low:.0f} to {row.high:.0f}",
            )
        console.print(shown)
        _print_roles(console, rows)
        if game in effects:
            click.echo(_effect(effects[game]))
        if value:
            click.echo(
                "The rating counts matches won, whatever the stake; the return is what they were worth."
            )
        if credit:
            click.echo(f"Credit is a seat's mean share of its team's result, by {board.credit}.")
        accused = [f"{row.player} ({row.accusation})" for row in rows if row.accusation]
        if accused:
            click.echo("Behind their team-mates: " + ", ".join(accused))
        trouble = [f"{row.player}: {_trouble(row)}" for row in rows if _trouble(row)]
        if trouble:
            click.echo("Apart from play: " + "; ".join(trouble))
        click.echo()
    for line in board.warnings():
        click.echo(f"Note: {line}")


def _print_roles(console: Any, rows: "list[Standing]") -> None:
    roles = sorted({role for row in rows for role in row.by_role})
    if not roles:
        return
    shown = table("", ["role", *(row.player for row in rows[:4])], right=[row.player for row in rows[:4]])
    for role in roles:
        cells = []
        for row in rows[:4]:
            tally = row.by_role.get(role)
            cells.append("-" if tally is None else f"{_share(tally.score)} of {tally.played}")
        shown.add_row(role, *cells)
    console.print(shown)
    if len(rows) > 4:
        click.echo(f"Roles of the first four players; --json has all {len(rows)}.")


def _effect(effect: Mapping[str, Any]) -> str:
    interval = "" if effect["low"] is None else f" ({effect['low']:+.0f} to {effect['high']:+.0f})"
    return (
        f"Side effect: {effect['side']} {effect['value']:+.0f} Elo{interval}, "
        f"won {effect['share']:.1%} of {effect['matches']}"
    )


def _return(row: "Standing") -> str:
    return "-" if row.mean_return is None else f"{row.mean_return[0]:+.2f}"


def _share(score: float | None) -> str:
    return "-" if score is None else f"{score:.1%}"


def _trouble(row: "Standing") -> str:
    found = {
        "forced moves": row.forced,
        "illegal answers": row.illegal,
        "walkovers": row.tally.walkovers,
        "forfeits": row.tally.forfeits,
        "wins with a forced move of the others": row.won_forced,
    }
    return ", ".join(f"{count} {name}" for name, count in found.items() if count)
