"""Faults by a schedule: a real server, agents of the client library, and a fault at moments that a seed has drawn.

A moment is a step of an agent (asking for a seat, getting it, before an answer, after it is sent and before it is
taken, the end of a match), counted over all agents: so faults fall by what has happened and never by the clock.
What each seat and each spectator was told, message by message, is kept and compared with the records.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sqlite_utils import Database

from clients.errors import Refused, SeatLost
from clients.match import Match
from clients.protocol.client import ClientConnection
from clients.protocol.codec import decode
from clients.protocol.messages import Events, Message, Seated, Snapshot
from clients.sdk import Arena, connect
from replays.reader import read_record
from replays.record import SUFFIX, Record
from replays.verify import verify
from tests.arena.server_process import ServerProcess
from tests.clients.fake_server import Cutter

Fault = Literal["kill", "cut", "cut all", "full"]
GAMES = (("kuhn", 2), ("avalon", 5), ("werewolf", 6))
FAILURES_UNTIL_ROOM = 12
"""Seats lost to a full disk until there is room again."""


class Tapped(ClientConnection):
    """A client's side of the protocol that keeps every batch of events as it came, repeated ones too."""

    heard: list[tuple[str, Events]]
    seat_of: dict[str, int]

    def receive(self, frame: bytes | str) -> list[Message]:
        message = decode(frame, sender="server", subprotocol=self.subprotocol)
        if isinstance(message, Seated):
            self.seat_of[message.match] = message.seat
        elif isinstance(message, Events):
            self.heard.append((message.match, message))
        return super().receive(frame)


def tapped(url: str) -> Arena:
    """Return a connection whose wire is listened to."""
    arena = connect(url, reconnect_s=120)
    connection = arena._connection = arena._link._connection = Tapped(client="a test")
    connection.heard, connection.seat_of = [], {}
    return arena


@dataclass
class Seen:
    """What a spectator saw of a match: its rows since the last snapshot, and how often it began anew."""

    rows: list[Any] = field(default_factory=list)
    snapshots: int = 0
    over: bool = False
    refused: str = ""


class Sweep:
    """One run: `agents` players, each of which plays `matches` matches to their end, among faults.

    Args:
        home: of the server; made if it is not there.
        seed: of the players, the games, and which connection is cut.
        faults: what happens at which moment.
        agents, matches: how many.
    """

    def __init__(
        self, home: Path, *, seed: int, faults: Mapping[int, Fault], agents: int = 4, matches: int = 3
    ) -> None:
        self.seed = seed
        self.faults = dict(faults)
        self.agents, self.matches = agents, matches
        self.rng = random.Random(f"cuts {seed}")
        self.server = ServerProcess(home, "--fill-after-s", "0.1", "--grace-s", "120", "--deadline-s", "300")
        self.done: Counter[str] = Counter()
        """Faults that happened, by kind."""
        self.named: Counter[str] = Counter()
        """Seats that came to nothing, by the reason told."""
        self.played: list[Match] = []
        self.taps: list[Tapped] = []
        self.seen: dict[str, Seen] = {}
        self.moments = 0
        self._turn = asyncio.Lock()
        self._watching: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Play everything, then stop the server as one should."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.server.running())
            self.cutter = await stack.enter_async_context(Cutter(self.server.port).run())
            url = f"ws://127.0.0.1:{self.cutter.port}"
            watcher = await stack.enter_async_context(connect(url, reconnect_s=120))
            # A first connection is not tried again by itself, so all are there before the first fault.
            arenas = [await stack.enter_async_context(self._tapped(url)) for _ in range(self.agents)]
            async with asyncio.TaskGroup() as group:
                for number, arena in enumerate(arenas):
                    group.create_task(self._agent(arena, number, watcher))
            await asyncio.gather(*self._watching)
            assert await self.server.stop() == 0, self.server.log.read_text()

    def _tapped(self, url: str) -> Arena:
        arena = tapped(url)
        assert isinstance(arena._connection, Tapped)
        self.taps.append(arena._connection)
        return arena

    async def _agent(self, arena: Arena, number: int, watcher: Arena) -> None:
        rng = random.Random(f"{self.seed}/{number}")
        played = 0
        while played < self.matches:
            game, seats = rng.choice(GAMES)
            await self._moment()
            try:
                match = await arena.join(game=game, seats=seats, name=f"p{number}")
                if match.id not in self.seen:
                    self.seen[match.id] = Seen()
                    self._watching.append(asyncio.create_task(self._watch(watcher, match.id)))
                await self._moment()
                await self._play(match, rng)
            except SeatLost as lost:
                self.named[lost.reason] += 1
                if self.named.total() == FAILURES_UNTIL_ROOM and self.done["full"]:
                    self.server.make_room()
                continue
            self.played.append(match)
            played += 1
            await self._moment()

    async def _play(self, match: Match, rng: random.Random) -> None:
        async for turn in match:
            await self._moment()
            answer = asyncio.create_task(turn.play(turn.space.sample(rng), thought="hm"))
            for _ in range(rng.randrange(6)):
                await asyncio.sleep(0)
            await self._moment()
            assert await answer == "taken"
        await match.result()

    async def _watch(self, watcher: Arena, match: str) -> None:
        seen = self.seen[match]
        try:
            async for message in watcher.watch(match):
                if isinstance(message, Snapshot):
                    seen.rows.clear()
                    seen.snapshots += 1
                else:
                    assert message.first == len(seen.rows), "a spectator missed an event or had one twice"
                    seen.rows += message.entries
                    seen.over = seen.over or message.over
        except Refused as refused:
            seen.refused = refused.wire

    async def _moment(self) -> None:
        self.moments += 1
        fault = self.faults.pop(self.moments, None)
        if fault is None:
            return
        async with self._turn:
            self.done[fault] += 1
            match fault:
                case "kill":
                    self.cutter.refuse = True
                    await self.server.kill()
                    await self.server.start()
                    self.cutter.upstream = self.server.port
                    self.cutter.refuse = False
                case "cut":
                    self.cutter.cut_one(self.rng)
                case "cut all":
                    self.cutter.cut()
                case "full":
                    self.server.fill_disk()

    # What must hold afterwards

    def check(self) -> dict[str, Record]:
        """Assert that nothing was lost, doubled or leaked; return the records by match."""
        home = self.server.home
        records = {
            record.header.match: record for record in map(read_record, sorted(home.rglob(f"*{SUFFIX}")))
        }
        rows = {row["match"]: row for row in Database(home / "arena.db").query("select * from matches")}
        assert len(rows) == Database(home / "arena.db")["matches"].count
        assert rows.keys() == records.keys(), rows.keys() ^ records.keys()
        hosted = list(Database(home / "arena.db").query("select match, status from hosted"))
        assert {row["match"] for row in hosted} == records.keys()
        assert all(row["status"] == "finished" for row in hosted), "a match has no end in the store"
        for match, record in records.items():
            if record.footer is None:
                assert rows[match]["status"] == "failed" and "cannot write the record" in rows[match]["error"]
            else:
                verdict = verify(record)
                assert verdict.ok, verdict
                assert rows[match]["status"] == "finished"
        for seat in self.played:
            record = records[seat.id]
            assert seat.over is not None and record.footer is not None
            assert seat.over.ended == list(record.footer.ended)
            told = [(event.kind, event.data) for event in seat.events]
            assert told == visible(record, seat.seat), (
                "a seat missed an event, had one twice, or saw too much"
            )
        for tap in self.taps:
            for match, events in tap.heard:
                allowed = visible(records[match], tap.seat_of[match])
                assert [tuple(event[:2]) for event in events.events] == (
                    allowed[events.first : events.first + len(events.events)]
                )
        for match, seen in self.seen.items():
            public = [(event.kind, event.data) for event in records[match].events() if event.audience is None]
            shown = [(row[1], row[2]) for row in seen.rows]
            if records[match].footer is None:
                # Who asks, or comes back, after the failure is told that there is no such match.
                assert seen.refused in ("internal", "unknown_match"), seen.refused
                assert shown == public[: len(shown)]
            else:
                assert seen.over and shown == public
        return records


def visible(record: Record, seat: int) -> list[tuple[str, Any]]:
    """Return what a seat may be told."""
    return [(event.kind, event.data) for event in record.events() if event.visible_to(seat)]


def drawn(seed: int, *, faults: int, until: int, kinds: tuple[Fault, ...]) -> dict[int, Fault]:
    """Return so many faults at different moments, the last before `until`."""
    rng = random.Random(f"faults {seed}")
    return {moment: rng.choice(kinds) for moment in rng.sample(range(2, until), faults)}
