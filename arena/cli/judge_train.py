"""`arena judge train`: a judge of decisions, learned from replays."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    print_json,
    seed_option,
)

if TYPE_CHECKING:
    from agents.credit.learned import LearnedJudge


@click.command()
@click.argument(
    "paths", metavar="RECORD|DIR...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True)
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the judge is written.  [default: HOME/judges/GAME.json]",
)
@click.option(
    "--replicates",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=8,
    show_default=True,
    help="How often each decision is replayed.",
)
@click.option(
    "--reference",
    metavar="SPEC",
    help="The bot whose decisions stand in for a seat's.  [default: scripted, or random]",
)
@click.option("--stand-in", metavar="SPEC", help="The bot that plays on for players that cannot be rebuilt.")
@seed_option("Of the replays.  [default: 0]")
@home_option
@config_option
@json_option
@debug_option
def train(
    paths: tuple[Path, ...],
    out: Path | None,
    replicates: int,
    reference: str | None,
    stand_in: str | None,
    seed: int | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Train a judge of single decisions on the records of one game.

    Each decision is replayed with a reference bot's in its place; the judge learns to tell, without replays, which
    ones helped. It is tried on matches that it was not trained on. `arena credit --method adca --labels learned` uses
    it.
    """
    import asyncio

    from arena.cli.progress import MatchProgress
    from arena.config import load
    from arena.judge_training import records_in, train_judge
    from arena.labellers import judge_path

    records = records_in(paths)
    with MatchProgress() as progress:
        judge = asyncio.run(
            train_judge(
                records,
                seed=seed or 0,
                step_replicates=replicates,
                reference=reference,
                stand_in=stand_in,
                told=progress,
            )
        )
    if out is None:
        out = judge_path(load(file=config_file, flags={"home": home}).settings.home, judge.game)
    judge.save(out)
    _report(judge, out, as_json)


def _report(judge: "LearnedJudge", path: Path, as_json: bool) -> None:
    tried = judge.held_out
    if as_json:
        print_json(
            {
                "judge": str(path),
                "game": judge.game,
                "hash": judge.hash,
                "held_out": {
                    "accuracy": tried.accuracy,
                    "low": tried.low,
                    "high": tried.high,
                    "majority": tried.majority,
                    "lift": [tried.lift, tried.lift_low, tried.lift_high],
                    "decisions": tried.examples,
                    "matches": tried.matches,
                },
                "provenance": dict(judge.provenance),
            }
        )
        return
    click.echo(f"{path}: a judge of {judge.game}, {judge.hash[:12]}")
    click.echo(
        f"On held-out matches {tried.accuracy:.1%} of its labels are right "
        f"({tried.low:.1%} to {tried.high:.1%}; always naming the more frequent: {tried.majority:.1%}), "
        f"{tried.examples} decisions of {tried.matches} matches.\n"
        f"What it takes for good added {tried.lift:+.3f} more than what it takes for bad "
        f"({tried.lift_low:+.3f} to {tried.lift_high:+.3f})."
    )
    if judge.provenance["left_out"]:
        left = ", ".join(f"{count} {code}" for code, count in judge.provenance["left_out"].items())
        click.echo(f"Records left out: {left}.")
