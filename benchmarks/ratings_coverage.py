"""How well ratings recover planted strengths, and how often their 95 % intervals hold them.

    python benchmarks/ratings_coverage.py [--replications 400] [--seed 0]

Prints a table by game shape, number of matches and kind of interval: root mean square error against the
stated standard error (a ratio of 1 is right), coverage of the ratings and of the side effect. Each share has
its own binomial standard error. Then the error rates of the sequential test.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from arena.ratings import ANCHOR, ELO, fit
from arena.results import RatedMatch, RatedSeat
from arena.sprt import SprtTest, expected_score

SIDES = ("good", "evil")
SIDE_ELO = 60.0


def team_game(
    rng: np.random.Generator, truth: NDArray[np.float64], *, matches: int, good: int, evil: int, draw: float
) -> Iterator[RatedMatch]:
    """Yield matches of two sides decided by Davidson's model with tie parameter `draw`."""
    for _ in range(matches):
        who = rng.choice(len(truth), size=good + evil, replace=False)
        half = (truth[who[:good]].mean() - truth[who[good:]].mean() + SIDE_ELO) / ELO / 2
        worth = np.array([np.exp(half), draw, np.exp(-half)])
        value = rng.choice([1.0, 0.0, -1.0], p=worth / worth.sum())
        yield RatedMatch(
            "team",
            tuple(
                RatedSeat(f"p{player:02}", SIDES[seat >= good], "any", value if seat < good else -value)
                for seat, player in enumerate(who)
            ),
        )


def free_for_all(
    rng: np.random.Generator, truth: NDArray[np.float64], *, matches: int, seats: int
) -> Iterator[RatedMatch]:
    """Yield rankings by Plackett and Luce."""
    for _ in range(matches):
        who = rng.choice(len(truth), size=seats, replace=False)
        noisy = truth[who] / ELO + rng.gumbel(size=seats)
        yield RatedMatch(
            "race",
            tuple(RatedSeat(f"p{p:02}", f"seat {i}", "any", float(noisy[i])) for i, p in enumerate(who)),
        )


def coverage(replications: int, seed: int) -> None:
    """Print the table of recovery and coverage."""
    print("shape        players matches draws interval  rmse    rmse/se  coverage        side coverage")
    shapes = [
        ("1 v 1", 8, 60, 0.0, 1, 1, 0),
        ("1 v 1", 8, 300, 0.8, 1, 1, 0),
        ("3 v 2", 12, 100, 0.0, 3, 2, 0),
        ("3 v 2", 12, 500, 0.0, 3, 2, 0),
        ("3 v 2", 12, 500, 0.0, 3, 2, 200),
        ("6 v 4", 12, 300, 0.0, 6, 4, 0),
        ("5 free", 8, 100, 0.0, 5, 0, 0),
    ]
    for name, players, matches, draw, good, evil, bootstrap in shapes:
        rng = np.random.default_rng([seed, players, matches, good])
        runs = max(20, replications // 4) if bootstrap else replications
        inside, squares, errors, sides = [], [], [], []
        for run in range(runs):
            truth = rng.normal(0, 150, players)
            truth -= truth.mean()
            if evil:
                played = team_game(rng, truth, matches=matches, good=good, evil=evil, draw=draw)
                found = fit(played, sides=SIDES, bootstrap=bootstrap, seed=run)
                side = found.sides[0]
                sides.append(side.low is not None and side.low <= SIDE_ELO <= (side.high or 0.0))
            else:
                found = fit(
                    free_for_all(rng, truth, matches=matches, seats=good), bootstrap=bootstrap, seed=run
                )
            for rating, value in zip(found.ratings, truth, strict=True):
                if rating.low is None or rating.high is None:
                    continue
                inside.append(rating.low <= ANCHOR + value <= rating.high)
                squares.append((rating.value - ANCHOR - value) ** 2)
                errors.append(((rating.high - rating.low) / (2 * 1.959964)) ** 2)
        rmse, stated = np.sqrt(np.mean(squares)), np.sqrt(np.mean(errors))
        print(
            f"{name:12} {players:7} {matches:7} {draw:5.1f} {'bootstrap' if bootstrap else 'Laplace':9} "
            f"{rmse:6.1f}  {rmse / stated:7.3f}  {share(inside)}  {share(sides) if sides else '-'}"
        )


def share(hits: list[bool]) -> str:
    """Return a share with its binomial standard error."""
    p = float(np.mean(hits))
    return f"{p:.3f} ± {np.sqrt(p * (1 - p) / len(hits)):.3f}"


def sequential(replications: int, seed: int) -> None:
    """Print the error rates and lengths of the sequential test."""
    print()
    print("sequential test            truth  wrong           undecided  mean outcomes")
    for elo1, draws in ((50.0, 0.0), (100.0, 0.0), (100.0, 0.4)):
        test = SprtTest(0.0, elo1)
        for truth in (test.elo0, test.elo1):
            win = expected_score(truth) - draws / 2
            rng = np.random.default_rng([seed, int(elo1), int(truth)])
            counts, live = np.zeros((replications, 3)), np.arange(replications)
            taken, length = np.zeros(replications), np.full(replications, 4000)
            for step in range(1, 4001):
                counts[live, rng.choice(3, size=len(live), p=[1 - win - draws, draws, win])] += 1
                llr = test.llr(counts[live])
                taken[live[llr >= test.upper]], taken[live[llr <= test.lower]] = 1, -1
                done = (llr >= test.upper) | (llr <= test.lower)
                length[live[done]] = step
                live = live[~done]
                if not len(live):
                    break
            wrong = taken == (1 if truth == test.elo0 else -1)
            print(
                f"0 v {elo1:3.0f} Elo, {draws:.0%} draws{'':6} {truth:6.0f}  {share(list(wrong))}  "
                f"{np.mean(taken == 0):9.3f}  {length.mean():13.1f}"
            )


def main() -> None:
    """Read the arguments and print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    coverage(arguments.replications, arguments.seed)
    sequential(arguments.replications, arguments.seed)


if __name__ == "__main__":
    main()
