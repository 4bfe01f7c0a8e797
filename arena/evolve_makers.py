"""The makers of tasks that `arena evolve` may use, by world."""

from agents.curriculum.makers import Drawn, GridMaker, edited, knobs_for
from agents.curriculum.rows import Memory
from agents.curriculum.strategies import Request
from games.errors import BadTask
from games.tasks.text_generate import generate_text


class TextMaker(GridMaker):
    """Makes proven text tasks, like `GridMaker`: children of the parent by edits, or new ones by knobs."""

    name = "curriculum-text-1"

    def make(self, request: Request, *, seed: int, memory: Memory) -> Drawn | None:
        parent = memory.task(request.parent) if request.parent else None
        spec = None if parent is None else edited(parent, request, seed)
        if spec is None or request.skill not in spec.skills:
            try:
                spec = generate_text(seed, knobs_for(request))
            except BadTask:
                return None
        return Drawn.of(spec) if request.skill in spec.skills else None


def maker_for(world: str) -> GridMaker:
    """Return the maker of the tasks of `grid` or `text`."""
    return TextMaker() if world == "text" else GridMaker()
