"""Lobby, ratings and tournaments: with facts that stand still, and with a server."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from textual.pilot import Pilot

from arena.http import HttpServer
from clients.errors import BadAddress, Disconnected, ProtocolError, Refused
from clients.spectator.rest import MAX_BYTES, RestClient, check_http
from clients.spectator.screens.dialogs import HelpScreen
from clients.spectator.screens.lobby import LobbyScreen
from clients.spectator.screens.match import MatchScreen
from clients.spectator.screens.polled import LONGEST_WAIT_S, PolledScreen, names_of
from clients.spectator.screens.ratings import RatingsScreen
from clients.spectator.screens.tournaments import TournamentScreen
from clients.spectator.server_app import ServerApp
from tests.arena.connected import play_match, serving, token
from tests.clients.spectator.facts import STANDINGS, StillFacts
from tests.clients.spectator.showing import opened, screen_text, until

SIZE = (120, 36)
URL = "ws://arena.example:8420"


def app(facts: StillFacts, **more: Any) -> ServerApp:
    return ServerApp(URL, facts=facts, **{"poll_s": 3600.0} | more)


async def shown(pilot: Pilot[None], kind: type[PolledScreen[Any]]) -> Any:
    await until(pilot, lambda: isinstance(pilot.app.screen, kind) and (pilot.app.screen.told is not None))
    await pilot.pause()
    return pilot.app.screen


@pytest.mark.asyncio
async def test_the_lobby_lists_what_goes_on_who_waits_and_what_is_over() -> None:
    facts = StillFacts()
    async with app(facts).run_test(size=SIZE) as pilot:
        await shown(pilot, LobbyScreen)
        text = screen_text(pilot)
        for words in (
            "a1b2",
            "Ada, Bors, bot ×3",
            "3 watching",
            "2 of 7, bots in 0:08",
            "evil: assassination",
        ):
            assert words in text, words
        assert "\x1b" not in text and "<b>" not in text and "‹b›Mallory‹/b›" in text
    assert facts.closed


@pytest.mark.asyncio
async def test_games_are_shown_one_after_the_other() -> None:
    async with app(StillFacts()).run_test(size=SIZE) as pilot:
        screen = await shown(pilot, LobbyScreen)
        for game, there, not_there in (
            ("avalon", "e5f6", "0708"),
            ("kuhn", "0708", "e5f6"),
            ("werewolf", "2 of 7", "e5f6"),
            (None, "e5f6", "never"),
        ):
            await pilot.press("g")
            assert screen.game == game
            assert there in screen_text(pilot) and not_there not in screen_text(pilot)


@pytest.mark.asyncio
async def test_enter_on_a_lobby_says_how_to_join() -> None:
    async with app(StillFacts()).run_test(size=SIZE, notifications=True) as pilot:
        await shown(pilot, LobbyScreen)
        await pilot.press("down", "down", "enter")
        await pilot.pause()
        assert "--player human --game werewolf" in screen_text(pilot)


@pytest.mark.asyncio
async def test_the_cursor_stays_on_its_match_when_others_come() -> None:
    async with app(StillFacts()).run_test(size=SIZE) as pilot:
        screen = await shown(pilot, LobbyScreen)
        await pilot.press("down", "down", "down")
        matches, lobbies = screen.told
        new = {**matches["live"][0], "match": "new1"}
        screen.show(({**matches, "live": [new, *matches["live"]]}, lobbies))
        table = screen._table
        assert table.coordinate_to_cell_key((table.cursor_row, 0)).row_key.value == "over/2/e5f6"


@pytest.mark.asyncio
async def test_a_server_that_is_away_is_said_and_asked_more_and_more_rarely() -> None:
    facts = StillFacts()
    async with app(facts).run_test(size=SIZE) as pilot:
        screen = await shown(pilot, LobbyScreen)
        facts.away = True
        for failures in (1, 2, 3):
            await pilot.press("r")
            assert screen.failures == failures
        text = screen_text(pilot)
        assert "nothing listens there" in text and "What is shown was told before" in text and "a1b2" in text
        facts.away = False
        await pilot.press("r")
        assert screen.failures == 0 and "nothing listens" not in screen_text(pilot)
    facts.away = True
    screen = LobbyScreen(facts, source=lambda name: None, join=lambda game: "", poll_s=2.0)  # type: ignore[arg-type, return-value]
    screen.say = lambda text: None  # type: ignore[method-assign]
    assert [await screen._ask() for _ in range(6)] == [
        4,
        8,
        16,
        LONGEST_WAIT_S,
        LONGEST_WAIT_S,
        LONGEST_WAIT_S,
    ]


@pytest.mark.asyncio
async def test_r_asks_at_once_and_a_screen_that_is_not_looked_at_does_not_ask() -> None:
    facts = StillFacts()
    async with app(facts).run_test(size=SIZE) as pilot:
        await shown(pilot, LobbyScreen)
        before = facts.asked
        await pilot.press("r")
        await until(pilot, lambda: facts.asked > before)
        await pilot.press("2")
        await shown(pilot, RatingsScreen)
        before = facts.asked
        await pilot.press("1")
        await until(pilot, lambda: facts.asked > before), "asked at once when it is looked at again"


@pytest.mark.asyncio
async def test_ratings_are_drawn_with_their_intervals_by_game_and_role() -> None:
    async with app(StillFacts(), show="ratings").run_test(size=SIZE) as pilot:
        screen = await shown(pilot, RatingsScreen)
        text = screen_text(pilot)
        assert "The Resistance: Avalon (1 of 2)" in text and "only twelve matches" in text
        assert "do not tell them apart" not in text, "that is of another game"
        row = next(line for line in text.splitlines() if " Ada " in line)
        assert "1620" in row and "━●━" in row and "58.3%" in row
        assert "✦ merlin" in text and "† assassin" in text
        await pilot.press("down", "down")
        await pilot.pause()
        assert "merlin" not in screen_text(pilot), "Cai has played no role"
        await pilot.press("g")
        assert screen.game == "kuhn" and "Kuhn poker (2 of 2)" in screen_text(pilot)


@pytest.mark.asyncio
async def test_a_tournament_shows_how_far_it_has_come_and_its_matches() -> None:
    async with app(StillFacts(), show="tournament").run_test(size=SIZE, notifications=True) as pilot:
        screen = await shown(pilot, TournamentScreen)
        text = screen_text(pilot)
        for words in ("Autumn cup (1 of 3)", "17 of 40 played", "1 going on", "22 left", "a1b2", "1620"):
            assert words in text, words
        await pilot.press("t")
        await until(pilot, lambda: screen.told.chosen == "Open evening")
        text = screen_text(pilot)
        assert "○ open" in text and "begins in 1:30" in text and "Fern" in text
        await pilot.press("enter")
        await pilot.pause()
        assert "No match of it goes on" in screen_text(pilot)
        await pilot.press("t")
        await until(pilot, lambda: screen.told.chosen == "Last year")
        assert "■ over" in screen_text(pilot)


@pytest.mark.asyncio
async def test_where_there_is_nothing_it_is_said() -> None:
    async with app(StillFacts(empty=True)).run_test(size=SIZE) as pilot:
        for key, kind, words in (
            ("1", LobbyScreen, "Nothing was played here yet"),
            ("2", RatingsScreen, "nobody has a rating"),
            ("3", TournamentScreen, "no tournament here"),
        ):
            await pilot.press(key)
            await shown(pilot, kind)
            assert words in screen_text(pilot)
            await pilot.press("enter", "g", "t")


@pytest.mark.asyncio
async def test_help_explains_the_keys_of_each_mode() -> None:
    async with app(StillFacts()).run_test(size=SIZE) as pilot:
        for key, kind, words in (
            ("1", LobbyScreen, "Watch the chosen match"),
            ("2", RatingsScreen, "Show the next game"),
            ("3", TournamentScreen, "Show the next tournament"),
        ):
            await pilot.press(key)
            await shown(pilot, kind)
            await pilot.press("question_mark")
            assert isinstance(pilot.app.screen, HelpScreen)
            assert words in screen_text(pilot) and "Ask the server now" in screen_text(pilot)
            await pilot.press("escape")


@pytest.mark.asyncio
async def test_the_command_palette_offers_modes_and_commands() -> None:
    async with app(StillFacts()).run_test(size=SIZE) as pilot:
        screen = await shown(pilot, LobbyScreen)
        titles = {command.title for command in pilot.app.get_system_commands(screen)}
        assert {"Go to ratings", "Go to tournament", "Ask now", "Watch", "Game", "Theme"} <= titles


@pytest.mark.parametrize("size", [(80, 24), (60, 18), (30, 10), (10, 4)])
@pytest.mark.asyncio
async def test_every_screen_fits_a_narrow_terminal(size: tuple[int, int]) -> None:
    async with app(StillFacts()).run_test(size=size) as pilot:
        for key, kind in (("1", LobbyScreen), ("2", RatingsScreen), ("3", TournamentScreen)):
            await pilot.press(key)
            await shown(pilot, kind)
            assert all(len(line) <= size[0] for line in screen_text(pilot).splitlines())
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "Autumn cup" in screen_text(pilot)


def test_standings_in_the_test_are_as_a_server_writes_them() -> None:
    from arena.standings import Standing

    assert set(STANDINGS[0]) <= set(Standing("p", "avalon").as_dict())


@pytest.mark.parametrize(
    ("names", "cells", "text"),
    [
        (["a", "b"], 20, "a, b"),
        (["bot", "bot", "a"], 20, "bot ×2, a"),
        (["anna", "bert", "carl"], 10, "anna +2"),
        (["a" * 50], 8, "aaaaaaa…"),
        (None, 8, ""),
        ([3, "\x00"], 20, "3, \\u0000"),
    ],
)
@pytest.mark.asyncio
async def test_names_fit_their_column(names: Any, cells: int, text: str) -> None:
    assert names_of(names, cells=cells) == text
    assert len(names_of(names, cells=cells)) <= cells


# With a server


@pytest.mark.asyncio
async def test_a_server_is_watched_from_its_lobby_to_a_match_and_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        match = await play_match(server)
        made = ServerApp(server.addresses.websocket, poll_s=0.2)
        async with made.run_test(size=SIZE) as pilot:
            screen = await shown(pilot, LobbyScreen)
            await until(pilot, lambda: any(row["match"] == match for row in screen.told[0]["recent"]))
            await pilot.pause()
            await pilot.press("enter")
            watched = await opened(pilot)
            await until(pilot, lambda: watched.over)
            assert watched.source.name == match
            await pilot.press("end")
            assert "■ end" in screen_text(pilot)
            await pilot.press("escape")
            assert pilot.app.screen is screen
            await pilot.press("2")
            await shown(pilot, RatingsScreen)
            assert "p0" in screen_text(pilot)


@pytest.mark.asyncio
async def test_a_named_match_is_shown_first(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        match = await play_match(server)
        made = ServerApp(server.addresses.websocket, match=match)
        async with made.run_test(size=SIZE) as pilot:
            screen = await opened(pilot)
            await until(pilot, lambda: screen.over)
            assert isinstance(pilot.app.screen, MatchScreen)


@pytest.mark.asyncio
async def test_the_token_goes_into_the_header_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths: list[str] = []
    check: Callable[[HttpServer, web.Request], None] = HttpServer._check

    def noted(self: HttpServer, request: web.Request) -> None:
        paths.append(str(request.url))
        check(self, request)

    monkeypatch.setattr(HttpServer, "_check", noted)
    secret = await asyncio.to_thread(token, tmp_path, "ada", "watch")
    async with serving(tmp_path, anonymous=()) as server:
        url = server.addresses.websocket
        for facts, allowed in ((RestClient(url, token=secret), True), (RestClient(url), False)):
            try:
                if allowed:
                    assert await facts.lobbies() == [] and await facts.tournaments() == []
                    assert (await facts.ratings())["standings"] == []
                    with pytest.raises(Refused, match="unknown_tournament"):
                        await facts.ratings(tournament="t9")
                else:
                    with pytest.raises(Refused, match="unauthorised"):
                        await facts.matches()
            finally:
                await facts.close()
    assert len(paths) == 5 and not any(secret in path for path in paths)


@pytest.mark.asyncio
async def test_a_server_that_is_none_is_named() -> None:
    answers: dict[str, Callable[[], web.Response]] = {
        "html": lambda: web.Response(text="<p>hello", content_type="text/html"),
        "list": lambda: web.json_response([1, 2]),
        "elsewhere": lambda: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
        "busy": lambda: web.json_response(
            {"code": "rate_limited", "message": "slow\x1b[2J down"}, status=429
        ),
        "broken": lambda: web.Response(status=502, text="bad gateway"),
        "refuses": lambda: web.json_response({"code": "forbidden", "message": "not for you"}, status=403),
        "long": lambda: web.Response(body=b"[" + b" " * (MAX_BYTES + 5) + b"]"),
        "deep": lambda: web.Response(body=b"[" * 100_000),
    }
    kind = ""

    async def answer(request: web.Request) -> web.Response:
        return answers[kind]()

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    http = f"http://127.0.0.1:{runner.addresses[0][1]}"
    facts = RestClient("ws://127.0.0.1:1", http=http)
    try:
        for sort, error, text in (
            ("html", ProtocolError, "no arena server"),
            ("list", ProtocolError, "not what an arena server says"),
            ("elsewhere", ProtocolError, "HTTP 302"),
            ("busy", Disconnected, r"slow\\u001b\[2J down"),
            ("broken", Disconnected, "HTTP 502 just now"),
            ("refuses", Refused, "not for you"),
            ("long", ProtocolError, "more than"),
            ("deep", ProtocolError, "no arena server"),
        ):
            kind = sort
            with pytest.raises(error, match=text) as caught:
                await facts.matches()
            assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)
    finally:
        await facts.close()
        await runner.cleanup()
    gone = RestClient("ws://127.0.0.1:1", http=http)
    with pytest.raises(Disconnected):
        await gone.matches()
    await gone.close()
    nobody = RestClient("ws://127.0.0.1:1")
    with pytest.raises(Disconnected, match="nothing listens"):
        await nobody.matches()


@pytest.mark.parametrize(
    "url", ["ws://h", "h:1", "http://", "http://me:pw@h/", "http://h/?token=x", "http://h:99999"]
)
@pytest.mark.asyncio
async def test_an_http_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(BadAddress) as error:
        check_http(url)
    assert "\n" not in str(error.value) and "pw" not in str(error.value) and "token=x" not in str(error.value)


@pytest.mark.asyncio
async def test_the_server_tells_its_tournaments_and_their_standings(tmp_path: Path) -> None:
    from arena.contest import OnlineTournament

    asked = OnlineTournament(
        name="cup", game="kuhn", matches=2, bots=("random",), players=9, starts_in_s=3600
    )
    async with serving(tmp_path) as server:
        server.host.add_tournament(asked)
        facts = RestClient(server.addresses.websocket)
        try:
            (row,) = await facts.tournaments()
            assert (row["tournament"], row["status"], row["live"], row["id"]) == ("cup", "open", [], None)
            assert json.dumps(row)
        finally:
            await facts.close()
