"""What spectators see of the clocks, so that no clock tells what is hidden.

The public, and a seat of the others, sees the clocks of those turns alone that everyone knows to be open (see
`games.base.View.asked`), and of them what is left of the regular time: what a seat has left in its bank tells of turns
in secret. A clock stands until all have answered, whoever has answered before. A seat sees all of its own time, an
omniscient reader everyone's. Nothing is sent to the public for the sake of a clock, so that the moment of a frame does
not tell of a turn in secret either.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from replays.visitors import OMNISCIENT, Perspective

CLOCK_STEP_S = 0.5
"""Seconds by which the end of a turn must have moved for its clock to be sent anew."""


class TurnClock(NamedTuple):
    """Seconds left of a seat's turn."""

    own_s: float | None
    """All that the seat has, None where it owes no answer."""
    public_s: float | None
    """What everyone may know of it, None where nothing."""


ReadClocks = Callable[[], Mapping[int, TurnClock]]
"""Returns the clocks of a match, by seat."""


def shown(clocks: Mapping[int, TurnClock], perspective: Perspective, *, past_s: float) -> dict[int, float]:
    """Return the seconds left by seat that a perspective may see, `past_s` after the clocks were read."""
    found = {}
    for seat, clock in clocks.items():
        own = perspective in (OMNISCIENT, seat)
        left_s = clock.own_s if own else clock.public_s
        if left_s is not None:
            found[seat] = max(0.0, left_s - past_s)
    return found


def moved(
    before: Mapping[int, TurnClock], after: Mapping[int, TurnClock], *, past_s: float
) -> set[Perspective]:
    """Return the perspectives that are told of new clocks even where they see nothing else; never the public.

    Args:
        before: what was known.
        after: what is known now.
        past_s: seconds from the one to the other.
    """
    told: set[Perspective] = set()
    for seat in before.keys() | after.keys():
        old, new = (None if seat not in clocks else clocks[seat].own_s for clocks in (before, after))
        if old is None or new is None:
            changed = old is not new
        else:
            changed = abs(old - past_s - new) > CLOCK_STEP_S
        if changed:
            told |= {seat, OMNISCIENT}
    return told
