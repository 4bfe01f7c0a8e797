import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database

import arena.store
from arena.errors import StoreError, StoreTooNew
from arena.report import MatchReport, SeatReport
from arena.store import FAILED, FINISHED, INTERRUPTED, Store


def report(number: int, *, error: str | None = None, game: str = "kuhn", **seat: Any) -> MatchReport:
    if error is not None:
        return MatchReport(f"id-{number}", game, number, error)
    first = SeatReport("a", "random", "first", "first", 1.0, seat.pop("ended", "won"), seat)
    second = SeatReport("b", "random", "second", "second", -1.0, "lost", {})
    return MatchReport(
        f"id-{number}",
        game,
        2**63 - 1,
        None,
        "showdown",
        False,
        (first, second),
        {"turns": 2},
        Path("h/r/x"),
        99,
    )


def open_store(home: Path = Path("h")) -> Store:
    return Store(home)


def test_what_was_written_is_read_after_reopening() -> None:
    with open_store() as store:
        number = store.add_tournament({"x": 1}, config_hash="abc")
        store.add_reports(
            number, reports=[(0, 7, report(0, forced=2, illegal=1)), (1, None, report(1))], home=Path("h")
        )
        store.add_reports(number, reports=[(2, None, report(2, error="no such bot"))], home=Path("h"))
    with open_store() as store:
        matches = store.rated_matches(tournament=number)
        assert [match.deal for match in matches] == [str(2**63 - 1), None]
        assert [(s.player, s.value, s.forced, s.illegal) for s in matches[0].seats] == [
            ("a", 1.0, 2, 1),
            ("b", -1.0, 0, 0),
        ]
        assert store.failures(number) == [(2, "id-2", "no such bot")]
        assert [(m.number, m.seats, m.forfeit) for m in store.played(number)] == [
            (0, (("a", 1.0), ("b", -1.0)), False),
            (1, (("a", 1.0), ("b", -1.0)), False),
        ]
    (row, *_) = Database("h/arena.db")["matches"].rows
    assert (row["record"], row["record_bytes"], row["seed"]) == ("r/x", 99, str(2**63 - 1))


def test_a_forfeited_seat_is_read_as_such() -> None:
    with open_store() as store:
        number = store.add_tournament({}, config_hash="abc")
        store.add_reports(number, reports=[(0, None, report(0, ended="forfeit"))], home=Path("h"))
        assert store.played(number)[0].forfeit
        assert not store.rated_matches()[0].rated


def test_a_match_is_stored_once_and_a_failed_one_replaced() -> None:
    with open_store() as store:
        number = store.add_tournament({}, config_hash="abc")
        store.add_reports(number, reports=[(0, None, report(0, error="broken"))], home=Path("h"))
        for _ in range(2):
            store.add_reports(number, reports=[(0, None, report(0))], home=Path("h"))
        assert store.failures(number) == []
        assert [match.number for match in store.played(number)] == [0]
    assert Database("h/arena.db")["seats"].count == 2


def test_games_and_tournaments_are_kept_apart() -> None:
    with open_store() as store:
        one, two = (store.add_tournament({}, config_hash="abc") for _ in range(2))
        store.add_reports(
            one, reports=[(0, None, report(0)), (1, None, report(1, game="go"))], home=Path("h")
        )
        store.add_reports(two, reports=[(0, None, report(0))], home=Path("h"))
        assert len(store.rated_matches()) == 3
        assert len(store.rated_matches(game="kuhn")) == 2
        assert len(store.rated_matches(tournament=one)) == 2
        assert store.rated_matches(tournament=two, game="go") == []


def test_the_newest_unfinished_tournament_of_a_configuration_is_found() -> None:
    with open_store() as store:
        numbers = [store.add_tournament({}, config_hash=name) for name in ("a", "b", "a")]
        store.set_status(numbers[2], status=FINISHED)
        found = store.last_unfinished(config_hash="a")
        assert found is not None and found.id == numbers[0]
        store.set_status(numbers[2], status=FAILED)
        found = store.last_unfinished(config_hash="a")
        assert found is not None and found.id == numbers[2]
        store.set_status(numbers[1], status=INTERRUPTED)
        assert store.last_unfinished(config_hash="c") is None


def test_a_newer_database_is_left_alone() -> None:
    open_store().close()
    database = Database("h/arena.db")
    database["_sqlite_migrations"].insert(
        {"migration_set": "evoke-arena", "name": "m999_later", "applied_at": "later"}
    )
    database.close()
    before = Path("h/arena.db").read_bytes()
    with pytest.raises(
        StoreTooNew, match=r"written by a newer evoke-arena \(migration m999_later is unknown"
    ):
        open_store()
    assert Path("h/arena.db").read_bytes() == before


def test_an_older_database_is_migrated_in_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store() as store:
        number = store.add_tournament({}, config_hash="abc")
    later = arena.store.Migrations("evoke-arena")
    for migration in arena.store.migrations.pending(Database(memory=True)):
        later(name=migration.name)(migration.fn)

    broken = True

    @later()
    def m002_notes(db: Database) -> None:
        db.table("tournaments").add_column("note", str)
        if broken:
            raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(arena.store, "migrations", later)
    with pytest.raises(StoreError, match="disk I/O error"):
        open_store()
    assert "note" not in Database("h/arena.db")["tournaments"].columns_dict
    broken = False
    with open_store() as store:
        found = store.last_unfinished(config_hash="abc")
        assert found is not None and found.id == number
    assert "note" in Database("h/arena.db")["tournaments"].columns_dict


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    (home / "arena.db").write_bytes(b"no database at all" * 99)
    with pytest.raises(StoreError, match="the file is no SQLite database"):
        Store(home)
    with pytest.raises(StoreError, match="it is a file"):
        Store(home / "arena.db")
    (home / "arena.db").unlink()
    (home / "arena.db").mkdir()
    with pytest.raises(StoreError, match="unable to open database file"):
        Store(home)
    with pytest.raises(StoreError, match="there is no store yet"):
        Store(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


def test_a_transaction_within_another_is_a_part_of_it() -> None:
    with open_store() as store:
        with pytest.raises(KeyError), store.write():
            store.add_tournament({}, config_hash="lost")
            raise KeyError
        assert store.tournaments() == []
        with store.write():
            store.add_tournament({}, config_hash="kept")
        assert [row.hash for row in store.tournaments()] == ["kept"]


def test_another_writer_is_waited_for_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena.store, "BUSY_TIMEOUT_S", 0.05)
    with open_store() as store:
        other = sqlite3.connect("h/arena.db")
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="another process held it"):
            store.add_tournament({}, config_hash="abc")
        other.rollback()
        other.close()
        assert store.add_tournament({}, config_hash="abc") == 1


def test_many_processes_may_open_a_new_store_at_once() -> None:
    for home in map(Path, "abcdef"):
        start = threading.Barrier(4)

        def open_and_add(home: Path = home, start: threading.Barrier = start) -> int:
            start.wait()
            with open_store(home) as store:
                return store.add_tournament({}, config_hash="abc")

        with ThreadPoolExecutor(4) as threads:
            numbers = [threads.submit(open_and_add) for _ in range(4)]
        assert sorted(number.result() for number in numbers) == [1, 2, 3, 4]


def test_a_directory_without_permission(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=r"cannot use this directory: Permission denied$"):
        Store(tmp_path / "h")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no file system here is read-only for everyone")
def test_a_really_read_only_directory(process: Any) -> None:
    found: subprocess.CompletedProcess[str] = process(
        "tournament", "--game", "kuhn", "--home", "/proc/self/h"
    )
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert line.startswith("Error: /proc/self/h: cannot use this directory: ")
