"""What a home tells the spectator's screens without a server."""

from pathlib import Path
from typing import Any

import pytest

from arena.home_facts import HomeFacts
from clients.spectator.app import SpectatorApp
from clients.spectator.screens.ratings import RatingsScreen
from tests.clients.spectator.showing import screen_text, until


@pytest.fixture
def home(arena: Any, tmp_path: Path) -> Path:
    """Return a home in which a tournament was played."""
    done = arena(
        "tournament", "--game", "kuhn", "--player", "a=random", "--player", "b=scripted", "--matches", 6, "--home",
        tmp_path / "home", "--seed", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return tmp_path / "home"


@pytest.mark.asyncio
async def test_a_home_tells_what_was_played_and_how_players_stand(home: Path) -> None:
    facts = HomeFacts(home)
    matches = await facts.matches()
    assert matches["live"] == [] and len(matches["recent"]) == 6
    assert (await facts.matches(game="avalon"))["recent"] == []
    assert {row["player"] for row in (await facts.ratings())["standings"]} == {"a", "b"}
    assert await facts.lobbies() == [] and await facts.tournaments() == []


@pytest.mark.asyncio
async def test_its_ratings_are_shown_on_the_screen(home: Path) -> None:
    app = SpectatorApp({"ratings": lambda: RatingsScreen(HomeFacts(home), poll_s=3600)})
    async with app.run_test(size=(100, 24)) as pilot:
        await until(pilot, lambda: "2 players" in screen_text(pilot))
        assert "Kuhn poker" in screen_text(pilot)
