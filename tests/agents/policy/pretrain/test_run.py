"""A short pretraining, from the first match to the written folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.policy.pretrain.run import PROVENANCE, Settings, pretrain
from arena.cli.main import cli

SHORT = Settings(matches=6, seed=5)
FILES = ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json", "chat_template.jinja")


def _quiet(stage: str, done: int, planned: int, remark: str) -> None:
    assert 0 <= done <= planned


def _command(folder: Path) -> dict[str, Any]:
    """Do the same by the command."""
    command = ["policy", "pretrain", "--matches", "6", "--seed", "5", "--out", str(folder), "--json"]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    made: dict[str, Any] = json.loads(result.stdout)
    return made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_short_run_lowers_the_loss_and_is_the_same_again(tmp_path: Path) -> None:
    first = pretrain(tmp_path / "a", SHORT, command="c", progress=_quiet)
    again = _command(tmp_path / "b")
    assert len(first["curve"]) > 1 and first["curve"][-1]["loss"] < 0.9 * first["curve"][0]["loss"]
    assert again["command"] == "arena policy pretrain --matches 6 --seed 5 --threads 1"
    assert again["folder"] == str(tmp_path / "b")
    for part in ("data", "model"):
        assert first[part] == again[part]
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    written = json.loads((tmp_path / "a" / PROVENANCE).read_text())
    assert written["command"] == "c" and written["data"] == first["data"]
    assert written["prompts"] == ["avalon/compact/2", "werewolf/compact/2", "kuhn/compact/1"]
