"""The makers of tasks that `arena evolve` may use, by world."""

from agents.curriculum.makers import GridMaker
from games.tasks.text_generate import generate_text


class TextMaker(GridMaker):
    """Makes proven text tasks, like `GridMaker`: children of the parent by edits, or new ones by knobs."""

    name = "curriculum-text-2"
    generate = staticmethod(generate_text)


def maker_for(world: str) -> GridMaker:
    """Return the maker of the tasks of `grid` or `text`."""
    return TextMaker() if world == "text" else GridMaker()
