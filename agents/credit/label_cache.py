"""What a judge of steps answered before: in memory, and in a directory where others find it."""

import json
import logging
import os
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MAX_HELD = 4096
"""Answers that are held in memory."""

_log = logging.getLogger("agents.credit")


class Answer(NamedTuple):
    """The labels of a prompt's items, in order: 1, -1, or 0 where a word was no label."""

    values: tuple[int, ...]


class LabelCache:
    """Answers by the hash of what was asked.

    Args:
        folder: where they are kept, one file each; None keeps them in memory alone. A file that cannot be read or
            written costs a call, nothing else.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._held: OrderedDict[str, Answer] = OrderedDict()

    def get(self, key: str, count: int) -> Answer | None:
        """Return the answer to `key` with labels of `count` items, None where there is none. May read a file."""
        found = self._held.get(key)
        if found is None and self.folder is not None:
            found = _read(self._path(key))
            if found is not None:
                self._hold(key, found)
        return found if found is not None and len(found.values) == count else None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer. May write a file."""
        self._hold(key, answer)
        if self.folder is None:
            return
        path = self._path(key)
        spare = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            spare.write_text(json.dumps(list(answer.values)), encoding="ascii")
            spare.replace(path)
        except OSError as error:
            with suppress(OSError):
                spare.unlink(missing_ok=True)
            _log.warning("a judge's answer is not kept: %s", error.strerror or error)

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"

    def _hold(self, key: str, answer: Answer) -> None:
        self._held[key] = answer
        self._held.move_to_end(key)
        while len(self._held) > MAX_HELD:
            self._held.popitem(last=False)


def _read(path: Path) -> Answer | None:
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(read, list) or any(type(value) is not int or abs(value) > 1 for value in read):
        return None
    return Answer(tuple(read))
