"""`arena memory stats|search|export|review`: what is in an experience store."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    parse_pairs,
    print_json,
    stdout_console,
    table,
)

if TYPE_CHECKING:
    from agents.memory import Memory

Command = TypeVar("Command", bound=Callable[..., Any])
EXIT_MISMATCH = 3
SHORT = 12
"""Characters of a hash that are shown."""

limit_option = click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=8,
    show_default=True,
    help="Rows of a sort at most.",
)


def store_options(command: Command) -> Command:
    """Add what says which store: `--run`, `--home`, `--config`."""
    run = click.option(
        "--run",
        metavar="RUN",
        help="A run of `arena evolve` by its name or directory, or a store's file.  [default: the only run]",
    )
    return run(home_option(config_option(command)))


@click.group()
@debug_option
def memory() -> None:
    """Look into an experience store: tasks, attempts and lessons.

    Every run of `arena evolve` has one, HOME/runs/NAME/memory.db. It may be looked at while the run goes on.
    """


@memory.command("stats")
@click.option("--actor", metavar="SPEC", help="Attempts of this actor alone.")
@click.option(
    "--purpose",
    type=click.Choice(["train", "test", "review", "trial"]),
    help="Attempts of this purpose alone.",
)
@click.option("--since", type=click.IntRange(min=0), metavar="G", help="From generation G on.")
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the last N attempts of each skill.",
)
@click.option(
    "--check", is_flag=True, help="Read all of it and count its sums anew; exit code 3 if one is wrong."
)
@store_options
@json_option
@debug_option
def stats_command(
    actor: str | None,
    purpose: str | None,
    since: int | None,
    window: int | None,
    check: bool,
    run: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Show what a store holds, and the profile by skill."""
    from arena.memory import stats

    with _open(run, home, config_file) as store:
        found, profile = stats(store, actor=actor, purpose=purpose, since=since, window=window, check=check)
    if as_json:
        print_json(found)
    else:
        click.echo(f"{found['store']}, {found['bytes'] / 2**20:.1f} MiB")
        for name in ("tasks", "lessons"):
            by_status = ", ".join(f"{count} {status}" for status, count in found[name].items())
            click.echo(f"{found['counts'][name]} {name}: {by_status}")
        click.echo(f"{found['counts']['episodes']} attempts, {found['counts']['versions']} versions")
        click.echo(f"\n{profile.table()}" if profile.rows else "no attempts of that sort")
        for problem in found.get("problems", ()):
            click.echo(f"wrong: {problem}")
    if found.get("problems"):
        raise click.exceptions.Exit(EXIT_MISMATCH)


@memory.command("search")
@click.argument("words", nargs=-1)
@click.option(
    "--like",
    "like",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Instead of words: the first task in FILE (- is stdin), to which others are compared.",
)
@click.option(
    "--vectors",
    type=click.Choice(["hashed", "minilm"]),
    default="hashed",
    show_default=True,
    help="What compares texts; minilm needs evoke-arena[embeddings].",
)
@limit_option
@store_options
@json_option
@debug_option
def search_command(
    words: tuple[str, ...],
    like: Path | None,
    vectors: str,
    limit: int,
    run: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Find tasks and lessons by WORDS, or those that suit a task (--like)."""
    from arena.memory import alike, search

    if bool(words) == (like is not None):
        raise click.UsageError("WORDS or --like FILE is needed, and not both")
    spec = None if like is None else _first_task(like)
    with _open(run, home, config_file, vectors=vectors) as store:
        if spec is None:
            found = search(store, " ".join(words), limit=limit)
        else:
            found = alike(store, spec, limit=limit)
    if as_json:
        print_json(found)
        return
    _show_tasks("Tasks", found["tasks"], "similarity")
    _show_lessons(found["lessons"])


@memory.command("export")
@click.option(
    "--what",
    type=click.Choice(["attempts", "tasks", "lessons", "versions"]),
    default="attempts",
    show_default=True,
    help="Which records.",
)
@store_options
@json_option
@debug_option
def export_command(
    what: str, run: str | None, home: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Print every record, a line of JSON for each, with --json one list.

    Attempts and tasks are lines that `arena tasks` reads:

    \b
      arena memory export | arena tasks check
    """
    from arena.memory import export

    with _open(run, home, config_file) as store:
        if as_json:
            print_json(list(export(store, what)))
            return
        for entry in export(store, what):
            click.echo(json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


@memory.command("review")
@click.option(
    "--lesson",
    "changes",
    multiple=True,
    metavar="ID=active|retired",
    help="Put a lesson into force or out of it; the beginning of an id will do. May be given several times.",
)
@limit_option
@store_options
@json_option
@debug_option
def review_command(
    changes: tuple[str, ...],
    limit: int,
    run: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Show what a person may look at, and change which lessons are offered.

    The lessons in force, those of least worth first; the tasks in quarantine, and why; the solved tasks that have
    rested longest. A lesson cannot be changed while its run goes on. A task leaves quarantine by no command: it is
    kept out of training, and others like it are set.
    """
    from arena.memory import at_rest, lesson_data, review, set_lessons

    with _open(run, home, config_file) as store:
        if changes:
            with at_rest(store.path):
                done = [lesson_data(one) for one in set_lessons(store, parse_pairs(changes, what="--lesson"))]
            print_json(done) if as_json else _show_lessons(done)
            return
        found = review(store, limit=limit)
    if as_json:
        print_json(found)
        return
    _show_lessons(found["lessons"])
    _show_tasks("Tasks in quarantine", found["quarantine"], "reason")
    _show_tasks("Solved tasks that have rested longest", found["rested"], "last_generation")


def _open(run: str | None, home: Path | None, config_file: Path | None, **rest: Any) -> "Memory":
    from agents.memory import Memory
    from arena.config import load
    from arena.memory import find_store

    settings = load(file=config_file, flags={"home": home}).settings
    return Memory(find_store(settings.home, run), create=False, **rest)


def _first_task(file: Path) -> Any:
    from arena.cli.tasks import read_tasks

    for item in read_tasks(file):
        return item.spec
    raise click.UsageError(f"--like {str(file)!r}: holds no task")


def _show_tasks(title: str, found: list[dict[str, Any]], last: str) -> None:
    if not found:
        click.echo(f"{title}: none")
        return
    shown = table(title, ["task", "skill", "solved", last.replace("_", " "), "text"], right=["solved"])
    for one in found:
        kept = one["memory"]
        value = one.get(last, kept.get(last, ""))
        shown.add_row(
            one["task"][:SHORT],
            kept["skill"],
            f"{kept['successes']} of {kept['attempts']}",
            f"{value:.2f}" if isinstance(value, float) else str(value),
            _safe(one["text"]),
        )
    stdout_console().print(shown)


def _show_lessons(found: Iterable[dict[str, Any]]) -> None:
    rows = list(found)
    if not rows:
        click.echo("Lessons: none")
        return
    shown = table("Lessons", ["lesson", "status", "offered", "worth", "text"], right=["offered", "worth"])
    for one in rows:
        text = f"{one['text']} When: {one['when']}"
        shown.add_row(
            _safe(one["id"])[:SHORT],
            one["status"],
            f"{one['succeeded']} of {one['offered']}",
            f"{one['worth']:+.2f}",
            _safe(text),
        )
    stdout_console().print(shown)


def _safe(text: str) -> str:
    from games.text import neutralise

    return neutralise(text)
