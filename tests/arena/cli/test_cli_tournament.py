"""`arena tournament` and `arena ratings`, as a person and as a script use them."""

import json
from pathlib import Path
from typing import Any

import pytest

from arena.standings import leaderboard
from arena.store import Store
from replays.verify import verify_file

TWO = ["--player", "a=scripted", "--player", "b=random"]
KEYS = (
    "player",
    "game",
    "played",
    "won",
    "drawn",
    "lost",
    "score",
    "rating",
    "low",
    "high",
    "by_role",
    "forced",
)


def test_a_tournament_as_json(arena: Any) -> None:
    found = arena(
        "tournament",
        "--game",
        "avalon",
        "--game",
        "werewolf",
        "--game",
        "kuhn",
        *TWO,
        "--matches",
        "8",
        "--json",
    )
    assert found.exit_code == 0, found.stderr
    data = json.loads(found.stdout)
    assert data["tournament"] == "t1"
    assert data["matches"] == {"planned": 24, "played": 24, "failed": 0}
    assert [(row["game"], row["player"]) for row in data["standings"] if row["player"] == "a"] == [
        ("avalon", "a"),
        ("kuhn", "a"),
        ("werewolf", "a"),
    ]
    for row in data["standings"]:
        assert all(key in row for key in (*KEYS, "illegal", "credit"))
        assert isinstance(row["credit"], float)
        assert sum(role["played"] for role in row["by_role"].values()) == row["played"]
    assert set(data["side_effect"]) == {"avalon", "werewolf", "kuhn"}
    assert data["wall_s"] > 0
    records = sorted(Path(data["records"]).glob("*.arena"))
    assert len(records) == 24 and all(verify_file(path).ok for path in records)


def test_a_tournament_for_people(arena: Any) -> None:
    found = arena(
        "tournament", "--game", "werewolf", *TWO, "--matches", "7", "--concurrency", "1", "--home", "h"
    )
    assert found.exit_code == 0, found.stderr
    for text in (
        "Werewolf",
        "Side effect: village",
        "seer",
        "Uneven in werewolf:",
        "Tournament t1: 7 of 7 matches played, 0 failed",
        "Records: h/replays/t1",
        "arena replay verify h/replays/t1\n",
    ):
        assert text in found.stdout
    assert "return" not in found.stdout, "every return is 1 or -1, and the score says it all"
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_a_sequential_test_is_reported(arena: Any) -> None:
    found = arena("tournament", "--game", "kuhn", *TWO, "--matches", "4", "--sprt", "0,50,0.05,0.05")
    assert found.exit_code == 0, found.stderr
    assert (
        "Sequential test in kuhn: a against b, undecided between 0 and 50 Elo; play more --matches\n"
        in found.stdout
    )
    decided = arena("tournament", "--game", "werewolf", *TWO, "--matches", "200", "--sprt", "0,50,0.05,0.05")
    assert "Sequential test in werewolf: a against b, stronger by 50 Elo is accepted\n" in decided.stdout
    strong = ("--player", "b=random", "--player", "a=scripted")
    lost = arena("tournament", "--game", "werewolf", *strong, "--matches", "200", "--sprt", "0,50,0.05,0.05")
    assert "Sequential test in werewolf: b against a, stronger by 0 Elo or less is accepted\n" in lost.stdout


def test_the_return_is_shown_where_it_says_more_than_the_score(arena: Any) -> None:
    found = arena("tournament", "--game", "kuhn", *TWO, "--matches", "8", "--home", "h", "--json")
    row = json.loads(found.stdout)["standings"][0]
    shown = arena("ratings", "--home", "h").stdout
    head, line = next(
        (lines[0].split(), lines[2].split())
        for lines in zip(*(shown.splitlines()[i:] for i in range(3)), strict=False)
        if lines[0].startswith(" player")
    )
    assert head[5] == "return" and line[5] == f"{row['mean_return']:+.2f}"


def test_a_home_with_a_space_is_quoted_and_a_tournament_of_nothing_names_no_records(arena: Any) -> None:
    found = arena("tournament", "--game", "kuhn", *TWO, "--matches", "2", "--home", "my home")
    assert "Verify them: arena replay verify 'my home/replays/t1'\n" in found.stdout
    empty = arena("tournament", "--game", "kuhn", *TWO, "--matches", "0", "--home", "my home")
    assert "0 of 0 matches played" in empty.stdout and "verify" not in empty.stdout


def test_failed_matches_are_exit_code_1_and_named(arena: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: str, seat: Any) -> Any:
        raise RuntimeError("no such weights")

    monkeypatch.setattr("arena.runner.make_agent", broken)
    found = arena("tournament", "--game", "kuhn", *TWO, "--matches", "3", "--concurrency", "1", "--json")
    assert found.exit_code == 1
    data = json.loads(found.stdout)
    assert data["matches"] == {"planned": 3, "played": 0, "failed": 3}
    assert data["standings"] == [] and len(data["failures"]) == 3
    (line,) = found.stderr.splitlines()
    assert line.startswith("Error: 3 of 3 matches failed, first ") and "no such weights" in line


def test_a_file_and_a_configuration(arena: Any) -> None:
    Path("t.toml").write_text('matches = 3\n[players]\nx = "random"\ny = "random"\n[games.kuhn]\n')
    Path("arena.toml").write_text('home = "there"\n[match]\nretries = 0\n[tournament]\nconcurrency = 1\n')
    found = arena("tournament", "t.toml", "--seed", "4", "--json")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["records"] == "there/replays/t1"
    with Store(Path("there")) as store:
        (row,) = store.tournaments()
    assert (row.config["seed"], row.config["retries"]) == (4, 0)


def test_ratings_cover_everything_in_the_store(arena: Any) -> None:
    for args in (
        ["--game", "kuhn", "--matches", "6"],
        ["--game", "werewolf", "--matches", "4"],
        ["--game", "kuhn", "--matches", "2"],
    ):
        assert arena("tournament", *args, *TWO, "--home", "h").exit_code == 0
    found = arena("ratings", "--home", "h", "--json")
    data = json.loads(found.stdout)
    assert {(row["game"], row["player"]): row["played"] for row in data["standings"]} == {
        ("kuhn", "a"): 8,
        ("kuhn", "b"): 8,
        ("werewolf", "a"): 16,
        ("werewolf", "b"): 16,
    }
    with Store(Path("h")) as store:
        kuhn = store.rated_matches(game="kuhn")
    alone = json.loads(arena("ratings", "--home", "h", "--game", "kuhn", "--json").stdout)
    expected = leaderboard(kuhn, sides={"kuhn": ("first", "second")}).as_dict()
    assert alone["standings"] == expected["standings"]
    assert "Kuhn poker" in arena("ratings", "--home", "h").stdout


def test_ratings_without_a_store_or_without_matches(arena: Any) -> None:
    found = arena("ratings", "--home", "none")
    assert found.exit_code == 1
    assert found.stderr == "Error: none/arena.db: there is no store yet; run `arena tournament` first\n"
    assert arena("tournament", "--game", "kuhn", *TWO, "--matches", "0", "--home", "h").exit_code == 0
    assert arena("ratings", "--home", "h").stdout == "No matches yet.\n"
    assert json.loads(arena("ratings", "--home", "h", "--json").stdout)["standings"] == []


@pytest.mark.slow
def test_the_default_tournament_without_arguments(process: Any) -> None:
    found = process("tournament", "--matches", "6", "--json")
    assert found.returncode == 0, found.stderr
    data = json.loads(found.stdout)
    assert data["matches"] == {"planned": 18, "played": 18, "failed": 0}
    assert {row["player"] for row in data["standings"]} == {"policy", "scripted", "random"}
    assert data["policies"]["policy"]["requests"] > 0 == data["policies"]["policy"]["failures"]
    assert not data["imbalance"]
    # What models are made with has a lot to say; none of it is for whoever plays.
    assert all(" of 18 matches, " in line for line in found.stderr.splitlines())
    assert data["records"] == "arena-data/replays/t1"
