"""Evidence for a model that judges decisions: the truth of the match, and each decision as data.

Words of players stand in it as quoted data that cannot start a line, a role or a token of a chat template. Where not
all of it fits, less is told of each decision, and every decision is still there.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents.credit.labels import SeatLabels, free
from agents.credit.line import Line, Taken
from games.base import Event
from games.text import quote
from replays.tables import read_table

FULL, BRIEF, BARE = LEVELS = ("full", "brief", "bare")
"""With what the seat saw and could do; with what the world says of it; with what was done alone."""
MAX_DATA_CHARS = 300
"""Of an event's data; what is longer is told as its sentence."""
MAX_ACTION_CHARS = 400
MAX_BARE_CHARS = 40
"""Of what was done, where hardly anything fits."""
MAX_SAW = 40


class Item(NamedTuple):
    """Decisions that are judged with one word: one, or of a long match a stretch of them."""

    taken: tuple[Taken, ...]
    world: tuple[str, ...] = ()
    """What the world says of them, each once."""


def items_of(line: Line, seat: int, *, known: SeatLabels | None, most: int) -> list[Item]:
    """Return what there is to judge of a seat, in at most `most` items: decisions without a choice are left out.

    Args:
        line: the match.
        seat: whose decisions.
        known: the rules' labels, whose reasons are what the world says.
        most: items at most.
    """
    why = {} if known is None else {step.ply: step.why for step in known.steps if step.why}
    chosen = [taken for taken in line.taken[seat] if free(taken)]
    size = -(-len(chosen) // most) if chosen else 1
    items = []
    for start in range(0, len(chosen), size):
        part = tuple(chosen[start : start + size])
        said = dict.fromkeys(why[taken.ply] for taken in part if taken.ply in why)
        items.append(Item(part, tuple(said)))
    return items


def evidence(line: Line, seat: int, items: Sequence[Item], *, level: str = FULL) -> dict[str, Any]:
    """Return the evidence of a seat's decisions as JSON-compatible data."""
    outcome = line.outcome
    taken, before = line.taken[seat], line.seen_before[seat]
    steps, since = [], 0
    for number, item in enumerate(items, 1):
        # What the seat saw since the last decision that is told of, also between those that are left out.
        upto = before[taken.index(item.taken[-1])]
        steps.append(_told(line, seat, number, item, level, saw=line.seen[seat][since:upto]))
        since = upto
    return {
        "game": line.game.title,
        "seat": seat,
        "role": outcome.roles[seat],
        "side": outcome.teams[seat],
        "ended": {"by": outcome.reason, "returns": list(outcome.returns)},
        "truth": [[other, outcome.roles[other], outcome.teams[other]] for other in range(line.seats)],
        "steps": steps,
    }


def _told(
    line: Line, seat: int, number: int, item: Item, level: str, *, saw: Sequence[Event]
) -> dict[str, Any]:
    first = item.taken[0]
    told: dict[str, Any] = {"step": number, "asked": first.space.label}
    did = [_action(taken, MAX_BARE_CHARS if level == BARE else MAX_ACTION_CHARS) for taken in item.taken]
    told["did"] = did[0] if len(did) == 1 else did
    if level == BARE:
        return told
    if item.world:
        told["world"] = list(item.world)
    if level == BRIEF:
        return told
    told["could"] = quote(first.space.describe()[:MAX_ACTION_CHARS])[1:-1]
    told["saw"] = [_event(line, event) for event in saw[-MAX_SAW:]]
    table = read_table(line.states[first.ply].view(seat))
    told["stands"] = {name: value for name, value in table.items() if name != "roles"}
    return told


def _action(taken: Taken, most: int) -> Any:
    action = taken.action
    return quote(action[:most])[1:-1] if isinstance(action, str) else list(action)


def _event(line: Line, event: Event) -> Any:
    if len(json.dumps(event.data)) <= MAX_DATA_CHARS:
        return [event.kind, _safe(event.data)]
    told = line.game.narrate(event)
    return [event.kind, quote((told or "")[:MAX_DATA_CHARS])[1:-1]]


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return quote(value)[1:-1]
    if isinstance(value, dict):
        return {str(name): _safe(item) for name, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list | tuple) else value
