"""The whole server: players, spectators and its end, over real sockets on the loopback."""

import asyncio
from pathlib import Path

import pytest

from arena.config import ServerSettings, Settings
from arena.errors import ServeError, StoreError
from arena.serving import ArenaServer, anonymous_scopes, host_settings, rates, warnings
from clients.protocol.codec import JSON, MSGPACK
from clients.protocol.messages import Error, Frames, Over, Snapshot, Waiting
from replays.reader import read_record
from replays.verify import verify_file
from tests.arena.connected import Client, play_match, serving, token

pytestmark = pytest.mark.usefixtures("no_blocking")


@pytest.mark.parametrize("subprotocol", [MSGPACK, JSON])
def test_a_match_over_sockets_leaves_a_record_that_verifies_and_was_watched_whole(
    tmp_path: Path, subprotocol: str
) -> None:
    async def main() -> str:
        async with serving(tmp_path) as server:
            where = server.addresses.websocket
            async with Client(where) as first, Client(where, subprotocol=subprotocol) as watcher:
                first.connection.join(game="avalon", seats=5, name="first")
                await first.flush()
                await first.until(Waiting)
                others = [asyncio.create_task(play_one(where, seed, subprotocol)) for seed in range(4)]
                over = await first.until(Over)
                await asyncio.gather(*others)
                watcher.connection.watch(match=over.match, perspective="all")
                await watcher.flush()
                while True:
                    message = await watcher.until(Frames)
                    if message.over:
                        break
            rows = [row for m in watcher.messages if isinstance(m, Frames) for row in m.entries]
            (path,) = await asyncio.to_thread(lambda: [*tmp_path.rglob("*.arena")])
            record = await asyncio.to_thread(read_record, path)
            assert len(rows) == len(record.entries)
            assert isinstance(watcher.messages[-2], Snapshot | Frames)
            assert len({over.match}) == 1
            return str(path)

    async def play_one(where: str, seed: int, protocol: str) -> None:
        async with Client(where, seed=seed, subprotocol=protocol) as client:
            await client.play("avalon", seats=5, name=f"p{seed}")

    path = Path(asyncio.run(main()))
    assert verify_file(path).ok


def test_a_player_without_others_gets_bots_and_a_spectator_follows_live(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, fill_after_s=0.05) as server:
            where = server.addresses.websocket
            async with Client(where) as player, Client(where) as watcher:
                player.connection.join(game="werewolf", name="alone")
                await player.flush()
                from clients.protocol.messages import Seated

                seated = await player.until(Seated)
                watcher.connection.watch(match=seated.match)
                await watcher.flush()
                over, told = await asyncio.gather(player.until(Over), watch_to_end(watcher))
                assert over.match == seated.match
                kinds = {row[1] for message in told for row in message.entries}
                assert "chance" not in kinds and all(row[3] is None for m in told for row in m.entries)

    async def watch_to_end(client: Client) -> list[Frames]:
        while not (await client.until(Frames)).over:
            pass
        return [message for message in client.messages if isinstance(message, Frames)]

    asyncio.run(main())


def test_scopes_are_what_the_token_says(tmp_path: Path) -> None:
    play, watch = token(tmp_path, "alice", "play"), token(tmp_path, "eve", "watch")

    async def code(server: ArenaServer, shown: str, *, asks: str) -> str:
        async with Client(server.addresses.websocket, token=shown) as client:
            if asks == "join":
                client.connection.join(game="kuhn", name="me")
            else:
                client.connection.watch(match="abc", perspective=asks)
            await client.flush()
            message = await client.until(Waiting if asks == "join" and shown == play else Error)
            return message.code if isinstance(message, Error) else "waiting"

    async def main() -> None:
        async with serving(tmp_path, anonymous=()) as server:
            assert await code(server, "", asks="join") == "unauthorised"
            assert await code(server, watch, asks="join") == "forbidden"
            assert await code(server, play, asks="join") == "waiting"
            assert await code(server, play, asks="public") == "forbidden"
            assert await code(server, watch, asks="public") == "unknown_match"

    asyncio.run(main())


def test_a_home_has_one_server_and_what_a_failed_start_took_is_given_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            port = int(server.addresses.websocket.rpartition(":")[2])
            with pytest.raises(ServeError, match="another server uses it"):
                await ArenaServer(Settings(home=tmp_path)).start()
            other = ArenaServer(Settings(home=tmp_path / "b", server=ServerSettings(port=port, http_port=0)))
            with pytest.raises(ServeError, match="the port is in use"):
                await other.start()
        async with serving(tmp_path / "b"), serving(tmp_path):
            pass

    asyncio.run(main())


def test_a_home_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "arena.db").write_text("this is no database, but it is long enough to be read as one" * 20)

    async def main() -> None:
        with pytest.raises(ServeError, match=r"--home .*: cannot be written: "):
            await ArenaServer(Settings(home=file)).start()
        with pytest.raises(StoreError, match="no SQLite database"):
            await ArenaServer(Settings(home=broken)).start()

    asyncio.run(main())


def test_many_matches_leave_nothing_in_memory(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            for _ in range(5):
                await asyncio.gather(*(play_match(server) for _ in range(4)))
            while server.metrics.registry.get_sample_value("arena_connections"):  # noqa: ASYNC110
                await asyncio.sleep(0)
            kept = server.host.kept()
            assert {name: count for name, count in kept.items() if count and name != "tasks"} == {}
            assert (
                server.metrics.registry.get_sample_value("arena_matches_ended_total", {"how": "finished"})
                == 20
            )
            assert server.metrics.registry.get_sample_value("arena_turn_seconds_count") > 20

    asyncio.run(main())


def test_what_needs_no_token_depends_on_who_can_reach_the_server() -> None:
    assert anonymous_scopes(ServerSettings()) == ("play", "watch")
    assert anonymous_scopes(ServerSettings(host="0.0.0.0")) == ("watch",)
    assert anonymous_scopes(ServerSettings(anonymous=())) == ()


def test_a_server_that_is_reached_from_elsewhere_says_what_is_open() -> None:
    assert list(warnings(ServerSettings())) == []
    (line,) = warnings(ServerSettings(host="0.0.0.0"))
    assert "without TLS" in line and "--tls-cert" in line
    both = list(warnings(ServerSettings(host="::", anonymous=("play",))))
    assert len(both) == 2 and "without a token" in both[1]
    assert list(warnings(ServerSettings(host="0.0.0.0", tls_cert=Path("c.pem")))) == []


def test_settings_reach_the_host_and_the_gate() -> None:
    settings = Settings(server={"grace_s": 7, "fill_with": "random", "max_lobbies": 3, "joins_per_s": 2})
    host = host_settings(settings)
    assert (host.grace_s, host.fill_with, host.max_lobbies) == (7, "random", 3)
    assert host.retries == settings.match.retries
    assert (rates(settings.server)["join"].per_s, rates(settings.server)["join"].burst) == (2, 10)
