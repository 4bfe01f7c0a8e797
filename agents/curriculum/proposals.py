"""Tasks that somebody proposes, such as a policy: written as JSON, or chosen among edits of a parent.

What is proposed is read, bounded, solved and measured like any task; what it says of itself (difficulty, skills,
generator, parent) counts for nothing. A refusal is a reason, one of `REASONS`, and one line in words.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from agents.curriculum.curve import Axes
from agents.curriculum.makers import Drawn, SpecMaker
from agents.curriculum.rows import Memory
from agents.curriculum.strategies import Request
from games.errors import BadTask
from games.rng import derive_seed
from games.tasks.difficulty import measured
from games.tasks.edits import edit_names, vary
from games.tasks.spec import DIMENSIONS, TaskSpec

MAX_NODES = 50_000
PARENT_ROWS = 40
"""Near misses and solved tasks of a skill among which a parent is looked for."""
MALFORMED, OTHER_WORLD, UNSOLVABLE, TRIVIAL, OTHER_SKILL, NO_OFFER = REASONS = (
    "malformed",
    "other world",
    "unsolvable",
    "trivial",
    "other skill",
    "no offer",
)


class Refusal(NamedTuple):
    """Why a proposal is no task: a reason, and one line."""

    reason: str
    words: str


def read_proposal(
    text: str | bytes,
    request: Request,
    *,
    generator: str,
    world: str | None = None,
    parent: str | None = None,
) -> Drawn | Refusal:
    """Read a task that somebody wrote for a request.

    Args:
        text: JSON, perhaps between the fences of a Markdown block.
        request: what was asked for.
        generator: the version of who wrote it; the task bears it.
        world: the world that it must be of; None allows any.
        parent: the hash of the task that was shown as its parent.
    """
    try:
        spec = TaskSpec.from_text(_unfenced(text))
    except BadTask as error:
        return Refusal(MALFORMED, str(error))
    if world is not None and spec.world != world:
        return Refusal(OTHER_WORLD, f"task world: got {spec.world}, {world} was asked for")
    found = measured(spec, max_nodes=MAX_NODES)
    if found is None:
        return Refusal(UNSOLVABLE, "task: not solvable within its budget")
    if not found.difficulty[DIMENSIONS.index("path_length")][1]:
        return Refusal(TRIVIAL, "task: the goal holds at the start")
    if request.skill not in found.skills:
        return Refusal(OTHER_SKILL, f"task: it takes {', '.join(found.skills)}, but not {request.skill}")
    return Drawn.of(replace(found, generator=generator, parent=None if parent == found.hash else parent))


def _unfenced(text: str | bytes) -> str | bytes:
    if isinstance(text, bytes):
        return text
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```") and "\n" in inner:
        inner = inner.partition("\n")[2].removesuffix("```").strip()
    return inner


def parent_for(request: Request, memory: Memory, axes: Axes) -> TaskSpec | None:
    """Return the request's parent, or of the skill's near misses and solved tasks the one nearest to what is asked."""
    if request.parent is not None:
        return memory.task(request.parent)
    level = axes.level(request.difficulty)
    rows = [
        *memory.near_misses(request.skill, limit=PARENT_ROWS),
        *memory.solved(request.skill, limit=PARENT_ROWS),
    ]
    for row in sorted(rows, key=lambda row: (abs(axes.level(row.difficulty) - level), -row.number)):
        spec = memory.task(row.task)
        if spec is not None:
            return spec
    return None


def offers(
    parent: TaskSpec, request: Request, *, seed: int, generator: str, without: frozenset[str] = frozenset()
) -> dict[str, TaskSpec]:
    """Return edits of a parent that take the skill asked for, by name, each proven and measured.

    `without` names edits that are not offered, since they were refused. The same arguments give the same offers.
    """
    found: dict[str, TaskSpec] = {}
    for name in edit_names(parent):
        if name in without:
            continue
        child = vary(parent, name, seed=derive_seed(seed, "offer"))
        if child is not None and request.skill in child.skills:
            found[name] = replace(child, generator=generator)
    return found


class ProposerMaker(SpecMaker):
    """Asks for tasks: `ask(data)` gets the request as data and answers with a task as JSON text.

    What is wrong with the last answer that was refused stands in `refusal`, in one line, and in the next request as
    `refused`. `name` is the proposer's version: the tasks bear it as their generator.
    """

    def __init__(self, ask: Callable[[Mapping[str, Any]], str | bytes], *, name: str) -> None:
        super().__init__()
        self.name = name
        self.ask = ask
        self.refusal = ""

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        parent = memory.task(request.parent) if request.parent else None
        data = {
            "skill": request.skill,
            "difficulty": dict(zip(DIMENSIONS, request.difficulty, strict=True)),
            "parent": None if parent is None else parent.to_data(),
            "moves": [list(move) for move in request.moves],
            "refused": self.refusal,
            "seed": seed,
        }
        made = read_proposal(self.ask(data), request, generator=self.name, parent=request.parent)
        if isinstance(made, Refusal):
            self.refusal = made.words
            return None
        self.refusal = ""
        return made
