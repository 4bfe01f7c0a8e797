"""Credit for the spectator: what a method says of every team, or what was printed, and one line for neither."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.credit.base import METHODS
from agents.errors import BadCredit, RecordNotCredited
from agents.policy.settings import PolicySettings
from arena.credit import CreditRequest, credit_one
from arena.watch_credit import credit_data
from replays.errors import NotARecord, RecordUnreadable
from replays.reader import read_record
from tests.replays.recording import make


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "k.arena"
    path.write_bytes(make("kuhn"))
    return path


def data(asked: object, path: Path) -> Any:
    return credit_data(str(asked), path, policy=PolicySettings(), home=path.parent / "home")


def untimed(sheets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**sheet, "cost": {**sheet["cost"], "seconds": 0.0}} for sheet in sheets]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_says_something_of_every_team(method: str, record: Path) -> None:
    sheets = data(method, record)
    footer = read_record(record).footer
    assert footer is not None
    assert [(sheet["method"], sheet["team"]) for sheet in sheets] == [(method, "first"), (method, "second")]
    assert [sheet["result"] for sheet in sheets] == list(footer.outcome.returns)
    assert [[seat["player"] for seat in sheet["seats"]] for sheet in sheets] == [["p0"], ["p1"]]
    assert all(sheet["steps"] for sheet in sheets)
    assert json.loads(json.dumps(sheets)) == sheets, "plain data"
    assert untimed(data(method, record)) == untimed(sheets), "the same each time"


def test_teams_come_in_the_games_order(tmp_path: Path) -> None:
    path = tmp_path / "a.arena"
    path.write_bytes(make("avalon", seats=5, seed=2))
    found = data("equal", path)
    assert [sheet["team"] for sheet in found] == ["good", "evil"]
    assert untimed(found[1:]) == untimed(
        [credit_one(path, CreditRequest(method="equal", team="evil")).as_dict()]
    )
    assert sorted(seat["seat"] for sheet in found for seat in sheet["seats"]) == [0, 1, 2, 3, 4]


def test_what_was_printed_is_read_as_it_stands(record: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.json"
    values: list[Any] = [[], {"team": "ü", "seats": [1.5, None]}, data("equal", record)]
    for value in values:
        sheet.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
        assert data(sheet, record) == value
    assert data(sheet, tmp_path / "gone.arena") == values[-1], "the record is not looked at"


def test_a_name_of_a_method_is_the_method_whatever_files_there_are(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "equal").write_text("[]")
    assert len(data("equal", record)) == 2
    assert data("./equal", record) == []


@pytest.mark.parametrize("asked", ["luck", "", "Equal", "a\0b", "none/here.json"])
def test_neither_method_nor_file_is_refused_in_one_line(asked: str, record: Path) -> None:
    with pytest.raises(BadCredit) as error:
        data(asked, record)
    assert str(error.value) == (
        f"credit: got {asked!r}, allowed are {', '.join(METHODS)}, or a file that `arena credit --json` wrote"
    )


def test_a_long_name_is_cut_and_a_folder_is_no_file(record: Path, tmp_path: Path) -> None:
    with pytest.raises(BadCredit, match=rf"^credit: got '{'x' * 80}', allowed are "):
        data("x" * 200, record)
    with pytest.raises(BadCredit, match=rf"^credit: got '{'x' * 80}', allowed are "):
        data("x" * 5000, record)  # longer than any file's name
    with pytest.raises(BadCredit, match=r"^credit: got "):
        data(tmp_path, record)


DAMAGED = {
    "empty": b"",
    "cut": b'[{"team"',
    "two": b"[] []",
    "no text": b"\xff\xfe\x00",
    "too deep": b"[" * 200_000,
    "a record": make("kuhn"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_file_that_is_no_json_is_refused_in_one_line(kind: str, record: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.json"
    sheet.write_bytes(DAMAGED[kind])
    with pytest.raises(BadCredit) as error:
        data(sheet, record)
    assert str(error.value).startswith(f"{sheet}: no credit can be read from it (")
    assert "\n" not in str(error.value) and str(error.value).endswith(")")


def test_a_file_that_is_too_large_is_refused(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.watch_credit.MAX_BYTES", 10)
    sheet = tmp_path / "sheet.json"
    sheet.write_text("[" + " " * 8 + "]")
    assert data(sheet, record) == []
    sheet.write_text("[" + " " * 9 + "]")
    with pytest.raises(BadCredit) as error:
        data(sheet, record)
    assert str(error.value) == f"{sheet}: no credit can be read from it (more than 10 bytes)"


def test_a_record_that_gives_none_is_said_as_elsewhere(record: Path, tmp_path: Path) -> None:
    with pytest.raises(RecordUnreadable, match="No such file"):
        data("equal", tmp_path / "gone.arena")
    whole = record.read_bytes()
    record.write_bytes(whole[:-30])
    with pytest.raises(RecordNotCredited, match="cut short"):
        data("equal", record)
    record.write_bytes(b"nothing")
    with pytest.raises(NotARecord):
        data("equal", record)
