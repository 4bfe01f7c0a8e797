"""`arena watch`: the terminal spectator."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arena.cli.common import config_option, debug_option, home_option, warn_of_token
from arena.cli.screen import (
    check_terminal,
    check_watch_packages,
    check_web,
    serve_web,
    settings_path,
    web_options,
    words,
)
from replays.visitors import OMNISCIENT, PUBLIC, Perspective

if TYPE_CHECKING:
    from textual.screen import Screen

    from clients.spectator.app import SpectatorApp
    from clients.spectator.credit import CreditSheet
    from replays.record import Record

FILE_NAME = "arena.db"
"""Makes a directory a home."""


@click.command()
@click.argument("target", metavar="[URL | FILE | DIR]", required=False)
@click.option("--match", metavar="ID", help="Which match on the server.")
@click.option("--seat", type=int, metavar="N", help="Begin with what seat N sees.")
@click.option(
    "--all", "everything", is_flag=True, help="Begin with the omniscient view, hidden roles included."
)
@click.option("--ply", type=int, metavar="N", help="Begin a record where ply N is to be played (with --all).")
@click.option(
    "--credit",
    metavar="METHOD|FILE",
    help="Show who is credited with a finished record: a method of `arena credit`, or what it printed as JSON.",
)
@click.option(
    "--show",
    type=click.Choice(["lobby", "ratings", "tournament"]),
    help="What of a server is shown first.  [default: lobby]",
)
@click.option(
    "--http", metavar="URL", help="Where the server speaks HTTP, if it does not say so, as behind a proxy."
)
@click.option(
    "--token", envvar="ARENA_TOKEN", metavar="T", help="For the server.  [default: the variable ARENA_TOKEN]"
)
@web_options
@home_option
@config_option
@debug_option
def watch(
    target: str | None,
    match: str | None,
    seat: int | None,
    everything: bool,
    ply: int | None,
    credit: str | None,
    show: str | None,
    http: str | None,
    token: str | None,
    web: bool,
    web_port: int | None,
    web_sessions: int | None,
    home: Path | None,
    config_file: Path | None,
) -> None:
    """Watch a match, or a run of `arena evolve`, in the terminal.

    A URL is a server: its lobby, ratings and tournaments are shown, or the match that is named by --match. A FILE
    is a record: it is played back, and followed while it is still being written. A DIR lists the records in it,
    with the ratings and the runs where it is a HOME; without any it is HOME that is shown. A run's own directory,
    HOME/runs/NAME, shows that run, of `arena evolve` or `arena train`, and follows it; HOME does so at once where
    just one run is under way. What is hidden shows only when it is asked for.
    """
    context = click.get_current_context()
    if seat is not None and credit is not None:
        raise click.UsageError("give either --seat or --credit: credit tells of every seat", context)
    everything = everything or credit is not None
    if seat is not None and everything:
        raise click.UsageError("give either --seat or --all", context)
    if ply is not None and not everything:
        raise click.UsageError("--ply needs --all: only the omniscient view counts plies", context)
    check_web(web, web_port, web_sessions)
    perspective: Perspective = OMNISCIENT if everything else PUBLIC if seat is None else seat
    url = target if target is not None and "://" in target else None
    if url is None and match is not None:
        raise click.UsageError("--match needs a URL: a record holds one match", context)
    if url is None and (http is not None or show is not None):
        raise click.UsageError("--http and --show need a URL: they are of a server", context)
    if match is not None and show is not None:
        raise click.UsageError("give either --match or --show", context)
    path = record = None
    if url is not None:
        from clients.dial import check_address
        from clients.spectator.rest import check_http

        check_address(url)
        if http is not None:
            check_http(http)
        warn_of_token(token, url)
    else:
        path = _home(home, config_file) if target is None else Path(target)
        if path.is_dir() and (seat is not None or everything):
            _check_matches(path)
        record = _read(path, perspective, ply)
    if credit is not None and (path is None or record is None):
        raise click.UsageError("--credit needs a FILE: only a finished match is credited", context)
    if web:
        place = url if path is None else str(path.resolve())
        options = words(match=match, seat=seat, all=everything, ply=ply, show=show, http=http, credit=credit)
        check_watch_packages()
        serve_web(
            ["watch", *options, "--", str(place)],
            title="arena watch",
            port=web_port,
            sessions=web_sessions,
            token=token,
        )
        return
    check_terminal("watching needs a terminal; `arena replay show` prints a record")
    check_watch_packages()
    app: SpectatorApp
    if url is None:
        assert path is not None
        sheet = None if credit is None or record is None else _sheet(credit, path, record, home, config_file)
        app = _local(path, record, perspective, ply, sheet)
    else:
        from clients.spectator.server_app import ServerApp

        app = ServerApp(
            url,
            token=token or "",
            http=http or "",
            match=match,
            show=show or "lobby",
            perspective=perspective,
            settings_path=settings_path(),
        )
    app.run()
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)


def _sheet(
    credit: str, path: Path, record: "Record", home: Path | None, config_file: Path | None
) -> "CreditSheet":
    from arena.config import load
    from arena.watch_credit import credit_data
    from clients.spectator.credit import CreditSheet

    settings = load(file=config_file, flags={"home": home}).settings
    data = credit_data(credit, path, policy=settings.policy, home=settings.home)
    return CreditSheet.from_data(data, players=[seat.name for seat in record.header.seats])


def _local(
    path: Path,
    record: "Record | None",
    perspective: Perspective,
    ply: int | None,
    sheet: "CreditSheet | None" = None,
) -> "SpectatorApp":
    from arena.evolve_watch import HomeRuns, RunReader, is_run, run_folders, under_way
    from clients.spectator.app import SpectatorApp
    from clients.spectator.home_app import HomeApp
    from clients.spectator.screens.evolve import EvolveScreen
    from clients.spectator.screens.match import MatchScreen
    from clients.spectator.screens.ratings import RatingsScreen
    from clients.spectator.screens.records import RecordsScreen
    from clients.spectator.screens.runs import RunsScreen
    from clients.spectator.source import RecordSource

    if record is not None:
        source = RecordSource(path, perspective=perspective, record=record)
        if sheet is not None:
            from clients.spectator.screens.credit import CreditScreen

            credited = lambda: CreditScreen(source, sheet, ply=ply)  # noqa: E731
            return SpectatorApp({"match": credited}, settings_path=settings_path())
        return SpectatorApp({"match": lambda: MatchScreen(source, ply=ply)}, settings_path=settings_path())
    from clients.spectator.training import ROLLOUTS, is_training

    if is_training(path):
        from clients.spectator.screens.training import TrainingScreen

        return SpectatorApp(
            {
                "training": lambda: TrainingScreen(path),
                "records": lambda: RecordsScreen(path / ROLLOUTS, perspective=perspective),
            },
            settings_path=settings_path(),
        )
    if is_run(path):
        return SpectatorApp({"run": lambda: EvolveScreen(RunReader(path))}, settings_path=settings_path())
    is_home, runs = (path / FILE_NAME).is_file(), run_folders(path)
    folder = path / "replays" if (is_home or runs) and (path / "replays").is_dir() else path
    modes: dict[str, Callable[[], Screen[Any]]] = {}
    if is_home or not runs or folder != path:
        modes["records"] = lambda: RecordsScreen(folder, perspective=perspective)
    if is_home:
        from arena.home_facts import HomeFacts

        facts = HomeFacts(path)
        modes["ratings"] = lambda: RatingsScreen(facts)
    if runs:
        going = under_way(path)
        opened = going[0].name if len(going) == 1 else ""
        modes["runs"] = lambda: RunsScreen(HomeRuns(path), opened=opened)
    first = "runs" if runs and opened else next(iter(modes))
    return HomeApp(modes, first=first, settings_path=settings_path())


def _check_matches(path: Path) -> None:
    from arena.evolve_watch import is_run

    if is_run(path):
        raise click.UsageError(
            f"--seat and --all are of matches; {path} is a run of `arena evolve`", click.get_current_context()
        )


def _home(home: Path | None, config_file: Path | None) -> Path:
    from arena.config import load

    return load(file=config_file, flags={"home": home}).settings.home


def _read(path: Path, perspective: Perspective, ply: int | None) -> "Record | None":
    """Return the record, None for a directory; what could not be shown is refused before the screen is taken over."""
    from games.registry import load_game
    from replays.errors import RecordUnreadable
    from replays.export import check_perspective
    from replays.reader import read_record
    from replays.visitors import Counts, walk

    if path.is_dir():
        return None
    if not path.exists():
        raise RecordUnreadable(f"{path}: nothing to watch there: No such file or directory")
    record = read_record(path)
    load_game(record.header.game)
    check_perspective(record, perspective)
    if ply is not None:
        plies = walk(record, Counts())["plies"]
        if not 0 <= ply <= plies:
            raise click.BadParameter(f"got {ply}, this match has plies 0 to {plies}", param_hint="'--ply'")
    return record
