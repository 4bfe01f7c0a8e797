"""What a model of task worlds learns from."""

from collections import Counter

from agents.curriculum.makers import maker_for
from agents.policy.pretrain.attempts import DEMONSTRATORS, LEVELS, attempt_plans, demonstrate
from agents.policy.pretrain.mixture import Mixture, Source
from agents.policy.pretrain.words import count_words

GRID = Mixture((Source("grid", skills=("navigate", "fetch")),), random=0.25)


def test_plans_mix_skills_levels_and_demonstrators() -> None:
    made = attempt_plans(800, seed=1, mixture=GRID)
    assert made == attempt_plans(800, seed=1, mixture=GRID) != attempt_plans(800, seed=2, mixture=GRID)
    assert {plan.skill for plan in made} == {"navigate", "fetch"} and {plan.level for plan in made} == set(
        LEVELS
    )
    rungs = Counter(plan.rung for plan in made)
    assert rungs.keys() == {"random", *DEMONSTRATORS} and abs(rungs["random"] / 800 - 0.25) < 0.05
    every = attempt_plans(200, seed=1, mixture=Mixture((Source("text"), Source("kuhn"))))
    assert len(every) == 200 and {plan.skill for plan in every} == set(maker_for("text").skills)


def test_every_skill_of_every_world_has_tasks() -> None:
    for world in ("grid", "text"):
        for skill in maker_for(world).skills:
            for plan in attempt_plans(2, seed=5, mixture=Mixture((Source(world, skills=(skill,)),))):
                assert list(demonstrate(plan, budget_tokens=384, count=count_words)), plan


def test_steps_are_legal_and_asked_as_training_asks() -> None:
    for world in ("grid", "text"):
        mixture = Mixture((Source(world, skills=("navigate",)),))
        for plan in attempt_plans(4, seed=3, mixture=mixture):
            steps = list(demonstrate(plan, budget_tokens=384, count=count_words))
            assert steps == list(demonstrate(plan, budget_tokens=384, count=count_words)) and steps
            for sample in steps:
                assert sample.space.contains(sample.answer) and len(sample.space.options) > 1
                assert sample.messages[0].content == f"task {world}"
                assert sample.messages[1].content.endswith("\nask step")
                assert sum(count_words(message.content) for message in sample.messages) <= 384
