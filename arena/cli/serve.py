"""`arena serve`: host matches for whoever connects."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arena.cli.common import config_option, debug_option, home_option

if TYPE_CHECKING:
    from arena.config import Settings


@click.command()
@click.option("--host", metavar="H", help="The address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=int, metavar="P", help="For agents and spectators; 0 takes a free one.  [default: 8420]"
)
@click.option(
    "--http-port",
    type=int,
    metavar="Q",
    help="For pages, REST and metrics; 0 takes a free one.  [default: 8421]",
)
@click.option("--tls-cert", type=click.Path(path_type=Path), help="A certificate (PEM): speak TLS.")
@click.option(
    "--tls-key", type=click.Path(path_type=Path), help="Its key (PEM), where it is a file of its own."
)
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Pages that may connect; repeatable.")
@click.option(
    "--anonymous",
    type=click.Choice(["none", "watch", "play", "play,watch"]),
    help="What needs no token.  [default: play,watch on this machine alone, else watch]",
)
@click.option(
    "--deadline-s", "deadline_s", type=float, metavar="S", help="Seconds for one turn.  [default: 60]"
)
@click.option("--grace-s", "grace_s", type=float, metavar="S", help="Seconds to come back.  [default: 30]")
@click.option(
    "--fill-after-s", "fill_after_s", type=float, metavar="S", help="Seconds until bots join.  [default: 10]"
)
@click.option(
    "--delay-s", "delay_s", type=float, metavar="S", help="Seconds that spectators are behind.  [default: 0]"
)
@click.option(
    "--tournament",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A tournament to open for registration (TOML); repeatable.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print where it listens as one JSON line when it is ready."
)
@home_option
@config_option
@debug_option
@click.pass_context
def serve(
    ctx: click.Context,
    host: str | None,
    port: int | None,
    http_port: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    origins: tuple[str, ...],
    anonymous: str | None,
    deadline_s: float | None,
    grace_s: float | None,
    fill_after_s: float | None,
    delay_s: float | None,
    files: tuple[Path, ...],
    as_json: bool,
    home: Path | None,
    config_file: Path | None,
) -> None:
    """Host matches for agents and people, and show them to spectators.

    Stops on SIGINT and SIGTERM; matches that are not over go on when a server is started again on the same
    home. The other settings are those of the section `server`; `arena config show` prints them.
    """
    from arena import logs
    from arena.config import load

    logs.configure(verbose=True)
    settings = load(
        file=config_file,
        flags={
            "home": home,
            "server.host": host,
            "server.port": port,
            "server.http_port": http_port,
            "server.tls_cert": tls_cert,
            "server.tls_key": tls_key,
            "server.origins": origins or None,
            "server.anonymous": _scopes(anonymous),
            "server.deadline_s": deadline_s,
            "server.grace_s": grace_s,
            "server.fill_after_s": fill_after_s,
            "server.delay_s": delay_s,
        },
    ).settings
    got = _run(settings, files, as_json=as_json)
    if got == signal.SIGINT:
        raise KeyboardInterrupt
    ctx.exit(0)


def _scopes(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return () if text == "none" else tuple(text.split(","))


def _run(settings: "Settings", files: tuple[Path, ...], *, as_json: bool) -> int:
    """Serve until a signal comes; return which."""
    try:
        from arena.serving import ArenaServer, prepare_process, warnings
    except ModuleNotFoundError as error:
        from arena.errors import ServeError

        if (error.name or "").partition(".")[0] in ("aiohttp", "prometheus_client", "websockets"):
            raise ServeError(
                f"{error.name} is not installed; `pip install 'evoke-arena[server]'` brings what a server needs"
            ) from None
        raise
    tournaments = [_read_tournament(path) for path in files]
    prepare_process()
    for line in warnings(settings.server):
        click.echo(f"Warning: {line}", err=True)

    async def main() -> int:
        stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        on_signals(stop)
        server = ArenaServer(settings, tournaments=tournaments)
        try:
            addresses = await server.start()
            _announce(addresses, settings, as_json=as_json)
            got = await stop
            click.echo("Stopping; matches that are not over go on after a restart.", err=True)
            return got
        finally:
            await server.close()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main())


def on_signals(stop: "asyncio.Future[int]") -> None:
    """Set `stop` to the first signal that asks the process to end."""

    def note(number: int) -> None:
        if not stop.done():
            stop.set_result(number)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, note, number)
        except (
            NotImplementedError
        ):  # no such thing on this system; an interrupt then raises as it always does
            signal.signal(number, lambda got, frame: loop.call_soon_threadsafe(note, got))


def loop_factory() -> Any:
    """Return what makes the event loop of a server; None is asyncio's own."""
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


def _announce(addresses: Any, settings: "Settings", *, as_json: bool) -> None:
    if as_json:
        ready = {
            "websocket": addresses.websocket,
            "http": addresses.http,
            "home": str(settings.home),
            "pid": os.getpid(),
        }
        click.echo(json.dumps(ready))
    else:
        click.echo(f"Agents and spectators: {addresses.websocket}")
        click.echo(f"Pages and REST:        {addresses.http}")
    sys.stdout.flush()


def _read_tournament(path: Path) -> Any:
    from pydantic import ValidationError

    from arena.config import explain, read_toml
    from arena.contest import OnlineTournament
    from arena.errors import ConfigError

    try:
        asked = OnlineTournament.model_validate(read_toml(path))
    except ValidationError as error:
        raise ConfigError(explain(error, OnlineTournament, where=f"file {path}")) from None
    asked.check()
    if "seed" not in asked.model_fields_set:
        # Chance is derived from the seed in the open: one that can be guessed gives every deal away.
        asked = asked.model_copy(update={"seed": secrets.randbits(63)})
    return asked
