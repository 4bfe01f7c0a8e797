"""Adapter versions on disk: published while matches run, and never changed.

HOME/adapters/NAME/VERSION holds an adapter's files and `manifest.json`: kind, the model it belongs to, the hash of
every file, when it was made and from what. A version appears under its name by a rename, whole or not at all, and
gets the next free number. Retiring keeps its files and takes it from those that new matches get.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from agents.errors import BadAdapter, UnknownAdapter
from agents.policy.chat import DIGEST_CHARS

FOLDER = "adapters"
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 20

Kind = Literal["lora", "full", "unknown"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ENGINE = re.compile(r" (?:on|at) \S+$")
"""What an engine adds to the name of its model."""
_HASHED = re.compile(rf"(.+)@([0-9a-f]{{{DIGEST_CHARS}}})", re.DOTALL)
"""A model whose weights are on this machine, as `describe_model` calls it."""
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Adapter:
    """One version of an adapter: what its manifest says, and where its files are.

    `base` is the model it belongs to, as engines call theirs; `files` maps names to SHA-256 hashes; `parent` is the
    version it was trained from, if any; `created` is a time in UTC.
    """

    name: str
    version: int
    kind: Kind
    base: str
    files: dict[str, str]
    created: str
    parent: str
    retired: bool
    path: Path
    problem: str = ""
    """Why its manifest cannot be read; what the manifest says is then empty, and nothing plays it."""

    @property
    def ref(self) -> str:
        """How the version is called everywhere: NAME@VERSION."""
        return f"{self.name}@{self.version}"


class AdapterStore:
    """The adapters below one folder. Its methods read and write files: not for an event loop's thread."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def publish(self, name: str, source: Path, *, base: str, parent: str = "") -> Adapter:
        """Copy the files in `source` to a new version of `name`, and return it.

        A folder with `adapter_config.json` is a LoRA adapter, one with `config.json` a whole set of weights.

        Raises `BadAdapter` for a bad name or folder, `OSError` where the disk refuses.
        """
        if not _NAME.fullmatch(name):
            raise BadAdapter(f"adapter name: got {name[:80]!r}, allowed are up to 64 letters, digits and ._-")
        kind = _kind(source)
        target = self.root / name
        target.mkdir(parents=True, exist_ok=True)
        made = target / f".new-{secrets.token_hex(8)}"
        made.mkdir()
        try:
            files = {}
            for path in _files(source):
                shutil.copyfile(path, made / path.name)
                files[path.name] = _hash(made / path.name)
            created = datetime.now(UTC).isoformat(timespec="seconds")
            number = max(self._numbers(target), default=0)
            while True:
                number += 1
                adapter = Adapter(
                    name, number, kind, base, files, created, parent, False, target / str(number)
                )
                _write(made / MANIFEST, adapter)
                _sync(made)
                try:
                    made.rename(adapter.path)
                except OSError:
                    if not adapter.path.exists():
                        raise
                    continue  # another process took the number
                _sync(target)
                return adapter
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def resolve(self, ref: str) -> Adapter:
        """Return NAME@VERSION, or for NAME alone its newest version. A retired version is not returned.

        Raises `UnknownAdapter` or `BadAdapter`.
        """
        name, at, number = ref.partition("@")
        if not _NAME.fullmatch(name) or (at and not number.isdecimal()):
            raise UnknownAdapter(f"adapter: got {ref[:80]!r}, needed is NAME or NAME@VERSION")
        numbers = sorted(self._numbers(self.root / name), reverse=True)
        if at:
            numbers = [one for one in numbers if one == int(number)]
        for one in numbers:
            adapter = self._read(name, one)
            if not adapter.retired:
                return adapter
        if numbers:
            raise UnknownAdapter(f"adapter {ref}: it is retired")
        playable = [one.ref for one in self.all() if not one.retired and not one.problem]
        known = ", ".join(playable)[:300] or "none"
        raise UnknownAdapter(f"adapter: got {ref!r}, in {self.root} are: {known}")

    def all(self) -> list[Adapter]:
        """Return every version, by name and number; one whose manifest cannot be read says so in `problem`."""
        if not self.root.is_dir():
            return []
        names = sorted(
            path.name for path in self.root.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)
        )
        return [
            self._listed(name, number) for name in names for number in sorted(self._numbers(self.root / name))
        ]

    def _listed(self, name: str, number: int) -> Adapter:
        try:
            return self._read(name, number)
        except BadAdapter as error:
            path = self.root / name / str(number)
            return Adapter(name, number, "unknown", "", {}, "", "", False, path, problem=str(error))

    def verify(self, adapter: Adapter) -> None:
        """Raise `BadAdapter` unless the version's files are exactly those that were published."""
        found = {path.name for path in _files(adapter.path)} - {MANIFEST}
        if found != adapter.files.keys():
            odd = ", ".join(sorted(found ^ adapter.files.keys()))[:200]
            raise BadAdapter(f"adapter {adapter.ref}: its files are not those that were published: {odd}")
        for name, digest in adapter.files.items():
            if _hash(adapter.path / name) != digest:
                raise BadAdapter(f"adapter {adapter.ref}: {name} is not what was published")

    def retire(self, ref: str) -> Adapter:
        """Take NAME@VERSION from those that new matches get. Raises `UnknownAdapter` or `BadAdapter`."""
        if "@" not in ref:
            raise UnknownAdapter(f"adapter: got {ref[:80]!r}, one version is retired at a time: NAME@VERSION")
        adapter = self.resolve(ref)
        data = asdict(adapter) | {"retired": True}
        retired = Adapter(**data)
        # Beside the version's folder: what is written there must not be taken for a file that nobody published.
        new = adapter.path.parent / f".retired-{secrets.token_hex(8)}"
        try:
            _write(new, retired)
            new.replace(adapter.path / MANIFEST)
        finally:
            new.unlink(missing_ok=True)
        _sync(adapter.path)
        return retired

    def holds(self, ref: str) -> bool:
        """Whether the files of NAME@VERSION are there, retired or not."""
        name, _, number = ref.partition("@")
        return bool(_NAME.fullmatch(name)) and number.isdecimal() and (self.root / name / number).is_dir()

    def discard(self, ref: str) -> bool:
        """Delete the files of NAME@VERSION, and return whether it was there.

        The newest version of a name stays, whatever is asked: its number would be given again.
        """
        name, _, number = ref.partition("@")
        if not _NAME.fullmatch(name) or not number.isdecimal():
            raise UnknownAdapter(f"adapter: got {ref[:80]!r}, one version is deleted at a time: NAME@VERSION")
        path = self.root / name / str(int(number))
        if int(number) >= max(self._numbers(self.root / name), default=0) or not path.is_dir():
            return False
        gone = path.parent / f".gone-{secrets.token_hex(8)}"
        path.rename(gone)  # at once for whoever looks it up
        shutil.rmtree(gone, ignore_errors=True)
        return True

    def _numbers(self, folder: Path) -> list[int]:
        if not folder.is_dir():
            return []
        return [int(path.name) for path in folder.iterdir() if path.name.isdecimal() and path.is_dir()]

    def _read(self, name: str, number: int) -> Adapter:
        path = self.root / name / str(number)
        try:
            with (path / MANIFEST).open("rb") as opened:
                data = json.loads(opened.read(MAX_MANIFEST_BYTES))
            adapter = Adapter(
                name=data["name"],
                version=data["version"],
                kind=data["kind"],
                base=data["base"],
                files=dict(data["files"]),
                created=data["created"],
                parent=data["parent"],
                retired=data["retired"],
                path=path,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadAdapter(f"adapter {name}@{number}: {MANIFEST} cannot be read: {error}") from None
        texts = (adapter.base, adapter.created, adapter.parent, *adapter.files, *adapter.files.values())
        if not all(isinstance(text, str) for text in texts):
            raise BadAdapter(
                f"adapter {name}@{number}: {MANIFEST} cannot be read: it holds no text where one is needed"
            )
        if (adapter.name, adapter.version) != (name, number) or adapter.kind not in ("lora", "full"):
            raise BadAdapter(f"adapter {name}@{number}: {MANIFEST} is of another adapter")
        return adapter


def check_base(adapter: Adapter, *, model: str) -> None:
    """Raise `BadAdapter` unless `adapter` belongs to `model`, as an engine calls it: by the hash of its weights.

    Where no hash is known, as of a model on a server, the name decides.
    """
    ours, theirs = base_of(model), adapter.base
    (our_name, our_hash), (their_name, their_hash) = map(_name_and_hash, (ours, theirs))
    same = our_hash == their_hash if our_hash and their_hash else our_name == their_name
    if not same:
        raise BadAdapter(f"adapter {adapter.ref}: it belongs to {theirs}, the model is {ours}")


def content_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 hash of each of a version's files by name. Raises `BadAdapter`."""
    try:
        return {path.name: _hash(path) for path in _files(folder)}
    except OSError as error:
        raise BadAdapter(f"adapter in {folder}: {error.strerror or error}") from None


def base_of(model: str) -> str:
    """Return a model's name and hash from what an engine calls it: without what computes, or where."""
    return _ENGINE.sub("", model)


def _name_and_hash(base: str) -> tuple[str, str]:
    found = _HASHED.fullmatch(base)
    return (base, "") if found is None else (found[1], found[2])


def _kind(source: Path) -> Kind:
    if (source / "adapter_config.json").is_file():
        return "lora"
    if (source / "config.json").is_file():
        return "full"
    raise BadAdapter(f"{source}: it has no adapter_config.json (LoRA) and no config.json (whole weights)")


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            raise BadAdapter(f"{path}: an adapter is a folder of plain files")
        if path.name != MANIFEST:
            yield path


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _write(path: Path, adapter: Adapter) -> None:
    data: dict[str, Any] = asdict(adapter)
    del data["path"], data["problem"]
    with path.open("w", encoding="utf-8") as opened:
        json.dump(data, opened, indent=1, sort_keys=True)
        opened.write("\n")
        opened.flush()
        os.fsync(opened.fileno())


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
