"""Avalon in prose: the rules of this table, the role and what it knows, the course of the match."""

from typing import ClassVar

from agents.bots.avalon_speech import parse_claims
from agents.prompting.compact_avalon import claimed_before
from agents.prompting.full import QUOTED, FullTemplate, seats_word
from agents.prompting.template import Line, listed
from games.avalon import AvalonView
from games.avalon.rules import (
    APPROVE,
    ASSASSIN,
    EVIL,
    FAIL,
    GOOD,
    MAX_REJECTIONS,
    MERLIN,
    MORDRED,
    MORGANA,
    OBERON,
    PERCIVAL,
    SIDES,
    TO_WIN,
)
from games.base import Event
from games.referee import Turn
from games.text import quote

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


class FullAvalon(FullTemplate):
    """Every role at every table."""

    number: ClassVar[str] = "1"

    # Rules and role

    def system(self, view: AvalonView) -> str:
        return "\n".join((*self._rules(view), "", *self._you(view)))

    def _rules(self, view: AvalonView) -> list[str]:
        deck, n = view.deck, view.seats
        evil = sum(SIDES[role] == EVIL for role in deck)
        rules = [
            (
                f"{_NUMBERS[n - evil].capitalize()} seats are good, {_NUMBERS[evil]} are evil. "
                f"The roles in play: {', '.join(deck)}."
            ),
            self._knowing(deck),
            (
                "Good wants three quests to succeed. Evil wins when three quests have failed, or when five teams "
                "in a row are rejected for one quest."
            ),
        ]
        if MERLIN in deck:
            rules.append(
                "After three successes the assassin names one seat. If that seat is merlin, evil wins after all."
            )
        rules += [self._choosing(view), self._going(view)]
        if view.lady is not None:
            rules.append(
                "After quests 2, 3 and 4 the seat that holds the Lady of the Lake examines a seat that never "
                "held her. It alone learns whether that seat is good or evil, and hands her on to it."
            )
        title = (
            f"You play The Resistance: Avalon, a game of hidden roles, with {n} seats numbered 0 to {n - 1}."
        )
        return [title, "", "# Rules", *(f"- {rule}" for rule in (*rules, QUOTED))]

    def _choosing(self, view: AvalonView) -> str:
        often = "" if view.speech_rounds == 1 else f", {_times(view.speech_rounds)}"
        speech = f"each seat speaks{often}, from the leader on" if view.speech_rounds else "nobody speaks"
        return (
            f"Before a quest {speech}. Then the leader proposes a team, and all seats vote on it at once, openly. "
            "More than half must approve. After each vote the next seat leads."
        )

    def _going(self, view: AvalonView) -> str:
        two = [quest for quest, fails in enumerate(view.fails_needed, 1) if fails == 2]
        needed = f", but quest {two[0]} takes two" if two else ""
        return (
            f"The teams of quests 1 to 5 have {listed(view.team_sizes)} seats. An approved team goes on the quest: "
            "each member secretly plays success or fail. Good can only play success. "
            f"One fail makes a quest fail{needed}. All learn how many fails there were, not whose."
        )

    def _knowing(self, deck: tuple[str, ...]) -> str:
        told = "The evil seats know each other" + (", except oberon." if OBERON in deck else ".")
        if MERLIN in deck:
            told += " Merlin knows the evil seats" + (", except mordred." if MORDRED in deck else ".")
        if PERCIVAL in deck:
            told += " Percival sees merlin" + (
                " and morgana, not which is which." if MORGANA in deck else " and knows it is merlin."
            )
        return told + " The others know only their own role."

    def _you(self, view: AvalonView) -> list[str]:
        role = view.role or "unknown"
        side = SIDES.get(role, "unknown")
        return [
            "# You",
            f"You are seat {self.me}. Your role is {role}. You are {side}. {self._known(view)}",
            self._aim(role, view),
        ]

    def _known(self, view: AvalonView) -> str:
        """Return what the role was shown at the start."""
        role, seen = view.role, view.seen
        if role == MERLIN:
            told = f"You know that {_are(seen)} evil."
            return f"{told} Mordred is evil too, and hidden from you." if MORDRED in view.deck else told
        if role == PERCIVAL:
            if MORGANA not in view.deck:
                return f"You know that {seats_word(seen)} is merlin."
            return f"One of {seats_word(seen)} is merlin and the other is morgana; you do not know which."
        if role == OBERON:
            return "You do not know the other evil seats, and they do not know you."
        if SIDES.get(role or "") == EVIL:
            told = f"You know that {_are(seen)} evil like you." if seen else "You know of no other evil seat."
            return f"{told} Oberon is evil too, but you do not know where." if OBERON in view.deck else told
        return "You know nothing about the other seats."

    def _aim(self, role: str, view: AvalonView) -> str:
        deck = view.deck
        if role == MERLIN:
            return (
                "Help good to choose teams without evil, but do not show how much you know: if the assassin finds "
                "you, you lose."
            )
        if role == PERCIVAL:
            other = "Find out which one is merlin, and trust it. " if MORGANA in deck else "Trust it. "
            return f"{other}Draw suspicion of being merlin to yourself, so that the assassin names you."
        if SIDES.get(role) == GOOD:
            return (
                "Find the evil seats from the teams, the votes, the fails and what is said, and keep them off the "
                "teams."
            )
        aim = {
            ASSASSIN: " Watch who seems to know too much: at the end you name the seat that you take for merlin.",
            MORGANA: " Percival takes you for merlin or morgana: act like merlin."
            if PERCIVAL in deck
            else "",
            MORDRED: " Merlin does not know that you are evil." if MERLIN in deck else "",
        }.get(role, "")
        return f"Seem good, get onto teams, and make three quests fail.{aim}"

    # The course of the match

    def public(self, event: Event, view: AvalonView) -> Line | None:
        data = event.data
        match event.kind:
            case "start":
                return None
            case "round":
                you = " (you)" if data["leader"] == self.me else ""
                told = (
                    f"Quest {data['quest']}, proposal {data['attempt']}: seat {data['leader']}{you} leads, "
                )
                return Line(f"{told}for a team of {data['size']}.", None, opens=True)
            case "speech":
                return self._speech(data["seat"], data["text"], view)
            case "proposal":
                return Line(self.marked(f"Seat {data['seat']} proposes {seats_word(data['team'])}."))
            case "votes":
                yes = [seat for seat, vote in enumerate(data["votes"]) if vote == APPROVE]
                no = [seat for seat in range(view.seats) if seat not in yes]
                counts = f"{seats_word(yes)} approved, {seats_word(no)} rejected"
                result = "approved" if data["approved"] else "rejected"
                proposal = view.proposals[-1]
                return Line(
                    f"The team is {result}: {counts}.",
                    f"Quest {proposal.quest}, proposal {proposal.attempt}: seat {proposal.leader} proposed "
                    f"{seats_word(proposal.team)}, {result}: {counts}.",
                )
            case "quest":
                result = "succeeds" if data["success"] else "fails"
                told = (
                    f"Quest {data['quest']} {result}: {_NUMBERS[data['fails']]} "
                    f"fail{'' if data['fails'] == 1 else 's'} among {seats_word(data['team'])}."
                )
                return Line(told, told)
            case "assassination":
                told = "Three quests have succeeded. Evil talks in secret, then the assassin names a seat."
                return Line(told, told)
        told_by_game = self.tell(event)
        return None if told_by_game is None else Line(told_by_game, told_by_game)

    def _speech(self, seat: int, text: str, view: AvalonView) -> Line:
        whole = self.marked(f"Seat {seat} says {quote(text) if text else 'nothing.'}")
        shown = parse_claims(text, seat, view.seats).lady
        if not shown or shown == claimed_before(seat, view):
            return Line(whole)
        claimed = listed([f"seat {target} as {EVIL if evil else GOOD}" for target, evil in shown])
        return Line(whole, self.marked(f"Seat {seat} says that the Lady showed {claimed}."))

    def private(self, event: Event, view: AvalonView) -> Line | None:
        data = event.data
        match event.kind:
            case "role" | "sees":
                return None
            case "card" if view.role is None or SIDES[view.role] == GOOD:
                return None
            case "card":
                told = f"On quest {data['quest']} you played {data['card']}."
                return Line(told, told if data["card"] == FAIL else None)
            case "loyalty":
                told = f"The Lady of the Lake showed you that seat {data['target']} is {data['team']}."
                return Line(told, told)
            case "evil":
                told = f"The evil seats are {listed(data['seats'])}. The assassin is seat {data['assassin']}."
                return Line(told, told)
            case "confer":
                speaks = f"{quote(data['text'])}" if data["text"] else "nothing."
                return Line(self.marked(f"Seat {data['seat']} says to evil alone {speaks}"))
        return super().private(event, view)

    # The turn

    def state(self, view: AvalonView) -> list[str]:
        won, lost = view.score
        if won >= TO_WIN:
            return [f"Quests so far: {won} succeeded, {lost} failed."]
        size = view.team_sizes[view.quest - 1]
        leads = "You lead" if view.leader == self.me else f"Seat {view.leader} leads"
        return [
            (
                f"Quest {view.quest} (team of {size}), proposal {view.attempt} of {MAX_REJECTIONS}. {leads}. "
                f"Quests so far: {won} succeeded, {lost} failed."
            )
        ]

    def decision(self, turn: Turn, view: AvalonView) -> list[str]:
        label = turn.space.label
        asked = {
            "speak": self._asked_to_speak,
            "propose": self._asked_to_propose,
            "vote": self._asked_to_vote,
            "quest": self._asked_for_a_card,
            "lady": self._asked_to_examine,
            "confer": self._asked_to_confer,
            "assassinate": self._asked_to_assassinate,
        }.get(label)
        return [self._reminder(view), f"It is your turn: {label}." if asked is None else asked(view)]

    def _reminder(self, view: AvalonView) -> str:
        role = view.role or "unknown"
        told = f"You are seat {self.me}, {role}, {SIDES.get(role, 'unknown')}. "
        told += f"The evil seats are {listed(view.evil)}." if view.evil else self._known(view)
        for examined in view.examinations:
            if examined.seat == self.me and examined.team is not None:
                told += f" The Lady showed you that seat {examined.target} is {examined.team}."
        return told

    def _asked_to_speak(self, view: AvalonView) -> str:
        after = "After all have spoken you propose the team." if view.leader == self.me else ""
        return f"It is your turn to speak to all: say whom you trust or suspect, and why. {after}".strip()

    def _asked_to_propose(self, view: AvalonView) -> str:
        size = view.team_sizes[view.quest - 1]
        return f"You lead: propose the team of {size} seats for quest {view.quest}. You may be on it."

    def _asked_to_vote(self, view: AvalonView) -> str:
        last = " If this team is rejected too, evil wins." if view.attempt == MAX_REJECTIONS else ""
        proposer = "You" if view.leader == self.me else f"Seat {view.leader}"
        verb = "proposed" if view.leader == self.me else "proposes"
        inside = "you are on it" if self.me in view.team else "you are not on it"
        return f"{proposer} {verb} {seats_word(view.team)} ({inside}). Vote on this team.{last}"

    def _asked_for_a_card(self, view: AvalonView) -> str:
        others = seats_word(seat for seat in view.team if seat != self.me)
        return f"You are on the team of quest {view.quest}, with {others}. Play your card in secret."

    def _asked_to_examine(self, view: AvalonView) -> str:
        return "You hold the Lady of the Lake: choose the seat whose side you want to learn."

    def _asked_to_confer(self, view: AvalonView) -> str:
        assassin = "You are" if view.assassin == self.me else f"Seat {view.assassin} is"
        return f"Only the evil seats hear you: say who you think is merlin. {assassin} the assassin."

    def _asked_to_assassinate(self, view: AvalonView) -> str:
        return "Name the seat that you take for merlin. If it is merlin, evil wins; if not, good wins."


def _are(seats: tuple[int, ...]) -> str:
    return f"{seats_word(seats)} {'is' if len(seats) == 1 else 'are'}"


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"
