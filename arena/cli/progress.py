"""Progress on stderr: a bar with rate and time left on a terminal, otherwise a line now and then."""

import sys
import time
from types import TracebackType
from typing import Any, Self

import click

LINE_EVERY_S = 10.0


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
            self._bar.update(self._task, completed=done, total=planned, rate=f"{rate:.0f}")
        elif now - self.said >= LINE_EVERY_S:
            self.said = now
            left = (planned - done) / rate
            click.echo(f"{done} of {planned} matches, {rate:.1f}/s, {left:.0f} s left", err=True)
