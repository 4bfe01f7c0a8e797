"""Every example runs as its first lines say, and prints something; those that need a server are given one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.background import background_server

ROOT = Path(__file__).parent.parent
IN_A_TOURNAMENT = "tournament_agent.py"
"""Runs in `test_foreign_tournament.py`, among others."""
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != IN_A_TOURNAMENT)


def needs_server(path: Path) -> bool:
    """Whether an example's first lines say that it takes a server's URL."""
    return f"{path.name} ws://" in path.read_text(encoding="utf-8").partition("import ")[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(path)]
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    if needs_server(path):
        with background_server(tmp_path / "home", fill_after_s=0.05) as server:
            done = subprocess.run([*command, server.addresses.websocket], **options)
    else:
        done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


def test_there_are_examples_of_both_kinds() -> None:
    assert {needs_server(path) for path in EXAMPLES} == {True, False}


def test_the_agent_in_ten_lines_has_ten() -> None:
    text = (ROOT / "examples" / "agent_ten_lines.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line]
    assert len(lines) == 10
    assert all(line.strip() and ";" not in line for line in lines[1:])
