"""`arena runs`: what came of `arena train` and `arena evolve`."""

from pathlib import Path
from typing import Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    print_json,
    stdout_console,
    table,
)


@click.group()
@debug_option
def runs() -> None:
    """List, show and plot the runs of `arena train` and `arena evolve`."""


@runs.command("list")
@home_option
@config_option
@json_option
@debug_option
def list_(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """List the runs of the home."""
    from arena.runs import RUNS, all_runs, row

    where = _home(home, config_file)
    rows = [row(run) for run in all_runs(where)]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"{where / RUNS}: no runs; `arena train FILE` and `arena evolve FILE` make some")
        return
    columns = ["run", "kind", "updates", "matches", "time", "latest evaluation", ""]
    shown = table("", columns, right=["updates", "matches", "time"])
    for one in rows:
        note = "running" if one["running"] else ""
        shown.add_row(
            one["run"],
            one["kind"],
            str(one["updates"]),
            str(one["matches"]),
            f"{one['seconds'] or 0:.0f} s",
            one["result"],
            note,
        )
    stdout_console().print(shown)


@runs.command()
@click.argument("name")
@home_option
@config_option
@json_option
@debug_option
def show(name: str, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Show how the run NAME went: its evaluations, alarms and latest update."""
    from arena.runs import details, find_run, told

    run = find_run(_home(home, config_file), name)
    found = details(run)
    if as_json:
        print_json(found)
        return
    if run.kind == "evolve":
        click.echo(
            f"{name}: {found['generations']} generations, {found['tasks']} tasks, {found['attempts']} attempts, "
            f"{found['seconds']:.0f} s"
        )
        click.echo(f"Report: {run.folder / 'report.html'}")
        return
    click.echo(
        f"{name}: {found['updates']} updates, {found['matches']} matches, {found['seconds']:.0f} s, "
        f"model {found['model']}, configuration {found['digest'][:12]}"
    )
    for line in (*found["evaluations"], *found["alarms"]):
        for text in told(line):
            click.echo(text)
    if found["latest"] is not None:
        _latest(found["latest"])
    if run.running:
        click.echo("It is running.")
    elif found["stopped_by"]:
        click.echo(f"Stopped by {found['stopped_by']}.")


def _latest(line: dict[str, Any]) -> None:
    from arena.train_log import numbers

    shown = table(f"Update {line['update']}", ["figure", "value"], right=["value"])
    for name, value in numbers(line):
        shown.add_row(name, f"{value:,.6g}")
    stdout_console().print(shown)


@runs.command()
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path), help="The page.  [default: report.html of the run]")
@home_option
@config_option
@json_option
@debug_option
def plot(name: str, out: Path | None, home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Write a page with plots of the run NAME. With --json the values are printed instead."""
    from arena.runs import PAGE, find_run, page, series

    run = find_run(_home(home, config_file), name)
    if run.kind == "evolve":
        from arena.errors import TrainError

        raise TrainError(f"run {name}: `arena evolve` writes its plots by itself: {run.folder / PAGE}")
    if as_json:
        print_json(
            [
                {"title": title, "axis": axis, "updates": at, "values": values}
                for title, axis, at, values in series(run)
            ]
        )
        return
    path = run.folder / PAGE if out is None else out
    path.write_text(page(run), encoding="utf-8")
    click.echo(str(path))


def _home(home: Path | None, config_file: Path | None) -> Path:
    from arena.config import load

    return load(file=config_file, flags={"home": home}).settings.home
