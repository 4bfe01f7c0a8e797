import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from agents.errors import BadAdapter, UnknownAdapter
from agents.policy.adapters import MANIFEST, AdapterStore, base_of, check_base

BASE = "tiny@0123456789ab"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "adapter_config.json").write_text('{"r": 8}')
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> AdapterStore:
    return AdapterStore(tmp_path / "home" / "adapters")


def test_versions_are_numbered_and_found(store: AdapterStore, source: Path) -> None:
    one = store.publish("good", source, base=BASE)
    (source / "adapter_model.safetensors").write_bytes(b"better")
    two = store.publish("good", source, base=BASE, parent=one.ref)
    assert [one.ref, two.ref] == ["good@1", "good@2"]
    assert store.resolve("good") == two == store.resolve("good@2")
    assert store.resolve("good@1") == one
    assert (one.kind, two.parent, two.base) == ("lora", "good@1", BASE)
    assert store.all() == [one, two]
    assert (one.path / "adapter_model.safetensors").read_bytes() == b"weights"
    for adapter in (one, two):
        store.verify(adapter)
    assert {path.name for path in (store.root / "good").iterdir()} == {"1", "2"}


def test_whole_weights_are_told_from_lora(store: AdapterStore, source: Path) -> None:
    (source / "adapter_config.json").rename(source / "config.json")
    assert store.publish("whole", source, base=BASE).kind == "full"
    (source / "config.json").unlink()
    with pytest.raises(BadAdapter, match=r"no adapter_config.json \(LoRA\) and no config.json"):
        store.publish("none", source, base=BASE)


def test_publishing_at_the_same_time_gives_each_its_number(store: AdapterStore, source: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        refs = list(threads.map(lambda _: store.publish("busy", source, base=BASE).ref, range(16)))
    assert sorted(refs, key=lambda ref: int(ref[5:])) == [f"busy@{i}" for i in range(1, 17)]
    for adapter in store.all():
        store.verify(adapter)


@pytest.mark.parametrize("damage", ["changed", "missing", "added", "link"])
def test_a_version_that_was_tampered_with_is_refused(store: AdapterStore, source: Path, damage: str) -> None:
    adapter = store.publish("a", source, base=BASE)
    weights = adapter.path / "adapter_model.safetensors"
    match damage:
        case "changed":
            weights.write_bytes(b"weightz")
        case "missing":
            weights.unlink()
        case "added":
            (adapter.path / "adapter_model.bin").write_bytes(b"pickle")
        case "link":
            weights.unlink()
            os.symlink(source / "adapter_model.safetensors", weights)
    with pytest.raises(BadAdapter):
        store.verify(adapter)


@pytest.mark.parametrize("changed", [{"base": 1}, {"parent": None}, {"files": {"a": 1}}, {"files": 3}])
def test_a_manifest_of_other_types_is_one_line(
    store: AdapterStore, source: Path, changed: dict[str, object]
) -> None:
    path = store.publish("a", source, base=BASE).path / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(BadAdapter, match=r"adapter a@1: manifest.json cannot be read") as caught:
        store.resolve("a")
    assert "\n" not in str(caught.value)


def test_retiring_leaves_nothing_among_the_files(store: AdapterStore, source: Path) -> None:
    adapter = store.publish("a", source, base=BASE)
    store.retire("a@1")
    assert {path.name for path in adapter.path.iterdir()} == {*adapter.files, MANIFEST}
    assert [path.name for path in adapter.path.parent.iterdir()] == ["1"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "a"}', "\xff"])
def test_a_manifest_that_cannot_be_read_is_one_line(store: AdapterStore, source: Path, text: str) -> None:
    adapter = store.publish("a", source, base=BASE)
    (adapter.path / MANIFEST).write_text(text, encoding="latin-1")
    with pytest.raises(BadAdapter, match=r"adapter a@1: manifest.json") as caught:
        store.resolve("a")
    assert "\n" not in str(caught.value)


def test_a_manifest_of_another_adapter_is_refused(store: AdapterStore, source: Path) -> None:
    adapter = store.publish("a", source, base=BASE)
    data = json.loads((adapter.path / MANIFEST).read_text())
    (adapter.path / MANIFEST).write_text(json.dumps(data | {"name": "b"}))
    with pytest.raises(BadAdapter, match="is of another adapter"):
        store.resolve("a@1")


def test_an_adapter_belongs_to_its_model_alone(store: AdapterStore, source: Path) -> None:
    adapter = store.publish("a", source, base=BASE)
    check_base(adapter, model=f"{BASE} on transformers")
    check_base(adapter, model="renamed@0123456789ab on vllm")
    with pytest.raises(BadAdapter, match="it belongs to tiny@0123456789ab, the model is tiny@ffff"):
        check_base(adapter, model="tiny@ffff on transformers")
    with pytest.raises(BadAdapter):
        check_base(adapter, model="llama at http://localhost:8000/v1")
    check_base(replace(adapter, base="llama"), model="llama at http://localhost:8000/v1")
    # What is published here for the weights is played by a server that serves them under their name.
    check_base(adapter, model="tiny at http://localhost:8000/v1")
    assert base_of("a b@1 on vllm") == "a b@1"
    assert base_of("at home on top@1 on transformers") == "at home on top@1"
    assert base_of("at home at http://localhost:8000/v1") == "at home"


def test_retired_versions_are_kept_and_not_given_out(store: AdapterStore, source: Path) -> None:
    one, two = (store.publish("a", source, base=BASE) for _ in range(2))
    assert store.retire("a@2") == replace(two, retired=True)
    assert store.resolve("a") == one
    with pytest.raises(UnknownAdapter, match="a@2: it is retired"):
        store.resolve("a@2")
    store.verify(two)
    store.retire("a@1")
    with pytest.raises(UnknownAdapter, match="adapter a: it is retired"):
        store.resolve("a")
    assert store.publish("a", source, base=BASE).ref == "a@3"


def test_names_and_refs_are_checked(store: AdapterStore, source: Path, tmp_path: Path) -> None:
    for name in ("", "../x", ".x", "a/b", "x" * 65, "a@1"):
        with pytest.raises(BadAdapter, match="adapter name: got"):
            store.publish(name, source, base=BASE)
    for ref in ("", "../a", "a@", "a@x", "a@1@2"):
        with pytest.raises(UnknownAdapter):
            store.resolve(ref)
    with pytest.raises(UnknownAdapter, match="are: none"):
        store.resolve("a")
    store.publish("a", source, base=BASE)
    with pytest.raises(UnknownAdapter, match="are: a@1"):
        store.resolve("b")
    with pytest.raises(UnknownAdapter, match="one version is retired at a time"):
        store.retire("a")


def test_only_plain_files_are_published(store: AdapterStore, source: Path) -> None:
    (source / "inner").mkdir()
    with pytest.raises(BadAdapter, match="a folder of plain files"):
        store.publish("a", source, base=BASE)
    assert list((store.root / "a").iterdir()) == []


def test_one_manifest_that_cannot_be_read_spoils_no_list(store: AdapterStore, source: Path) -> None:
    bad, good = (store.publish(name, source, base=BASE) for name in ("bad", "good"))
    (bad.path / MANIFEST).write_text("{")
    listed = store.all()
    assert [one.ref for one in listed] == ["bad@1", "good@1"] and listed[1] == good
    assert listed[0].problem.startswith("adapter bad@1: manifest.json cannot be read")
    with pytest.raises(UnknownAdapter, match=r"are: good@1$"):
        store.resolve("none")
    with pytest.raises(BadAdapter, match="adapter bad@1"):
        store.resolve("bad")
    with pytest.raises(BadAdapter):
        check_base(listed[0], model=BASE)


def test_a_version_can_be_deleted_but_for_the_newest_whose_number_would_come_again(
    store: AdapterStore, source: Path
) -> None:
    for _ in range(3):
        store.publish("good", source, base=BASE)
    assert store.holds("good@1") and not store.holds("good@9") and not store.holds("good")
    store.retire("good@2")
    assert [store.discard(f"good@{number}") for number in (1, 2, 3, 1, 9)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [one.ref for one in store.all()] == ["good@3"]
    assert {path.name for path in (store.root / "good").iterdir()} == {"3"}
    assert store.publish("good", source, base=BASE).ref == "good@4"
    with pytest.raises(UnknownAdapter, match="one version is deleted at a time"):
        store.discard("good")
