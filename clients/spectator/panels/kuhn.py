"""Kuhn poker's board: two cards, the line of play, the pot."""

from typing import ClassVar

from clients.spectator.drawing import Line, crop
from clients.spectator.panels.base import GamePanel, RoleLook, SeatLook, seat_span
from games.base import Event
from games.kuhn import BET, CALL, CARDS, KuhnView

_FACES = {
    card: (card[0].upper(), style) for card, style in zip(CARDS, ("good", "private", "warn"), strict=True)
}


class KuhnPanel(GamePanel):
    """Draws Kuhn poker."""

    roles: ClassVar = {card: RoleLook(face, style) for card, (face, style) in _FACES.items()}
    moods: ClassVar = {"move": "text", "showdown": "accent bold", "end": "title"}
    ticks: ClassVar = {"move": ("╵", "dim"), "showdown": ("✔", "accent"), "end": ("◆", "accent")}

    def stage(self, view: KuhnView) -> str:
        return "The end" if view.returns else "The hand" if view.line else ""

    def seats(self, view: KuhnView, seats: int) -> list[SeatLook]:
        looks = []
        for seat in range(seats):
            marks: Line = []
            if view.returns:
                value = view.returns[seat]
                marks.append((f"{value:+g}", "good bold" if value > 0 else "evil"))
            looks.append(SeatLook(view.cards.get(seat), marks=marks))
        return looks

    def board(self, view: KuhnView, *, width: int) -> list[Line]:
        top, middle, bottom, names = [], [], [], []
        for seat in (0, 1):
            face, style = _FACES.get(view.cards.get(seat, ""), ("?", "dim"))
            top.append(("╭─────╮  ", style))
            middle += [("│  ", style), (face, f"{style} bold"), ("  │  ", style)]
            bottom.append(("╰─────╯  ", style))
            names += [("   ", ""), seat_span(seat), ("     ", "")]
        return [crop(line, width) for line in (top, middle, bottom, names, self._pot(view), self._line(view))]

    def brief(self, view: KuhnView, *, width: int) -> list[Line]:
        return [crop(self._pot(view), width), crop(self._line(view), width)]

    def _pot(self, view: KuhnView) -> Line:
        chips = 2 + sum(move in (BET, CALL) for move in view.line)
        return [("Pot  ", "dim"), ("●" * chips, "warn"), (f" {chips}", "text")]

    def _line(self, view: KuhnView) -> Line:
        line: Line = [("Line ", "dim")]
        for index, move in enumerate(view.line):
            line += [(" → ", "dim")] if index else []
            line += [seat_span(index % 2), (f" {move}", "text")]
        return line if view.line else [*line, ("no move yet", "dim")]

    def mood(self, event: Event) -> str:
        return "private" if event.kind == "card" else super().mood(event)
