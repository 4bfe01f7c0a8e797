"""`arena train`: self-play that improves the policy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    policy_options,
    print_json,
)

if TYPE_CHECKING:
    from arena.train import Trained

QUIET_S = 5.0
"""Seconds between two lines of progress."""


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--resume", is_flag=True, help="Go on with the run of that name, from its last checkpoint.")
@click.option("--adopt", is_flag=True, help="Go on with FILE though the run was made with other values.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="K=V",
    help="A value in place of FILE's, as in learner.lr=0.001; may be given again.",
)
@policy_options
@home_option
@config_option
@json_option
@debug_option
def train(
    file: Path,
    resume: bool,
    adopt: bool,
    sets: tuple[str, ...],
    backend: str | None,
    model: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Train the policy by playing: matches, credit, an update of the weights, a new version, and again.

    FILE is a TOML file; what it leaves out has a default. The run is kept in HOME/runs/NAME, its weights are adapter
    versions called NAME, and `arena runs show NAME` tells how it went. A run that was interrupted or killed goes on
    with --resume. With --json what it came to is printed.
    """
    import asyncio

    from arena import logs
    from arena import train as loop
    from arena.config import load
    from arena.train_file import load as load_file

    logs.configure()
    config = load_file(file, sets=sets)
    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    try:
        found = asyncio.run(
            loop.train(config, settings=settings, resume=resume, adopt=adopt, report=_Progress())
        )
    except KeyboardInterrupt:
        click.echo("What was finished is kept; the same command with --resume goes on.", err=True)
        raise
    if as_json:
        print_json(summary(found))
    else:
        _show(found)
    if found.stopped_by == "alarm":
        (last, *_) = [line for line in reversed(found.lines) if line["kind"] == "alarm"]
        click.echo(f"Error: stopped by an alarm: {last['text']}", err=True)
        raise click.exceptions.Exit(1)


class _Progress:
    """Says a line now and then, and every evaluation and alarm."""

    def __init__(self) -> None:
        import time

        self._clock = time.monotonic
        self._said = float("-inf")

    def __call__(self, line: dict[str, Any]) -> None:
        from arena.runs import told

        if line["kind"] == "update":
            if self._clock() - self._said < QUIET_S:
                return
            self._said = self._clock()
        for text in told(line):
            click.echo(text, err=True)


def summary(found: "Trained") -> dict[str, Any]:
    """Return what a run came to, as `--json` prints it."""
    evaluations = [line for line in found.lines if line["kind"] == "evaluation"]
    return {
        "run": found.folder.name,
        "folder": str(found.folder),
        "stopped_by": found.stopped_by,
        "updates": found.progress.update,
        "matches": found.progress.matches,
        "attempts": found.progress.attempts,
        "failed": found.progress.failed,
        "tokens": found.progress.tokens,
        "seconds": round(found.progress.seconds, 3),
        "adapter": found.version,
        "model": found.model,
        "first": evaluations[0] if evaluations else None,
        "latest": evaluations[-1] if evaluations else None,
        "alarms": [line for line in found.lines if line["kind"] == "alarm"],
    }


def _show(found: "Trained") -> None:
    from arena.runs import told

    evaluations = [line for line in found.lines if line["kind"] == "evaluation"]
    for line in evaluations[:1] + evaluations[1:][-1:]:
        for text in told(line):
            click.echo(text)
    progress = found.progress
    click.echo(
        f"{found.folder.name}: {progress.update} updates, {progress.matches} matches, {progress.tokens} tokens, "
        f"{progress.seconds:.0f} s; stopped by {found.stopped_by}"
    )
    click.echo(f"Weights: policy:{found.version} of the model {found.model}")
