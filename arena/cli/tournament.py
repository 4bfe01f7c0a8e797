"""`arena tournament`: many matches, then the standings."""

import shlex
from pathlib import Path
from typing import Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    parse_pairs,
    policy_options,
    print_json,
    seed_option,
)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--game", "games", multiple=True, metavar="G", help="A game to play; repeatable.")
@click.option("--player", "players", multiple=True, metavar="NAME=SPEC", help="A player; repeatable.")
@click.option("--players", "seats", type=int, metavar="N", help="Seats of a match, in every game.")
@click.option("--matches", type=int, metavar="N", help="Matches of each game.")
@click.option(
    "--format", "kind", type=click.Choice(["round-robin", "swiss", "gauntlet"]), help="Who meets whom."
)
@click.option(
    "--seating",
    type=click.Choice(["auto", "seats", "sides", "mixed"]),
    help="Whether a player holds a seat, a whole side, or any seats.",
)
@click.option("--option", "pairs", multiple=True, metavar="G.K=V", help="An option of a game; repeatable.")
@seed_option("Of the deals, the plan and the bots.")
@click.option(
    "--concurrency",
    type=int,
    metavar="N",
    help="Processes, and matches of language models at a time.  [default: one per processor, and 32]",
)
@click.option(
    "--engine", type=click.Choice(["local", "ray"]), default="local", help="Where matches are played."
)
@policy_options
@click.option("--resume", is_flag=True, help="Go on with the last unfinished tournament of this kind.")
@click.option(
    "--sprt",
    metavar="ELO0,ELO1,ALPHA,BETA",
    help="Stop once the first of two players is shown stronger or not.",
)
@click.option(
    "--credit",
    "credit_by",
    type=click.Choice(["equal", "leave-one-out", "shapley"]),
    default="equal",
    help="How a team's result is divided among its seats.  [default: equal]",
)
@home_option
@config_option
@json_option
@debug_option
def tournament(
    file: Path | None,
    games: tuple[str, ...],
    players: tuple[str, ...],
    seats: int | None,
    matches: int | None,
    kind: Any,
    seating: Any,
    pairs: tuple[str, ...],
    seed: int | None,
    concurrency: int | None,
    engine: str,
    backend: str | None,
    model: str | None,
    resume: bool,
    sprt: str | None,
    credit_by: str,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Run a tournament and print its standings.

    FILE.toml says what is played; flags replace what they name. Without FILE the built-in default is taken: the
    embedded language model, scripted and random in every game. The same command and seed play the same matches,
    byte for byte where no language model plays.
    """
    from arena import logs
    from arena.cli.progress import MatchProgress
    from arena.config import load
    from arena.errors import TournamentError
    from arena.tournament import run_tournament
    from arena.tournament_file import Overrides, read_tournament

    if engine == "ray":
        raise TournamentError("--engine ray: not in this version, allowed is local")
    logs.configure()
    flags = {
        "home": home,
        "tournament.concurrency": concurrency,
        "policy.concurrency": concurrency,
        "policy.backend": backend,
        "policy.model": model,
    }
    settings = load(file=config_file, flags=flags).settings
    asked = read_tournament(
        file,
        overrides=Overrides(
            games=games,
            players=players,
            seats=seats,
            matches=matches,
            format=kind,
            seating=seating,
            seed=seed,
            sprt=sprt,
            options=parse_pairs(pairs, what="--option"),
        ),
        retries=settings.match.retries,
        deadline_s=settings.match.deadline_s,
    )
    with MatchProgress() as progress:
        try:
            result = run_tournament(
                asked,
                home=settings.home,
                concurrency=settings.tournament.concurrency,
                policy=settings.policy,
                resume=resume,
                progress=progress,
            )
        except KeyboardInterrupt:
            click.echo("What was finished is kept; the same command with --resume goes on.", err=True)
            raise
    if credit_by != "equal" and result.played:
        with MatchProgress() as progress:
            result.board = _credited(result, credit_by, settings, progress)
    if as_json:
        print_json(result.as_dict())
    else:
        _show(result)
    if result.failed:
        first = result.failures[0]
        # In a Swiss tournament later rounds were paired on a failed match, so it stays as it is.
        again = "" if asked.format == "swiss" else "; --resume plays them again"
        click.echo(
            f"Error: {result.failed} of {result.planned} matches failed, first {first['match']}: "
            f"{first['error']}{again}",
            err=True,
        )
        click.get_current_context().exit(1)


def _credited(result: Any, method: str, settings: Any, progress: Any) -> Any:
    """Return the standings with credit by a method that replays the records."""
    from arena.credit import CreditRequest, credit_board, credit_many, find_records

    asked = CreditRequest(method=method, policy=settings.policy, home=settings.home)
    many = credit_many(find_records([result.records]), asked, progress=progress)
    for _, problem in many.skipped:
        click.echo(f"Not credited: {problem}", err=True)
    return credit_board(result.board, many)


def _show(result: Any) -> None:
    from arena.cli.progress import rate_text
    from arena.cli.standings import print_board
    from games.registry import load_game

    titles = {game: load_game(game).title for game in {row.game for row in result.board.standings}}
    print_board(result.board, titles=titles)
    for game, found in (result.sprt or {}).items():
        click.echo(f"Sequential test in {game}: {_verdict(found)}")
        click.echo(
            f"  log-likelihood ratio {found['llr']:.2f} of {found['lower']:.2f} to {found['upper']:.2f} "
            f"after {found['pairs']} pairs"
        )
    for game, lines in result.imbalance.items():
        click.echo(f"Uneven in {game}:")
        for line in lines:
            click.echo(f"  {line}")
    for engine, totals in result.policies.items():
        click.echo(f"Language model {engine}: {totals.line()}")
    rate = result.played / result.wall_s if result.wall_s else 0.0
    click.echo(
        f"Tournament {result.tournament}: {result.played} of {result.planned} matches played, "
        f"{result.failed} failed, {result.wall_s:.1f} s ({rate_text(rate)}/s)"
    )
    if result.played:
        click.echo(f"Records: {result.records}")
        click.echo(f"Verify them: arena replay verify {shlex.quote(str(result.records))}")


def _verdict(found: dict[str, Any]) -> str:
    against = f"{found['player']} against {found['opponent']}"
    match found["status"]:
        case "accept_h1":
            return f"{against}, stronger by {found['elo1']:g} Elo is accepted"
        case "accept_h0":
            return f"{against}, stronger by {found['elo0']:g} Elo or less is accepted"
    return f"{against}, undecided between {found['elo0']:g} and {found['elo1']:g} Elo; play more --matches"
