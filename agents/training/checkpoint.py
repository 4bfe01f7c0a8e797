"""Checkpoints: folders that appear whole or not at all, of which the newest whole one counts.

ROOT/NUMBER holds whatever its writer put there and `checkpoint.json`: the format, the facts given with it, and the
hash of every file. It is written under another name, forced to the disk and renamed, so a crash or a full disk in the
middle leaves the checkpoints before it as they were.
"""

import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.errors import BadCheckpoint, CheckpointFailed

FORMAT = 1
MANIFEST = "checkpoint.json"
DIGITS = 8
NEW = ".new-"
_CHUNK_BYTES = 1 << 20

_log = logging.getLogger("agents.training")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint: its number, its folder, and the facts it was saved with."""

    number: int
    path: Path
    facts: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run. One process writes them at a time.

    Args:
        root: their folder; made with the first.
        keep: how many of the newest are kept.
    """

    def __init__(self, root: Path, *, keep: int = 3) -> None:
        if keep < 1:
            raise BadCheckpoint(f"checkpoints: keep: got {keep}, at least 1 is needed")
        self.root = root
        self.keep = keep

    def save(self, number: int, write: Callable[[Path], None], facts: Mapping[str, Any]) -> Path:
        """Write a checkpoint, let older ones go, and return its folder.

        Args:
            number: above that of every earlier one; one of the same number is replaced.
            write: puts the files into the folder it is given, which is empty.
            facts: what JSON can hold.

        Raises `CheckpointFailed` where it cannot be written: the earlier ones are then as they were.
        """
        made = self.root / f"{NEW}{secrets.token_hex(8)}"
        final = self.root / f"{number:0{DIGITS}d}"
        try:
            made.mkdir(parents=True)
            write(made)
            manifest = {"format": FORMAT, "number": number, "facts": dict(facts), "files": _hashes(made)}
            (made / MANIFEST).write_text(
                json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8"
            )
            for path in (*_files(made), made / MANIFEST, *_folders(made)):
                _sync(path)
            if final.exists():
                old = self.root / f"{NEW}{secrets.token_hex(8)}"
                final.rename(old)
                made.rename(final)
                shutil.rmtree(old, ignore_errors=True)
            else:
                made.rename(final)
            _sync(self.root)
        except (OSError, CheckpointFailed) as error:
            said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise CheckpointFailed(f"checkpoint {number} in {self.root}: {said}; {self._kept()}") from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
        self._prune()
        return final

    def _kept(self) -> str:
        numbers = self._numbers()
        return f"the last one, {numbers[-1]}, is kept" if numbers else "there is none before it"

    def __len__(self) -> int:
        return len(self._numbers())

    def newest(self) -> Checkpoint | None:
        """Return the newest whole checkpoint, None where there is none; raises as `whole`."""
        return next(self.whole(), None)

    def whole(self) -> Iterator[Checkpoint]:
        """Yield the checkpoints that can be read, the newest first; damaged ones are passed over.

        Raises `BadCheckpoint` at one of another format.
        """
        for number in reversed(self._numbers()):
            path = self.root / f"{number:0{DIGITS}d}"
            try:
                yield _read(path, number)
            except _Damaged as damaged:
                _log.warning("checkpoint %d in %s is passed over: %s", number, self.root, damaged)

    def _numbers(self) -> list[int]:
        try:
            names = [path.name for path in self.root.iterdir() if path.is_dir() and path.name.isdecimal()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadCheckpoint(f"{self.root}: cannot be read: {error.strerror or error}") from None
        return sorted(map(int, names))

    def _prune(self) -> None:
        for number in self._numbers()[: -self.keep]:
            shutil.rmtree(self.root / f"{number:0{DIGITS}d}", ignore_errors=True)
        for path in self.root.glob(f"{NEW}*"):  # what a crash left
            shutil.rmtree(path, ignore_errors=True)


class _Damaged(Exception):
    pass


def _read(path: Path, number: int) -> Checkpoint:
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        format_, files, facts = manifest["format"], manifest["files"], manifest["facts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"{MANIFEST} cannot be read: {str(error)[:100]}") from None
    if format_ != FORMAT:
        raise BadCheckpoint(
            f"{path}: a checkpoint of format {str(format_)[:20]}, this version reads {FORMAT}: begin a new run, or "
            "go on with the version that wrote it"
        )
    try:
        found = _hashes(path)
    except OSError as error:
        raise _Damaged(str(error)) from None
    if found != files or not isinstance(facts, dict):
        odd = sorted(name for name in found.keys() | files.keys() if found.get(name) != files.get(name))
        raise _Damaged(f"not as it was written: {', '.join(odd)[:200]}")
    return Checkpoint(number, path, facts)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != folder / MANIFEST:
            yield path


def _folders(folder: Path) -> Iterator[Path]:
    yield folder
    yield from (path for path in sorted(folder.rglob("*")) if path.is_dir())


def _hashes(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): _hash(path) for path in _files(folder)}


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
