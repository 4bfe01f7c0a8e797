"""The contract of a world in which tasks are set.

A world is built from a layout (data) and never changes; what changes is its state, a hashable value. One step
is one action. Transitions are deterministic and total: any string may be given as an action, and one that
cannot be done costs a step in which the actor does nothing. Whether an action could be done is asked apart
(`fault`), so that play offers legal actions alone and a verdict refuses the others.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

from games.tasks.goals import Fact, Goal, Vocabulary

S = TypeVar("S", bound=Hashable)

WAIT = "wait"
"""The action that every world knows and that can be done in every state that is not lost."""

FAULTS: Mapping[str, str] = {
    "unknown": "no such action",
    "lost": "nothing can be done any more",
    "blocked": "something is in the way",
    "locked": "a closed door is in the way",
    "nothing": "there is nothing to do that with",
    "no_key": "the key is missing",
    "full": "the hands are full",
    "empty": "the hands are empty",
    "no_place": "nothing can be put down here",
    "occupied": "something lies here already",
}
"""Why an action cannot be done: stable codes, with their words."""


class World(ABC, Generic[S]):
    """A world with its layout. Instances are immutable but for caches; share them freely within a thread."""

    __slots__ = ()

    name: ClassVar[str]
    """What `TaskSpec.world` says."""

    version: ClassVar[str]
    """Raised whenever a transition, a fact or the canonical layout changes."""

    @classmethod
    @abstractmethod
    def parse(cls, layout: object) -> Self:
        """Build the world from JSON-compatible data. Raises `BadLayout` or `TaskTooBig`, in one line."""

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """Return the canonical layout: equal worlds give equal data, and `parse` reads it back."""

    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """Return the names that goals about this world may use, by predicate."""

    @property
    @abstractmethod
    def hazards(self) -> int:
        """How many things move by themselves and can end an attempt."""

    @abstractmethod
    def initial(self) -> S:
        """Return the state at step 0; it is not lost."""

    @abstractmethod
    def legal(self, state: S) -> tuple[str, ...]:
        """Return the actions that can be done, in a fixed order; `wait` among them; none if the state is lost."""

    @abstractmethod
    def fault(self, state: S, action: str) -> str | None:
        """Return why `action` cannot be done, a key of `FAULTS`, or None if it can (it is in `legal`)."""

    @abstractmethod
    def step(self, state: S, action: str) -> S:
        """Return the state one step later. Total; a lost state stays as it is."""

    @abstractmethod
    def facts(self, state: S) -> frozenset[Fact]:
        """Return the facts that hold (`at`, `has`, `opened`, `delivered`; `visited` is the goal's to remember)."""

    @abstractmethod
    def lost(self, state: S) -> str | None:
        """Return in words why the state can never lead anywhere, or None; a lost state solves no task."""

    @abstractmethod
    def act_kind(self, action: str) -> str | None:
        """Return the kind of an action by its words alone: `move`, `take`, `open`, `drop`, `wait`; None if unknown.

        A world gains `has` only by `take`, `opened` only by `open`, `delivered` only by `drop`, and `at` only
        by `move`.
        """

    @abstractmethod
    def observe(self, state: S, *, radius: int | None = None) -> dict[str, Any]:
        """Return what an actor sees, as JSON-compatible data; with `radius`, no farther than that many steps."""

    @abstractmethod
    def render(self, state: S, *, radius: int | None = None) -> str:
        """Return what an actor sees, as text."""

    @abstractmethod
    def useful(self, goal: Goal) -> Callable[[S], tuple[str, ...]]:
        """Return a function from states to a subset of the legal actions, made for `goal`.

        Some shortest plan for `goal` uses these alone, if there is a plan at all: what serves neither the goal
        nor the way (distractors, most of all) is left out of a search.
        """
