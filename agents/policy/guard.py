"""A guard for processes that must not outlive this one, however it ends.

vLLM's engine notices nothing when the process that started it is killed: it would keep its memory and turn for ever.
The guard is this very file, run by an interpreter that loads nothing of ours.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

RELEASED = b"released"
_START = 19
"""Where `/proc/PID/stat` tells the start of a process, behind its name."""


class Guard:
    """Kills processes when this one is gone. It is a small process of its own, which waits on a pipe.

    A process that ended meanwhile may have left its number to another, so each is known by its start as well.

    Args:
        pids: whom it kills; what they started must end with them.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, *(f"{pid}:{began(pid)}" for pid in pids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what interrupts this process does not interrupt its guard
        )

    @property
    def pid(self) -> int:
        """The process that watches."""
        return self._process.pid

    def release(self) -> None:
        """Say that nobody is to be killed, and end the guard. Blocks for a moment."""
        try:
            self._process.communicate(RELEASED, timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()


def began(pid: int) -> str:
    """Return when a process began, in ticks since the machine did; empty where there is none, or no `/proc`."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name may hold anything, a parenthesis too.
            return file.read().rpartition(b")")[2].split()[_START].decode()
    except (OSError, IndexError):
        return ""


def _watch(guarded: Sequence[str]) -> None:
    """Read until the other end of stdin is let go of; whoever ends in peace says so first."""
    if sys.stdin.buffer.read() == RELEASED:
        return
    for one in guarded:
        pid, _, start = one.partition(":")
        if began(int(pid)) != start:
            continue
        try:
            os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


if __name__ == "__main__":
    _watch(sys.argv[1:])
