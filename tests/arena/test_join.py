"""Local agents at a server's seats, over real sockets."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agents.base import Agent, Decision, Seat
from agents.errors import PlayerCannotPlay
from agents.players import Player, parse_player
from arena.join import Played, Wanted, join
from clients.errors import Refused
from clients.sdk import connect
from games.base import Event
from games.referee import Turn
from replays.reader import read_record
from replays.verify import verify_file
from tests.arena.connected import serving
from tests.clients.fake_server import ModelArena, serve

RANDOM = parse_player("me=random")


def play(home: Path, player: Player, wanted: Wanted, **settings: Any) -> list[Played]:
    """Play at a real server, alone among bots."""

    async def main() -> list[Played]:
        async with (
            serving(home, fill_after_s=0.02, **settings) as server,
            connect(server.addresses.websocket) as arena,
        ):
            return await join(arena, player, wanted=wanted, seed=3)

    return asyncio.run(main())


@pytest.mark.parametrize("spec", ["random", "scripted"])
@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
def test_a_local_player_at_a_server(game: str, spec: str, tmp_path: Path) -> None:
    [played] = play(tmp_path, Player("me", spec), Wanted(game=game, name="me"))
    assert played.error is None and played.failures == 0 and played.over is not None
    [path] = tmp_path.rglob("*.arena")
    assert verify_file(path).ok
    record = read_record(path)
    assert record.footer is not None
    assert record.header.seats[played.seat].name == "me"
    assert played.over.ended == list(record.footer.ended)
    assert not any(
        record.footer.counts.get(name) for name in ("forced", "illegal", "unparsed", "timeout", "late")
    )


def test_several_matches_one_after_another(tmp_path: Path) -> None:
    played = play(tmp_path, RANDOM, Wanted(game="kuhn", matches=3, options={}))
    assert len({one.match for one in played}) == 3
    assert len([*tmp_path.rglob("*.arena")]) == 3


def test_a_tournament_of_four_local_players(tmp_path: Path) -> None:
    from arena.contest import OnlineTournament

    async def main() -> list[list[Played]]:
        async with serving(tmp_path) as server:
            server.host.add_tournament(
                OnlineTournament(name="cup", game="kuhn", matches=12, seats=2, starts_in_s=60, players=4)
            )

            async def one(name: str) -> list[Played]:
                async with connect(server.addresses.websocket) as arena:
                    return await join(arena, RANDOM, wanted=Wanted(tournament="cup", name=name), seed=1)

            return await asyncio.gather(*map(one, "abcd"))

    played = asyncio.run(main())
    matches = {one.match for each in played for one in each}
    assert len(matches) == 12 and sum(map(len, played)) == 24
    assert all(one.error is None for each in played for one in each)
    assert all(verify_file(path).ok for path in tmp_path.rglob("*.arena"))


def test_a_player_that_does_not_play_the_game(tmp_path: Path) -> None:
    with pytest.raises(PlayerCannotPlay):
        play(tmp_path, parse_player("equilibrium"), Wanted(game="avalon"))


def test_what_the_server_refuses(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="unknown_tournament"):
        play(tmp_path, RANDOM, Wanted(tournament="no such"))


class Odd(Agent):
    """Does at each turn what the list says."""

    deeds: list[Any] = []  # noqa: RUF012
    seen: list[Any] = []  # noqa: RUF012
    bad_observe = False

    def observe(self, events: Any) -> None:
        assert all(isinstance(event, Event) for event in events)
        if self.bad_observe:
            raise RuntimeError("it cannot see")

    async def act(self, turn: Turn) -> Decision:
        self.seen.append(turn)
        deed = self.deeds.pop(0) if self.deeds else Decision(turn.space.default)
        if isinstance(deed, Exception):
            raise deed
        if deed == "hang":
            await asyncio.Event().wait()
        assert isinstance(deed, Decision)
        return deed


def odd(
    monkeypatch: pytest.MonkeyPatch, deeds: list[Any], *, game: str = "avalon", late: bool = False
) -> Any:
    """Play `Odd` against the model of a server; return its counts, the turns, and what was played."""

    def make(spec: str, seat: Seat) -> Agent:
        made = Odd(seat)
        made.deeds, made.seen = deeds, seen
        return made

    seen: list[Turn] = []
    monkeypatch.setattr("arena.join.make_agent", make)
    model = ModelArena()

    async def main() -> Played:
        async with serve(model) as port, connect(f"ws://127.0.0.1:{port}") as arena:
            playing = asyncio.create_task(join(arena, RANDOM, wanted=Wanted(game=game), seed=1))
            if late:
                while not seen:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                model.matches["m1"].timeout()
            [played] = await playing
            return played

    played = asyncio.run(main())
    assert played.over is not None
    return model.matches["m1"].referee.counts, seen, played


def test_an_agent_that_raises_costs_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, _, played = odd(monkeypatch, [RuntimeError("oh\n no"), ValueError()])
    assert counts["error"] == 2 and played.failures == 2 and played.error is None


def test_answers_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    deeds = [
        Decision(None, failure="unparsed", reason="no idea"),
        Decision(None, failure="ambiguous", reason="this or that"),
        Decision(None),
        Decision("\ud800"),
        Decision(("no such action",)),
    ]
    counts, seen, played = odd(monkeypatch, deeds)
    assert (counts["unparsed"], counts["ambiguous"], counts["illegal"], counts["error"]) == (2, 1, 1, 1)
    assert [turn.failure for turn in seen[:3]] == [None, "unparsed", "ambiguous"]
    assert [turn.ply for turn in seen[:3]] == [0, 0, 0] and seen[3].ply == 1
    assert played.failures == 1


def test_an_agent_that_cannot_observe_is_broken_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Odd, "bad_observe", True)
    counts, seen, played = odd(monkeypatch, [], game="kuhn")
    assert seen == [] and counts["error"] == played.turns == played.failures >= 1


def test_an_agent_that_hangs_does_not_hold_up_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, seen, played = odd(monkeypatch, ["hang"], late=True)
    assert counts["timeout"] == 1 and len(seen) == played.turns > 1
