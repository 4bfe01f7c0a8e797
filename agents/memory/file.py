"""The SQLite file under the experience store: opening, migrating, transactions, and errors in one line.

One process writes, any number read (WAL). A process that is killed loses what it had not committed, and nothing else.
"""

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlite_utils import Database

from agents.errors import BadExperience, MemoryFault, MemoryTooNew
from agents.memory.records import MAX_JSON_CHARS, MAX_NAME_CHARS
from agents.memory.schema import migrations
from games.tasks.goals import short

BUSY_TIMEOUT_S = 10.0
RETRY_S = 0.01
CACHE_KIB = 64 * 1024


class MemoryFile:
    """The open file. Close it, or use it in `with`.

    Args:
        path: the file; made, with the directories above it, where it is missing.
        create: False raises `MemoryFault` where there is none yet.

    Raises `MemoryFault` in one line for whatever is wrong with the file, `MemoryTooNew` for a newer one.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._depth = 0
        try:
            if not path.exists():
                if not create:
                    raise MemoryFault(f"{path}: there is no experience store")
                path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MemoryFault(
                f"{path}: cannot make the experience store: {error.strerror or error}"
            ) from None
        try:
            connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
        except sqlite3.Error as error:
            raise self._fault("cannot open the experience store", error) from None
        self._connection = connection
        try:
            with self._guard("cannot open the experience store"):
                self._set_up()
        except BaseException:
            connection.close()
            raise

    def _set_up(self) -> None:
        connection = self._connection
        self._use_wal()
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma foreign_keys = on")
        connection.execute(f"pragma cache_size = -{CACHE_KIB}")
        database = Database(connection)
        unknown = sorted({migration.name for migration in migrations.applied(database)} - _known())
        if unknown:
            raise MemoryTooNew(
                f"{self.path}: written by a newer evoke-arena (migration {unknown[0]} is unknown here): "
                "upgrade evoke-arena, or take another file"
            )
        if migrations.pending(database):
            with (
                self.transaction()
            ):  # one process migrates; the others wait here, and then find nothing pending
                migrations.apply(database)

    def _use_wal(self) -> None:
        # While another connection makes this change SQLite refuses at once, whatever the timeout.
        until = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                self._connection.execute("pragma journal_mode = wal")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() >= until:
                    raise
                time.sleep(RETRY_S)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction: all of it is kept, or none where anything is raised.

        Every write joins the transaction that is open, and opens one of its own where none is.
        """
        if self._depth:
            self._depth += 1
            try:
                with self._guard("cannot write to the experience store"):
                    yield self._connection
            finally:
                self._depth -= 1
            return
        with self._guard("cannot write to the experience store"):
            self._connection.execute("begin immediate")
            self._depth = 1
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._undone()
                self._connection.rollback()
                raise
            finally:
                self._depth = 0

    def _undone(self) -> None:
        """Forget what was read inside a transaction that is rolled back."""

    def put(self, key: str, value: object) -> None:
        """Keep a small JSON value under a key, in place of the one before. Raises `BadExperience`."""
        if not isinstance(key, str) or not 0 < len(key) <= MAX_NAME_CHARS:
            raise BadExperience(f"note key: got {short(key)}, 1 to {MAX_NAME_CHARS} characters are needed")
        text = to_json(value, f"note {key}")
        with self.transaction() as connection:
            connection.execute(
                "insert into notes (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
                (key, text),
            )

    def get(self, key: str, default: Any = None) -> Any:
        """Return what was put under a key, else `default`."""
        for (text,) in self.rows("select value from notes where key = ?", (key,)):
            return json.loads(text)
        return default

    def rows(self, query: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Return what a query finds. Raises `MemoryFault`."""
        with self._guard("cannot read the experience store"):
            return list(self._connection.execute(query, values))

    @contextmanager
    def _guard(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._fault(what, error) from None

    def _fault(self, what: str, error: sqlite3.Error) -> MemoryFault:
        reason = str(error)
        if "not a database" in reason:
            reason = "the file is no SQLite database"
        elif "malformed" in reason:
            reason = "the file is damaged"
        elif "is full" in reason:
            reason = "the disk is full"
        elif "locked" in reason:
            reason = f"another process held it for more than {BUSY_TIMEOUT_S:.0f} s"
        return MemoryFault(f"{self.path}: {what}: {reason}")


def to_json(value: object, what: str) -> str:
    """Return canonical JSON. Raises `BadExperience` for what is none, or too long."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise BadExperience(f"{what}: only JSON values are allowed, all numbers finite") from None
    if len(text) > MAX_JSON_CHARS:
        raise BadExperience(
            f"{what}: got {len(text)} characters of JSON, at most {MAX_JSON_CHARS} are allowed"
        )
    return text


def _known() -> set[str]:
    empty = Database(memory=True)
    try:
        return {migration.name for migration in migrations.pending(empty)}
    finally:
        empty.close()
