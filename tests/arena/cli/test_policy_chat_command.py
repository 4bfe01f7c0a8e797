"""`arena policy chat` as a person and as a program call it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from arena.cli import policy_chat
from tests.arena.policy_records import play, play_bots

Arena = Callable[..., Result]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def record(home: Path) -> Path:
    """Return a match of the embedded model against a bot."""
    return play(home, "kuhn", ("policy", "random"), home=home)


def told(arena: Arena, *args: object, **extra: Any) -> str:
    result = arena("policy", "chat", *args, **extra)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(arena: Arena, *args: object) -> str:
    """Return the one line on stderr of a call that is refused, with nothing on stdout."""
    result = arena("policy", "chat", *args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("Loading")]
    return line


def test_a_recorded_decision(arena: Arena, record: Path, home: Path) -> None:
    shown = told(arena, record, "--home", home)
    for part in ("Kuhn poker · decision ", "system ──", "user ──", "tokens after the chat template"):
        assert part in shown
    for part in ("reply (the answer):", "tokens: ", "log-probability of all", "in the match: "):
        assert part in shown
    assert "adapter base, prompt kuhn/compact/1" in shown.replace("\n", " ")
    raw = told(arena, record, "--raw", "--home", home)
    assert "the very string" in raw and "<|assistant|>" in raw and "<|assistant|>" not in shown


def test_the_same_as_json(arena: Arena, record: Path, home: Path) -> None:
    found = json.loads(told(arena, record, "--json", "--raw", "--home", home))
    (call,) = found["recorded"]["calls"]
    assert found["policy"] and found["asked"] is None and call["exact"] is True
    assert call["raw"].startswith("<|system|>") and call["prompt_tokens"] > 5
    assert call["reply"] == found["recorded"]["action"]
    assert all(token["logprob"] <= 0 for token in call["tokens"])
    assert "raw" not in json.loads(told(arena, record, "--json", "--home", home))["recorded"]["calls"][0]


def test_asked_now(arena: Arena, record: Path, home: Path) -> None:
    shown = told(arena, record, "--ask", "--samples", 2, "--home", home)
    for part in (
        "reply 1 of 2",
        "reply 2 of 2",
        "it means: ",
        "probability of each option, at temperature 1:",
    ):
        assert part in shown
    found = json.loads(told(arena, record, "--ask", "--temperature", 0, "--json", "--home", home))
    asked = found["asked"]
    assert asked["temperature"] == 0.0 and len(asked["samples"]) == 1
    assert asked["options"][0]["probability"] == 1.0
    assert asked["samples"][0]["calls"][0]["messages"] == found["recorded"]["calls"][0]["messages"]


def test_asked_in_another_style_and_mode(arena: Arena, record: Path, home: Path) -> None:
    found = json.loads(
        told(arena, record, "--ask", "--mode", "two", "--budget-tokens", 200, "--json", "--home", home)
    )
    asked = found["asked"]
    assert asked["mode"] == "two"
    assert [call["want"] for call in asked["samples"][0]["calls"]] == ["thought", "action"]
    assert asked["samples"][0]["action"] in ("check", "bet", "call", "fold")


def test_bots_records(arena: Arena, home: Path, tmp_path: Path) -> None:
    path = play_bots(tmp_path, messy=True)
    shown = told(arena, path, "--home", home)
    assert "random, no language model" in shown and "werewolf seats 6" in shown
    again = next(
        number
        for number in range(40)
        if "what came of it" in arena("policy", "chat", path, "--ply", number).stdout
    )
    assert "in the match: " in told(arena, path, "--ply", again, "--home", home)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--ply", 99], "ply: got 99"),
        (["--seat", 5], "seat: got 5, this match has seats 0 to 1"),
        (["--attempt", 3], "attempt: got 3"),
        (["--samples", 2], "--samples goes with --ask"),
        (["--ask", "--samples", 0], "--samples"),
        (["--adapter", "no such"], "adapter: got 'no such'"),
        (["--adapter", "none"], "adapter: got 'none'"),
        (["--temperature", "-1"], "policy.temperature: got -1.0"),
        (["--style", "odd"], "--style"),
        (["--model", "nowhere"], "model: got 'nowhere'"),
        (["--backend", "openai", "--model", "x"], "the back end openai needs MODEL@URL"),
        (["--style", "full", "--budget-tokens", 40], "the budget is 40 tokens"),
    ],
)
def test_bad_input_is_one_line(args: list[object], said: str, arena: Arena, record: Path, home: Path) -> None:
    result = arena("policy", "chat", record, "--home", home, *args)
    assert result.exit_code in (1, 2) and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert said in line


def test_a_damaged_record_is_said_to_be_damaged(
    arena: Arena, record: Path, home: Path, tmp_path: Path
) -> None:
    raw = record.read_bytes()
    cut = tmp_path / "cut.arena"
    for size in range(len(raw) - 40, 0, -40):  # to the first decision, and no further
        cut.write_bytes(raw[:size])
        result = arena("policy", "chat", cut, "--home", home)
        if "decision 1 of 1" in result.stdout or result.exit_code:
            break
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("Warning: the record is damaged from event ") and line.endswith(
        "after that are lost."
    )
    document = json.loads(told(arena, cut, "--json", "--home", home))
    assert document["note"].startswith("the record is damaged from event ")
    said = arena("policy", "chat", cut, "--ply", 9, "--home", home).stderr
    assert (
        "Error: ply: got 9, this record has plies 0 to " in said
        and "; the record is damaged from event " in said
    )
    assert json.loads(told(arena, record, "--json", "--home", home))["note"] == ""


def test_a_file_that_is_no_record(arena: Arena, tmp_path: Path) -> None:
    assert "cannot read the record" in refused(arena, tmp_path / "none.arena")
    (tmp_path / "x").write_text("x")
    assert "no arena record" in refused(arena, tmp_path / "x")


def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_chat, "at_terminal", lambda: True)


def test_a_person_goes_through_the_decisions(
    arena: Arena, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    path = play_bots(tmp_path, "avalon", seats=5)
    shown = told(arena, path, "--home", home, input="n\nn\np\np\np\n\nwhat\nt\ng 3\nr\ng 9999\nq\nn\n")
    steps = [line.split(" · ")[1] for line in shown.splitlines() if " · decision " in line]
    assert [step.split()[1] for step in steps[:5]] == ["1", "2", "3", "2", "1"]
    assert "this is the first decision" in shown
    assert shown.count("[n]ext") == 2 and "go to ply PLY" in shown
    assert "the temperature is 1; t 0.7 sets it" in shown
    assert " · ply 3 · " in shown and "the very string" in shown
    assert "ply: got 9999" in shown
    assert shown.rstrip().endswith(">")


def test_a_person_asks_as_often_as_they_like(
    arena: Arena, record: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    result = arena("policy", "chat", record, "--home", home, input="a\na 2\nt 11\nt 0\na 0\na 9999\na x\na\n")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert result.stderr.count("Loading the model") == 1
    assert "reply 2 of 2" in shown and "temperature: got 11" in shown
    assert "answers: got 0" in shown and "answers: got 9999" in shown and "quit" in shown
    assert "at temperature 0:" in shown and "100.0%" in shown


def test_json_is_one_document_also_on_a_terminal(
    arena: Arena, record: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch)
    assert json.loads(told(arena, record, "--json", "--home", home, input="n\n"))["decisions"] >= 2
