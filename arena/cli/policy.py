"""`arena policy`: the language model behind the player `policy`."""

from pathlib import Path

import click

from arena.cli.common import (
    config_option,
    debug_option,
    home_option,
    json_option,
    parse_pairs,
    print_json,
    seed_option,
    stdout_console,
    table,
)
from arena.cli.policy_bench import bench
from arena.cli.policy_chat import chat
from arena.cli.policy_info import info
from arena.cli.policy_serve import serve

PRETRAIN_MATCHES = 480


@click.group()
@debug_option
def policy() -> None:
    """Make and examine the language models that play as `policy`."""


policy.add_command(bench)
policy.add_command(chat)
policy.add_command(info)
policy.add_command(serve)


@policy.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that is written.  [default: models/own in the home]",
)
@click.option(
    "--matches",
    type=click.IntRange(1, 1_000_000),
    default=PRETRAIN_MATCHES,
    show_default=True,
    help=(
        "Matches of Avalon and Werewolf to learn from; six hands of Kuhn poker come on top of each. "
        "With --game, matches or attempts of each that is named."
    ),
)
@click.option(
    "--game",
    "games",
    multiple=True,
    metavar="GAME[:SEATS]",
    help=(
        "Learn this alone: avalon, werewolf or kuhn, with SEATS at one size and by the game's own options; or tasks, "
        "grid or text, as WORLD[:SKILL,...]. With SEATS all decisions are learned from, else a share of the frequent "
        "ones. Repeatable.  [default: the three games, all sizes]"
    ),
)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="K=V",
    help="An option of all games that are named with SEATS; repeatable.",
)
@click.option(
    "--random-share",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help=(
        "Of the seats, and of the attempts at tasks, so many are played by random bots and learned from too; without "
        "it a quarter of the matches has random bots that are not."
    ),
)
@seed_option("Seed of the matches, the fresh weights and the order of training.  [default: 0]")
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Threads of torch; with another number the weights may differ in their last bits.",
)
@click.option(
    "--learning-rate",
    type=click.FloatRange(0, 1, min_open=True),
    default=None,
    help="At its peak.  [default: what the embedded model was made with]",
)
@home_option
@config_option
@json_option
@debug_option
def pretrain(
    out: Path | None,
    matches: int,
    games: tuple[str, ...],
    pairs: tuple[str, ...],
    random_share: float,
    seed: int | None,
    threads: int,
    learning_rate: float | None,
    home: Path | None,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Make a tiny model like the embedded one, by cloning the scripted bots.

    The bots play all our games, and a fresh model learns to answer as they did, from the very prompts that are
    used in play. Its folder can be given as the setting policy.model. The same options and versions give the same
    weights, bit for bit.

    With --game werewolf:5 a model learns that game at that size alone. With --random-share it clones play of mixed
    strength, from which `arena train` has something to sort out.
    """
    import shlex
    from dataclasses import replace

    from agents.policy.pretrain.mixture import Mixture, parse_source
    from agents.policy.pretrain.run import Settings, pretrain
    from agents.policy.pretrain.training import Recipe
    from arena.cli.progress import StageProgress
    from arena.config import load

    folder = out or load(file=config_file, flags={"home": home}).settings.home / "models" / "own"
    recipe = Recipe() if learning_rate is None else replace(Recipe(), learning_rate=learning_rate)
    options = parse_pairs(pairs, what="--option")
    mixture = Mixture(tuple(map(parse_source, games)), random_share, options)
    settings = Settings(matches=matches, seed=seed or 0, threads=threads, recipe=recipe, mixture=mixture)
    given = ["--matches", str(matches), "--seed", str(seed or 0), "--threads", str(threads)]
    given += [part for game in games for part in ("--game", game)]
    given += [part for pair in pairs for part in ("--option", pair)]
    if random_share:
        given += ["--random-share", repr(random_share)]
    if learning_rate is not None:
        given += ["--learning-rate", repr(learning_rate)]
    command = shlex.join(["arena", "policy", "pretrain", *given])
    with StageProgress() as progress:
        made = pretrain(folder, settings, command=command, progress=progress)
    if as_json:
        print_json({"folder": str(folder), **made})
        return
    shown = table(
        "Held-out matches",
        ["decision", "number", "loss", "as the bot", "commonest answer"],
        right=["number", "loss", "as the bot", "commonest answer"],
    )
    for row in made["held_out"]:
        shares = (f"{row[key]:.3f}" for key in ("loss", "accuracy", "majority"))
        shown.add_row(row["kind"], str(row["decisions"]), *shares)
    stdout_console().print(shown)
    click.echo(f"{folder}: {made['model']['parameters']} parameters, {made['seconds']:.0f} s")
