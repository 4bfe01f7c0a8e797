"""A person at a match in this process, played through the screen with keys alone."""

import asyncio
import random
from pathlib import Path

import pytest

from agents.errors import BadPlayer
from agents.players import Player
from arena.human import LocalSeats
from arena.people import as_person
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from clients.errors import SeatLost
from clients.match import Match, Turn
from clients.spectator.screens import seat as seat_screen
from games.base import Event
from games.errors import ArenaError
from games.registry import load_game
from replays.reader import read_record
from replays.verify import verify
from tests.clients.spectator.conftest import settled
from tests.clients.spectator.seats import person, play_on, seated
from tests.clients.spectator.showing import until

__all__ = ["settled"]


def job(game: str, *, seats: int, at: int = 0, seed: int = 3, record: Path | None = None) -> MatchJob:
    names = [f"bot {index}" for index in range(seats)]
    names[at] = "me"
    players = {name: "human" if name == "me" else "random" for name in names}
    options = load_game(game).new(seats=seats, seed=seed, options={}).options.model_dump(mode="json")
    return MatchJob(
        match="", plan=MatchPlan(0, game, seed, 0, 0, tuple(names)), seats=seats, players=players,
        options=options, record=record,
    )  # fmt: skip


@pytest.mark.asyncio
@pytest.mark.parametrize(("game", "seats", "at"), [("kuhn", 2, 1), ("werewolf", 7, 2)])
async def test_a_match_is_played_here_with_keys_alone(tmp_path: Path, game: str, seats: int, at: int) -> None:
    local = LocalSeats(job(game, seats=seats, at=at, record=tmp_path / "m.arena"), person="me")
    app = person(local)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await seated(pilot)
        await play_on(pilot, screen, random.Random(2))
        assert screen.match.over is not None
        await pilot.press("q")
        await until(pilot, lambda: app._exit)
    report = local.report
    assert report is not None and report.error is None
    assert report.seats[at].spec == "human" and report.counts.get("forced", 0) == 0
    record = read_record(tmp_path / "m.arena")
    assert verify(record).ok and record.header.seats[at].spec == "human"


@pytest.mark.asyncio
async def test_leaving_forfeits_and_the_match_goes_on_without_the_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat_screen, "PARTING_S", 3600.0)
    local = LocalSeats(job("avalon", seats=5, record=tmp_path / "m.arena"), person="me")
    app = person(local)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await seated(pilot)
        await until(pilot, lambda: screen.asked is not None)
        await pilot.press("escape", "q", "y")
        await until(pilot, lambda: app._exit)
    assert local.report is not None and local.report.seats[0].ended == "forfeit"
    assert "left" in str(app.sat[0].error)
    assert verify(read_record(tmp_path / "m.arena")).ok


@pytest.mark.asyncio
async def test_an_illegal_answer_is_asked_again_and_what_was_answered_is_not_taken_twice() -> None:
    local = LocalSeats(job("kuhn", seats=2), person="me")
    told: list[str] = []
    async for match in local.matches():
        assert isinstance(match, Match) and match.seat == 0
        async for update in match.updates():
            if isinstance(update, Event):
                told.append(update.kind)
            elif isinstance(update, Turn) and update.open:
                attempt = update.attempt
                receipt = await update.play("fly" if attempt == 0 else update.space.default)
                assert receipt == "taken"
                assert not match.line.act(match.id, request=update.request, action="bet")
    assert local.report is not None and local.report.counts["illegal"] >= 1
    assert "rejected" in told and told[-1] == "end"


@pytest.mark.asyncio
async def test_what_goes_wrong_in_the_match_is_raised() -> None:
    bad = job("kuhn", seats=2)
    bad.players["bot 1"] = "equilibrium:x"
    with pytest.raises(ArenaError, match="takes nothing after a colon"):
        await _drain(LocalSeats(bad, person="me"))


@pytest.mark.asyncio
async def test_a_seat_that_is_left_ends_there() -> None:
    local = LocalSeats(job("kuhn", seats=2), person="me")
    async for match in local.matches():
        async for update in match.updates():
            if isinstance(update, Turn):
                break
        match.leave()
        with pytest.raises(SeatLost):
            await match.result()
    await asyncio.sleep(0)
    assert local.report is not None and local.report.seats[0].ended == "forfeit"


async def _drain(local: LocalSeats) -> None:
    async for match in local.matches():
        with pytest.raises(SeatLost, match="takes nothing after a colon"):
            await match.result()


def test_a_person_is_written_as_any_player() -> None:
    assert as_person("human") == Player("human", "human")
    assert as_person(" Eve = human ") == Player("Eve", "human")
    assert as_person("random") is None and as_person("human=random") is None
    with pytest.raises(BadPlayer, match="visible characters"):
        as_person("=human")
