"""A run of `arena evolve`, live: its figures, the tasks that it set last, and the attempts at them step by step."""

import time
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import DataTable, Footer

from clients.spectator.drawing import Line
from clients.spectator.guide import hidden
from clients.spectator.runs import RunSource, RunTold, TaskTold
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.polled import PolledScreen, fill, key, key_of
from clients.spectator.widgets.figures import RunFigures
from clients.spectator.widgets.heading import Banner, Heading
from clients.spectator.widgets.table import clock
from clients.spectator.widgets.task_pane import TaskPane
from clients.spectator.widgets.walk import SIGNS
from games.text import clean_name

LIVE_POLL_S = 1.0
"""Seconds between two looks at the files of a run."""
EASE = 10
"""A look is followed by a wait of so many times its processor time at least: who watches must not slow the run."""
WIDE, ROOMY = 110, 150
"""Columns from which on figures and tasks stand side by side, and from which on with room."""


def standing(under_way: bool | None) -> tuple[str, str, str]:
    """Return sign, words and style of how a run stands."""
    if under_way is None:
        return "○", "", "dim"
    return ("●", "under way", "error bold") if under_way else ("■", "at rest", "dim bold")


class EvolveScreen(PolledScreen[RunTold]):
    """Follows one run.

    Args:
        source: reads it.
        poll_s: seconds between two looks.
    """

    asking = "Reading the run …"
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [  # type: ignore[misc]
        (0, "-narrow"),
        (WIDE, "-medium"),
        (ROOMY, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "left", "step(-1)", "Back", key_display="←", priority=True, tooltip="One step of the attempt back"
        ),
        Binding(
            "right", "step(1)", "Step", key_display="→", priority=True, tooltip="One step of the attempt on"
        ),
        Binding(
            "home", "to_step(0)", "To the start", show=False, priority=True, tooltip="Before its first step"
        ),
        Binding("end", "to_step(-1)", "To the end", show=False, priority=True, tooltip="After its last step"),
        hidden("left_square_bracket", "attempt(-1)", "Try before", "To the attempt before", key_display="["),
        hidden("right_square_bracket", "attempt(1)", "Next try", "To the next attempt", key_display="]"),
        Binding("f", "follow", "Follow", tooltip="Show the newest task, and go on showing it"),
        Binding("v", "turn", "Figures, tasks", tooltip="On a narrow screen: from figures to tasks and back"),
        hidden("escape", "leave", "Back to the list", "Back to the list of runs"),
        hidden("r", "reload", "Read now", "Read the files now"),
    ]

    def __init__(self, source: RunSource, *, poll_s: float = LIVE_POLL_S) -> None:
        super().__init__(poll_s=poll_s)
        self.source = source
        self.following = True
        """Whether the newest task is shown as new ones come."""
        self._took_s = 0.0
        self._tasks: dict[str, TaskTold] = {}
        self._newest = -1

    def compose(self) -> ComposeResult:
        yield Heading(f"Run {clean_name(self.source.name)}")
        with Horizontal(id="run"):
            with VerticalScroll(id="figures"):
                yield RunFigures()
            with Vertical(id="tasks"):
                yield DataTable[Text](cursor_type="row", zebra_stripes=True)
                with VerticalScroll(id="task"):
                    yield TaskPane()
        yield Banner(id="banner")
        yield Footer()

    def on_mount(self) -> None:
        """Let the table be moved in; the screen's own beginning is called beside this."""
        self.query_one("#task", VerticalScroll).can_focus = False
        self._table.focus()

    async def fetch(self) -> RunTold:
        began = time.process_time()
        told = await self.source.read()
        self._took_s = time.process_time() - began
        return told

    async def _ask(self) -> float:
        return max(await super()._ask(), EASE * self._took_s)

    def show(self, told: RunTold) -> None:
        figures = told.figures
        name, actor = clean_name(told.name), clean_name(str((figures or {}).get("actor", "")))
        sign, words, _ = standing(told.under_way)
        wide = self.size.width >= WIDE
        counts = [f"{sign} {words}"]
        if figures is not None:
            counts += [f"generation {_newest(figures)}", f"{figures.get('tasks', 0):,} tasks"]
            if wide:
                counts += [f"{figures.get('attempts', 0):,} attempts", clock(figures.get("seconds", 0.0))]
        by = f" · {actor}" if actor and wide else ""
        self.query_one(Heading).show(f"Run {name}{by}", " · ".join(counts))
        self.query_one(RunFigures).show(figures or {})
        if figures is None:
            self.say("The run has not begun yet.")
        if self.following or not self._tasks:
            self._list(told)
        else:
            newer = told.tasks[0].number - self._newest if told.tasks else 0
            if newer > 0:
                self.say(
                    f"{newer} task{'s were' if newer > 1 else ' was'} set since; f goes on to the newest."
                )

    def _list(self, told: RunTold) -> None:
        """List the tasks as they are told now; whoever looks at an older one keeps it until then."""
        self._tasks = {task.key: task for task in told.tasks}
        self._newest = told.tasks[0].number if told.tasks else -1
        table = self._table
        fill(table, ["", "Skill", "Strategy", "Level", "Solved"], [_row(self, task) for task in told.tasks])
        if told.tasks:
            table.move_cursor(row=0, animate=False)
        self._show_task()

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one(DataTable)

    @property
    def _pane(self) -> TaskPane:
        return self.query_one(TaskPane)

    def on_data_table_row_highlighted(self) -> None:
        """Show the chosen task; the newest is followed."""
        if self._table.row_count:
            self.following = self._table.cursor_row == 0
            self._show_task()

    def _show_task(self) -> None:
        self._pane.show(self._tasks.get(key_of(self._table)))

    def action_step(self, by: int) -> None:
        """Go along the attempt."""
        self._show_task()
        self._pane.go(self._pane.step + by)

    def action_to_step(self, step: int) -> None:
        """Go to a step of the attempt; -1 is its end."""
        self._show_task()
        self._pane.go(self._pane.steps if step < 0 else step)

    def action_attempt(self, by: int) -> None:
        """Show another attempt at the task."""
        self._show_task()
        self._pane.turn(by)

    def action_follow(self) -> None:
        """Show the newest task and go on doing so."""
        self.following = True
        self.redraw()
        self.say("")

    def action_turn(self) -> None:
        """Show the tasks in place of the figures, or the other way round, where there is no room for both."""
        self.toggle_class("-tasks")
        (self._table if self.has_class("-tasks") else self.query_one("#figures")).focus()

    def action_leave(self) -> None:
        """Go back to the list, if there is one."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def action_help(self) -> None:
        """Show the keys, and the signs of the map."""
        keys = [(key(binding), binding.tooltip) for binding in self.own_bindings()]
        more = [
            ("↑ ↓", "Choose a task"),
            ("tab", "To the figures, to scroll them"),
            ("ctrl+p", "All commands"),
        ]
        self.app.push_screen(HelpScreen("Keys", [*keys, *more, ("q", "Quit")], SIGNS))


def _newest(figures: Any) -> str:
    series = figures.get("series") or ()
    return f"{series[-1]['generation']:,}" if series else "–"


def _row(screen: PolledScreen[Any], task: TaskTold) -> tuple[str, list[Text]]:
    counted = [one for one in task.tries if not one.fault]
    won = sum(one.success for one in counted)
    if task.quarantine:
        result: Line = [("⊘ in quarantine", "warn")]
    elif not counted:
        result = [("· held out" if task.purpose == "test" else "– no attempt", "dim")]
    elif len(counted) == 1:
        result = [("✔ solved", "good")] if won else [("✘ failed", "evil")]
    else:
        result = [(f"{won} of {len(counted)}", "good" if won else "evil")]
    cells: list[Line] = [
        [(str(task.generation), "dim")],
        [(clean_name(task.skill), "text")],
        [(clean_name(task.strategy), "dim" if task.purpose == "review" else "text")],
        [(f"{task.level:.1f}", "accent")],
        result,
    ]
    texts = [screen.text(cell) for cell in cells]
    texts[0].justify = texts[3].justify = "right"
    return task.key, texts
