"""What every benchmark here shares: interleaved rounds, ratios with their spread, and a word about the machine.

Two sides are never timed one after the other but in turns, A B B A A B …, so that a machine that slows down
or is shared hurts both alike. Time is CPU time of this process, so waiting for a turn on the processor does
not count. Garbage is collected between the rounds and, within one, only among what the round itself made. A
figure is the median over the rounds, its spread their least and greatest.
"""

import argparse
import gc
import os
import platform
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from arena.spread import Spread

PEERS_HINT = "pip install -e '.[peers]'"


@dataclass(frozen=True)
class Work:
    """What one round did: whole games, and single actions in them."""

    games: int
    actions: int


@dataclass(frozen=True)
class Side:
    """One of those compared. `play(games, seed)` plays that many games and says what it did."""

    name: str
    play: Callable[[int, int], Work]


@dataclass(frozen=True)
class Sample:
    """One round of one side."""

    games: int
    actions: int
    cpu_s: float

    @property
    def games_per_s(self) -> float:
        return self.games / self.cpu_s

    @property
    def actions_per_s(self) -> float:
        return self.actions / self.cpu_s


def interleave(sides: Sequence[Side], *, games: int, rounds: int, seed: int = 0) -> dict[str, list[Sample]]:
    """Play every side once to warm up, then `rounds` times in turns; return the samples by side, in order.

    Args:
        sides: the sides; in every second round they play in the opposite order.
        games: games of one round of one side.
        rounds: timed rounds of each side.
        seed: of the first round; the same round of every side gets the same seed.
    """
    samples: dict[str, list[Sample]] = {side.name: [] for side in sides}
    for side in sides:
        side.play(max(1, games // 10), seed)
    gc.collect()
    gc.freeze()  # the modules of every side are loaded: whoever triggers a collection would pay for them all
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            gc.collect()
            start = time.process_time()
            work = side.play(games, seed + 1 + number * games)
            samples[side.name].append(Sample(work.games, work.actions, time.process_time() - start))
    gc.unfreeze()
    return samples


def ratios(ours: Sequence[Sample], theirs: Sequence[Sample], *, per: str = "games_per_s") -> Spread:
    """Return how many times faster `ours` is, round by round, in games or actions per second."""
    return Spread.of(getattr(a, per) / getattr(b, per) for a, b in zip(ours, theirs, strict=True))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table, its columns aligned."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    shown = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(shown)


def machine(*packages: str) -> str:
    """Return one line: processor, cores, load, Python, and the versions of `packages` that are installed."""
    found = [f"{name} {number}" for name in packages if (number := _version(name))]
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    parts = [
        f"{_processor()}, {os.cpu_count()} cores, {load}",
        f"{platform.python_implementation()} {platform.python_version()}",
        *found,
    ]
    return "; ".join(parts)


def say_missing(peer: str) -> str:
    """Return the line for a peer that is not installed."""
    return f"{peer} is not installed, so there is no ratio; install it beside us with: {PEERS_HINT}"


def verdict(figure: float, *, target: float, at_most: bool = False) -> str:
    """Return whether a figure meets its target, in words."""
    met = figure <= target if at_most else figure >= target
    return f"target {'at most' if at_most else 'at least'} {target:g}: {'met' if met else 'NOT met'}"


def arguments(about: str, *, games: int, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the flags that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--games", type=positive, default=games, help="games in one round")
    parser.add_argument("--rounds", type=positive, default=rounds, help="timed rounds of each side")
    return parser


def positive(text: str) -> int:
    """Return a whole number of 1 or more, as flags take it."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text}, 1 or more is needed")
    return number


def generator(seed: int) -> random.Random:
    """Return the generator of random play: the same kind for every side."""
    return random.Random(seed)


def resident_kib() -> float:
    """Return this process's resident memory in KiB now; its peak where the system does not tell."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if platform.system() == "Darwin" else peak


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
