"""What a run of `arena evolve` keeps of itself, inside its experience store.

A generation is committed as one transaction: its tasks, its attempts, its own log entry and the run's state, all or
none. So a process that is killed loses the generation that it was in, and that one is done again exactly alike.

The state names the generations that are in force, the lineage. A roll-back shortens it: what came after stays in the
store, in quarantine, and counts for nothing any more. Numbers are never used twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from agents.curriculum.rows import AttemptRow, MemoryInRam, TaskRow
from agents.memory import Memory
from arena.errors import EvolveError
from games.tasks.spec import TaskSpec

STATE = "evolve"
STATE_VERSION = 1
HELD_OUT = ("probe", "test")
"""Purposes of attempts at what must never be trained on."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What must be rolled back together: the configuration (and so the generator), the judge, the actor's weights."""

    id: int
    generation: int
    """The first generation that was made with it."""
    digest: str
    """`EvolveConfig.digest`."""
    config: dict[str, Any]
    generator: str
    judge: str
    actor: str
    policy: str
    proposer: str = ""
    """The weights behind the proposer, if there is one."""

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(slots=True)
class State:
    """Where a run stands."""

    lineage: list[int] = field(default_factory=list)
    """The generations in force, in order."""
    next_generation: int = 0
    next_task: int = 0
    next_attempt: int = 0
    seconds: float = 0.0
    """That were spent so far, between start and end of generations."""
    tasks: int = 0
    """That were attempted so far, whether or not they were rolled back since."""
    bundle: int = -1
    """The one in force."""
    bundles: list[Bundle] = field(default_factory=list)
    rollbacks: list[dict[str, Any]] = field(default_factory=list)
    regression: dict[str, Any] | None = None
    """The latest judge regression, in short."""
    verdicts: list[tuple[str, bool]] = field(default_factory=list)
    """What the judge said in regressions, by case: it must not disagree with itself."""
    probes: list[str] = field(default_factory=list)
    """Hashes of the fixed tasks."""
    raised: list[str] = field(default_factory=list)
    """Kinds of the alerts that are on."""
    pinned: bool = False
    """Whether a roll-back holds: the run then goes on with the bundle in force, whatever the file says."""

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data; `from_data` reads them back."""
        data = {one.name: getattr(self, one.name) for one in fields(self)}
        return {**data, "version": STATE_VERSION, "bundles": [bundle.to_data() for bundle in self.bundles]}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Read what `to_data` wrote. Raises `EvolveError` for that of a newer version."""
        version = data.get("version")
        if version != STATE_VERSION:
            raise EvolveError(f"run: its state has version {version!r}, this program reads {STATE_VERSION}")
        values = {one.name: data[one.name] for one in fields(cls)}
        values["bundles"] = [Bundle(**bundle) for bundle in data["bundles"]]
        values["verdicts"] = [(case, accepted) for case, accepted in data["verdicts"]]
        return cls(**values)

    @property
    def current(self) -> Bundle:
        """The bundle in force."""
        return self.bundles[self.bundle]


@dataclass(slots=True)
class Entry:
    """The log of one generation."""

    generation: int
    bundle: int
    tasks: list[TaskRow] = field(default_factory=list)
    attempts: list[AttemptRow] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    standing: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By skill: the ability that the curve found, and the target level, before the generation."""
    truth: dict[str, float] | None = None
    """The true ability by skill after it, where it is known."""
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """Those that were raised in it."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Tasks that were quarantined in it, with the reason."""
    faults: list[str] = field(default_factory=list)
    """Attempts that ended by no doing of the actor, and failures of the proposer's model."""
    proposals: dict[str, Any] = field(default_factory=dict)
    """What the proposer was asked for and what came of it; empty without one."""
    lessons: dict[str, Any] = field(default_factory=dict)
    """Of lessons: `offers` as (attempt, advised, found, told), `said` their texts, and what was `made`, `revived`,
    `retired` (and why), `merged` (into which), `evicted`; how many are `active`."""
    seconds: float = 0.0
    """That the run had taken when it ended."""

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data; `from_data` reads them back."""
        data = {one.name: getattr(self, one.name) for one in fields(self)}
        data["tasks"] = [_values(row) for row in self.tasks]
        data["attempts"] = [_values(row) for row in self.attempts]
        return data

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """Read what `to_data` wrote."""
        tasks = [TaskRow(*map(_value, row)) for row in data["tasks"]]
        attempts = [AttemptRow(*map(_value, row)) for row in data["attempts"]]
        standing = {skill: (ability, target) for skill, (ability, target) in data["standing"].items()}
        return cls(**{**data, "tasks": tasks, "attempts": attempts, "standing": standing})


def _values(row: TaskRow | AttemptRow) -> list[Any]:
    return [getattr(row, one.name) for one in fields(row)]


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class LiveMemory(MemoryInRam):
    """What the generator reads: the lineage's rows, tasks from the store.

    What is held out (fixed tasks, the test set) or in quarantine is neither varied nor reviewed.
    """

    def __init__(self, store: Memory) -> None:
        super().__init__()
        self.store = store
        self.quarantined: set[str] = set()
        self._held_out: set[str] = set()
        self._kept: dict[str, TaskSpec] = {}

    def seen(self, task: str) -> bool:
        return super().seen(task) or bool(self.store.known([task]))

    def add_attempt(self, row: AttemptRow) -> None:
        if row.purpose in HELD_OUT:
            self._held_out.add(row.task)
        super().add_attempt(row)

    def near_misses(self, skill: str, *, limit: int) -> Sequence[AttemptRow]:
        return self._usable(super().near_misses(skill, limit=self.window))[:limit]

    def solved(self, skill: str, *, limit: int) -> Sequence[AttemptRow]:
        more = len(self.quarantined) + len(self._held_out)
        return self._usable(super().solved(skill, limit=limit + more))[:limit]

    def _usable(self, rows: Sequence[AttemptRow]) -> list[AttemptRow]:
        return [row for row in rows if row.task not in self.quarantined and row.task not in self._held_out]

    def task(self, task: str) -> TaskSpec | None:
        found = super().task(task) or self._kept.get(task)
        if found is None and (entry := self.store.task(task)) is not None:
            found = self._kept[task] = entry.spec
        return found


def note(generation: int) -> str:
    """Return the key of a generation's log entry."""
    return f"evolve/{generation:08d}"


def read_state(store: Memory) -> State | None:
    """Return the state of the run whose store this is, if there is one."""
    data = store.get(STATE)
    return None if data is None else State.from_data(data)


def read_entries(store: Memory, lineage: Iterable[int]) -> list[Entry]:
    """Return the log of the generations in force."""
    found = []
    for generation in lineage:
        data = store.get(note(generation))
        if data is None:
            raise EvolveError(f"{store.path}: the log of generation {generation} is missing")
        found.append(Entry.from_data(data))
    return found


def roll_back(store: Memory, state: State, *, generation: int) -> list[str]:
    """Put what followed a generation out of force, and its configuration, judge and weights into force again.

    Returns the hashes of the tasks that went into quarantine. Raises `EvolveError` for a generation not in force.
    """
    if generation not in state.lineage:
        low, high = (state.lineage[0], state.lineage[-1]) if state.lineage else (0, -1)
        raise EvolveError(
            f"roll back: got generation {generation}, in force are generations from {low} to {high}"
            if state.lineage
            else f"roll back: got generation {generation}, the run has none yet"
        )
    place = state.lineage.index(generation) + 1
    kept, dropped = state.lineage[:place], state.lineage[place:]
    before = {row.task for entry in read_entries(store, kept) for row in entry.tasks}
    after = {row.task for entry in read_entries(store, dropped) for row in entry.tasks}
    quarantined = sorted(after - before - set(state.probes))
    (last,) = read_entries(store, [generation])
    state.rollbacks.append(
        {
            "to": generation,
            "dropped": [dropped[0], dropped[-1]] if dropped else [],
            "bundle": last.bundle,
            "from_bundle": state.bundle,
        }
    )
    state.lineage, state.bundle = kept, last.bundle
    state.raised, state.pinned = [], True
    with store.transaction():
        store.set_status(quarantined, "quarantine")
        store.put(STATE, state.to_data())
    return quarantined
