"""REST, health, metrics and pages, over real sockets on the loopback."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from arena import pages
from arena.auth import create_token, revoke_token
from arena.serving import ArenaServer
from arena.store import Store
from clients.protocol.messages import ERROR_CODES, Seated, Waiting
from games.registry import game_names
from replays.reader import FrameReader
from replays.verify import verify
from tests.arena.connected import Client, play_match, serving, token

pytestmark = pytest.mark.usefixtures("no_blocking")

PATHS = [
    "/",
    "/matches/{match}",
    "/health",
    "/ready",
    "/metrics",
    "/api/games",
    "/api/matches",
    "/api/matches/{match}",
    "/api/matches/{match}/record",
    "/api/ratings",
    "/api/lobbies",
    "/api/tournaments",
]
FREE = {"/health", "/ready", "/metrics"}


class Site:
    """The HTTP side of a server, as a client sees it."""

    def __init__(self, server: ArenaServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session

    async def get(self, path: str, *, token: str = "", **headers: str) -> tuple[int, Any, bytes]:
        """Return status, headers and body."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        async with self._session.get(self.server.addresses.http + path, headers=headers) as response:
            return response.status, response.headers, await response.read()

    async def json(self, path: str, **more: str) -> Any:
        status, headers, body = await self.get(path, **more)
        assert status == 200, body
        assert headers["Content-Type"].startswith("application/json")
        return json.loads(body)

    async def refused(self, path: str, **more: str) -> tuple[int, str]:
        status, _, body = await self.get(path, **more)
        told = json.loads(body)
        assert set(told) == {"code", "message"} and "\n" not in told["message"]
        return status, told["code"]


def site(home: Path, work: Callable[[Site], Awaitable[None]], **server: Any) -> None:
    """Run `work` against a server."""

    async def main() -> None:
        async with (
            serving(home, **{"requests_per_s": 1e6} | server) as running,
            aiohttp.ClientSession() as session,
        ):
            await work(Site(running, session))

    asyncio.run(main())


def test_every_answer_has_the_headers_that_keep_a_browser_safe(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        match = await play_match(site.server)
        for path in [*(path.format(match=match) for path in PATHS), "/nope", "/matches/nope"]:
            _, headers, _ = await site.get(path)
            assert headers["X-Content-Type-Options"] == "nosniff", path
            policy = headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "Access-Control-Allow-Origin" not in headers
            assert headers["Server"] == "evoke-arena", "no version for who looks for holes"

    site(tmp_path, work)


def test_a_finished_match_is_listed_shown_rated_and_its_record_verifies(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        match = await play_match(site.server)
        listed = await until(lambda: site.json("/api/matches"), lambda found: found["recent"])
        (row,) = listed["recent"]
        assert listed["live"] == [] and row["match"] == match and row["game"] == "kuhn"
        assert sorted(row["names"]) == ["p0", "p1"] and sum(row["returns"]) == 0
        assert await site.json(f"/api/matches/{match}") == row
        status, headers, body = await site.get(f"/api/matches/{match}/record")
        assert status == 200 and headers["Content-Disposition"] == f'attachment; filename="{match}.arena"'
        assert verify(FrameReader(body).read()).ok
        ratings = await site.json("/api/ratings?game=kuhn")
        assert ratings["matches"] == 1 and len(ratings["standings"]) == 2
        status, headers, body = await site.get(f"/matches/{match}")
        assert status == 200 and headers["Content-Type"].startswith("text/html")
        assert f"script-src '{script_hash(body)}'" in headers["Content-Security-Policy"]
        assert b'"seed":null' in body and b'"views":["public"]' in body, "the public page"
        status, _, front = await site.get("/")
        assert status == 200 and match in front.decode() and b"<script" not in front

    site(tmp_path, work)


def stop_the_clock(site: Site) -> None:
    """Let nothing come back into the buckets of the limits, however long a test runs."""
    site.server.gate._buckets._clock = lambda: 0.0


async def until(ask: Callable[[], Awaitable[Any]], good: Callable[[Any], Any]) -> Any:
    """Ask again until the store has caught up with the match that its players were told the end of."""
    while not good(found := await ask()):
        pass
    return found


def script_hash(page: bytes) -> str:
    found = re.search(rb"script-src '(sha256-[^']+)'", page)
    assert found
    return found[1].decode()


def test_a_match_that_goes_on_shows_what_is_public_and_no_record(tmp_path: Path) -> None:
    admin = token(tmp_path, "root", "admin")

    async def work(site: Site) -> None:
        where = site.server.addresses.websocket
        async with Client(where) as first, Client(where) as second:
            first.connection.join(game="kuhn", name="<i>first", seats=2)
            await first.flush()
            await first.until(Waiting)
            (lobby,) = await site.json("/api/lobbies")
            assert lobby["game"] == "kuhn" and lobby["seats"] == 2
            assert "<" not in lobby["names"][0]
            second.connection.join(game="kuhn", name="second", seats=2)
            await second.flush()
            seated, _ = await asyncio.gather(first.until(Seated), second.until(Seated))
            match = seated.match
            listed = await site.json("/api/matches")
            assert [row["match"] for row in listed["live"]] == [match] and listed["recent"] == []
            row = await site.json(f"/api/matches/{match}")
            assert row["live"] and set(row) == {"match", "game", "names", "watchers", "delay_s", "live"}
            assert await site.refused(f"/api/matches/{match}/record") == (403, "forbidden")
            status, _, body = await site.get(f"/api/matches/{match}/record", token=admin)
            assert status == 200
            record = FrameReader(body).read()
            assert record.footer is None and record.entries
            status, _, page = await site.get(f"/matches/{match}")
            assert status == 200 and b"goes on" in page and b"<i>" not in page
            _, _, metrics = await site.get("/metrics")
            assert b"arena_matches 1.0" in metrics and b"arena_connections 2.0" in metrics

    site(tmp_path, work, deadline_s=1000)


def test_what_is_wrong_is_answered_by_a_code_and_a_line(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for path, expected in {
            "/nope": (404, "not_found"),
            "/api/matches/none": (404, "unknown_match"),
            "/api/matches/none/record": (404, "unknown_match"),
            "/matches/none": (404, "unknown_match"),
            "/matches/..%2f..%2fetc%2fpasswd": (404, "unknown_match"),
            "/api/matches?limit=0": (400, "bad_message"),
            "/api/matches?limit=1e9": (400, "bad_message"),
            "/api/matches?before=-1": (400, "bad_message"),
            "/api/matches?game=chess": (404, "unknown_game"),
            "/api/ratings?game=chess": (404, "unknown_game"),
            "/health?token=arena_play_x": (400, "bad_message"),
        }.items():
            assert await site.refused(path) == expected, path
            assert expected[1] in ERROR_CODES or expected[1] == "not_found"

    site(tmp_path, work)


def test_only_reading_is_possible(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        async with aiohttp.ClientSession() as session:
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                async with session.request(method, site.server.addresses.http + "/api/matches") as answer:
                    assert answer.status == 405

    site(tmp_path, work)


def test_a_token_is_taken_from_its_header_alone_and_its_scope_counts(tmp_path: Path) -> None:
    watch, play = token(tmp_path, "eve", "watch"), token(tmp_path, "alice", "play")

    async def work(site: Site) -> None:
        for path in PATHS:
            path = path.format(match="none")
            if path in FREE:
                assert (await site.get(path))[0] == 200
                continue
            assert await site.refused(path) == (401, "unauthorised"), path
            assert await site.refused(path, token="wrong") == (401, "unauthorised")
            assert await site.refused(path, token=play) == (403, "forbidden")
            assert (await site.get(path, token=watch))[0] in (200, 404)
        assert (await site.get("/api/games"))[1]["WWW-Authenticate"] == "Bearer"
        assert (await site.refused("/api/games", Authorization=f"Basic {watch}"))[1] == "unauthorised"
        assert (await site.refused("/api/games", Cookie=f"token={watch}"))[1] == "unauthorised"

    site(tmp_path, work, anonymous=())


def test_a_revoked_token_opens_nothing_from_the_next_request_on(tmp_path: Path) -> None:
    watch = token(tmp_path, "eve", "watch")

    def revoke() -> None:
        with Store(tmp_path) as store:
            revoke_token(store, "eve", now=0)

    async def work(site: Site) -> None:
        assert await site.json("/api/games", token=watch)
        await asyncio.to_thread(revoke)
        assert await site.refused("/api/games", token=watch) == (401, "unauthorised")

    site(tmp_path, work, anonymous=())


def test_requests_are_limited_by_address_and_by_token(tmp_path: Path) -> None:
    watch = token(tmp_path, "eve", "watch")

    async def work(site: Site) -> None:
        stop_the_clock(site)
        assert [(await site.get("/health"))[0] for _ in range(6)] == [200] * 5 + [429]
        assert (await site.get("/health"))[1]["Retry-After"] == "1"
        assert (await site.get("/health", token=watch))[0] == 200, "a token has a bucket of its own"

    site(tmp_path, work, requests_per_s=1.0)


def test_guessing_tokens_is_held_up(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        stop_the_clock(site)
        codes = [(await site.refused("/api/games", token=f"guess{n}"))[1] for n in range(12)]
        assert codes[:10] == ["unauthorised"] * 10 and codes[-1] == "rate_limited"

    site(tmp_path, work)


def test_a_name_that_was_made_to_lead_here_reads_nothing(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        assert await site.refused("/api/games", Host="rebound.example") == (403, "forbidden")
        assert (await site.get("/api/games", Host="localhost:1"))[0] == 200

    site(tmp_path, work)


def test_games_are_listed_as_by_the_command(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        assert [game["name"] for game in await site.json("/api/games")] == game_names()

    site(tmp_path, work)


def test_matches_are_paged_backwards(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        for _ in range(5):
            await play_match(site.server)
        await until(lambda: site.json("/api/matches"), lambda found: len(found["recent"]) == 5)
        seen: list[str] = []
        before = 0
        while rows := (await site.json(f"/api/matches?limit=2&before={before}"))["recent"]:
            seen += [row["match"] for row in rows]
            before = rows[-1]["number"]
        assert len(seen) == len(set(seen)) == 5
        assert (await site.json("/api/matches?game=avalon"))["recent"] == []

    site(tmp_path, work)


def test_a_server_that_stops_is_not_ready(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        assert (await site.get("/ready"))[0] == 200
        site.server.http.not_ready()
        assert await site.refused("/ready") == (503, "shutdown")
        assert (await site.get("/health"))[0] == 200

    site(tmp_path, work)


def test_what_fails_inside_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **more: object) -> None:
        raise RuntimeError("secret detail")

    async def work(site: Site) -> None:
        monkeypatch.setattr("arena.archive.recent", fail)
        status, _, body = await site.get("/api/matches")
        assert status == 500 and b"secret" not in body and json.loads(body)["code"] == "internal"

    site(tmp_path, work)


def test_pages_show_names_as_text() -> None:
    row = {
        "match": 'a"b',
        "game": "g",
        "names": ["<script>alert(1)</script>"],
        "watchers": 0,
        "reason": "<b>",
    }
    text = pages.front(live=[row], recent=[row], lobbies=[{**row, "seats": 2}], websocket="ws://h")
    assert "<script" not in text and "<b>" not in text and 'a"b' not in text
    assert "<script" not in pages.live_match(row, websocket="ws://h")


def test_tokens_are_made_in_the_store_that_the_server_reads(tmp_path: Path) -> None:
    async def work(site: Site) -> None:
        def make() -> str:
            with Store(tmp_path) as store:
                return create_token(store, "late", scopes=["watch"], life_s=None, now=0)

        made = await asyncio.to_thread(make)
        assert await site.json("/api/games", token=made), "made while the server runs"

    site(tmp_path, work, anonymous=())
