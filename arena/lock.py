"""A folder that one process holds alone."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from games.errors import ArenaError


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
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise taken from None
        yield
    finally:
        os.close(handle)
