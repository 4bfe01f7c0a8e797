"""Tasks as lines of JSON: what `arena tasks` reads and says of each.

A line is a task, or an object with the task as `spec` and, beside it, an attempt: `actions` (perhaps null) and
perhaps `states`, as `arena tasks solve` writes them. A file may also hold one document over many lines, a task or
a list of them. Reading is bounded whatever comes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from games.errors import BadTask, GameError, TaskTooBig
from games.rng import derive_seed
from games.tasks.check import Attempt, Verdict, check
from games.tasks.difficulty import measure, skills_of
from games.tasks.generate import Knobs, focused, generate
from games.tasks.goals import BROKEN, HOLDS, short
from games.tasks.similarity import Vector, features, similarity
from games.tasks.solver import MAX_NODES, SOLVABLE, UNKNOWN, Solution, solve_task
from games.tasks.spec import MAX_DEPTH, TaskSpec, parse_json
from games.tasks.text_generate import generate_text
from games.tasks.world import FAULTS

MAX_LINE_BYTES = 262_144
MAX_DOCUMENT_BYTES = 16_777_216
MAX_LINE_DEPTH = MAX_DEPTH + 8
"""A task may be as deep as it ever may where it stands in a list, and beside what is known of it."""
TRIES_A_TASK = 20
BESIDE = ("actions", "states", "hash", "task", "text", "status", "length", "nodes", "budget", "memory")
"""What may stand beside `spec`; the first two are read."""

MAKERS = {"grid": generate, "text": generate_text}


@dataclass(frozen=True)
class Item:
    """A task that was read, and the attempt that came with it."""

    line: int
    spec: TaskSpec
    attempt: Attempt | None


def read_items(stream: BinaryIO) -> Iterator[Item | tuple[int, GameError]]:
    """Yield what a stream holds, line by line; for a line that is refused, its number and the error.

    After a line that is too long, or a document that is none, nothing more is read.
    """
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        text = line.strip()
        if not text:
            continue
        if len(line) > MAX_LINE_BYTES:
            yield number, TaskTooBig(f"line {number}: longer than {MAX_LINE_BYTES} bytes")
            return
        if text in (b"{", b"["):
            yield from _read_document(number, line + stream.read(MAX_DOCUMENT_BYTES + 1))
            return
        try:
            yield _item(number, parse_json(text, max_bytes=MAX_LINE_BYTES, max_depth=MAX_LINE_DEPTH))
        except GameError as error:
            yield number, _at(number, error)


def _read_document(number: int, text: bytes) -> Iterator[Item | tuple[int, GameError]]:
    try:
        data = parse_json(text, max_bytes=MAX_DOCUMENT_BYTES, max_depth=MAX_LINE_DEPTH)
    except GameError as error:
        yield number, _at(number, error)
        return
    for i, entry in enumerate(data if isinstance(data, list) else [data]):
        try:
            yield _item(number + i, entry)
        except GameError as error:
            yield number + i, type(error)(f"item {i + 1}: {error}")


def _at(number: int, error: GameError) -> GameError:
    return type(error)(f"line {number}: {error}")


def _item(number: int, data: object) -> Item:
    if not isinstance(data, Mapping) or "spec" not in data:
        return Item(number, TaskSpec.from_data(data), None)
    extra = sorted(key for key in data if key not in ("spec", *BESIDE))
    if extra:
        raise BadTask(f"got the field {short(extra[0])} beside 'spec', allowed are {', '.join(BESIDE)}")
    spec = TaskSpec.from_data(data["spec"])
    if data.get("actions") is None:
        return Item(number, spec, None)
    told = {"task": data.get("task", spec.hash), "actions": data["actions"]}
    if data.get("states") is not None:
        told["states"] = data["states"]
    return Item(number, spec, Attempt.from_data(told))


def made(
    world: str, seed: int, knobs: Knobs, *, count: int, skill: str | None, below: float | None
) -> Iterator[TaskSpec]:
    """Yield `count` tasks of a seed; with `below`, each less alike than that to all before it.

    Raises `BadTask` if the knobs allow no task, or not so many that differ.
    """
    knobs = knobs if skill is None else focused(knobs, skill)
    kept: list[Vector] = []
    found = number = 0
    while found < count:
        if number >= TRIES_A_TASK * count:
            raise BadTask(
                f"max-similarity: got {below}, only {found} of {count} tasks so different "
                f"were found among {number}; raise it, or turn the knobs"
            )
        spec = MAKERS[world](derive_seed(seed, "tasks", number), knobs)
        number += 1
        if below is not None:
            vector = features(spec)
            if any(similarity(vector, other) >= below for other in kept):
                continue
            kept.append(vector)
        found += 1
        yield spec


def solved(item: Item, *, max_nodes: int = MAX_NODES) -> dict[str, Any]:
    """Return what the solver says of a task: an attempt beside its `spec`, which `read_items` reads again."""
    found = solve_task(item.spec, max_nodes=max_nodes)
    return {
        "task": item.spec.hash,
        "status": found.status,
        "length": found.length,
        "nodes": found.nodes,
        "actions": None if found.plan is None else list(found.plan),
        "spec": item.spec.to_data(),
    }


def checked(item: Item, *, max_nodes: int = MAX_NODES) -> dict[str, Any]:
    """Return whether an attempt solves its task; for a task alone, whether it is what it says.

    A task alone is `ok` if it is solvable within its budget in at least one step, and its difficulty, where it
    says one, is as measured.
    """
    head: dict[str, Any] = {"line": item.line, "task": item.spec.hash}
    if item.attempt is not None:
        verdict: Verdict = check(item.spec, item.attempt)
        return {**head, "ok": verdict.success, "reason": verdict.reason, "verdict": verdict.to_data()}
    found = solve_task(item.spec, max_nodes=max_nodes)
    reason = _fault_of(item.spec, found, max_nodes)
    said: dict[str, Any] = {"status": found.status, "length": found.length}
    if found.plan:
        world = item.spec.make_world()
        said["skills"] = list(skills_of(world, item.spec.goal, plan=found.plan))
        said["difficulty"] = measure(world, item.spec.goal, budget=item.spec.budget, plan=found.plan)
    return {**head, "ok": reason is None, "reason": reason or "solvable and as it says", **said}


def _fault_of(spec: TaskSpec, found: Solution, max_nodes: int) -> str | None:
    if found.status == UNKNOWN:
        return f"not decided within {max_nodes} nodes"
    if found.status != SOLVABLE or found.plan is None:
        return f"cannot be solved in {spec.budget} steps"
    if not found.plan:
        return "the goal holds at the start"
    world = spec.make_world()
    true = measure(world, spec.goal, budget=spec.budget, plan=found.plan)
    for name, value in spec.difficulty:
        if abs(true[name] - value) > 1e-9:
            return f"difficulty {name}: says {value:g}, measured is {true[name]:g}"
    return None


@dataclass(frozen=True)
class Frame:
    """One step as it is shown."""

    step: int
    action: str | None
    """What was done; None at step 0."""
    picture: str
    goal: str
    """How the goal stands, in words."""

    def to_data(self) -> dict[str, Any]:
        """Return JSON-compatible data."""
        return {"step": self.step, "action": self.action, "picture": self.picture, "goal": self.goal}


def frames(spec: TaskSpec, actions: tuple[str, ...] = ()) -> Iterator[Frame]:
    """Yield the initial state and what each action makes of it, until the task is decided.

    An action that cannot be done ends the frames with a word of why; what follows it is not played.
    """
    world, goal = spec.make_world(), spec.goal
    state = world.initial()
    progress = goal.start(world.facts(state))
    yield Frame(0, None, world.render(state), _standing(spec, progress))
    for step, action in enumerate(actions[: spec.budget], start=1):
        fault = world.fault(state, action)
        if fault is not None:
            yield Frame(step, action, world.render(state), f"refused: {FAULTS[fault]}")
            return
        state = world.step(state, action)
        progress = goal.fold(progress, world.facts(state))
        lost = world.lost(state)
        yield Frame(step, action, world.render(state), lost or _standing(spec, progress))
        if lost or goal.status(progress) in (HOLDS, BROKEN):
            return


def _standing(spec: TaskSpec, progress: Any) -> str:
    status = spec.goal.status(progress)
    if status == HOLDS:
        return "solved"
    part = spec.goal.part(spec.goal.culprit(progress))
    return f"{'broken' if status == BROKEN else 'open'}: {part.words()}"
