"""A match as a row of steps, with its view at any of them.

A step is one event that the perspective sees, with the thoughts that came before it. The view after any step
is folded from the nearest checkpoint, so a jump costs at most `SPACING` updates however long the match is.
"""

import copy
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from games.base import Event, Game, View
from games.referee import REFEREE_KINDS, Entry, Input
from replays.visitors import OMNISCIENT, PUBLIC, Perspective

SPACING = 256
"""Steps between two checkpoints of the view."""


class Step(NamedTuple):
    """One event, the thoughts (seat, text) of the inputs before it, and the ply it belongs to if that is known."""

    event: Event
    thoughts: tuple[tuple[int, str], ...] = ()
    ply: int | None = None


class Stage(NamedTuple):
    """A phase of the match and the step that begins it."""

    step: int
    title: str
    after: bool = False
    """Whether that step is the last of the phase before, which it ends: a heading then stands below it."""


class Moment(NamedTuple):
    """A place in the match that means the same in every perspective: public events, then private ones after them."""

    public: int
    private: int


@dataclass(slots=True)
class _Folded:
    step: int
    view: View


class Timeline:
    """What one perspective saw of a match, in order; grows by `extend`.

    Args:
        game: whose view is folded.
        perspective: whose view it is.
        stage: names the phase that a view stands in; empty for none.
        closing: kinds of event that end a phase and belong to it.
    """

    def __init__(
        self,
        game: Game,
        perspective: Perspective,
        *,
        stage: Callable[[Any], str],
        closing: Collection[str] = (),
    ) -> None:
        self.game = game
        self.perspective = perspective
        self.steps: list[Step] = []
        self.stages: list[Stage] = []
        self.folds = 0
        """Updates of views since the start, for those who count them."""
        self._stage = stage
        self._closing = closing
        self._publics = [0]
        self._faults: dict[int, list[tuple[int, str]]] = {}
        self._thoughts: list[tuple[int, str]] = []
        self._ply: int | None = None
        self._plies: list[int] = []
        self._broken: int | None = None
        self._head = self._empty()
        self._cursor = _Folded(0, self._empty())
        self._checkpoints = [_Folded(0, self._empty())]

    def __len__(self) -> int:
        return len(self.steps)

    def _empty(self) -> View:
        return self.game.view(None if self.perspective in (PUBLIC, OMNISCIENT) else int(self.perspective))

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take what happened next."""
        for entry in entries:
            if isinstance(entry, Input):
                if entry.failure != "forfeit":
                    self._ply = entry.ply if self._ply is None else max(self._ply, entry.ply)
                if entry.thought:
                    self._thoughts.append((entry.seat, entry.thought))
            else:
                self._add(entry)

    def _add(self, event: Event) -> None:
        at = len(self.steps)
        self.steps.append(Step(event, tuple(self._thoughts), self._ply))
        self._plies.append(-1 if self._ply is None else self._ply)
        self._thoughts.clear()
        self._publics.append(self._publics[-1] + (event.audience is None))
        if event.kind in REFEREE_KINDS:
            seat = event.data.get("seat")
            if isinstance(seat, int):
                self._faults.setdefault(seat, []).append((at, event.kind))
        if self._broken is None:
            try:
                self._fold(self._head, event)
                title = self._stage(self._head)
            except Exception:
                # An event that its game cannot fold is in no record that verifies; the view stays as it was.
                self._broken = at
                return
            if not self.stages or title != self.stages[-1].title:
                # The first events, those of the deal, have no phase of their own: they belong to the start.
                self.stages.append(Stage(at, title, event.kind in self._closing))
            if len(self.steps) % SPACING == 0:
                self._checkpoints.append(_Folded(len(self.steps), _copied(self._head)))

    def _fold(self, view: View, event: Event) -> None:
        self.folds += 1
        view.update(event)

    def view_at(self, step: int) -> Any:
        """Return the view after `step` steps. It is to be read, not kept: the next call may change it."""
        if self._broken is not None:
            step = min(step, self._broken)
        cursor = self._cursor
        if not cursor.step <= step <= cursor.step + SPACING:
            start = self._checkpoints[min(step // SPACING, len(self._checkpoints) - 1)]
            cursor = self._cursor = _Folded(start.step, _copied(start.view))
        for at in range(cursor.step, step):
            self._fold(cursor.view, self.steps[at].event)
        cursor.step = step
        return cursor.view

    def stage_at(self, step: int) -> str:
        """Return the phase that stands after `step` steps."""
        place = bisect_left(self.stages, step, key=lambda stage: stage.step)
        return self.stages[place - 1].title if place else ""

    def next_stage(self, step: int) -> int:
        """Return how many steps are shown when the next phase begins; the end if there is none."""
        place = bisect_left(self.stages, step, key=lambda stage: stage.step)
        return self.stages[place].step + 1 if place < len(self.stages) else len(self.steps)

    def last_stage(self, step: int) -> int:
        """Return how many steps are shown when this phase began, or the one before where it just did."""
        place = bisect_left(self.stages, step - 1, key=lambda stage: stage.step)
        return self.stages[place - 1].step + 1 if place else 0

    def faults_at(self, step: int) -> dict[int, Counter[str]]:
        """Return by seat how often the referee had to step in: rejected, forced, late, forfeit."""
        return {
            seat: Counter(kind for _, kind in found[: bisect_left(found, (step, ""))])
            for seat, found in self._faults.items()
        }

    def moment(self, step: int) -> Moment:
        """Return the moment after `step` steps."""
        public = self._publics[step]
        return Moment(public, step - bisect_left(self._publics, public))

    def step_of(self, moment: Moment) -> int:
        """Return how many of this timeline's steps are shown at a moment of any perspective."""
        first = bisect_left(self._publics, moment.public)
        last = bisect_right(self._publics, moment.public) - 1
        return max(min(first + moment.private, last), 0)

    @property
    def plies(self) -> int | None:
        """The last ply known, None where no inputs came (they come in the omniscient view alone)."""
        return self._ply

    def step_of_ply(self, ply: int) -> int:
        """Return how many steps are shown when `ply` is to be played."""
        return bisect_left(self._plies, ply)


def _copied(value: Any, depth: int = 3) -> Any:
    """Return an independent copy of a view: its containers anew, the immutable values in them shared.

    Tuples are taken for immutable all through, which makes this a hundred times cheaper than `deepcopy`.
    """
    kind = type(value)
    if kind is list:
        return value.copy() if _immutable(value) else [_copied(item, depth) for item in value]
    if kind is dict:
        items = value.values()
        return (
            value.copy() if _immutable(items) else {key: _copied(item, depth) for key, item in value.items()}
        )
    if kind is set:
        return value.copy()
    if isinstance(value, _IMMUTABLE):
        return value
    if not depth:
        return copy.deepcopy(value)
    twin = copy.copy(value)
    for name in _attributes(value):
        setattr(twin, name, _copied(getattr(value, name), depth - 1))
    return twin


_IMMUTABLE = (type(None), int, float, str, bytes, tuple, frozenset)


def _immutable(items: Iterable[Any]) -> bool:
    return all(issubclass(kind, _IMMUTABLE) for kind in set(map(type, items)))


def _attributes(value: Any) -> list[str]:
    names = [name for kind in type(value).__mro__ for name in kind.__dict__.get("__slots__", ())]
    return [*(name for name in names if hasattr(value, name)), *getattr(value, "__dict__", ())]
