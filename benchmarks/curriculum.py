"""Does the curriculum do what it claims? Simulated learners with known skill, plain random tasks always beside it.

    band       success at training tasks in windows of 100 attempts, for learners of several kinds
    weakest    tasks until a skill that was put 2 levels under all others gets 8 of 20 tasks
    race       attempts until a target skill on a fixed held-out set, in the mean and in the worst 5 %
    retention  success at old tasks with and without packs of review
    shift      "tasks got harder" and "agent got worse", planted: power and false alarms
    real       the same generator making proven grid tasks: how near it comes to what was asked, and how fast

All but `real` draw tasks as difficulties with skills, through the same strategies and generator. Seeds are 0 to
N - 1; intervals are 95 %, by Student's t over the seeds (of logarithms for ratios), Wilson's for shares.

    python -m benchmarks.curriculum [--only race ...] [--seeds 20] [--trials 400]
"""

import argparse
import math
import time
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median, stdev

from scipy import stats

from agents.curriculum import truth
from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes
from agents.curriculum.generator import Generator
from agents.curriculum.learners import Learner, Nature
from agents.curriculum.makers import GridMaker
from agents.curriculum.metrics import Share
from agents.curriculum.rows import AttemptRow, MemoryInRam
from benchmarks._measure import machine, positive, table, verdict
from games.tasks.difficulty import SKILLS

PARTS = ("band", "weakest", "race", "retention", "shift", "real")
SOURCES = (truth.DEFAULT, truth.AT_TARGET, truth.IN_RANGE, truth.PLAIN)
WITHIN = 120
"""Tasks within which the generator should move to the weakest skill."""
STRETCH = 200
"""Attempts in each of the two stretches that are compared."""


ONLY: list[str] = []
"""The kinds of learners that were asked for; empty: those that each part is about."""

CLAIMS: dict[str, set[str]] = {
    "same": set(),
    "harder": {"harder"},
    "worse": {"worse"},
    "both": {"harder", "worse"},
}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval by Student's t."""
    middle = mean(values)
    if len(values) < 2:
        return middle, math.nan, math.nan
    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return middle, middle - half, middle + half


def shown(values: Sequence[float], form: str = ".2f") -> str:
    """Return mean and interval as text."""
    middle, low, high = interval(values)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of the paired ratios and its interval."""
    middle, low, high = interval([math.log(a / b) for a, b in zip(ours, theirs, strict=True)])
    return math.exp(middle), math.exp(low), math.exp(high)


def share(count: int, total: int) -> str:
    """Return a share with its Wilson interval as text."""
    low, high = Share(total, count).interval or (math.nan, math.nan)
    return f"{count / total:.3f} ({low:.3f} to {high:.3f})"


def band(seeds: int, trials: int) -> None:
    """Success at training tasks."""
    rows = []
    for name in ONLY or truth.NATURES:
        nature = truth.NATURES[name]
        for source in (truth.DEFAULT, truth.PLAIN):
            runs = [
                truth.band_shares(truth.start(source, seed=seed, nature=nature), count=1000)
                for seed in range(seeds)
            ]
            windows = [value for run in runs for value in run]
            inside = sum(0.35 <= value <= 0.65 for value in windows)
            rows.append(
                [
                    name,
                    source,
                    shown([mean(run) for run in runs], ".3f"),
                    f"{min(windows):.2f} to {max(windows):.2f}",
                    f"{inside} of {len(windows)}",
                ]
            )
    print(
        table(
            ["learner", "tasks", "success (over seeds)", "windows, least to greatest", "in 0.35–0.65"], rows
        )
    )


def weakest(seeds: int, trials: int) -> None:
    """Tasks until the weakened skill gets two fifths of them; not `navigate`, which every task teaches again."""
    rows = []
    for source in (truth.DEFAULT, truth.AT_TARGET, truth.PLAIN):
        found = [
            truth.tasks_until_weakest(truth.start(source, seed=seed), skill=SKILLS[1 + seed % 6])
            for seed in range(seeds * 2)
        ]
        counts = sorted(math.inf if count is None else count for count in found)
        within = sum(count <= WITHIN for count in counts)
        rows.append(
            [
                source,
                f"{median(counts):g}",
                f"{counts[int(0.95 * len(counts))]:g}",
                share(within, len(counts)),
            ]
        )
    print(table(["tasks", "median", "95th percentile", f"within {WITHIN} tasks"], rows))


def race(seeds: int, trials: int) -> None:
    """Attempts until a target skill."""
    for name in ONLY or ("usual", "forgetful", "even"):
        races = {
            source: [truth.race(source, seed=seed, nature=truth.NATURES[name]) for seed in range(seeds)]
            for source in SOURCES
        }
        plain = races[truth.PLAIN]
        rows = []
        for source, found in races.items():
            cells = [source]
            for part in ("to_mean", "to_worst"):
                ours = [getattr(one, part) or math.inf for one in found]
                base = [getattr(one, part) or math.inf for one in plain]
                both = [(a, b) for a, b in zip(ours, base, strict=True) if a < math.inf and b < math.inf]
                missed = len(found) - sum(value < math.inf for value in ours)
                cells.append(f"{median(ours):,.0f}" + (f", {missed} never" if missed else ""))
                middle, low, high = ratio(*zip(*both, strict=True)) if both else (math.nan,) * 3
                cells.append(
                    f"{middle:.2f} ({low:.2f} to {high:.2f})" + (f" n={len(both)}" if missed else "")
                )
                if source == truth.DEFAULT and name == "usual":
                    print(f"{part}, default mix over plain random: {verdict(high, target=0.6, at_most=True)}")
            cells += [shown([one.mean_at for one in found]), shown([one.worst_at for one in found])]
            rows.append(cells)
        print(f"\nLearner `{name}`\n")
        head = ["tasks", "to mean 0.8", "ratio to plain", "to 5th percentile 0.4", "ratio to plain"]
        print(table([*head, "mean after 1,000", "5th percentile after 1,000"], rows))


def retention(seeds: int, trials: int) -> None:
    """Old tasks, with and without packs."""
    rows = []
    for name in ONLY or ("usual", "forgetful"):
        nature = truth.NATURES[name]
        for review in (False, True):
            moved = [
                truth.retention_of(seed=seed, review=review, old=SKILLS[:5], new=SKILLS[5:], nature=nature)
                for seed in range(seeds)
            ]
            mixed = [truth.retention_in_mix(seed=seed, review=review, nature=nature) for seed in range(seeds)]
            rows.append(
                [
                    name,
                    "with" if review else "without",
                    shown([one.before for one in moved]),
                    shown([one.after for one in moved]),
                    shown([one.share for one in moved]),
                    shown([one.share for one in mixed]),
                ]
            )
    head = ["learner", "packs", "old tasks, before", "after 1,200 tasks of new skills", "kept"]
    print(table([*head, "kept, all skills in the mix"], rows))


def shift(seeds: int, trials: int) -> None:
    """Planted changes."""
    cases: list[tuple[str, str, dict[str, float | bool]]] = [
        ("nothing", "same", {}),
        ("tasks 1 level harder", "harder", {"harder": 1.0}),
        ("agent 1 level worse", "worse", {"worse": 1.0}),
        ("both", "both", {"harder": 1.0, "worse": 1.0}),
        ("nothing, generator adapts", "same", {"closed": True}),
        ("nothing, generator adapts, agent learns", "same", {"closed": True, "learns": True}),
        ("generator aims 1 level higher", "harder", {"harder": 1.0, "closed": True}),
        ("agent 1 level worse, generator adapts", "worse", {"worse": 1.0, "closed": True}),
    ]
    rows = []
    for size in (STRETCH // 2, STRETCH, 2 * STRETCH):
        for name, wanted, planted in cases:
            if size != STRETCH and "closed" in planted:
                continue
            count = trials if size == STRETCH else trials // 4
            found = truth.verdicts(
                count, lambda seed, p=planted, n=size: truth.planted(seed=seed, size=n, **p)
            )  # type: ignore[misc, arg-type]
            told = sum(n for kind, n in found.items() if CLAIMS[kind] >= CLAIMS[wanted])
            told = found["same"] if wanted == "same" else told
            false = sum(n for kind, n in found.items() if CLAIMS[kind] - CLAIMS[wanted])
            seen = ", ".join(f"{kind} {n}" for kind, n in sorted(found.items()))
            rows.append([str(size), name, share(told, count), share(false, count), seen])
    print(table(["attempts each", "planted", "told right", "false alarms", "verdicts"], rows))


def real(seeds: int, trials: int) -> None:
    """Proven grid tasks."""
    config = CurriculumConfig()
    axes = Axes(config.scales)
    rows = []
    for seed in range(2):
        memory, refused, made, strategies = MemoryInRam(), Counter[str](), 0, Counter[str]()
        generator = Generator(config, GridMaker(), seed=seed)
        learner = Learner(config.skills, seed=seed, axes=axes, nature=Nature(start=3.0))
        off, spent, attempts, tests = [], 0.0, 0, 0
        windows: list[str] = []
        for number in range(200):
            begun = time.process_time()
            batch = generator.propose(memory, start=number)
            spent += time.process_time() - begun
            refused.update(batch.refused)
            tests += len(batch.test)
            for proposal in (*batch.test, *batch.train):
                memory.add_task(proposal.row(), proposal.task.spec)
            for proposal in batch.train:
                made += 1
                strategies[proposal.strategy] += 1
                windows.append(proposal.skill)
                if proposal.purpose == "train":
                    target = generator.standings.read(memory).targets[proposal.skill]
                    off.append(abs(axes.level(proposal.task.difficulty) - target))
                success, progress = learner.attempt(proposal.task, proposal.skill)
                memory.add_attempt(
                    AttemptRow(
                        attempts,
                        proposal.task.hash,
                        proposal.skill,
                        proposal.task.skills,
                        proposal.task.difficulty,
                        success,
                        progress,
                        proposal.purpose,
                    )
                )
                attempts += 1
        most = max(max(Counter(windows[i : i + 20]).values()) for i in range(len(windows) - 19)) / 20
        train = [row for row in memory.attempts(limit=attempts) if row.purpose == "train"]
        rows.append(
            [
                str(seed),
                str(made),
                f"{sum(row.success for row in train) / len(train):.2f}",
                f"{median(off):.2f}",
                f"{most:.2f}",
                str(tests),
                ", ".join(f"{kind} {n}" for kind, n in strategies.most_common()),
                ", ".join(f"{kind} {n}" for kind, n in refused.most_common()),
                f"{1000 * spent / made:.0f}",
            ]
        )
    head = [
        "seed",
        "tasks",
        "success",
        "levels off target (median)",
        "largest share of a skill in 20",
        "to test set",
    ]
    print(table([*head, "strategies", "refused tries", "CPU ms a task"], rows))


def main() -> None:
    """Run the parts that were asked for."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    parser.add_argument("--seeds", type=positive, default=20, help="learners of each kind")
    parser.add_argument("--trials", type=positive, default=400, help="planted changes of each kind")
    parser.add_argument("--learners", nargs="+", choices=truth.NATURES, default=[], help="kinds of learners")
    flags = parser.parse_args()
    ONLY.extend(flags.learners)
    print(machine())
    for part in flags.only:
        counted = f"{flags.trials} trials" if part == "shift" else f"{flags.seeds} seeds"
        print(f"\n## {part} ({counted})\n")
        globals()[part](flags.seeds, flags.trials)


if __name__ == "__main__":
    main()
