"""Progress on stderr: a bar with rate and time left on a terminal, otherwise a line now and then."""

import sys
import time
from types import TracebackType
from typing import Any, Self

import click

LINE_EVERY_S = 10.0


def rate_text(rate: float) -> str:
    """Return a rate as it is shown: whole where it is large, two digits where it is small."""
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"


class MatchProgress:
    """Shows how many matches are done. Call it with done and planned; use it in `with`."""

    def __init__(self) -> None:
        self.began = self.said = time.monotonic()
        self.first: int | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("matches"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}/s"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
                refresh_per_second=5,
            )
            self._bar.start()
            self._task = self._bar.add_task("matches", total=None, rate="-")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, planned: int) -> None:
        if self.first is None:
            self.first = done - 1
        now = time.monotonic()
        rate = (done - self.first) / max(now - self.began, 1e-9)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=planned, rate=rate_text(rate))
        elif now - self.said >= LINE_EVERY_S:
            self.said = now
            line = f"{done} of {planned} matches, {rate_text(rate)}/s"
            # Of many matches at a time the first end late, and say little of the others.
            if 10 * (done - self.first) >= planned - self.first:
                line += f", {(planned - done) / rate:.0f} s left"
            click.echo(line, err=True)


class StageProgress:
    """Shows how far a command of several stages is. Call it with the stage, done, planned and a remark."""

    def __init__(self) -> None:
        self.said = time.monotonic()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[remark]}"),
                console=Console(stderr=True),
                transient=True,
                refresh_per_second=5,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, stage: str, done: int, planned: int, remark: str) -> None:
        if self._bar is not None:
            if stage not in self._tasks:
                self._tasks[stage] = self._bar.add_task(stage, total=planned, remark=remark)
            self._bar.update(self._tasks[stage], completed=done, total=planned, remark=remark)
        elif time.monotonic() - self.said >= LINE_EVERY_S:
            self.said = time.monotonic()
            click.echo(f"{done} of {planned} {stage}" + (f", {remark}" if remark else ""), err=True)
