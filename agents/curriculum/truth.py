"""Does the loop do what it claims? Experiments with simulated learners, whose skill is known.

Learners draw tasks as difficulties with skills (`VectorMaker`), through the same generator and strategies that make
real tasks; no world is built and nobody plays. `plain random` is what stands beside it: any skill, any level, no
memory. Two more baselines take single parts away: `random in range` draws only from the levels of the held-out
tasks, and `random at target` keeps the curve but neither looks for weak skills nor varies near misses.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean

from agents.curriculum.config import CurriculumConfig, Mix
from agents.curriculum.curve import TOP_LEVEL, Axes, sigmoid
from agents.curriculum.generator import Generator
from agents.curriculum.learners import Learner, Nature
from agents.curriculum.makers import Drawn, VectorMaker
from agents.curriculum.metrics import retention
from agents.curriculum.rows import AttemptRow, MemoryInRam
from agents.curriculum.shift import Shift, compare
from agents.curriculum.strategies import Request
from games.rng import derive_seed

HELD_OUT_LEVELS = (2.0, 6.0)
HELD_OUT_PER_SKILL = 30
HELD_OUT_SEED = 77_000_001
LOOK_EVERY = 20

DEFAULT, PLAIN, IN_RANGE, AT_TARGET = "default mix", "plain random", "random in range", "random at target"

NATURES: dict[str, Nature] = {
    "usual": Nature(),
    "slow": Nature(gain=0.02),
    "fast": Nature(gain=0.08),
    "steep": Nature(slope=2.0),
    "forgetful": Nature(forget=0.01, grace=15),
    "picky": Nature(taste=0.8),
    "even": Nature(edge=False, gain=0.016),
}
"""Learners of several kinds. `even` gains alike from every attempt: no curriculum can matter much to it."""


@dataclass(slots=True)
class Run:
    """A learner under one source of tasks: everything that happened."""

    learner: Learner
    generator: Generator
    memory: MemoryInRam
    source: str
    seed: int
    attempts: list[AttemptRow] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    learns: bool = True

    def step(self) -> AttemptRow | None:
        """Let the source set one task and the learner attempt it; None if no task was found."""
        number, self.numbers = self.numbers, self.numbers + 1
        if self.source in (DEFAULT, AT_TARGET):
            batch = self.generator.propose(self.memory, start=number)
            self.refused.update(batch.refused)
            if not batch.train:
                return None
            proposal = batch.train[0]
            task, skill, purpose = proposal.task, proposal.skill, proposal.purpose
            for one in (*batch.train, *batch.test):
                self.memory.add_task(one.row())
        else:
            task, skill = self._random_task(number)
            purpose = "train"
        success, progress = self.learner.attempt(task, skill, learn=self.learns)
        row = AttemptRow(
            number=len(self.attempts),
            task=task.hash,
            skill=skill,
            skills=task.skills,
            difficulty=task.difficulty,
            success=success,
            progress=progress,
            purpose=purpose,
        )
        self.attempts.append(row)
        self.memory.add_attempt(row)
        return row

    def go(self, count: int) -> "Run":
        """Take `count` steps."""
        for _ in range(count):
            self.step()
        return self

    def _random_task(self, number: int) -> tuple[Drawn, str]:
        rng = random.Random(derive_seed(self.seed, self.source, number))
        levels = HELD_OUT_LEVELS if self.source == IN_RANGE else (0.0, TOP_LEVEL)
        return random_task(self.generator, rng, levels, self.generator.config.skills)


def start(
    source: str,
    *,
    seed: int,
    nature: Nature | None = None,
    config: CurriculumConfig | None = None,
    learner: Learner | None = None,
) -> Run:
    """Return a run that has not begun; the learner of a seed is the same whatever the source of tasks."""
    config = CurriculumConfig() if config is None else config
    if source == AT_TARGET:
        config = config.model_copy(update={"mix": Mix(bottleneck=0, coverage=0, curve=0, random=1)})
    generator = make_generator(config, seed=derive_seed(seed, "generator"))
    if learner is None:
        learner = Learner(
            config.skills, seed=derive_seed(seed, "learner"), axes=generator.axes, nature=nature
        )
    return Run(learner, generator, MemoryInRam(), source, seed)


def make_generator(config: CurriculumConfig, *, seed: int) -> Generator:
    """Return a generator that draws difficulties."""
    return Generator(config, VectorMaker(Axes(config.scales)), seed=seed)


def random_task(
    generator: Generator, rng: random.Random, levels: tuple[float, float], skills: Sequence[str]
) -> tuple[Drawn, str]:
    """Return a task of any skill, at any level between two."""
    skill = rng.choice(list(skills))
    difficulty = generator.axes.spread(rng.uniform(*levels), rng.random)
    task = generator.maker.make(
        Request(skill, difficulty, "random"), seed=rng.getrandbits(62), memory=MemoryInRam()
    )
    assert task is not None  # drawing a difficulty cannot fail
    return task, skill


# Success on a fixed held-out set


def held_out(generator: Generator) -> list[tuple[Drawn, str]]:
    """Return the held-out tasks: the same for every learner, source and seed."""
    rng = random.Random(HELD_OUT_SEED)
    return [
        random_task(generator, rng, HELD_OUT_LEVELS, [skill])
        for skill in generator.config.skills
        for _ in range(HELD_OUT_PER_SKILL)
    ]


def on_held_out(learner: Learner, tasks: Sequence[tuple[Drawn, str]]) -> tuple[float, float]:
    """Return the true chance of success on the held-out tasks: its mean, and its 5th percentile over the tasks."""
    chances = sorted(learner.chance(task, skill) for task, skill in tasks)
    return mean(chances), chances[int(0.05 * len(chances))]


@dataclass(frozen=True, slots=True)
class Race:
    """Attempts until the held-out mean, and the held-out 5th percentile, reached their goals; None: not by `most`."""

    to_mean: int | None
    to_worst: int | None
    mean_at: float
    """The held-out mean after `at` attempts."""
    worst_at: float


def race(
    source: str,
    *,
    seed: int,
    nature: Nature | None = None,
    mean_goal: float = 0.8,
    worst_goal: float = 0.4,
    at: int = 1000,
    most: int = 12_000,
) -> Race:
    """Train one learner until both goals are reached."""
    run = start(source, seed=seed, nature=nature)
    tasks = held_out(run.generator)
    to_mean = to_worst = None
    then = (0.0, 0.0)
    done = 0
    while done < most and (to_mean is None or to_worst is None or done < at):
        run.go(LOOK_EVERY)
        done += LOOK_EVERY
        now = on_held_out(run.learner, tasks)
        if to_mean is None and now[0] >= mean_goal:
            to_mean = done
        if to_worst is None and now[1] >= worst_goal:
            to_worst = done
        if done == at:
            then = now
    return Race(to_mean, to_worst, *then)


# Success stays in the band


def band_shares(run: Run, *, window: int = 100, skip: int = 100, count: int = 1500) -> list[float]:
    """Run, and return success at training tasks in consecutive windows of so many of them, the first left out."""
    run.go(count)
    rows = [row.success for row in run.attempts if row.purpose == "train"][skip:]
    return [sum(rows[i : i + window]) / window for i in range(0, len(rows) - window + 1, window)]


# It moves to the weakest skill


def tasks_until_weakest(
    run: Run,
    *,
    skill: str,
    gap: float = 2.0,
    before: int = 400,
    look: int = 20,
    share: float = 0.4,
    most: int = 400,
) -> int | None:
    """Put a skill `gap` levels under all others after `before` tasks; return how many tasks it then takes.

    That is, until it has `share` of the last `look` tasks, reviews left out; None if that is not within `most` tasks.
    """
    run.go(before)
    abilities = run.learner.ability
    abilities[skill] = max(0.0, min(abilities.values()) - gap)
    for count in range(1, most + 1):
        run.step()
        latest = [row.skill for row in run.attempts[-look:] if row.purpose == "train"]
        if latest.count(skill) >= share * look:
            return count
    return None


# Review packs keep old skills


@dataclass(frozen=True, slots=True)
class Kept:
    """Success at old tasks before and after a stretch in which other skills were trained (true chances, means)."""

    before: float
    after: float
    measured: float | None
    """Success at old tasks as the rows show it: what a run without the truth would see (None without reviews)."""

    @property
    def share(self) -> float:
        """What was kept."""
        return self.after / self.before


def retention_of(
    *,
    seed: int,
    review: bool,
    old: Sequence[str],
    new: Sequence[str],
    nature: Nature | None = None,
    first: int = 800,
    second: int = 1200,
) -> Kept:
    """Train the old skills, then only the new ones, with or without packs of review; return what was kept."""
    config = CurriculumConfig()
    packs = config.review if review else config.review.model_copy(update={"size": 0})
    generator = make_generator(config, seed=seed)
    learner = Learner((*old, *new), seed=derive_seed(seed, "learner"), axes=generator.axes, nature=nature)
    early = config.model_copy(update={"skills": tuple(old), "review": packs})
    late = config.model_copy(update={"skills": tuple(new), "review": packs})
    run = start(DEFAULT, seed=seed, config=early, learner=learner).go(first)
    solved = {row.task: row for row in run.attempts if row.success and row.skill in old}
    tasks = [(Drawn(row.task, row.skills, row.difficulty), row.skill) for row in solved.values()]
    before = mean(learner.chance(task, skill) for task, skill in tasks)
    run.generator = make_generator(late, seed=derive_seed(seed, "late"))
    run.go(second)
    after = mean(learner.chance(task, skill) for task, skill in tasks)
    seen = retention(run.attempts, rest=config.review.idle)
    return Kept(before, after, seen.value)


def retention_in_mix(*, seed: int, review: bool, nature: Nature | None = None, count: int = 2000) -> Kept:
    """Train all skills by the default mix, with or without packs; tasks solved in the first half are the old ones."""
    config = CurriculumConfig()
    if not review:
        config = config.model_copy(update={"review": config.review.model_copy(update={"size": 0})})
    run = start(DEFAULT, seed=seed, config=config, nature=nature).go(count // 2)
    solved = {row.task: row for row in run.attempts if row.success}
    tasks = [(Drawn(row.task, row.skills, row.difficulty), row.skill) for row in solved.values()]
    before = mean(run.learner.chance(task, skill) for task, skill in tasks)
    run.go(count // 2)
    after = mean(run.learner.chance(task, skill) for task, skill in tasks)
    return Kept(before, after, None)


# Harder tasks, or a worse agent?


def stretches(
    *,
    seed: int,
    size: int,
    harder: float = 0.0,
    worse: float = 0.0,
    closed: bool = False,
    learns: bool = False,
) -> tuple[list[AttemptRow], list[AttemptRow]]:
    """Return two stretches of attempts between which something is planted.

    Args:
        seed: of the learner and of the tasks.
        size: attempts in each stretch.
        harder: levels by which the tasks of the second stretch lie higher; where the generator sets them, levels by
            which it aims higher than it did.
        worse: levels of ability that the learner loses between the stretches.
        closed: whether the generator sets the tasks (it eases them when the agent gets worse); else they come
            from all levels within two of the learner's mean ability.
        learns: whether the learner goes on learning meanwhile.
    """
    rng = random.Random(derive_seed(seed, "planted"))
    run = start(DEFAULT, seed=seed, nature=Nature(start=4.0, start_spread=1.0))
    run.learns = learns
    learner = run.learner
    if closed:
        run.go(150)
        first = run.go(size).attempts[-size:]
        for skill in learner.ability:
            learner.ability[skill] -= worse
        if harder:
            run.generator = make_generator(aims_higher(run.generator.config, by=harder), seed=seed)
        return first, run.go(size).attempts[-size:]
    middle = mean(learner.ability.values())
    found: list[list[AttemptRow]] = []
    for shift, loss in ((0.0, 0.0), (harder, worse)):
        for skill in learner.ability:
            learner.ability[skill] -= loss
        rows: list[AttemptRow] = []
        for _ in range(size):
            levels = (middle - 2 + shift, middle + 2 + shift)
            task, skill = random_task(run.generator, rng, levels, run.generator.config.skills)
            success, progress = learner.attempt(task, skill, learn=learns)
            rows.append(
                AttemptRow(len(rows), task.hash, skill, task.skills, task.difficulty, success, progress)
            )
        found.append(rows)
    return found[0], found[1]


def planted(
    *,
    seed: int,
    size: int,
    harder: float = 0.0,
    worse: float = 0.0,
    alpha: float = 0.05,
    closed: bool = False,
    learns: bool = False,
) -> Shift:
    """Return what the comparison of such stretches says; the arguments are those of `stretches`."""
    before, after = stretches(seed=seed, size=size, harder=harder, worse=worse, closed=closed, learns=learns)
    return compare(before, after, Axes(CurriculumConfig().scales), alpha=alpha)


def aims_higher(config: CurriculumConfig, *, by: float) -> CurriculumConfig:
    """Return a configuration that aims `by` levels higher, whatever that costs."""
    curve = config.curve
    target = sigmoid(math.log(curve.target / (1 - curve.target)) - curve.slope * by)
    band = config.band.model_copy(update={"low": target / 4, "far": target / 16})
    return config.model_copy(update={"curve": curve.model_copy(update={"target": target}), "band": band})


def verdicts(count: int, case: Callable[[int], Shift]) -> Mapping[str, int]:
    """Return how often each verdict came over seeds 0 to `count - 1`."""
    return Counter(case(seed).verdict for seed in range(count))
