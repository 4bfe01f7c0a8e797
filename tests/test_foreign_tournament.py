"""A tournament over websockets among four foreign processes, followed live: what the whole server is for.

The four are the Python example for tournaments, `arena join` with a scripted player, the JavaScript example on
Node, and a Python program that loses its connection again and again. They share nothing with the server but the
socket. Two spectators follow: one speaks the bare protocol, the other is the terminal application.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from clients.spectator.app import SpectatorApp
from clients.spectator.live import LiveSource
from clients.spectator.screens.match import MatchScreen
from replays.reader import read_record
from replays.record import Record
from replays.verify import verify_file
from tests.arena.server_process import ROOT, ServerProcess
from tests.clients.fake_server import Cutter
from tests.clients.spectator.showing import SIZE, opened, screen_text, until

NODE = shutil.which("node")
MATCHES = 4
CUP = f'name = "cup"\ngame = "avalon"\nmatches = {MATCHES}\nplayers = 4\nseed = 7\nstarts_in_s = 3600\n'
PLAYERS = {"plain", "joined", "node", "flaky"}
PYTHON = sys.executable


class Program:
    """A foreign process, and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line(self) -> str:
        """Return the next line, empty at the end."""
        assert self.process.stdout is not None
        line = (await self.process.stdout.readline()).decode().strip()
        self.lines.append(line)
        return line

    def go(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    async def end(self) -> str:
        """Wait for its end and return all it printed; it must have ended well."""
        out, err = await self.process.communicate()
        assert self.process.returncode == 0, err.decode()
        return "\n".join([*self.lines, out.decode()])


@asynccontextmanager
async def program(*words: object) -> AsyncIterator[Program]:
    """Run a process until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *map(str, words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Spectator:
    """Watches over the bare protocol, in JSON: no code of ours but what is said here."""

    def __init__(self, url: str, match: str) -> None:
        self.url, self.match = url, match
        self.live = asyncio.Event()
        self.rows: list[Any] = []
        self.snapshots = 0

    async def watch(self) -> None:
        """Watch to the end, over as many connections as it takes."""
        over = False
        while not over:
            try:
                over = await self._session()
            except (OSError, WebSocketException):
                await asyncio.sleep(0.05)

    async def _session(self) -> bool:
        async with connect(self.url, subprotocols=["arena.1.json"]) as socket:
            await socket.send(json.dumps({"type": "hello", "versions": [1]}))
            await socket.send(json.dumps({"type": "watch", "id": "w", "match": self.match}))
            async for frame in socket:
                message = json.loads(frame)
                assert message["type"] in ("welcome", "snapshot", "frames"), message
                if message["type"] == "snapshot":
                    assert message["perspective"] == "public"
                    self.snapshots += 1
                    self.rows.clear()
                    if message["live"]:
                        self.live.set()
                elif message["type"] == "frames":
                    assert message["first"] == len(self.rows)
                    self.rows += message["entries"]
                    if message["over"]:
                        return True
        return False


async def follow(url: str, match: str, ready: asyncio.Event) -> str:
    """Follow a match in the terminal application to its end; return what then stands on the screen."""
    source = LiveSource(url, match=match)
    app = SpectatorApp({"match": lambda: MatchScreen(source)})
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        await until(pilot, lambda: "● LIVE" in screen_text(pilot))
        ready.set()
        while not screen.over:
            await pilot.pause(0.02)
        await pilot.press("end")
        await until(pilot, lambda: "■ end" in screen_text(pilot))
        assert screen.timeline is not None and screen.position == len(screen.timeline)
        return screen_text(pilot)


@pytest.mark.slow
@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "killed"])
def test_four_foreign_processes_play_a_tournament_that_is_followed_live(tmp_path: Path, killed: bool) -> None:
    (tmp_path / "cup.toml").write_text(CUP)
    home = tmp_path / "home"
    # Nobody's time is over while a process that plays or watches is still being started.
    patient = ("--deadline-s", "3600", "--grace-s", "3600")
    server = ServerProcess(home, "--tournament", tmp_path / "cup.toml", *patient)
    spectators: list[Spectator] = []
    shown: list[str] = []
    output: dict[str, str] = {}

    async def restart(cutter: Cutter) -> None:
        cutter.refuse = True
        await server.kill()
        await server.start()
        cutter.upstream, cutter.refuse = server.port, False

    async def main() -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(server.running())
            cutter = await stack.enter_async_context(Cutter(server.port).run())
            url = f"ws://127.0.0.1:{cutter.port}"
            commands = {
                "plain": [PYTHON, ROOT / "examples/tournament_agent.py", url, "cup", "plain"],
                "joined": [
                    *(PYTHON, "-m", "evoke_arena", "join", url, "--player", "scripted"),
                    *("--name", "joined", "--tournament", "cup", "--seed", "2", "--json"),
                ],
                "node": [NODE, ROOT / "examples/javascript/agent.mjs", url, "tournament:cup", "node"],
                "flaky": [PYTHON, ROOT / "tests/foreign/flaky.py", url, "cup", "flaky", "3"],
            }
            programs = {
                name: await stack.enter_async_context(program(*words)) for name, words in commands.items()
            }
            async with asyncio.TaskGroup() as group:
                others = {
                    name: group.create_task(programs[name].end()) for name in ("joined", "node", "plain")
                }
                flaky = programs["flaky"]
                while line := await flaky.line():
                    what, match, *_ = line.split()
                    if what != "seated":
                        continue
                    spectators.append(spectator := Spectator(url, match))
                    group.create_task(spectator.watch())
                    if len(spectators) == 2:
                        ready = asyncio.Event()
                        screen = group.create_task(follow(url, match, ready))
                        await ready.wait()
                        if killed:
                            await restart(cutter)
                    await spectator.live.wait()
                    flaky.go()
                output["flaky"] = await flaky.end()
            output.update({name: task.result() for name, task in others.items()})
            shown.append(screen.result())
            assert await server.stop() == 0

    asyncio.run(main())

    paths = sorted(home.rglob("*.arena"))
    assert len(paths) == MATCHES and all(verify_file(path).ok for path in paths)
    records = {record.header.match: record for record in map(read_record, paths)}
    assert [spectator.match for spectator in spectators] == [f"t1-{number}" for number in range(MATCHES)]
    for spectator in spectators:
        check(records[spectator.match], spectator)
    assert "■ end" in shown[0]
    assert killed == any(spectator.snapshots > 1 for spectator in spectators)

    joined = json.loads(output["joined"])
    assert len(joined["matches"]) == MATCHES and not any(row["error"] for row in joined["matches"])
    assert output["node"].count(" as ") == MATCHES
    assert output["plain"].count(" at seat ") == output["flaky"].count("over ") == MATCHES
    assert int(output["flaky"].split()[-1]) >= MATCHES

    database = Database(home / "arena.db")
    assert [row["status"] for row in database.query("select status from tournaments")] == ["finished"]
    assert [row["status"] for row in database.query("select status from matches")] == ["finished"] * MATCHES
    rated = database.query("select player, count(*) as seats from seats group by player")
    assert {row["player"]: row["seats"] for row in rated} == dict.fromkeys((*PLAYERS, "scripted"), MATCHES)


def check(record: Record, spectator: Spectator) -> None:
    """Assert that a match was played fairly by all, and that its spectator saw all that is public and no more."""
    assert record.footer is not None
    assert {seat.name for seat in record.header.seats} == PLAYERS | {"scripted"}
    assert {seat.spec for seat in record.header.seats if seat.name in PLAYERS} == {
        f"ws:{name}" for name in PLAYERS
    }
    spoilt = ("timeout", "disconnect", "forfeit", "forced", "illegal", "unparsed", "error")
    assert not any(record.footer.counts.get(name) for name in spoilt), record.footer.counts
    public = [[event.kind, event.data] for event in record.events() if event.audience is None]
    assert [row[1:3] for row in spectator.rows] == json.loads(json.dumps(public))
