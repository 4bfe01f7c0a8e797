"""`arena judge`: what judges did, and what a person still has to."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arena.cli import judge_train
from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    parse_pairs,
    policy_options,
    print_json,
    stdout_console,
    table,
)

if TYPE_CHECKING:
    from agents.judges.queue import PersonQueue, Waiting

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


@click.group()
@debug_option
def judge() -> None:
    """Try the judges, and answer what they leave to a person."""


judge.add_command(judge_train.train)


@judge.command()
@click.option(
    "--times",
    type=click.IntRange(2, 100),
    metavar="N",
    default=3,
    show_default=True,
    help="How often each trajectory is judged.",
)
@click.option(
    "--judge",
    "spec",
    metavar="SPEC",
    help="A model that is asked as well: policy[:ADAPTER] or openai:MODEL@URL.",
)
@click.option(
    "--mode",
    type=click.Choice(["choices", "json"]),
    default="choices",
    show_default=True,
    help="How it is asked; json for back ends that tell no probabilities.",
)
@policy_options
@home_option
@config_option
@json_option
@debug_option
def regress(
    times: int,
    spec: str | None,
    mode: str,
    backend: str | None,
    model: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Judge twenty fixed trajectories several times.

    To be run after any change to a judge or a generator. Exit code 1 where a verdict is not the recorded one, or
    where the judge disagrees with itself.
    """
    import asyncio

    from agents.judges.evaluator import Evaluator, JudgeSettings
    from agents.judges.regression import Regression
    from agents.judges.regression import regress as run
    from arena.config import load
    from arena.judge_model import model_judge

    settings = load(
        file=config_file, flags={"home": home, "policy.backend": backend, "policy.model": model}
    ).settings

    async def judged() -> Regression:
        async with model_judge(
            spec, settings=settings.policy, home=settings.home, mode="json" if mode == "json" else "choices"
        ) as asked:
            return await run(Evaluator(JudgeSettings(ask_decided=True), model=asked), times=times)

    found = asyncio.run(judged()).to_data()
    if as_json:
        print_json(found)
    else:
        _show_regression(found)
    if not found["ok"]:
        raise click.exceptions.Exit(1)


def _show_regression(found: dict[str, Any]) -> None:
    asked = any(any(row["model"]) for row in found["table"])
    columns = ["trajectory", "expected", *(f"{i + 1}" for i in range(found["times"])), ""]
    shown = table("", [*columns, "model"] if asked else columns)
    for row in found["table"]:
        note = "" if row["right"] and row["agrees"] else "wrong" if not row["right"] else "disagrees"
        cells = [
            row["name"],
            row["expected"],
            *("=" if got == row["expected"] else got for got in row["got"]),
        ]
        model = [",".join(dict.fromkeys(map(str, row["model"])))] if asked else []
        shown.add_row(*cells, note, *model)
    stdout_console().print(shown)
    click.echo(
        f"{found['right']} of {found['cases']} right, {found['agree']} alike {found['times']} times, "
        f"{found['seconds']:.2f} s, {found['judge']}"
    )
    if found["model"]:
        model = found["model"]
        click.echo(
            f"The model: right {model['right']} of {model['asked']} times, failed {model['failed']} times"
        )


@judge.command()
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="ID=yes|no",
    help="Answer a case without being asked; the beginning of an id will do. May be given several times.",
)
@click.option("--note", default="", metavar="TEXT", help="Kept with every answer of this call.")
@click.option(
    "--person", default="", metavar="NAME", help="Who answers.  [default: the user of this machine]"
)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=20,
    show_default=True,
    help="Cases at most.",
)
@click.option("--answered", is_flag=True, help="Show the cases that were answered, instead of asking.")
@click.option("--plain", is_flag=True, help="Ask line by line on a terminal too, instead of on a screen.")
@home_option
@config_option
@json_option
@debug_option
def audit(
    verdicts: tuple[str, ...],
    note: str,
    person: str,
    limit: int,
    answered: bool,
    plain: bool,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Look at what waits for a person, and answer it.

    On a terminal a screen shows case by case: the task, the attempt step by step, and the chain of evidence. On a
    pipe, or with --plain, it asks line by line, and reads one answer a line: yes, no, skip or quit. With --json it
    asks nothing and prints the cases with their evidence; with --verdict it answers those and no others.

    What the rules decided stays decided: to disagree with them is recorded as a dispute, and `arena evolve` then
    keeps the task out of training.
    """
    from getpass import getuser

    from agents.judges.queue import FILE, PersonQueue
    from arena.config import load

    where = load(file=config_file, flags={"home": home}).settings.home
    if not (where / FILE).is_file():
        if verdicts:
            raise click.UsageError(f"{where}: has no queue; `arena evolve` fills one")
        print_json([]) if as_json else click.echo(f"{where}: nothing waits for a person")
        return
    who = person or getuser()
    with PersonQueue(where / FILE) as queue:
        if verdicts:
            done = [
                queue.answer(name, _read(value), person=who, note=note)
                for name, value in parse_pairs(verdicts, what="verdict").items()
            ]
            _told(done, queue, as_json)
        elif as_json or answered:
            _told(queue.waiting(limit=limit, answered=answered), queue, as_json)
        elif plain or not queue.waiting(limit=1) or not _has_screen():
            _ask(queue, limit=limit, who=who, note=note)
        else:
            _show_screen(where / FILE, person=who, note=note, limit=limit)
            _counts(queue)


def _has_screen() -> bool:
    """Whether there is a terminal to draw on, and what draws on it is installed."""
    import sys
    from importlib.util import find_spec

    return sys.stdout.isatty() and sys.stdin.isatty() and find_spec("textual") is not None


def _show_screen(path: Path, *, person: str, note: str, limit: int) -> None:
    from arena.audit import QueueSource
    from arena.cli.screen import settings_path
    from clients.spectator.app import SpectatorApp
    from clients.spectator.screens.audit import AuditScreen

    source = QueueSource(path, person=person, note=note, limit=limit)
    app = SpectatorApp({"audit": lambda: AuditScreen(source)}, settings_path=settings_path())
    app.run()
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
    click.echo(f"{source.answered} answer{'' if source.answered == 1 else 's'} kept in {path}")


def _read(value: str) -> bool:
    if value.lower() not in _ANSWERS:
        raise click.UsageError(f"verdict: got {value[:40]!r}, allowed are yes and no")
    return _ANSWERS[value.lower()]


def _told(cases: "list[Waiting]", queue: "PersonQueue", as_json: bool) -> None:
    if as_json:
        print_json([case.to_data() for case in cases])
        return
    for case in cases:
        said = {None: "waits", True: "yes", False: "no"}[case.answer]
        by = f" by {case.person}" if case.person else ""
        click.echo(
            f"{case.case.id}  {said}{by}{'  DISPUTED' if case.disputed else ''}  {case.judgement.reason}"
        )
    _counts(queue)


def _ask(queue: "PersonQueue", *, limit: int, who: str, note: str) -> None:
    cases = queue.waiting(limit=limit)
    for i, waiting in enumerate(cases, start=1):
        _show_case(waiting, i, len(cases))
        while True:
            try:
                said = click.prompt("yes, no, skip or quit", prompt_suffix="? ").strip().lower()
            except click.Abort:  # the pipe ended
                said = "q"
                click.echo()
            if said in (*_ANSWERS, "s", "skip", "q", "quit"):
                break
            click.echo(f"got {said[:40]!r}, allowed are yes, no, skip and quit")
        if said in ("q", "quit"):
            break
        if said in _ANSWERS:
            done = queue.answer(waiting.case.id, _ANSWERS[said], person=who, note=note)
            if done.disputed:
                click.echo(f"Disputed: {done.judgement.decided_by} had said otherwise; both are kept.")
    _counts(queue)


def _counts(queue: "PersonQueue") -> None:
    counts = queue.counts()
    click.echo(f"{counts['waiting']} wait, {counts['answered']} answered, {counts['disputed']} disputed")


def _show_case(waiting: "Waiting", number: int, total: int) -> None:
    data = waiting.to_data()
    told = data["evidence"]
    world = waiting.case.spec.make_world()
    click.echo(f"\n--- {number} of {total}: {waiting.case.id} ({waiting.why}{_run(waiting)})")
    click.echo(told["task"])
    click.echo(world.render(world.initial()))
    for stretch in told["steps"]:
        if "left_out" in stretch:
            click.echo(f"  … {stretch['left_out']} stretches left out …")
            continue
        news = [*stretch["now"], *(f"no more {fact}" for fact in stretch["no_more"])]
        did = ", ".join(stretch["did"])
        click.echo(f"  to step {stretch['to_step']:>3}: {did}{'  → ' + ', '.join(news) if news else ''}")
    for finding in waiting.judgement.findings:
        click.echo(f"  {finding.layer}: {finding.says} ({finding.words})")
    click.echo(told["question"])


def _run(waiting: "Waiting") -> str:
    return f", run {waiting.run}" if waiting.run else ""
