"""Any other game: the facts that its view shares with all games."""

from collections.abc import Mapping
from typing import Any

from clients.spectator.drawing import Line, crop
from clients.spectator.panels.base import GamePanel, SeatLook, seat_list, seat_span
from games.text import clean_name
from replays.tables import read_table


class GenericPanel(GamePanel):
    """Draws a game of which nothing is known but its view."""

    def seats(self, view: Any, seats: int) -> list[SeatLook]:
        facts = read_table(view)
        roles: Mapping[str, Any] = facts.get("roles") or facts.get("cards") or {}
        looks = []
        for seat in range(seats):
            marks: Line = []
            if seat == facts.get("leader"):
                marks.append(("♛", "warn"))
            if seat in facts.get("team", ()):
                marks.append(("●", "accent"))
            role = roles.get(str(seat))
            looks.append(
                SeatLook(None if role is None else clean_name(str(role)), seat in facts.get("out", ()), marks)
            )
        return looks

    def board(self, view: Any, *, width: int) -> list[Line]:
        facts = read_table(view)
        lines: list[Line] = []
        if "stage" in facts:
            lines.append([(facts["stage"], "title")])
        if "score" in facts:
            lines.append([("Score  ", "dim"), (" : ".join(map(str, facts["score"])), "text")])
        if "leader" in facts:
            lines.append([("Leader ", "dim"), seat_span(facts["leader"])])
        if "team" in facts:
            lines.append([("Team   ", "dim"), *seat_list(facts["team"])])
        if "out" in facts:
            lines.append([("Out    ", "dim"), *seat_list(facts["out"])])
        for seat, value in enumerate(facts.get("returns", ())):
            lines.append(
                [seat_span(seat), (f"  {value:+g}", "good" if value > 0 else "evil" if value < 0 else "text")]
            )
        return [crop(line, width) for line in lines or [[("Nothing is on the table yet.", "dim")]]]
