"""The command `arena`: which commands there are, and how every error leaves the process.

Commands are loaded when they are called; their one-line helps stand here, so that `arena --help` imports
nothing but click (a test compares them with the commands themselves).
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from games.errors import ArenaError

COMMANDS = {
    "adapters": ("arena.cli.adapters:adapters", "List, publish and retire the adapters of language models."),
    "config": ("arena.cli.config:config", "Show the configuration and where each value came from."),
    "credit": ("arena.cli.credit:credit", "Divide a team's result among its seats and their decisions."),
    "doctor": ("arena.cli.doctor:doctor", "Say what works here, and how to mend what does not."),
    "evolve": (
        "arena.cli.evolve:evolve",
        "Generate tasks at the edge of ability, attempt and judge them, remember, and begin again.",
    ),
    "games": ("arena.cli.games:games", "List the games, or print the rules of one."),
    "join": ("arena.cli.join:join", "Seat a local player at a server, and play."),
    "judge": ("arena.cli.judge:judge", "Try the judges, and answer what they leave to a person."),
    "memory": ("arena.cli.memory:memory", "Look into an experience store: tasks, attempts and lessons."),
    "play": ("arena.cli.play:play", "Play one match of GAME, print it, and write its record."),
    "players": ("arena.cli.players:players", "List the players with the games each can play."),
    "policy": ("arena.cli.policy:policy", "Make and examine the language models that play as `policy`."),
    "ratings": ("arena.cli.ratings:ratings", "Show the standings over everything in the store."),
    "replay": ("arena.cli.replay:replay", "Show, verify, export and compare records."),
    "reply": ("arena.cli.reply:reply", "Say what a model's reply means."),
    "runs": ("arena.cli.runs:runs", "List, show and plot the runs of `arena train` and `arena evolve`."),
    "serve": ("arena.cli.serve:serve", "Host matches for agents and people, and show them to spectators."),
    "tasks": ("arena.cli.tasks:tasks", "Make, check, solve and show tasks, as lines of JSON."),
    "token": ("arena.cli.token:token", "Make, list and revoke the tokens that a server takes."),
    "tournament": ("arena.cli.tournament:tournament", "Run a tournament and print its standings."),
    "train": (
        "arena.cli.train:train",
        "Train the policy by playing: matches, credit, an update of the weights, a new version, and again.",
    ),
    "watch": ("arena.cli.watch:watch", "Watch a match, or a run of `arena evolve`, in the terminal."),
}

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


class ArenaGroup(click.Group):
    """The root group. Loads commands when they are called and turns every error into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; in standalone mode (the default) leave with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(arguments, prog_name or "arena", complete_var, standalone_mode=False, **extra)
        debug = "--debug" in arguments
        try:
            code = super().main(arguments, prog_name or "arena", complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BaseException as error:
            if debug and not isinstance(error, click.exceptions.Exit | click.ClickException | SystemExit):
                import traceback

                traceback.print_exc()
            code = report(error)
        sys.exit(code if isinstance(code, int) else 0)


def report(error: BaseException) -> int:
    """Print an error as one line on stderr and return the exit code of the process."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
            return EXIT_USAGE
        case click.ClickException():
            _line(_usage_line(error))
            return EXIT_USAGE
        case ArenaError():
            _line(f"Error: {error}")
            return error.exit_code
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else EXIT_FAILED
        case KeyboardInterrupt() | click.Abort():
            _line("Interrupted.")
            return EXIT_INTERRUPTED
        case BrokenPipeError():
            # Python flushes stdout once more when it ends; give it something that takes the bytes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return EXIT_FAILED
        case OSError():
            where = f"{error.filename}: " if error.filename is not None else ""
            _line(f"Error: {where}{error.strerror or error}")
            return EXIT_FAILED
    _line(f"Error: unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)")
    return EXIT_FAILED


def _usage_line(error: click.ClickException) -> str:
    message = error.format_message().rstrip()
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"Error: {message.removesuffix('.')}{hint}"


def _line(text: str) -> None:
    click.echo(" ".join(text.split()), err=True)


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("evoke-arena")
    except PackageNotFoundError:
        installed = "from a source folder, not installed"
    click.echo(f"arena, version {installed}")
    ctx.exit()


@click.group(
    "arena",
    cls=ArenaGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and leave.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Print the traceback of an error.")
def cli() -> None:
    """Play social-reasoning games with agents, bots and people; every match is recorded.

    Commands that read take --json: one JSON document on stdout and nothing else there. Exit codes: 0 done,
    1 failed, 2 bad input, 3 a record does not verify, 130 interrupted.
    """
