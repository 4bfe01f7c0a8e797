"""The terminal application in a browser, through textual-serve: on this machine alone, and for few at a time.

Each browser window runs the command anew in a process of its own. A page from elsewhere that leads a browser here
gets no session: the host must be this machine's, and the origin this very page.
"""

import asyncio
import logging
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from games.errors import ArenaError

HOST = "127.0.0.1"
DEFAULT_PORT = 8422
DEFAULT_SESSIONS = 4
MAX_SESSIONS = 64
STOP_S = 5.0
"""Seconds that a session's process has to end by itself when its window is closed."""
DRIVER_VARIABLE = "TEXTUAL_DRIVER"
"""Set by textual-serve for the processes that it starts; they draw for a browser."""

log = logging.getLogger("arena.web")


class WebError(ArenaError):
    """The application cannot be served to a browser."""

    code = "web"
    exit_code = 2


def is_web() -> bool:
    """Whether this process draws for a browser."""
    return bool(os.environ.get(DRIVER_VARIABLE))


def command_line(arguments: Sequence[str]) -> str:
    """Return the shell's line for `arena ARGUMENTS` in a process of its own."""
    words = [sys.executable, "-m", "evoke_arena", *arguments]
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline(words)
    return f"exec {shlex.join(words)}"


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this machine. Raises `WebError`."""
    if not 0 <= port <= 65535:
        raise WebError(f"--web-port: got {port}, allowed are 0 to 65535")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen(64)
    except OSError as error:
        made.close()
        raise WebError(f"--web-port: cannot listen on {HOST}:{port}: {error.strerror or error}") from None
    return made


async def serve(
    arguments: Sequence[str],
    *,
    title: str,
    port: int = DEFAULT_PORT,
    sessions: int = DEFAULT_SESSIONS,
    token: str = "",
    ready: Callable[[str], None] = lambda url: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve `arena ARGUMENTS` to browsers until `stop` is set, or a signal comes.

    Args:
        arguments: of the command, without what makes it serve.
        title: of the page.
        port: 0 takes a free one.
        sessions: how many windows at a time.
        token: handed to the processes in their environment, never on a command line.
        ready: told the address.
        stop: ends it.

    Raises `WebError`.
    """
    if not 1 <= sessions <= MAX_SESSIONS:
        raise WebError(f"--web-sessions: got {sessions}, allowed are 1 to {MAX_SESSIONS}")
    listening = listen(port)
    try:
        try:
            from aiohttp import web

            from clients.spectator.web_server import make_server
        except ModuleNotFoundError as error:
            raise WebError(f"the package {error.name} is missing: pip install 'evoke-arena[watch]'") from None
        url = f"http://{HOST}:{listening.getsockname()[1]}"
        environment = {"ARENA_TOKEN": token} if token else {}
        server = make_server(
            command_line(arguments), url=url, title=title, sessions=sessions, environment=environment
        )
        runner = web.AppRunner(await server.application(), access_log=None, shutdown_timeout=STOP_S)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            ready(url)
            await _wait(stop or asyncio.Event())
        finally:
            await server.close()
            await runner.cleanup()
    finally:
        listening.close()


async def _wait(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    numbers: list[Any] = []
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
            numbers.append(number)
    except (NotImplementedError, RuntimeError, ValueError):
        pass  # no such thing here, or not in the main thread; an interrupt then raises as it always does
    try:
        await stop.wait()
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
