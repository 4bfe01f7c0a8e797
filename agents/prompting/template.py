"""The contract of a template: how one game is told to a model, in one style.

A template turns each event that a seat sees into at most one line, in a whole and a brief form, and tells where
the match stands and what is asked. `agents.prompting.prompter` puts the parts together within a budget.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from agents.base import Seat
from games.base import Event
from games.referee import REFEREE_KINDS, Turn
from games.text import neutralise

Want = Literal["action", "thought", "both"]
"""What a reply holds: the bare answer; a thought and no answer yet; a thought that ends with an `Action:` line."""

Style = Literal["full", "compact"]


class Line(NamedTuple):
    """One event as it is written.

    `brief` is its form once it is old (None: it is left out then), `opens` says that a round or a night begins
    with it, the border up to which older events are summarised.
    """

    whole: str
    brief: str | None = None
    opens: bool = False


class Template(ABC):
    """How one game is told at one seat. A template holds no state but the seat: all it tells of is in the view."""

    number: ClassVar[str] = "1"
    """Raised whenever the same events may give another prompt."""
    gap: ClassVar[str] = ""
    """What stands between the history, the private part and the turn."""
    summary: ClassVar[str] = ""
    """The line that is written before events in their brief form, if any."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.me = seat.seat

    @abstractmethod
    def system(self, view: Any) -> str:
        """Return the rules and the seat's role: the same text on every turn of a match."""

    @abstractmethod
    def public(self, event: Event, view: Any) -> Line | None:
        """Return the line of an event that everyone sees; `view` has folded it in."""

    @abstractmethod
    def private(self, event: Event, view: Any) -> Line | None:
        """Return the line of an event that this seat sees and not everyone; what `system` tells needs none."""

    @abstractmethod
    def left_out(self, count: int) -> str:
        """Return the line that stands for the oldest `count` events."""

    @abstractmethod
    def heads(self) -> tuple[str, str]:
        """Return what stands before the history and before the private part, line ends included."""

    @abstractmethod
    def now(self, turn: Turn, view: Any, *, want: Want) -> list[str]:
        """Return the last lines: where the match stands, what is to be decided, and what form the reply has."""

    @abstractmethod
    def again(self, turn: Turn, view: Any) -> list[str]:
        """Return the lines that ask for the bare answer after a thought."""


def one_line(text: str) -> str:
    """Return `text` on one line, without anything that could be a tag or a token of a chat template.

    Angle and square brackets become others, so no `<|…|>`, `<…>`, `[INST]` or `[/…]` is left; control, format and
    separating characters become escapes. It is applied to every line that tells of an event.
    """
    return neutralise(text.translate(_BRACKETS))


def without_tokens(text: str) -> str:
    """Return a model's own thought, its lines kept, with nothing left that could be a tag or a token."""
    return "\n".join(one_line(line) for line in text.splitlines()).strip()


def is_referees(event: Event) -> bool:
    """Whether an event tells what went wrong at a seat, and not what happened in the match."""
    return event.kind in REFEREE_KINDS


def listed(items: Sequence[object], *, last: str = "and") -> str:
    """Return items as words: `1, 2 and 3`."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} {words[-1]}"


_BRACKETS = str.maketrans(
    {"<": "‹", ">": "›", "[": "(", "]": ")", "＜": "‹", "＞": "›", "［": "(", "］": ")"}
)
