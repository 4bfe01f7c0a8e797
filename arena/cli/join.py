"""`arena join`: a local agent at a server's seats."""

import contextlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    stdout_console,
    table,
    warn_of_token,
)
from arena.cli.screen import (
    check_terminal,
    check_watch_packages,
    check_web,
    serve_web,
    settings_path,
    web_options,
    words,
)
from clients.errors import SeatLost

if TYPE_CHECKING:
    from arena.join import Played, Wanted
    from games.errors import ArenaError

TOKEN_VARIABLE = "ARENA_TOKEN"


@click.command()
@click.argument("url")
@click.option(
    "--player", "spec", required=True, metavar="SPEC", help="Who is seated; arena players lists them."
)
@click.option("--name", metavar="NAME", help="Shown at the table.  [default: the player's]")
@click.option(
    "--token",
    metavar="TOKEN",
    envvar=TOKEN_VARIABLE,
    help=f"Shown to the server. Better in the environment, as {TOKEN_VARIABLE}: others can read a command line.",
)
@click.option("--game", metavar="GAME", help="Take a seat in a lobby of this game.")
@click.option("--match", metavar="ID", help="Take a seat in this match.")
@click.option("--tournament", metavar="NAME", help="Take part in this tournament, to its end.")
@click.option(
    "--matches",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many, one by one.",
)
@click.option(
    "--seats", type=int, metavar="N", help="How many seats the lobby has.  [default: the game's own]"
)
@click.option("--option", "pairs", multiple=True, metavar="K=V", help="An option of the game; repeatable.")
@policy_options
@web_options
@home_option
@config_option
@seed_option("Of the player's whims.  [default: a new one each time]")
@json_option
@debug_option
def join(
    url: str,
    spec: str,
    name: str | None,
    token: str | None,
    game: str | None,
    match: str | None,
    tournament: str | None,
    matches: int,
    seats: int | None,
    pairs: tuple[str, ...],
    backend: str | None,
    model: str | None,
    web: bool,
    web_port: int | None,
    web_sessions: int | None,
    home: Path | None,
    config_file: Path | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Seat a local player at a server, and play.

    --player human is you: the terminal shows the match from your seat, and takes your moves.

    URL is ws://HOST:PORT, or wss://HOST:PORT where the server speaks TLS. A lost connection is taken up again,
    for as long as the server holds the seat. Exit code 1 says that a seat was lost, or that the server refused
    or is gone.
    """
    import asyncio

    from agents.players import parse_player
    from agents.policy.service import Policies
    from agents.policy.spec import is_policy
    from arena.config import load
    from arena.join import Wanted
    from arena.join import join as play
    from arena.people import as_person
    from clients.dial import check_address
    from clients.errors import ClientError
    from clients.sdk import connect
    from clients.spectator.web import is_web
    from games.registry import load_game

    context = click.get_current_context()
    if sum(place is not None for place in (game, match, tournament)) != 1:
        raise click.UsageError("give one of --game, --match and --tournament", context)
    if game is None and (seats is not None or pairs or matches != 1):
        raise click.UsageError("--seats, --option and --matches go with --game", context)
    check_address(url)
    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    check_web(web, web_port, web_sessions)
    person = as_person(spec)
    player = parse_player(spec) if person is None else person
    if web and person is None:
        raise click.UsageError("--web goes with --player human", context)
    if game is not None:
        load_game(game)
    warn_of_token(token, url)
    wanted = Wanted(
        game=game or "",
        match=match or "",
        tournament=tournament or "",
        seats=seats,
        options=parse_pairs(pairs, what="--option"),
        name=player.name if name is None else name,
        matches=matches,
    )
    found: list[Played] = []
    if person is not None and web:
        options = words(
            player=f"{person.name}=human", name=name, game=game, match=match, tournament=tournament,
            matches=matches, seats=seats, option=pairs,
        )  # fmt: skip
        check_watch_packages()
        serve_web(
            ["join", *options, "--", url],
            title="arena join",
            port=web_port,
            sessions=web_sessions,
            token=token,
        )
        return
    if person is not None:
        check_terminal("a person needs a terminal to play at, or --web")
        check_watch_packages()
        error = _sit(url, token or "", wanted, found)
        if not is_web():
            _tell(found, url=url, player=person.name, spec=person.spec, as_json=as_json)
        if error is not None:
            raise error
        return

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            policies = None
            if is_policy(player.spec):
                policies = Policies(settings.policy, home=settings.home)
                stack.push_async_callback(policies.close)
                await policies.start([player.spec])
            opened = connect(url, token=token or "", client="arena join", on_status=_status)
            arena = await stack.enter_async_context(opened)
            number = secrets.randbits(63) if seed is None else seed
            await play(
                arena,
                player,
                wanted=wanted,
                seed=number,
                policies=policies,
                seated=_seated,
                played=found.append,
            )

    _silence_stamina()
    try:
        asyncio.run(run())
    finally:
        _tell(found, url=url, player=player.name, spec=player.spec, as_json=as_json)
    lost = [one for one in found if one.error is not None]
    if lost:
        raise ClientError(
            f"{len(lost)} of {len(found)} seats were lost, the first in {lost[0].match}: {lost[0].error}"
        )


def _sit(url: str, token: str, wanted: "Wanted", found: "list[Played]") -> "ArenaError | None":
    """Let a person play, in the terminal; note what was played, and return why there was no more."""
    from arena.join import Played
    from clients.human import ServerSeats
    from clients.spectator.person import PersonApp

    seats = ServerSeats(url, token=token, ask=wanted.ask(agent="human"), matches=wanted.matches)
    count = None if wanted.tournament else wanted.matches
    app = PersonApp(seats, count=count, settings_path=settings_path())
    app.run()
    for sat in app.sat:
        match = sat.match
        error = sat.error
        if error is None and match.over is None:
            error = f"the seat in {match.id} was left before the end"
        found.append(
            Played(match.id, match.game.name, match.seat, match.seats, sat.turns, 0, error, match.over)
        )
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
    if app.error is not None:
        return app.error
    lost = [one for one in found if one.error is not None]
    return None if not lost else SeatLost("left", str(lost[0].error))


def _tell(found: "list[Played]", *, url: str, player: str, spec: str, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "player": player, "spec": spec, "matches": _rows(found)})
    elif found:
        _show(found)


def _status(status: str, why: str) -> None:
    if status == "reconnecting":
        click.echo(f"Connection lost ({why}); trying to come back …", err=True)
    elif status == "connected" and not why:
        click.echo("Connected.", err=True)


def _seated(match: Any) -> None:
    click.echo(f"Seat {match.seat} of {match.seats} in {match.id}, {match.game.title}.", err=True)


def _silence_stamina() -> None:
    """Keep its log of attempts, which may go to stdout, out of ours: `_status` says what there is to say."""
    with contextlib.suppress(ModuleNotFoundError):  # what is missing is said when a connection is made
        from stamina import instrumentation

        instrumentation.set_on_retry_hooks(())


def _rows(found: "list[Played]") -> list[dict[str, Any]]:
    rows = []
    for one in found:
        row: dict[str, Any] = {
            "match": one.match,
            "game": one.game,
            "seat": one.seat,
            "seats": one.seats,
            "turns": one.turns,
            "failures": one.failures,
            "error": one.error,
            "ended": None,
        }
        if one.over is not None:
            row |= {
                "ended": one.over.ended[one.seat],
                "return": one.over.returns[one.seat],
                "team": one.over.teams[one.seat],
                "role": one.over.roles[one.seat],
                "reason": one.over.reason,
            }
        rows.append(row)
    return rows


def _show(found: "list[Played]") -> None:
    rows = table(
        "", ["match", "game", "seat", "role", "ended", "return", "turns"], right=["seat", "return", "turns"]
    )
    for row in _rows(found):
        value = f"{row['return']:+g}" if "return" in row else ""
        ended = row["ended"] or "seat lost"
        rows.add_row(
            row["match"], row["game"], str(row["seat"]), row.get("role", ""), ended, value, str(row["turns"])
        )
    stdout_console().print(rows)
