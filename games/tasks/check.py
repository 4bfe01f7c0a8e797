"""The deterministic verdict on an attempt: two layers, and the reason in words.

`rules` replays the actions from the initial state and folds the goal over the facts of every step; it believes no
reported state, and an attempt whose reports differ from the replay is refused. `machine` is a finite automaton
over the kinds of the actions alone: it knows nothing of places and states, only what any solution must contain
(as many takes as there are things to get hold of, no more drops than takes, …). An attempt succeeds if both accept it.

The verdict is bounded by the task's step budget, whatever is handed in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from games.errors import BadTask
from games.tasks.goals import BROKEN, HOLDS, Facts, Goal, Never, Part, Predicate, Progress, short
from games.tasks.spec import MAX_BUDGET, TaskSpec
from games.tasks.world import FAULTS, World

KINDS = (
    "solved",
    "unmet",
    "broken",
    "lost",
    "illegal",
    "over_budget",
    "after_end",
    "wrong_task",
    "false_report",
    "machine",
)
"""How a verdict can come out; only `solved` is a success."""

MAX_ACTION_CHARS = 200
_ACT_OF = {"has": "take", "opened": "open", "delivered": "drop", "at": "move", "visited": "move"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """What somebody says they did. `states[i]` is the reported state after `i` actions (lists stand for tuples)."""

    task: str
    """`TaskSpec.hash` of the task attempted."""
    actions: tuple[str, ...]
    states: tuple[Any, ...] | None = None

    @classmethod
    def from_data(cls, data: object) -> Self:
        """Read an attempt from decoded JSON: `task`, `actions`, perhaps `states`. Raises `BadTask`."""
        if not isinstance(data, Mapping) or not {"task", "actions"} <= data.keys() <= {
            "task",
            "actions",
            "states",
        }:
            raise BadTask(
                f"attempt: got {short(data)}, an object with task, actions and perhaps states is needed"
            )
        if not isinstance(data["task"], str):
            raise BadTask(f"attempt task: got {short(data['task'])}, a task's hash is needed")
        for field in ("actions", "states"):
            value = data.get(field)
            if value is not None and (not isinstance(value, list) or len(value) > 2 * MAX_BUDGET):
                raise BadTask(
                    f"attempt {field}: got {short(value)}, a list of at most {2 * MAX_BUDGET} is needed"
                )
        for action in data["actions"] or ():
            if not isinstance(action, str) or len(action) > MAX_ACTION_CHARS:
                raise BadTask(
                    f"attempt actions: got {short(action)}, at most {MAX_ACTION_CHARS} characters are needed"
                )
        states = data.get("states")
        return cls(data["task"], tuple(data["actions"] or ()), None if states is None else tuple(states))

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data; `from_data` reads them back."""
        data: dict[str, Any] = {"task": self.task, "actions": list(self.actions)}
        if self.states is not None:
            data["states"] = [_listed(state) for state in self.states]
        return data


class Layer(NamedTuple):
    """What one layer found: an item of the chain of evidence."""

    name: str
    accepts: bool
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of an attempt."""

    kind: str
    """One of `KINDS`."""
    reason: str
    """One line: what happened, at which step, which part of the goal."""
    step: int
    """The step at which it was decided (0 before the first action)."""
    part: tuple[int, ...] | None
    """The path of the part of the goal that is to blame (`Goal.part`), if one is."""
    layers: tuple[Layer, ...]
    """What each layer found, in order."""

    @property
    def success(self) -> bool:
        """Whether the task was solved."""
        return self.kind == "solved"

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data, the chain of evidence included."""
        return {
            "success": self.success,
            "kind": self.kind,
            "reason": self.reason,
            "step": self.step,
            "part": None if self.part is None else list(self.part),
            "layers": [layer._asdict() for layer in self.layers],
        }


class Replay(NamedTuple):
    """A replay up to the step at which it ended: `states`, `facts` and `progress` have one item a step, from 0."""

    kind: str
    reason: str
    step: int
    part: tuple[int, ...] | None
    states: tuple[Any, ...]
    progress: tuple[Progress, ...]


def check(spec: TaskSpec, attempt: Attempt, *, world: World[Any] | None = None) -> Verdict:
    """Judge an attempt at a task. `world` is `spec.make_world()`, if it is at hand."""
    world = spec.make_world() if world is None else world
    if attempt.task != spec.hash:
        reason = f"the attempt is at task {attempt.task[:12]}, this is task {spec.hash[:12]}"
        return Verdict("wrong_task", reason, 0, None, (Layer("rules", False, reason),))
    played = replay(spec, attempt.actions, world=world)
    kind, reason, step, part = played[:4]
    if attempt.states is not None:
        false = _first_false(attempt.states, played.states, len(attempt.actions))
        if false is not None and (kind == "solved" or false <= step):
            kind, step, part = "false_report", false, None
            reason = f"step {false}: the reported state is not the one that the actions lead to"
    rules = Layer("rules", kind == "solved", reason)
    refusal = Machine(spec.goal, world.facts(world.initial())).refusal(world, attempt.actions[: spec.budget])
    machine = Layer("machine", refusal is None, refusal or "the actions contain what a solution must contain")
    if rules.accepts and refusal is not None:
        kind, reason = "machine", refusal
    return Verdict(kind, reason, step, part, (rules, machine))


def replay(spec: TaskSpec, actions: Sequence[str], *, world: World[Any] | None = None) -> Replay:
    """Play `actions` from the initial state until something decides, and say what."""
    world = spec.make_world() if world is None else world
    goal, state = spec.goal, world.initial()
    states, progress = [state], [goal.start(world.facts(state))]

    def ended(kind: str, words: str, part: tuple[int, ...] | None = None) -> Replay:
        return Replay(kind, words, len(states) - 1, part, tuple(states), tuple(progress))

    for i, action in enumerate(actions, start=1):
        if goal.status(progress[-1]) == HOLDS:
            return ended("after_end", f"the task was solved at step {i - 1}, yet more actions follow")
        if i > spec.budget:
            part = goal.culprit(progress[-1])
            words = goal.part(part).words()
            return ended(
                "over_budget", f"step {i}: only {spec.budget} steps are allowed, '{words}' was open", part
            )
        fault = world.fault(state, action)
        if fault is not None:
            return ended("illegal", f"step {i}: {short(action)} cannot be done, {FAULTS[fault]}")
        state = world.step(state, action)
        states.append(state)
        progress.append(goal.fold(progress[-1], world.facts(state)))
        lost = world.lost(state)
        if lost is not None:
            return ended("lost", f"step {i}: {lost}")
        if goal.status(progress[-1]) == BROKEN:
            part = goal.culprit(progress[-1])
            return ended("broken", f"step {i}: '{goal.part(part).words()}' was broken", part)
    if goal.status(progress[-1]) == HOLDS:
        return ended("solved", f"solved at step {len(states) - 1} of {spec.budget}")
    part = goal.culprit(progress[-1])
    return ended("unmet", _unmet(goal, progress, part), part)


def _unmet(goal: Goal, progress: Sequence[Progress], part: tuple[int, ...]) -> str:
    since = len(progress) - 1
    while since and goal.culprit(progress[since - 1]) == part:
        since -= 1
    plural = "" if len(progress) == 2 else "s"
    return f"'{goal.part(part).words()}' was open from step {since} to the end, after {len(progress) - 1} step{plural}"


def _first_false(reported: Sequence[Any], true: Sequence[Any], actions: int) -> int | None:
    """Return the first step whose report is not the state there, or the first one reported beyond the actions."""
    for step, (claim, state) in enumerate(zip(reported, true, strict=False)):
        if _listed(claim) != _listed(state):
            return step
    return actions + 1 if len(reported) > actions + 1 else None


def _listed(value: Any) -> Any:
    """Return a state as JSON-compatible data: tuples become lists, sets sorted lists."""
    if isinstance(value, tuple | list):
        return [_listed(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted((_listed(item) for item in value), key=repr)
    return value


class Machine:
    """What any solution must contain, as an automaton over kinds of action.

    Its state is how many acts of each kind are still owed (never below 0) and how many things are in hand.
    Initially owed is one act for each different fact that the goal needs and that does not hold at the start.
    """

    __slots__ = ("carried", "owed")

    def __init__(self, goal: Goal, facts: Facts) -> None:
        needed = {("at", *fact[1:]) if fact[0] == "visited" else fact for fact in _needed(goal.root)}
        self.owed = dict.fromkeys(("take", "open", "drop", "move"), 0)
        for fact in needed:
            if fact not in facts:
                self.owed[_ACT_OF[fact[0]]] += 1
        self.carried = sum(1 for fact in facts if fact[0] == "has")

    def feed(self, kind: str | None) -> str | None:
        """Take one act in. Return why it is refused, or None."""
        if kind is None:
            return "it is no action of this world"
        if kind == "drop":
            if not self.carried:
                return "it puts down more than was taken"
            self.carried -= 1
        if kind == "take":
            self.carried += 1
        if self.owed.get(kind):
            self.owed[kind] -= 1
        return None

    def refusal(self, world: World[Any], actions: Sequence[str]) -> str | None:
        """Feed every action. Return in words why the whole is no solution, or None."""
        for i, action in enumerate(actions, start=1):
            why = self.feed(world.act_kind(action))
            if why is not None:
                return f"step {i}: {short(action)}, {why}"
        owed = [f"{count} more of kind {kind}" for kind, count in self.owed.items() if count]
        return f"a solution has at least {', '.join(owed)}" if owed else None


def _needed(part: Part) -> set[tuple[str, ...]]:
    """Return the facts that must hold at some step for the part to hold (what is forbidden left out)."""
    if isinstance(part, Predicate):
        return {part.fact}
    if isinstance(part, Never):
        return set()
    return set().union(*(_needed(inner) for inner in part.parts()))


class Cheat(NamedTuple):
    """An attempt that must be refused, with what is wrong about it."""

    name: str
    attempt: Attempt


def cheats(
    spec: TaskSpec, plan: Sequence[str], *, other: tuple[TaskSpec, Sequence[str]] | None = None
) -> list[Cheat]:
    """Make cheating attempts out of a shortest plan; `other` is another task with a plan of its own.

    Every one of them must be refused. That holds for shortest plans alone: whatever is left out of one leaves fewer
    actions than any solution has.
    """
    world, task, plan = spec.make_world(), spec.hash, tuple(plan)
    honest = replay(spec, plan, world=world).states
    found = [
        Cheat("over_budget", Attempt(task, ("wait",) * (spec.budget + 1 - len(plan)) + plan)),
        Cheat("after_end", Attempt(task, (*plan, "wait"))),
        Cheat("unknown_action", Attempt(task, ("solve the task", *plan[1:]))),
    ]
    for i, action in enumerate(plan):
        kind = world.act_kind(action)
        short_plan = plan[:i] + plan[i + 1 :]
        if kind in ("take", "open", "drop"):
            found.append(Cheat(f"{kind}_skipped", Attempt(task, short_plan)))
        bad = next(
            (a for a in dict.fromkeys((*plan, *_ASKED)) if world.fault(honest[i], a) is not None), None
        )
        if bad is not None:
            found.append(Cheat("illegal_action", Attempt(task, (*plan[:i], bad, *plan[i:]))))
    if plan:
        found.append(Cheat("not_entered", Attempt(task, plan[:-1])))
        found.append(Cheat("nothing_done", Attempt(task, (), (honest[-1],))))
    if len(plan) > 1:
        found.append(Cheat("teleport", Attempt(task, plan[-1:], (honest[0], honest[-1]))))
        half = len(plan) // 2
        jumped = Attempt(task, plan[:half] + plan[half + 1 :], honest[: half + 1] + honest[half + 2 :])
        found.append(Cheat("teleport", jumped))
        told = (*honest[:half], honest[-1], *honest[half + 1 :])
        if told[half] != honest[half]:
            found.append(Cheat("false_report", Attempt(task, plan, told)))
    if other is not None and other[0].hash != task:
        found.append(Cheat("other_task", Attempt(other[0].hash, tuple(other[1]))))
    return found


_ASKED = ("up", "down", "left", "right", "take", "open", "drop")
"""Actions to look for a fault among, besides those of the plan; a world that does not know one refuses it."""
