"""Processes that end with the one that started them, and not before."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agents.policy import guard as guarding
from agents.policy.guard import Guard, began

ROOT = Path(__file__).parents[3]
SLEEP = [sys.executable, "-c", "import threading; threading.Event().wait()"]
OWNER = """
import os, sys
from agents.policy.guard import Guard
guard = Guard([int(sys.argv[1])])
print(guard.pid, flush=True)
sys.stdin.read()
"""


def test_a_process_is_killed_when_its_owner_is() -> None:
    guarded = subprocess.Popen(SLEEP)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(guarded.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    with owner:
        assert owner.stdout is not None and owner.stdout.readline().strip().isdigit()
        assert guarded.poll() is None
        os.kill(owner.pid, signal.SIGKILL)
        assert guarded.wait(60) == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system tells no start times")
def test_a_process_that_got_the_number_of_another_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    other = subprocess.Popen(SLEEP)
    try:
        assert began(other.pid) == began(other.pid) != ""
        with monkeypatch.context() as told:
            told.setattr(guarding, "began", lambda pid: "1")  # as of a process that began long ago
            guard = Guard([other.pid])
        assert guard._process.stdin is not None
        guard._process.stdin.close()  # as when this process is gone
        assert guard._process.wait(60) == 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert began(other.pid) == ""


def test_a_released_guard_ends_and_kills_nobody() -> None:
    guarded = subprocess.Popen(SLEEP)
    try:
        guard = Guard([guarded.pid])
        guard.release()
        assert guarded.poll() is None
    finally:
        guarded.kill()
        guarded.wait()


def test_a_guard_that_was_killed_is_released_all_the_same() -> None:
    guard = Guard([])
    os.kill(guard.pid, signal.SIGKILL)
    guard.release()
