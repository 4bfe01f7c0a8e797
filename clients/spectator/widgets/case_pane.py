"""A case that waits for a person: the task with the attempt step by step, and beside it the chain of evidence."""

from collections.abc import Mapping
from typing import Any

from clients.spectator.audits import CaseTold, FindingTold
from clients.spectator.drawing import Line, crop, wrap
from clients.spectator.widgets.lines import Lines
from clients.spectator.widgets.walk import Walk
from games.text import clean_name, neutralise

WHY = {
    "audit": "drawn for a look, whatever was decided",
    "low_confidence": "the model was not sure enough",
    "failure": "the model gave no answer",
    "no_model": "the rules leave it open, and no model is asked",
}
STYLES = {"yes": "good bold", "no": "evil bold", "open": "warn"}
HEAD_CELLS = 9


class AttemptPane(Lines):
    """The task in words, the question, and the world at one step of the attempt."""

    DEFAULT_CSS = """
    AttemptPane {
        padding: 0 1;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.case: CaseTold | None = None
        self.step = 0
        self._walk: Walk | None = None

    @property
    def steps(self) -> int:
        """How many steps the attempt has."""
        return 0 if self._walk is None else self._walk.steps

    def show(self, case: CaseTold | None) -> None:
        """Show a case, before its first step."""
        self.case = case
        self._walk = None if case is None else Walk(case.spec, case.actions)
        self.step = 0
        self.redraw()

    def go(self, step: int) -> None:
        """Show a step."""
        self.step = min(max(step, 0), self.steps)
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        case, walk = self.case, self._walk
        if case is None or walk is None:
            return []
        lines: list[Line] = [[(part, "text bold")] for part in wrap(neutralise(case.spec.text), width)]
        lines += [[], *([(part, "accent bold")] for part in wrap(neutralise(case.question), width)), []]
        lines += [walk.head(self.step), walk.track(self.step, width=width)]
        lines += walk.map(self.step, width=width)
        return [crop(line, width) for line in lines]


class ChainPane(Lines):
    """What the attempt did, what every layer found, and why a person is asked."""

    DEFAULT_CSS = """
    ChainPane {
        padding: 0 1;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._case: CaseTold | None = None
        self._step = 0

    def show(self, case: CaseTold | None, *, step: int) -> None:
        """Show the chain of a case, with the stretch marked in which a step lies."""
        self._case, self._step = case, step
        self.redraw()

    def draw(self, width: int) -> list[Line]:
        case = self._case
        if case is None:
            return []
        lines: list[Line] = [_title("What it did", width), *self._steps(case, width)]
        lines += [[], _title("What was found", width)]
        for finding in case.findings:
            lines += _finding(finding, width)
        if not any(finding.layer == "model" for finding in case.findings):
            lines.append(_row("model", "was not asked", "dim"))
        decided = (
            "nobody yet"
            if case.answer is None
            else f"{'yes' if case.answer else 'no'}, by the {case.decided_by}"
        )
        lines.append(_row("decided", decided, "text bold"))
        lines += [[], _title("Why you are asked", width)]
        why = WHY.get(case.why, clean_name(case.why))
        lines += [[(part, "text")] for part in wrap(why, width)]
        lines.append([(f"run {clean_name(case.run)} · case {case.id[:12]}", "dim")])
        return [crop(line, width) for line in lines]

    def _steps(self, case: CaseTold, width: int) -> list[Line]:
        told = case.evidence
        lines: list[Line] = []
        if told["start"]:
            lines += _rows("at first", ", ".join(told["start"]), "dim", width)
        since, marked = 0, False
        for stretch in told["steps"]:
            if "left_out" in stretch:
                lines.append([(f"  … {stretch['left_out']} stretches left out …", "dim")])
                continue
            until = stretch["to_step"]
            here = not marked and self._step <= until and self._step > 0
            marked = marked or here
            lines += _stretch(stretch, since, width, here=here)
            since = until
        ended = told["ended"]
        words = f"{ended['how'].replace('_', ' ')} at step {ended['step']}"
        words += f"; open: {ended['open']}" if ended["open"] else ""
        return [*lines, *_rows("ended", words, "text", width)]


def _stretch(stretch: Mapping[str, Any], since: int, width: int, *, here: bool) -> list[Line]:
    until = stretch["to_step"]
    steps = str(until) if until == since + 1 else f"{since + 1}–{until}"
    first, *rest = wrap(neutralise(", ".join(stretch["did"])), max(width - HEAD_CELLS, 10))
    lines: list[Line] = [
        [("▶ " if here else "  ", "accent"), (f"{steps:<{HEAD_CELLS - 2}}", "dim"), (first, "text")]
    ]
    lines += [[(" " * HEAD_CELLS + more, "text")] for more in rest]
    news = [(f"+ {fact}", "good") for fact in stretch["now"]] + [
        (f"− {fact}", "warn") for fact in stretch["no_more"]
    ]
    return [*lines, *([(" " * HEAD_CELLS + neutralise(fact), style)] for fact, style in news)]


def _finding(finding: FindingTold, width: int) -> list[Line]:
    says = f"{finding.says:<5}"
    if finding.confidence is not None:
        says += f"sure to {finding.confidence:.0%}  "
    words = finding.words if finding.failure is None else f"{finding.failure}: {finding.words}"
    first, *rest = wrap(neutralise(words), max(width - HEAD_CELLS - len(says), 10))
    head: Line = [(f"{finding.layer:<{HEAD_CELLS}}", "dim"), (says, STYLES.get(finding.says, "text"))]
    return [[*head, (first, "text")], *([(" " * (HEAD_CELLS + len(says)) + more, "text")] for more in rest)]


def _title(title: str, width: int) -> Line:
    return [("── ", "dim"), (title, "title bold"), (" " + "─" * max(width - len(title) - 4, 0), "dim")]


def _row(head: str, words: str, style: str) -> Line:
    return [(f"{head:<{HEAD_CELLS}}", "dim"), (words, style)]


def _rows(head: str, words: str, style: str, width: int) -> list[Line]:
    first, *rest = wrap(neutralise(words), max(width - HEAD_CELLS, 10))
    return [_row(head, first, style), *([(" " * HEAD_CELLS + more, style)] for more in rest)]
