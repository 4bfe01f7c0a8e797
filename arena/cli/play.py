"""`arena play`: one match."""

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    option_table,
    parse_pairs,
    policy_options,
    print_json,
    seed_option,
    stdout_console,
    table,
)

if TYPE_CHECKING:
    from arena.config import Settings
    from arena.report import MatchReport
    from arena.runner import MatchJob


@click.command()
@click.argument("game")
@click.option("--seats", "specs", metavar="SPEC,SPEC,…", help="A player for each seat.")
@click.option("--all", "everyone", metavar="SPEC", help="One player for all seats.  [default: scripted]")
@click.option("--players", "count", type=int, metavar="N", help="How many seats.  [default: the game's own]")
@click.option("--option", "pairs", multiple=True, metavar="K=V", help="An option of the game; repeatable.")
@policy_options
@seed_option("Of the match.  [default: a new one each time]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where the record goes.  [default: a new file in HOME/replays/played]",
)
@home_option
@config_option
@json_option
@debug_option
def play(
    game: str,
    specs: str | None,
    everyone: str | None,
    count: int | None,
    pairs: tuple[str, ...],
    backend: str | None,
    model: str | None,
    seed: int | None,
    out: Path | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Play one match of GAME, print it, and write its record.

    The player `human` is you: the terminal shows the match from your seat, and takes your moves.

    People get the match as sentences, everything that was hidden included; --json the outcome alone.
    """
    import asyncio

    from agents.players import HUMAN, check_plays, parse_player
    from arena.config import load
    from arena.people import as_person
    from arena.policy_pool import has_policy, play_one
    from arena.runner import MatchJob, run_match
    from arena.schedule import MatchPlan
    from games.errors import ArenaError
    from games.registry import load_game
    from replays.errors import RecordWriteFailed
    from replays.record import SUFFIX

    if specs is not None and everyone is not None:
        raise click.UsageError("give either --seats or --all", click.get_current_context())
    if out == Path("-"):
        raise click.UsageError("--out: got '-', a record needs a file", click.get_current_context())
    rules = load_game(game)
    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    options = parse_pairs(pairs, what="--option")
    chosen = None if specs is None else [as_person(spec) or parse_player(spec) for spec in specs.split(",")]
    if chosen is not None and count not in (None, len(chosen)):
        raise click.UsageError(
            f"--seats names {len(chosen)} players, --players says {count}", click.get_current_context()
        )
    seats = rules.default_seats if count is None else count
    if chosen is not None:
        seats = len(chosen)
    number = secrets.randbits(48) if seed is None else seed
    state = rules.new(seed=number, seats=seats, options=options)
    if chosen is None:
        spec = "scripted" if everyone is None else everyone
        chosen = [as_person(spec) or parse_player(spec)] * state.seats
    people = [player.name for player in chosen if player.spec == HUMAN]
    if len(people) > 1:
        raise click.UsageError(
            f"--seats: got {len(people)} people, one can play at a terminal; more meet on a server (arena join)",
            click.get_current_context(),
        )
    by_name: dict[str, str] = {}
    for player in chosen:
        if player.spec != HUMAN:
            check_plays(player, game=rules.name)
        if by_name.setdefault(player.name, player.spec) != player.spec:
            raise click.UsageError(
                f"--seats: {player.name!r} stands for {by_name[player.name]} and for {player.spec}",
                click.get_current_context(),
            )
    path = (
        _free(settings.home / "replays" / "played", f"{rules.name}-{number}", SUFFIX) if out is None else out
    )
    if path.exists():
        raise RecordWriteFailed(f"{path}: cannot write the record: the file exists; give another --out")
    names = tuple(player.name for player in chosen)
    job = MatchJob(
        match="",  # a name made of the seed would stand in every view of the record, and give all roles away
        plan=MatchPlan(0, rules.name, number, 0, 0, names),
        seats=state.seats,
        players=by_name,
        options=state.options.model_dump(mode="json"),
        retries=settings.match.retries,
        deadline_s=settings.match.deadline_s,
        record=path,
    )
    if people:
        report = _at_terminal(job, people[0], settings)
    elif has_policy(job):
        report = play_one(job, settings=settings.policy, home=settings.home)
    else:
        with asyncio.Runner() as loop:
            report = run_match(job, loop=loop)
    if report.error is not None:
        raise ArenaError(f"the match could not be played: {report.error}")
    if as_json:
        print_json(_as_dict(report, path))
    else:
        _show(report, path, rules, option_table(job.options))


def _at_terminal(job: "MatchJob", person: str, settings: "Settings") -> "MatchReport":
    """Let a person play one of the seats."""
    from arena.cli.screen import check_terminal, check_watch_packages, settings_path

    check_terminal("a person needs a terminal to play at")
    check_watch_packages()
    from arena.human import LocalSeats
    from clients.spectator.person import PersonApp
    from games.errors import ArenaError

    seats = LocalSeats(job, person=person, policy=settings.policy, home=settings.home)
    app = PersonApp(seats, settings_path=settings_path())
    app.run()
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
    if seats.report is None:
        raise app.error or ArenaError("the match was not played")
    return seats.report


def _free(folder: Path, stem: str, suffix: str) -> Path:
    """Return a path in `folder` that nothing stands at yet."""
    path, number = folder / f"{stem}{suffix}", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}{suffix}"
    return path


def counts(found: dict[str, int]) -> dict[str, int]:
    """Return a match's counts under their names on the command line; those always shown come first."""
    named = {("timeouts" if name == "timeout" else name): count for name, count in found.items()}
    shown = {name: named.pop(name, 0) for name in ("turns", "illegal", "unparsed", "timeouts", "forced")}
    return shown | {name: named[name] for name in sorted(named)}


def _as_dict(report: Any, path: Path) -> dict[str, Any]:
    outcome = report.outcome()
    return {
        "game": report.game,
        "seed": report.seed,
        "replay": str(path),
        "players": [{"name": seat.player, "spec": seat.spec} for seat in report.seats],
        "outcome": {
            "reason": outcome.reason,
            "returns": list(outcome.returns),
            "teams": list(outcome.teams),
            "roles": list(outcome.roles),
            "ended": [seat.ended for seat in report.seats],
            "turn_limit": outcome.turn_limit,
        },
        "counts": counts(report.counts),
    }


def _show(report: Any, path: Path, rules: Any, options: str) -> None:
    from replays.reader import read_record

    click.echo(f"{rules.title}, {len(report.seats)} seats, seed {report.seed}, options: {options}")
    click.echo()
    for event in read_record(path).events():
        sentence = rules.narrate(event)
        if sentence is not None:
            click.echo(sentence)
    click.echo()
    rows = table("", ["seat", "player", "team", "role", "ended", "return"], right=["seat", "return"])
    for index, seat in enumerate(report.seats):
        rows.add_row(str(index), seat.player, seat.team, seat.role, seat.ended, f"{seat.value:+g}")
    stdout_console().print(rows)
    click.echo(f"Ended by: {report.reason}")
    click.echo(", ".join(f"{name} {count}" for name, count in counts(report.counts).items()))
    click.echo(f"Record: {json.dumps(str(path)) if ' ' in str(path) else path}")
