"""Readings of a record: one walk, many visitors; and who may see what.

A perspective is `"public"`, a seat's number, or `"all"`, which also sees what is addressed to the record
alone: the draws of chance, and the thoughts that came with inputs.
"""

from collections import Counter
from typing import Any, Literal

from games.base import Event, Game
from games.referee import Input
from games.text import quote
from replays.record import Footer, Header, Record

PUBLIC: Literal["public"] = "public"
OMNISCIENT: Literal["all"] = "all"
Perspective = int | Literal["public", "all"]


def visible(event: Event, perspective: Perspective) -> bool:
    """Whether `perspective` may see `event`."""
    if perspective == OMNISCIENT:
        return True
    return event.visible_to(None if perspective == PUBLIC else perspective)


class Visitor:
    """Base of a reading; each method does nothing until it is overridden."""

    def begin(self, header: Header) -> None:
        """Called first."""

    def input(self, given: Input, ply: int) -> None:
        """Called for each input; `ply` is the ply it was for.

        For a forfeit, which is for no ply, and an input that came too late it is that of the input before.
        """

    def event(self, event: Event, index: int) -> None:
        """Called for each event, after the input that caused it; `index` counts events from 0."""

    def end(self, footer: Footer | None) -> None:
        """Called last; `footer` is None for a record that was cut short."""

    def result(self) -> Any:
        """Return what the reading came to."""
        return None


def walk(record: Record, visitor: Visitor, *, before_ply: int | None = None) -> Any:
    """Lead `visitor` through the record and return its result.

    Args:
        record: whole, or up to where it was cut short.
        visitor: is called in the order of the record.
        before_ply: stop at the first input for this ply, as if the record had been cut short there.
    """
    entries = record.entries
    ply = index = 0
    visitor.begin(record.header)
    for at, entry in enumerate(entries):
        if isinstance(entry, Event):
            visitor.event(entry, index)
            index += 1
            continue
        after = entries[at + 1] if at + 1 < len(entries) else None
        if entry.failure != "forfeit" and (after is None or after[0] != "late"):
            ply = entry.ply
        if before_ply is not None and ply >= before_ply:
            visitor.end(None)
            return visitor.result()
        visitor.input(entry, ply)
    visitor.end(record.footer)
    return visitor.result()


class Counts(Visitor):
    """Counts a record: its events by kind, its inputs by what became of them, and its plies."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.inputs = 0
        self.failures: Counter[str] = Counter()
        self.plies = 0

    def input(self, given: Input, ply: int) -> None:
        self.inputs += 1
        self.plies = max(self.plies, ply + 1)
        if given.failure is not None:
            self.failures[given.failure] += 1

    def event(self, event: Event, index: int) -> None:
        self.events[event.kind] += 1

    def result(self) -> dict[str, Any]:
        """Return `{"events": {kind: n}, "inputs": n, "failures": {failure: n}, "plies": n}`."""
        return {
            "events": dict(sorted(self.events.items())),
            "inputs": self.inputs,
            "failures": dict(sorted(self.failures.items())),
            "plies": self.plies,
        }


def sentence(game: Game, event: Event) -> str:
    """Return `event` as one line for a reader who may see it; total, also over events that no rules emitted."""
    data = event.data
    try:
        match event.kind:
            case "chance":
                return f"Chance, {data['of']}: {quote(str(data['value']))[1:-1]}."
            case "rejected":
                return (
                    f"The answer of seat {int(data['seat'])} is {quote(data['failure'])[1:-1]} and asked again: "
                    f"{quote(data['reason'])}"
                )
            case "forced":
                why = quote(data["failure"])[1:-1]
                return f"Seat {int(data['seat'])} gave no legal answer ({why}); its default is played."
            case "late":
                return f"An answer of seat {int(data['seat'])} came too late and changes nothing."
            case "forfeit":
                return f"Seat {int(data['seat'])} has forfeited."
        told = game.narrate(event)
    except Exception:
        # A record that does not verify may hold events that its game cannot read; they are shown all the same.
        told = None
    return told if told is not None else f"({quote(event.kind)[1:-1]}) {quote(str(data)[:200])[1:-1]}"
