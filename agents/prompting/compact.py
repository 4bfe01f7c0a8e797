"""The compact style, for a small model with few words: one terse line an event, no rules, no free text.

What was said is told as the claims in it, so the vocabulary stays closed and nothing can be forged. Every line
begins with a word that says what it is; seats and counts are numbers that stand alone. Unlike elsewhere, who the
seat is stands at the end: the prompts of all seats of a match begin alike, so what is computed of the public
history is shared between them.
"""

from typing import Any, ClassVar

from agents.prompting.template import Line, Template, Want, is_referees
from games.base import Event
from games.referee import Turn
from games.spaces import ActionSpace, Choice, Subset


class CompactTemplate(Template):
    """Any game, in its own sentences, without its rules; our games have templates with few words."""

    number: ClassVar[str] = "1"
    implied: ClassVar[frozenset[str]] = frozenset()
    """Labels of decisions whose options are always the same, so that they are not written."""

    def system(self, view: Any) -> str:
        return f"{self.seat.game.name} seats {self.seat.seats}"

    def left_out(self, count: int) -> str:
        return f"old {' '.join(str(count))}"  # digit by digit, so that the vocabulary stays small

    def heads(self) -> tuple[str, str]:
        return "", ""

    def public(self, event: Event, view: Any) -> Line | None:
        told = self.seat.game.narrate(event)
        return None if told is None else Line(told, None if "text" in event.data else told)

    def private(self, event: Event, view: Any) -> Line | None:
        return None if is_referees(event) else self.public(event, view)

    def now(self, turn: Turn, view: Any, *, want: Want) -> list[str]:
        lines = self.state(turn, view)
        if turn.attempt:
            lines.append(f"again {turn.failure or 'illegal'}")
        space = turn.space
        if isinstance(space, Choice | Subset) and space.label not in self.implied:
            lines.append(f"options {' '.join(space.options)}")
        return [*lines, f"ask {_question(space)}{_WANTED[want]}"]

    def again(self, turn: Turn, view: Any) -> list[str]:
        return [f"ask {_question(turn.space)}"]

    def state(self, turn: Turn, view: Any) -> list[str]:
        """Return where the match stands and what this seat knows."""
        return [f"you {self.me}"]


_WANTED: dict[Want, str] = {"action": "", "thought": " think", "both": " think Action:"}


def _question(space: ActionSpace) -> str:
    return f"{space.label} {space.size}" if isinstance(space, Subset) else space.label


def words(items: Any) -> str:
    """Return items with spaces between, `none` where there are none."""
    return " ".join(map(str, items)) or "none"
