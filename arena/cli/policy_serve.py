"""`arena policy serve`: the configured policy behind OpenAI's chat completions."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from arena.cli.common import config_option, debug_option, home_option, policy_options

if TYPE_CHECKING:
    from arena.policy_serve import PolicyServer


@click.command()
@click.option("--host", metavar="H", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="P",
    default=8430,
    show_default=True,
    help="The port; 0 takes a free one.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1, 100_000),
    metavar="N",
    default=256,
    show_default=True,
    help="Requests that are open at the same time; more are answered 429.",
)
@policy_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print where it listens as one JSON line when it is ready."
)
@home_option
@config_option
@debug_option
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    max_requests: int,
    backend: str | None,
    model: str | None,
    as_json: bool,
    home: Path | None,
    config_file: Path | None,
) -> None:
    """Serve the policy to players elsewhere.

    They seat it as `openai:MODEL@URL`. It speaks OpenAI's chat completions, with vLLM's `structured_outputs` and
    token ids; whole replies, no streams. A key in the environment variable ARENA_POLICY_KEY must then be sent by
    every caller; beyond this machine one is needed. Stops on SIGINT and SIGTERM.
    """
    from arena import logs
    from arena.config import load

    logs.configure(verbose=True)
    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    try:
        from arena.policy_serve import KEY_ENV, PolicyServer
    except ModuleNotFoundError as error:
        from arena.errors import ServeError

        if (error.name or "").partition(".")[0] in ("aiohttp", "prometheus_client"):
            raise ServeError(
                f"{error.name} is not installed; `pip install 'evoke-arena[server]'` brings what a server needs"
            ) from None
        raise
    server = PolicyServer(
        settings.policy,
        home=settings.home,
        host=host,
        port=port,
        key=os.environ.get(KEY_ENV, "").strip() or None,
        max_requests=max_requests,
    )
    if _run(server, as_json=as_json) == signal.SIGINT:
        raise KeyboardInterrupt
    ctx.exit(0)


def _run(server: "PolicyServer", *, as_json: bool) -> int:
    """Serve until a signal comes; return which."""
    from arena.cli.serve import loop_factory, on_signals

    async def main() -> int:
        stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        on_signals(stop)
        click.echo(f"Loading the model {server.name} …", err=True)
        async with server.running(stop) as started:
            if started:
                _announce(server, as_json=as_json)
                await stop
                click.echo("Stopping.", err=True)
        return stop.result()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main())


def _announce(server: "PolicyServer", *, as_json: bool) -> None:
    player = f"openai:{server.name}@{server.url}"
    if as_json:
        click.echo(
            json.dumps({"url": server.url, "model": server.name, "player": player, "pid": os.getpid()})
        )
    else:
        click.echo(f"{server.model}: {server.url}")
        click.echo(f"Seat it with --player NAME={player}")
    sys.stdout.flush()
