"""The generator: from what was attempted to the tasks that come next.

For every task number: is it a review? If not, which strategy is due? Then, at most `max_task_retry` times, a request
is made and met, and the task is refused if it is a duplicate, too similar to a recent one, or outside the band of
what can be learned; what lies far beyond goes to the test set.

A task depends on the configuration, the seed, its number, and what the memory holds; on nothing else. So the same
configuration and seed give the same tasks, and a run that was killed goes on as it would have gone on.
"""

from collections import Counter, deque
from collections.abc import Generator as Steps
from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes, expected
from agents.curriculum.makers import Drawn, Maker
from agents.curriculum.rows import AttemptRow, Memory, TaskRow
from agents.curriculum.strategies import STRATEGIES, Request, Scene, Standing, Standings, logit
from games.rng import Chance, derive_seed

REVIEW_HOPE = 0.7
"""The expected success at which a review is looked for: hard enough to be practice, and not lost yet."""
GOLDEN = 0.6180339887498949
REVIEW_LOOKS = 200
"""Solved tasks of a skill among which a review is looked for."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A task that should be attempted, and why."""

    number: int
    task: Drawn
    skill: str
    """The skill that it aims at."""
    strategy: str
    purpose: str
    """`train`, `review` or `test`."""
    similarity: float
    """To the most similar of the recent tasks."""
    expected: float
    """The chance of success that the curve expects."""

    def row(self) -> TaskRow:
        """Return the row that the memory keeps."""
        return TaskRow(
            number=self.number,
            task=self.task.hash,
            skill=self.skill,
            skills=self.task.skills,
            difficulty=self.task.difficulty,
            similarity=self.similarity,
            purpose=self.purpose,
            strategy=self.strategy,
        )


@dataclass(slots=True)
class Batch:
    """What was proposed: tasks to train on (reviews among them), tasks for the test set, and what was refused.

    Reasons: unmade, duplicate, similar, easy, hard, far; `given_up` counts task numbers that got no task.
    """

    train: list[Proposal] = field(default_factory=list)
    test: list[Proposal] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    """Task number and reason of each refusal, in order; where a maker said why it made nothing, its own word."""

    def refuse(self, number: int, reason: str, *, why: str = "") -> None:
        """Count a refusal; `why` is the maker's own word for it."""
        self.refused[reason] += 1
        self.refusals.append((number, why or reason))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A task that is to be made now: what whoever makes it is told."""

    number: int
    """Of the task."""
    attempt: int
    """0, 1, …: which try it is."""
    request: Request
    seed: int
    refused: str = ""
    """Why the try before was refused; empty at the first one."""


class Generator:
    """Proposes tasks by a configuration and a seed."""

    def __init__(self, config: CurriculumConfig, maker: Maker, *, seed: int = 0) -> None:
        self.config = config
        self.maker = maker
        self.seed = seed
        self.axes = Axes(config.scales)
        self.standings = Standings(config, self.axes)

    def propose(self, memory: Memory, *, start: int, count: int = 1) -> Batch:
        """Return tasks for the numbers `start` to `start + count - 1`.

        Args:
            memory: what was attempted and proposed before; it is only read. Later tasks of one batch know of the
                earlier ones, but not of how they will go.
            start: how many numbers were used before.
            count: how many tasks are wanted; there are fewer where numbers are given up.
        """
        steps = self.steps(memory, start=start, count=count)
        made: Drawn | str | None = None
        while True:
            try:
                wanted = steps.send(made)
            except StopIteration as done:
                batch: Batch = done.value
                return batch
            made = self.maker.make(wanted.request, seed=wanted.seed, memory=memory)

    def steps(
        self, memory: Memory, *, start: int, count: int = 1
    ) -> Steps[Wanted, "Drawn | str | None", Batch]:
        """Do as `propose` does, but leave the making to the caller, who may wait for somebody.

        Yields what is wanted; is sent the task, or None, or in a word why there is none. Returns the batch.
        """
        config = self.config
        standing = self.standings.read(memory)
        batch = Batch()
        look = max(config.similarity.recent, config.similarity.window, config.bottleneck.window)
        tasks = deque((row for row in memory.tasks(limit=look) if row.purpose != "test"), maxlen=look)
        fresh: set[str] = set()
        for number in range(start, start + count):
            chance = Chance(derive_seed(self.seed, "curriculum", number))
            scene = Scene(
                config=config,
                axes=self.axes,
                standing=standing,
                memory=memory,
                open_skills=self._open_skills(tasks),
                tasks=tuple(tasks),
                draw=lambda chance=chance: chance.draw(1 << 32) / (1 << 32),  # type: ignore[misc]
            )
            proposal = self._review(scene, number, fresh)
            if proposal is None:
                proposal = yield from self._new(scene, number, fresh, batch)
            if proposal is None:
                batch.refuse(number, "given_up")
                continue
            fresh.add(proposal.task.hash)
            batch.train.append(proposal)
            tasks.append(proposal.row())
        return batch

    def strategy(self, number: int) -> str:
        """Return the strategy that is due: spread so evenly that any stretch of tasks keeps the shares of the mix."""
        offset = derive_seed(self.seed, "mix") / 2**63
        place, mix = (offset + number * GOLDEN) % 1.0, self.config.mix
        names = [name for name in STRATEGIES if getattr(mix, name) > 0]
        for name in names:
            place -= getattr(mix, name)
            if place < 0:
                return name
        return names[-1]

    def _open_skills(self, tasks: Sequence[TaskRow] | deque[TaskRow]) -> list[str]:
        """Return the skills that may have one more task without going over the cap."""
        bounds, skills = self.config.bottleneck, self.config.skills
        latest = list(tasks)[-(bounds.window - 1) :] if bounds.window > 1 else []
        most = max(1, int(bounds.cap * (len(latest) + 1) + 1e-9))
        counts = Counter(row.skill for row in latest)
        found = [skill for skill in skills if counts[skill] < most]
        return found or sorted(skills, key=lambda skill: counts[skill])[:1]

    def _is_stale(self, tasks: Sequence[TaskRow]) -> bool:
        """Whether the latest tasks stay too similar to old ones."""
        bounds = self.config.similarity
        latest = [row.similarity for row in tasks if row.purpose == "train"][-bounds.window :]
        return len(latest) == bounds.window and sum(latest) / len(latest) >= bounds.high

    def _new(
        self, scene: Scene, number: int, fresh: set[str], batch: Batch
    ) -> Steps[Wanted, "Drawn | str | None", Proposal | None]:
        config = self.config
        strategy = self.strategy(number)
        if self._is_stale(scene.tasks):
            strategy = "coverage"
        repeats, refused = 0, ""
        for attempt in range(config.max_task_retry):
            if 2 * repeats >= config.max_task_retry:
                strategy = "coverage"
            request = STRATEGIES[strategy](scene)
            seed = derive_seed(self.seed, "task", number, attempt)
            task = yield Wanted(number, attempt, request, seed, refused)
            if task is None or isinstance(task, str):
                refused = task or "unmade"
                batch.refuse(number, "unmade", why=refused)
                continue
            if task.hash in fresh or scene.memory.seen(task.hash):
                refused = "duplicate"
                batch.refuse(number, refused)
                repeats += 1
                continue
            likeness = self.maker.nearest(task, scene.tasks[-config.similarity.recent :], scene.memory)
            if likeness >= config.similarity.duplicate:
                refused = "similar"
                batch.refuse(number, refused)
                repeats += 1
                continue
            hope = self._expected(scene.standing, request.skill, task)
            refused = band(hope, config)
            purpose = "test" if refused == "far" else "train"
            proposal = Proposal(number, task, request.skill, strategy, purpose, likeness, hope)
            if refused == "learnable":
                return proposal
            batch.refuse(number, refused)
            if refused == "far":
                fresh.add(task.hash)
                batch.test.append(proposal)
        return None

    def _expected(self, standing: Standing, skill: str, task: Drawn) -> float:
        """Return the success that the skill's target implies; a task at the target is always in the band.

        The target knows more than the fitted ability: how far that lags behind, and how far a step may go.
        """
        curve = self.config.curve
        aim = standing.targets[skill] + logit(curve.target) / curve.slope
        return expected(aim, self.axes.level(task.difficulty), slope=curve.slope)

    def _review(self, scene: Scene, number: int, fresh: set[str]) -> Proposal | None:
        """Return an old task, if a review is due at this number and there is one that has rested.

        A pack goes through the skills that the memory knows, those untouched for longest first; of a skill it takes
        one of the hardest solved tasks that it can still be hoped to solve.
        """
        config = self.config.review
        place = number % config.every
        if number < config.every or place >= config.size:
            return None
        newest = scene.memory.attempts(limit=1)
        now = newest[-1].number + 1 if newest else 0
        skills = sorted(scene.memory.profile().values(), key=lambda profile: (profile.last, profile.skill))
        pack = number // config.every
        closed = set(self.config.skills) - set(scene.open_skills)
        closed |= {
            row.skill for row in scene.tasks if row.purpose == "review" and row.number // config.every == pack
        }
        for profile in skills:
            if profile.skill in closed:
                continue
            rows = [
                row
                for row in scene.memory.solved(profile.skill, limit=REVIEW_LOOKS)
                if now - row.number >= config.idle and row.task not in fresh
            ]
            if rows:
                return self._old(scene, number, rows)
        return None

    def _old(self, scene: Scene, number: int, rows: list[AttemptRow]) -> Proposal:
        found, slope = self.standings.ability(scene.memory, rows[0].skill).level, self.config.curve.slope
        hopes = {row.task: expected(found, self.axes.level(row.difficulty), slope=slope) for row in rows}
        rows.sort(key=lambda row: (abs(hopes[row.task] - REVIEW_HOPE), row.number))
        row = rows[int(scene.draw() * max(1, len(rows) // 4))]
        spec = scene.memory.task(row.task)
        task = Drawn(row.task, row.skills, row.difficulty, spec, None if spec is None else spec.parent)
        return Proposal(number, task, row.skill, "review", "review", 1.0, hopes[row.task])


def band(hope: float, config: CurriculumConfig) -> str:
    """Return `far`, `hard`, `learnable` or `easy`, by the expected success."""
    bounds = config.band
    if hope < bounds.far:
        return "far"
    if hope < bounds.low:
        return "hard"
    return "learnable" if hope <= bounds.high else "easy"
