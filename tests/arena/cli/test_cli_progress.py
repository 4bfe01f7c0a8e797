"""Progress: a bar where stderr is a terminal, lines where it is none, and never on stdout."""

import json
import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from arena.cli import progress
from arena.cli.progress import MatchProgress

TWO = ["--player", "a=scripted", "--player", "b=random"]
ARGS = ["tournament", "--game", "kuhn", *TWO, "--matches", "300", "--concurrency", "1", "--json"]


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


def test_slow_matches_have_a_rate_and_no_guess_before_some_have_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with MatchProgress() as show:
        for done in (1, 4, 40):
            now[0] += 40.0
            show(done, 40)
    assert capsys.readouterr().err.splitlines() == [
        "1 of 40 matches, 0.025/s",
        "4 of 40 matches, 0.05/s, 720 s left",
        "40 of 40 matches, 0.33/s, 0 s left",
    ]
    assert [progress.rate_text(rate) for rate in (0.0, 0.0344, 0.96, 3.21, 1234.5)] == [
        "0",
        "0.034",
        "0.96",
        "3.2",
        "1234",
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
