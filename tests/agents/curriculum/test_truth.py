"""The claims of `benchmarks/curriculum.py`, on few seeds: simulated learners whose skill is known."""

from statistics import mean

import pytest

from agents.curriculum import truth
from agents.curriculum.learners import Learner, Nature
from agents.curriculum.makers import Drawn
from games.tasks.difficulty import SKILLS
from tests.agents.curriculum.helpers import AXES

SEEDS = range(3)
TASK = Drawn("t", ("open",), AXES.balanced(2))


def test_practice_at_the_edge_raises_ability_and_rest_lowers_it() -> None:
    nature = Nature(start=2.0, start_spread=0, taste=0, talent=0)
    learner = Learner(("open", "fetch"), seed=1, axes=AXES, nature=nature)
    assert learner.chance(TASK, "open") == pytest.approx(0.5)
    learner.attempt(TASK, "open")
    assert learner.ability["open"] == pytest.approx(2.04)
    learner.attempt(Drawn("t", ("open",), AXES.balanced(9)), "open")
    assert learner.ability["open"] == pytest.approx(2.04, abs=0.001)  # far beyond it, nothing is learned
    assert learner.ability["fetch"] == 2.0
    learner.ability["fetch"] = 5.0
    for _ in range(100):
        learner.attempt(TASK, "open")
    assert 2.0 < learner.ability["fetch"] < 5.0
    assert learner.attempt(TASK, "open", learn=False)[1] > 0


def test_a_learner_depends_on_its_seed_alone() -> None:
    first, again = (truth.start(truth.DEFAULT, seed=2).go(80) for _ in range(2))
    assert first.attempts == again.attempts
    assert truth.start(truth.DEFAULT, seed=3).go(80).attempts != first.attempts
    assert truth.start(truth.PLAIN, seed=2).learner.base == first.learner.base


@pytest.mark.parametrize("kind", ["usual", "steep", "forgetful"])
def test_success_stays_in_the_band(kind: str) -> None:
    for seed in SEEDS:
        run = truth.start(truth.DEFAULT, seed=seed, nature=truth.NATURES[kind])
        assert all(0.35 <= share <= 0.65 for share in truth.band_shares(run, count=600))


def test_it_moves_to_the_weakest_skill_within_120_tasks() -> None:
    for seed in SEEDS:
        found = truth.tasks_until_weakest(truth.start(truth.DEFAULT, seed=seed), skill=SKILLS[1 + seed])
        assert found is not None
        assert found <= 120


@pytest.mark.slow
def test_the_default_mix_needs_far_fewer_attempts_than_plain_random_tasks() -> None:
    ours = [truth.race(truth.DEFAULT, seed=seed) for seed in SEEDS]
    plain = [truth.race(truth.PLAIN, seed=seed) for seed in SEEDS]
    for a, b in zip(ours, plain, strict=True):
        assert a.to_mean is not None
        assert a.to_worst is not None
        assert a.to_mean <= 0.6 * (b.to_mean or 12_000)
        assert a.to_worst <= 0.6 * (b.to_worst or 12_000)


@pytest.mark.slow
def test_old_skills_are_kept_by_packs_of_review_and_lost_without() -> None:
    kept = {
        review: [
            truth.retention_of(seed=seed, review=review, old=SKILLS[:5], new=SKILLS[5:]).share
            for seed in SEEDS
        ]
        for review in (False, True)
    }
    assert mean(kept[True]) > 0.95
    assert mean(kept[False]) < 0.9
    assert all(a > b for a, b in zip(kept[True], kept[False], strict=True))


@pytest.mark.slow
def test_harder_tasks_and_a_worse_agent_are_told_apart() -> None:
    cases = {"same": {}, "harder": {"harder": 1.0}, "worse": {"worse": 1.0}}
    for wanted, change in cases.items():
        found = truth.verdicts(20, lambda seed, change=change: truth.planted(seed=seed, size=200, **change))
        assert found[wanted] >= 18, (wanted, found)
