"""A short pretraining, from the first match to the written folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("transformers")

from agents.policy.pretrain.mixture import Mixture, Source
from agents.policy.pretrain.run import PROVENANCE, Settings, pretrain, prompt_versions
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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_of_a_game_and_of_tasks_says_what_it_was_made_from(tmp_path: Path) -> None:
    given = ["--game", "kuhn", "--game", "grid:navigate", "--matches", "3", "--random-share", "0.25"]
    out = tmp_path / "own"
    result = CliRunner().invoke(cli, ["policy", "pretrain", *given, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    made = json.loads(result.stdout)
    assert made["command"] == (
        "arena policy pretrain --matches 3 --seed 0 --threads 1 --game kuhn --game grid:navigate --random-share 0.25"
    )
    assert made["settings"]["mixture"]["random"] == 0.25
    assert [source["name"] for source in made["settings"]["mixture"]["sources"]] == ["kuhn", "grid"]
    assert made["prompts"] == ["kuhn/compact/1", "attempt/compact/1"]
    assert made["data"]["matches"] == {"grid": 3, "kuhn": 3}
    assert {kind.split()[0] for kind in made["data"]["decisions"]} == {"kuhn", "grid"}
    played = CliRunner().invoke(
        cli, ["play", "kuhn", "--all", "policy", "--model", str(out), "--home", str(tmp_path), "--json"]
    )
    assert played.exit_code == 0, played.output


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--game", "chess"), "--game: got 'chess', allowed are avalon, werewolf, kuhn, grid, text"),
        (("--game", "avalon:3"), "avalon has 5 to 10 seats"),
        (("--game", "kuhn", "--game", "kuhn:2"), "--game: kuhn comes twice"),
        (("--random-share", "nan"), "--random-share: got nan"),
        (("--option", "speech_rounds=0"), "--option: got speech_rounds, but no game is named with its seats"),
        (("--game", "kuhn:2", "--option", "speech_rounds=0"), "kuhn option"),
        (("--game", "kuhn:2", "--option", "a"), "the form is NAME=VALUE"),
    ],
)
def test_a_mixture_that_cannot_be_is_one_line_and_writes_nothing(
    given: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    result = CliRunner().invoke(cli, ["policy", "pretrain", *given, "--out", str(tmp_path / "own")])
    assert result.exit_code == 2 and told in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "own").exists()


def test_the_prompts_of_tasks_have_a_version_too() -> None:
    assert prompt_versions(("grid", "kuhn", "text")) == ["attempt/compact/1", "kuhn/compact/1"]


def test_plans_of_games_and_tasks_are_mixed_alike_each_time() -> None:
    settings = Settings(matches=8, mixture=Mixture((Source("kuhn"), Source("text", skills=("fetch",)))))
    made = settings.plans(8, seed=1)
    assert made == settings.plans(8, seed=1) != settings.plans(8, seed=2)
    names = [plan.game for plan in made]
    assert sorted(names) == ["kuhn"] * 8 + ["text"] * 8 and names != sorted(names)
