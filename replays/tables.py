"""What stands on the table: the few facts of any game's view that can be drawn beside its seats.

Views are the games' own; what is read here are attributes that mean the same wherever they occur: `roles`,
`cards` by seat, `alive`, `leader`, `team`, `score`, `quest`, `attempt`, `day`, `phase`, `returns`.
"""

from typing import Any

from games.base import Event, Game
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible


def read_table(view: Any) -> dict[str, Any]:
    """Return the facts that `view` knows.

    `roles` and `cards` by seat (as text, as JSON has it), `out` and `team` as seats, `leader`, `score`, `stage`
    (a heading for what is going on) and `returns`; what a view does not know is left out.
    """
    facts: dict[str, Any] = {}
    for name in ("roles", "cards"):
        known = getattr(view, name, None)
        if isinstance(known, dict):
            facts[name] = {str(s): v for s, v in sorted(known.items()) if isinstance(s, int)} if known else {}
    alive, seats = getattr(view, "alive", None), getattr(view, "seats", 0)
    if isinstance(alive, list) and seats:
        facts["out"] = [seat for seat in range(seats) if seat not in alive]
    for name in ("team", "score"):
        value = getattr(view, name, None)
        if isinstance(value, tuple):
            facts[name] = list(value)
    leader = getattr(view, "leader", None)
    if isinstance(leader, int):
        facts["leader"] = leader
    returns = getattr(view, "returns", None)
    if returns:
        facts["returns"] = list(returns)
    facts["stage"] = _stage(view)
    return {name: value for name, value in facts.items() if value not in ({}, [], "")}


def _stage(view: Any) -> str:
    if getattr(view, "returns", None):
        return "The end"
    quest, attempt = getattr(view, "quest", 0), getattr(view, "attempt", 0)
    if quest:
        return f"Quest {quest}, proposal {attempt}" if attempt else f"Quest {quest}"
    day, phase = getattr(view, "day", 0), getattr(view, "phase", "")
    if day and phase in ("day", "night"):
        return f"{phase.capitalize()} {day}"
    return ""


class Table:
    """One perspective's view of a match, folded event by event, and what it changes on the table."""

    def __init__(self, game: Game, perspective: Perspective) -> None:
        self.perspective = perspective
        self.facts: dict[str, Any] = {}
        self._view = game.view(None if perspective in (PUBLIC, OMNISCIENT) else int(perspective))
        self._broken = False

    def update(self, event: Event) -> dict[str, Any]:
        """Fold `event` in if this perspective may see it; return the facts that changed (None: gone)."""
        if self._broken or not visible(event, self.perspective):
            return {}
        try:
            self._view.update(event)
            facts = read_table(self._view)
        except Exception:
            # An event that its own game cannot fold is in no record that verifies; the table stays as it was.
            self._broken = True
            return {}
        before, self.facts = self.facts, facts
        changed = {name: value for name, value in facts.items() if before.get(name) != value}
        return {**changed, **{name: None for name in before if name not in facts}}
