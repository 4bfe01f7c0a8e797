"""Which folders may become an adapter version: judged by their files, for a real LoRA adapter and broken ones."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents.errors import BadAdapter
from agents.policy.adapter_files import check_files, read_adapter
from agents.policy.presets import tiny_folder
from agents.policy.weights import read_json
from tests.agents.policy.models import save_lora, save_model


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a LoRA adapter of the embedded model."""
    return save_lora(tiny_folder(), tmp_path_factory.mktemp("made") / "a")


@pytest.fixture
def lora(made: Path, tmp_path: Path) -> Path:
    """Return a copy of it that a test may break."""
    return Path(shutil.copytree(made, tmp_path / "lora"))


def change(folder: Path, **values: Any) -> None:
    """Change the adapter's configuration."""
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def refused(folder: Path, base: Path | None = None) -> str:
    """Return the one line with which a folder is refused."""
    with pytest.raises(BadAdapter) as caught:
        check_files(folder, base=tiny_folder() if base is None else base)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_lora_adapter_as_peft_writes_it(lora: Path) -> None:
    facts = check_files(lora, base=tiny_folder())
    assert (facts.kind, facts.rank, facts.alpha, facts.targets) == ("lora", 8, 16.0, ("q_proj", "v_proj"))
    config = read_json(tiny_folder() / "config.json")
    # In each layer two projections, of two matrices each.
    assert facts.parameters == config["num_hidden_layers"] * 2 * 2 * 8 * config["hidden_size"]
    assert facts.bytes == sum(path.stat().st_size for path in lora.iterdir())
    assert read_adapter(lora) == facts


def test_whole_weights_of_the_same_vocabulary(tmp_path: Path) -> None:
    whole = Path(shutil.copytree(tiny_folder(), tmp_path / "whole"))
    facts = check_files(whole, base=tiny_folder())
    assert facts.kind == "full" and facts.parameters > 1_000_000 and facts.rank == 0
    other = save_model(tmp_path / "other")
    assert "vocab_size" in refused(other)
    next(whole.glob("*.safetensors")).unlink()
    assert "no weights" in refused(whole)


def test_what_is_no_folder_of_an_adapter(tmp_path: Path) -> None:
    assert "no folder" in refused(tmp_path / "none")
    assert "adapter_config.json" in refused(tmp_path)


@pytest.mark.parametrize("name", ["training_args.bin", "adapter_model.bin", "x.pt", "x.pkl", "run.py", "x"])
def test_files_that_could_run_code_are_refused(name: str, lora: Path) -> None:
    (lora / name).write_bytes(b"x")
    assert name in refused(lora) and "safetensors" in refused(lora)


def test_links_and_folders_are_refused(lora: Path) -> None:
    (lora / "more.json").symlink_to("/etc/hostname")
    assert "plain files" in refused(lora)
    (lora / "more.json").unlink()
    (lora / "checkpoint-1").mkdir()
    assert "plain files" in refused(lora)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("r", 7),
        ("r", "8"),
        ("r", None),
        ("r", True),
        ("bias", "all"),
        ("use_dora", True),
        ("modules_to_save", ["lm_head"]),
        ("rank_pattern", {"q_proj": 4}),
        ("peft_type", "IA3"),
    ],
)
def test_what_not_every_back_end_plays_is_refused(name: str, value: object, lora: Path) -> None:
    change(lora, **{name: value})
    line = refused(lora)
    assert f"{name}: got" in line and "adapter_config.json" in line


@pytest.mark.parametrize(
    ("name", "value"),
    [("lora_alpha", "high"), ("lora_alpha", [1]), ("target_modules", 5), ("target_modules", [["q_proj"]])],
)
def test_a_configuration_of_other_types_is_refused_in_one_line(name: str, value: object, lora: Path) -> None:
    change(lora, **{name: value})
    assert f"{name}: got" in refused(lora)
    with pytest.raises(BadAdapter, match=name):
        read_adapter(lora)


def test_the_shapes_must_be_those_of_the_model(lora: Path, tmp_path: Path) -> None:
    change(lora, base_model_name_or_path="elsewhere")
    other = save_model(tmp_path / "other")
    line = refused(lora, base=other)
    assert "shape" in line or "no part of" in line
    change(lora, r=16)
    assert "the shape" in refused(lora)


def test_an_adapter_that_was_trained_on_other_weights_here_is_refused(lora: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(tiny_folder(), tmp_path / "other"))
    with (other / "config.json").open("a") as opened:
        opened.write("\n")
    change(lora, base_model_name_or_path=str(other))
    assert "it was trained on other@" in refused(lora)


def test_damaged_weights_are_refused(lora: Path) -> None:
    path = lora / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert "no safetensors file" in refused(lora)
    path.unlink()
    assert "adapter_model.safetensors" in refused(lora)
    (lora / "adapter_config.json").write_text("{")
    assert "JSON" in refused(lora)
