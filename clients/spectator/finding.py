"""Finding a place in a match: by words, or by the number of a ply or an event."""

from collections.abc import Callable

from clients.spectator.telling import Teller
from clients.spectator.timeline import Timeline


class Finder:
    """Finds words in what the feed tells.

    Args:
        timeline: the match; it may grow.
        teller: what is told of each step.
    """

    def __init__(self, timeline: Timeline, teller: Teller) -> None:
        self._timeline = timeline
        self._teller = teller
        self._texts: list[str] = []

    def find(self, words: str, *, here: int, by: int, include_here: bool = False) -> int | None:
        """Return the next step in which the words stand, whatever their case; None where there is none.

        Args:
            words: what to find.
            here: the step to begin at; -1 is before the first one.
            by: 1 for the next place, -1 for the one before; after the last comes the first again.
            include_here: whether the step `here` counts.
        """
        for step in self._timeline.steps[len(self._texts) :]:
            self._texts.append(self._teller.text(step).casefold())
        words = words.casefold()
        places = [at for at, text in enumerate(self._texts) if words in text]
        if not places:
            return None
        if by > 0:
            ahead = [at for at in places if at > here or (include_here and at == here)]
            return ahead[0] if ahead else places[0]
        behind = [at for at in places if at < here]
        return behind[-1] if behind else places[-1]


def jump(timeline: Timeline) -> tuple[str, Callable[[str], int]]:
    """Return the question where to jump, and what turns an answer into a number of steps.

    The latter raises `ValueError` for what is no place of this match.
    """
    events = f"1 to {len(timeline)}"
    plies = timeline.plies
    if plies is None:
        question = f"Jump to event ({events})"
    else:
        question = f"Jump to ply (0 to {plies}), or to event e1 to e{len(timeline)}"

    def read(answer: str) -> int:
        number = answer.lower().removeprefix("e")
        if not number.isascii() or not number.isdigit():
            raise ValueError(f"got {answer[:20]!r}, a number is needed")
        place = int(number[:12])
        if plies is not None and not answer.lower().startswith("e"):
            if place > plies:
                raise ValueError(f"got {place}, this match has plies 0 to {plies}")
            return timeline.step_of_ply(place)
        if not 1 <= place <= len(timeline):
            raise ValueError(f"got {place}, this match has events {events}")
        return place

    return question, read
