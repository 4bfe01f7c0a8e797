"""What the tests of hosting share: the command line in this process and in one of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from arena.cli.main import cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run every test in an empty folder, with no setting from outside."""
    for name in list(os.environ):
        if name.startswith("ARENA_") or name in ("COLUMNS", "NO_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def arena() -> Callable[..., Result]:
    """Run `arena …` in this process."""

    def run(*args: object, **extra: Any) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args], **extra)

    return run


@pytest.fixture
def command() -> list[str]:
    """Return the start of a command line that runs `arena` in a process of its own."""
    return [sys.executable, "-m", "evoke_arena"]


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment in which a process finds the project."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def process(
    command: list[str], environment: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `arena …` in a process of its own, to its end."""

    def run(*args: object, **extra: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, args)],
            **{"capture_output": True, "text": True, "env": environment, "check": False} | extra,
        )

    return run


@pytest.fixture
def no_blocking() -> Iterator[None]:
    """Let any call raise that would block an event loop in the project's own code.

    Allowed is what waits for nobody: one row of a local file by its key, and the append to a record, which is on
    disk before anyone hears of it, and its size.
    """
    from blockbuster import blockbuster_ctx

    with blockbuster_ctx(["agents", "arena", "clients", "games", "replays"]) as blocking:
        for function in blocking.functions.values():
            function.can_block_in("arena/auth.py", {"_look_up", "owned", "valid_keys"})
            function.can_block_in("replays/writer.py", {"_put", "close"})
            function.can_block_in("arena/report.py", {"match_report"})
        yield
