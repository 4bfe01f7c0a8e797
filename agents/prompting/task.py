"""Prompts for an attempt at a task, outside any match: the goal, where things stand, advice where there is some.

The full style is that of `arena evolve`; the compact one has the words of `agents.prompting.compact_forge`.
"""

from collections.abc import Sequence
from typing import Any

from agents.prompting.chat import Message
from agents.prompting.compact_forge import brief_goal, see
from agents.prompting.template import Style, one_line, without_tokens
from games.tasks.spec import TaskSpec

SHOWN_ACTIONS = 8
"""Of its own, what an actor is shown."""


def task_messages(
    spec: TaskSpec,
    state: Any,
    *,
    world: Any,
    actions: Sequence[str],
    style: Style,
    advice: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Return the chat in which the next action of an attempt is asked for.

    Args:
        spec: the task.
        state: of its world.
        world: that it is set in.
        actions: that were taken.
        style: of the prompt.
        advice: experiences, in words, the best first; the prompt is the same without them but for their lines.
    """
    told = [one_line(without_tokens(text)) for text in advice]
    if style == "compact":
        seen = world.observe(state)
        lines = [
            *(f"hint {text}" for text in told),
            f"goal {brief_goal(spec.goal)}",
            f"step {len(actions)} of {spec.budget}",
            *see(seen),
            *([] if "rows" in seen else world.render(state).splitlines()),
            "ask step",
        ]
        return Message("system", f"task {spec.world}"), Message("user", "\n".join(map(one_line, lines)))
    lately = ", ".join(actions[-SHOWN_ACTIONS:]) or "nothing"
    known = "".join(f"- {text}\n" for text in told)
    text = f"Experience from other attempts:\n{known}" if known else ""
    text += (
        f"{spec.goal.render()}\n{world.render(state)}\nSteps left: {spec.budget - len(actions)}. "
        f"Done lately: {lately}.\nNext action?"
    )
    return (Message("user", text),)
