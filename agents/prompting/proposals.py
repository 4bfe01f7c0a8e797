"""How a model is asked for a task: by a choice among offered edits of a parent, or for a task as JSON."""

import json
from collections.abc import Mapping, Sequence

from agents.prompting.chat import Message
from agents.prompting.template import Style, listed, one_line
from games.tasks.cases import seed_case
from games.tasks.spec import DIMENSIONS, TaskSpec

NUMBER = "1"
TEXT_EXAMPLE = {
    "version": 1,
    "world": "text",
    "layout": {
        "rooms": ["hall", "attic"],
        "start": "hall",
        "ways": [{"from": "hall", "go": "up", "to": "attic", "door": "oak door", "key": "iron key"}],
        "things": [
            {"kind": "key", "name": "iron key", "in": "hall"},
            {"kind": "item", "name": "lamp", "in": "attic"},
        ],
    },
    "goal": {"has": "lamp"},
    "budget": 6,
}
_GOALS = (
    'Goals: {"at": PLACE}, {"has": THING}, {"opened": THING}, {"delivered": [THING, PLACE]}, {"visited": PLACE}; '
    'joined by {"and": [...]}, {"then": [...]}, {"before": [A, B]}; {"never": A} inside an "and".'
)


def version(mode: str, style: Style) -> str:
    """Return what the prompts are recorded as; raised whenever the same request may give another prompt."""
    return f"propose/{mode}/{style}/{NUMBER}"


def offer_messages(
    *,
    style: Style,
    skill: str,
    wanted: Sequence[float],
    parent: TaskSpec,
    offers: Mapping[str, TaskSpec],
    refused: str,
) -> tuple[Message, ...]:
    """Return the prompt for a choice among edits.

    Args:
        style: of the prompt.
        skill: that the task should train.
        wanted: its difficulty, in the order of `DIMENSIONS`.
        parent: the task that is varied.
        offers: its edits, by name; the answer is one of the names.
        refused: why the last choice was not taken; empty where there was none.
    """
    if style == "compact":
        lines = [
            f"want {skill} {_numbers(wanted)}",
            f"parent {_numbers(_difficulty(parent))}",
            *(f"{name} {_numbers(_difficulty(child))}" for name, child in offers.items()),
            *([f"again {one_line(refused)}"] if refused else []),
            f"options {' '.join(offers)}",
            "ask set",
        ]
        return (Message("system", f"set {parent.world}"), Message("user", "\n".join(lines)))
    lines = [
        _asked(skill, wanted),
        f"The parent task: {parent.text} It has {_dimensions(_difficulty(parent))}.",
        "These edits of it are offered, each proven solvable:",
        *(
            f"{name}: {_dimensions(_difficulty(child))}, skills {listed(child.skills)}"
            for name, child in offers.items()
        ),
        *([f"Your last choice was not taken: {one_line(refused)}"] if refused else []),
        f"Reply with nothing but one of these: {', '.join(offers)}",
    ]
    return (Message("system", _ROLE), Message("user", "\n".join(lines)))


def json_messages(
    *, world: str, skill: str, wanted: Sequence[float], parent: TaskSpec | None, refused: str
) -> tuple[Message, ...]:
    """Return the prompt for a task as JSON; `parent` is shown to be varied, an example where there is none."""
    if parent is None:
        example = TEXT_EXAMPLE if world == "text" else _example(seed_case())
        shown = f"An example of the form, which is not to be repeated:\n{json.dumps(example)}"
    else:
        shown = (
            f"Vary this task, which has {_dimensions(_difficulty(parent))}:\n{json.dumps(_example(parent))}"
        )
    lines = [
        _asked(skill, wanted),
        f"A task is a {world} world with a goal and a step budget, as JSON. It must be solvable. {_GOALS}",
        shown,
        *([f"Your last task was not taken: {one_line(refused)}"] if refused else []),
        "Reply with nothing but the JSON of a new task.",
    ]
    return (Message("system", _ROLE), Message("user", "\n".join(lines)))


_ROLE = "You set tasks for an agent that learns. A good task is one that it solves about half the time."


def _asked(skill: str, wanted: Sequence[float]) -> str:
    return f"Set a task that takes the skill {skill!r}, with about {_dimensions(wanted)}."


def _example(spec: TaskSpec) -> dict[str, object]:
    data = spec.to_data()
    return {name: data[name] for name in ("version", "world", "layout", "goal", "budget")}


def _difficulty(spec: TaskSpec) -> list[float]:
    return [value for _, value in spec.difficulty]


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.1f}".removesuffix(".0") for value in values)


def _dimensions(values: Sequence[float]) -> str:
    return listed(
        [
            f"{name.replace('_', ' ')} {value:.1f}".removesuffix(".0")
            for name, value in zip(DIMENSIONS, values, strict=True)
        ]
    )
