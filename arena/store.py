"""The store: what was played, in one SQLite file.

One process writes, any number read (WAL). The schema grows by named migrations, each applied in one
transaction together with the note that it was; a file with a migration that this version does not know was
written by a newer one and is left alone. Records are the truth and rows an index of them: a row can be made
again from its record.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlite_utils import Database, Migrations

from arena.errors import StoreError, StoreTooNew
from arena.report import MatchReport
from arena.results import RatedMatch, RatedSeat
from replays.record import SUFFIX

FILE_NAME = "arena.db"
FOLDER = "replays"
"""Where in the home directory the records are."""
BUSY_TIMEOUT_S = 10.0
RETRY_S = 0.01

COUNTS = ("forced", "illegal", "unparsed", "ambiguous", "timeout", "disconnect", "error", "late")
"""The referee's counts that have a column of their own, by seat."""

RUNNING, FINISHED, FAILED, INTERRUPTED = "running", "finished", "failed", "interrupted"
"""Status of a tournament; `failed` is finished with matches that could not be played."""

migrations = Migrations("evoke-arena")


@migrations()
def m001_tournaments_matches_seats(db: Database) -> None:
    """The first schema."""
    db.table("tournaments").create(
        {"id": int, "hash": str, "config": str, "status": str, "result": str},
        pk="id",
        not_null={"hash", "config", "status"},
    )
    db.table("matches").create(
        {
            "id": int,
            "tournament": int,
            "number": int,
            "match": str,
            "game": str,
            "seed": str,
            "deal": str,
            "status": str,
            "error": str,
            "reason": str,
            "turn_limit": int,
            "record": str,
            "record_bytes": int,
        },
        pk="id",
        not_null={"tournament", "number", "match", "game", "status"},
        foreign_keys=[("tournament", "tournaments", "id")],
    )
    db.table("matches").create_index(["tournament", "number"], unique=True)
    db.table("matches").create_index(["game"])
    db.table("seats").create(
        {
            "match": int,
            "seat": int,
            "player": str,
            "spec": str,
            "team": str,
            "role": str,
            "value": float,
            "ended": str,
            **dict.fromkeys(COUNTS, int),
        },
        pk=("match", "seat"),
        not_null={"player", "team", "role", "value", "ended"},
        foreign_keys=[("match", "matches", "id")],
    )


@migrations()
def m002_tokens(db: Database) -> None:
    """Tokens, of which only a hash is kept; `until` and `created` are seconds since 1970."""
    db.table("tokens").create(
        {
            "id": str,
            "name": str,
            "scopes": str,
            "hash": bytes,
            "created": int,
            "until": int,
            "revoked": int,
        },
        pk="id",
        not_null={"name", "scopes", "hash", "created"},
    )
    db.table("tokens").create_index(["name"])


@migrations()
def m003_hosted(db: Database) -> None:
    """Matches of a server, so that they go on after it was killed; of resume tokens only a hash is kept."""
    db.table("hosted").create(
        {"id": int, "match": str, "record": str, "status": str, "setup": str},
        pk="id",
        not_null={"match", "record", "status", "setup"},
    )
    db.table("hosted").create_index(["match"], unique=True)
    db.table("hosted").create_index(["status"])
    db.table("hosted_seats").create(
        {"hosted": int, "seat": int, "owner": str, "request": str, "resume": bytes},
        pk=("hosted", "seat"),
        not_null={"owner", "request", "resume"},
        foreign_keys=[("hosted", "hosted", "id")],
    )
    db.table("hosted_seats").create_index(["resume"], unique=True)


@migrations()
def m004_open_tournaments(db: Database) -> None:
    """Tournaments that are open for registration, and who has registered; `starts_on` is seconds since 1970."""
    db.table("open_tournaments").create(
        {"name": str, "config": str, "starts_on": float}, pk="name", not_null={"config", "starts_on"}
    )


@dataclass(frozen=True, slots=True)
class TournamentRow:
    """A tournament as the store knows it."""

    id: int
    hash: str
    config: dict[str, Any]
    status: str


@dataclass(frozen=True, slots=True)
class PlayedMatch:
    """A match of a tournament that was played: its number in the plan, and how it ended."""

    number: int
    seats: tuple[tuple[str, float], ...]
    """(player, return) by seat."""
    forfeit: bool
    """Whether a seat forfeited."""


class Store:
    """The database of one home. Close it, or use it in `with`.

    Args:
        home: the directory that holds `arena.db`; made where it is missing.
        create: False raises `StoreError` where there is no database yet.

    Raises `StoreError` in one line for whatever is wrong with the file, `StoreTooNew` for a newer one.
    """

    def __init__(self, home: Path, *, create: bool = True) -> None:
        self.path = home / FILE_NAME
        if not create and not self.path.exists():
            if home.exists() and not home.is_dir():
                raise StoreError(f"{home}: cannot use this directory: it is a file")
            raise StoreError(f"{self.path}: there is no store yet; run `arena tournament` first")
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "it is a file" if home.is_file() else error.strerror or error
            raise StoreError(f"{home}: cannot use this directory: {reason}") from None
        try:
            connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)
        except (OSError, sqlite3.Error) as error:
            raise self._error("cannot open the store", error) from None
        self._db = Database(connection)
        try:
            with self._guard("cannot open the store"):
                self._set_up(connection)
        except BaseException:
            connection.close()
            raise

    def _set_up(self, connection: sqlite3.Connection) -> None:
        self._use_wal(connection)
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma foreign_keys = on")
        applied = {migration.name for migration in migrations.applied(self._db)}
        known = {migration.name for migration in migrations.pending(self._db)} | {
            name for name in applied if name in _known()
        }
        unknown = sorted(applied - known)
        if unknown:
            raise StoreTooNew(
                f"{self.path}: written by a newer evoke-arena (migration {unknown[0]} is unknown here): "
                "upgrade evoke-arena, or take another --home"
            )
        if migrations.pending(self._db):
            with self.write():  # one process migrates; the others wait here, and then find nothing pending
                migrations.apply(self._db)

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        # While another connection makes this change SQLite refuses at once, whatever the timeout.
        until = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                connection.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() >= until:
                    raise
                time.sleep(RETRY_S)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_tournament(self, config: dict[str, Any], *, config_hash: str, opened: str = "") -> int:
        """Return the number of a new tournament: one that is neither in the store nor, with records, on disk.

        Records outlive a store that was lost, and no new tournament may write over them. `opened` is the name under
        which it was open for registration, which it no longer is.
        """
        row = {
            "hash": config_hash,
            "config": json.dumps(config, sort_keys=True),
            "status": RUNNING,
            "on_disk": self._last_on_disk(),
        }
        with self.write() as connection:
            cursor = connection.execute(
                "insert into tournaments (id, hash, config, status) values "
                "((select max(coalesce(max(id), 0), :on_disk) + 1 from tournaments), :hash, :config, :status)",
                row,
            )
            connection.execute("delete from open_tournaments where name = ?", (opened,))
            return int(cursor.lastrowid or 0)

    def _last_on_disk(self) -> int:
        """Return the highest number of a tournament of which there is a record, 0 where there is none."""
        folders = (self.path.parent / FOLDER).glob("t*")
        numbers = (
            int(folder.name[1:])
            for folder in folders
            if folder.name[1:].isdecimal()
            and len(folder.name) <= 10
            and next(folder.glob(f"*{SUFFIX}"), None) is not None
        )
        return max(numbers, default=0)

    def set_status(self, tournament: int, *, status: str) -> None:
        """Say how a tournament stands."""
        with self.write() as connection:
            connection.execute("update tournaments set status = ? where id = ?", (status, tournament))

    def last_unfinished(self, *, config_hash: str) -> TournamentRow | None:
        """Return the newest tournament of this configuration that is not finished."""
        for row in self.rows(
            "select id, hash, config, status from tournaments where hash = ? and status != ? "
            "order by id desc limit 1",
            (config_hash, FINISHED),
        ):
            return TournamentRow(row[0], row[1], json.loads(row[2]), row[3])
        return None

    def add_reports(
        self, tournament: int, *, reports: Sequence[tuple[int, int | str | None, MatchReport]], home: Path
    ) -> None:
        """Store finished matches, all or none: (number in the plan, deal, report) each.

        A match that is there already as failed is replaced; one that was played is left as it is.
        """
        with self.write() as connection:
            for number, deal, report in reports:
                connection.execute(
                    "delete from matches where tournament = ? and number = ? and status = ?",
                    (tournament, number, FAILED),
                )
                record = None if report.record is None else _relative(report.record, home)
                cursor = connection.execute(
                    "insert into matches (tournament, number, match, game, seed, deal, status, error, reason,"
                    " turn_limit, record, record_bytes) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                    " on conflict do nothing",
                    (
                        tournament,
                        number,
                        report.match,
                        report.game,
                        str(report.seed),
                        None if deal is None else str(deal),
                        FINISHED if report.error is None else FAILED,
                        report.error,
                        report.reason,
                        int(report.turn_limit),
                        record,
                        report.record_bytes,
                    ),
                )
                if not cursor.rowcount:
                    continue
                connection.executemany(
                    _INSERT_SEAT,
                    [
                        (
                            cursor.lastrowid,
                            index,
                            seat.player,
                            seat.spec,
                            seat.team,
                            seat.role,
                            seat.value,
                            seat.ended,
                            *(seat.counts.get(name, 0) for name in COUNTS),
                        )
                        for index, seat in enumerate(report.seats)
                    ],
                )

    def played(self, tournament: int) -> list[PlayedMatch]:
        """Return the matches of a tournament that were played, by number."""
        query = (
            "select m.number, s.player, s.value, s.ended from matches m join seats s on s.match = m.id "
            "where m.tournament = ? and m.status = ? order by m.number, s.seat"
        )
        return [
            PlayedMatch(
                number, tuple((row[1], row[2]) for row in seats), any(row[3] == "forfeit" for row in seats)
            )
            for (number,), seats in _grouped(self.rows(query, (tournament, FINISHED)), 1)
        ]

    def failures(self, tournament: int) -> list[tuple[int, str, str]]:
        """Return (number, match, error) of each match that could not be played."""
        return [
            (row[0], row[1], row[2])
            for row in self.rows(
                "select number, match, error from matches where tournament = ? and status = ? order by number",
                (tournament, FAILED),
            )
        ]

    def rated_matches(self, *, tournament: int | None = None, game: str | None = None) -> list[RatedMatch]:
        """Return the finished matches of a tournament (None: of all) and of a game (None: of all).

        The deal is the seed: tournaments of one seed play on the same cards, the same one twice even the same
        matches, and ratings must not take them for new evidence.
        """
        query = (
            "select m.id, m.game, m.seed, m.deal, s.player, s.team, s.role, s.value, s.ended, s.forced,"
            " s.illegal from matches m join seats s on s.match = m.id "
            "where m.status = ? and (? is null or m.tournament = ?) and (? is null or m.game = ?) "
            "order by m.id, s.seat"
        )
        matches = []
        for (_, name, seed, deal), seats in _grouped(
            self.rows(query, (FINISHED, tournament, tournament, game, game)), 4
        ):
            rated = tuple(
                RatedSeat(row[4], row[5], row[6], row[7], None, row[8] == "forfeit", row[9], row[10])
                for row in seats
            )
            matches.append(RatedMatch(name, rated, None if deal is None else str(seed)))
        return matches

    def tournaments(self) -> list[TournamentRow]:
        """Return all tournaments, the oldest first."""
        rows = self.rows("select id, hash, config, status from tournaments order by id", ())
        return [TournamentRow(row[0], row[1], json.loads(row[2]), row[3]) for row in rows]

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction: all of it is kept, or none where anything is raised. Raises `StoreError`.

        Within another one it is a part of that.
        """
        connection = self._db.conn
        if connection.in_transaction:
            yield connection
            return
        with self._guard("cannot write to the store"):
            connection.execute("begin immediate")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what a query finds. Raises `StoreError`."""
        with self._guard("cannot read the store"):
            return list(self._db.conn.execute(query, values))

    @contextmanager
    def _guard(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._error(what, error) from None

    def _error(self, what: str, error: Exception) -> StoreError:
        reason = getattr(error, "strerror", None) or str(error)
        if "not a database" in reason:
            reason = "the file is no SQLite database"
        elif "locked" in reason:
            reason = f"another process held it for more than {BUSY_TIMEOUT_S:.0f} s"
        return StoreError(f"{self.path}: {what}: {reason}")


_INSERT_SEAT = (
    f"insert into seats (match, seat, player, spec, team, role, value, ended, {', '.join(COUNTS)}) "
    f"values ({', '.join('?' * (8 + len(COUNTS)))})"
)


def _known() -> set[str]:
    empty = Database(memory=True)
    try:
        return {migration.name for migration in migrations.pending(empty)}
    finally:
        empty.close()


def _relative(path: Path, home: Path) -> str:
    return path.relative_to(home).as_posix() if path.is_relative_to(home) else str(path)


def _grouped(
    rows: Iterable[tuple[Any, ...]], width: int
) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    """Yield consecutive rows that agree in their first `width` columns, those columns first."""
    head: tuple[Any, ...] | None = None
    group: list[tuple[Any, ...]] = []
    for row in rows:
        if row[:width] != head:
            if head is not None:
                yield head, group
            head, group = row[:width], []
        group.append(row)
    if head is not None:
        yield head, group
