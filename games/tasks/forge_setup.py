"""Forge's options, its words, and the pool of parent tasks whose edits are offered to the setters."""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pydantic import Field

from games.base import GameOptions
from games.errors import BadTask
from games.rng import derive_seed
from games.tasks.edits import edit_names, vary
from games.tasks.forge_course import Course, course_of
from games.tasks.generate import Knobs, generate
from games.tasks.similarity import NEAR_DUPLICATE, similarity
from games.tasks.solver import SOLVABLE, UNKNOWN, solve_task
from games.tasks.spec import TaskSpec

DUEL, ROUND_TABLE, RELAY = MODES = ("duel", "round-table", "relay")
TEAMS = ("red", "blue", "green", "yellow", "purple", "orange")
"""A side a seat in a duel and at a round table; the first two are the teams of a relay."""
SMITH = "smith"
"""The one role there is: everyone sets and everyone solves."""

SET, ATTEMPT, OVER = "set", "attempt", "over"
DIRECT, HINT, RUN, DONE = "direct", "hint", "run", "done"
"""Phases of a round, and stages of a team in a leg."""

SOLVED, LOST, BROKEN_GOAL, OUT = "solved", "lost", "broken", "out"
"""How an attempt ends: `out` of its step budget."""

FINE = 0.5
"""What an invalid task costs its setter."""
FULL_NOVELTY = 0.75
"""Up to this similarity to every known task a task counts as new; from there novelty falls to 0 at `NEAR_DUPLICATE`."""
MAX_NODES = 20_000
"""Nodes within which a task of a setter's own must be proven solvable."""
MAX_TASK_CHARS = 16_000
MAX_SUBTASKS = 12
SILENT = "silent"

POOL = 16
VARIANTS = 4


class ForgeOptions(GameOptions):
    """Options of Forge; see the rules for what each one does."""

    mode: Literal["duel", "round-table", "relay"] = Field(
        "round-table", description="duel (2 seats), round-table (2 to 6) or relay (two teams of 2 to 4)"
    )
    rounds: int = Field(2, ge=1, le=8, description="rounds of setting and solving, or legs of a relay")
    attempts: int = Field(
        8,
        ge=1,
        le=32,
        description="fewest attempts at each task; several by each solver where solvers are few",
    )
    setting: Literal["offers", "json"] = Field(
        "offers", description="setters choose among offered edits, or write a task as JSON (or name an offer)"
    )
    prove: bool = Field(False, description="whether a task pays its setter only if it solves it itself")
    max_budget: int = Field(40, ge=2, le=200, description="the largest step budget that a set task may have")
    radius: int = Field(2, ge=1, le=8, description="how far a runner sees, in cells (relay)")
    leash: int = Field(10, ge=1, le=50, description="steps after which a subtask ends unfinished (relay)")
    hint_chars: int = Field(60, ge=0, le=300, description="characters of the hint to a subtask (relay)")


class Offer(NamedTuple):
    """A parent of the pool and its proven edits, by name."""

    parent: Course
    edits: dict[str, Course]


@lru_cache(maxsize=POOL)
def pool_task(number: int) -> Course:
    """Return parent task `number` of the pool, 0 … POOL - 1: small ones, with different skills."""
    knobs = Knobs(
        side=6 + number % 3,
        objects=number % 4,
        rule_depth=1 + number % 3,
        distractors=number % 2,
        obstacles=2 + number % 5,
        patrols=1 if number % 5 == 4 else 0,
        deliver=number % 4 == 1,
        path_length=8 + number % 7,
        time_pressure=0.6,
    )
    course = course_of(generate(derive_seed(number, "forge pool 1"), knobs))
    assert course is not None
    return course


@lru_cache(maxsize=POOL * VARIANTS)
def offer(number: int, variant: int) -> Offer:
    """Return the edits of parent `number`, in one of `VARIANTS` variants; each is proven and no near-duplicate."""
    parent = pool_task(number)
    edits: dict[str, Course] = {}
    for name in edit_names(parent.spec):
        child = vary(parent.spec, name, seed=variant)
        course = None if child is None else course_of(child)
        if course is None or course.spec.budget > MAX_OFFER_BUDGET:
            continue
        if similarity(course.vector, parent.vector) < NEAR_DUPLICATE:
            edits[name] = course
    return Offer(parent, edits)


MAX_OFFER_BUDGET = 40
"""No offered edit has a larger step budget: what is larger is not offered."""


def offer_facts(made: Offer) -> list[dict[str, Any]]:
    """Return what is told of an offer: for each edit what it takes, in numbers and skills."""
    facts = []
    for name, course in made.edits.items():
        difficulty = dict(course.spec.difficulty)
        facts.append(
            {
                "edit": name,
                "optimal": course.optimal,
                "budget": course.spec.budget,
                "objects": round(difficulty["objects"]),
                "rules": round(difficulty["rule_depth"]),
                "distractors": round(difficulty["distractors"]),
                "skills": list(course.spec.skills),
            }
        )
    return facts


def novelty(likeness: float) -> float:
    """Return what a task of that similarity to the most similar known task is worth, 0 to 1."""
    return round(min(1.0, max(0.0, (NEAR_DUPLICATE - likeness) / (NEAR_DUPLICATE - FULL_NOVELTY))), 4)


def per_solver(attempts: int, solvers: int) -> int:
    """Return how often each of `solvers` attempts a task, so that there are at least `attempts` in all."""
    return -(-attempts // solvers)


def queue_of(seat: int, seats: int, *, valid: tuple[int, ...], each: int, prove: bool) -> tuple[int, ...]:
    """Return whose tasks `seat` attempts, in order: its own first where it must prove it, then the others'."""
    own = (seat,) if prove and seat in valid else ()
    others = [(seat + k) % seats for k in range(1, seats)]
    return own + tuple(other for other in others if other in valid for _ in range(each))


def read_task(text: str, *, max_budget: int) -> Course:
    """Return the task that a setter wrote as JSON, proven solvable. Raises `BadTask`, which says why not."""
    spec = TaskSpec.from_text(text)
    if spec.budget > max_budget:
        raise BadTask(f"task budget: got {spec.budget}, at most {max_budget} steps are allowed here")
    found = solve_task(spec, max_nodes=MAX_NODES)
    if found.status == UNKNOWN:
        raise BadTask(f"task: could not be proven solvable by looking at {MAX_NODES} nodes")
    if found.status != SOLVABLE or found.plan is None:
        raise BadTask(f"task: cannot be solved within its {spec.budget} steps")
    if not found.plan:
        raise BadTask("task: is solved before the first step")
    course = course_of(spec, plan=found.plan)
    assert course is not None
    return course
