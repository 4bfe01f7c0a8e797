"""Progress: a bar where stderr is a terminal, lines where it is none, and never on stdout."""

import json
import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from arena.cli import progress
from arena.cli.progress import MatchProgress

ARGS = ["tournament", "--game", "kuhn", "--matches", "300", "--concurrency", "1", "--json"]


def test_lines_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with MatchProgress() as show:
        for done in range(11, 41):
            now[0] += 1.0
            show(done, 50)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "20 of 50 matches, 1.0/s, 30 s left",
        "30 of 50 matches, 1.0/s, 20 s left",
        "40 of 50 matches, 1.0/s, 10 s left",
    ]


def test_nothing_is_said_of_a_short_run(arena: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 100.0))
    found = arena(*ARGS)
    assert (found.exit_code, found.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_bar_on_a_terminal(command: list[str], environment: dict[str, str]) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*command, *ARGS],
        env={**environment, "TERM": "xterm", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as running:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the terminal's other end is closed
            pass
        assert running.stdout is not None
        output = running.stdout.read()
    os.close(ours)
    assert running.returncode == 0
    assert json.loads(output)["matches"]["played"] == 300
    assert b"/300" in shown and b"/s" in shown
