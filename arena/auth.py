"""Tokens: made, listed, revoked; and the gate at which they are shown.

A token reads `arena_play_3f9c2a1b_…`: its scopes and its public id for people, then 256 random bits. The store
keeps a hash of it and nothing else, so that who reads the store can show no token; it is shown once, when it
is made. The gate asks the store at every show, so that a token revoked from another process is dead at once,
and compares in constant time.
"""

import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from arena.errors import RequestRefused, StoreError, TokenError
from arena.limits import AUTH, DEFAULT_RATES, Buckets, Rate
from arena.store import BUSY_TIMEOUT_S, FILE_NAME, Store
from games.text import MAX_NAME_CHARS, clean_name

PLAY, WATCH, ADMIN = "play", "watch", "admin"
SCOPES = (PLAY, WATCH, ADMIN)
"""Take seats; watch what is public; see everything and run the server. `admin` includes the others."""

SECRET_BYTES = 32
ID_BYTES = 4
TOKEN = re.compile(r"arena_(?:play|watch|admin)(?:-(?:play|watch|admin))*_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
"""What every token looks like; its one group is the id."""

_HASH_BYTES = 32
_UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_MAX_LIFE_S = 3650 * 86_400


@dataclass(frozen=True, slots=True)
class Identity:
    """Who showed a token. `key` names the token in limits and logs; it is its public id."""

    name: str
    scopes: frozenset[str]
    key: str

    def may(self, scope: str) -> bool:
        """Whether the token's scopes allow `scope`."""
        return scope in self.scopes or ADMIN in self.scopes


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as the store knows it; times in seconds since 1970."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created: int
    until: int | None
    revoked: int | None

    def state(self, now: float) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.until is not None and self.until <= now else "valid"


def create_token(store: Store, name: str, *, scopes: Sequence[str], life_s: int | None, now: float) -> str:
    """Make a token and return it; it cannot be had again.

    Args:
        store: the store of the home whose server will take it.
        name: who shows it; players are rated under it. One valid token bears a name.
        scopes: of `SCOPES`, one or more.
        life_s: seconds until it expires; None never.
        now: seconds since 1970.

    Raises `TokenError` in one line.
    """
    if not name or clean_name(name) != name:
        raise TokenError(
            f"token name: got {name[:80]!r}, allowed are 1 to {MAX_NAME_CHARS} printable characters "
            'without < > " or \\'
        )
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise TokenError(f"token scope: got {unknown[:1] or 'none'}, allowed are {', '.join(SCOPES)}")
    kept = tuple(scope for scope in SCOPES if scope in scopes)
    identity = secrets.token_hex(ID_BYTES)
    token = f"arena_{'-'.join(kept)}_{identity}_{secrets.token_urlsafe(SECRET_BYTES)}"
    with store.write() as connection:
        for row in _read(connection, "where name = ? and revoked is null", (name,)):
            if row.state(now) == "valid":
                raise TokenError(
                    f"token name: {name!r} has a valid token ({row.id}); revoke it first, or take another name"
                )
        connection.execute(
            "insert into tokens (id, name, scopes, hash, created, until) values (?, ?, ?, ?, ?, ?)",
            (
                identity,
                name,
                " ".join(kept),
                hash_of(token),
                int(now),
                None if life_s is None else int(now) + life_s,
            ),
        )
    return token


def list_tokens(store: Store) -> list[TokenRow]:
    """Return all tokens, the oldest first."""
    return [_row(row) for row in store.rows(f"select {_COLUMNS} from tokens order by created, rowid")]


def revoke_token(store: Store, which: str, *, now: float) -> TokenRow:
    """Revoke the valid token of this name or id, and return it. Raises `TokenError` where there is none."""
    with store.write() as connection:
        rows = _read(connection, "where (name = ? or id = ?) and revoked is null", (which, which))
        valid = [row for row in rows if row.state(now) == "valid"]
        if not valid:
            raise TokenError(
                f"token: no valid token has the name or id {which[:80]!r}; see `arena token list`"
            )
        connection.execute("update tokens set revoked = ? where id = ?", (int(now), valid[0].id))
        return valid[0]


def read_life(text: str) -> int:
    """Return a span such as `12h` or `30d` in seconds (m, h, d, w). Raises `TokenError`."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})([mhdw])", text)
    life_s = int(found[1]) * _UNITS_S[found[2]] if found else 0
    if not 0 < life_s <= _MAX_LIFE_S:
        raise TokenError(
            f"--expires: got {text[:40]!r}, allowed are spans up to ten years such as 30m, 12h, 30d"
        )
    return life_s


def hash_of(token: str) -> bytes:
    """Return what the store keeps of a token. A plain hash will do: 256 random bits cannot be guessed."""
    return hashlib.blake2b(
        token.encode("utf-8", "replace"), digest_size=_HASH_BYTES, person=b"arena-token"
    ).digest()


def redact(text: str) -> str:
    """Return `text` with the secret part of every token taken out."""
    return TOKEN.sub(lambda found: f"{found[0][:-43]}…", text)


class Gate:
    """Where tokens are shown, and where whoever asks too much is held up.

    Args:
        home: the directory whose store holds the tokens.
        anonymous: scopes allowed without a token.
        rates: by kind, see `arena.limits`.
        clock: seconds for the limits, never going back.
        now: seconds since 1970, for expiry.
    """

    def __init__(
        self,
        home: Path,
        *,
        anonymous: Sequence[str] = (),
        rates: Mapping[str, Rate] = DEFAULT_RATES,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.anonymous = frozenset(anonymous)
        self._buckets = Buckets(rates, clock=clock)
        self._now = now
        self._path = home / FILE_NAME
        self._dummy = secrets.token_bytes(_HASH_BYTES)
        with Store(home):  # makes the table
            pass
        with self._guard():
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                check_same_thread=False,  # made where opening may block, then used in the loop alone
            )
            self._connection.execute("pragma query_only = on")

    def close(self) -> None:
        """Let go of the store."""
        self._connection.close()

    def authenticate(self, token: str, *, address: str = "") -> Identity:
        """Return who a token stands for.

        Args:
            token: as it was shown.
            address: where it was shown from; addresses that show many bad ones are held up.

        Raises `RequestRefused` with `unauthorised`, or `rate_limited`; the text does not tell why. Reads one
        row of a local file by its key, which takes some ten microseconds and never waits for a writer.
        """
        if address and self._buckets.level(f"{AUTH}:{address}") < 1:
            raise RequestRefused("rate_limited", "too many tokens that are not valid; wait a minute")
        found = TOKEN.fullmatch(token)
        row, stored = self._look_up(found[1] if found else "")
        same = hmac.compare_digest(stored or self._dummy, hash_of(token))
        if row is not None and same and row.state(self._now()) == "valid":
            return Identity(row.name, frozenset(row.scopes), row.id)
        if address and not self._buckets.allow(f"{AUTH}:{address}"):
            raise RequestRefused("rate_limited", "too many tokens that are not valid; wait a minute")
        raise RequestRefused("unauthorised", "token: unknown, expired or revoked")

    def valid_keys(self) -> frozenset[str]:
        """Return the keys of all tokens that are valid now: connections with another one are to be closed."""
        with self._guard():
            rows = self._connection.execute(
                "select id from tokens where revoked is null and (until is null or until > ?)", (self._now(),)
            )
            return frozenset(row[0] for row in rows)

    def owned(self, name: str) -> bool:
        """Whether a valid token bears this name, so that nobody without it may play under it."""
        with self._guard():
            rows = _read(self._connection, "where name = ? and revoked is null", (name,))
            return any(row.state(self._now()) == "valid" for row in rows)

    def allow(self, key: str, cost: float = 1.0) -> bool:
        """Take `cost` from the bucket `kind:whose` (see `arena.limits`); False where it is refused."""
        return self._buckets.allow(key, cost)

    def _look_up(self, identity: str) -> tuple[TokenRow | None, bytes | None]:
        with self._guard():
            for row in self._connection.execute(
                f"select {_COLUMNS}, hash from tokens where id = ?", (identity,)
            ):
                return _row(row), row[-1]
        return None, None

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self._path}: cannot read the tokens: {error}") from None


_COLUMNS = "id, name, scopes, created, until, revoked"


def _row(row: Sequence[object]) -> TokenRow:
    identity, name, scopes, created, until, revoked = row[:6]
    return TokenRow(
        str(identity), str(name), tuple(str(scopes).split()), _int(created) or 0, _int(until), _int(revoked)
    )


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _read(connection: sqlite3.Connection, clause: str, values: Sequence[object]) -> list[TokenRow]:
    return [_row(row) for row in connection.execute(f"select {_COLUMNS} from tokens {clause}", values)]
