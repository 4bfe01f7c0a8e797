"""Avalon's board: five quests, the track of rejections, the vote, what was learned and by whom."""

from typing import Any, ClassVar

from clients.spectator.drawing import Line, crop, flow, meter, width_of
from clients.spectator.panels.base import GamePanel, RoleLook, SeatLook, seat_list, seat_span
from games.avalon import AvalonView
from games.avalon.rules import APPROVE, EVIL, FAIL, GOOD, MAX_REJECTIONS, SIDES
from games.base import Event

_ENDINGS = {
    "three quests": "three quests succeeded",
    "three failed quests": "three quests failed",
    "five rejections": "five teams in a row were rejected",
}


class AvalonPanel(GamePanel):
    """Draws Avalon."""

    roles: ClassVar = {
        "merlin": RoleLook("✦", "good"),
        "percival": RoleLook("◈", "good"),
        "servant": RoleLook("○", "good"),
        "assassin": RoleLook("†", "evil"),
        "morgana": RoleLook("☾", "evil"),
        "mordred": RoleLook("▲", "evil"),
        "oberon": RoleLook("◍", "evil"),
        "minion": RoleLook("▼", "evil"),
    }
    legend: ClassVar = (
        ("♛", "warn", "leads this proposal"),
        ("●", "accent", "on the team"),
        ("✓ ✗", "dim", "approved or rejected the last team"),
        ("♀", "private", "holds the Lady of the Lake"),
        ("☠", "evil", "named by the assassin"),
        ("!", "evil", "a fourth quest that takes two fails"),
    )
    speech: ClassVar = {"speech": "", "confer": "to evil alone"}
    ballots: ClassVar = frozenset({"votes"})
    moods: ClassVar = {
        "proposal": "accent",
        "assassination": "warn bold",
        "stab": "evil bold",
        "lady": "accent",
        "end": "title",
    }

    def stage(self, view: AvalonView) -> str:
        if view.over:
            return "The end"
        if view.phase in ("confer", "assassinate"):
            return "The assassination"
        return f"Quest {view.quest}, proposal {view.attempt}" if view.quest else ""

    def seats(self, view: AvalonView, seats: int) -> list[SeatLook]:
        last = view.proposals[-1] if view.proposals else None
        votes = last.votes if last is not None and last.votes is not None and not view.over else None
        looks = []
        for seat in range(seats):
            marks: Line = []
            if seat == view.leader and not view.over:
                marks.append(("♛", "warn"))
            if seat in view.team:
                marks.append(("●", "accent"))
            if votes is not None:
                yes = votes[seat] == APPROVE
                marks.append(("✓", "good") if yes else ("✗", "evil"))
            if seat == view.lady:
                marks.append(("♀", "private"))
            if seat == view.target:
                marks.append(("☠", "evil bold"))
            looks.append(SeatLook(_role(view, seat), marks=marks))
        return looks

    def board(self, view: AvalonView, *, width: int) -> list[Line]:
        if not view.team_sizes:
            return [crop([("The roles are being dealt.", "dim")], width)]
        lines = [*self._quests(view), self._track(view)]
        lines += self._now(view)
        for played in view.quests:
            mark = ("✔", "good bold") if played.success else ("✘", "evil bold")
            line: Line = [mark, (f" {played.quest}  ", "dim"), *seat_list(played.team)]
            failed = [seat for seat in played.team if view.cards.get((played.quest, seat)) == FAIL]
            fails = f"  {played.fails} fail{'' if played.fails == 1 else 's'}" if played.fails else ""
            line.append((fails, "evil"))
            if failed:
                line += [(" by ", "dim"), *seat_list(failed)]
            lines.append(line)
        for look in view.examinations:
            line = [
                ("♀", "private"),
                (f" {look.quest}  ", "dim"),
                seat_span(look.seat),
                (" examined ", "dim"),
            ]
            line.append(seat_span(look.target))
            if look.team is not None:
                line += [(": ", "dim"), (look.team, "good" if look.team == GOOD else "evil")]
            lines.append(line)
        if view.over:
            lines += self._result(view, width)
        return [crop(line, width) for line in lines]

    def brief(self, view: AvalonView, *, width: int) -> list[Line]:
        if not view.team_sizes:
            return [crop([("The roles are being dealt.", "dim")], width)]
        chips: list[Line] = []
        for index, size in enumerate(view.team_sizes):
            glyph, style = self._quest_mark(view, index)
            here = index + 1 == view.quest and not view.over and not glyph
            chips.append([(glyph or (f"[{size}]" if here else str(size)), style)])
        quests = [("Quests ", "dim"), *(span for chip in chips for span in (*chip, (" ", "")))]
        return [
            *flow([quests, self._track(view)], width),
            *(crop(line, width) for line in self._now(view)[:1]),
        ]

    def ballot(self, event: Event, *, width: int) -> list[Line]:
        votes = event.data["votes"]
        yes = sum(vote == APPROVE for vote in votes)
        passed = event.data["approved"]
        style = "good" if passed else "evil"
        head: Line = [
            (meter(yes, len(votes), len(votes)), style),
            (f" {yes} of {len(votes)} approve", "text"),
            (": the team is " + ("approved" if passed else "rejected"), f"{style} bold"),
            ("  ", ""),
            *seat_list(event.data["team"]),
        ]
        rows: list[Line] = [
            [seat_span(seat), ("✓", "good") if vote == APPROVE else ("✗", "evil")]
            for seat, vote in enumerate(votes)
        ]
        return [crop(head, width), *flow(rows, width, gap=" ")]

    def mood(self, event: Event) -> str:
        if event.kind == "quest":
            return "good bold" if event.data["success"] else "evil bold"
        if event.kind == "card":
            return "evil" if event.data["card"] == FAIL else "private"
        return super().mood(event)

    def tick(self, event: Event) -> tuple[str, str] | None:
        match event.kind:
            case "votes":
                return ("╵", "dim")
            case "quest":
                return ("✔", "good") if event.data["success"] else ("✘", "evil")
            case "stab":
                return ("†", "evil")
        return super().tick(event)

    def _quest_mark(self, view: AvalonView, index: int) -> tuple[str, str]:
        if index < len(view.quests):
            return ("✔", "good bold") if view.quests[index].success else ("✘", "evil bold")
        return ("", "accent bold") if index + 1 == view.quest and not view.over else ("", "dim")

    def _quests(self, view: AvalonView) -> list[Line]:
        top, middle, below, bottom = [], [], [], []
        for index, size in enumerate(view.team_sizes):
            glyph, style = self._quest_mark(view, index)
            border = style.removesuffix(" bold")
            hard = view.fails_needed[index] > 1
            fails = view.quests[index].fails if index < len(view.quests) else None
            foot = ("!" if hard else "─") if fails is None else str(fails) if fails else "─"
            top.append((f"╭─{index + 1}─╮ ", border))
            middle += [("│ ", border), (str(size), style if not glyph else "dim"), (" │ ", border)]
            below += [("│ ", border), (glyph or " ", style), (" │ ", border)]
            bottom += [("╰─", border), (foot, "evil bold" if foot != "─" else border), ("─╯ ", border)]
        return [top, middle, below, bottom]

    def _track(self, view: AvalonView) -> Line:
        lost = view.rejections
        if view.reason == "five rejections":
            lost = MAX_REJECTIONS
        good, evil = view.score
        return [
            ("Rejected ", "dim"),
            ("●" * lost, "evil" if lost > 2 else "warn"),
            ("○" * (MAX_REJECTIONS - lost), "dim"),
            ("  ", ""),
            (f"good {good}", "good"),
            (" : ", "dim"),
            (f"{evil} evil", "evil"),
        ]

    def _now(self, view: AvalonView) -> list[Line]:
        leader = [] if view.leader is None else [seat_span(view.leader)]
        match view.phase:
            case "speak":
                return [[("Discussion, led by ", "dim"), *leader]]
            case "propose":
                return [[*leader, (" chooses a team", "dim")]]
            case "vote":
                return [[("Vote on ", "dim"), *seat_list(view.team)]]
            case "quest":
                return [[("On the quest: ", "dim"), *seat_list(view.team)]]
            case "lady" if view.lady is not None:
                return [[("♀ ", "private"), seat_span(view.lady), (" will examine a seat", "dim")]]
            case "confer":
                return [[("Evil confers", "evil")]]
            case "assassinate":
                return [[("The assassin chooses", "evil")]]
        return []

    def _result(self, view: AvalonView, width: int) -> list[Line]:
        if not view.returns:
            return []
        winner = next(SIDES[view.roles[seat]] for seat, value in enumerate(view.returns) if value > 0)
        why = _ENDINGS.get(view.reason or "", view.reason or "")
        if view.reason == "assassination":
            why = f"the assassin {'found' if winner == EVIL else 'missed'} Merlin"
        head: Line = [(f"{winner.capitalize()} wins: ", f"{winner} bold")]
        whole: Line = [*head, (why, "text")]
        return [whole] if width_of(whole) <= width else [head, [(why, "text")]]


def _role(view: Any, seat: int) -> str | None:
    role: str | None = view.roles.get(seat)
    if role is not None:
        return role
    if seat in view.evil:
        return "evil"
    if seat in view.seen and view.role is not None:
        return "merlin?" if view.role == "percival" else "evil"
    return None


AvalonPanel.roles = {
    **AvalonPanel.roles,
    "evil": RoleLook("■", "evil"),
    "merlin?": RoleLook("✧", "warn"),
}
