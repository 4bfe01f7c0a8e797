"""A task's world, an attempt in it step by step, and the signs of its map."""

from collections.abc import Sequence
from functools import cached_property

from clients.spectator.drawing import Line, wrap
from games.tasks.check import Replay, replay
from games.tasks.spec import TaskSpec
from games.text import neutralise

UNKNOWN_ACTION = "(no action of this world)"
"""Stands for words of whoever made the attempt: they are not shown."""
HUES = {
    "r": "seat7", "g": "seat2", "b": "seat0", "y": "seat4", "p": "seat6", "o": "seat1", "w": "text", "x": "dim",
}  # fmt: skip
"""Styles by the second character of a mark on the grid's map, which stands for a colour."""
SIGNS = (
    ("##", "dim", "wall"),
    ("@", "accent bold", "the actor"),
    ("E", "text bold", "the exit"),
    ("k", "text", "a key; this and what follows with the first letter of its colour (grey is x)"),
    ("D  /", "text", "a door, locked and open"),
    ("B  u", "text", "a box, closed and open"),
    ("g", "text", "a gem"),
    ("p", "text", "a pad"),
    ("!", "error", "a patrol, with the way it goes next"),
    ("X", "error", "where a patrol caught the actor"),
)
"""The signs of the grid's map: sign, style, meaning."""


class Walk:
    """An attempt at a task, replayed.

    Args:
        spec: the task.
        actions: the attempt's; none shows the world as it is at first.
    """

    def __init__(self, spec: TaskSpec, actions: Sequence[str] = ()) -> None:
        self.spec = spec
        self.actions = tuple(actions)
        self.world = spec.make_world()

    @cached_property
    def played(self) -> Replay:
        """The replay, up to the step at which it ended."""
        return replay(self.spec, self.actions, world=self.world)

    @property
    def steps(self) -> int:
        """How many steps were played."""
        return len(self.played.states) - 1

    def action(self, step: int) -> str:
        """Return what was done in a step, from 1; words that the world does not know are not quoted."""
        action = self.actions[step - 1]
        return neutralise(action) if self.world.act_kind(action) is not None else UNKNOWN_ACTION

    def news(self, step: int) -> tuple[list[str], list[str]]:
        """Return the facts that a step made true, and those that it ended."""
        before, after = (self.world.facts(self.played.states[at]) for at in (step - 1, step))
        return tuple(  # type: ignore[return-value]
            sorted(neutralise(" ".join(fact)) for fact in facts) for facts in (after - before, before - after)
        )

    def head(self, step: int) -> Line:
        """Return the line above the map: the step, what was done in it, and what came of it."""
        line: Line = [(f"step {step} of {self.steps}", "text bold")]
        if not step:
            return [*line, ("  the start", "dim")]
        now, over = self.news(step)
        line.append((f"  {self.action(step)}", "accent"))
        line += [(f"  + {fact}", "good") for fact in now]
        line += [(f"  − {fact}", "warn") for fact in over if not fact.startswith("at ")]
        return line

    def track(self, step: int, *, width: int) -> Line:
        """Return the attempt as a line, with a handle at a step and ticks at `changes`."""
        cells = min(width, max(2 * self.steps + 1, 2))
        marks = {self._cell(at, cells) for at in self.changes}
        handle = self._cell(step, cells)
        line: Line = []
        for cell in range(cells):
            if cell == handle:
                line.append(("●", "accent bold"))
            elif cell in marks:
                line.append(("◆", "good" if cell < handle else "dim"))
            else:
                line.append(("━", "accent") if cell < handle else ("─", "dim"))
        return line

    @cached_property
    def changes(self) -> tuple[int, ...]:
        """The steps in which a fact other than the actor's place changed."""
        return tuple(
            step
            for step in range(1, self.steps + 1)
            if any(not fact.startswith("at ") for facts in self.news(step) for fact in facts)
        )

    def _cell(self, step: int, cells: int) -> int:
        return round((cells - 1) * step / self.steps) if self.steps else 0

    def map(self, step: int, *, width: int) -> list[Line]:
        """Return the world as it is after a step."""
        state = self.played.states[step]
        if self.spec.world == "grid":
            seen = self.world.observe(state)
            held = ", ".join(seen["holding"]) or "nothing"
            how = ("caught by a patrol", "error") if seen["caught"] else (f"holding {held}", "dim")
            return [*(_marks(row) for row in seen["rows"]), [how]]
        rows = self.world.render(state).rstrip("\n").split("\n")
        return [[(part, "text")] for row in rows for part in wrap(neutralise(row), width)]


def _marks(row: str) -> Line:
    return [
        span for at in range(0, len(row), 3) for span in ((row[at : at + 2], _style(row[at:])), (" ", ""))
    ]


def _style(mark: str) -> str:
    first, second = mark[:1], mark[1:2]
    if first in "#.":
        return "dim"
    if first in "!X":
        return "error bold"
    if first == "@":
        return "accent bold"
    return f"{HUES.get(second, 'text')} bold"
