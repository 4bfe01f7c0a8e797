"""How strong the embedded model is, and how often it writes what cannot be read when nothing constrains it.

Strength: for each game and size, every pairing of `policy`, `random` and `scripted` as its two sides; the share of
matches that the first side won, with its 95 % Wilson interval, and in Kuhn poker the chips a hand. Seats that the
policy holds are played as in a tournament: compact prompts, constrained actions, the given temperature.

`--model DIR` measures another model that `arena policy pretrain` made, as of another seed of its training; `--own`
leaves out the pairings of bots alone, which are the same for every model.

Parse failures: the decisions of scripted matches that no model was trained on, asked without a constraint at
temperature 0 and 1; the share of replies that is no legal action, by game and label.
"""

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agents.base import Seat
from agents.match import play
from agents.players import make_agent
from agents.policy.base import Request
from agents.policy.presets import TINY
from agents.policy.pretrain.matches import Sample, plans
from agents.policy.pretrain.matches import play as play_scripted
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.spec import POLICY
from agents.prompting.answers import parse_answer
from agents.prompting.parse import Failure
from benchmarks.avalon_strength import wilson
from games.base import Outcome
from games.referee import Referee
from games.registry import load_game
from games.rng import derive_seed

SIZES = {"avalon": (5,), "werewolf": (8,), "kuhn": (2,)}
PAIRS = (
    (POLICY, "random"),
    ("random", POLICY),
    (POLICY, "scripted"),
    ("scripted", POLICY),
    (POLICY, POLICY),
    ("random", "random"),
    ("scripted", "random"),
    ("random", "scripted"),
    ("scripted", "scripted"),
)
KUHN_TIMES = 5
"""Hands of Kuhn poker for one match of another game: a hand is short and chance is large."""
DEADLINE_S = 3600.0
Z = 1.959964


class Row(NamedTuple):
    """One pairing: matches won and drawn by the first side, its mean return and the half width of its interval."""

    game: str
    seats: int
    first: str
    second: str
    matches: int
    won: int
    drawn: int
    mean: float
    half: float
    illegal: int


class Unread(NamedTuple):
    """Replies without a constraint, and how many of them were no legal action."""

    game: str
    label: str
    temperature: float
    replies: int
    failures: int


async def one_match(
    policies: Policies, *, game: str, seats: int, pair: tuple[str, str], seed: int
) -> tuple[Outcome, int]:
    """Play one match; return its outcome and how many answers were not legal or not read."""
    rules = load_game(game)
    state = rules.new(seed=seed, seats=seats)
    agents = []
    for index, team in enumerate(state.teams()):
        spec = pair[rules.team_names.index(team)]
        seat = Seat(rules, seats, state.options, index, derive_seed(seed, "agent", *pair, index))
        agents.append(
            policies.agent(POLICY, seat, match=f"{pair}-{seed}") if spec == POLICY else make_agent(spec, seat)
        )
    result = await play(Referee(state), agents, deadline_s=DEADLINE_S)
    failed = sum(result.counts.get(kind, 0) for kind in ("illegal", "unparsed", "ambiguous", "forced"))
    return result.outcome, failed


async def strength(
    policies: Policies,
    *,
    matches: int,
    concurrency: int,
    seed: int,
    games: Sequence[str],
    pairs: Sequence[tuple[str, str]] = PAIRS,
) -> list[Row]:
    """Play all of these pairings of the games."""
    gate = asyncio.Semaphore(concurrency)
    rows = []
    for game in games:
        for seats in SIZES[game]:
            for pair in pairs:
                count = matches * (KUHN_TIMES if game == "kuhn" else 1)

                async def guarded(
                    i: int, *, game: str = game, seats: int = seats, pair: tuple[str, str] = pair
                ) -> Any:
                    async with gate:
                        return await one_match(
                            policies,
                            game=game,
                            seats=seats,
                            pair=pair,
                            seed=derive_seed(seed, game, seats, i),
                        )

                began = time.perf_counter()
                played = await asyncio.gather(*(guarded(i) for i in range(count)))
                rows.append(_row(game, seats, pair, played))
                spent = time.perf_counter() - began
                said = f"{rows[-1].won} of {rows[-1].matches} won, {spent:.0f} s"
                print(f"{game} {seats}, {pair[0]} against {pair[1]}: {said}", file=sys.stderr, flush=True)
    return rows


def _row(game: str, seats: int, pair: tuple[str, str], played: Sequence[tuple[Outcome, int]]) -> Row:
    side = load_game(game).team_names[0]
    returns = [outcome.returns[outcome.teams.index(side)] for outcome, _ in played]
    mean = sum(returns) / len(returns)
    variance = sum((value - mean) ** 2 for value in returns) / max(len(returns) - 1, 1)
    won, drawn = sum(value > 0 for value in returns), sum(value == 0 for value in returns)
    half = Z * math.sqrt(variance / len(returns))
    return Row(game, seats, *pair, len(returns), won, drawn, mean, half, sum(failed for _, failed in played))


async def unread(policies: Policies, *, each: int, seed: int, games: Sequence[str]) -> list[Unread]:
    """Ask without a constraint, `each` decisions of every game and label at most."""
    batcher = policies.batcher(POLICY)
    count = batcher.engine.count_tokens
    asked: dict[tuple[str, str], list[Sample]] = {}
    budget = TINY.budget_tokens or 384
    for plan in plans(max(each, 20), seed=derive_seed(seed, "unread")):
        wanted = plan.game in games and any(
            len(held) < each for (game, _), held in asked.items() if game == plan.game
        )
        if wanted or not any(game == plan.game for game, _ in asked):
            for sample in play_scripted(plan, budget_tokens=budget, count=count):
                held = asked.setdefault((sample.game, sample.label), [])
                if len(held) < each and sample.game in games:
                    held.append(sample)
    rows = []
    for (game, label), samples in sorted(asked.items()):
        for temperature in (0.0, 1.0):
            completions = await asyncio.gather(
                *(
                    batcher.submit(
                        Request(sample.messages, max_tokens=96, temperature=temperature, seed=i, match=str(i))
                    )
                    for i, sample in enumerate(samples)
                )
            )
            failures = sum(
                isinstance(parse_answer(sample.space, completion.text), Failure)
                for sample, completion in zip(samples, completions, strict=True)
            )
            if samples:
                rows.append(Unread(game, label, temperature, len(samples), failures))
    return rows


def show(rows: Sequence[Row], failures: Sequence[Unread]) -> None:
    """Print both tables."""
    print("| game | seats | first side | second side | matches | first side won | return of the first side |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        low, high = wilson(row.won, row.matches)
        names = load_game(row.game).team_names
        print(
            f"| {row.game} | {row.seats} | {row.first} ({names[0]}) | {row.second} ({names[1]}) | {row.matches} | "
            f"{row.won / row.matches:.3f} ({low:.3f} to {high:.3f}) | {row.mean:+.3f} ± {row.half:.3f} |"
        )
    refused = sum(row.illegal for row in rows)
    print(f"\nanswers that were illegal, not read or forced: {refused}\n")
    print("| game | label | temperature | replies | not a legal action |")
    print("|---|---|---|---|---|")
    for one in failures:
        low, high = wilson(one.failures, one.replies)
        print(
            f"| {one.game} | {one.label} | {one.temperature:g} | {one.replies} | "
            f"{one.failures / one.replies:.3f} ({low:.3f} to {high:.3f}) |"
        )
    total: Counter[float] = Counter()
    failed: Counter[float] = Counter()
    for one in failures:
        total[one.temperature] += one.replies
        failed[one.temperature] += one.failures
    for temperature in sorted(total):
        low, high = wilson(failed[temperature], total[temperature])
        share = failed[temperature] / total[temperature]
        print(f"\nall, temperature {temperature:g}: {share:.4f} ({low:.4f} to {high:.4f})")


async def measure(args: argparse.Namespace) -> tuple[list[Row], list[Unread]]:
    """Start the model, measure, and close it."""
    settings = PolicySettings(
        model=args.model, temperature=args.temperature, threads=args.threads, concurrency=args.concurrency
    )
    with tempfile.TemporaryDirectory() as folder:
        policies = Policies(settings, home=Path(folder))
        await policies.start([POLICY])
        try:
            failures = await unread(policies, each=args.replies, seed=args.seed, games=args.games)
            rows = await strength(
                policies,
                matches=args.matches,
                concurrency=args.concurrency,
                seed=args.seed,
                games=args.games,
                pairs=[pair for pair in PAIRS if POLICY in pair or not args.own],
            )
        finally:
            await policies.close()
    return rows, failures


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--matches", type=int, default=300, help="matches of a pairing; five times as many hands"
    )
    parser.add_argument(
        "--replies", type=int, default=300, help="replies for each game, label and temperature"
    )
    parser.add_argument("--games", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--model", default=TINY.name)
    parser.add_argument("--own", action="store_true", help="leave out pairings of bots alone")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args(argv)
    if args.matches < 1 or args.replies < 1:
        parser.error("--matches and --replies: at least 1 is needed")
    rows, failures = asyncio.run(measure(args))
    if args.json:
        print(
            json.dumps({"strength": [r._asdict() for r in rows], "unread": [f._asdict() for f in failures]})
        )
    else:
        show(rows, failures)


if __name__ == "__main__":
    main()
