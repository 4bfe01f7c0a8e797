"""`arena evolve`: the loop that never runs out of tasks."""

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
    stdout_console,
    table,
)

if TYPE_CHECKING:
    from arena.evolve_log import Entry, State


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--resume", is_flag=True, help="Go on with the run of that name.")
@click.option(
    "--adopt", is_flag=True, help="Go on with FILE though the run was made with other values, or rolled back."
)
@click.option(
    "--rollback",
    type=click.IntRange(min=0),
    metavar="N",
    help="Put what followed generation N out of force; configuration, judge and weights of then hold again.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Budget in seconds, instead of FILE's.",
)
@click.option("--tasks", type=click.IntRange(min=1), metavar="N", help="Budget in tasks, instead of FILE's.")
@policy_options
@home_option
@config_option
@json_option
@debug_option
def evolve(
    file: Path,
    resume: bool,
    adopt: bool,
    rollback: int | None,
    seconds: float | None,
    tasks: int | None,
    backend: str | None,
    model: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Generate tasks at the edge of ability, attempt and judge them, remember, and begin again.

    FILE is a TOML file; what it leaves out has a default. The run is kept in HOME/runs/NAME: the experience store,
    metrics.json and report.html. A run that was interrupted or killed goes on with --resume, with nothing lost or
    done twice. With --json the metrics are printed.
    """
    import asyncio

    from arena import evolve as loop
    from arena import logs
    from arena.config import load
    from arena.evolve_config import EvolveConfig

    logs.configure()
    config = EvolveConfig.load(file)
    if seconds is not None or tasks is not None:
        budget = config.budget.model_copy(update={"seconds": seconds, "tasks": tasks})
        config = config.model_copy(update={"budget": budget})
    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    try:
        outcome = asyncio.run(
            loop.evolve(
                config,
                home=settings.home,
                policy=settings.policy,
                resume=resume,
                adopt=adopt,
                rollback=rollback,
                progress=_Progress(),
            )
        )
    except KeyboardInterrupt:
        click.echo("What was finished is kept; the same command with --resume goes on.", err=True)
        raise
    if as_json:
        print_json(outcome.metrics)
    else:
        _show(outcome.metrics, outcome.folder)
    if outcome.stopped_by == "alert":
        (last, *_) = reversed(outcome.metrics["alerts"])
        click.echo(f"Error: stopped by an alert: {last['text']}", err=True)
        raise click.exceptions.Exit(1)


class _Progress:
    """Says a line now and then."""

    def __init__(self) -> None:
        import time

        self._clock = time.monotonic
        self._said = 0.0

    def __call__(self, state: "State", entry: "Entry") -> None:
        for alert in entry.alerts:
            click.echo(f"generation {entry.generation}: alert: {alert['text']}", err=True)
        if self._clock() - self._said < 5.0:
            return
        self._said = self._clock()
        train = [row.success for row in entry.attempts if row.purpose == "train"]
        share = f"{sum(train)} of {len(train)} solved" if train else "nothing to train on"
        click.echo(
            f"generation {entry.generation}: {state.tasks} tasks, {state.seconds:.0f} s, {share}", err=True
        )


def _show(found: dict[str, Any], folder: Path) -> None:
    shown = table("", ["skill", "attempts", "success", "frontier", "target"], right=["attempts", "success"])
    for one in found["profile"]:
        edge = found["frontier"].get(one["skill"])
        moved = f"{edge['first']:.1f} → {edge['latest']:.1f}" if edge else ""
        target = f"{edge['target']:.1f}" if edge else ""
        shown.add_row(one["skill"], str(one["attempts"]), f"{one['value']:.0%}", moved, target)
    stdout_console().print(shown)
    success = found["success"]
    for name, title in (
        ("first_try", "First try at new difficulty"),
        ("retention", "Retention of old tasks"),
    ):
        if success[name]["value"] is not None:
            click.echo(f"{title}: {success[name]['value']:.0%} of {success[name]['attempts']}")
    for level, one in success["fixed"].items():
        if one["latest"]["value"] is not None:
            first = one["first"]["value"]
            began = "" if first is None else f"{first:.0%} → "
            click.echo(f"Fixed tasks of level {level}: {began}{one['latest']['value']:.0%}")
    if (own := found["proposer"]) is not None:
        click.echo(
            f"Proposed by {own['version']}: {own['accepted']} of {own['numbers']} tasks, {own['tries']} tries"
        )
    if (gain := found["lessons"]["gain"]) is not None:
        low, high = gain["interval"]
        active, retired = found["lessons"]["active"], found["lessons"]["retired"]
        click.echo(
            f"Advice: {gain['value']:+.0%} success ({low:+.0%} to {high:+.0%}), {active} lessons, {retired} retired"
        )
    for alert in found["alerts"]:
        click.echo(f"Alert in generation {alert['generation']}: {alert['text']}")
    if found["judge"]["queue"]["waiting"]:
        click.echo(f"{found['judge']['queue']['waiting']} cases wait for a person: arena judge audit")
    click.echo(
        f"{found['run']}: {found['generations']} generations, {found['tasks']} tasks, "
        f"{found['attempts']} attempts, {found['seconds']:.0f} s, configuration {found['config'][:12]}"
    )
    click.echo(f"Report: {folder / 'report.html'}")
