"""Trajectories made by hand, for tests that need no matches."""

import math
import random
from collections.abc import Sequence
from typing import Any

from agents.policy.base import Constraint
from agents.training.trajectories import Step, Trajectory

CHOICES = Constraint(choices=("approve", "reject", "approve it"))


def step(prompt: Sequence[int] = (5, 6, 7), tokens: Sequence[int] = (8, 9), **changes: Any) -> Step:
    """Return a step of free text, drawn with probability one half a token."""
    given = {"ply": 0, "attempt": 0, "kind": "action", "logprobs": (math.log(0.5),) * len(tokens)} | changes
    return Step(prompt_ids=tuple(prompt), token_ids=tuple(tokens), **given)


def trajectory(*steps: Step, **changes: Any) -> Trajectory:
    """Return a trajectory of a game of Kuhn poker that never was."""
    given: dict[str, Any] = {
        "match": "m",
        "game": "kuhn",
        "options": "o",
        "seats": 2,
        "deal": "d",
        "seat": 0,
        "role": "first",
        "team": "first",
        "player": "learner",
        "adapter": "base",
        "outcome": 1.0,
    }
    return Trajectory(**{**given, "steps": steps, **changes})


def batch(learner: Any, count: int = 8, *, seed: int = 0) -> tuple[list[Trajectory], list[list[float]]]:
    """Return trajectories with free text and choices of several lengths, and advantages, for a learner's model."""
    rng = random.Random(seed)
    spelled = [tokens for _, tokens in learner.spell(CHOICES.choices)]
    made, advantages = [], []
    for number in range(count):
        steps = []
        for ply in range(rng.randint(1, 3)):
            prompt = [rng.randrange(20, 60) for _ in range(rng.randint(2, 6))]
            if rng.random() < 0.5:
                tokens: Sequence[int] = [rng.randrange(20, 60) for _ in range(rng.randint(1, 5))]
                steps.append(step(prompt, tokens, ply=ply))
            else:
                tokens = rng.choice(spelled)
                steps.append(step(prompt, tokens, ply=ply, constraint=CHOICES))
        made.append(trajectory(*steps, match=f"m{number}"))
        advantages.append([rng.gauss(0, 1) for _ in steps])
    return made, advantages
