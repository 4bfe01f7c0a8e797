"""Facts that stand still, for tests of the screens that show a server."""

from typing import Any

from clients.errors import Disconnected
from clients.spectator.rest import Facts

LIVE = [
    {"match": "a1b2", "game": "avalon", "names": ["Ada", "Bors", "bot", "bot", "bot"], "watchers": 3, "delay_s": 0.0},
    {"match": "c3d4", "game": "kuhn", "names": ["\x1b[31mEve", "<b>Mallory</b>"], "watchers": 0, "delay_s": 30.0},
]  # fmt: skip
RECENT = [
    {
        "number": 2, "match": "e5f6", "game": "avalon", "tournament": 1, "reason": "assassination",
        "names": ["Ada", "Bors", "Cai", "Dinadan", "Elaine"],
        "teams": ["evil", "good", "good", "good", "evil"], "returns": [1.0, -1.0, -1.0, -1.0, 1.0],
    },
    {
        "number": 1, "match": "0708", "game": "kuhn", "tournament": 1, "reason": "showdown",
        "names": ["Ada", "Bors"], "teams": ["first", "second"], "returns": [2.0, -2.0],
    },
]  # fmt: skip
LOBBIES = [{"game": "werewolf", "seats": 7, "options": {}, "names": ["Fern", "Kay"], "starts_in_s": 8.0}]


def standing(player: str, game: str, rating: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    tally = {
        "played": 12,
        "won": 7,
        "drawn": 0,
        "lost": 5,
        "score": 7 / 12,
        "score_low": 0.3,
        "score_high": 0.8,
    }
    return {
        "player": player, "game": game, "rating": rating, "low": low, "high": high, **tally,
        "by_role": {"merlin": tally, "assassin": {**tally, "score": None, "score_low": None, "score_high": None}},
        **more,
    }  # fmt: skip


STANDINGS = [
    standing("Ada", "avalon", 1620, 1540, 1700),
    standing("Bors", "avalon", 1480, 1390, 1570),
    standing("Cai", "avalon", 1400, 1330, 1470, by_role={}),
    standing("Ada", "kuhn", 1500, 1450, 1550, by_role={}),
]
TOURNAMENTS = [
    {
        "tournament": "Autumn cup", "id": "t3", "game": "avalon", "status": "running", "planned": 40, "played": 17,
        "playing": 1, "players": ["Ada", "Bors", "Cai"], "starts_in_s": None, "live": ["a1b2"],
    },
    {
        "tournament": "Open evening", "id": None, "game": "kuhn", "status": "open", "planned": 6, "played": 0,
        "playing": 0, "players": ["Fern"], "starts_in_s": 90.0, "live": [],
    },
    {
        "tournament": "Last year", "id": "t1", "game": "kuhn", "status": "over", "planned": 6, "played": 6,
        "playing": 0, "players": ["Ada"], "starts_in_s": None, "live": [],
    },
]  # fmt: skip


class StillFacts(Facts):
    """Tells always the same, or that the server is away."""

    def __init__(self, *, empty: bool = False) -> None:
        self.name = "arena.example:8420"
        self.empty = empty
        self.away = False
        self.asked = 0
        self.closed = False

    def _tell(self, value: Any, nothing: Any) -> Any:
        self.asked += 1
        if self.away:
            raise Disconnected("http://arena.example:8421: nothing listens there")
        return nothing if self.empty else value

    async def matches(self, *, game: str | None = None) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = self._tell(
            {"live": LIVE, "recent": RECENT}, {"live": [], "recent": []}
        )
        return found

    async def lobbies(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._tell(LOBBIES, [])
        return found

    async def ratings(self, *, tournament: str | None = None) -> dict[str, Any]:
        rows = [row for row in STANDINGS if tournament is None or row["game"] == "avalon"]
        warnings = ["avalon: only twelve matches each", "kuhn: the matches do not tell them apart"]
        found: dict[str, Any] = self._tell(
            {"standings": rows, "warnings": warnings}, {"standings": [], "warnings": []}
        )
        return found

    async def tournaments(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._tell(TOURNAMENTS, [])
        return found

    async def close(self) -> None:
        self.closed = True
