"""`arena policy bench`: how fast the configured policy plays."""

from pathlib import Path
from typing import TYPE_CHECKING

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
    from arena.policy_bench import BenchResult, SideName

DEFAULT_CONCURRENCY = 32
DEFAULT_ROUNDS = 3

SIDES: "tuple[SideName, ...]" = ("one", "many", "direct")
_ROWS = (
    ("decisions/s", "decisions_per_s", ",.1f", 1),
    ("prompt tokens/s, computed", "computed_per_s", ",.0f", 1),
    ("prompt tokens/s, cached", "cached_per_s", ",.0f", 1),
    ("completion tokens/s", "completion_per_s", ",.0f", 1),
    ("prefix cache hits, %", "cached_share", ".1f", 100),
    ("waited, median, ms", "waited_p50_s", ",.1f", 1000),
    ("waited, 99th percentile, ms", "waited_p99_s", ",.1f", 1000),
    ("requests under way", "under_way", ",.1f", 1),
    ("sequences in a pass", "pass_rows", ",.1f", 1),
)
"""Of the table: title, figure, how it is written, and by what it is multiplied."""


@click.command()
@click.option("--game", metavar="G", default="avalon", show_default=True, help="The game that is played.")
@click.option(
    "--concurrency",
    type=click.IntRange(2, 4096),
    metavar="N",
    default=DEFAULT_CONCURRENCY,
    show_default=True,
    help="Matches at a time.",
)
@click.option(
    "--matches",
    type=click.IntRange(2, 100_000),
    metavar="N",
    help="Matches of a round, that many at a time; an eighth of them is played alone.  [default: a quarter more "
    "than at a time]",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=DEFAULT_ROUNDS,
    show_default=True,
    help="How often each side is measured.",
)
@seed_option("Of the matches, which are the same in every round.  [default: 0]")
@policy_options
@home_option
@config_option
@json_option
@debug_option
def bench(
    game: str,
    concurrency: int,
    matches: int | None,
    rounds: int,
    seed: int | None,
    backend: str | None,
    model: str | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Measure how fast the configured policy plays.

    Three sides take turns: one match at a time; many at a time; and the back end alone, given the requests that the
    many had answered, in calls as large as it takes. Every figure is the median over the rounds, with the least and
    the greatest.
    """
    from arena import logs
    from arena.cli.progress import StageProgress
    from arena.config import load
    from arena.policy_bench import BenchPlan, measure

    logs.configure()
    flags = {"home": home, "policy.backend": backend, "policy.model": model}
    settings = load(file=config_file, flags=flags).settings
    asked = BenchPlan(
        game=game,
        concurrency=concurrency,
        matches=matches,
        rounds=rounds,
        seed=seed or 0,
        deadline_s=settings.match.deadline_s,
    )
    with StageProgress() as progress:
        result = measure(asked, policy=settings.policy, home=settings.home, progress=progress)
    if as_json:
        print_json(result.as_dict())
    else:
        _show(result)


def _show(result: "BenchResult") -> None:
    at_once = result.asked.concurrency
    heads = ("one at a time", f"{at_once} at a time", "back end alone")
    shown = table(
        f"{result.asked.game}, {result.seats} seats, {result.model}: medians of {result.asked.rounds} rounds",
        ["", *heads],
        right=heads,
    )
    for name, figure, form, scale in _ROWS:
        spreads = [result.spread(side, figure) for side in SIDES]
        if any(spreads):
            shown.add_row(name, *("" if one is None else f"{one.median * scale:{form}}" for one in spreads))
    stdout_console().print(shown)
    many = f"{at_once} matches at a time"
    click.echo(f"{many} to one, decisions per second: {result.ratio('many', 'one').show('.2f')}")
    click.echo(f"{many} to the back end alone, same requests: {result.ratio('many', 'direct').show('.2f')}")
    shares = ", ".join(
        f"{low}{f' to {high}' if high > low else ''} {share:.0%}"
        for low, high, share in result.histogram("many")
    )
    click.echo(f"Requests under way when one was given, {many}: {shares}")
    counts = result.as_dict()["failures"]
    click.echo("Failures: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    click.echo(
        f"{result.decisions} decisions in {result.wall_s:.0f} s; "
        f"load of the machine {result.load[0]:.1f}, at the end {result.load[1]:.1f}"
    )
