"""`arena watch` as a user calls it: what is refused before the screen is taken over."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arena.cli.main import cli
from arena.cli.watch import _local
from arena.errors import EvolveError
from arena.evolve import LOCK
from arena.lock import hold
from arena.store import Store
from clients.spectator.screens.evolve import EvolveScreen
from clients.spectator.screens.ratings import RatingsScreen
from clients.spectator.screens.records import RecordsScreen
from clients.spectator.screens.runs import RunsScreen
from replays.visitors import PUBLIC
from tests.arena import evolving
from tests.replays.recording import make


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "k.arena"
    path.write_bytes(make("kuhn"))
    return path


def arena(*args: object) -> Result:
    return CliRunner().invoke(cli, ["watch", *map(str, args)])


def said(result: Result) -> str:
    """Return the words of a refusal, whoever words it."""
    return str(result.exception) + result.output


def test_what_cannot_be_watched_is_refused(record: Path, tmp_path: Path) -> None:
    assert "nothing to watch there" in said(arena(tmp_path / "none"))
    (tmp_path / "no.arena").write_bytes(b"no")
    assert "no arena record" in said(arena(tmp_path / "no.arena"))
    assert "this match has seats 0 to 1" in said(arena(record, "--seat", 2))
    assert "this match has plies 0 to" in said(arena(record, "--all", "--ply", 99))
    assert "--ply needs --all" in said(arena(record, "--ply", 1))
    assert "either --seat or --all" in said(arena(record, "--seat", 0, "--all"))
    assert "--match needs a URL" in said(arena(record, "--match", "m"))
    assert "the form is ws://HOST:PORT" in said(arena("http://127.0.0.1"))
    assert "--match or --show" in said(arena("ws://127.0.0.1:1", "--match", "m", "--show", "lobby"))
    assert "need a URL" in said(arena(record, "--http", "http://h")) + said(arena(record, "--show", "lobby"))
    assert "--http: got 'h'" in said(arena("ws://127.0.0.1:1", "--http", "h"))
    assert "go with --web" in said(arena(record, "--web-port", 1))
    assert "allowed are 0 to 65535" in said(arena(record, "--web", "--web-port", 65536))


def test_without_a_terminal_it_says_what_prints_a_record(record: Path) -> None:
    result = arena(record)
    assert result.exit_code == 2
    assert "`arena replay show` prints a record" in result.output


def test_the_command_line_loads_no_textual_until_it_is_needed() -> None:
    code = (
        "import sys; from arena.cli.main import cli; import arena.cli.watch; print('textual' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_credit_that_cannot_be_shown_is_refused(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.cli.watch.check_terminal", lambda otherwise: None)
    monkeypatch.setattr("clients.spectator.app.SpectatorApp.run", lambda app: None)
    monkeypatch.chdir(tmp_path)
    assert arena(record, "--credit", "equal").exit_code == 0
    assert arena(record, "--credit", "adca", "--ply", 1).exit_code == 0
    assert "credit: got 'luck', allowed are equal" in said(arena(record, "--credit", "luck"))
    assert "either --seat or --credit" in said(arena(record, "--credit", "equal", "--seat", 0))
    assert "--credit needs a FILE" in said(arena(tmp_path, "--credit", "equal"))
    assert "--credit needs a FILE" in said(arena("ws://127.0.0.1:1", "--credit", "equal"))
    printed = CliRunner().invoke(cli, ["credit", str(record), "--method", "equal", "--json"])
    assert printed.exit_code == 0
    sheet = tmp_path / "credit.json"
    sheet.write_text(printed.stdout)
    assert arena(record, "--credit", sheet).exit_code == 0
    sheet.write_text(printed.stdout.replace('"p0"', '"q0"').replace('"p1"', '"q1"'))
    assert "of another match" in said(arena(record, "--credit", sheet))
    sheet.write_text("{")
    assert "no credit can be read from it" in said(arena(record, "--credit", sheet))
    record.write_bytes(record.read_bytes()[:-30])
    cut = arena(record, "--credit", "equal")
    assert cut.exit_code == 2 and "cut short" in said(cut)


def test_a_run_and_a_home_are_shown_as_what_they_are(tmp_path: Path) -> None:
    outcome = evolving.run(evolving.small(budget={"tasks": 6}), tmp_path)
    assert "--seat and --all are of matches" in said(arena(outcome.folder, "--all"))
    assert "`arena replay show` prints a record" in said(arena(outcome.folder))
    assert modes(outcome.folder) == {"run": EvolveScreen}
    assert modes(tmp_path) == {"runs": RunsScreen}
    (tmp_path / "replays").mkdir()
    assert modes(tmp_path) == {"records": RecordsScreen, "runs": RunsScreen}
    Store(tmp_path).close()
    assert modes(tmp_path) == {"records": RecordsScreen, "ratings": RatingsScreen, "runs": RunsScreen}
    with hold(outcome.folder, name=LOCK, mode=0o644, taken=EvolveError(""), unusable=EvolveError):
        app = _local(tmp_path, None, PUBLIC, None)
        screen = app._modes["runs"]()  # type: ignore[operator]
        assert app._first == "runs" and screen._opened == "small"
    assert list(modes(tmp_path / "replays")) == ["records"]


def modes(path: Path) -> dict[str, type]:
    """Return the modes in which a directory is shown, with their screens."""
    app = _local(path, None, PUBLIC, None)
    return {name: type(app._modes[name]()) for name in app._names}  # type: ignore[operator]
