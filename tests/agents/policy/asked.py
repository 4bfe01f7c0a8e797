"""Requests for the models of `tests.agents.policy.models`, of every kind."""

from pathlib import Path
from typing import Any

from agents.policy.base import Constraint, Message, Request
from agents.policy.local_model import TransformersSettings

RULES = "You play the game. " * 8
VOTE = Constraint(choices=("approve", "reject"))
TEAM = Constraint(choices=tuple(f"{a}, {b}" for a in range(5) for b in range(a + 1, 5)))
JSON = Constraint(schema={"type": "array", "items": {"enum": ["0", "1", "2"]}, "minItems": 2, "maxItems": 2})


def settings(model: Path, **changes: Any) -> TransformersSettings:
    return TransformersSettings(str(model), **{"threads": 1, "max_batch": 8, "prefix_cache_mb": 8} | changes)


def ask(number: int, *, rules: str = RULES, constraint: Constraint | None = None, **changes: Any) -> Request:
    text = "It is your turn. " * (number % 7) + f"seat {number}"
    return Request(
        (Message("system", rules), Message("user", text)),
        constraint=constraint,
        **{"max_tokens": 12, "seed": number} | changes,
    )


def endless(number: int, **changes: Any) -> Request:
    """Return a request that is answered at great length."""
    return ask(number, **{"max_tokens": 3000, "temperature": 50.0} | changes)


MIXED = [ask(i, constraint=(None, VOTE, TEAM, JSON)[i % 4]) for i in range(24)]
