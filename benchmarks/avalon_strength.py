"""How strong the scripted Avalon player is, and how well its posterior is calibrated.

For each size: scripted good against random evil, scripted evil against random good, scripted and random
each against itself; the share of matches won by good with its 95 % Wilson interval. Then, from the matches of
scripted against scripted, the reliability of P(seat is evil) as good seats hold it of each other seat before
each vote: in ten bins the mean predicted probability, the observed share and the number, and the expected
calibration error. Random play draws uniformly among the legal actions.
"""

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from agents.base import Seat
from agents.bots.avalon import AvalonBot
from games.avalon import Avalon, AvalonState
from games.avalon.rules import GOOD, MERLIN
from games.referee import Turn
from games.rng import derive_seed
from games.spaces import Action

GAME = Avalon()
MATCH_UPS = {
    "scripted good, random evil": (True, False),
    "random good, scripted evil": (False, True),
    "scripted good, scripted evil": (True, True),
    "random good, random evil": (False, False),
}
BINS = 10
SELF_PLAY = "scripted good, scripted evil"


class Moment(NamedTuple):
    """One belief of a good seat about another seat before a vote."""

    role: str
    quest: int
    predicted: float
    evil: bool


def play(
    seats: int, seed: int, scripted: tuple[bool, bool], options: dict[str, Any], moments: list[Moment] | None
) -> AvalonState:
    """Play one match to its end; `scripted` says whether good and evil seats are scripted."""
    state: AvalonState = GAME.new(seed=seed, seats=seats, options=options)
    teams, roles = state.teams(), state.roles()
    bots = {
        s: AvalonBot(Seat(GAME, seats, state.options, s, derive_seed(seed, "seat", s)))
        for s in range(seats)
        if scripted[teams[s] != GOOD]
    }
    rng = random.Random(derive_seed(seed, "random"))
    new, ply = list(state.history), 0
    while True:
        for seat, bot in bots.items():
            bot.observe([event for event in new if event.visible_to(seat)])
        turns = state.turns()
        if not turns:
            return state
        if moments is not None and state.phase == "vote":
            for seat, bot in bots.items():
                if teams[seat] == GOOD:
                    moments.extend(
                        Moment(roles[seat], state.quest, float(p), teams[other] != GOOD)
                        for other, p in enumerate(bot.suspicion())
                        if other != seat
                    )
        actions: dict[int, Action] = {}
        for seat, space in turns.items():
            if seat in bots:
                action = bots[seat].decide(Turn(seat, ply, space)).action
                if action is None:
                    raise AssertionError(f"seat {seat} gave no action")
                actions[seat] = action
            else:
                actions[seat] = space.sample(rng)
        new = state.apply(actions)
        ply += 1


def wilson(won: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the Wilson score interval of a share (E. B. Wilson, JASA 22, 1927)."""
    share = won / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def reliability(moments: list[Moment]) -> dict[str, Any]:
    """Return the reliability table of the beliefs and their expected calibration error."""
    predicted = np.array([m.predicted for m in moments])
    evil = np.array([m.evil for m in moments], dtype=float)
    bins = np.minimum((predicted * BINS).astype(int), BINS - 1)
    rows, error = [], 0.0
    for b in range(BINS):
        here = bins == b
        n = int(here.sum())
        if n:
            mean, observed = float(predicted[here].mean()), float(evil[here].mean())
            error += n / len(moments) * abs(mean - observed)
            rows.append(
                {"from": b / BINS, "to": (b + 1) / BINS, "predicted": mean, "observed": observed, "n": n}
            )
    brier = float(((predicted - evil) ** 2).mean())
    return {"bins": rows, "n": len(moments), "expected_calibration_error": error, "brier": brier}


def measure(sizes: list[int], matches: int, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Play everything and return the figures."""
    results = []
    moments: list[Moment] = []
    by_size: dict[int, dict[str, Any]] = {}
    for seats in sizes:
        for name, scripted in MATCH_UPS.items():
            held: list[Moment] | None = [] if name == SELF_PLAY else None
            reasons: Counter[str] = Counter()
            won = hits = 0
            cpu = time.process_time()
            for i in range(matches):
                state = play(seats, derive_seed(seed, seats, i), scripted, options, held)
                outcome = state.outcome()
                if outcome is None:
                    raise AssertionError("a finished match has an outcome")
                good_won = outcome.returns[outcome.teams.index(GOOD)] > 0
                won += good_won
                reasons[outcome.reason] += 1
                hits += outcome.reason == "assassination" and not good_won
            cpu_ms = (time.process_time() - cpu) / matches * 1e3
            low, high = wilson(won, matches)
            results.append(
                {
                    "seats": seats,
                    "match_up": name,
                    "matches": matches,
                    "good_won": won / matches,
                    "low": low,
                    "high": high,
                    "reasons": dict(reasons),
                    "merlin_hit": hits / reasons["assassination"] if reasons["assassination"] else None,
                    "cpu_ms_per_match": cpu_ms,
                }
            )
            if held:
                by_size[seats] = reliability(held)
                moments += held
            print(f"{seats} seats, {name}: good won {won}/{matches}", file=sys.stderr)
    ignorant = [m for m in moments if m.role != MERLIN]
    return {
        "options": options,
        "seed": seed,
        "results": results,
        "reliability": {
            "all": reliability(moments),
            "without merlin": reliability(ignorant),
            **{
                f"without merlin, quest {q}": reliability([m for m in ignorant if m.quest == q])
                for q in range(1, 6)
            },
        },
        "reliability_by_size": by_size,
    }


def show(report: dict[str, Any]) -> None:
    """Print the report as tables."""
    print(f"seed {report['seed']}, options {report['options'] or 'default'}\n")
    print(
        "seats  match-up                       matches  good won   95 % interval   merlin hit  CPU ms/match"
    )
    for r in report["results"]:
        hit = "-" if r["merlin_hit"] is None else f"{r['merlin_hit']:.3f}"
        print(
            f"{r['seats']:>5}  {r['match_up']:<29} {r['matches']:>8} {r['good_won']:>9.3f}   "
            f"{r['low']:.3f} to {r['high']:.3f} {hit:>12} {r['cpu_ms_per_match']:>13.2f}"
        )
    print("\nreasons, scripted against scripted")
    for r in report["results"]:
        if r["match_up"] == SELF_PLAY:
            shares = ", ".join(f"{k} {v / r['matches']:.3f}" for k, v in sorted(r["reasons"].items()))
            print(f"{r['seats']:>5}  {shares}")
    named = {**report["reliability"], **{f"{n} seats": t for n, t in report["reliability_by_size"].items()}}
    for name, table in named.items():
        print(
            f"\nP(seat is evil), {name}: n {table['n']}, expected calibration error "
            f"{table['expected_calibration_error']:.4f}, Brier score {table['brier']:.4f}"
        )
        print("      bin  predicted  observed         n")
        for row in table["bins"]:
            print(
                f"{row['from']:.1f} - {row['to']:.1f} {row['predicted']:>10.4f} {row['observed']:>9.4f} {row['n']:>9}"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matches", type=int, default=1000, help="matches per size and match-up")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(range(5, 11)), choices=range(5, 11))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lady", action="store_true", help="play with the Lady of the Lake")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    if args.matches < 1:
        parser.error(f"--matches: got {args.matches}, at least 1 is needed")
    report = measure(args.sizes, args.matches, args.seed, {"lady": True} if args.lady else {})
    if args.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
