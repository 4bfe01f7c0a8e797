"""How far from perfect play self-play from random weights gets at Kuhn poker.

Runs `examples/train_kuhn.toml` once a seed, each from other random weights, and reads from its metrics NashConv as it
was computed exactly at the beginning and at the end: what both seats together could gain by responding best. What is
measured, and left, are the averaged weights. A run that was interrupted goes on where it stopped, and one that is done
is read.

    python -m benchmarks.train_kuhn --home /tmp/kuhn
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arena.config import Settings
from arena.train import RUNS, train
from arena.train_evaluate import interval
from arena.train_file import load
from arena.train_log import read_metrics
from arena.train_state import RUN_FILE
from benchmarks._measure import machine, positive, table

EXAMPLE = Path(__file__).parents[1] / "examples" / "train_kuhn.toml"
LEAST_FALL = 0.8
MOST_LEFT = 0.15


def curve(seed: int, *, home: Path, sets: Sequence[str]) -> list[tuple[int, float]]:
    """Return (update, NashConv) of one run, which is begun, gone on with, or read."""
    name = f"kuhn-{seed}"
    config = load(EXAMPLE, sets=[f"seed={seed}", f'name="{name}"', "evaluation.opponents=[]", *sets])
    settings = Settings(home=home, policy={"threads": 1, "device": "cpu"})
    folder = home / RUNS / name
    lines = read_metrics(folder)
    if not any(line["kind"] == "stop" and line["why"] == "updates" for line in lines):
        resume = (folder / RUN_FILE).exists()
        lines = asyncio.run(train(config, settings=settings, resume=resume, report=_say(seed))).lines
    return [(line["update"], line["nash_conv"]["kuhn"]) for line in lines if line["kind"] == "evaluation"]


def _say(seed: int) -> Any:
    def report(line: dict[str, Any]) -> None:
        if line["kind"] == "evaluation":
            print(f"seed {seed}, update {line['update']}: {line['nash_conv']['kuhn']:.3f}", flush=True)

    return report


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="NashConv of Kuhn poker by self-play.")
    parser.add_argument("--seeds", type=positive, default=5, help="runs")
    parser.add_argument("--first", type=positive, default=1, help="the first seed")
    parser.add_argument("--home", type=Path, help="where the runs are kept; by default nowhere")
    parser.add_argument("--set", dest="sets", action="append", default=[], help="as of arena train")
    flags = parser.parse_args(args)
    print(machine("evoke-arena", "torch"))
    with tempfile.TemporaryDirectory() as folder:
        home = flags.home or Path(folder)
        seeds = range(flags.first, flags.first + flags.seeds)
        curves = {seed: curve(seed, home=home, sets=flags.sets) for seed in seeds}
    rows, falls, ends = [], [], []
    for seed, points in curves.items():
        (_, start), (updates, end) = points[0], points[-1]
        falls.append(1 - end / start)
        ends.append(end)
        rows.append([str(seed), str(updates), f"{start:.3f}", f"{end:.3f}", f"{falls[-1]:.0%}"])
    print(table(["seed", "updates", "at the start", "at the end", "fall"], rows))
    print(f"at the end {_mean(ends)}, fall {_mean(falls)}")
    good = sum(fall >= LEAST_FALL and end <= MOST_LEFT for fall, end in zip(falls, ends, strict=True))
    print(f"{good} of {len(ends)} runs fall by at least {LEAST_FALL:.0%} and end at most {MOST_LEFT}")


def _mean(values: Sequence[float]) -> str:
    low, high = interval(values)
    around = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
    return f"{sum(values) / len(values):.3f}{around}"


if __name__ == "__main__":
    main()
