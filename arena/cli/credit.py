"""`arena credit`: who brought a team its result, and by which decisions."""

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
    seed_option,
    stdout_console,
    table,
)

if TYPE_CHECKING:
    from agents.credit.base import Credit
    from agents.credit.summary import PlayerCredit
    from arena.credit import CreditRequest, ManyCredits

EXIT_MISMATCH = 3


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--method",
    default="shapley",
    metavar="M",
    help="equal, leave-one-out, shapley or adca.  [default: shapley]",
)
@click.option(
    "--team",
    metavar="T",
    help="Whose result is divided.  [default: the first of two or more; in many records each]",
)
@click.option(
    "--reference",
    metavar="SPEC",
    help="Who takes a seat's place in replays.  [default: random; over many records scripted]",
)
@click.option(
    "--stand-in", metavar="SPEC", help="Who plays on for people and programs that cannot be rebuilt."
)
@click.option(
    "--hidden",
    type=click.Choice(["fixed", "resampled"]),
    help="Whether replays keep the hidden facts, or draw anew what the seat could not know.  [default: fixed]",
)
@click.option(
    "--error",
    type=float,
    metavar="X",
    help="Replay until half of each 95 % interval is at most X.  [default: 0.1]",
)
@click.option(
    "--replicates", type=int, metavar="N", help="At most N times.  [default: 32; over many records 1]"
)
@click.option(
    "--play-on",
    type=click.Choice(["agent", "reference"]),
    help="Who plays on after a replaced decision.  [default: agent]",
)
@click.option(
    "--steps/--no-steps", default=None, help="Whether decisions are credited too.  [default: in one record]"
)
@click.option("--labels", type=click.Choice(["rules", "model", "learned"]), help="Who labels steps for adca.")
@click.option("--judge", type=click.Path(path_type=Path), help="The learned judge's file, for adca.")
@click.option(
    "--alpha", type=float, metavar="X", help="How much the labels count beside the outcome, for adca."
)
@click.option("--bound", type=float, metavar="X", help="How far the labels may move a credit, for adca.")
@click.option(
    "--policy", "labeller", metavar="SPEC", help="The model that labels, for adca.  [default: policy]"
)
@click.option("--compare", is_flag=True, help="Rank the seats by every method beside Shapley, with the cost.")
@policy_options
@seed_option("Of the replays.  [default: 0]")
@home_option
@config_option
@json_option
@debug_option
def credit(
    files: tuple[Path, ...],
    method: str,
    team: str | None,
    reference: str | None,
    stand_in: str | None,
    hidden: str | None,
    error: float | None,
    replicates: int | None,
    play_on: str | None,
    steps: bool | None,
    labels: str | None,
    judge: Path | None,
    alpha: float | None,
    bound: float | None,
    labeller: str | None,
    compare: bool,
    backend: str | None,
    model: str | None,
    seed: int | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Divide a team's result among its seats and their decisions.

    Of one FILE every decision is credited. Of several, or of a directory, each player's contribution is summed up over
    all of them, and who rides free or works against its team is named, at most 5 % of honest teams seeing anyone
    accused.
    """
    from arena.config import load
    from arena.credit import REPLAYING, CreditRequest, credit_many, credit_one, find_records

    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    loaded = load(file=config_file, flags=flags).settings
    given: dict[str, Any] = {
        "stand_in": stand_in,
        "hidden": hidden,
        "error": error,
        "most": replicates,
        "least": None if replicates is None else min(replicates, 4),
        "play_on": play_on,
        "steps": steps,
        "seed": seed,
    }
    replaying = {name: value for name, value in given.items() if value is not None}
    fusing = {name: value for name, value in (("alpha", alpha), ("bound", bound)) if value is not None}

    def request(name: str) -> "CreditRequest":
        return CreditRequest(
            method=name,
            team=team,
            reference=reference,
            settings=replaying if name in REPLAYING else fusing if name == "adca" else {},
            labels=labels or "rules",
            judge=judge,
            labeller=labeller or "policy",
            policy=loaded.policy,
            home=loaded.home,
        )

    asked = request(method)
    paths = find_records(files)
    if compare:
        _compare(paths, request, as_json)
    elif len(paths) == 1 and not files[0].is_dir():
        found = credit_one(paths[0], asked)
        if as_json:
            print_json(found.as_dict())
        else:
            _show_one(found, paths[0])
    else:
        from arena.cli.progress import MatchProgress

        with MatchProgress() as progress:
            many = credit_many(paths, asked, progress=progress)
        _many(many, as_json)


def _many(many: "ManyCredits", as_json: bool) -> None:
    from games.errors import ArenaError
    from replays.errors import RecordDamaged

    if as_json:
        print_json(many.as_dict())
    else:
        _show_players(many)
    for _, problem in many.skipped:
        click.echo(f"Skipped: {problem}", err=True)
    if any(isinstance(problem, RecordDamaged) for _, problem in many.skipped):
        click.get_current_context().exit(EXIT_MISMATCH)
    if not many.credits and many.skipped:
        first: ArenaError = many.skipped[0][1]
        click.get_current_context().exit(first.exit_code)


def _show_one(credit: "Credit", path: Path) -> None:
    console = stdout_console()
    shown = table(
        f"{path.name}: {credit.team} got {credit.result:+.3g}, divided by {credit.method}",
        ["seat", "player", "role", "credit", "95 % interval"],
        right=["seat", "credit"],
    )
    for seat in credit.seats:
        shown.add_row(
            str(seat.seat), seat.player, seat.role, f"{seat.credit:+.3f}", _interval(seat.low, seat.high)
        )
    console.print(shown)
    if credit.steps:
        numbers = ["ply", "seat", "credit", "added"]
        steps = table("", [*numbers, "95 % interval", "label"], right=numbers)
        for step in credit.steps:
            steps.add_row(
                str(step.ply),
                str(step.seat),
                f"{step.credit:+.3f}",
                "-" if step.contribution is None else f"{step.contribution:+.3f}",
                _interval(step.low, step.high),
                step.label or "",
            )
        console.print(steps)
    if credit.baseline is not None:
        click.echo(f"Contained in the shares: {credit.baseline:+.3f} that nobody's decisions account for.")
    for note in credit.notes:
        click.echo(f"Note: {note}")
    cost = credit.cost
    calls = f", {cost.model_calls} calls of a model" if cost.model_calls else ""
    click.echo(f"{cost.replays} replays{calls}, {cost.seconds:.1f} s")


def _show_players(many: "ManyCredits") -> None:
    console = stdout_console()
    for game in sorted({player.game for player in many.players}):
        rows = [player for player in many.players if player.game == game]
        against = "" if many.reference is None else f", against {many.reference}"
        shown = table(
            f"{game}: contributions by {many.method}{against}",
            ["player", "matches", "added", "95 % interval", "to mates", "p", "accusation"],
            right=["matches", "added", "to mates", "p"],
        )
        for player in rows:
            shown.add_row(*_player(player))
        console.print(shown)
    count = len({path for path, _ in many.credits})
    replays = sum(credit.cost.replays for _, credit in many.credits)
    seconds = sum(credit.cost.seconds for _, credit in many.credits)
    click.echo(f"{count} records, {replays} replays, {seconds:.1f} s")


def _player(player: "PlayerCredit") -> tuple[str, ...]:
    return (
        player.player,
        str(player.matches),
        f"{player.contribution:+.2f}",
        _interval(player.low, player.high, digits=2),
        "-" if player.behind is None else f"{player.behind:+.2f}",
        "-" if player.p is None else f"{player.p:.2g}",
        player.accusation or "",
    )


def _interval(low: float | None, high: float | None, *, digits: int = 3) -> str:
    return "-" if low is None or high is None else f"{low:+.{digits}f} to {high:+.{digits}f}"


def _compare(paths: list[Path], request: Any, as_json: bool) -> None:
    from arena.credit_agreement import agreement

    found = agreement(paths, request)
    if as_json:
        print_json(found.as_dict())
        return
    shown = table(
        f"Agreement with Shapley, {found.seats} seats of {found.teams} teams",
        ["method", "Spearman", "Kendall", "replays", "calls", "s a match"],
        right=["Spearman", "Kendall", "replays", "calls", "s a match"],
    )
    for row in found.methods:
        shown.add_row(
            row.method,
            "-" if row.spearman is None else f"{row.spearman:.3f}",
            "-" if row.kendall is None else f"{row.kendall:.3f}",
            f"{row.replays:.1f}",
            f"{row.model_calls:.1f}",
            f"{row.seconds:.3f}",
        )
    stdout_console().print(shown)
    for path, problem in found.skipped:
        click.echo(f"Skipped: {path}: {problem}", err=True)
