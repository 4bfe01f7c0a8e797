"""Finished matches in the store, as everyone may know them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arena.hosted import ONLINE
from arena.results import RatedMatch
from arena.store import FINISHED, Store
from games.registry import game_names, load_game
from games.text import clean_name

MAX_LISTED = 200


def recent(
    store: Store, *, limit: int = 50, game: str | None = None, before: int | None = None
) -> list[dict[str, Any]]:
    """Return finished matches, the newest first.

    Args:
        store: the store.
        limit: at most so many, up to `MAX_LISTED`.
        game: only of this game.
        before: only those with a smaller `number`, to page backwards.
    """
    return _matches(
        store,
        "where status = ? and (? is null or game = ?) and (? is null or id < ?) order by id desc limit ?",
        (FINISHED, game, game, before, before, min(limit, MAX_LISTED)),
    )


def find(store: Store, match: str) -> dict[str, Any] | None:
    """Return a finished match by its id, the newest where several bear it; None where none does."""
    found = _matches(store, "where status = ? and match = ? order by id desc limit 1", (FINISHED, match))
    return found[0] if found else None


def record_path(store: Store, match: str, *, home: Path) -> Path | None:
    """Return where the record of a finished match is, None where there is no such match."""
    for (record,) in store.rows(
        "select record from matches where status = ? and match = ? and record is not null "
        "order by id desc limit 1",
        (FINISHED, match),
    ):
        return home / str(record)
    return None


def live_record_path(store: Store, match: str, *, home: Path) -> Path | None:
    """Return where the record of one of a server's matches is being written, None where there is no such match."""
    for (record,) in store.rows("select record from hosted where match = ?", (match,)):
        return home / str(record)
    return None


def contests_over(store: Store, *, limit: int = 20) -> list[dict[str, Any]]:
    """Return the newest tournaments over connected agents that are over, the newest first, as `Host.tournaments`."""
    found: list[dict[str, Any]] = []
    for row in reversed(store.tournaments()):
        asked = row.config.get(ONLINE)
        if row.status != FINISHED or asked is None or len(found) == limit:
            continue
        played = int(store.rows("select count(*) from matches where tournament = ?", (row.id,))[0][0])
        found.append(
            {
                "tournament": asked["name"],
                "id": f"t{row.id}",
                "game": asked["game"],
                "status": "over",
                "players": [clean_name(name) for name, *_ in row.config["players"]],
                "planned": asked["matches"],
                "played": played,
                "playing": 0,
                "starts_in_s": None,
                "live": [],
            }
        )
    return found


def board(matches: Sequence[RatedMatch]) -> dict[str, Any]:
    """Return the standings over these matches as JSON-compatible data. Takes a processor for a while."""
    from arena.standings import leaderboard

    sides = {name: load_game(name).unlike_sides for name in game_names()}
    return {**leaderboard(matches, sides=sides).as_dict(), "matches": len(matches)}


def count(store: Store) -> int:
    """Return how many matches are finished."""
    return int(store.rows("select count(*) from matches where status = ?", (FINISHED,))[0][0])


def _matches(store: Store, clause: str, values: Sequence[object]) -> list[dict[str, Any]]:
    found = []
    for number, match, game, reason, turn_limit, tournament in store.rows(
        f"select id, match, game, reason, turn_limit, tournament from matches {clause}", values
    ):
        seats = store.rows(
            "select player, team, role, value, ended from seats where match = ? order by seat", (number,)
        )
        found.append(
            {
                "number": number,
                "match": match,
                "game": game,
                "live": False,
                "tournament": tournament,
                "reason": reason,
                "turn_limit": bool(turn_limit),
                "names": [clean_name(seat[0]) for seat in seats],
                "teams": [seat[1] for seat in seats],
                "roles": [seat[2] for seat in seats],
                "returns": [seat[3] for seat in seats],
                "ended": [seat[4] for seat in seats],
            }
        )
    return found
