import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from agents.judges.evaluator import Evaluator, JudgeSettings
from agents.judges.queue import FILE, PersonQueue
from arena.cli.main import cli
from clients.spectator.app import SpectatorApp
from tests.agents.judges.judging import PLAN, case

Arena = Callable[..., Result]
CASES = [case(), case(PLAN[:3]), case(PLAN[:4], "purposeful")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with three cases in its queue."""
    judges = Evaluator(JudgeSettings(audit_share=1.0))
    with PersonQueue(tmp_path / "home" / FILE) as queue:
        queue.put([(one, judges.by_rules(one)) for one in CASES], run="r1")
    return tmp_path / "home"


def test_a_pipe_answers_case_by_case(arena: Arena, home: Path) -> None:
    result = arena("judge", "audit", "--home", home, "--person", "ada", input="n\nwhat\ns\ny\n")
    assert result.exit_code == 0, result.output
    assert "Disputed: machine had said otherwise" in result.output
    assert "got 'what', allowed are yes, no, skip and quit" in result.output
    assert "Did the actor pursue the task with purpose" in result.output
    assert "1 wait, 2 answered, 1 disputed" in result.output
    with PersonQueue(home / FILE) as queue:
        assert [(one.case, one.answer) for one in queue.waiting(answered=True)] == [
            (CASES[0], False),
            (CASES[2], True),
        ]
    done = arena("judge", "audit", "--home", home, "--answered")
    assert "DISPUTED" in done.output and "by ada" in done.output


def test_a_pipe_that_ends_keeps_what_was_answered(arena: Arena, home: Path) -> None:
    result = arena("judge", "audit", "--home", home, input="y\n")
    assert result.exit_code == 0, result.output
    assert "2 wait, 1 answered, 0 disputed" in result.output


def test_json_shows_the_evidence_and_verdicts_answer(arena: Arena, home: Path) -> None:
    found = json.loads(arena("judge", "audit", "--home", home, "--json").stdout)
    assert [one["id"] for one in found] == [one.id for one in CASES]
    assert [f["layer"] for f in found[0]["judgement"]["findings"]] == ["rules", "machine"]
    assert found[1]["evidence"]["ended"]["how"] == "unmet"
    flags = ["--verdict", f"{CASES[0].id[:12]}=yes", "--verdict", f"{CASES[2].id}=no"]
    done = json.loads(arena("judge", "audit", "--home", home, *flags, "--note", "seen", "--json").stdout)
    assert [(one["answer"], one["note"], one["disputed"]) for one in done] == [
        (True, "seen", False),
        (False, "seen", False),
    ]
    assert len(json.loads(arena("judge", "audit", "--home", home, "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        ("ffff=yes", "of which the queue has none"),
        ("x", "the form is NAME=VALUE"),
        (f"{CASES[0].id}=maybe", "allowed are yes and no"),
    ],
)
def test_bad_verdicts_are_one_line(arena: Arena, home: Path, verdict: str, line: str) -> None:
    result = arena("judge", "audit", "--home", home, "--verdict", verdict)
    assert result.exit_code == 2 and result.stdout == ""
    (said,) = result.stderr.splitlines()
    assert line in said


def test_a_home_without_a_queue(arena: Arena, tmp_path: Path) -> None:
    assert json.loads(arena("judge", "audit", "--home", tmp_path, "--json").stdout) == []
    assert "nothing waits" in arena("judge", "audit", "--home", tmp_path).stdout
    assert arena("judge", "audit", "--home", tmp_path, "--verdict", "a=yes").exit_code == 2
    assert not (tmp_path / FILE).exists()


def test_regression_from_the_command_line(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(arena("judge", "regress", "--times", "2", "--json").stdout)
    assert (found["ok"], found["cases"], found["right"], found["agree"]) == (True, 20, 20, 20)
    assert "20 of 20 right" in arena("judge", "regress").stdout
    monkeypatch.setattr("agents.judges.evaluator.check", _always_solved)
    result = arena("judge", "regress", "--json")
    assert result.exit_code == 1 and not json.loads(result.stdout)["ok"]


def _always_solved(spec, attempt, *, world=None):  # type: ignore[no-untyped-def]
    from games.tasks.check import Layer, Verdict

    return Verdict("solved", "so it is", 1, None, (Layer("rules", True, ""), Layer("machine", True, "")))


def test_the_commands_are_there() -> None:
    assert "judge" in cli.list_commands(None)  # type: ignore[arg-type]


def test_a_terminal_is_given_a_screen_unless_plain_is_asked_for(
    arena: Arena, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[Path, str, int]] = []

    def run(app: SpectatorApp) -> None:
        screen = app._modes["audit"]()  # type: ignore[operator]
        source = screen.source
        asyncio.run(source.answer(CASES[2].id, True))
        shown.append((source.path, source._person, source._limit))

    monkeypatch.setattr("arena.cli.judge._has_screen", lambda: True)
    monkeypatch.setattr(SpectatorApp, "run", run)
    result = arena("judge", "audit", "--home", home, "--person", "ada", "--limit", 7)
    assert result.exit_code == 0, result.output
    assert shown == [(home / FILE, "ada", 7)]
    assert "1 answer kept in" in result.output and "2 wait, 1 answered, 0 disputed" in result.output
    plain = arena("judge", "audit", "--home", home, "--plain", input="q\n")
    assert "yes, no, skip or quit?" in plain.output and len(shown) == 1
    arena("judge", "audit", "--home", home, "--plain", input="y\nn\n")
    done = arena("judge", "audit", "--home", home)
    assert done.output == "0 wait, 3 answered, 0 disputed\n" and len(shown) == 1
