"""How an attempt at a task is told to a model, step by step, in two styles.

    prompter = AttemptPrompter(spec, style="full", budget_tokens=2048, count=engine.count_tokens, advice=[…])
    messages = prompter.messages(state, actions)

A prompt depends on the task, the advice, the state and the actions so far, and on nothing else; so it can be written
again for any step of any attempt. `version` is raised whenever it may differ.
"""

from collections.abc import Callable, Sequence
from typing import Any

from agents.prompting.advice import Span, block
from agents.prompting.chat import Message
from agents.prompting.compact_forge import brief_goal
from agents.prompting.template import Style
from games.tasks.grid import LEGEND
from games.tasks.spec import TaskSpec
from games.tasks.text_words import COMMANDS

NUMBER = "1"
SHOWN_ACTIONS = 8
"""Of its own, what a model is shown."""
RADII: dict[Style, tuple[int | None, ...]] = {"full": (None, 5, 3, 2), "compact": (2, 1)}
"""How far around itself an actor is told of; the first that fits the budget is taken (None: everything)."""
USER = 1
"""The message in which the task, and any advice, stands."""

_MOVES = (
    "up, down, left, right, take (what lies here), open (a box here, or a door beside you whose key you have), "
    "drop (a gem, on a pad or the exit), wait."
)


def attempt_version(style: Style) -> str:
    """Return the version of the prompts of a style."""
    return f"attempt/{style}/{NUMBER}"


class AttemptPrompter:
    """Writes the prompts of one attempt.

    Args:
        spec: the task.
        style: of the prompts.
        budget_tokens: of a prompt; what is seen is told from a smaller radius, and advice is left out from the end,
            until the first prompt fits. The prompts after it differ little in length.
        count: tokens of a text.
        advice: what may be quoted, the best first.
    """

    def __init__(
        self,
        spec: TaskSpec,
        *,
        style: Style,
        budget_tokens: int,
        count: Callable[[str], int],
        advice: Sequence[str] = (),
    ) -> None:
        self.spec = spec
        self.style = style
        self.world = spec.make_world()
        self.version = attempt_version(style)
        first = self.world.initial()
        longest = sorted(self.world.legal(first), key=len)[-1:] * SHOWN_ACTIONS

        def room(radius: int | None) -> int:
            return budget_tokens - count(self._system()) - count(self._turn(first, longest, radius))

        radii = RADII[style]
        self.radius = next((radius for radius in radii if room(radius) >= 0), radii[-1])
        left = room(self.radius)
        self.shown = len(advice)
        while self.shown and count(block(advice[: self.shown], style=style)) > left:
            self.shown -= 1
        """How many pieces of the advice are told."""
        self.advice = block(advice[: self.shown], style=style)

    @property
    def span(self) -> Span | None:
        """Where the advice stands, the same in every prompt; None where there is none."""
        return Span(USER, 0, len(self.advice)) if self.advice else None

    def note(self) -> dict[str, Any] | None:
        """Return, JSON-compatible, what an episode keeps of its advice so that it can be taken out again."""
        span = self.span
        if span is None:
            return None
        return {"prompt": self.version, **span._asdict(), "text": self.advice}

    def messages(self, state: Any, actions: Sequence[str]) -> tuple[Message, ...]:
        """Return the prompt for the step after `actions`, which led to `state`."""
        turn = self._turn(state, actions, self.radius)
        return (Message("system", self._system()), Message("user", self.advice + turn))

    def _system(self) -> str:
        if self.style == "compact":
            return f"task {self.spec.world}"
        if self.spec.world == "grid":
            how = f"Cells are two characters: {LEGEND}\nActions: {_MOVES}"
        else:
            how = f"Commands: {COMMANDS}"
        return f"You act in a small world, one action at a time, until the task is done.\n{how}"

    def _turn(self, state: Any, actions: Sequence[str], radius: int | None) -> str:
        spec, lately = self.spec, actions[-SHOWN_ACTIONS:]
        if self.style == "compact":
            lines = [
                f"goal {brief_goal(spec.goal)}",
                f"step {len(actions)} of {spec.budget}",
                *self._seen(state, radius),
                f"did {' '.join(lately) or 'none'}",
                "ask step",
            ]
            return "\n".join(lines)
        left = spec.budget - len(actions)
        return (
            f"The task: {spec.goal.render()}\n{self.world.render(state, radius=radius).strip()}\n"
            f"Steps left: {left}. Done lately: {', '.join(lately) or 'nothing'}.\nNext action?"
        )

    def _seen(self, state: Any, radius: int | None) -> list[str]:
        seen = self.world.observe(state, radius=radius)
        rows = seen.get("rows")
        if isinstance(rows, list):
            lines = [f"hold {' '.join(map(str, seen.get('holding', ()))) or 'none'}"]
            return [*lines, *(f"see {' '.join(str(row).split())}" for row in rows)]
        return [
            f"see {line.strip()}"
            for line in self.world.render(state, radius=radius).splitlines()
            if line.strip()
        ]
