"""The client library against the real server: whole tables over connections that are cut again and again."""

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from clients import blocking
from clients.errors import SeatLost
from clients.protocol.messages import Frames, Snapshot
from clients.sdk import Match, connect
from replays.reader import read_record
from replays.verify import verify_file
from tests.arena.connected import serving
from tests.clients.background import background_server
from tests.clients.fake_server import Cutter

pytestmark = pytest.mark.usefixtures("no_blocking")


async def play(match: Match, rng: random.Random) -> None:
    async for turn in match:
        assert await turn.play(turn.space.sample(rng)) == "taken"


@pytest.mark.parametrize(("game", "seats"), [("kuhn", 2), ("avalon", 5), ("werewolf", 6)])
@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_players_whose_connections_are_cut(
    game: str, seats: int, seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)

    async def one(stack: AsyncExitStack, port: int, name: str) -> tuple[str, Match, int]:
        cuts = [rng.randint(6, 20) / 2 for _ in range(6)]
        cutter = await stack.enter_async_context(Cutter(port, [None, *cuts]).run())
        arena = await stack.enter_async_context(connect(f"ws://127.0.0.1:{cutter.port}"))
        match = await arena.join(game=game, seats=seats, name=name)
        cutter.cut()
        await play(match, random.Random(f"{seed} {name}"))
        return name, match, cutter.connections

    async def main() -> list[tuple[str, Match, int]]:
        async with serving(tmp_path, fill_after_s=60) as server, AsyncExitStack() as stack:
            port = urlsplit(server.addresses.websocket).port
            assert port is not None
            return await asyncio.gather(*(one(stack, port, f"p{number}") for number in range(seats)))

    tables = asyncio.run(main())
    [path] = tmp_path.rglob("*.arena")
    assert verify_file(path).ok
    record = read_record(path)
    assert record.footer is not None
    counts = record.footer.counts
    assert not any(
        counts.get(name) for name in ("late", "timeout", "disconnect", "forfeit", "error", "illegal")
    )
    assert all(connections > 1 for _, _, connections in tables)
    assert any(connections > 2 for _, _, connections in tables) or game == "kuhn"
    for name, match, _ in tables:
        assert record.header.seats[match.seat].name == name
        seen = [(event.kind, event.data) for event in record.events() if event.visible_to(match.seat)]
        assert [(event.kind, event.data) for event in match.events] == seen
        assert match.over is not None and match.over.ended == list(record.footer.ended)


def test_many_matches_on_one_connection(tmp_path: Path) -> None:
    async def main() -> list[Match]:
        async with serving(tmp_path, fill_after_s=60) as server:
            async with (
                connect(server.addresses.websocket) as first,
                connect(server.addresses.websocket) as second,
            ):

                async def one(arena: Any, number: int) -> Match:
                    match = await arena.join(game="kuhn", name=f"p{number}")
                    await play(match, random.Random(number))
                    return match

                return await asyncio.gather(*(one(arena, n) for n in range(8) for arena in (first, second)))

    matches = asyncio.run(main())
    assert len({match.id for match in matches}) == 8
    assert all(verify_file(path).ok for path in tmp_path.rglob("*.arena"))


def test_a_challenge_is_played(tmp_path: Path) -> None:
    from tests.arena.connected import token

    tokens = {name: token(tmp_path, name, "play") for name in ("ada", "bob")}

    async def main() -> None:
        async with serving(tmp_path) as server:
            where = server.addresses.websocket
            async with connect(where, token=tokens["ada"]) as ada, connect(where, token=tokens["bob"]) as bob:
                ticket = ada.challenge("bob", game="kuhn")
                challenge = await anext(bob.challenges())
                assert challenge.opponent == "ada" and challenge.game == "kuhn"
                matches = await asyncio.gather(ticket.match(), challenge.accept().match())
                await asyncio.gather(*(play(match, random.Random(1)) for match in matches))
                assert matches[0].id == matches[1].id
                again = ada.challenge("bob", game="kuhn")
                (await anext(bob.challenges())).decline()
                with pytest.raises(SeatLost) as caught:
                    await again.match()
                assert caught.value.reason == "declined"

    asyncio.run(main())


def test_a_match_is_watched_from_the_beginning_and_to_its_end(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        async with (
            serving(tmp_path, fill_after_s=0.02) as server,
            connect(server.addresses.websocket) as arena,
        ):
            match = await arena.join(game="avalon")
            watching = asyncio.create_task(collect(arena, match.id))
            await play(match, random.Random(2))
            return await watching

    async def collect(arena: Any, match: str) -> list[Any]:
        return [message async for message in arena.watch(match)]

    told = asyncio.run(main())
    [path] = tmp_path.rglob("*.arena")
    shown = [entry[2] for message in told if isinstance(message, Frames) for entry in message.entries]
    assert isinstance(told[0], Snapshot)
    assert shown == [event.data for event in read_record(path).events() if event.audience is None]


def test_the_blocking_client_leaves_and_joins_again(tmp_path: Path) -> None:
    with (
        background_server(tmp_path, fill_after_s=0.02) as server,
        blocking.connect(server.addresses.websocket) as arena,
    ):
        left = arena.join(game="avalon")
        left.leave()
        with pytest.raises(SeatLost, match="left"):
            list(left)
        match = arena.join(game="kuhn")
        for turn in match:
            turn.pass_()
        assert match.ended in ("won", "lost")
