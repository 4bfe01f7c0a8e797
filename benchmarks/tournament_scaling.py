"""Avalon tournaments among scripted bots, records and ratings included: two processes beside one.

Each run is the real command in a process of its own and a home of its own: `arena tournament --game avalon
--players 5 --matches 1000 --concurrency N`, two scripted players. What counts here is wall-clock time, from
the start of the command to its end, interpreter start and ratings included; so run this on a machine with
two free cores, which the line about the load lets you judge. Runs on one and on two processes take turns with
what the machine can give at most: two commands side by side that know nothing of each other, half the matches
each. Where two busy cores slow each other down, that limit is below 2.

    python -m benchmarks.tournament_scaling
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._measure import Spread, arguments, machine, table, verdict

TARGET = 1.7
PROCESSES = (1, 2)
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One tournament: wall-clock seconds, and the bytes its home holds."""

    wall_s: float
    home_bytes: int


def run(*, matches: int, processes: int) -> Run:
    """Play one tournament in a fresh home. Raises `SystemExit` where matches are missing."""
    with tempfile.TemporaryDirectory() as home:
        start = time.perf_counter()
        _finish(_begin(matches, processes, home), matches)
        wall_s = time.perf_counter() - start
        held = sum(path.stat().st_size for path in Path(home).rglob("*") if path.is_file())
    return Run(wall_s, held)


def limit(*, matches: int) -> float:
    """Return the seconds that two commands take side by side, half the matches each."""
    halves = (matches // 2, matches - matches // 2)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        start = time.perf_counter()
        both = [_begin(half, 1, home) for half, home in zip(halves, (one, other), strict=True)]
        for half, command in zip(halves, both, strict=True):
            _finish(command, half)
        return time.perf_counter() - start


def _begin(matches: int, processes: int, home: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "evoke_arena", "tournament", "--game", "avalon", "--players", "5"]
    command += ["--player", "a=scripted", "--player", "b=scripted", "--matches", str(matches)]
    command += ["--concurrency", str(processes), "--home", home, "--json"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(command: subprocess.Popen[str], matches: int) -> None:
    output, errors = command.communicate()
    if command.returncode:
        raise SystemExit(f"the tournament failed: {errors.strip()}")
    played = json.loads(output)["matches"]["played"]
    if played != matches:
        raise SystemExit(f"{played} of {matches} matches were played")


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments("Avalon tournaments on two processes beside one.", games=1000, rounds=5)
    flags = parser.parse_args(args)
    print(
        f"{flags.games} five-player Avalon matches among scripted bots with records and ratings, "
        f"wall-clock time, {flags.rounds} runs of each in turns"
    )
    print(machine("evoke-arena"))
    runs: dict[int, list[Run]] = {processes: [] for processes in PROCESSES}
    limits: list[float] = []
    for number in range(flags.rounds):
        for processes in PROCESSES if number % 2 == 0 else reversed(PROCESSES):
            runs[processes].append(run(matches=flags.games, processes=processes))
        limits.append(limit(matches=flags.games))
    rows = [
        [
            str(processes),
            Spread.of(run.wall_s for run in done).show(".2f", " s"),
            Spread.of(flags.games / run.wall_s for run in done).show(".1f"),
            f"{done[0].home_bytes / flags.games:,.0f}",
        ]
        for processes, done in runs.items()
    ]
    rows.append(["1 + 1", Spread.of(limits).show(".2f", " s"), "", ""])
    print(table(["processes", "wall-clock", "matches/s", "bytes a match on disk"], rows))
    faster = Spread.of(one.wall_s / two.wall_s for one, two in zip(runs[1], runs[2], strict=True))
    print(f"two processes are faster by {faster.show('.2f')}: {verdict(faster.median, target=TARGET)}")
    at_most = Spread.of(one.wall_s / both for one, both in zip(runs[1], limits, strict=True))
    share = Spread.of(both / two.wall_s for both, two in zip(limits, runs[2], strict=True))
    print(
        f"the machine's limit, two commands side by side: {at_most.show('.2f')}; reached: {share.show('.2f')} of it"
    )
    print(machine("evoke-arena") + " (at the end)")


if __name__ == "__main__":
    main()
