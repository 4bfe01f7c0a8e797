"""Werewolf's board: day or night, who died of what, the tally of the vote, and the night's deeds as far as seen."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from clients.spectator.drawing import Line, crop, flow, width_of
from clients.spectator.panels.base import GamePanel, RoleLook, SeatLook, seat_list, seat_span
from games.base import Event
from games.werewolf import WerewolfView
from games.werewolf.setup import HEAL, NONE, POISON, TURN_LIMIT, WITCH, WOLVES_DEAD
from games.werewolf.view import Deed, Hunt, Sight

T = TypeVar("T", Hunt, Sight, Deed)

_CAUSES = {"night": "in the night", "vote": "voted out", "shot": "shot"}
_BAR = 12


class WerewolfPanel(GamePanel):
    """Draws Werewolf."""

    roles: ClassVar = {
        "villager": RoleLook("○", "good"),
        "werewolf": RoleLook("▲", "evil"),
        "seer": RoleLook("◉", "accent"),
        "doctor": RoleLook("✚", "good"),
        "hunter": RoleLook("➹", "warn"),
        "witch": RoleLook("☿", "private"),
    }
    legend: ClassVar = (
        ("☠", "evil", "dead"),
        ("→3", "dim", "whom the seat voted for today"),
        ("⚗ +−", "private", "the witch's potions left: healing, poison"),
    )
    speech: ClassVar = {"speech": "", "wolf_talk": "to the wolves", "last_words": "last words"}
    ballots: ClassVar = frozenset({"vote"})
    moods: ClassVar = {
        "night": "title",
        "wolf_target": "evil",
        "out": "evil bold",
        "shot": "evil bold",
        "end": "title",
    }

    def stage(self, view: WerewolfView) -> str:
        if view.over:
            return "The end"
        return f"{view.phase.capitalize()} {view.day}" if view.day else ""

    def seats(self, view: WerewolfView, seats: int) -> list[SeatLook]:
        today = (
            view.votes[-1] if view.votes and view.votes[-1].day == view.day and view.phase == "day" else None
        )
        looks = []
        for seat in range(seats):
            out = bool(view.seats) and seat not in view.alive
            marks: Line = []
            if out:
                marks.append(("☠", "evil"))
            elif view.roles.get(seat) == WITCH and not view.over:
                left = ("+" if view.heal_left else "") + ("−" if view.poison_left else "")
                marks.append((f"⚗{left}", "private"))
            if today is not None and seat in today.votes:
                at = today.votes[seat]
                marks += [("→", "dim"), ("∅", "dim") if at is None else seat_span(at)]
            looks.append(SeatLook(view.roles.get(seat), out, marks))
        return looks

    def board(self, view: WerewolfView, *, width: int) -> list[Line]:
        if not view.seats:
            return [crop([("The roles are being dealt.", "dim")], width)]
        lines = [self._sky(view, width), *self._mix(view, width)]
        if view.votes and not view.over:
            last = view.votes[-1]
            lines.append([(f"{'Runoff' if last.runoff else 'Vote'} of day {last.day}", "dim")])
            lines += _tally(last.votes, width, named=False)
        lines += self._night(view)
        if view.deaths:
            lines.append([("Deaths", "dim")])
        for death in view.deaths:
            look = self.role(death.role)
            line: Line = [(f" {death.day:>2} ", "dim"), seat_span(death.seat)]
            line.append((f" {_CAUSES.get(death.cause, death.cause)}", "text"))
            if death.role is not None:
                line.append((f"  {look.glyph} {death.role}", look.style))
            lines.append(line)
        if view.over:
            lines.append(self._result(view))
        return [crop(line, width) for line in lines]

    def brief(self, view: WerewolfView, *, width: int) -> list[Line]:
        if not view.seats:
            return [crop([("The roles are being dealt.", "dim")], width)]
        lines = [self._sky(view, width)]
        if view.over:
            return [crop(line, width) for line in (*lines, self._result(view))]
        if view.deaths:
            dead: list[Line] = []
            for death in view.deaths:
                look = self.role(death.role)
                dead.append([seat_span(death.seat), (look.glyph if death.role else "☠", look.style)])
            lines += flow([[("Dead", "dim")], *dead], width, gap=" ")[:2]
        return [crop(line, width) for line in lines]

    def ballot(self, event: Event, *, width: int) -> list[Line]:
        data = event.data
        if data["out"] is not None:
            head: Line = [("Voted out: ", "evil bold"), seat_span(data["out"])]
        elif data.get("tied"):
            head = [("A tie of ", "warn bold"), *seat_list(data["tied"])]
        else:
            head = [("Everybody abstained", "warn bold")]
        if data.get("runoff"):
            head.append((" in the runoff", "dim"))
        return [crop(head, width), *_tally(dict(data["votes"]), width, named=True)]

    def mood(self, event: Event) -> str:
        if event.kind == "dawn":
            return "evil bold" if event.data["dead"] else "good"
        return super().mood(event)

    def tick(self, event: Event) -> tuple[str, str] | None:
        match event.kind:
            case "vote":
                return ("╵", "dim")
            case "dawn" if event.data["dead"]:
                return ("☠", "evil")
            case "out" | "shot":
                return ("☠", "evil")
        return super().tick(event)

    def _sky(self, view: WerewolfView, width: int) -> Line:
        alive = (f"  {len(view.alive)} of {view.seats} alive", "text")
        if view.over:
            return [("The end", "title"), alive]
        if view.phase == "night":
            return [(f"☾ Night {view.day}", "private bold"), alive]
        return [(f"☀ Day {view.day}", "warn bold"), alive]

    def _mix(self, view: WerewolfView, width: int) -> list[Line]:
        chips: list[Line] = []
        for role, count in view.mix.items():
            look = self.role(role)
            chips.append([(f"{count}", "text"), (look.glyph, look.style), (f" {role}", "dim")])
        return flow(chips, width, gap=" ")

    def _night(self, view: WerewolfView) -> list[Line]:
        lines: list[Line] = [
            [("▲ ", "evil"), ("wolves attack ", "dim"), seat_span(hunt.at)]
            for hunt in _tonight(view, view.hunts)
        ]
        for sight in _tonight(view, view.sights):
            found = ("a werewolf", "evil") if sight.wolf else ("no werewolf", "good")
            lines.append([("◉ ", "accent"), ("seer: ", "dim"), seat_span(sight.at), (" is ", "dim"), found])
        deeds = [(deed, "✚ ", "good", "doctor protects ") for deed in _tonight(view, view.protections)]
        verbs = {HEAL: "heals ", POISON: "poisons "}
        deeds += [
            (deed, "☿ ", "private", f"witch {verbs.get(deed.what, '')}")
            for deed in _tonight(view, view.potions)
            if deed.what != NONE
        ]
        for deed, glyph, style, words in deeds:
            if deed.at is not None:
                lines.append([(glyph, style), (words, "dim"), seat_span(deed.at)])
        return [[(f"Night {view.day}", "private")], *lines] if lines else []

    def _result(self, view: WerewolfView) -> Line:
        if view.reason == TURN_LIMIT:
            return [("Drawn: the last day has passed", "warn bold")]
        if view.reason == WOLVES_DEAD:
            return [("The village wins", "good bold")]
        return [("The wolves win", "evil bold")]


def _tonight(view: WerewolfView, deeds: Sequence[T]) -> Sequence[T]:
    return [deed for deed in deeds[-1:] if deed.day == view.day]


def _tally(votes: dict[int, int | None], width: int, *, named: bool) -> list[Line]:
    voters: dict[int | None, list[int]] = defaultdict(list)
    for seat, at in votes.items():
        voters[at].append(seat)
    order: list[Any] = sorted(voters, key=lambda at: (at is None, -len(voters[at]), at or 0))
    most = max(len(seats) for at, seats in voters.items())
    lines = []
    for at in order:
        count = len(voters[at])
        name = ("–", "dim") if at is None else seat_span(at)
        bar = "█" * max(round(_BAR * count / max(most, _BAR)), 1)
        style = "dim" if at is None else f"seat{at}"
        line: Line = [(" " * (3 - len(name[0])), ""), name, (f" {bar} ", style), (f"{count}", "text")]
        line += [("  ← ", "dim"), *seat_list(voters[at])] if named else []
        lines.append(line)
    if named and any(width_of(line) > width for line in lines):
        return _narrow_tally(voters, order, width)
    return [crop(line, width) for line in lines]


def _narrow_tally(voters: dict[int | None, list[int]], order: Sequence[Any], width: int) -> list[Line]:
    """Return who voted for whom without bars, in as many lines as it takes, so that no voter is cut off."""
    lines: list[Line] = []
    for at in order:
        name = ("–", "dim") if at is None else seat_span(at)
        head: Line = [(" " * (3 - len(name[0])), ""), name, (" ← ", "dim")]
        indent = width_of(head)
        for index, row in enumerate(
            flow([[seat_span(seat)] for seat in voters[at]], width - indent, gap=" ")
        ):
            lines.append(crop([*(head if not index else [(" " * indent, "")]), *row], width))
    return lines
