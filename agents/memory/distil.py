"""From attempts to lessons, by rule: what worked, where it went wrong, and what made the difference.

A lesson names kinds of things ("a key"), not the things of its task ("the red key"), so that it applies elsewhere.
A model may write lessons as well; these need none.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agents.memory.records import Episode, Lesson
from games.tasks.check import Replay, replay
from games.tasks.goals import Fact, Never, Part, Predicate, Then
from games.tasks.spec import TaskSpec, canonical_json

MAX_MILESTONES = 8

_SAYS = {
    "at": "be at {}",
    "visited": "pass {}",
    "has": "take {}",
    "opened": "open {}",
    "delivered": "put {} at {}",
}


class _Told(NamedTuple):
    """An episode with its replay and its milestones: what became true at which step, in words."""

    episode: Episode
    played: Replay
    milestones: tuple[tuple[int, str], ...]


def situation(spec: TaskSpec) -> str:
    """Return what kind of task this is, in words: lessons are found by comparing this with their "when to use"."""
    parts = [_general(part) for _, part in spec.goal.walk() if isinstance(part, Predicate | Never | Then)]
    ways = ", ".join(spec.skills)
    return f"A {spec.world} task{f' that takes {ways}' if ways else ''}: {', '.join(dict.fromkeys(parts))}."


def distil(spec: TaskSpec, episodes: Iterable[Episode], *, skill: str = "") -> list[Lesson]:
    """Return lessons from some attempts at one task: the shortest success, each way of failing, the contrast.

    Args:
        spec: the task.
        episodes: attempts at it, in any order; those at another task are left out.
        skill: the skill of the lessons; the task's first tag where it is empty.

    The same attempts give the same lessons, under the same ids.
    """
    told = [_tell(spec, episode) for episode in episodes if episode.task == spec.hash]
    told.sort(key=lambda one: (one.episode.steps, one.episode.id))
    wins = [one for one in told if one.episode.success]
    losses = [one for one in told if not one.episode.success]
    skill = skill or next(iter(spec.skills), "any")
    found = []
    if wins and wins[0].milestones:
        best = wins[0]
        steps = ", then ".join(words for _, words in best.milestones[-MAX_MILESTONES:])
        text = f"This order worked in {best.episode.steps} steps: {steps}."
        found.append(_lesson(spec, text, kind="success", skill=skill, sources=[best]))
    for reason, group in _by_reason(spec, losses).items():
        found.append(_lesson(spec, reason, kind="failure", skill=skill, sources=group))
    if wins and losses:
        loss = max(losses, key=lambda one: (one.episode.progress, one.episode.id))
        text = _contrast(wins[0], loss)
        if text:
            found.append(_lesson(spec, text, kind="contrast", skill=skill, sources=[wins[0], loss]))
    return found


def _tell(spec: TaskSpec, episode: Episode) -> _Told:
    world = spec.make_world()
    played = replay(spec, episode.actions, world=world)
    wanted = spec.goal.facts() | {("at", *fact[1:]) for fact in spec.goal.facts() if fact[0] == "visited"}
    milestones: list[tuple[int, str]] = []
    before = world.facts(played.states[0])
    for step, state in enumerate(played.states[1:], start=1):
        facts = world.facts(state)
        new = sorted(fact for fact in facts - before if fact[0] != "at" or fact in wanted)
        milestones += [(step, _in_general(fact)) for fact in new]
        before = facts
    return _Told(episode, played, tuple(milestones))


def _by_reason(spec: TaskSpec, losses: Sequence[_Told]) -> dict[str, list[_Told]]:
    found: dict[str, list[_Told]] = {}
    for one in losses:
        kind, part = one.played.kind, one.played.part
        what = "the goal" if part is None else f"“{_general(spec.goal.part(part))}”"
        words = {
            "broken": f"{what} was broken at the attempt's step {one.played.step}: mind it from the first step on.",
            "lost": "The attempt ended in a loss: look where what moves will be after the next step, before taking it.",
            "illegal": "An action that could not be done ended the attempt: do only what is offered.",
            "over_budget": f"The steps ran out while {what} was open: go for it earlier and by a shorter way.",
            "unmet": f"The attempt ended while {what} was open: it must be done, and nothing else counts before it.",
            "after_end": "The task was solved, yet more was done: stop at once when the goal holds.",
        }.get(kind, f"The attempt was refused ({one.episode.verdict}): {what} was not reached by the rules.")
        found.setdefault(words[0].upper() + words[1:], []).append(one)
    return found


def _contrast(win: _Told, loss: _Told) -> str:
    """Say what the success did that the failure did not, or did in another order; empty where it was neither."""
    won, lost = ([words for _, words in one.milestones] for one in (win, loss))
    missing = [words for words in dict.fromkeys(won) if words not in lost]
    if missing:
        after = won[: won.index(missing[0])]
        since = f"after “{after[-1]}” " if after else ""
        return f"The success went on {since}to {missing[0]}; the failure never did."
    split = next((i for i, (a, b) in enumerate(zip(won, lost, strict=False)) if a != b), None)
    if split is not None:
        return f"First {won[split]}, not {lost[split]}: that order made the difference."
    if win.episode.steps < loss.episode.steps:
        return f"The same was done in {win.episode.steps} steps by the success and took the failure longer: waste none."
    return ""


def _lesson(spec: TaskSpec, text: str, *, kind: str, skill: str, sources: Sequence[_Told]) -> Lesson:
    when = situation(spec)
    key = hashlib.sha256(canonical_json([text, when, skill, kind]).encode("ascii")).hexdigest()[:32]
    newest = max((one.episode for one in sources), key=lambda episode: (episode.generation, episode.time))
    return Lesson(
        id=key,
        text=text,
        when=when,
        skill=skill,
        kind=kind,
        sources=tuple(one.episode.id for one in sources),
        generation=newest.generation,
        time=newest.time,
    )


def _general(part: Part) -> str:
    if isinstance(part, Predicate):
        return _in_general(part.fact)
    if isinstance(part, Never):
        return "never " + " and ".join(_general(inner) for inner in part.parts())
    if isinstance(part, Then):
        return " then ".join(_general(inner) for inner in part.parts())
    return " and ".join(_general(inner) for inner in part.parts())


def _in_general(fact: Fact) -> str:
    kinds = [name.rpartition(" ")[2] for name in fact[1:]]
    return _SAYS[fact[0]].format(*(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" for kind in kinds))
