"""A record as one self-contained page that plays the match back.

The page knows no game. What each event says, who may see it and what it changes on the table is worked out
here and embedded as data; the page's script only shows it, as text and never as markup.
"""

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

from games.base import Event, Game
from games.referee import Input
from games.registry import load_game
from games.text import clean_name, neutralise, quote
from replays.export import addressed, check_perspective
from replays.record import Footer, Header, Record
from replays.tables import Table
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, Visitor, sentence, visible, walk

VOTES = frozenset({"vote", "votes", "showdown"})
"""Kinds of event that are marked on the scrubber for what they are; others are for what they change."""


class Page(Visitor):
    """Collects what the page shows: items in order, and for each perspective what they change."""

    def __init__(self, record: Record, perspective: Perspective) -> None:
        check_perspective(record, perspective)
        self._record = record
        self._perspective = perspective
        self._game: Game = load_game(record.header.game)
        seats = range(len(record.header.seats))
        self._public = Table(self._game, PUBLIC)
        readers: list[Perspective] = [PUBLIC]
        if perspective == OMNISCIENT:
            readers = [OMNISCIENT, PUBLIC, *seats]
        elif perspective != PUBLIC:
            readers = [perspective, PUBLIC]
        self._tables = [self._public if reader == PUBLIC else Table(self._game, reader) for reader in readers]
        self._items: list[dict[str, Any]] = []
        self._changes: dict[str, list[list[Any]]] = {str(reader): [] for reader in readers}
        self._data: dict[str, Any] = {}
        self._events = 0

    def begin(self, header: Header) -> None:
        everything = self._perspective == OMNISCIENT
        self._data = {
            "title": self._game.title,
            "match": clean_name(header.match),
            "rules": clean_name(header.rules),
            "names": [clean_name(info.name) for info in header.seats],
            "specs": [clean_name(info.spec) for info in header.seats] if everything else [],
            "seed": str(header.seed) if everything else None,
            "views": [table.perspective for table in self._tables],
        }

    def input(self, given: Input, ply: int) -> None:
        if self._perspective == OMNISCIENT and given.thought:
            words = "\n".join(map(neutralise, given.thought.splitlines()))
            item = {"kind": "thought", "text": f"Seat {given.seat} thinks", "words": words}
            self._items.append({**item, "to": [], "seat": given.seat})

    def event(self, event: Event, index: int) -> None:
        if not visible(event, self._perspective):
            return
        at = len(self._items)
        before = dict(self._public.facts)
        for table in self._tables:
            changed = table.update(event)
            if changed:
                self._changes[str(table.perspective)].append([at, changed])
        item: dict[str, Any] = {"n": self._events, "kind": event.kind}
        self._events += 1
        item["text"], item["words"] = _split(sentence(self._game, event), event)
        item["to"] = addressed(event, self._perspective)
        seat = event.data.get("seat")
        if type(seat) is int:
            item["seat"] = seat
        key = self._key(event, before)
        if key:
            item["key"] = key
        self._items.append(item)

    def end(self, footer: Footer | None) -> None:
        damage = self._record.damage
        self._data["note"] = (
            None
            if damage is None
            else "The record ends here: it was cut short."
            if damage.truncated
            else "The record is damaged from here on."
        )

    def result(self) -> dict[str, Any]:
        """Return the page's data."""
        return {**self._data, "items": self._items, "changes": self._changes}

    def _key(self, event: Event, before: dict[str, Any]) -> str:
        after = self._public.facts
        if event.audience is not None:
            return ""
        if after.get("returns") != before.get("returns"):
            return "end"
        if after.get("out", []) != before.get("out", []):
            return "death"
        if event.kind in VOTES:
            return "vote"
        return "score" if "score" in before and after.get("score") != before["score"] else ""


def to_html(record: Record, perspective: Perspective = OMNISCIENT) -> str:
    """Return the page. It asks for nothing outside itself, and holds only what `perspective` may see.

    Raises `BadSeats` for a seat that is not there, `UnknownGame` where the game is not installed.
    """
    data = walk(record, Page(record, perspective))
    style, script = _page("page.css"), _page("page.js")
    title = " · ".join(filter(None, [data["title"], data["match"]]))
    parts = {
        "title": html.escape(title),
        "style-hash": _hash(style),
        "script-hash": _hash(script),
        "style": style,
        "script": script,
        "data": _embed(data),
    }
    # One pass, so that nothing embedded is searched for further placeholders.
    first, *rest = _page("page.html").split("{{")
    out = [first]
    for piece in rest:
        name, _, after = piece.partition("}}")
        out += [parts[name], after]
    return "".join(out)


def _split(told: str, event: Event) -> tuple[str, str | None]:
    """Part a sentence that ends in speech into what leads up to it and the words."""
    text = event.data.get("text")
    if isinstance(text, str) and text and told.endswith(quoted := quote(text)):
        return told.removesuffix(quoted).rstrip(" :"), neutralise(text)
    return told, None


def _embed(data: Any) -> str:
    """Return `data` as JSON that no HTML parser can take for the end of the script that holds it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _page(name: str) -> str:
    return files("replays").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
