"""How many round tables of four planners are played and recorded in a second, on one process and on two.

The matches run as a tournament's do: in `arena.pool`, each with its record in a file. Every worker first plays some
to warm up, as the offered edits of the pool are proven once a process. Time is wall time, so the figure is that of
the machine as it was; beside it stands the CPU time of a match in this process, and where it goes.

    python -m benchmarks.forge
"""

import argparse
import cProfile
import pstats
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from arena.pool import Pool
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from benchmarks._measure import Spread, machine, positive, table, verdict
from games.rng import derive_seed
from replays.record import SUFFIX

TARGET = 50.0
SEATS = 4
PARTS = {
    "rules": ("games/",),
    "bots and their views": ("agents/bots", "games/tasks/forge_view", "agents/base"),
    "record": ("replays/",),
    "match loop": ("agents/match", "games/referee", "games/spaces"),
}
"""Where time goes, by file; the last that fits counts."""


def jobs(count: int, *, seed: int, folder: Path) -> Iterator[MatchJob]:
    """Yield that many matches of four planners, with records."""
    names = tuple(f"planner {seat}" for seat in range(SEATS))
    for number in range(count):
        plan = MatchPlan(number, "forge", derive_seed(seed, number), number, 0, names)
        path = folder / f"{seed}-{number}{SUFFIX}"
        yield MatchJob(str(number), plan, SEATS, dict.fromkeys(names, "planner"), record=path)


def rate(processes: int, *, matches: int, rounds: int, folder: Path) -> Spread:
    """Return matches a second, by rounds, after as many to warm up."""
    found = []
    with Pool(processes) as pool:
        for number in range(rounds + 1):
            start = time.perf_counter()
            reports = list(pool.run(jobs(matches, seed=processes * 1000 + number, folder=folder)))
            wall_s = time.perf_counter() - start
            assert len(reports) == matches and not any(report.error for report in reports)
            if number:
                found.append(matches / wall_s)
    return Spread.of(found)


def shares(*, matches: int, folder: Path) -> tuple[float, dict[str, float]]:
    """Return milliseconds of CPU a match, and the share of each part by a profile of other matches."""
    with Pool(1) as pool:
        for _ in pool.run(jobs(matches, seed=1, folder=folder)):
            pass
        start = time.process_time()
        for _ in pool.run(jobs(matches, seed=2, folder=folder)):
            pass
        each_ms = 1000 * (time.process_time() - start) / matches
        profile = cProfile.Profile()
        profile.enable()
        for _ in pool.run(jobs(matches, seed=3, folder=folder)):
            pass
        profile.disable()
    spent: Counter[str] = Counter()
    for (file, _, _), (_, _, own_s, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        part = "the rest (Python's own, msgpack, files)"
        for name, places in PARTS.items():
            if any(place in file for place in places):
                part = name
        spent[part] += own_s
    total = sum(spent.values())
    return each_ms, {name: value / total for name, value in spent.most_common()}


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Round tables of Forge in a second.")
    parser.add_argument("--matches", type=positive, default=200, help="matches of one round")
    parser.add_argument("--rounds", type=positive, default=5, help="timed rounds of each")
    flags = parser.parse_args(args)
    print(machine("evoke-arena", "msgpack"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = {n: rate(n, matches=flags.matches, rounds=flags.rounds, folder=folder) for n in (1, 2)}
        each_ms, parts = shares(matches=max(10, flags.matches // 5), folder=folder)
        sizes = Spread.of(path.stat().st_size for path in folder.glob(f"*{SUFFIX}"))
    rows = [[str(n), spread.show(".1f")] for n, spread in rates.items()]
    print(table(["processes", "matches/s"], rows))
    print("on two processes: " + verdict(rates[2].median, target=TARGET))
    print(f"{each_ms:.1f} ms of CPU a match, {1000 / each_ms:.1f} matches a CPU second")
    print(f"{sizes.show(',.0f')} bytes a record")
    print(table(["part", "share of the time"], [[part, f"{share:.0%}"] for part, share in parts.items()]))


if __name__ == "__main__":
    main()
