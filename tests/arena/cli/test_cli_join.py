"""`arena join` against a real server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.arena.connected import token
from tests.clients.background import background_server

Arena = Callable[..., Result]


def test_json(arena: Arena, tmp_path: Path) -> None:
    with background_server(tmp_path, fill_after_s=0.02) as server:
        where = server.addresses.websocket
        what = ("--game", "kuhn", "--matches", 2, "--seats", 2, "--seed", 1)
        done = arena("join", where, "--player", "me=random", *what, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["url"], found["player"], found["spec"]) == (where, "me", "random")
    assert len(found["matches"]) == 2
    for row in found["matches"]:
        assert row["game"] == "kuhn" and row["seats"] == 2 and row["error"] is None
        assert row["ended"] == ("won" if row["return"] > 0 else "lost")
        assert row["role"] == ("first", "second")[row["seat"]]
    assert "Seat " in done.stderr and "Connected." in done.stderr


def test_the_table(arena: Arena, tmp_path: Path) -> None:
    with background_server(tmp_path, fill_after_s=0.02) as server:
        done = arena(
            "join",
            server.addresses.websocket,
            "--player",
            "scripted",
            "--game",
            "avalon",
            "--option",
            "lady=true",
        )
    assert done.exit_code == 0, done.output
    assert "avalon" in done.stdout and ("won" in done.stdout or "lost" in done.stdout)


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_the_token(arena: Arena, tmp_path: Path, by: str) -> None:
    secret = token(tmp_path, "me", "play")
    with background_server(tmp_path, fill_after_s=0.02, anonymous=()) as server:
        command = ["join", server.addresses.websocket, "--player", "random", "--game", "kuhn"]
        extra: dict[str, Any] = {"env": {"ARENA_TOKEN": secret}} if by == "environment" else {}
        done = arena(*command, *(["--token", secret] if by == "flag" else []), **extra)
        assert done.exit_code == 0, done.output
        assert secret not in done.output
        wrong = arena(*command, "--token", "wrong")
        assert wrong.exit_code == 1 and "(unauthorised)" in wrong.stderr and wrong.stderr.count("\n") == 1
        without = arena(*command, "--json")
        assert without.exit_code == 1 and "(unauthorised)" in without.stderr
        assert json.loads(without.stdout)["matches"] == []


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["ws://h", "--player", "random"], "give one of --game, --match and --tournament"),
        (["ws://h", "--player", "random", "--game", "kuhn", "--match", "m"], "give one of"),
        (["ws://h", "--player", "random", "--match", "m", "--seats", "2"], "go with --game"),
        (["ws://h", "--player", "random", "--tournament", "m", "--matches", "2"], "go with --game"),
        (["http://h:1", "--player", "random", "--game", "kuhn"], "try ws://h:1"),
        (["ws://h", "--player", "nobody", "--game", "kuhn"], "player: got 'nobody'"),
        (["ws://h", "--player", "human", "--game", "kuhn"], "a person needs a terminal to play at, or --web"),
        (["ws://h", "--player", "random", "--game", "kuhn", "--web"], "--web goes with --player human"),
        (["ws://h", "--player", "human", "--game", "kuhn", "--web-port", "1"], "go with --web"),
        (
            ["ws://h", "--player", "human", "--game", "kuhn", "--web", "--web-port", "70000"],
            "--web-port: got 70000, allowed are 0 to 65535",
        ),
        (
            ["ws://h", "--player", "human", "--game", "kuhn", "--web", "--web-sessions", "0"],
            "--web-sessions: got 0, allowed are 1 to 64",
        ),
        (["ws://h", "--player", "random", "--game", "chess"], "game: got 'chess'"),
        (["ws://h", "--player", "random", "--game", "kuhn", "--option", "x"], "--option: got 'x'"),
        (["ws://h", "--player", "random", "--game", "kuhn", "--matches", "0"], "--matches"),
        (["ws://h", "--game", "kuhn"], "--player"),
    ],
)
def test_bad_input_is_one_line(arena: Arena, args: list[str], text: str) -> None:
    done = arena("join", *args)
    assert done.exit_code == 2
    assert text in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_nothing_listens(arena: Arena) -> None:
    done = arena("join", "ws://127.0.0.1:1", "--player", "random", "--game", "kuhn")
    assert done.exit_code == 1
    assert done.stderr == "Error: ws://127.0.0.1:1: nothing listens there (connection refused)\n"


def test_the_server_refuses_the_set_up(arena: Arena, tmp_path: Path) -> None:
    with background_server(tmp_path) as server:
        done = arena("join", server.addresses.websocket, "--player", "random", "--game", "kuhn", "--seats", 9)
    assert done.exit_code == 1 and "(bad_setup)" in done.stderr


def test_a_token_in_the_clear_is_warned_of(arena: Arena) -> None:
    done = arena("join", "ws://192.0.2.1:1", "--player", "random", "--game", "chess", "--token", "secret")
    assert done.exit_code == 2 and "secret" not in done.output
