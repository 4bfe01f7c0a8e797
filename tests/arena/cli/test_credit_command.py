"""`arena credit`: its JSON, its tables, and one clear line for whatever is wrong."""

import json
from math import fsum
from pathlib import Path
from typing import Any

import pytest

from replays.reader import read_record
from tests.replays.recording import entries, forge, header, make, swap


@pytest.fixture
def record(arena: Any, tmp_path: Path) -> Path:
    path = tmp_path / "a.arena"
    found = arena("play", "avalon", "--seed", 7, "--out", path, "--home", tmp_path / "home")
    assert found.exit_code == 0, found.stderr
    return path


QUICK = ("--replicates", 1, "--no-steps")


@pytest.mark.parametrize("method", ["equal", "leave-one-out", "shapley", "adca"])
def test_json_has_its_keys(arena: Any, record: Path, method: str) -> None:
    found = arena("credit", record, "--method", method, "--team", "good", "--json", "--replicates", 1)
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    assert (data["team"], data["method"], data["result"]) == ("good", method, -1.0)
    assert {"seat", "player", "role", "credit", "low", "high"} <= data["seats"][0].keys()
    assert {"ply", "seat", "credit", "label"} <= data["steps"][0].keys()
    assert {step["label"] for step in data["steps"]} <= {"good", "bad", None}
    assert [seat["seat"] for seat in data["seats"]] == [2, 3, 4]
    assert {step["seat"] for step in data["steps"]} == {2, 3, 4}
    if method in ("equal", "shapley"):
        assert fsum(seat["credit"] for seat in data["seats"]) == data["result"]


def test_the_table_tells_seats_steps_and_cost(arena: Any, record: Path) -> None:
    found = arena("credit", record, "--replicates", 1)
    assert found.exit_code == 0, found.stderr
    assert "a.arena: good got -1, divided by shapley" in found.stdout
    assert "Contained in the shares:" in found.stdout
    assert "label" in found.stdout and "replays, " in found.stdout


def test_many_records_tell_of_players(arena: Any, record: Path) -> None:
    found = arena("credit", record.parent, "--method", "leave-one-out", "--json")
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    assert data["reference"] == "scripted"
    assert {"player", "game", "matches", "contribution", "low", "high", "p", "accusation"} <= data["players"][
        0
    ].keys()
    assert [match["team"] for match in data["matches"]] == ["good", "evil"]
    shown = arena("credit", record.parent, "--method", "leave-one-out", *QUICK)
    assert "avalon: contributions by leave-one-out, against scripted" in shown.stdout
    assert "1 records, 5 replays" in shown.stdout


def test_compare_ranks_the_methods(arena: Any, record: Path) -> None:
    found = arena("credit", record, "--compare", "--replicates", 1, "--json")
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    assert [row["method"] for row in data["methods"]] == ["equal", "leave-one-out", "shapley", "adca"]
    assert data["methods"][0]["spearman"] is None
    assert "Agreement with Shapley" in arena("credit", record, "--compare", "--replicates", 1).stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("--method", "guess"),
            "credit method: got 'guess', allowed are equal, leave-one-out, shapley, adca",
        ),
        (("--team", "red"), "team: got 'red', this match has good, evil"),
        (("--reference", "planner"), "reference: player planner: planner plays forge, not avalon"),
        (("--reference", "nobody"), "reference: player: got 'nobody'"),
        (("--error", "-1"), "credit error: got -1.0, a number from 0 up is needed"),
        (("--replicates", "0"), "credit least: got 0"),
    ],
)
def test_bad_flags_are_one_line(arena: Any, record: Path, args: tuple[str, ...], said: str) -> None:
    found = arena("credit", record, *args)
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: {said}")
    assert found.stderr.count("\n") == 1
    assert found.stdout == ""


def test_bad_records_are_one_line(arena: Any, tmp_path: Path) -> None:
    path = tmp_path / "k.arena"
    whole = make("kuhn")
    path.write_bytes(whole[:-10])
    found = arena("credit", path)
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    assert found.stderr.startswith(f"Error: {path}: the record is cut short")
    head = header("kuhn")
    made, _ = entries(head)
    changed = [swap(entry, card="ace") if getattr(entry, "kind", "") == "card" else entry for entry in made]
    path.write_bytes(forge(whole, changed))
    found = arena("credit", path)
    assert (found.exit_code, found.stderr.count("\n")) == (3, 1)
    assert found.stderr.startswith(f"Error: {path}: event 2 is bad")
    found = arena("credit", path, tmp_path)
    assert found.exit_code == 2 or found.exit_code == 3
    found = arena("credit", tmp_path / "none.arena")
    assert found.exit_code == 2 and "No such file" in found.stderr
    assert read_record(path).header.game == "kuhn"


def test_a_tournament_shows_credit(arena: Any, tmp_path: Path) -> None:
    call = (
        "tournament",
        "--game",
        "avalon",
        "--players",
        5,
        "--player",
        "a=scripted",
        "--player",
        "b=random",
    )
    more = ("--matches", 2, "--concurrency", 1, "--home", tmp_path, "--json")
    data = json.loads(arena(*call, *more).stdout)
    assert data["credit"] == "equal"
    assert all(-1 <= row["credit"] <= 1 for row in data["standings"])
    found = arena(*call, *more, "--credit", "leave-one-out", "--seed", 5)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["credit"] == "leave-one-out"
