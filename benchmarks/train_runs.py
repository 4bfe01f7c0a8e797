"""What training gains, over several seeds: runs of `arena train`, and variants of them beside one another.

Runs one configuration once a seed (and once a variant of it), as `arena train` does on one thread, and reads from its
metrics what its evaluations measured: points against each fixed opponent, in all and from each side; NashConv,
negative, so that more is better; success at the tasks that were held out; success at those that training solved first.
Printed are the means at the first and the last evaluation and of the seeds' differences between them, with Student's
95 % intervals over the seeds.

With variants it is also told after how many updates each seed reaches the level that the first variant gains by most
of its way (`--part`): by straight lines between evaluations, each the mean of itself and its neighbours, for single
ones are noisy. Runs that never reach it, those that an alarm stopped among them, count as the updates that were
planned, which favours them. The level is taken as known, though it comes from the same runs; of few seeds a bootstrap
is narrow.

    python -m benchmarks.train_runs examples/train_kuhn.toml --seeds 5 --home /tmp/runs
    python -m benchmarks.train_runs FILE --model FOLDER --variant outcome --variant 'adca: credit.method=adca'

A run that was interrupted goes on where it stopped, and one that is done is read; so several processes may share the
seeds of one home (`--first`) and the whole is printed at the end.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.policy.chat import describe_model
from agents.policy.presets import find_model
from agents.policy.service import MODELS_FOLDER
from agents.policy.settings import PolicySettings
from arena.config import Settings
from arena.train import RUNS, train
from arena.train_evaluate import interval
from arena.train_file import load
from arena.train_log import read_metrics
from arena.train_state import RUN_FILE, read_run
from benchmarks._measure import machine, positive, table

SUCCESS, RETENTION = "held-out tasks solved", "solved tasks solved again"
SAMPLES = 10_000
DONE = ("updates", "alarm")
"""Why runs end that are not gone on with."""

Curve = list[tuple[int, float]]
"""(update, value) in order."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A name, and what it sets in the configuration."""

    name: str
    sets: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Variant":
        """Read `NAME` or `NAME: KEY=VALUE KEY=VALUE`."""
        name, _, sets = text.partition(":")
        return cls(name.strip(), tuple(sets.split()))


def policy_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how the model is played."""
    parser.add_argument("--model", default="tiny", help="as of arena train: whose weights are trained")
    parser.add_argument(
        "--policy", action="append", default=[], metavar="K=V", help="a setting of the section policy"
    )


def policy_settings(flags: argparse.Namespace) -> PolicySettings:
    """Return how the model is played, on one thread of the processor."""
    given = dict(one.partition("=")[::2] for one in flags.policy)
    return PolicySettings.model_validate({"threads": 1, "device": "cpu", "model": flags.model, **given})


def run(
    path: Path, variant: Variant, seed: int, *, home: Path, sets: Sequence[str], policy: PolicySettings
) -> list[dict[str, Any]]:
    """Return the metrics of one run, which is begun, gone on with, or read."""
    name = f"{variant.name}-{seed}"
    config = load(path, sets=[f"seed={seed}", f'name="{name}"', *sets, *variant.sets])
    settings = Settings(home=home, policy=policy)
    folder = home / RUNS / name
    if config.budget.updates is None:
        raise SystemExit(f"{path}: budget.updates is needed, for variants are compared by updates")
    known = (folder / RUN_FILE).exists()
    if known and (digest := read_run(folder)["digest"]) != config.digest:
        raise SystemExit(
            f"{folder}: was made with the configuration {digest[:12]}, this one is {config.digest[:12]}"
        )
    fresh = config.start.weights == "fresh"  # then the run has a model of its own
    asked = describe_model(find_model(policy.model, cache=home / MODELS_FOLDER))
    if known and not fresh and (base := read_run(folder)["model"]) != asked:
        raise SystemExit(f"{folder}: was made with the model {base}, this one is {asked}")
    if not any(line["kind"] == "stop" and line["why"] in DONE for line in read_metrics(folder)):
        asyncio.run(train(config, settings=settings, resume=known, report=_say(name)))
    return [{**line, "planned": config.budget.updates} for line in read_metrics(folder)]


def _say(name: str) -> Any:
    def report(line: dict[str, Any]) -> None:
        if line["kind"] == "evaluation":
            told = ", ".join(f"{figure} {value:.3f}" for figure, value in measured(line).items())
            print(f"{name}, update {line['update']}, {line['seconds']:.0f} s: {told}", flush=True)

    return report


def measured(line: Mapping[str, Any]) -> dict[str, float]:
    """Return what one evaluation measured, by name."""
    found: dict[str, float] = {}
    for one in line.get("against") or ():
        where = f"{one['game']} against {one['opponent']}"
        found |= {f"{where}, as {side}": value for side, value in one["by_side"].items()}
        if one["score"] is not None:
            found[f"{where}, all sides"] = one["score"]
    found |= {f"{game}, -NashConv": -value for game, value in (line.get("nash_conv") or {}).items()}
    tasks = line.get("tasks") or {}
    for name, told in ((SUCCESS, tasks), (RETENTION, tasks.get("retention") or {})):
        if told.get("success") is not None:
            found[name] = told["success"]
    return found


def curves(lines: Sequence[Mapping[str, Any]]) -> dict[str, Curve]:
    """Return what the evaluations of a run measured, by name."""
    found: dict[str, Curve] = {}
    for line in lines:
        if line["kind"] == "evaluation":
            for name, value in measured(line).items():
                found.setdefault(name, []).append((line["update"], value))
    return found


def smoothed(curve: Curve) -> Curve:
    """Return the curve with each value the mean of itself and its neighbours."""
    values = [value for _, value in curve]
    return [(update, float(np.mean(values[max(0, at - 1) : at + 2]))) for at, (update, _) in enumerate(curve)]


def reached(curve: Curve, level: float) -> float | None:
    """Return after how many updates a curve is at a level for the first time, by straight lines; None: never."""
    before: tuple[int, float] | None = None
    for update, value in curve:
        if value >= level:
            if before is None:
                return float(update)
            return before[0] + (update - before[0]) * (level - before[1]) / (value - before[1])
        before = (update, value)
    return None


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What training gains, over several seeds.")
    parser.add_argument("file", type=Path, help="as of arena train")
    parser.add_argument("--seeds", type=positive, default=5, help="runs of each variant")
    parser.add_argument("--first", type=positive, default=1, help="the first seed")
    parser.add_argument("--home", type=Path, help="where the runs are kept; by default nowhere")
    policy_arguments(parser)
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], help="as of arena train, in all variants"
    )
    parser.add_argument(
        "--variant", dest="variants", action="append", help="NAME: KEY=VALUE …; several compare"
    )
    parser.add_argument(
        "--part", type=float, default=0.8, help="of the first variant's gain, which is to be reached"
    )
    flags = parser.parse_args(args)
    variants = [Variant.of(text) for text in flags.variants or ["run"]]
    seeds = range(flags.first, flags.first + flags.seeds)
    policy = policy_settings(flags)
    print(machine("evoke-arena", "torch"))
    with tempfile.TemporaryDirectory() as folder:
        home = flags.home or Path(folder)
        lines = {
            variant.name: [
                run(flags.file, variant, seed, home=home, sets=flags.sets, policy=policy) for seed in seeds
            ]
            for variant in variants
        }
    found = {name: [curves(one) for one in runs] for name, runs in lines.items()}
    _print_gains(found)
    if len(variants) > 1:
        planned = {name: [one[0]["planned"] for one in runs] for name, runs in lines.items()}
        _print_reached(found, planned, part=flags.part)
    _print_time(lines)


def _print_gains(found: Mapping[str, Sequence[Mapping[str, Curve]]]) -> None:
    rows = []
    for variant, runs in found.items():
        for name in sorted({name for one in runs for name in one}):
            both = [(one[name][0], one[name][-1]) for one in runs if len(one.get(name, ())) > 1]
            if both:
                starts, ends = ([end[1] for end in side] for side in zip(*both, strict=True))
                updates = sorted({f"{first[0]} to {last[0]}" for first, last in both})
                gains = [end - start for start, end in zip(starts, ends, strict=True)]
                told = [mean_told(starts), mean_told(ends), mean_told(gains, sign=True)]
                rows.append([variant, name, str(len(both)), " / ".join(updates), *told])
    print(table(["variant", "what", "seeds", "updates", "first", "last", "difference"], rows))


def _print_reached(
    found: Mapping[str, Sequence[Mapping[str, Curve]]], planned: Mapping[str, Sequence[int]], *, part: float
) -> None:
    (first, runs), *_ = found.items()
    rows = []
    for name in sorted({name for one in runs for name in one} - {RETENTION}):
        base = [one for one in runs if name in one]
        start = float(np.mean([one[name][0][1] for one in base]))
        ends = [smoothed(one[name])[-1][1] for one in base]
        gain = float(np.mean(ends)) - start
        if gain <= 0:
            rows.append([name, first, "it gains nothing", "", "", ""])
            continue
        level = start + part * gain
        needed: dict[str, list[float]] = {}
        for variant, tried in found.items():
            own = [
                (reached(smoothed(one[name]), level), most)
                for one, most in zip(tried, planned[variant], strict=True)
                if name in one
            ]
            if not own:
                rows.append([name, variant, f"{level:.3f}", "it is not measured", "", ""])
                continue
            needed[variant] = [float(most) if at is None else at for at, most in own]
            ratio = "1" if variant == first else _ratio(needed[variant], needed[first])
            never = f"{sum(at is None for at, _ in own)} of {len(own)}"
            rows.append([name, variant, f"{level:.3f}", mean_told(needed[variant], digits=1), never, ratio])
    heads = ["what", "variant", "level", "updates to reach it", "never", f"part of {first}'s"]
    print(table(heads, rows))


def _print_time(found: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]) -> None:
    rows = []
    for variant, runs in found.items():
        shares: dict[str, list[float]] = {"all": [], "rollout": [], "learn": [], "idle": []}
        for lines in runs:
            times = [line["time"] for line in lines if line["kind"] == "update"]
            if not times:
                continue
            total = {
                name: sum(one[name] for one in times) for name in ("all", "rollout", "learn", "sampler_busy")
            }
            shares["all"].append(total["all"] / len(times))
            shares["rollout"].append(total["rollout"] / total["all"])
            shares["learn"].append(total["learn"] / total["all"])
            shares["idle"].append(1 - total["sampler_busy"] / total["all"])
        if shares["all"]:
            rows.append([variant, *(mean_told(values, digits=2) for values in shares.values())])
    print(table(["variant", "seconds an update", "playing", "learning", "the sampler idle"], rows))


def _ratio(values: Sequence[float], others: Sequence[float]) -> str:
    """Return the ratio of two means with its 95 % bootstrap interval over seeds."""
    chance = np.random.default_rng(0)
    one, two = (
        np.array(side)[chance.integers(len(side), size=(SAMPLES, len(side)))].mean(1)
        for side in (values, others)
    )
    low, high = np.quantile(one / np.maximum(two, 1e-9), [0.025, 0.975])
    return f"{np.mean(values) / max(float(np.mean(others)), 1e-9):.2f} ({low:.2f} to {high:.2f})"


def mean_told(values: Sequence[float], *, digits: int = 3, sign: bool = False) -> str:
    """Return a mean and Student's 95 % interval as they are printed."""
    low, high = interval(values)
    plus = "+" if sign else ""
    around = "" if low is None or high is None else f" ({low:{plus}.{digits}f} to {high:{plus}.{digits}f})"
    return f"{sum(values) / len(values):{plus}.{digits}f}{around}"


if __name__ == "__main__":
    main()
