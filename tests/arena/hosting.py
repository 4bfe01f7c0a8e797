"""A server in memory for tests: a host on a clock that is set by hand, and clients without sockets."""

import asyncio
import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from arena.auth import Gate, create_token
from arena.desk import Desk
from arena.host import Host
from arena.hub import Hub
from arena.limits import Rate
from arena.session import Session
from arena.store import Store
from arena.table import HostSettings, record_path
from clients.errors import ProtocolError, Refused
from clients.protocol.client import ClientConnection
from clients.protocol.codec import MSGPACK, decode
from clients.protocol.messages import Events, Left, Message, Over, Seated, Turn
from games.spaces import space_from_data
from replays.reader import read_record
from replays.record import SUFFIX, Record
from replays.verify import verify

T = TypeVar("T")
QUIET_ROUNDS = 12


@dataclass(order=True)
class ManualTimer:
    at: float
    number: int
    callback: Callable[[], object] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[ManualTimer] = []
        self.number = 0

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> ManualTimer:
        self.number += 1
        timer = ManualTimer(self.now + delay, self.number, callback)
        heapq.heappush(self.timers, timer)
        return timer

    def pass_to(self, when: float) -> None:
        """Fire what is due up to `when`."""
        while self.timers and self.timers[0].at <= when:
            timer = heapq.heappop(self.timers)
            self.now = max(self.now, timer.at)
            if not timer.cancelled:
                timer.callback()
        self.now = max(self.now, when)


class InlineDesk(Desk):
    """A desk without a thread."""

    async def run(self, work: Callable[[Store], T]) -> T:
        return self._work(work)

    async def close(self) -> None:
        self._close()
        self._thread.shutdown(wait=False)


class Entropy:
    """Random bytes that are the same in every run."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def __call__(self, count: int) -> bytes:
        return self.rng.randbytes(count)


FREE = Rate(1e9, 1e9)
NO_RATES = {"message": FREE, "join": FREE, "auth": FREE, "connect": FREE, "request": FREE}


class House:
    """A home with its host, and the clients that are connected to it."""

    def __init__(
        self, home: Path, *, seed: int = 0, anonymous: Sequence[str] = ("play", "watch"), **how: Any
    ) -> None:
        self.home = home
        self.clock = ManualClock()
        self.entropy = Entropy(seed)
        self.anonymous = anonymous
        self.settings = HostSettings(**({"fill_after_s": 10.0} | how))
        self.peers: list[Peer] = []
        self.observed: list[tuple[str, float]] = []
        self.build()

    def build(self) -> None:
        self.gate = Gate(
            self.home, anonymous=self.anonymous, rates=NO_RATES, clock=self.clock.time, now=self.clock.time
        )
        self.hub = Hub(
            clock=self.clock.time,
            call_later=self.clock.call_later,
            find=self.find,
        )
        self.host = Host(
            self.home,
            clock=self.clock,
            hub=self.hub,
            settings=self.settings,
            desk=InlineDesk(self.home),
            entropy=self.entropy,
            observe=lambda name, value: self.observed.append((name, value)),
            wall=self.clock.time,
        )

    def find(self, match: str) -> Record | None:
        path = self.home / record_path(match)
        record = read_record(path) if ".." not in match and path.exists() else None
        return record if record is not None and record.footer is not None else None

    async def start(self) -> "House":
        await self.host.start()
        return self

    def token(self, name: str, *scopes: str) -> str:
        with Store(self.home) as store:
            return create_token(store, name, scopes=scopes or ("play", "watch"), life_s=None, now=1000.0)

    def peer(self, *, connect: bool = True, **how: Any) -> "Peer":
        peer = Peer(self, **how)
        self.peers.append(peer)
        if connect:
            peer.connect()
        return peer

    async def settle(self) -> None:
        """Let everything happen that can happen at this moment."""
        quiet = 0
        before: list[int] = []
        while quiet < QUIET_ROUNDS:
            moved = sum(peer.pump() for peer in list(self.peers))
            played = [table.live.entries for table in self.host.tables.values()]
            busy = self.host._desk.waiting > 0
            quiet = 0 if moved or busy or played != before else quiet + 1
            before = played
            await asyncio.sleep(0.001 if busy else 0)
        for peer in self.peers:
            assert peer.session is None or not peer.session.frames_to_send(), (
                "frames are due, nobody was woken"
            )

    async def wait(self, seconds: float, *, step_s: float | None = None) -> None:
        """Let time pass, and whatever it brings."""
        end = self.clock.now + seconds
        await self.settle()
        while self.clock.now < end:
            due = [timer.at for timer in self.clock.timers if not timer.cancelled]
            at = min([end, *due])
            if step_s is not None:
                at = min(at, self.clock.now + step_s)
            self.clock.pass_to(at)
            await self.settle()

    async def kill(self) -> None:
        """End the host as a kill does: nothing more is written and nobody is told."""
        for peer in self.peers:
            peer.session = None
        self.host.stopping = True
        tasks = list(self.host._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.host._desk.close()
        self.gate.close()
        self.clock.timers.clear()

    async def restart(self) -> None:
        """Kill the host and start another on the same home; every client connects again."""
        await self.kill()
        self.build()
        await self.host.start()
        for peer in self.peers:
            if peer.wanted:
                peer.connect()

    async def close(self) -> None:
        for peer in self.peers:
            peer.drop()
        await self.host.stop()
        self.gate.close()

    def records(self) -> list[Record]:
        return [read_record(path) for path in sorted((self.home / "replays" / "live").rglob(f"*{SUFFIX}"))]

    def check(self) -> list[Record]:
        """Assert that every record is whole and true, and that every frame told its seat the truth and no more."""
        records = {record.header.match: record for record in self.records()}
        for record in records.values():
            verdict = verify(record)
            assert verdict.ok, verdict
        self.check_frames(records)
        return list(records.values())

    def check_frames(self, records: dict[str, Record]) -> None:
        for peer in self.peers:
            for match, seat, events in peer.heard:
                seen = [[e.kind, _plain(e.data)] for e in records[match].events() if e.visible_to(seat)]
                told = seen[events.first : events.first + len(events.events)]
                assert [list(event) for event in events.events] == told, (match, seat)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


class Peer:
    """A client in memory. `events` holds, by match, what its application was handed."""

    def __init__(
        self,
        house: House,
        *,
        token: str = "",
        subprotocol: str = MSGPACK,
        capabilities: tuple[str, ...] = (),
        seed: int = 0,
        plays: bool = True,
        strict: bool = True,
    ) -> None:
        self.house = house
        self.client = ClientConnection(
            subprotocol=subprotocol, token=token, client="test", capabilities=capabilities
        )
        self.client.nonce = random.Random(f"{seed}/{len(house.peers)}").randbytes(12).hex()
        self.subprotocol = subprotocol
        self.session: Session | None = None
        self.rng = random.Random(seed)
        self.plays = plays
        self.strict = strict
        """Whether the server never says what makes the client close the socket."""
        self.wanted = self.woken = False
        self.got: list[Message] = []
        self.raw: list[Message] = []
        self.heard: list[tuple[str, int, Events]] = []
        self.seats: dict[str, int] = {}
        self.events: dict[str, list[Any]] = {}
        self.overs: dict[str, Over] = {}
        self.refused: list[Refused] = []
        self.closed: list[tuple[int, str]] = []
        self.on_frame: Callable[[str, Message], bool] | None = None
        """Called with `in` or `out` and each message; True loses the connection before it arrives."""

    def connect(self) -> None:
        self.wanted = True
        self.session = Session(
            self.house.host,
            subprotocol=self.subprotocol,
            address="10.0.0.1",
            gate=self.house.gate,
            wake=self._wake,
            clock=self.house.clock.time,
        )
        self.woken = False
        self.client.start()

    def _wake(self) -> None:
        self.woken = True

    def drop(self) -> None:
        """Lose the connection; the client does not know yet what was under way."""
        session, self.session = self.session, None
        if session is not None:
            session.lost()

    def pump(self) -> int:
        """Carry what is due both ways; return how many frames."""
        moved = 0
        for frame in self.client.frames_to_send():
            moved += 1
            if self.session is None:
                continue
            if self.on_frame is not None and self.on_frame(
                "out", decode(frame, sender="client", subprotocol=self.subprotocol)
            ):
                self.drop()
                return moved
            self.session.receive(frame)
        session = self.session
        if session is None or not self.woken:
            return moved
        self.woken = False
        while frames := session.frames_to_send():
            for frame in frames:
                moved += 1
                if not self._hear(frame):
                    return moved
        if session.closing is not None:
            self.closed.append(session.closing)
            self.drop()
        return moved

    def _hear(self, frame: bytes | str) -> bool:
        message = decode(frame, sender="server", subprotocol=self.subprotocol)
        if self.on_frame is not None and self.on_frame("in", message):
            self.drop()
            return False
        self.raw.append(message)
        if isinstance(message, Seated):
            self.seats[message.match] = message.seat
        elif isinstance(message, Events):
            self.heard.append((message.match, self.seats[message.match], message))
        try:
            found = self.client.receive(frame)
        except Refused as refused:
            self.refused.append(refused)
            self.drop()
            return False
        except ProtocolError:
            self.drop()
            if self.strict:
                raise
            return False
        for item in found:
            self._note(item)
        return True

    def _note(self, message: Message) -> None:
        self.got.append(message)
        if isinstance(message, Events):
            known = self.events.setdefault(message.match, [])
            assert message.first == len(known), "an event was lost or came twice"
            known += message.events
        elif isinstance(message, Over):
            assert message.match not in self.overs
            self.overs[message.match] = message
        elif isinstance(message, Turn) and self.plays:
            self.answer(message)

    def answer(self, turn: Turn) -> None:
        """Answer a turn with a random legal action."""
        action = space_from_data(turn.space).sample(self.rng)
        self.client.act(turn.match, request=turn.request, action=action, thought="hm")

    def forget(self) -> None:
        """Forget what was heard, so that a test can go on for long."""
        for heard in (self.got, self.raw, self.heard, self.seats, self.events, self.overs):
            heard.clear()

    def last(self, kind: type[T]) -> T:
        return [message for message in self.got if isinstance(message, kind)][-1]

    def all(self, kind: type[T]) -> list[T]:
        return [message for message in self.got if isinstance(message, kind)]

    def codes(self) -> list[str]:
        return [message.code for message in self.got if message.type == "error"]  # type: ignore[attr-defined]

    def lefts(self) -> list[str]:
        return [message.reason for message in self.all(Left)]


def scenario(home: Path, work: Callable[[House], Any], **how: Any) -> House:
    """Run a coroutine with a house; everything is checked afterwards."""

    async def run() -> House:
        house = await House(home, **how).start()
        try:
            await work(house)
            await house.settle()
        finally:
            await house.close()
        return house

    return asyncio.run(run())
