"""Exports of a record as JSON lines and as text, for one perspective.

An export for the public or for one seat holds what that reader may see and nothing else: no seed, no inputs,
no thoughts, no specs of players, no footer, and its events are numbered by themselves, so that not even the
number of hidden ones shows.
"""

import json
from collections.abc import Iterator
from typing import Any

from games.base import Event, Game
from games.errors import BadSeats
from games.referee import Input
from games.registry import load_game
from games.text import clean_name, quote
from replays.record import Footer, Header, Record
from replays.tables import Table
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, Visitor, sentence, visible, walk

FORMATS = ("jsonl", "html", "text")


def check_perspective(record: Record, perspective: Perspective) -> None:
    """Raise `BadSeats` where `perspective` is a seat that the match does not have."""
    seats = len(record.header.seats)
    if isinstance(perspective, int) and not 0 <= perspective < seats:
        raise BadSeats(f"seat: got {perspective}, this match has seats 0 to {seats - 1}")


def header_data(header: Header, perspective: Perspective) -> dict[str, Any]:
    """Return what `perspective` may know of the header."""
    data = header.to_data()
    if perspective != OMNISCIENT:
        del data["seed"]
        data["seats"] = [{"name": seat.name} for seat in header.seats]
    return data


def addressed(event: Event, perspective: Perspective) -> list[int] | None:
    """Return the audience as `perspective` may know it: who else was told a seat's private event is hidden."""
    if event.audience is None:
        return None
    return list(event.audience) if perspective == OMNISCIENT else [int(perspective)]


class JsonLines(Visitor):
    """One JSON object for each entry, with its `type`: header, input, event, footer, damage."""

    def __init__(self, record: Record, perspective: Perspective) -> None:
        check_perspective(record, perspective)
        self.lines: list[str] = []
        self._record = record
        self._perspective = perspective
        self._index = 0

    def begin(self, header: Header) -> None:
        self._add("header", perspective=self._perspective, **header_data(header, self._perspective))

    def input(self, given: Input, ply: int) -> None:
        if self._perspective == OMNISCIENT:
            self._add("input", **given._asdict())

    def event(self, event: Event, index: int) -> None:
        if visible(event, self._perspective):
            audience = addressed(event, self._perspective)
            self._add("event", index=self._index, kind=event.kind, data=event.data, audience=audience)
            self._index += 1

    def end(self, footer: Footer | None) -> None:
        damage = self._record.damage
        if self._perspective != OMNISCIENT:
            self._add("footer", events=self._index, complete=footer is not None and damage is None)
            return
        if footer is not None:
            self._add("footer", **footer.to_data())
        if damage is not None:
            self._add("damage", event=damage.event, reason=damage.reason, truncated=damage.truncated)

    def result(self) -> Iterator[str]:
        """Yield the lines, each without its line end."""
        return iter(self.lines)

    def _add(self, type_: str, **values: Any) -> None:
        line = json.dumps({"type": type_, **values}, ensure_ascii=False, allow_nan=False, default=_bytes)
        self.lines.append(line)


class Sentences(Visitor):
    """The match told in sentences, a line for each event that the perspective sees."""

    def __init__(self, record: Record, perspective: Perspective) -> None:
        check_perspective(record, perspective)
        self.lines: list[str] = []
        self._record = record
        self._perspective = perspective
        self._game: Game = load_game(record.header.game)
        self._table = Table(self._game, PUBLIC)
        self._stage = ""
        self._index = 0

    def begin(self, header: Header) -> None:
        known = self._perspective == OMNISCIENT
        facts = [self._game.title, f"rules {clean_name(header.rules)}"]
        facts += [f"seed {header.seed}"] if known else []
        facts += [f"match {clean_name(header.match)}"] if header.match else []
        self.lines.append(" · ".join(facts))
        self.lines.append(f"As seen by {who(self._perspective)}.")
        for seat, info in enumerate(header.seats):
            spec = f" ({clean_name(info.spec)})" if known and info.spec != info.name else ""
            self.lines.append(f"  seat {seat}: {clean_name(info.name)}{spec}")

    def input(self, given: Input, ply: int) -> None:
        if self._perspective == OMNISCIENT and given.thought:
            self.lines.append(f"        seat {given.seat} thinks {quote(given.thought)}")

    def event(self, event: Event, index: int) -> None:
        self._table.update(event)
        if not visible(event, self._perspective):
            return
        stage = self._table.facts.get("stage", "")
        if stage != self._stage:
            self._stage = stage
            self.lines += ["", f"{stage}"]
        self.lines.append(f"{self._index:>5}  {self._mark(event)}{sentence(self._game, event)}")
        self._index += 1

    def end(self, footer: Footer | None) -> None:
        damage = self._record.damage
        if damage is not None and footer is None and damage.truncated:
            self.lines += ["", "The record ends here: it was cut short."]
        elif damage is not None:
            self.lines += ["", f"The record is damaged from here on: {damage.reason}."]

    def result(self) -> str:
        """Return the text, with a line end after each line."""
        return "\n".join([*self.lines, ""])

    def _mark(self, event: Event) -> str:
        if event.audience is None:
            return ""
        if self._perspective != OMNISCIENT:
            return "(private) "
        if not event.audience:
            return "(record) "
        seats = ", ".join(map(str, event.audience))
        return f"(to seat{'s' if len(event.audience) > 1 else ''} {seats}) "


def who(perspective: Perspective) -> str:
    """Return a perspective in words."""
    if perspective == OMNISCIENT:
        return "the omniscient reader"
    return "the public" if perspective == PUBLIC else f"seat {perspective}"


def to_jsonl(record: Record, perspective: Perspective = OMNISCIENT) -> Iterator[str]:
    """Return the lines of a JSON Lines export. Raises `BadSeats` for a seat that is not there."""
    lines: Iterator[str] = walk(record, JsonLines(record, perspective))
    return lines


def to_text(record: Record, perspective: Perspective = OMNISCIENT, *, before_ply: int | None = None) -> str:
    """Return the match as text, up to the moment when `before_ply` was to be played if it is given.

    Raises `BadSeats` for a seat that is not there, `UnknownGame` where the game is not installed.
    """
    text: str = walk(record, Sentences(record, perspective), before_ply=before_ply)
    return text


def _bytes(value: object) -> object:
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    raise TypeError(f"{type(value).__name__} in a record")
