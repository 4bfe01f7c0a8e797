"""Kuhn poker in prose."""

from typing import ClassVar

from agents.prompting.full import FullTemplate
from agents.prompting.template import Line
from games.base import Event
from games.kuhn import BET, CALL, CHECK, FOLD, KuhnView
from games.referee import Turn

RULES = """\
# Rules
- There are three cards: jack, queen and king. The king is highest, the jack lowest.
- Each player has one card that only its owner sees, and has put one chip into the pot.
- Seat 0 acts first: check, or bet one more chip.
- After a check, seat 1 checks, or bets one more chip. After two checks the cards are shown.
- Who faces a bet folds, or calls it with one more chip. Who folds loses one chip, whatever the cards.
- When the cards are shown the higher card wins: one chip after two checks, two chips after a call.
- One hand is played. You want to win as many chips as you can, and to lose as few."""

_ASKED = {
    CHECK: "check (bet nothing)",
    BET: "bet (one more chip)",
    FOLD: "fold (lose one chip)",
    CALL: "call (one more chip, and the cards are shown)",
}


class FullKuhn(FullTemplate):
    """One hand: the rules, the own card, the moves."""

    number: ClassVar[str] = "1"

    def system(self, view: KuhnView) -> str:
        card = view.cards.get(self.me, "unknown card")
        beaten = {
            "jack": "No card is lower: shown, it always loses.",
            "queen": "It beats the jack and loses to the king.",
            "king": "No card is higher: shown, it always wins.",
        }.get(card, "")
        return (
            f"You play Kuhn poker, a game of two players, seat 0 and seat 1.\n\n"
            f"{RULES}\n\n# You\nYou are seat {self.me}. Your card is the {card}. {beaten}"
        ).rstrip()

    def public(self, event: Event, view: KuhnView) -> Line | None:
        if event.kind == "move":
            bold = {CHECK: "checks", BET: "bets", FOLD: "folds", CALL: "calls"}[event.data["move"]]
            told = self.marked(f"Seat {event.data['seat']} {bold}.")
            return Line(told, told)
        return super().public(event, view)

    def private(self, event: Event, view: KuhnView) -> Line | None:
        return None if event.kind == "card" else super().private(event, view)

    def decision(self, turn: Turn, view: KuhnView) -> list[str]:
        line = tuple(view.line)
        if not line:
            where = "Nobody has acted yet, and you are first."
        elif line == (CHECK,):
            where = "Seat 0 has checked."
        else:
            where = f"Seat {1 - self.me} has bet."
        options = getattr(turn.space, "options", ())
        asked = " or ".join(_ASKED[option] for option in options if option in _ASKED)
        return [f"{where} You are seat {self.me} and hold the {view.cards.get(self.me)}. You may {asked}."]
