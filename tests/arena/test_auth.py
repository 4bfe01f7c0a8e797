"""Tokens and the gate."""

import logging
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena import logs
from arena.auth import (
    SCOPES,
    TOKEN,
    Gate,
    create_token,
    hash_of,
    list_tokens,
    read_life,
    redact,
    revoke_token,
)
from arena.errors import RequestRefused, TokenError
from arena.limits import Rate
from arena.store import Store


def made(home: Path, name: str = "alice", *scopes: str, life_s: int | None = None, now: float = 1000) -> str:
    with Store(home) as store:
        return create_token(store, name, scopes=scopes or ["play"], life_s=life_s, now=now)


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def gate(tmp_path: Path, now: list[float]):
    gate = Gate(tmp_path, rates={"auth": Rate(0.1, 3)}, clock=lambda: now[0], now=lambda: now[0])
    yield gate
    gate.close()


def refused(gate: Gate, token: str, address: str = "") -> str:
    with pytest.raises(RequestRefused) as caught:
        gate.authenticate(token, address=address)
    assert len(token) < 10 or token not in str(caught.value)
    return caught.value.wire


def test_a_token_opens_the_gate_under_its_name_with_its_scopes(tmp_path: Path, gate: Gate) -> None:
    identity = gate.authenticate(made(tmp_path, "alice", "play", "watch"))
    assert (identity.name, identity.scopes) == ("alice", frozenset({"play", "watch"}))
    assert identity.may("play") and identity.may("watch") and not identity.may("admin")
    admin = gate.authenticate(made(tmp_path, "root", "admin"))
    assert all(map(admin.may, SCOPES))


def test_the_store_holds_a_hash_and_no_part_of_the_secret(tmp_path: Path) -> None:
    token = made(tmp_path)
    for file in tmp_path.iterdir():
        assert token[-43:].encode() not in file.read_bytes()
    with Store(tmp_path) as store:
        ((stored,),) = store.rows("select hash from tokens")
    assert stored == hash_of(token) and len(stored) == 32


def test_tokens_look_alike_and_no_two_are_the_same(tmp_path: Path) -> None:
    tokens = {made(tmp_path, f"p{number}", *SCOPES[: 1 + number % 3]) for number in range(20)}
    assert len(tokens) == 20
    assert all(TOKEN.fullmatch(token) and len(token) <= 200 for token in tokens)


def test_a_token_that_is_not_one_is_refused_whatever_is_wrong(tmp_path: Path, gate: Gate) -> None:
    token = made(tmp_path)
    other = token[:-1] + ("A" if token[-1] != "A" else "B")
    swapped = token.replace("_play_", "_admin_")
    for wrong in (
        "",
        "x",
        "arena_play_00000000_" + "A" * 43,
        other,
        swapped,
        token + " ",
        token[:-1],
        "\ud800",
    ):
        assert refused(gate, wrong) == "unauthorised"
    assert gate.authenticate(token).name == "alice"


def test_a_revoked_token_is_dead_at_once_in_a_gate_that_knew_it(tmp_path: Path, gate: Gate) -> None:
    token = made(tmp_path)
    identity = gate.authenticate(token)
    assert identity.key in gate.valid_keys() and gate.owned("alice")
    with Store(tmp_path) as store:
        assert revoke_token(store, "alice", now=1001).id == identity.key
    assert refused(gate, token) == "unauthorised"
    assert identity.key not in gate.valid_keys() and not gate.owned("alice")


def test_a_token_expires_on_time(tmp_path: Path, gate: Gate, now: list[float]) -> None:
    token = made(tmp_path, life_s=60)
    key = gate.authenticate(token).key
    now[0] = 1059
    assert gate.authenticate(token).key == key
    now[0] = 1060
    assert refused(gate, token) == "unauthorised"
    assert key not in gate.valid_keys() and not gate.owned("alice")
    assert made(tmp_path, now=1060), "its name is free again"


def test_one_valid_token_bears_a_name(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(TokenError, match="'alice' has a valid token"):
        made(tmp_path)
    with Store(tmp_path) as store:
        first = revoke_token(store, "alice", now=1)
        second = made(tmp_path)
        assert [row.state(1001) for row in list_tokens(store)] == ["revoked", "valid"]
        with pytest.raises(TokenError, match="no valid token"):
            revoke_token(store, first.id, now=2)
        assert second


@pytest.mark.parametrize("name", ["", "a" * 41, "a\nb", "x<y", 'say "x"', "\x1b[31mred", "‮evil", " a"])
def test_a_name_that_could_not_be_shown_as_it_is_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(TokenError) as caught:
        made(tmp_path, name)
    assert str(caught.value).startswith("token name: got ") and "\n" not in str(caught.value)


def test_scopes_are_checked(tmp_path: Path) -> None:
    for scopes in (["root"], []):
        with Store(tmp_path) as store, pytest.raises(TokenError, match="allowed are play, watch, admin"):
            create_token(store, "a", scopes=scopes, life_s=None, now=0)


def test_who_shows_many_bad_tokens_is_held_up_and_nobody_else(
    tmp_path: Path, gate: Gate, now: list[float]
) -> None:
    token = made(tmp_path)
    assert [refused(gate, "x", "bad") for _ in range(5)] == ["unauthorised"] * 3 + ["rate_limited"] * 2
    assert refused(gate, token, "bad") == "rate_limited", "not even a good one is looked at"
    assert gate.authenticate(token, address="good").name == "alice"
    now[0] += 10
    assert gate.authenticate(token, address="bad").name == "alice"


def test_good_tokens_are_never_held_up(tmp_path: Path, gate: Gate) -> None:
    token = made(tmp_path)
    assert all(gate.authenticate(token, address="a").name == "alice" for _ in range(20))


def test_the_gate_writes_nothing(tmp_path: Path, gate: Gate) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        gate._connection.execute("delete from tokens")


def test_the_gate_does_not_wait_for_a_writer(tmp_path: Path, gate: Gate) -> None:
    token = made(tmp_path)
    with Store(tmp_path) as store, store.write() as connection:
        connection.execute("update tokens set revoked = 1")
        assert gate.authenticate(token).name == "alice", "what is not committed is not so yet"
    assert refused(gate, token) == "unauthorised"


@pytest.mark.parametrize(
    ("text", "seconds"), [("1m", 60), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)]
)
def test_spans(text: str, seconds: int) -> None:
    assert read_life(text) == seconds


@pytest.mark.parametrize("text", ["", "0d", "1", "1y", "-1d", "1.5h", "9999999w", "١d", "1d "])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(TokenError, match="--expires: got"):
        read_life(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_token_survives_redaction(before: str, after: str) -> None:
    secret = "A1-_" * 10 + "xyz"
    token = f"arena_play-admin_3f9c2a1b_{secret}"
    assert secret not in redact(f"{before} {token} {after}")


def test_no_token_reaches_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = made(tmp_path, "alice", "play", "admin")
    logs.configure(verbose=True)
    log = logging.getLogger("arena.test")
    try:
        log.info("message %s", token)
        log.warning(f"text {token} inside")  # noqa: G004
        try:
            raise ValueError(f"bad {token}")
        except ValueError:
            log.exception("trouble with %r", {"token": token})
    finally:
        logging.getLogger("arena").handlers.clear()
        logging.getLogger("arena").propagate = True
    told = capsys.readouterr().err
    assert token[-43:] not in told
    assert told.count(token[:-43] + "…") == 4 and "Traceback" in told
