import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Arena = Callable[..., Result]
FILE = 'name = "cli"\nseed = 1\n[budget]\ntasks = 8\n[loop]\ntasks = 4\n[probe]\nlevels = [2.0]\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a small configuration."""
    path = tmp_path / "evolve.toml"
    path.write_text(FILE)
    return path


def test_a_run_its_resumption_and_its_roll_back(arena: Arena, file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = arena("evolve", file, "--home", home)
    assert first.exit_code == 0, first.output
    assert "cli: 2 generations, 8 tasks" in first.stdout and "report.html" in first.stdout
    again = arena("evolve", file, "--home", home)
    assert again.exit_code == 2 and again.stdout == ""
    (line,) = again.stderr.splitlines()
    assert "--resume goes on with it" in line
    more = json.loads(arena("evolve", file, "--home", home, "--resume", "--tasks", "12", "--json").stdout)
    assert (more["generations"], more["tasks"]) == (3, 12)
    back = json.loads(arena("evolve", file, "--home", home, "--rollback", "0", "--json").stdout)
    assert (back["generations"], back["rollbacks"][0]["to"]) == (1, 0)
    assert "wait for a person" in first.stdout or not back["judge"]["queue"]["waiting"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name = ", "no valid TOML"),
        ('actor = "wizard"', "actor: got 'wizard'"),
        ("[curriculum.mix]\nrandom = 0.9", "sum"),
        ("[looop]\n", "unknown key 'looop'"),
    ],
)
def test_a_bad_file_is_one_line(arena: Arena, tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    result = arena("evolve", path, "--home", tmp_path / "home")
    assert result.exit_code == 2 and result.stdout == ""
    (said,) = result.stderr.splitlines()
    assert line in said


def test_a_file_that_is_not_there(arena: Arena, tmp_path: Path) -> None:
    result = arena("evolve", tmp_path / "none.toml", "--home", tmp_path)
    assert result.exit_code == 2 and "cannot read the file" in result.stderr
