"""A folder that one process holds alone."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from games.errors import ArenaError

TRIES = 4
LOOK_S = 0.02
"""Seconds between two tries to hold a folder: more than a look at its lock takes."""


@contextmanager
def hold(
    folder: Path, *, name: str, mode: int, taken: ArenaError, unusable: Callable[[OSError], ArenaError]
) -> Iterator[None]:
    """Hold `folder`, which is made where it is missing; the lock dies with the process.

    Where the system knows no such locks (Windows), nothing is held.

    Args:
        folder: what is held.
        name: of the file in it that is locked.
        mode: of that file.
        taken: raised where another process holds the folder.
        unusable: makes the error to raise where the file cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / name, os.O_RDWR | os.O_CREAT, mode)
    except OSError as error:
        raise unusable(error) from None
    try:
        try:
            import fcntl
        except ImportError:
            fcntl = None  # type: ignore[assignment]
        if fcntl is not None:
            for again in reversed(range(TRIES)):
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if not again:
                        raise taken from None
                    time.sleep(LOOK_S)  # perhaps somebody only looks, as `held` does
        yield
    finally:
        os.close(handle)


def held(folder: Path, *, name: str) -> bool | None:
    """Return whether a process holds `folder` by the lock `name`; None where the system cannot tell."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        handle = os.open(folder / name, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
