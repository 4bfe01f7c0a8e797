"""Kuhn poker in few words."""

from typing import ClassVar

from agents.prompting.compact import CompactTemplate
from agents.prompting.template import Line
from games.base import Event
from games.kuhn import KuhnView
from games.referee import Turn


class CompactKuhn(CompactTemplate):
    """`kuhn` · `you 0 king` · `move 0 check` · `ask open`."""

    number: ClassVar[str] = "1"
    implied: ClassVar[frozenset[str]] = frozenset({"open", "answer"})

    def system(self, view: KuhnView) -> str:
        return "kuhn"

    def public(self, event: Event, view: KuhnView) -> Line | None:
        if event.kind != "move":
            return None
        told = f"move {event.data['seat']} {event.data['move']}"
        return Line(told, told)

    def private(self, event: Event, view: KuhnView) -> Line | None:
        return None

    def state(self, turn: Turn, view: KuhnView) -> list[str]:
        return [self._you(view)]

    def _you(self, view: KuhnView) -> str:
        return f"you {self.me} {view.cards.get(self.me, 'none')}"
