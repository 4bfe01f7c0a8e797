"""The makers of tasks that `arena evolve` may use, by world."""

from agents.curriculum.makers import Drawn, GridMaker, knobs_for
from agents.curriculum.rows import Memory
from agents.curriculum.strategies import Request
from games.errors import BadTask
from games.tasks.edits import EDITS, edit_names, vary
from games.tasks.spec import TaskSpec
from games.tasks.text_generate import generate_text


class TextMaker(GridMaker):
    """Makes proven text tasks, like `GridMaker`: children of the parent by edits, or new ones by knobs."""

    name = "curriculum-text-1"

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        parent = memory.task(request.parent) if request.parent else None
        spec = None if parent is None else _edited(parent, request, seed)
        if spec is None or request.skill not in spec.skills:
            try:
                spec = generate_text(seed, knobs_for(request))
            except BadTask:
                return None
        return Drawn.of(spec) if request.skill in spec.skills else None


def _edited(parent: TaskSpec, request: Request, seed: int) -> TaskSpec | None:
    spec: TaskSpec | None = parent
    for move in request.moves:
        name = next((n for n in edit_names(parent) if (EDITS[n].dimension, EDITS[n].direction) == move), None)
        if spec is not None and name is not None:
            spec = vary(spec, name, seed=seed)
    return None if spec is parent else spec


def maker_for(world: str) -> GridMaker:
    """Return the maker of the tasks of `grid` or `text`."""
    return TextMaker() if world == "text" else GridMaker()
