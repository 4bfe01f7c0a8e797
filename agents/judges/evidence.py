"""Evidence for a model or a person: what an attempt did, as data that hold no word of whoever made the attempt.

The actions are replayed; only those that the world knows are named. Steps are told in stretches that end where a
fact changes, so that a long walk is one line.
"""

from itertools import groupby
from typing import Any

from agents.judges.base import QUESTIONS, Case
from games.tasks.check import Replay, Verdict, replay
from games.tasks.goals import Facts
from games.tasks.world import World

MAX_STRETCHES = 24
MOVING = "at"
"""The fact that changes with nearly every step; it ends a stretch only where it is a place of the goal."""


def evidence(case: Case, verdict: Verdict, *, world: World[Any] | None = None) -> dict[str, Any]:
    """Return the evidence of a case as JSON-compatible data.

    Args:
        case: what is asked.
        verdict: what the rules found of it.
        world: `case.spec.make_world()`, if it is at hand.
    """
    spec = case.spec
    world = spec.make_world() if world is None else world
    played = replay(spec, case.attempt.actions, world=world)
    part = verdict.part
    return {
        "task": spec.text,
        "steps_allowed": spec.budget,
        "start": _facts(world.facts(world.initial())),
        "steps": _stretches(case, world, played),
        "ended": {
            "how": verdict.kind,
            "step": verdict.step,
            "open": None if part is None else spec.goal.part(part).words(),
        },
        "question": QUESTIONS[case.question],
    }


def _stretches(case: Case, world: World[Any], played: Replay) -> list[dict[str, Any]]:
    named = {(MOVING, *fact[1:]) if fact[0] == "visited" else fact for fact in case.spec.goal.facts()}
    told: list[dict[str, Any]] = []
    since, before = 0, world.facts(played.states[0])
    last = len(played.states) - 1
    for step in range(1, last + 1):
        after = world.facts(played.states[step])
        news = [fact for fact in after ^ before if fact[0] != MOVING or fact in named]
        before = after
        if news or step == last:
            told.append(
                {
                    "to_step": step,
                    "did": _runs([_name(world, action) for action in case.attempt.actions[since:step]]),
                    "now": _facts(frozenset(fact for fact in news if fact in after)),
                    "no_more": _facts(frozenset(fact for fact in news if fact not in after)),
                }
            )
            since = step
    if len(told) > MAX_STRETCHES:
        half = MAX_STRETCHES // 2
        told = [*told[:half], {"left_out": len(told) - 2 * half}, *told[-half:]]
    return told


def _runs(actions: list[str]) -> list[str]:
    runs = [(action, len(list(group))) for action, group in groupby(actions)]
    return [action if count == 1 else f"{action} x{count}" for action, count in runs]


def _name(world: World[Any], action: str) -> str:
    return "(no action of this world)" if world.act_kind(action) is None else action


def _facts(facts: Facts) -> list[str]:
    return sorted(" ".join(fact) for fact in facts)
