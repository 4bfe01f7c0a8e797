"""Whether a match costs the same at the end of 10,000 as at their beginning: time and memory.

One process plays match after match among random bots, each with its record written to one folder; with
`--tournament` it does so through the tournament runner and its store. After every block it notes CPU time
and resident memory. A machine that others use slows down and speeds up meanwhile; so a fixed piece of work
(hands of Kuhn poker, rules alone) is done every few matches, and what a match costs without the system's
part (which makes the files, and follows its own moods) is also given as multiples of a hand, measured side
by side. A line is fitted to those by least squares, its slope given with the 95 % interval. A cost is flat
where the whole interval lies below what would matter, grows where the whole interval lies above, and is
undecided where the machine was too restless to tell.

    python -m benchmarks.flat_cost
    python -m benchmarks.flat_cost --tournament
"""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from arena.tournament import run_tournament
from arena.tournament_file import Overrides, read_tournament
from benchmarks._matches import play_recorded
from benchmarks._measure import arguments, machine, positive, resident_kib, table
from benchmarks.kuhn_openspiel import play_ours
from games.registry import game_names

EVERY, HANDS = 5, 200
"""After how many matches how many hands are played."""
MAX_GROWTH = 0.05
"""Growth of a match's cost over all matches that counts as flat."""
MAX_BYTES_A_MATCH = 500
"""Growth of memory per match that counts as flat: 5 MB over 10,000 matches, and less than any match that stays."""


@dataclass(frozen=True)
class Line:
    """A fitted slope with its 95 % interval."""

    slope: float
    low: float
    high: float

    @classmethod
    def fit(cls, x: Sequence[float], y: Sequence[float]) -> "Line":
        """Fit y to x; three points at least."""
        at, values = np.asarray(x) - np.mean(x), np.asarray(y) - np.mean(y)
        slope = float(at @ values / (at @ at))
        left = values - slope * at
        half = float(stdtrit(len(x) - 2, 0.975) * np.sqrt(left @ left / (len(x) - 2) / (at @ at)))
        return cls(slope, slope - half, slope + half)

    def verdict(self, scale: float, *, limit: float, form: str) -> str:
        """Return whether the slope, times `scale`, stays below `limit`."""
        if self.high * scale <= limit:
            return f"flat: surely below {limit:{form}}"
        return (
            f"GROWS: surely above {limit:{form}}"
            if self.low * scale > limit
            else "undecided: play more matches"
        )

    def show(self, scale: float, form: str) -> str:
        """Return the slope and its interval, times `scale`."""
        return f"{self.slope * scale:{form}} ({self.low * scale:{form}} to {self.high * scale:{form}})"


@dataclass(frozen=True)
class Block:
    """One block of matches: CPU time of a match, how much of it is the system's, the rest in hands of Kuhn
    poker, and resident memory after the block."""

    cpu_ms: float
    system_ms: float
    hands: float
    resident_kib: float


class Meter:
    """Told of every match as it ends, makes blocks of `matches`."""

    def __init__(self, matches: int) -> None:
        self.blocks: list[Block] = []
        self._matches = matches
        self._ended = 0
        self._spent = self._system = self._on_hands = 0.0
        self._hands = 0
        self._since, self._system_since = time.process_time(), os.times().system

    def tick(self) -> None:
        """A match has ended."""
        self._ended += 1
        if self._ended % min(EVERY, self._matches):
            return
        before = time.process_time()
        self._spent += before - self._since
        self._system += os.times().system - self._system_since
        self._hands += play_ours(HANDS, 0).games
        self._on_hands += time.process_time() - before
        if self._ended % self._matches == 0:
            gc.collect()
            each, system = self._spent / self._matches, self._system / self._matches
            hands = (each - system) / (self._on_hands / self._hands)
            self.blocks.append(Block(each * 1000, system * 1000, hands, resident_kib()))
            self._spent = self._system = self._on_hands = 0.0
            self._hands = 0
        self._since, self._system_since = time.process_time(), os.times().system


def play_alone(game: str, folder: Path, *, matches: int, meter: Meter) -> None:
    """Play matches one after the other, each with its record."""
    with asyncio.Runner() as loop:
        for seed in range(matches):
            play_recorded(loop, folder, game=game, spec="random", seats=None, seed=seed)
            meter.tick()


def play_tournament(game: str, home: Path, *, matches: int, meter: Meter) -> None:
    """Play them as one tournament of two random players, in this process."""
    asked = read_tournament(
        None, overrides=Overrides(games=[game], players=["a=random", "b=random"], matches=matches)
    )
    run_tournament(asked, home=home, concurrency=1, progress=lambda done, planned: meter.tick())


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments("Cost of a match from the first to the last of many.", games=500, rounds=20)
    parser.add_argument("--game", action="append", choices=game_names(), help="a game; repeatable")
    parser.add_argument(
        "--tournament", action="store_true", help="through the tournament runner and its store"
    )
    parser.add_argument("--show", type=positive, default=5, help="blocks shown, evenly spread")
    flags = parser.parse_args(args)
    if flags.rounds < 4:
        parser.error("--rounds: 4 or more are needed, the first is the warm-up")
    total = flags.games * flags.rounds
    play, how = (play_tournament, "one tournament") if flags.tournament else (play_alone, "one by one")
    print(f"{total:,} matches of each game among random bots with records, {how}, in one process")
    print(machine("evoke-arena", "msgpack"))
    for game in flags.game or ["kuhn", "werewolf"]:
        meter = Meter(flags.games)
        with tempfile.TemporaryDirectory() as name:
            play(game, Path(name), matches=total, meter=meter)
        blocks = meter.blocks
        ends = [(number + 1) * flags.games for number in range(flags.rounds)]
        shown = sorted({round(i) for i in np.linspace(0, flags.rounds - 1, min(flags.show, flags.rounds))})
        print(f"\n{game}")
        rows = [
            [
                f"{ends[i]:,}",
                f"{blocks[i].cpu_ms:.3f}",
                f"{blocks[i].system_ms:.3f}",
                f"{blocks[i].hands:.1f}",
                f"{blocks[i].resident_kib / 1024:.2f}",
            ]
            for i in shown
        ]
        print(
            table(
                [
                    "up to match",
                    "CPU ms a match",
                    "of it the system's",
                    "the rest in hands of Kuhn",
                    "resident MiB",
                ],
                rows,
            )
        )
        # The first block loads modules, and caches of a fixed size (SQLite's, above all) fill for a while.
        after, half = blocks[1:], flags.rounds // 2 - 1
        cost = Line.fit(ends[1:], [block.hands for block in after])
        memory = Line.fit(ends[half:], [block.resident_kib for block in blocks[half:]])
        mean = float(np.mean([block.hands for block in after]))
        growth = total / mean
        told = cost.verdict(growth, limit=MAX_GROWTH, form=".0%")
        print(f"time, from block 2 on, over all matches: {cost.show(growth, '+.1%')}, {told}")
        told = memory.verdict(1024, limit=MAX_BYTES_A_MATCH, form=".0f")
        print(f"memory, second half, bytes a match: {memory.show(1024, '+,.0f')}, {told}")


if __name__ == "__main__":
    main()
