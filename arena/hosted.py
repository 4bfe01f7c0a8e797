"""What the store keeps of a server's matches, and the functions that write and read it.

A match has a row before anyone is told of it, and its results when it is over. The row outlives the match for a
while, so that a seat whose connection was lost at the end can still be told the rest.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arena.contest import OnlineTournament
from arena.online import REMEMBERED
from arena.report import MatchReport, points
from arena.store import FINISHED, RUNNING, Store
from arena.swiss import Points

OPEN_PLAY = "open-play"
"""Stands for the hash of the one tournament that holds the matches of lobbies and challenges."""
ONLINE = "online"
"""The key that marks the configuration of a tournament over connected agents."""
PLAYERS = "players"
"""The key of its players there: name, owner and spec of each."""
FAILURE_SUFFIX = ".failed"
KEPT = 10_000
"""Finished matches whose seats can still be taken up."""


@dataclass(frozen=True, slots=True)
class HostedSeat:
    """A seat that is played over a connection: whose it is, the request that it answers, its token's hash."""

    seat: int
    owner: str
    request: str
    resume: bytes


@dataclass(frozen=True, slots=True)
class HostedMatch:
    """A match of this server. `setup` is what its header does not hold, as JSON-compatible data."""

    id: int
    match: str
    record: Path
    running: bool
    setup: dict[str, Any]
    seats: tuple[HostedSeat, ...]


def add_hosted(
    store: Store, *, match: str, record: str, setup: dict[str, Any], seats: Sequence[HostedSeat]
) -> int:
    """Note a match before it begins and return its number.

    Args:
        store: the store.
        match: its name.
        record: the path of its record, relative to the home.
        setup: what the header does not hold.
        seats: those that are played over connections.
    """
    with store.write() as connection:
        cursor = connection.execute(
            "insert into hosted (match, record, status, setup) values (?, ?, ?, ?)",
            (match, record, RUNNING, json.dumps(setup, sort_keys=True)),
        )
        number = int(cursor.lastrowid or 0)
        connection.executemany(
            "insert into hosted_seats (hosted, seat, owner, request, resume) values (?, ?, ?, ?, ?)",
            [(number, seat.seat, seat.owner, seat.request, seat.resume) for seat in seats],
        )
    return number


def drop_hosted(store: Store, number: int) -> None:
    """Forget a match of which nobody was told."""
    with store.write() as connection:
        connection.execute("delete from hosted_seats where hosted = ?", (number,))
        connection.execute("delete from hosted where id = ?", (number,))


def finish_hosted(
    store: Store,
    number: int,
    *,
    report: MatchReport,
    home: Path,
    tournament: int | None = None,
    index: int = 0,
    deal: int | None = None,
) -> None:
    """Store how a match ended; the same again changes nothing.

    Args:
        store: the store.
        number: what `add_hosted` returned.
        report: how it ended.
        home: the home, to which the record's path is relative.
        tournament: the tournament it belongs to, None for open play.
        index: number of the match in the tournament.
        deal: the deal, in a tournament.
    """
    with store.write() as connection:
        if tournament is None:
            tournament, index = open_play(store), number
        store.add_reports(tournament, reports=[(index, deal, report)], home=home)
        connection.execute("update hosted set status = ? where id = ?", (FINISHED, number))


def note_failure(record: Path, reason: str) -> None:
    """Leave a note beside a record that its match has failed, until the store says so. Raises nothing.

    Where no disk takes another byte, the note's name alone says it.
    """
    with suppress(OSError):
        _note(record).write_text(reason, encoding="utf-8")


def forget_failure(record: Path) -> None:
    """Take the note away: the store says it. Raises nothing."""
    with suppress(OSError):
        _note(record).unlink(missing_ok=True)


def noted_failure(record: Path) -> str | None:
    """Return why a match has failed that the store takes for one that goes on; None where it did not."""
    try:
        return _note(record).read_text(encoding="utf-8", errors="replace") or f"{record}: the match failed"
    except OSError:
        return None


def _note(record: Path) -> Path:
    return record.with_suffix(FAILURE_SUFFIX)


def open_play(store: Store) -> int:
    """Return the number of the tournament that holds the matches of lobbies and challenges."""
    with store.write() as connection:
        for row in connection.execute("select id from tournaments where hash = ?", (OPEN_PLAY,)):
            return int(row[0])
    number = store.add_tournament({OPEN_PLAY: True}, config_hash=OPEN_PLAY)
    store.set_status(number, status=FINISHED)
    return number


@dataclass(frozen=True, slots=True)
class Left:
    """What an earlier host left."""

    matches: list[HostedMatch]
    """Those that go on, the oldest first."""
    open: list[tuple[OnlineTournament, list[list[str]], float]]
    """Tournaments for which players have registered: what was asked, the players, when it starts (since 1970)."""
    running: list[tuple[int, OnlineTournament, list[list[str]], dict[int, Points | None]]]
    """Tournaments that go on: the row, what was asked, its players, the points in the matches that were played."""
    over: list[tuple[str, list[list[str]]]]
    """The newest tournaments that are over, and their players."""


def left(store: Store, *, home: Path) -> Left:
    """Return what an earlier host left in a store."""
    prune(store)
    found = Left(unfinished(store, home=home), [], [], [])
    for config, starts_on in store.rows("select config, starts_on from open_tournaments order by name"):
        data = json.loads(config)
        found.open.append((OnlineTournament.model_validate(data[ONLINE]), data[PLAYERS], starts_on))
    for row in store.tournaments():
        if ONLINE not in row.config:
            continue
        asked = OnlineTournament.model_validate(row.config[ONLINE])
        players = row.config[PLAYERS]
        if row.status == RUNNING:
            played: dict[int, Points | None] = {
                match.number: points(match.seats) for match in store.played(row.id)
            }
            played |= {number: None for number, _, _ in store.failures(row.id)}
            found.running.append((row.id, asked, players, played))
        else:
            found.over.append((asked.name, players))
    del found.over[:-REMEMBERED]
    return found


def keep_open(store: Store, name: str, config: dict[str, Any], *, starts_on: float) -> None:
    """Store who has registered for an open tournament; one for which nobody has is not kept."""
    with store.write() as connection:
        connection.execute("delete from open_tournaments where name = ?", (name,))
        if any(spec.startswith("ws:") for _, _, spec in config[PLAYERS]):
            connection.execute(
                "insert into open_tournaments (name, config, starts_on) values (?, ?, ?)",
                (name, json.dumps(config, sort_keys=True), starts_on),
            )


def unfinished(store: Store, *, home: Path) -> list[HostedMatch]:
    """Return the matches that a server left, the oldest first."""
    return _read(store, "where status = ? order by id", (RUNNING,), home)


def find_seat(store: Store, resume: bytes, *, home: Path) -> tuple[HostedMatch, int] | None:
    """Return the match and the seat that the token with this hash belongs to."""
    with store.write() as connection:
        rows = connection.execute(
            "select hosted, seat from hosted_seats where resume = ?", (resume,)
        ).fetchall()
    for number, seat in rows:
        for found in _read(store, "where id = ?", (number,), home):
            return found, seat
    return None


def set_resume(store: Store, number: int, *, seat: int, resume: bytes) -> None:
    """Give a seat another resume token, of which this is the hash."""
    with store.write() as connection:
        connection.execute(
            "update hosted_seats set resume = ? where hosted = ? and seat = ?", (resume, number, seat)
        )


def prune(store: Store, *, keep: int = KEPT) -> None:
    """Forget the seats of all but the newest finished matches."""
    with store.write() as connection:
        old = "select id from hosted where status = ? and id <= (select coalesce(max(id), 0) - ? from hosted)"
        connection.execute(f"delete from hosted_seats where hosted in ({old})", (FINISHED, keep))


def _read(store: Store, clause: str, values: Sequence[Any], home: Path) -> list[HostedMatch]:
    with store.write() as connection:
        rows = connection.execute(
            f"select id, match, record, status, setup from hosted {clause}", values
        ).fetchall()
        return [
            HostedMatch(
                number,
                match,
                home / record,
                status == RUNNING,
                json.loads(setup),
                tuple(
                    HostedSeat(*row)
                    for row in connection.execute(
                        "select seat, owner, request, resume from hosted_seats where hosted = ? order by seat",
                        (number,),
                    )
                ),
            )
            for number, match, record, status, setup in rows
        ]
