"""Faults at every place: lost connections, repeated and delayed frames, kills, and clients that do anything at all."""

import asyncio
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from arena import hosted
from arena.errors import StoreError
from arena.store import Store
from clients.protocol.client import HeldSeat
from clients.protocol.codec import JSON, MSGPACK, decode, encode
from clients.protocol.messages import ERROR_CODES, Act, Challenged, Error, Message, Seated, Waiting
from games.referee import Input
from tests.arena.frames import pelt
from tests.arena.hosting import House, Peer, scenario
from tests.arena.test_host import cup, failures


def frames_of_a_match(home: Path, game: str) -> int:
    """Return how many frames pass the first of two connections in a match without faults."""
    counted = [0]

    async def work(house: House) -> None:
        peers = [house.peer(seed=seed) for seed in range(2)]

        def count(way: str, message: Message) -> bool:
            counted[0] += 1
            return False

        peers[0].on_frame = count
        for peer in peers:
            peer.client.join(game=game)
        await house.settle()

    scenario(home, work)
    return counted[0]


def test_a_connection_lost_at_any_frame_costs_nothing(tmp_path: Path) -> None:
    total = frames_of_a_match(tmp_path / "count", "kuhn")
    assert total > 10
    for at in range(1, total + 1):

        async def work(house: House, at: int = at) -> None:
            peers = [house.peer(seed=seed) for seed in range(2)]
            left = [at]

            def lose(way: str, message: Message) -> bool:
                left[0] -= 1
                return left[0] == 0

            peers[0].on_frame = lose
            for peer in peers:
                peer.client.join(game="kuhn")
            await house.settle()
            if peers[0].session is None:
                peers[0].connect()
            await house.wait(11)
            assert peers[0].overs.keys() == peers[1].overs.keys()
            assert len(peers[0].overs) == 1, at
            assert peers[0].client._requests == {} and peers[0].client.seats == {}

        house = scenario(tmp_path / str(at), work)
        (record,) = house.check()
        assert not failures(record)
        for peer in house.peers:
            (match,) = peer.events
            seen = [event for event in record.events() if event.visible_to(peer.seats[match])]
            assert len(peer.events[match]) == len(seen)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("game", ["avalon", "werewolf"])
def test_connections_lost_again_and_again_cost_nothing(tmp_path: Path, game: str, seed: int) -> None:
    rng = random.Random(f"{game}/{seed}")

    async def work(house: House) -> None:
        peers = [house.peer(seed=index) for index in range(5)]
        for peer in peers:
            left = [rng.randrange(3, 30)]

            def lose(way: str, message: Message, left: list[int] = left) -> bool:
                left[0] -= 1
                if left[0] == 0:
                    left[0] = rng.randrange(12, 40)
                    return True
                return False

            peer.on_frame = lose
            peer.client.join(game=game)
        for _ in range(500):
            await house.wait(1)
            for peer in peers:
                if peer.session is None:
                    peer.connect()
            if all(peer.overs for peer in peers):
                break
        assert all(len(peer.overs) == 1 for peer in peers)

    house = scenario(tmp_path, work, deadline_s=1000.0)
    for record in house.check():
        assert not failures(record)


def test_delayed_and_repeated_actions_never_count_twice(tmp_path: Path) -> None:
    rng = random.Random(8)
    acts: Counter[str] = Counter()

    async def work(house: House) -> None:
        peers = [house.peer(seed=index, plays=True) for index in range(3)]
        held: list[tuple[Peer, bytes | str]] = []
        for peer in peers:
            receive = peer.connect

            def wrapped(peer: Peer = peer, connect: Any = receive) -> None:
                connect()
                session = peer.session
                assert session is not None
                take = session.receive

                def late(frame: bytes | str) -> None:
                    message = decode(frame, sender="client", subprotocol=peer.subprotocol)
                    take(frame)
                    if isinstance(message, Act):
                        acts["sent"] += 1
                        held.append((peer, frame))
                        for other, old in rng.sample(held, min(3, len(held))):
                            if other is peer:
                                acts["again"] += 1
                                take(old)

                session.receive = late  # type: ignore[method-assign]

            wrapped()
            peer.client.join(game="avalon", seats=5)
        await house.wait(20)
        assert all(len(peer.overs) == 1 for peer in peers)

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert acts["again"] > 50
    remote = {seat for seat, info in enumerate(record.header.seats) if info.spec.startswith("ws:")}
    inputs = [entry for entry in record.entries if isinstance(entry, Input) and entry.seat in remote]
    assert len(inputs) == acts["sent"] and not failures(record)


class Wild:
    """A client that does anything: mostly plays, now and then misbehaves."""

    def __init__(self, peer: Peer, rng: random.Random) -> None:
        self.peer = peer
        self.rng = rng

    def step(self) -> None:
        peer, rng = self.peer, self.rng
        if peer.session is None:
            if rng.random() < 0.4:
                peer.connect()
            return
        client = peer.client
        match rng.randrange(12):
            case 0:
                peer.drop()
            case 1 | 2:
                client.join(game=rng.choice(("kuhn", "kuhn", "avalon")), name=f"w{rng.randrange(3)}")
            case 3:
                client.challenge(opponent=f"w{rng.randrange(3)}", game="kuhn", name="me")
            case 4:
                for challenged in peer.all(Challenged)[-2:]:
                    client.respond(ticket=challenged.ticket, accept=rng.random() < 0.7)
            case 5:
                for waiting in peer.all(Waiting)[-1:]:
                    client.leave(ticket=waiting.ticket)
            case 6 if client.seats and rng.random() < 0.3:
                client.leave(match=rng.choice(list(client.seats)))
            case 7:
                matches = [seated.match for seated in peer.all(Seated)]
                if matches:
                    what = rng.choice(("public", "all", "seat"))
                    seat = rng.randrange(5) if what == "seat" else None
                    client.watch(match=rng.choice(matches), perspective=what, seat=seat)
            case 8:
                peer.plays = not peer.plays
            case 9:
                client.join(where="tournament", tournament="cup", name=f"t{rng.randrange(4)}")
            case _:
                for seat in list(client.seats.values()):
                    if seat.turn is not None and seat.answer is None:
                        peer.answer(seat.turn)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_clients_do_and_whenever_the_host_dies_every_record_verifies(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)

    async def work(house: House) -> None:
        house.host.add_tournament(cup(matches=4, players=2))
        wild = [Wild(house.peer(seed=i, subprotocol=rng.choice((MSGPACK, JSON))), rng) for i in range(6)]
        for step in range(250):
            for client in wild:
                client.step()
            await house.wait(rng.choice((0, 0, 1, 7)))
            if step % 60 == 59:
                await house.restart()
        for client in wild:
            client.peer.drop()
        await house.wait(500)
        assert house.host.kept()["tables"] == 0

    house = scenario(tmp_path, work, deadline_s=15.0, bank_s=5.0, seed=seed)
    records = house.check()
    assert len(records) > 10
    codes = {m.code for peer in house.peers for m in peer.raw if isinstance(m, Error)}
    assert codes <= ERROR_CODES.keys() - {"internal", "bad_frame"}


# Anything at all


@pytest.mark.parametrize("subprotocol", [MSGPACK, JSON])
def test_no_frame_whatever_raises_or_leaks(
    tmp_path: Path, subprotocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    answers: Counter[str] = Counter()

    async def work(house: House) -> None:
        await pelt(house, subprotocol=subprotocol, frames=4000, seed=11, answers=answers)

    house = scenario(tmp_path, work, deadline_s=5.0, bank_s=0.0, fill_after_s=1.0)
    house.check()
    assert answers["internal"] == 0, caplog.text
    assert {"bad_frame", "bad_message", "out_of_order", "too_large", "unknown_match"} <= answers.keys()
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


class AnyClient(RuleBasedStateMachine):
    """Random clients against one host: no rule may break it, and no seat may hear what it may not see."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.house: House | None = None

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.house = House(Path(self.folder.name), deadline_s=10.0, bank_s=2.0, grace_s=5.0, fill_after_s=3.0)
        self.loop.run_until_complete(self.house.start())
        self.house.host.add_tournament(cup(matches=2, players=2))
        for index in range(3):
            self.house.peer(seed=index, plays=index != 2, strict=False)

    def _settle(self) -> None:
        assert self.house is not None
        self.loop.run_until_complete(self.house.settle())

    def _peer(self, index: int) -> Peer:
        assert self.house is not None
        return self.house.peers[index]

    @rule(who=st.integers(0, 2), game=st.sampled_from(("kuhn", "avalon", "chess")), name=st.text(max_size=5))
    def join(self, who: int, game: str, name: str) -> None:
        self._peer(who).client.join(game=game, name=name)
        self._settle()

    @rule(who=st.integers(0, 2), name=st.sampled_from(("ann", "bob")))
    def register(self, who: int, name: str) -> None:
        self._peer(who).client.join(where="tournament", tournament="cup", name=name)
        self._settle()

    @rule(who=st.integers(0, 2))
    def lose(self, who: int) -> None:
        self._peer(who).drop()
        self._settle()

    @rule(who=st.integers(0, 2))
    def connect(self, who: int) -> None:
        self._peer(who).drop()
        self._peer(who).connect()
        self._settle()

    @rule(who=st.integers(0, 2), data=st.data())
    def act(self, who: int, data: st.DataObject) -> None:
        peer = self._peer(who)
        matches = [seated.match for seated in peer.all(Seated)] or ["none"]
        act = Act(
            match=data.draw(st.sampled_from(matches)),
            request=data.draw(st.integers(0, 4)),
            action=data.draw(st.one_of(st.sampled_from(("check", "bet", "fold")), st.text(max_size=4))),
        )
        if peer.session is not None:
            peer.session.receive(encode(act, subprotocol=peer.subprotocol))
        self._settle()

    @rule(who=st.integers(0, 2), frame=st.binary(max_size=40))
    def noise(self, who: int, frame: bytes) -> None:
        peer = self._peer(who)
        if peer.session is not None:
            peer.session.receive(frame)
        self._settle()

    @rule(who=st.integers(0, 2), thief=st.integers(0, 2))
    def take_over(self, who: int, thief: int) -> None:
        other = self._peer(thief)
        for seated in self._peer(who).all(Seated)[-1:]:
            if thief == who or seated.match in other.events:
                continue
            other.client.seats[seated.match] = HeldSeat(seated)
            other.drop()
            other.connect()
        self._settle()

    @rule(seconds=st.sampled_from((1.0, 4.0, 15.0)))
    def wait(self, seconds: float) -> None:
        assert self.house is not None
        self.loop.run_until_complete(self.house.wait(seconds))

    @rule()
    def kill(self) -> None:
        assert self.house is not None
        self.loop.run_until_complete(self.house.restart())
        self._settle()

    def teardown(self) -> None:
        if self.house is not None:
            for peer in self.house.peers:
                peer.drop()
            self.loop.run_until_complete(self.house.wait(300))
            assert self.house.host.kept()["tables"] == 0
            self.house.check()
            self.loop.run_until_complete(self.house.close())
            self.folder.cleanup()
        self.loop.close()


TestAnyClient = AnyClient.TestCase
TestAnyClient.settings = settings(
    max_examples=10,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_a_result_that_the_store_refuses_is_stored_with_the_next_or_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = hosted.finish_hosted
    refusals = [2]

    def full(store: Store, number: int, **what: Any) -> None:
        if refusals[0]:
            refusals[0] -= 1
            raise StoreError("arena.db: database or disk is full")
        finish(store, number, **what)

    monkeypatch.setattr(hosted, "finish_hosted", full)

    def stored() -> list[str]:
        with Store(tmp_path) as store:
            return [name for (name,) in store.rows("select match from matches order by match")]

    async def work(house: House) -> None:
        peers = [house.peer(seed=seed) for seed in range(2)]
        for count in (0, 0, 3):
            for peer in peers:
                peer.client.join(game="kuhn")
            await house.settle()
            assert len(stored()) == count
        refusals[0] = 1
        for peer in peers:
            peer.client.join(game="kuhn")
        await house.settle()
        assert len(stored()) == 3

    house = scenario(tmp_path, work)
    assert len(house.check()) == 4
    assert stored() == sorted(record.header.match for record in house.records())
