"""`arena token` as a user calls it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from arena.auth import TOKEN, Gate

Arena = Callable[..., Result]


def test_a_token_is_made_shown_once_and_taken_by_a_gate(arena: Arena, tmp_path: Path) -> None:
    result = arena("token", "create", "alice", "--scope", "play", "--scope", "watch", "--home", tmp_path)
    assert result.exit_code == 0
    made = result.stdout.strip()
    assert TOKEN.fullmatch(made), "stdout holds the token alone, for scripts"
    assert "not shown again" in result.stderr
    gate = Gate(tmp_path)
    identity = gate.authenticate(made)
    gate.close()
    assert (identity.name, identity.scopes) == ("alice", {"play", "watch"})
    listed = arena("token", "list", "--home", tmp_path)
    assert "alice" in listed.stdout and made[-43:] not in listed.output


def test_the_list_says_what_is_valid(arena: Arena, tmp_path: Path) -> None:
    assert json.loads(arena("token", "list", "--json", "--home", tmp_path).stdout) == []
    made = json.loads(
        arena(
            "token", "create", "a", "--scope", "admin", "--expires", "12h", "--json", "--home", tmp_path
        ).stdout
    )
    assert made["name"] == "a" and made["scopes"] == ["admin"] and TOKEN.fullmatch(made["token"])
    arena("token", "create", "b", "--scope", "watch", "--home", tmp_path)
    assert (
        json.loads(arena("token", "revoke", "b", "--json", "--home", tmp_path).stdout)["state"] == "revoked"
    )
    first, second = json.loads(arena("token", "list", "--json", "--home", tmp_path).stdout)
    assert (first["name"], first["state"], second["name"], second["state"]) == ("a", "valid", "b", "revoked")
    assert first["expires"] > first["created"] and second["expires"] is None
    assert set(first) == {"id", "name", "scopes", "state", "created", "expires"}


def test_a_token_is_revoked_by_its_name_or_its_id(arena: Arena, tmp_path: Path) -> None:
    made = arena("token", "create", "a", "--scope", "play", "--home", tmp_path).stdout.strip()
    identity = made.split("_")[2]
    assert arena("token", "revoke", identity, "--home", tmp_path).stdout == f"Revoked {identity} of a.\n"
    result = arena("token", "revoke", "a", "--home", tmp_path)
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["a"], "Missing option '--scope'"),
        (["a", "--scope", "root"], "'root' is not one of 'play', 'watch', 'admin'"),
        (["a", "--scope", "play", "--expires", "soon"], "--expires: got 'soon'"),
        (["a\x1b[31m", "--scope", "play"], "token name: got"),
        (["x" * 41, "--scope", "play"], "token name: got"),
    ],
)
def test_what_cannot_be_made_is_one_line(arena: Arena, tmp_path: Path, words: list[str], told: str) -> None:
    result = arena("token", "create", *words, "--home", tmp_path / "home")
    assert result.exit_code == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert told in line and "\x1b" not in line


def test_a_name_has_one_valid_token(arena: Arena, tmp_path: Path) -> None:
    assert arena("token", "create", "a", "--scope", "play", "--home", tmp_path).exit_code == 0
    result = arena("token", "create", "a", "--scope", "play", "--home", tmp_path)
    assert result.exit_code == 2 and "revoke it first" in result.stderr
