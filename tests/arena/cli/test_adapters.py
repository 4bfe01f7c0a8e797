"""`arena adapters` as a person and as a program call it, on adapters of the embedded model."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from agents.policy.chat import describe_model
from agents.policy.presets import tiny_folder
from agents.policy.settings import PolicySettings
from arena.adapter_listing import matches_by_adapter
from arena.cli.adapters import size_text
from arena.policy_pool import PolicyPool
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from tests.agents.policy.models import save_lora, save_model

Arena = Callable[..., Result]


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a LoRA adapter of the embedded model, as peft writes it."""
    folder = save_lora(tiny_folder(), tmp_path_factory.mktemp("lora") / "a")
    return folder


def told(arena: Arena, *args: object) -> str:
    result = arena("adapters", *args, "--home", "home")
    assert result.exit_code == 0, result.output
    return result.stdout


def found(arena: Arena, *args: object) -> Any:
    return json.loads(told(arena, *args, "--json"))


def refused(arena: Arena, *args: object) -> str:
    """Return the one line on stderr of a call that is refused."""
    result = arena("adapters", *args, "--home", "home")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_an_adapter_from_its_folder_to_its_end(arena: Arena, lora: Path) -> None:
    assert "no adapters" in told(arena, "list")
    assert found(arena, "list") == []
    assert "It plays as policy:liar" in told(arena, "publish", lora, "--name", "liar")
    second = found(arena, "publish", lora, "--name", "liar", "--parent", "liar@1")
    assert (second["ref"], second["parent"], second["retired"]) == ("liar@2", "liar@1", False)
    found(arena, "publish", lora, "--name", "liar", "--parent", "liar")
    rows = found(arena, "list")
    assert [(row["ref"], row["parent"]) for row in rows] == [
        ("liar@1", ""),
        ("liar@2", "liar@1"),
        ("liar@3", "liar@2"),
    ]
    assert {row["base"] for row in rows} == {describe_model(tiny_folder())}
    assert all(row["bytes"] > 10_000 and row["matches"] == 0 and not row["problem"] for row in rows)
    assert "liar@2" in told(arena, "list")

    newest = found(arena, "show", "liar")
    assert newest["ref"] == "liar@3" and newest["ancestors"] == ["liar@2", "liar@1"]
    assert newest["lora"] == {"rank": 8, "alpha": 16.0, "targets": ["q_proj", "v_proj"]}
    assert newest["parameters"] > 1000 and "adapter_model.safetensors" in newest["files"]
    shown = told(arena, "show", "liar@1")
    for part in (
        "liar@1",
        "rank 8, alpha 16, q_proj, v_proj",
        f"{newest['parameters']:,}",
        "every file is what was published",
    ):
        assert part in shown

    assert "no new match plays it" in told(arena, "retire", "liar@3")
    assert found(arena, "show", "liar")["ref"] == "liar@2"
    assert "retired" in told(arena, "list") and "(retired)" in told(arena, "show", "liar@3")
    assert "it is retired" in refused(arena, "retire", "liar@3")
    for ref in ("liar@1", "liar@2"):
        found(arena, "retire", ref)
    assert found(arena, "show", "liar")["ref"] == "liar@3"


def test_matches_are_counted_by_the_records_of_the_home(arena: Arena, lora: Path) -> None:
    found(arena, "publish", lora, "--name", "a")
    home = Path("home")
    folder = home / "replays" / "t1"
    players = {"x": "policy:a", "y": "policy"}
    jobs = [
        MatchJob(f"m{n}", MatchPlan(n, "kuhn", n, n, 0, ("x", "y")), 2, players, record=folder / f"{n}.arena")
        for n in range(2)
    ]
    with PolicyPool(PolicySettings(threads=1), home=home) as pool:
        reports = list(pool.run(jobs, specs=sorted(players.values())))
    assert not any(report.error for report in reports)
    (folder / "odd.arena").write_bytes(b"no record")
    assert matches_by_adapter(home) == {"a@1": 2, "base": 2}
    assert found(arena, "list")[0]["matches"] == 2
    assert found(arena, "show", "a")["matches"] == 2


def test_a_version_whose_files_were_changed(arena: Arena, lora: Path) -> None:
    path = Path(found(arena, "publish", lora, "--name", "a") and found(arena, "show", "a")["path"])
    weights = path / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    result = arena("adapters", "show", "a", "--home", "home")
    assert result.exit_code == 1 and "is not what was published" in " ".join(result.stdout.split())
    weights.unlink()
    row = found(arena, "list")[0]
    assert row["bytes"] is None and "adapter_model.safetensors" in row["problem"]
    assert "damaged" in told(arena, "list")


def test_an_adapter_of_another_model(arena: Arena, lora: Path, tmp_path: Path) -> None:
    other = save_model(tmp_path / "other")
    mine = save_lora(other, tmp_path / "mine")
    assert found(arena, "publish", mine, "--name", "o", "--model", other)["base"].startswith("other@")
    assert (
        "of other" in (line := refused(arena, "publish", lora, "--name", "o", "--model", other))
        or "for other" in line
    )
    line = refused(arena, "publish", lora, "--name", "x", "--parent", "o")
    assert "it belongs to other@" in line
    assert [row["ref"] for row in found(arena, "list")] == ["o@1"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show", "none"], "adapter: got 'none', in home/adapters are: none"),
        (["show", "a b"], "needed is NAME or NAME@VERSION"),
        (["show", "../x"], "needed is NAME or NAME@VERSION"),
        (["retire", "a"], "one version is retired at a time"),
        (["retire", "a@1"], "in home/adapters are: none"),
        (["publish", "nowhere", "--name", "a"], "nowhere: no folder"),
        (["publish", "."], "--name"),
        (["publish", ".", "--name", "a"], "adapter_config.json"),
        (["publish", ".", "--name", "a", "--model", "odd"], "model: got 'odd'"),
    ],
)
def test_bad_input_is_one_line(args: list[str], said: str, arena: Arena) -> None:
    assert said in refused(arena, *args)


@pytest.mark.parametrize("name", ["a b", "../up", "", "x" * 65, "a@1"])
def test_a_bad_name_is_one_line(name: str, arena: Arena, lora: Path) -> None:
    assert f"adapter name: got {name!r}" in refused(arena, "publish", lora, "--name", name)
    assert not list(Path("home").rglob("*.safetensors"))


def test_what_could_run_code_is_refused(arena: Arena, lora: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(lora, tmp_path / "copy"))
    (folder / "training_args.bin").write_bytes(b"x")
    assert "training_args.bin" in refused(arena, "publish", folder, "--name", "a")
    assert not Path("home").exists()


def test_the_model_of_a_server_has_no_files_to_compare_with(arena: Arena, lora: Path) -> None:
    Path("arena.toml").write_text('[policy]\nbackend = "openai"\nmodel = "m@http://127.0.0.1:9"\n')
    assert "--model: the configured model is a server's" in refused(arena, "publish", lora, "--name", "a")
    assert found(arena, "publish", lora, "--name", "a", "--model", "tiny")["ref"] == "a@1"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (5_440_840, "5.4 MB"),
        (271_000_000, "271 MB"),
        (10**16, "10000 TB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_manifest_that_cannot_be_read_is_listed_with_its_problem(
    arena: Arena, lora: Path, tmp_path: Path
) -> None:
    for name in ("bad", "good"):
        found(arena, "publish", lora, "--name", name)
    (path,) = Path("home").resolve().glob("adapters/bad/1/manifest.json")
    path.write_text("{")
    bad, good = found(arena, "list")
    assert bad["ref"] == "bad@1" and "manifest.json cannot be read" in bad["problem"]
    assert good["ref"] == "good@1" and not good["problem"]
    assert "damaged" in told(arena, "list")
    assert "manifest.json cannot be read" in refused(arena, "show", "bad")
    info = arena("policy", "info", "--json", "--home", "home")
    assert info.exit_code == 0, info.output
    assert [one["ref"] for one in json.loads(info.stdout)["adapters"]] == ["good@1"]
