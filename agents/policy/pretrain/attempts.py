"""The data of task worlds: bots of the ladder at tasks, and at each step the prompt a policy would get.

Tasks are as easy as the curriculum begins with; the bots are the three rungs of `agents.bots.ladder` between `random`
and `far` in equal parts, and random ones as a mixture has them.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agents.bots.ladder import RUNGS, attempt
from agents.curriculum.config import CurriculumConfig
from agents.curriculum.curve import Axes
from agents.curriculum.makers import knobs_for, maker_for
from agents.curriculum.strategies import Request
from agents.policy.pretrain.matches import Sample
from agents.policy.pretrain.mixture import WORLDS, Mixture, Source
from agents.prompting.attempts import AttemptPrompter
from games.errors import BadTask
from games.rng import derive_seed
from games.spaces import Choice
from games.tasks.spec import TaskSpec

LEVELS = (0.0, 0.5, 1.0)
"""Of difficulty, in equal parts."""
DEMONSTRATORS = ("greedy", "near", "middle")
TRIES = 24
"""Seeds that are tried for one task."""


class AttemptPlan(NamedTuple):
    """One attempt to be made."""

    game: str
    skill: str
    level: float
    rung: str
    seed: int


def attempt_plans(attempts: int, *, seed: int, mixture: Mixture) -> list[AttemptPlan]:
    """Return `attempts` attempts at tasks of each world of a mixture; the same seed gives the same."""
    return [
        _plan(source, derive_seed(seed, source.name, i), mixture.random)
        for source in mixture.sources
        if source.name in WORLDS
        for i in range(attempts)
    ]


def _plan(source: Source, seed: int, random_share: float) -> AttemptPlan:
    chance = random.Random(seed)
    skill = chance.choice(source.skills or maker_for(source.name).skills)
    rung = "random" if chance.random() < random_share else chance.choice(DEMONSTRATORS)
    return AttemptPlan(source.name, skill, chance.choice(LEVELS), rung, seed)


def demonstrate(plan: AttemptPlan, *, budget_tokens: int, count: Callable[[str], int]) -> Iterator[Sample]:
    """Make an attempt and yield its steps, but for those without a choice; nothing where no such task was found.

    Args:
        plan: the attempt.
        budget_tokens: of a prompt, as in play.
        count: tokens of a text.
    """
    spec = _task(plan)
    if spec is None:
        return
    prompter = AttemptPrompter(spec, style="compact", budget_tokens=budget_tokens, count=count)
    world = prompter.world
    actions = attempt(spec, RUNGS[plan.rung], seed=derive_seed(plan.seed, "bot"), world=world).actions
    state = world.initial()
    for done, action in enumerate(actions):
        legal = tuple(world.legal(state))
        if len(legal) > 1:
            messages = prompter.messages(state, actions[:done])
            yield Sample(plan.game, "step", plan.skill, messages, Choice(legal, label="step"), action)
        state = world.step(state, action)


def _task(plan: AttemptPlan) -> TaskSpec | None:
    config = CurriculumConfig.from_data({"skills": [plan.skill]}, where="pretraining")
    wish = Request(plan.skill, Axes(config.scales).balanced(plan.level), "pretraining")
    generate = maker_for(plan.game).generate
    for number in range(TRIES):
        seed = derive_seed(plan.seed, "task", number)
        try:
            spec = generate(seed, knobs_for(wish, seed=seed))
        except BadTask:
            continue
        if plan.skill in spec.skills:
            return spec
    return None
