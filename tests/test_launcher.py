"""The command beside other projects whose packages have the same names, in processes of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evoke_arena

ROOT = Path(__file__).parents[1]


def run(cwd: Path, *path: Path, module: bool = False) -> subprocess.CompletedProcess[str]:
    """Run `arena --version` with `path` first on the import path."""
    start = (
        [sys.executable, "-m", "evoke_arena"]
        if module
        else [sys.executable, "-P", "-c", "import evoke_arena; evoke_arena.main()"]
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))}
    return subprocess.run(
        [*start, "--version"],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_our_packages_are_recognised_without_importing_them(tmp_path: Path) -> None:
    assert evoke_arena.shadowed() is None
    found = run(tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("arena, version ")


@pytest.mark.parametrize("package", [name for name in evoke_arena.PACKAGES if (ROOT / name).is_dir()])
@pytest.mark.parametrize("form", ["package", "module"])
def test_a_foreign_package_stops_the_command(tmp_path: Path, package: str, form: str) -> None:
    foreign = tmp_path / f"{package}.py" if form == "module" else tmp_path / package / "__init__.py"
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("raise SystemExit('imported')\n")
    found = run(tmp_path, tmp_path)
    assert found.returncode == 2
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"Error: package '{package}' of evoke-arena")
    assert str(foreign) in line and "another project" in line and "PYTHONPATH" in line


def test_the_current_folder_may_shadow_as_well(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "__init__.py").write_text('"""Chess and go."""\n')
    found = run(tmp_path, module=True)
    assert found.returncode == 2
    assert "'games'" in found.stderr and "current folder" in found.stderr


def test_another_copy_of_ours_does_not_mix(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "games", tmp_path / "games")
    found = run(tmp_path, tmp_path)
    assert found.returncode == 2
    assert "another copy of evoke-arena" in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    shutil.copy(ROOT / "evoke_arena.py", tmp_path)
    found = subprocess.run(
        [
            sys.executable,
            "-P",
            "-S",
            "-c",
            "import sys; sys.path.insert(0, '.'); import evoke_arena as e; e.main()",
        ],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr.startswith("Error: package 'games' is missing from ")


def test_a_namespace_folder_of_the_same_name_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "notes.txt").write_text("saved games\n")
    assert run(tmp_path, tmp_path).returncode == 0
