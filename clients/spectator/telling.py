"""How a step of the match is told in the feed: speech, ballots, sentences, thoughts.

Whatever a player wrote goes through `games.text` and is drawn as text, so it can neither colour the screen nor
imitate another line.
"""

from collections.abc import Collection, Sequence
from typing import Any

from clients.spectator.drawing import Line, crop, fit, width_of, wrap
from clients.spectator.panels.base import GamePanel, seat_list
from clients.spectator.timeline import Step
from games.base import Event, Game
from games.referee import REFEREE_KINDS
from games.text import clean_name, quote
from replays.visitors import OMNISCIENT, Perspective, sentence

SPEECH, VOTES, PRIVATE, THOUGHTS, REFEREE, TABLE = CATEGORIES = (
    "speech",
    "votes",
    "private",
    "thoughts",
    "referee",
    "table",
)
"""What can be filtered. `private` is whatever not all may see; `table` is the rest of the game's course."""

CATEGORY_TITLES = {
    SPEECH: "What is said",
    VOTES: "Votes",
    PRIVATE: "What only some may see",
    THOUGHTS: "Thoughts",
    REFEREE: "Retries and forced moves",
    TABLE: "The course of the game",
}

SIDE_BY_SIDE = 72
"""Cells from which on a thought stands beside its speech."""
MAX_NAME_CELLS = 12


class Teller:
    """Tells steps of one match to one perspective.

    Args:
        game: whose sentences are used.
        panel: draws the ballots.
        names: of the players by seat, as they gave them.
        perspective: to whom it is told.
    """

    def __init__(
        self, game: Game, panel: GamePanel, *, names: Sequence[str], perspective: Perspective
    ) -> None:
        self.game = game
        self.panel = panel
        self.names = [clean_name(name) for name in names]
        self.perspective = perspective

    def category(self, step: Step) -> str:
        """Return which of the categories a step's own line belongs to."""
        kind = step.event.kind
        if kind in REFEREE_KINDS:
            return REFEREE
        if kind in self.panel.speech:
            return SPEECH
        if kind in self.panel.ballots:
            return VOTES
        return TABLE if step.event.audience is None else PRIVATE

    def shows(self, step: Step, categories: Collection[str]) -> bool:
        """Whether the step's own line is shown where only `categories` are."""
        if step.event.audience is not None and PRIVATE not in categories:
            return False
        return self.category(step) in categories

    def text(self, step: Step) -> str:
        """Return what a search looks through: the sentence, the speaker's name, and the thoughts."""
        told = sentence(self.game, step.event)
        speech = self._speech(step.event)
        name = "" if speech is None else f"{self._name(speech[0])} "
        return " ".join([name + told, *(quote(text) for _, text in step.thoughts)])

    def lines(self, step: Step, *, width: int, categories: Collection[str]) -> list[Line]:
        """Return a step as lines of at most `width` cells; none where its categories are not shown."""
        return [crop(line, width) for line in self._lines(step, width, categories)]

    def _lines(self, step: Step, width: int, categories: Collection[str]) -> list[Line]:
        event = step.event
        thoughts = step.thoughts if THOUGHTS in categories else ()
        if not self.shows(step, categories):
            return self._thoughts(thoughts, width)
        speech = self._speech(event)
        if speech is not None:
            seat, text, manner = speech
            own = [thought for at, thought in thoughts if at == seat]
            others = [(at, thought) for at, thought in thoughts if at != seat]
            return self._thoughts(others, width) + self._said(event, seat, text, manner, own, width)
        lines = self._thoughts(thoughts, width)
        if event.kind in self.panel.ballots:
            try:
                return lines + [[("  ", ""), *line] for line in self.panel.ballot(event, width=width - 2)]
            except Exception:
                # Votes that the game did not write, in a record that does not verify, are told as any event.
                return lines + self._told(event, width)
        return lines + self._told(event, width)

    def _name(self, seat: int) -> str:
        return self.names[seat] if 0 <= seat < len(self.names) else "?"

    def _speech(self, event: Event) -> tuple[int, str, str] | None:
        manner = self.panel.speech.get(event.kind)
        seat, text = event.data.get("seat"), event.data.get("text")
        if manner is None or not isinstance(seat, int) or not isinstance(text, str):
            return None
        return seat, text, manner

    def _name_cells(self, width: int) -> int:
        longest = max((len(name) for name in self.names), default=1)
        return min(longest, MAX_NAME_CELLS if width >= 56 else 7)

    def _said(
        self, event: Event, seat: int, text: str, manner: str, thoughts: list[str], width: int
    ) -> list[Line]:
        cells = self._name_cells(width)
        indent = 6 + cells
        room = max(width - indent, 8)
        beside = bool(thoughts) and width >= SIDE_BY_SIDE
        if beside:
            room = room * 11 // 20
        color = f"seat{seat}"
        private = event.audience is not None
        body = "private" if private else "text"
        rows: list[Line] = [[("says nothing", "dim italic")]]
        if text:
            label = f"{manner}: " if manner else ""
            rows = [[(words, body)] for words in wrap(label + quote(text), room)]
            first = rows[0][0][0]
            if label and len(first) >= len(label):
                rows[0] = [(label, f"{body} dim italic"), (first[len(label) :], body)]
        lines: list[Line] = []
        for index, row in enumerate(rows):
            head: Line = [(" " * (indent - 2), "")]
            if not index:
                head = [(f"{seat:>2} ", f"{color} bold"), (f"{fit(self._name(seat), cells)} ", color)]
            lines.append([*head, ("▌ ", color), *row])
        if not thoughts:
            return lines
        if not beside:
            return lines + self._aside(
                [(seat, thought) for thought in thoughts], indent - 2, width, named=False
            )
        notes = [note for thought in thoughts for note in wrap(quote(thought), width - indent - room - 4)]
        for index, note in enumerate(notes):
            if index == len(lines):
                lines.append([(" " * (indent - 2), ""), ("▌ ", color)])
            pad = " " * max(indent + room + 1 - width_of(lines[index]), 1)
            lines[index] += [(f"{pad}┊ ", "dim"), (note, "thought italic")]
        return lines

    def _thoughts(self, thoughts: Sequence[tuple[int, str]], width: int) -> list[Line]:
        return self._aside(thoughts, 2, width, named=True)

    def _aside(
        self, thoughts: Sequence[tuple[int, str]], indent: int, width: int, *, named: bool
    ) -> list[Line]:
        lines: list[Line] = []
        for seat, thought in thoughts:
            head: Line = [("┊ ", "dim")]
            label = f"{seat} thinks " if named else "thinks "
            first: Line = [(label, "thought")]
            if named:
                first = [(str(seat), f"seat{seat} bold"), (" thinks ", "thought")]
            for index, words in enumerate(wrap(quote(thought), max(width - indent - 2 - len(label), 8))):
                pad: Line = first if not index else [(" " * len(label), "")]
                lines.append([(" " * indent, ""), *head, *pad, (words, "thought italic")])
        return lines

    def _told(self, event: Event, width: int) -> list[Line]:
        style = self._mood(event)
        head: Line = [("  ", "")]
        if event.kind in REFEREE_KINDS:
            head, style = [("! ", "warn bold")], "dim"
        elif event.audience is not None:
            head = self._address(event)
            if style == "text":
                style = "private" if event.audience else "dim"
        indent = sum(len(text) for text, _ in head)
        if indent > width // 2:
            head, indent = [("  ", "")], 2
        lines: list[Line] = []
        for index, words in enumerate(wrap(sentence(self.game, event), width - indent)):
            lines.append(crop([*(head if not index else [(" " * indent, "")]), (words, style)], width))
        return lines

    def _mood(self, event: Event) -> str:
        try:
            return self.panel.mood(event)
        except Exception:
            return "text"  # an event that the game did not write, in a record that does not verify

    def _address(self, event: Event) -> Line:
        audience: Any = event.audience
        if self.perspective != OMNISCIENT:
            return [("◌ ", "private")]
        if not audience:
            return [("· ", "dim")]
        return [("◌ ", "private"), *seat_list(audience), (" ", "")]
