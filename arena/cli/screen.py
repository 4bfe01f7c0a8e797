"""What the commands share that take the screen over: the terminal, or `--web`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

SETTINGS_FILE = "watch.json"


def web_options(command: Command) -> Command:
    """Add `--web`, `--web-port` and `--web-sessions`."""
    for option in (
        click.option(
            "--web-sessions",
            type=int,
            metavar="N",
            help="How many browser windows at a time.  [default: 4]",
        ),
        click.option(
            "--web-port",
            type=int,
            metavar="P",
            help="Where the browser connects; 0 takes a free port.  [default: 8422]",
        ),
        click.option("--web", is_flag=True, help="Show it in a browser on this machine instead."),
    ):
        command = option(command)
    return command


def check_web(web: bool, port: int | None, sessions: int | None) -> None:
    """Refuse what goes with `--web` alone."""
    if not web and (port is not None or sessions is not None):
        raise click.UsageError("--web-port and --web-sessions go with --web", click.get_current_context())


def check_terminal(otherwise: str) -> None:
    """Refuse where there is no screen to draw on; `otherwise` says what to do then."""
    from clients.spectator.web import is_web

    if not is_web() and not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise click.UsageError(otherwise, click.get_current_context())


def settings_path() -> Path:
    """Return where the screens remember what was chosen."""
    return Path(click.get_app_dir("evoke-arena")) / SETTINGS_FILE


def check_watch_packages() -> None:
    """Say in one line where what draws is not installed."""
    try:
        import textual  # noqa: F401
    except ModuleNotFoundError as error:
        from clients.errors import ClientError

        raise ClientError(f"the package {error.name} is missing: pip install 'evoke-arena[watch]'") from None


def serve_web(
    arguments: Sequence[str], *, title: str, port: int | None, sessions: int | None, token: str | None
) -> None:
    """Serve a command of `arena` to a browser until it is interrupted."""
    import asyncio

    from clients.spectator.web import DEFAULT_PORT, DEFAULT_SESSIONS, serve

    asyncio.run(
        serve(
            arguments,
            title=title,
            port=DEFAULT_PORT if port is None else port,
            sessions=DEFAULT_SESSIONS if sessions is None else sessions,
            token=token or "",
            ready=lambda url: click.echo(
                f"{title}: open {url} in a browser on this machine; ctrl+c ends it."
            ),
        )
    )


def words(**options: object) -> list[str]:
    """Return options as a command line has them: flags for True, nothing for None and False, lists repeated."""
    found: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            found.append(flag)
        elif value is not None and value is not False:
            found += [f"{flag}={one}" for one in (value if isinstance(value, list | tuple) else [value])]
    return found
