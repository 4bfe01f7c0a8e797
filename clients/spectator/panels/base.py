"""What a game's panel gives: seats, board, ballots. Panels read the game's view and know no rules."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from clients.spectator.drawing import Line
from games.base import Event
from replays.tables import read_table


class RoleLook(NamedTuple):
    """How a role looks: one glyph and a style."""

    glyph: str
    style: str


UNKNOWN_ROLE = RoleLook("?", "dim")


@dataclass(frozen=True, slots=True)
class SeatLook:
    """What is drawn at a seat: its role where it is known, whether it is out, and marks after its name."""

    role: str | None = None
    out: bool = False
    marks: Line = field(default_factory=list)


class GamePanel(ABC):
    """Draws one game. Instances hold nothing."""

    roles: ClassVar[Mapping[str, RoleLook]] = {}
    legend: ClassVar[Sequence[tuple[str, str, str]]] = ()
    """Marks explained on the help screen: glyph, style, meaning."""
    speech: ClassVar[Mapping[str, str]] = {"speech": ""}
    """Kinds of event with a `seat` and a `text`, with the manner in which it is said."""
    ballots: ClassVar[frozenset[str]] = frozenset()
    """Kinds of event that `ballot` draws."""
    closing: ClassVar[frozenset[str]] = frozenset()
    """Kinds of event that end a phase and belong to it: the next one's heading stands below them."""
    moods: ClassVar[Mapping[str, str]] = {}
    """Styles of sentences, by kind of event."""
    ticks: ClassVar[Mapping[str, tuple[str, str]]] = {"end": ("◆", "accent")}
    """Key events for the scrubber: glyph and style, by kind of event."""

    def stage(self, view: Any) -> str:
        """Return the phase that the view stands in, empty where there is none."""
        stage: str = read_table(view).get("stage", "")
        return stage

    @abstractmethod
    def seats(self, view: Any, seats: int) -> list[SeatLook]:
        """Return how each seat looks."""

    @abstractmethod
    def board(self, view: Any, *, width: int) -> list[Line]:
        """Return the board, in at most `width` cells."""

    def brief(self, view: Any, *, width: int) -> list[Line]:
        """Return the board in few lines, for a small terminal."""
        return self.board(view, width=width)[:3]

    def ballot(self, event: Event, *, width: int) -> list[Line]:
        """Return the votes of an event whose kind is in `ballots`."""
        return []

    def mood(self, event: Event) -> str:
        """Return the style of the event's sentence."""
        return self.moods.get(event.kind, "text")

    def tick(self, event: Event) -> tuple[str, str] | None:
        """Return glyph and style of the event's tick on the scrubber, None for none."""
        return self.ticks.get(event.kind)

    def role(self, role: str | None) -> RoleLook:
        """Return how a role looks."""
        return UNKNOWN_ROLE if role is None else self.roles.get(role, RoleLook("•", "text"))


def seat_span(seat: int, *, bold: bool = True) -> tuple[str, str]:
    """Return a seat's number in its own colour."""
    return str(seat), f"seat{seat}{' bold' if bold else ''}"


def seat_list(seats: Sequence[int]) -> Line:
    """Return seats' numbers in their colours."""
    line: Line = []
    for seat in seats:
        line += [(" ", "")] if line else []
        line.append(seat_span(seat))
    return line or [("nobody", "dim")]
