from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes
from agents.curriculum.generator import band
from agents.curriculum.makers import Drawn, GridMaker, VectorMaker
from agents.curriculum.rows import AttemptRow, Memory, MemoryInRam, TaskRow
from agents.curriculum.strategies import Request
from games.tasks.difficulty import SKILLS
from games.tasks.solver import SOLVABLE, solve_task
from tests.agents.curriculum.helpers import AXES, generator_of, memory_of, row

EVEN = dict.fromkeys(SKILLS, 4.0)
LOPSIDED = {**EVEN, "dodge": 1.0}


class Fixed(VectorMaker):
    """Makes what it is told to, and then what is asked."""

    def __init__(self, *tasks: Drawn | None) -> None:
        super().__init__(AXES)
        self.tasks = list(tasks)

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        return self.tasks.pop(0) if self.tasks else super().make(request, seed=seed, memory=memory)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.integers(0, 5000))
def test_any_stretch_of_tasks_keeps_the_shares_of_the_mix(seed: int, first: int) -> None:
    generator = generator_of(seed=seed)
    counts = Counter(generator.strategy(number) for number in range(first, first + 100))
    assert abs(counts["bottleneck"] - 70) <= 3
    assert abs(counts["coverage"] - 20) <= 3
    assert abs(counts["random"] - 10) <= 3
    assert set(counts) == {"bottleneck", "coverage", "random"}


def test_the_weak_skill_gets_most_but_no_skill_more_than_the_cap() -> None:
    memory = memory_of(LOPSIDED)
    batch = generator_of().propose(memory, start=1000, count=200)
    skills = [one.skill for one in batch.train]
    assert Counter(skills).most_common(1)[0][0] == "dodge"
    assert skills.count("dodge") / len(skills) >= 0.4
    window = [one.skill for one in memory.tasks(limit=19)] + skills
    for i in range(19, len(window)):
        assert max(Counter(window[i - 19 : i + 1]).values()) <= 12


def test_the_cap_holds_from_the_first_task_on_and_for_one_task_at_a_time() -> None:
    memory, generator, skills = memory_of(LOPSIDED), generator_of(), []
    fresh = MemoryInRam()
    for attempt in memory.attempts(limit=10_000):
        fresh.add_attempt(attempt)
    for number in range(60):
        for one in generator.propose(fresh, start=number).train:
            fresh.add_task(one.row())
            skills.append(one.skill)
    for n in range(2, len(skills) + 1):
        window = skills[max(0, n - 20) : n]
        assert max(Counter(window).values()) <= max(1, int(0.6 * len(window) + 1e-9))


def test_skills_that_are_equally_strong_get_equal_shares() -> None:
    counts = Counter(
        one.skill for one in generator_of().propose(memory_of(EVEN, attempts=60), start=0, count=300).train
    )
    assert set(counts) == set(SKILLS)
    assert max(counts.values()) < 0.45 * 300


def test_the_same_configuration_seed_and_memory_give_the_same_tasks() -> None:
    memory = memory_of(LOPSIDED)
    first = generator_of(seed=3).propose(memory, start=40, count=50)
    assert generator_of(seed=3).propose(memory, start=40, count=50) == first
    assert generator_of(seed=4).propose(memory, start=40, count=50) != first
    tighter = CurriculumConfig.from_text("[curve]\nstep = 0.5\n")
    assert generator_of(tighter, seed=3).propose(memory, start=40, count=50) != first


def test_a_task_depends_on_its_number_and_not_on_how_many_are_asked_for() -> None:
    memory, generator = memory_of(EVEN), generator_of(seed=5)
    alone = generator.propose(memory, start=45, count=1).train[0]
    assert alone.number == 45
    assert alone == generator_of(seed=5).propose(memory, start=45, count=3).train[0]


def test_tasks_lie_at_the_edge_of_each_skill() -> None:
    memory = memory_of({**LOPSIDED, "open": 7.0}, attempts=60)
    generator = generator_of()
    batch = generator.propose(memory, start=1000, count=200)
    standing = generator.standings.read(memory)
    config = generator.config
    for one in batch.train:
        if one.purpose == "train":
            assert config.band.low <= one.expected <= config.band.high
            level = AXES.level(one.task.difficulty)
            assert abs(level - standing.targets[one.skill]) <= standing.steps[one.skill] + 0.8
    for skill, true in (("dodge", 1.0), ("open", 7.0), ("fetch", 4.0)):
        assert standing.abilities[skill].level == pytest.approx(true, abs=1.5)


def test_a_flat_skill_gets_smaller_steps() -> None:
    memory = MemoryInRam()
    for number in range(40):  # two of three succeed, and it stays at that
        memory.add_attempt(row(number, level=3.0, success=bool(number % 3)))
    for number in range(40, 80):
        memory.add_attempt(row(number, skill="fetch", level=(number - 40) / 8, success=bool(number % 3)))
    standing = generator_of().standings.read(memory)
    assert standing.flat == {"open"}
    assert standing.steps["open"] == 0.5
    assert standing.steps["fetch"] == 1.0


def test_the_target_never_leaps_more_than_a_step_above_the_latest_tasks() -> None:
    memory = MemoryInRam()
    for number in range(20):
        memory.add_attempt(row(number, level=3.0, success=True))
    assert generator_of().standings.read(memory).targets["open"] <= 4.0 + 1e-6


def test_bottleneck_tasks_are_children_of_near_misses_one_step_nearer_to_the_target() -> None:
    memory = memory_of(LOPSIDED, attempts=60)
    generator = generator_of()
    failed = {one.task: one for one in memory.attempts(limit=10_000) if not one.success}
    children = [
        one
        for one in generator.propose(memory, start=0, count=100).train
        if one.strategy == "bottleneck" and one.task.parent
    ]
    assert len(children) > 20
    for one in children:
        parent = failed[one.task.parent or ""]
        assert parent.skill == one.skill
        assert abs(AXES.level(one.task.difficulty) - AXES.level(parent.difficulty)) < 1.9  # a step, and noise


def test_a_duplicate_is_refused_and_made_again() -> None:
    memory = memory_of(EVEN)
    old = memory.tasks(limit=1)[0]
    twin = Drawn(old.task, old.skills, old.difficulty)
    like = Drawn("new-name", old.skills, old.difficulty)
    batch = generator_of(maker=Fixed(twin, like, None)).propose(memory, start=7)
    assert batch.refused["duplicate"] == batch.refused["similar"] == batch.refused["unmade"] == 1
    assert len(batch.train) == 1
    assert batch.train[0].task.hash not in (twin.hash, like.hash)


def test_no_more_tries_than_allowed() -> None:
    memory = memory_of(EVEN)
    maker = Fixed(*[None] * 50)
    batch = generator_of(maker=maker).propose(memory, start=7)
    assert batch.train == batch.test == []
    assert batch.refused == {"unmade": 8, "given_up": 1}
    assert len(maker.tasks) == 42


def test_what_lies_far_beyond_goes_to_the_test_set_and_does_not_train() -> None:
    memory = memory_of(EVEN)
    far = Drawn("far", ("open",), AXES.balanced(9.5))
    easy = Drawn("easy", ("open",), AXES.balanced(0.5))
    batch = generator_of(maker=Fixed(far, easy)).propose(memory, start=7)
    assert [one.task for one in batch.test] == [far]
    assert batch.test[0].purpose == "test"
    assert batch.refused["far"] == batch.refused["easy"] == 1
    assert len(batch.train) == 1
    assert batch.train[0].task not in (far, easy)


@pytest.mark.parametrize(
    ("hope", "kind"),
    [
        (0.0, "far"),
        (0.04, "far"),
        (0.05, "hard"),
        (0.19, "hard"),
        (0.2, "learnable"),
        (0.8, "learnable"),
        (0.9, "easy"),
    ],
)
def test_the_band_of_what_can_be_learned(hope: float, kind: str) -> None:
    assert band(hope, CurriculumConfig()) == kind


def test_coverage_takes_over_while_similarity_stays_high() -> None:
    memory = memory_of(EVEN)
    last = memory.tasks(limit=1)[0]
    for i in range(20):
        memory.add_task(TaskRow(last.number + i, f"s{i}", SKILLS[i % 7], (), AXES.balanced(4 + i / 20), 0.95))
    for number in range(1, 9):
        (found,) = generator_of().propose(memory, start=number).train
        assert found.strategy == "coverage"
    for i in range(20):
        memory.add_task(TaskRow(900 + i, f"d{i}", SKILLS[i % 7], (), AXES.balanced(4 + i / 20), 0.3))
    after = generator_of().propose(memory, start=1, count=10).train
    assert "bottleneck" in {one.strategy for one in after}


def test_coverage_looks_for_combinations_that_were_not_seen() -> None:
    only = CurriculumConfig.from_text("skills = ['open']\n[mix]\nbottleneck = 0\ncoverage = 1\nrandom = 0\n")
    free = CurriculumConfig.from_text("skills = ['open']\n[mix]\nbottleneck = 0\ncoverage = 0\nrandom = 1\n")
    seen = {}
    for name, config in (("coverage", only), ("random", free)):
        memory, generator = memory_of({"open": 6.0}, attempts=80), generator_of(config)
        old = {AXES.combination(one.skill, one.difficulty) for one in memory.tasks(limit=100)}
        found = generator.propose(memory, start=24, count=16).train
        seen[name] = sum(AXES.combination(one.skill, one.task.difficulty) not in old for one in found)
    assert seen["coverage"] > seen["random"]


@pytest.mark.parametrize("success", [False, True])
@pytest.mark.parametrize("level", [0.3, 10.0])
def test_there_is_a_task_for_who_always_fails_and_for_who_never_does(level: float, success: bool) -> None:
    memory = MemoryInRam()
    for number in range(210):
        memory.add_attempt(row(number, skill=SKILLS[number % 7], level=level, success=success))
    batch = generator_of().propose(memory, start=5, count=10)
    assert len(batch.train) == 10


def test_a_pack_goes_through_skills_whether_tasks_are_asked_for_at_once_or_one_by_one() -> None:
    memory, generator, found = memory_of(EVEN, attempts=40), generator_of(), []
    for number in range(300, 304):
        (one,) = generator.propose(memory, start=number).train
        found.append(one)
        memory.add_task(one.row())
        memory.add_attempt(row(number, task=one.task.hash, skill=one.skill, purpose="review"))
    assert [one.purpose for one in found] == ["review"] * 4
    assert len({one.skill for one in found}) == 4


def test_packs_of_review_bring_back_solved_tasks_that_rested() -> None:
    memory = memory_of(EVEN, attempts=40)
    solved = {one.task: one for one in memory.attempts(limit=10_000) if one.success}
    now = memory.attempts(limit=1)[0].number + 1
    batch = generator_of().propose(memory, start=300, count=60)
    reviews = [one for one in batch.train if one.purpose == "review"]
    assert [one.number for one in reviews] == [300, 301, 302, 303, 320, 321, 322, 323, 340, 341, 342, 343]
    assert len({one.task.hash for one in reviews}) == 12
    assert len({one.skill for one in reviews[:4]}) == 4
    for one in reviews:
        assert now - solved[one.task.hash].number >= 20


def test_skills_that_are_no_longer_trained_are_reviewed_still() -> None:
    config = CurriculumConfig.from_text("skills = ['open', 'fetch']\n[review]\nevery = 10\nsize = 5\n")
    memory = memory_of({"dodge": 5.0, "open": 3.0, "fetch": 3.0})
    batch = generator_of(config).propose(memory, start=100, count=20)
    reviewed = {one.skill for one in batch.train if one.purpose == "review"}
    assert "dodge" in reviewed
    assert {one.skill for one in batch.train if one.purpose == "train"} <= {"open", "fetch"}


def test_nothing_is_reviewed_without_packs_or_before_there_is_anything_old() -> None:
    config = CurriculumConfig.from_text("[review]\nsize = 0\n")
    assert all(
        one.purpose == "train"
        for one in generator_of(config).propose(memory_of(EVEN), start=300, count=60).train
    )
    assert all(
        one.purpose == "train" for one in generator_of().propose(MemoryInRam(), start=30, count=8).train
    )


def test_real_tasks_are_proven_aim_at_their_skill_and_come_again_from_the_same_seed() -> None:
    runs = []
    for _ in range(2):
        memory, generator = MemoryInRam(), generator_of(maker=GridMaker(), seed=11)
        found = []
        for number in range(40):
            for one in generator.propose(memory, start=number).train:
                memory.add_task(one.row(), one.task.spec)
                memory.add_attempt(
                    AttemptRow(
                        len(found),
                        one.task.hash,
                        one.skill,
                        one.task.skills,
                        one.task.difficulty,
                        success=number % 2 == 0,
                        progress=0.8,
                        purpose=one.purpose,
                    )
                )
                found.append(one)
        runs.append(found)
    first, second = runs
    assert [one.task.hash for one in first] == [one.task.hash for one in second]
    assert len(first) >= 38
    children = 0
    for one in first:
        spec = one.task.spec
        assert spec is not None
        assert one.skill in spec.skills
        assert solve_task(spec).status == SOLVABLE
        children += spec.parent is not None
    assert children >= 4
    levels = [Axes(CurriculumConfig().scales).level(one.task.difficulty) for one in first]
    assert max(abs(a - b) for a, b in pairwise(levels)) > 0.1
