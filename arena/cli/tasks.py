"""`arena tasks generate|check|solve|show`: tasks as lines of JSON, made for pipes."""

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from arena.cli.common import debug_option, json_option, parse_pairs, print_json, seed_option
from games.errors import BadOption, GameError

if TYPE_CHECKING:
    from arena.tasks import Item
    from games.tasks.generate import Knobs

EXIT_MISMATCH = 3

file_argument = click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))

nodes_option = click.option(
    "--max-nodes",
    type=click.IntRange(1, 10_000_000),
    default=200_000,
    show_default=True,
    metavar="N",
    help="How much the solver may look at before it says unknown.",
)


@click.group()
@debug_option
def tasks() -> None:
    """Make, check, solve and show tasks, as lines of JSON.

    A line is a task, or what `arena tasks solve` writes: a task with a plan. FILE is one of lines, or one JSON
    document; - (the default) is stdin. So the commands work in a pipe:

    \b
      arena tasks generate --count 5 | arena tasks solve | arena tasks check
    """


@tasks.command("generate")
@click.option(
    "--count",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    metavar="N",
    help="How many tasks to make.",
)
@seed_option("The same seed, knobs and count give the same tasks.  [default: 0]")
@click.option(
    "--world",
    type=click.Choice(["grid", "text"]),
    default="grid",
    show_default=True,
    help="The world that the tasks are set in.",
)
@click.option(
    "--knob",
    "pairs",
    multiple=True,
    metavar="K=V",
    help="How the tasks are: side, objects, path_length, rule_depth, time_pressure, distractors, patrols, "
    "obstacles, avoid, deliver, before.",
)
@click.option("--skill", metavar="SKILL", help="Turn the knobs so far that the tasks take this skill.")
@click.option(
    "--max-similarity",
    "below",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="X",
    help="Leave out what is as much like a task before it (0 to 1).",
)
@json_option
@debug_option
def generate_tasks(
    count: int,
    seed: int | None,
    world: str,
    pairs: tuple[str, ...],
    skill: str | None,
    below: float | None,
    as_json: bool,
) -> None:
    """Print new tasks, each proven solvable and measured: a line of JSON for each, with --json one list."""
    from arena.tasks import made

    found = made(world, seed or 0, _knobs(pairs), count=count, skill=skill, below=below)
    _print((spec.to_data() for spec in found), as_json)


@tasks.command("solve")
@file_argument
@nodes_option
@json_option
@debug_option
def solve_tasks(file: Path, max_nodes: int, as_json: bool) -> None:
    """Print a shortest plan for each task in FILE, or that there is none.

    A line of JSON for each: task (its hash), status (solvable, unsolvable or unknown), length, nodes, actions
    and spec. All three answers are exit code 0.
    """
    from arena.tasks import solved

    _print((solved(item, max_nodes=max_nodes) for item in read_tasks(file)), as_json)


@tasks.command("check")
@file_argument
@nodes_option
@json_option
@debug_option
def check_tasks(file: Path, max_nodes: int, as_json: bool) -> None:
    """Say of each line in FILE whether it is what it claims.

    A task with actions: whether they solve it, by a replay that believes no reported state. A task alone:
    whether it can be solved within its budget, and its difficulty is as it says. Every line is looked at. Exit
    code 2 if one is no task, else 3 if one is not ok.
    """
    from arena.tasks import checked

    refused: list[GameError] = []
    verdicts: list[bool] = []

    def results() -> Iterator[dict[str, Any]]:
        for item in _read(file):
            if isinstance(item, tuple):
                refused.append(item[1])
                yield {"line": item[0], "ok": False, "reason": str(item[1]), "error": item[1].code}
                continue
            found = checked(item, max_nodes=max_nodes)
            verdicts.append(found["ok"])
            yield found

    _print(results(), as_json)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise type(refused[0])(f"{refused[0]}{more}")
    if not all(verdicts):
        click.get_current_context().exit(EXIT_MISMATCH)


@tasks.command("show")
@file_argument
@click.option("--play", is_flag=True, help="Play the actions that come with a task, step by step.")
@click.option("--solve", "find", is_flag=True, help="Find a shortest plan first, and play it.")
@click.option("--actions", metavar="A,B,…", help="Play these actions instead.")
@json_option
@debug_option
def show_tasks(file: Path, play: bool, find: bool, actions: str | None, as_json: bool) -> None:
    """Show each task in FILE: its text, its measures, its world as text, and a plan played in it."""
    from arena.tasks import frames
    from games.tasks.grid import LEGEND
    from games.tasks.solver import solve_task

    documents = []
    for item in read_tasks(file):
        plan: tuple[str, ...] = ()
        if actions is not None:
            plan = tuple([action.strip() for action in actions.split(",") if action.strip()])
        elif find:
            plan = solve_task(item.spec).plan or ()
        elif play and item.attempt is not None:
            plan = item.attempt.actions
        shown = frames(item.spec, plan)
        if as_json:
            head = {"task": item.spec.hash, "text": item.spec.text, "spec": item.spec.to_data()}
            documents.append({**head, "frames": [frame.to_data() for frame in shown]})
            continue
        _echo_head(item, found=None if not find else bool(plan))
        for frame in shown:
            title = "start" if frame.action is None else frame.action
            click.echo(f"\nstep {frame.step}: {title} ({frame.goal})\n{frame.picture.rstrip()}")
        click.echo(f"\n{LEGEND}\n" if item.spec.world == "grid" else "")
    if as_json:
        print_json(documents)


def _echo_head(item: "Item", *, found: bool | None) -> None:
    spec = item.spec
    click.echo(f"{spec.text}")
    click.echo(f"task {spec.hash[:12]}, world {spec.world}, made by {spec.generator}")
    if spec.skills:
        click.echo(f"skills: {', '.join(spec.skills)}")
    if spec.difficulty:
        click.echo("difficulty: " + ", ".join(f"{name} {value:g}" for name, value in spec.difficulty))
    if found is False:
        click.echo("no plan was found within the budget")


def _knobs(pairs: tuple[str, ...]) -> "Knobs":
    from games.tasks.generate import Knobs

    standard = Knobs()
    known = {field.name: type(getattr(standard, field.name)) for field in fields(Knobs)}
    values: dict[str, Any] = {}
    for name, text in parse_pairs(pairs, what="--knob").items():
        if name not in known:
            raise BadOption(f"--knob: got {name[:40]!r}, allowed are {', '.join(known)}")
        if known[name] is bool:
            if text not in ("true", "false"):
                raise BadOption(f"--knob {name}: got {text[:40]!r}, allowed are true and false")
            values[name] = text == "true"
            continue
        try:
            values[name] = known[name](text)
        except ValueError:
            raise BadOption(f"--knob {name}: got {text[:40]!r}, a number is needed") from None
    return Knobs(**values)


def _read(file: Path) -> "Iterator[Item | tuple[int, GameError]]":
    from arena.tasks import read_items

    try:
        with click.open_file(str(file), "rb") as stream:
            yield from read_items(cast("BinaryIO", stream))
    except OSError as error:
        raise click.UsageError(
            f"FILE {str(file)!r}: cannot read it: {error.strerror or error}", click.get_current_context()
        ) from None


def read_tasks(file: Path) -> "Iterator[Item]":
    """Yield the tasks in a file, - being stdin; the first line that is refused ends the command."""
    for item in _read(file):
        if isinstance(item, tuple):
            raise item[1]
        yield item


def _print(entries: Iterator[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(list(entries))
        return
    for entry in entries:
        click.echo(json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
