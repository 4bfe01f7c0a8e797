"""How far the methods of credit agree with Shapley values, and what each costs a match.

Matches among players of unequal strength, so that there is an order to find: seats of `scripted` and `random`, dealt
anew in each match. Every method ranks the seats of each team; the table has the mean rank correlation with Shapley
over teams (Spearman's and Kendall's tau-b; teams in which either side gives all the same have no order and are left
out), and the cost. Shapley beside itself is a second estimate with other seeds: what a method could reach at best.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from arena.credit import CreditRequest
from arena.credit_agreement import agreement
from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from games.registry import load_game
from games.rng import derive_seed

GAMES = {
    "avalon": ("avalon", 5, {}),
    "werewolf": ("werewolf", 7, {}),
    "relay": ("forge", 4, {"mode": "relay"}),
}
METHODS = ("shapley", "leave-one-out", "equal", "adca")


def matches(name: str, *, count: int, seed: int, folder: Path) -> list[Path]:
    """Play matches of mixed seats and return their records."""
    game, seats, options = GAMES[name]
    rules = load_game(game)
    parsed = rules.parse_options(options).model_dump(mode="json")
    found = []
    with asyncio.Runner() as loop:
        for number in range(count):
            rng = random.Random(derive_seed(seed, name, number))
            names = tuple(f"{rng.choice(('scripted', 'random'))}-{seat}" for seat in range(seats))
            job = MatchJob(
                str(number),
                MatchPlan(number, game, derive_seed(seed, number), number, 0, names),
                seats,
                {who: who.partition("-")[0] for who in names},
                parsed,
                record=folder / f"{name}-{number}.arena",
            )
            report = run_match(job, loop=loop)
            if report.error is not None or job.record is None:
                raise SystemExit(report.error)
            found.append(job.record)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", nargs="+", choices=sorted(GAMES), default=list(GAMES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--matches", type=int, default=30)
    parser.add_argument(
        "--replicates", type=int, default=16, help="of every match, by the methods that replay"
    )
    parser.add_argument("--reference", default="random")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    replays = {"least": asked.replicates, "most": asked.replicates, "error": 0.0, "seed": asked.seed}

    def request(method: str) -> CreditRequest:
        given = replays if method in ("shapley", "leave-one-out") else {}
        return CreditRequest(method=method, reference=asked.reference, settings=dict(given))

    print("| game | method | Spearman | Kendall | teams ranked | replays a match | calls | ms a match |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.games:
            began = time.process_time()
            paths = matches(name, count=asked.matches, seed=asked.seed, folder=Path(folder))
            found = agreement(paths, request, methods=asked.methods, again=True)
            for row in found.methods:
                ranks = ["-" if value is None else f"{value:.2f}" for value in (row.spearman, row.kendall)]
                print(
                    f"| {name} | {row.method} | {ranks[0]} | {ranks[1]} | {row.teams} of {found.teams} "
                    f"| {row.replays:.0f} | {row.model_calls:.0f} | {row.seconds * 1000:.1f} |"
                )
            print(f"{name}: {asked.matches} matches, {time.process_time() - began:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
