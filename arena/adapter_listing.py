"""What there is to tell of the adapters in a home: their facts, whom they belong to, and what was played with them."""

import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agents.errors import BadAdapter, UnknownAdapter
from agents.policy.adapter_files import AdapterFacts, check_files, read_adapter
from agents.policy.adapters import FOLDER, Adapter, AdapterStore, check_base
from agents.policy.chat import describe_model
from agents.policy.presets import find_model
from agents.policy.service import MODELS_FOLDER
from arena.store import FOLDER as RECORDS
from replays.errors import RecordError
from replays.reader import read_header
from replays.record import SUFFIX

_ADAPTER = re.compile(r", adapter ([^,\s]+)$")
"""How `SeatInfo.policy` ends where a language model sat at a seat."""


def adapters_in(home: Path) -> AdapterStore:
    """Return the adapters of a home."""
    return AdapterStore(home / FOLDER)


def find(store: AdapterStore, ref: str) -> Adapter:
    """Return NAME@VERSION, retired or not; for NAME alone what `policy:NAME` plays, else the newest that is retired.

    Raises `UnknownAdapter` or `BadAdapter`.
    """
    try:
        return store.resolve(ref)
    except UnknownAdapter:
        known = [adapter for adapter in store.all() if ref in (adapter.ref, adapter.name)]
        if not known:
            raise
        return known[-1]


def publish(home: Path, name: str, source: Path, *, model: str, parent: str = "") -> Adapter:
    """Check the files in `source` and publish them as the next version of `name`.

    Args:
        home: of whose adapters.
        name: of the adapter.
        source: a folder, as peft or transformers writes it.
        model: the model that it belongs to: a preset or a folder.
        parent: the version that it was trained from, if any.

    Raises `BadAdapter`, `UnknownAdapter`, `BadModel` or `EngineMissing`.
    """
    store = adapters_in(home)
    base = find_model(model, cache=home / MODELS_FOLDER)
    check_files(source, base=base)
    described = describe_model(base)
    if parent:
        made_from = find(store, parent)
        check_base(made_from, model=described)
        parent = made_from.ref
    try:
        return store.publish(name, source, base=described, parent=parent)
    except OSError as error:
        raise BadAdapter(f"{store.root}: cannot write the adapter: {error.strerror or error}") from None


def matches_by_adapter(home: Path) -> Counter[str]:
    """Return in how many of the home's records each adapter version sat, as the headers say; `base` is one of them."""
    found: Counter[str] = Counter()
    for path in (home / RECORDS).rglob(f"*{SUFFIX}"):
        try:
            header = read_header(path)
        except RecordError:
            continue
        named = (_ADAPTER.search(seat.policy) for seat in header.seats)
        found.update({match[1] for match in named if match is not None})
    return found


def row(adapter: Adapter, matches: int) -> dict[str, Any]:
    """Return one version as JSON has it in a list. A version that lost its files says so in `problem`."""
    facts, problem = _facts(adapter)
    return {
        "ref": adapter.ref,
        "name": adapter.name,
        "version": adapter.version,
        "kind": adapter.kind,
        "base": adapter.base,
        "parent": adapter.parent,
        "created": adapter.created,
        "retired": adapter.retired,
        "bytes": None if facts is None else facts.bytes,
        "matches": matches,
        "problem": adapter.problem or problem,
    }


def details(store: AdapterStore, adapter: Adapter, matches: int) -> dict[str, Any]:
    """Return all that is known of one version; its files are compared with what was published."""
    facts, _ = _facts(adapter)
    try:
        store.verify(adapter)
        problem = ""
    except BadAdapter as error:
        problem = str(error)
    except OSError as error:
        problem = f"adapter {adapter.ref}: {error.strerror or error}"
    lora = None
    if facts is not None and facts.kind == "lora":
        lora = {key: value for key, value in asdict(facts).items() if key in ("rank", "alpha", "targets")}
    return row(adapter, matches) | {
        "path": str(adapter.path),
        "parameters": None if facts is None else facts.parameters,
        "lora": lora,
        "ancestors": ancestors(store, adapter),
        "files": adapter.files,
        "problem": problem,
    }


def ancestors(store: AdapterStore, adapter: Adapter) -> list[str]:
    """Return the versions from which this one was trained, the nearest first."""
    by_ref = {one.ref: one for one in store.all()}
    line: list[str] = []
    while adapter.parent and adapter.parent not in line:
        line.append(adapter.parent)
        if adapter.parent not in by_ref:
            break
        adapter = by_ref[adapter.parent]
    return line


def _facts(adapter: Adapter) -> tuple[AdapterFacts | None, str]:
    try:
        return read_adapter(adapter.path), ""
    except BadAdapter as error:
        return None, str(error)
