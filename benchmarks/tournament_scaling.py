"""Avalon tournaments among scripted bots, records and ratings included: two processes beside one.

Each run is the real command in a process of its own and a home of its own: `arena tournament --game avalon
--players 5 --matches 1000 --concurrency N`, two scripted players. What counts here is wall-clock time, from
the start of the command to its end, interpreter start and ratings included; so run this on a machine with
two free cores, which the line about the load lets you judge. Runs on one and on two processes take turns.

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
        command = [sys.executable, "-m", "evoke_arena", "tournament", "--game", "avalon", "--players", "5"]
        command += ["--player", "a=scripted", "--player", "b=scripted", "--matches", str(matches)]
        command += ["--concurrency", str(processes), "--home", home, "--json"]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        wall_s = time.perf_counter() - start
        if done.returncode:
            raise SystemExit(f"the tournament failed: {done.stderr.strip()}")
        played = json.loads(done.stdout)["matches"]["played"]
        if played != matches:
            raise SystemExit(f"{played} of {matches} matches were played")
        held = sum(path.stat().st_size for path in Path(home).rglob("*") if path.is_file())
    return Run(wall_s, held)


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
    for number in range(flags.rounds):
        for processes in PROCESSES if number % 2 == 0 else reversed(PROCESSES):
            runs[processes].append(run(matches=flags.games, processes=processes))
    rows = [
        [
            str(processes),
            Spread.of(run.wall_s for run in done).show(".2f", " s"),
            Spread.of(flags.games / run.wall_s for run in done).show(".1f"),
            f"{done[0].home_bytes / flags.games:,.0f}",
        ]
        for processes, done in runs.items()
    ]
    print(table(["processes", "wall-clock", "matches/s", "bytes a match on disk"], rows))
    faster = Spread.of(one.wall_s / two.wall_s for one, two in zip(runs[1], runs[2], strict=True))
    print(f"two processes are faster by {faster.show('.2f')}: {verdict(faster.median, target=TARGET)}")
    print(machine("evoke-arena") + " (at the end)")


if __name__ == "__main__":
    main()
