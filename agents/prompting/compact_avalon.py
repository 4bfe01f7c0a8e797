"""Avalon in few words."""

import re
from collections import Counter
from typing import ClassVar

from agents.bots.avalon_speech import parse_claims
from agents.prompting.compact import CompactTemplate, words
from agents.prompting.template import Line
from games.avalon import AvalonView
from games.avalon.rules import APPROVE, EVIL, GOOD, MERLIN, PERCIVAL, REJECT, SIDES
from games.base import Event
from games.referee import Turn

_NAMED = re.compile(r"\b(\d{1,2})\b", re.ASCII)


class CompactAvalon(CompactTemplate):
    """`say 4 trust 1 suspect 3` · `leader 4 team 1 3` · `votes yes 0 2 4 no 1 3 sent` · …"""

    number: ClassVar[str] = "2"
    implied: ClassVar[frozenset[str]] = frozenset({"vote", "quest", "propose"})

    def system(self, view: AvalonView) -> str:
        return f"avalon seats {view.seats} roles {words(view.deck)} sizes {words(view.team_sizes)}"

    def public(self, event: Event, view: AvalonView) -> Line | None:
        data = event.data
        match event.kind:
            case "round":
                told = (
                    f"quest {data['quest']} try {data['attempt']} leader {data['leader']} size {data['size']}"
                )
                return Line(told, None, opens=True)
            case "speech":
                return self._speech(data["seat"], data["text"], view)
            case "proposal":
                return Line(f"leader {data['seat']} team {words(data['team'])}")
            case "votes":
                proposal = view.proposals[-1]
                yes = [seat for seat, vote in enumerate(data["votes"]) if vote == APPROVE]
                no = [seat for seat, vote in enumerate(data["votes"]) if vote == REJECT]
                told = f"yes {words(yes)} no {words(no)} {'sent' if data['approved'] else 'stopped'}"
                return Line(
                    f"votes {told}",
                    f"quest {proposal.quest} try {proposal.attempt} leader {proposal.leader} "
                    f"team {words(proposal.team)} {told}",
                )
            case "quest":
                result = "won" if data["success"] else "lost"
                told = f"quest {data['quest']} team {words(data['team'])} fails {data['fails']} {result}"
                return Line(told, told)
            case "lady":
                told = f"lady {data['seat']} examines {data['target']}"
                return Line(told, told)
        return None

    def private(self, event: Event, view: AvalonView) -> Line | None:
        data = event.data
        match event.kind:
            case "card" if view.role is not None and SIDES[view.role] == EVIL:
                told = f"card quest {data['quest']} {data['card']}"
                return Line(told, told)
            case "evil":
                told = f"evil {words(data['seats'])} assassin {data['assassin']}"
                return Line(told, told)
            case "confer":
                named = [int(n) for n in _NAMED.findall(data["text"]) if int(n) < view.seats]
                return Line(f"confer {data['seat']} {words(named[:1])}")
        return None

    def state(self, turn: Turn, view: AvalonView) -> list[str]:
        won, lost = view.score
        leader = words([] if view.leader is None else [view.leader])
        lines = [f"now quest {view.quest} try {view.attempt} leader {leader} won {won} lost {lost}"]
        suspects = _on_lost(view)
        if view.quests:
            cleared = sorted({seat for quest in view.quests for seat in quest.team} - set(suspects))
            lines.append(f"lost {words(suspects)} won {words(cleared)}")
        lines.append(self._you(view) + self._shown(view))
        if view.team:
            lines.append(self._team(view.team, suspects, view))
        return lines

    def _team(self, team: tuple[int, ...], suspects: list[int], view: AvalonView) -> str:
        """Return the team, and what of it matters: this seat, those it sees, those who were on a lost quest."""
        mine = "in" if self.me in team else "out"
        seen = words(seat for seat in team if seat in view.seen)
        return f"team {words(team)} {mine} sees {seen} lost {words(s for s in suspects if s in team)}"

    def _you(self, view: AvalonView) -> str:
        role = view.role or "none"
        what = MERLIN if role == PERCIVAL else EVIL
        return f"you {self.me} {role} {SIDES.get(role, 'none')} sees {what} {words(view.seen)}"

    def _shown(self, view: AvalonView) -> str:
        seen = [(e.target, e.team) for e in view.examinations if e.seat == self.me and e.team is not None]
        return "".join(f" shown {target} {team}" for target, team in seen)

    def _speech(self, seat: int, text: str, view: AvalonView) -> Line:
        claims = parse_claims(text, seat, view.seats)
        shown = "".join(f" shown {target} {EVIL if evil else GOOD}" for target, evil in claims.lady)
        told = f" trust {words(claims.trusts)}" if claims.trusts else ""
        told += f" suspect {words(claims.suspects)}" if claims.suspects else ""
        new = shown and claims.lady != claimed_before(seat, view)
        return Line(f"say {seat}{told + shown or ' nothing'}", f"say {seat}{shown}" if new else None)


def _on_lost(view: AvalonView) -> list[int]:
    """Return the seats that were on a lost quest, those on most of them first."""
    times = Counter(seat for quest in view.quests if not quest.success for seat in quest.team)
    return sorted(times, key=lambda seat: (-times[seat], seat))


def claimed_before(seat: int, view: AvalonView) -> tuple[tuple[int, bool], ...]:
    """Return what a seat said of the Lady of the Lake when it last spoke before its latest speech."""
    earlier = [speech.text for speech in view.speeches[:-1] if speech.seat == seat]
    return parse_claims(earlier[-1], seat, view.seats).lady if earlier else ()
