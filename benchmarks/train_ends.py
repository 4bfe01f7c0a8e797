"""What runs of training came to, measured again on deals that they have not met.

Reads the runs that `benchmarks.train_runs` left in a home, and plays the model that each began with (`policy`) and its
last version against the evaluation's opponents, each deal from every side (beside `evaluation.mates`, every seat).
Every run has deals of its own, which it never met, the same for both; so the runs are independent, and the intervals
(Student's, 95 %) are over them.

    python -m benchmarks.train_runs FILE --model FOLDER --seeds 5 --home /tmp/runs --variant outcome
    python -m benchmarks.train_ends FILE --model FOLDER --seeds 5 --home /tmp/runs --variant outcome --deals 200
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from agents.policy.service import Policies
from agents.policy.spec import POLICY, is_policy
from agents.training.config import TrainConfig
from arena.config import Settings
from arena.train_evaluate import against
from arena.train_file import load
from benchmarks._measure import machine, positive, table
from benchmarks.train_runs import mean_told, policy_arguments, policy_settings
from games.rng import derive_seed

Points = dict[tuple[str, str, str], float]
"""By game, opponent and side (`all` for all of them)."""


async def ends(config: TrainConfig, *, run: str, settings: Settings) -> tuple[Points, Points]:
    """Return the points of the model that a run began with, and of the run's last version."""
    specs = (POLICY, f"{POLICY}:{run}")
    mates = () if config.evaluation.mates is None else (config.evaluation.mates,)
    models = {one for one in (*config.evaluation.opponents, *mates) if is_policy(one)}
    policies = Policies(settings.policy, home=settings.home)
    await policies.start([*specs, *sorted(models - set(specs))])
    found = []
    try:
        for spec in specs:
            results = await against(
                config,
                spec=spec,
                update=0,
                policies=policies,
                match=settings.match,
                concurrency=settings.policy.concurrency,
            )
            points: Points = {}
            for one in results:
                assert one.score is not None, "no match could be played"
                points |= {(one.game, one.opponent, side): value for side, value in one.by_side.items()}
                points[one.game, one.opponent, "all"] = one.score
            found.append(points)
    finally:
        await policies.close()
    return found[0], found[1]


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What runs of training came to, on other deals.")
    parser.add_argument("file", type=Path, help="as of arena train")
    parser.add_argument("--seeds", type=positive, default=5, help="runs")
    parser.add_argument("--first", type=positive, default=1, help="the first seed")
    parser.add_argument("--home", type=Path, required=True, help="where the runs are")
    policy_arguments(parser)
    parser.add_argument(
        "--set",
        dest="sets",
        action="append",
        default=[],
        help="as of arena train; seed and deals are set here",
    )
    parser.add_argument("--variant", default="run", help="whose runs")
    parser.add_argument("--deals", type=positive, default=200, help="of each run, against each opponent")
    flags = parser.parse_args(args)
    print(machine("evoke-arena", "torch"))
    settings = Settings(home=flags.home, policy=policy_settings(flags))
    pairs = []
    for seed in range(flags.first, flags.first + flags.seeds):
        fresh = (f"seed={derive_seed(seed, 'ends') % 10**9}", f"evaluation.deals={flags.deals}")
        config = load(flags.file, sets=[*flags.sets, *fresh])
        pairs.append(asyncio.run(ends(config, run=f"{flags.variant}-{seed}", settings=settings)))
        first, last = pairs[-1]
        told = ", ".join(f"{' '.join(key)} {first[key]:.3f} to {last[key]:.3f}" for key in first)
        print(f"{flags.variant}-{seed}: {told}", flush=True)
    rows = []
    for key in pairs[0][0]:
        sides = [[pair[at][key] for pair in pairs] for at in (0, 1)]
        gains = [last - first for first, last in zip(*sides, strict=True)]
        rows.append([*key, str(len(pairs)), *map(mean_told, sides), mean_told(gains, sign=True)])
    print(table(["game", "against", "as", "runs", "began with", "last version", "difference"], rows))


if __name__ == "__main__":
    main()
