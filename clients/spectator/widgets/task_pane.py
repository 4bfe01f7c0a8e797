"""One task of a run: its words, its map at a step of an attempt, and the verdict."""

from clients.spectator.drawing import Line, crop, wrap
from clients.spectator.runs import TaskTold
from clients.spectator.widgets.lines import Lines
from clients.spectator.widgets.walk import Walk
from games.text import neutralise


class TaskPane(Lines):
    """Shows a task and an attempt at it. A task is opened at the end of its last attempt."""

    DEFAULT_CSS = """
    TaskPane {
        padding: 0 1;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown: TaskTold | None = None
        self.step = 0
        self._try = 0
        self._walk: Walk | None = None

    @property
    def steps(self) -> int:
        """How many steps the attempt has."""
        return 0 if self._walk is None else self._walk.steps

    def show(self, task: TaskTold | None) -> None:
        """Show another task; the same one stays at its step."""
        if task is None or self.shown is None or task.key != self.shown.key or task.tries != self.shown.tries:
            self.shown = task
            self._open(0 if task is None else len(task.tries) - 1)
        elif task != self.shown:
            self.shown = task
            self.redraw()

    def go(self, step: int) -> None:
        """Show a step of the attempt."""
        self.step = min(max(step, 0), self.steps)
        self.redraw()

    def turn(self, by: int) -> None:
        """Show another attempt at the task."""
        if self.shown is not None and self.shown.tries:
            self._open((self._try + by) % len(self.shown.tries))

    def _open(self, index: int) -> None:
        task = self.shown
        self._try = max(index, 0)
        if task is None:
            self._walk = None
        else:
            actions = task.tries[self._try].actions if task.tries else ()
            self._walk = Walk(task.spec, actions)
        self.step = self.steps
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        task, walk = self.shown, self._walk
        if task is None or walk is None:
            return []
        lines: list[Line] = [[(part, "text bold")] for part in wrap(neutralise(task.spec.text), width)]
        lines += [*self._verdict(task, width), [], walk.head(self.step)]
        if self.steps:
            lines.append(walk.track(self.step, width=width))
        lines += walk.map(self.step, width=width)
        about = f"similarity {task.similarity:.2f}"
        measured = "  ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in task.spec.difficulty)
        lines += [[], *([(part, "dim")] for part in wrap(f"{measured}  {about}".strip(), width))]
        return [crop(line, width) for line in lines]

    def _verdict(self, task: TaskTold, width: int) -> list[Line]:
        if task.quarantine:
            return [[(part, "warn")] for part in wrap(neutralise(f"⊘ {task.quarantine}"), width)]
        if not task.tries:
            words = "held out for the test set" if task.purpose == "test" else "nobody attempted it"
            return [[(words, "dim")]]
        tried = task.tries[self._try]
        sign, style = ("◌", "warn") if tried.fault else ("✔", "good") if tried.success else ("✘", "evil")
        which = f"try {self._try + 1} of {len(task.tries)}: " if len(task.tries) > 1 else ""
        return [[(part, style)] for part in wrap(neutralise(f"{sign} {which}{tried.words}"), width)]
