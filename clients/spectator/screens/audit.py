"""The person's queue: one case after the other, stepped through by the keyboard, and answered with yes or no."""

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer

from clients.spectator.app import SpectatorApp
from clients.spectator.audits import AuditSource, AuditTold, CaseTold
from clients.spectator.guide import hidden
from clients.spectator.screens.dialogs import AskDialog, HelpScreen
from clients.spectator.screens.polled import PolledScreen, key
from clients.spectator.widgets.case_pane import AttemptPane, ChainPane
from clients.spectator.widgets.heading import Banner, Heading
from clients.spectator.widgets.walk import SIGNS
from games.errors import ArenaError
from games.text import clean_name

AUDIT_POLL_S = 5.0
WIDE = 100
"""Columns from which on the attempt and the chain stand side by side."""


class AuditScreen(PolledScreen[AuditTold]):
    """Shows cases and takes answers; each is kept before the next case is shown.

    Args:
        source: the queue.
        poll_s: seconds between two looks for new cases.
    """

    asking = "Reading the queue …"
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [  # type: ignore[misc]
        (0, "-narrow"),
        (WIDE, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", tooltip="Answer the question with yes"),
        Binding("n", "answer(False)", "No", tooltip="Answer it with no"),
        Binding("s", "skip(1)", "Skip", tooltip="Leave the case open and go to the next one"),
        hidden("b", "skip(-1)", "Case before", "Back to the case before"),
        Binding("left", "step(-1)", "Back", key_display="←", priority=True, tooltip="One step back"),
        Binding("right", "step(1)", "Step", key_display="→", priority=True, tooltip="One step on"),
        hidden(
            "left_square_bracket",
            "stretch(-1)",
            "Stretch back",
            "To where a fact changed before",
            key_display="[",
        ),
        hidden(
            "right_square_bracket",
            "stretch(1)",
            "Stretch on",
            "To where the next fact changes",
            key_display="]",
        ),
        Binding(
            "home", "to_step(0)", "To the start", show=False, priority=True, tooltip="Before the first step"
        ),
        Binding("end", "to_step(-1)", "To the end", show=False, priority=True, tooltip="After the last step"),
        hidden("r", "reload", "Read now", "Look for new cases now"),
    ]

    def __init__(self, source: AuditSource, *, poll_s: float = AUDIT_POLL_S) -> None:
        super().__init__(poll_s=poll_s)
        self.source = source
        self.answered = 0
        """How many answers were kept."""
        self._cases: tuple[CaseTold, ...] = ()
        self._place = 0
        self._busy = False
        self._word = ""
        """What became of the last answer."""

    @property
    def case(self) -> CaseTold | None:
        """The case that is shown."""
        return self._cases[self._place] if self._cases else None

    def compose(self) -> ComposeResult:
        yield Heading(f"Cases for a person · {clean_name(self.source.name)}")
        with Horizontal(id="case"):
            with VerticalScroll(id="attempt"):
                yield AttemptPane()
            with VerticalScroll(id="chain"):
                yield ChainPane()
        yield Banner(id="banner")
        yield Footer()

    async def fetch(self) -> AuditTold:
        return await self.source.read()

    def show(self, told: AuditTold) -> None:
        shown = self.case
        place = next(
            (at for at, one in enumerate(told.cases) if shown is not None and one.id == shown.id), None
        )
        self._cases = told.cases
        if place is None:  # it was answered: the next one has moved up to its place
            self._place = min(self._place, max(len(told.cases) - 1, 0))
            self._attempt.show(self.case)
            self.query_one("#attempt").scroll_home(animate=False)
            self.query_one("#chain").scroll_home(animate=False)
        else:
            self._place = place
        self._show_chain()
        waiting = told.counts.get("waiting", 0)
        counts = f"{told.counts.get('answered', 0)} answered · {told.counts.get('disputed', 0)} disputed"
        where = f"case {self._place + 1} of {len(self._cases)} · " if self._cases else ""
        self.query_one(Heading).show(
            f"Cases for a person · {clean_name(self.source.name)}", f"{where}{waiting} wait · {counts}"
        )
        if not self._cases:
            kept = f"{self.answered} answer{'' if self.answered == 1 else 's'} of yours kept. "
            more = f"{waiting} more wait beyond --limit." if waiting else "Nothing waits."
            self.say(f"{self._word} {kept if self.answered else ''}{more} q leaves.".strip())
        elif self._word:
            self.say(self._word)

    @property
    def _attempt(self) -> AttemptPane:
        return self.query_one(AttemptPane)

    def _show_chain(self) -> None:
        self.query_one(ChainPane).show(self.case, step=self._attempt.step)

    # Stepping

    def action_step(self, by: int) -> None:
        """Go along the attempt."""
        self._go(self._attempt.step + by)

    def action_to_step(self, step: int) -> None:
        """Go to a step; -1 is the end."""
        self._go(self._attempt.steps if step < 0 else step)

    def action_stretch(self, by: int) -> None:
        """Go to where a fact changes."""
        if self.case is None:
            return
        ends = [one["to_step"] for one in self.case.evidence["steps"] if "to_step" in one]
        here = self._attempt.step
        if by > 0:
            self._go(next((end for end in ends if end > here), self._attempt.steps))
        else:
            self._go(next((end for end in reversed(ends) if end < here), 0))

    def _go(self, step: int) -> None:
        self._attempt.go(step)
        self._show_chain()

    def action_skip(self, by: int) -> None:
        """Leave the case open, and show another."""
        if self._cases and not self._busy:
            self._word = ""
            self.say("")
            self._place = (self._place + by) % len(self._cases)
            self._attempt.show(self.case)
            self.redraw()

    # Answering

    def action_answer(self, yes: bool) -> None:
        """Answer; ask first where that is wished, and always where it disputes what was decided."""
        case = self.case
        if case is None or self._busy:
            return
        disputes = case.answer is not None and case.answer != yes
        app = self.app
        assert isinstance(app, SpectatorApp)
        if not disputes and not app.settings.confirm:
            self.run_worker(self._keep(case, yes), name="answer")
            return
        said = "yes" if yes else "no"
        if disputes:
            text = (
                f"Decided was {'no' if yes else 'yes'}, by the {case.decided_by}. To say {said} is a dispute: both are "
                "kept, and the task stays out of training."
            )
        else:
            text = "It is kept at once, and cannot be taken back."
        self.app.push_screen(
            AskDialog(f"Answer {said}?", text, about=case.id), partial(self._asked, case, yes)
        )

    def _asked(self, case: CaseTold, yes: bool, sure: bool | None) -> None:
        if sure:
            self.run_worker(self._keep(case, yes), name="answer")

    async def _keep(self, case: CaseTold, yes: bool) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            disputed = await self.source.answer(case.id, yes)
        except ArenaError as error:
            self._word = f"Not kept: {error}"
        else:
            self.answered += 1
            said = "yes" if yes else "no"
            self._word = (
                f"Kept: {said}{', which disputes the decision' if disputed else ''} (case {case.id[:8]})."
            )
        finally:
            self._busy = False
        self.action_reload()

    def action_help(self) -> None:
        """Show the keys, and the signs of the map."""
        keys = [(key(binding), binding.tooltip) for binding in self.own_bindings()]
        more = [
            ("↑ ↓ tab", "Scroll, and to the other side"),
            ("ctrl+p", "All commands"),
            ("q", "Quit; what was answered is kept"),
        ]
        self.app.push_screen(HelpScreen("Keys", [*keys, *more], SIGNS))

    def commands(self) -> Iterator[SystemCommand]:
        """Yield the keys' commands, and whether answers are asked about."""
        yield from super().commands()
        app = self.app
        assert isinstance(app, SpectatorApp)
        confirm = app.settings.confirm
        yield SystemCommand(
            "Keep answers at once" if confirm else "Ask before each answer",
            "Whether an answer is asked about before it is kept; a dispute always is",
            lambda: app.keep(confirm=not confirm),
        )
