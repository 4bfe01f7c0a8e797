"""Hosting: who waits and is released, what is kept, tournaments, and what a kill leaves."""

import asyncio
import gc
import random
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from arena.contest import OnlineTournament
from arena.desk import Desk
from arena.errors import StoreError, TournamentError
from arena.host import Host
from arena.hub import Hub
from arena.live import LiveMatch, RemoteAgent
from arena.report import points
from arena.store import FAILED, FINISHED, Store
from arena.swiss import Swiss
from arena.table import HostSettings
from arena.watcher import Watcher
from clients.protocol.codec import MSGPACK, decode
from clients.protocol.messages import Acted, Challenged, Error, Frames, Left, Seated, Stale, Turn, Waiting
from games.base import Event
from games.referee import Entry, Input
from games.registry import load_game
from replays.errors import RecordWriteFailed
from replays.reader import read_record
from replays.record import Record
from replays.verify import verify
from replays.writer import RecordWriter
from tests.arena.hosting import House, Peer, scenario


def failures(record: Record) -> list[str]:
    return [entry.failure for entry in record.entries if isinstance(entry, Input) and entry.failure]


# Lobbies and named matches


def test_a_lobby_fills_with_bots_after_its_wait(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        peer = house.peer()
        peer.client.join(game="avalon", seats=5, name="ann")
        await house.settle()
        waiting = peer.last(Waiting)
        assert (waiting.filled, waiting.seats, waiting.starts_in_s) == (1, 5, 10)
        assert house.host.lobbies()[0]["names"] == ["ann"]
        await house.wait(9.9)
        assert peer.all(Seated) == []
        await house.wait(0.2)
        assert sorted(peer.last(Seated).names) == [
            "ann",
            "scripted",
            "scripted (2)",
            "scripted (3)",
            "scripted (4)",
        ]
        assert len(peer.overs) == 1

    house = scenario(tmp_path, work)
    house.check()
    with Store(tmp_path) as store:
        (match,) = store.rated_matches()
        assert sorted(seat.player for seat in match.seats) == ["ann", *["scripted"] * 4]


def test_a_full_lobby_starts_at_once_and_others_do_not_meet(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, three = house.peer(), house.peer(), house.peer()
        one.client.join(game="kuhn")
        two.client.join(game="werewolf")
        await house.settle()
        three.client.join(game="kuhn")
        await house.settle()
        assert one.overs.keys() == three.overs.keys() != set()
        assert two.all(Seated) == []

    scenario(tmp_path, work).check()


def test_a_waiting_place_is_free_when_its_connection_is_lost_or_it_is_given_up(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(), house.peer()
        one.client.join(game="avalon")
        two.client.join(game="avalon")
        await house.settle()
        assert one.last(Waiting).filled == 2
        two.drop()
        await house.settle()
        assert one.last(Waiting).filled == 1
        one.client.leave(ticket=one.last(Waiting).ticket)
        await house.settle()
        assert one.lefts() == ["left", "left"]  # of the request to join, and of the one to leave
        assert house.host.lobbies() == []
        await house.wait(20)
        assert house.records() == []

    scenario(tmp_path, work)


def test_a_named_match_is_for_who_knows_its_name(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, three = house.peer(), house.peer(), house.peer()
        one.client.join(where="match", match="friends", game="kuhn")
        await house.settle()
        assert house.host.lobbies() == []
        three.client.join(where="match", match="friends", game="avalon")
        await house.settle()
        assert three.codes() == ["bad_setup"]
        await house.wait(100)
        assert one.all(Seated) == []
        two.client.join(where="match", match="friends")
        await house.settle()
        assert one.overs.keys() == two.overs.keys() != set()

    scenario(tmp_path, work).check()


def test_matches_are_limited(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one = house.peer(plays=False)
        one.client.join(game="kuhn")
        await house.wait(11)
        assert len(one.all(Seated)) == 1
        two = house.peer()
        two.client.join(game="kuhn")
        await house.settle()
        assert two.codes() == ["limit"]

    scenario(tmp_path, work, max_matches=1)


def test_places_and_seats_of_a_connection_are_limited(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one = house.peer(plays=False)
        for _ in range(4):
            one.client.join(game="kuhn")
        await house.settle()
        assert one.codes() == ["limit"]

    scenario(tmp_path, work, max_held=3)


# Challenges


async def duel(house: House) -> tuple[Peer, Peer, str]:
    one, two = house.peer(token=house.token("ann")), house.peer(token=house.token("bob"))
    await house.settle()
    one.client.challenge(opponent="bob", game="kuhn")
    await house.settle()
    challenged = two.last(Challenged)
    assert (challenged.opponent, challenged.game) == ("ann", "kuhn")
    assert one.last(Waiting).ticket == challenged.ticket
    return one, two, challenged.ticket


def test_an_accepted_challenge_is_played(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, ticket = await duel(house)
        two.client.respond(ticket=ticket, accept=True)
        await house.settle()
        assert sorted(one.last(Seated).names) == ["ann", "bob"]
        assert one.overs.keys() == two.overs.keys() != set()

    scenario(tmp_path, work).check()


@pytest.mark.parametrize(
    "how, challenger, opponent",
    [
        ("declined", ["declined"], ["declined"]),
        ("expired", ["expired"], ["expired"]),
        ("withdrawn", ["left", "left"], ["withdrawn"]),
        ("challenger lost", [], ["withdrawn"]),
        ("opponent lost", ["unavailable"], []),
    ],
)
def test_however_a_challenge_ends_everyone_is_released(
    tmp_path: Path, how: str, challenger: list[str], opponent: list[str]
) -> None:
    async def work(house: House) -> None:
        one, two, ticket = await duel(house)
        match how:
            case "declined":
                two.client.respond(ticket=ticket, accept=False)
            case "expired":
                await house.wait(61)
            case "withdrawn":
                one.client.leave(ticket=ticket)
            case "challenger lost":
                one.drop()
            case "opponent lost":
                two.drop()
        await house.settle()
        assert (one.lefts(), two.lefts()) == (challenger, opponent)
        assert house.host.kept()["challenges"] == 0
        if two.session is not None:
            two.client.respond(ticket=ticket, accept=True)
            await house.settle()
            assert two.codes() == ["unknown_ticket"]
        assert house.records() == []

    scenario(tmp_path, work)


def test_a_challenge_to_nobody_is_answered_and_a_waiting_player_leaves_its_lobby(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(), house.peer()
        one.client.challenge(opponent="nobody", game="kuhn")
        await house.settle()
        assert one.lefts() == ["unavailable"]
        two.client.join(game="avalon", name="bob", agent="two 1.0")
        await house.settle()
        one.client.challenge(opponent="bob", game="kuhn", name="ann")
        await house.settle()
        two.client.respond(ticket=two.last(Challenged).ticket, accept=True)
        await house.settle()
        assert two.lefts() == ["withdrawn"] and house.host.lobbies() == []
        assert sorted(one.last(Seated).names) == ["ann", "bob"]

    (record,) = scenario(tmp_path, work).check()
    assert {info.agent for info in record.header.seats} == {"", "two 1.0"}


# A dead agent costs its deadline, a lost one its seat; never the match


def test_a_dead_agent_costs_its_deadlines(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        alive, dead = house.peer(), house.peer(plays=False)
        for peer in (alive, dead):
            peer.client.join(game="avalon")
        await house.wait(11)
        await house.wait(5000)
        assert alive.overs and dead.overs
        assert dead.all(Stale) == []

    house = scenario(tmp_path, work, deadline_s=20.0, bank_s=0.0)
    (record,) = house.check()
    assert set(failures(record)) == {"timeout"}
    assert record.footer is not None and "forfeit" not in record.footer.ended


def test_after_the_grace_the_lost_seat_forfeits_and_no_other(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        alive, lost = house.peer(), house.peer()
        for peer in (alive, lost):
            peer.client.join(game="avalon", seats=5)
        await house.wait(9)
        alive.plays = lost.plays = False
        await house.wait(2)
        lost.drop()
        await house.wait(29)
        assert house.host.kept()["tables"] == 1
        await house.wait(2)
        alive.plays = True
        if alive.client.seats:
            for seat in list(alive.client.seats.values()):
                if seat.turn is not None:
                    alive.answer(seat.turn)
        await house.wait(1000)
        assert alive.overs

    house = scenario(tmp_path, work, deadline_s=100.0)
    (record,) = house.check()
    assert record.footer is not None
    ended = dict(zip((info.spec for info in record.header.seats), record.footer.ended, strict=True))
    lost = house.peers[1].seats[record.header.match]
    assert [seat for seat, end in enumerate(record.footer.ended) if end == "forfeit"] == [lost], ended
    assert failures(record).count("forfeit") == 1


def test_leaving_a_seat_forfeits_it_at_its_next_turn(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(plays=False), house.peer()
        for peer in (one, two):
            peer.client.join(game="kuhn")
        await house.settle()
        one.client.leave(match=one.last(Seated).match)
        await house.settle()
        assert one.lefts() == ["left"] and one.client.seats == {}
        assert two.overs

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert record.footer is not None and record.footer.ended.count("forfeit") == 1
    with Store(tmp_path) as store:
        (match,) = store.rated_matches()
        assert not match.rated


def test_a_full_disk_ends_the_match_by_name_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RecordWriter.write

    def full(self: RecordWriter, entries: Iterable[Entry]) -> None:
        entries = list(entries)
        if any(isinstance(entry, Input) for entry in entries):
            raise RecordWriteFailed(f"{self.path}: cannot write the record: No space left on device")
        write(self, entries)

    monkeypatch.setattr(RecordWriter, "write", full)

    async def work(house: House) -> None:
        peers = [house.peer(), house.peer()]
        for peer in peers:
            peer.client.join(game="kuhn")
        await house.settle()
        for peer in peers:
            assert peer.codes() == ["internal"] and peer.lefts() == ["unavailable"]
            assert peer.client.seats == {}
        assert house.host.kept() | {"clients": 0} == dict.fromkeys(house.host.kept(), 0)
        assert ("match_failed", 1) in house.observed

    scenario(tmp_path, work)
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        ((_, _, error),) = store.failures(row.id)
        assert "No space left" in error


def test_a_match_whose_record_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / "replays" / "live").write_text("in the way")

    async def work(house: House) -> None:
        peer = house.peer()
        peer.client.join(game="kuhn")
        await house.wait(11)
        assert peer.lefts() == ["unavailable"] and peer.client._requests == {}

    scenario(tmp_path, work)


# Clocks


def frames_of(watcher: Watcher) -> list[Frames]:
    found = []
    while frames := watcher.frames():
        found += [decode(frame, sender="server", subprotocol=MSGPACK) for frame in frames]
    return [message for message in found if isinstance(message, Frames)]


@pytest.mark.parametrize("seed", range(3))
def test_clocks_tell_the_public_nothing_of_a_night_and_of_nobodys_bank(tmp_path: Path, seed: int) -> None:
    game = load_game("werewolf")

    async def work(house: House) -> None:
        peers = [house.peer(plays=False, seed=index) for index in range(8)]
        for peer in peers:
            peer.client.join(game="werewolf", seats=8)
        await house.settle()
        (match,) = house.host.tables
        table = house.host.tables[match]
        state = table.live.referee.state
        at = {peer.seats[match]: peer for peer in peers}
        public = house.hub.watch(match)
        own = {seat: house.hub.watch(match, perspective="seat", seat=seat, may_see={seat}) for seat in at}
        everything = house.hub.watch(match, perspective="all", may_see={"all"})
        view = game.view(None)
        phases: dict[str, int] = {}
        while match in house.host.tables and state.day < 3:
            asked = dict(state.turns())
            bank = {seat: table.live.remote[seat].bank_s for seat in asked}
            shown = {seat: frames_of(watcher) for seat, watcher in own.items()}
            omniscient = frames_of(everything)[-1].clocks
            assert omniscient == {str(seat): 60.0 + bank[seat] for seat in asked}
            told = frames_of(public)
            assert all(message.entries for message in told)
            for message in told:
                for _, kind, data, _audience in message.entries:
                    view.update(Event(kind, data))
            known = view.asked(state.options)
            if told:
                assert told[-1].clocks == {str(seat): 60.0 for seat in known}
            for seat, news in shown.items():
                others = {str(who): 60.0 for who in known if who != seat}
                mine = {str(seat): 60.0 + bank[seat]} if seat in asked else {}
                if news:
                    assert news[-1].clocks == others | mine
                else:
                    assert seat not in asked
            phase = next(iter(asked.values())).label
            assert known or phase not in ("speak", "vote")
            assert not known or view.phase == "day"
            phases[phase] = phases.get(phase, 0) + 1
            # By night all overdraw their time, which nobody may read from a clock by day.
            order = list(asked)
            house.entropy.rng.shuffle(order)
            await house.wait(70 if view.phase == "night" else 5)
            for seat in order:
                at[seat].answer(at[seat].last(Turn))
                if seat != order[-1]:
                    await house.wait(0.5)
                    assert frames_of(public) == [], "that a seat has answered is told when all have"
            await house.settle()
        assert {"wolf_talk", "wolf_target", "speak", "vote"} <= phases.keys()
        assert min(agent.bank_s for agent in table.live.remote.values()) < 60.0

    scenario(tmp_path, work, seed=seed, deadline_s=60.0, bank_s=60.0, fill_after_s=None)


# What is kept


def test_what_is_kept_does_not_grow_with_the_matches_played(tmp_path: Path) -> None:
    def kept() -> list[object]:
        gc.collect()
        return [thing for thing in gc.get_objects() if type(thing) in (LiveMatch, RemoteAgent, Record)]

    counts: list[int] = []
    timers: list[int] = []
    others = kept()  # what tests before this one have left in the process

    async def work(house: House) -> None:
        peers = [house.peer(), house.peer()]
        for played in range(60):
            for peer in peers:
                peer.client.join(game="kuhn")
            await house.settle()
            assert all(len(peer.overs) == 1 for peer in peers)
            for peer in peers:
                peer.forget()
            house.clock.pass_to(house.clock.now + 200)
            if played % 20 == 19:
                counts.append(sum(not any(thing is other for other in others) for thing in kept()))
                timers.append(len(house.clock.timers))
                assert house.host.kept() == dict.fromkeys(house.host.kept(), 0) | {"clients": 2}

    scenario(tmp_path, work)
    assert counts == [0, 0, 0]
    assert timers == [0, 0, 0]
    with Store(tmp_path) as store:
        assert len(store.rated_matches()) == 60


def test_the_turnaround_is_measured(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        peers = [house.peer(), house.peer()]
        for peer in peers:
            peer.client.join(game="kuhn")
        await house.settle()
        names = [name for name, _ in house.observed]
        assert names.count("match_finished") == 1 and "turnaround_s" in names

    scenario(tmp_path, work)


@pytest.mark.usefixtures("no_blocking")
def test_nothing_in_a_match_blocks_the_loop(tmp_path: Path) -> None:
    house = House(tmp_path)

    async def work() -> Peer:
        loop = asyncio.get_running_loop()
        hub = Hub(clock=loop.time)
        settings = HostSettings(fill_after_s=0.0)
        house.host = Host(tmp_path, clock=loop, hub=hub, settings=settings, desk=Desk(tmp_path))
        await house.host.start()
        peer = house.peer()
        peer.client.join(game="avalon", seats=5)
        while not peer.overs:
            peer.pump()
            await asyncio.sleep(0)
            assert not peer.codes() and not peer.lefts()
        await house.close()
        return peer

    peer = asyncio.run(work())
    assert "error" not in peer.overs.popitem()[1].counts


def test_the_desk_works_in_a_thread_of_its_own(tmp_path: Path) -> None:
    async def work() -> tuple[list[int], int]:
        desk = Desk(tmp_path)
        order: list[int] = []
        await asyncio.gather(*(desk.run(lambda store, i=i: order.append(i)) for i in range(20)))
        number = await desk.run(lambda store: store.add_tournament({}, config_hash="x"))
        await desk.close()
        return order, number

    assert asyncio.run(work()) == (list(range(20)), 1)


# Tournaments


def cup(**how: object) -> OnlineTournament:
    return OnlineTournament.model_validate({"name": "cup", "game": "kuhn", "matches": 6, "players": 3} | how)


def test_a_tournament_over_connected_agents(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup())
        peers = [house.peer(seed=seed) for seed in range(3)]
        for index, peer in enumerate(peers):
            peer.client.join(where="tournament", tournament="cup", name=f"p{index}")
            await house.settle()
            if index < 2:
                assert peer.last(Waiting).filled == index + 1
                assert house.host.tournaments()[0]["status"] == "open"
        await house.settle()
        for peer in peers:
            assert peer.lefts() == ["over"] and len(peer.overs) == 4
            assert peer.client._requests == {}
        assert house.host.tournaments() == []

    house = scenario(tmp_path, work)
    assert len(house.check()) == 6
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        assert row.status == FINISHED and row.config["online"]["name"] == "cup"
        matches = store.rated_matches(tournament=row.id)
        assert len(matches) == 6 and all(match.rated and match.deal for match in matches)


def test_players_of_one_match_never_share_a_connection_and_house_bots_make_up_the_number(
    tmp_path: Path,
) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup(game="avalon", seats=5, matches=3, players=None, starts_in_s=30))
        peers = [house.peer(seed=seed) for seed in range(2)]
        for index, peer in enumerate(peers):
            peer.client.join(where="tournament", tournament="cup", name=f"p{index}")
        peers[0].client.join(where="tournament", tournament="cup", name="second")
        await house.settle()
        assert peers[0].codes() == ["limit"]
        await house.wait(40)
        assert all(peer.lefts() == ["over"] for peer in peers)
        for peer in peers:
            assert len({seated.match for seated in peer.all(Seated)}) == len(peer.all(Seated))

    house = scenario(tmp_path, work)
    for record in house.check():
        names = [info.name for info in record.header.seats]
        assert {"p0", "p1", "scripted", "scripted 2", "scripted 3"} == set(names)


def test_an_absent_player_is_waited_for_and_then_forfeits(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup(matches=4, players=2))
        here, gone = house.peer(seed=1), house.peer(seed=2, plays=False)
        for index, peer in enumerate((here, gone)):
            peer.client.join(where="tournament", tournament="cup", name=f"p{index}")
        await house.settle()
        gone.drop()
        await house.wait(29)
        assert house.host.tournaments()[0]["played"] == 0
        await house.wait(100)
        assert here.lefts() == ["over"]

    house = scenario(tmp_path, work)
    for record in house.check():
        assert record.footer is not None
        ended = {info.name: end for info, end in zip(record.header.seats, record.footer.ended, strict=True)}
        assert ended["p1"] == "forfeit" != ended["p0"]


def test_a_player_that_comes_back_goes_on(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup(matches=8, players=2))
        peers = [house.peer(seed=1), house.peer(seed=2)]
        rng, due, count = random.Random(5), [2], [0]

        def unlucky(way: str, message: object) -> bool:
            count[0] += 1
            if count[0] == due[0]:
                due[0] += rng.randrange(4, 30)
                return True
            return False

        peers[1].on_frame = unlucky
        for index, peer in enumerate(peers):
            peer.client.join(where="tournament", tournament="cup", name=f"p{index}")
        for _ in range(200):
            await house.wait(1)
            if peers[1].session is None:
                peers[1].connect()
            if all("over" in peer.lefts() for peer in peers):
                break
        assert all(peer.lefts()[-1] == "over" for peer in peers)
        assert len(peers[0].overs) == len(peers[1].overs) == 8

    house = scenario(tmp_path, work)
    assert len(house.check()) == 8
    assert all(not failures(record) for record in house.records())


def test_registration_has_rules(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        with pytest.raises(TournamentError):
            house.host.add_tournament(cup(game="chess"))
        with pytest.raises(TournamentError):
            house.host.add_tournament(cup(game="avalon", format="gauntlet"))
        house.host.add_tournament(cup(bots=["random"]))
        with pytest.raises(TournamentError):
            house.host.add_tournament(cup())
        one, two, three = (house.peer(seed=seed) for seed in range(3))
        one.client.join(where="tournament", tournament="cup", name="p")
        await house.settle()
        two.client.join(where="tournament", tournament="cup", name="p")
        three.client.join(where="tournament", tournament="cup", name="random")
        await house.settle()
        assert (two.codes(), three.codes()) == (["limit"], ["limit"])
        one.client.leave(ticket=one.last(Waiting).ticket)
        await house.settle()
        assert one.all(Left) and house.host.tournaments()[0]["players"] == ["random"]
        await house.wait(70)  # nobody has registered: it does not take place
        assert house.host.tournaments() == []

    scenario(tmp_path, work)
    with Store(tmp_path) as store:
        assert store.tournaments() == []


@pytest.mark.parametrize("form", ["round-robin", "swiss"])
def test_a_tournament_outlives_a_kill(tmp_path: Path, form: str) -> None:
    async def work(house: House) -> None:
        rng = random.Random(3)
        house.host.add_tournament(cup(matches=12, format=form))
        peers = [house.peer(seed=seed) for seed in range(3)]
        countdown = [rng.randrange(30, 90)]

        def crash(way: str, message: object) -> bool:
            countdown[0] -= 1
            return countdown[0] <= 0  # from here on nothing arrives

        for index, peer in enumerate(peers):
            peer.on_frame = crash
            peer.client.join(where="tournament", tournament="cup", name=f"p{index}")
        kills = 0
        for _ in range(60):
            await house.settle()
            if countdown[0] <= 0:
                kills += 1
                countdown[0] = rng.randrange(30, 90)
                await house.restart()
            if all("over" in peer.lefts() for peer in peers):
                break
        assert kills > 3
        assert all(peer.lefts()[-1] == "over" for peer in peers)

    house = scenario(tmp_path, work)
    assert len(house.check()) == 12
    assert all(not failures(record) for record in house.records())
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        assert row.status == FINISHED and len(store.rated_matches(tournament=row.id)) == 12


def joined(house: House, count: int, **how: Any) -> list[Peer]:
    peers = [house.peer(seed=seed, **how) for seed in range(count)]
    for index, peer in enumerate(peers):
        peer.client.join(where="tournament", tournament="cup", name=f"p{index}")
    return peers


def opened(home: Path) -> list[str]:
    with Store(home) as store:
        return [name for (name,) in store.rows("select name from open_tournaments")]


def test_registrations_outlive_a_kill_and_the_time_to_the_start_goes_on(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup(starts_in_s=600, bots=["random"]))
        peers = joined(house, 2)
        await house.settle()
        assert [peer.last(Waiting).filled for peer in peers] == [3, 3]
        await house.wait(100)
        for peer in peers:
            peer.wanted = False
        for _ in range(2):
            await house.restart()
            (state,) = house.host.tournaments()
            assert (state["status"], state["players"]) == ("open", ["random", "p0", "p1"])
            assert state["starts_in_s"] == 500
        stranger = house.peer()
        stranger.client.join(where="tournament", tournament="cup", name="p2")
        for peer in peers:
            peer.connect()
        await house.settle()
        assert all(peer.lefts() == ["over"] for peer in (*peers, stranger))

    house = scenario(tmp_path, work)
    records = house.check()
    assert len(records) == 6 and not any(map(failures, records))
    assert opened(tmp_path) == []
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        assert [name for name, _, _ in row.config["players"]] == ["random", "p0", "p1", "p2"]


def test_who_is_told_of_a_registration_has_one_whenever_the_host_is_killed(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup(starts_in_s=600))
        peer = house.peer()
        peer.on_frame = lambda way, message: isinstance(message, Waiting)
        peer.client.join(where="tournament", tournament="cup", name="p0")
        await house.settle()
        assert peer.session is None and opened(tmp_path) == ["cup"]
        peer.on_frame = None
        await house.restart()
        await house.settle()
        assert house.host.tournaments()[0]["players"] == ["p0"] and peer.all(Waiting)
        peer.client.leave(ticket=peer.last(Waiting).ticket)
        await house.settle()
        assert set(peer.lefts()) == {"left"} and opened(tmp_path) == []
        await house.restart()
        assert house.host.tournaments() == []

    scenario(tmp_path, work)


def test_a_start_that_was_missed_while_the_host_was_down_is_made_up_for(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        house.host.add_tournament(cup(players=None, starts_in_s=60, matches=4))
        peers = joined(house, 2)
        await house.settle()
        await house.kill()
        house.clock.pass_to(house.clock.now + 3600)
        house.build()
        await house.host.start()
        await house.settle()
        for peer in peers:
            peer.connect()
        await house.wait(5)
        assert all(peer.lefts() == ["over"] for peer in peers)

    house = scenario(tmp_path, work)
    assert len(house.check()) == 4 and not any(map(failures, house.records()))


def test_a_registration_that_the_store_refuses_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from arena import hosted

    keep = hosted.keep_open

    def full(*args: Any, **how: Any) -> None:
        raise StoreError("arena.db: cannot write to the store: database or disk is full")

    async def work(house: House) -> None:
        house.host.add_tournament(cup(starts_in_s=600, players=2))
        monkeypatch.setattr(hosted, "keep_open", full)
        (peer,) = joined(house, 1)
        await house.settle()
        assert peer.lefts() == ["unavailable"] and house.host.tournaments()[0]["players"] == []
        monkeypatch.setattr(hosted, "keep_open", keep)
        peers = joined(house, 2)
        await house.settle()
        assert all(peer.lefts() == ["over"] for peer in peers)

    scenario(tmp_path, work)


def test_a_tournament_begins_when_the_store_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add, refusals = Store.add_tournament, [2]

    def full(self: Store, *args: Any, **how: Any) -> int:
        refusals[0] -= 1
        if refusals[0] >= 0:
            raise StoreError("arena.db: cannot write to the store: database or disk is full")
        return add(self, *args, **how)

    monkeypatch.setattr(Store, "add_tournament", full)

    async def work(house: House) -> None:
        house.host.add_tournament(cup(players=2))
        peers = joined(house, 2)
        await house.settle()
        assert opened(tmp_path) == ["cup"]
        await house.wait(9)
        assert not any(peer.lefts() or peer.overs for peer in peers)
        await house.wait(2)
        assert all(peer.lefts() == ["over"] for peer in peers)

    scenario(tmp_path, work)


@pytest.mark.parametrize("players", [4, 5])
def test_a_swiss_tournament_pairs_its_rounds_by_what_was_played(tmp_path: Path, players: int) -> None:
    asked = cup(format="swiss", players=players, matches=12)

    async def work(house: House) -> None:
        house.host.add_tournament(asked)
        peers = joined(house, players)
        await house.settle()
        assert all(peer.lefts() == ["over"] for peer in peers)

    house = scenario(tmp_path, work)
    assert len(house.check()) == 12
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        played = {match.number: match for match in store.played(row.id)}
    assert row.status == FINISHED and sorted(played) == list(range(12))
    swiss = Swiss(
        [f"p{index}" for index in range(players)],
        game="kuhn",
        seats=2,
        team_names=("first", "second"),
        matches=12,
        seed=asked.seed,
        mode="seats",
    )
    results = {number: points(match.seats) for number, match in played.items()}
    rounds = 0
    while plans := swiss.next_round(results):
        rounds += 1
        for plan in plans:
            assert [name for name, _ in played[plan.index].seats] == list(plan.players)
    assert rounds == 3


def test_what_a_swiss_tournament_needs(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        for wrong in ({"game": "avalon"}, {"players": 129}):
            with pytest.raises(TournamentError, match=r"two seats|at most 128"):
                house.host.add_tournament(cup(format="swiss", **wrong))

    scenario(tmp_path, work)


def test_a_tournament_with_a_failed_match_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = RecordWriter.__init__

    def once(self: RecordWriter, path: Path, header: object, **how: bool) -> None:
        if path.name == "t1-1.arena":
            raise RecordWriteFailed(f"{path}: cannot write the record: No space left on device")
        made(self, path, header, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(RecordWriter, "__init__", once)

    async def work(house: House) -> None:
        house.host.add_tournament(cup(matches=4, players=2))
        for index in range(2):
            house.peer(seed=index).client.join(where="tournament", tournament="cup", name=f"p{index}")
        await house.settle()
        assert all("over" in peer.lefts() for peer in house.peers)

    scenario(tmp_path, work)
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        assert row.status == FAILED and len(store.rated_matches()) == 3


# A kill


class Killed(BaseException):
    """Stands for the signal that no process survives."""


@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_entry_the_match_goes_on_and_nothing_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: str, seed: int
) -> None:
    rng = random.Random(f"{game}/{seed}")
    write = RecordWriter.write
    countdown = [rng.randrange(1, 4)]

    def dying(self: RecordWriter, entries: Iterable[Entry]) -> None:
        countdown[0] -= 1
        if countdown[0] > 0:
            write(self, entries)
            return
        data = self._encoder.entries(entries)  # what is half on disk when the process dies
        self._file.write(data[: rng.randrange(len(data) + 1)])
        raise Killed

    monkeypatch.setattr(RecordWriter, "write", dying)

    async def work(house: House) -> None:
        peers = [
            house.peer(seed=index, subprotocol=s)
            for index, s in enumerate(("arena.1.msgpack", "arena.1.json"))
        ]
        for peer in peers:
            peer.client.join(game=game)
        kills = 0
        await house.wait(11)
        for _ in range(400):
            if all(peer.overs for peer in peers):
                break
            while countdown[0] <= 0:
                kills += 1
                countdown[0] = rng.randrange(1, 4 if game == "kuhn" else 40)
                with suppress(Killed):  # which may come while the host begins
                    await house.restart()
            await house.wait(1)
        assert kills
        assert all(len(peer.overs) == 1 for peer in peers), (kills, [peer.codes() for peer in peers])
        assert len({next(iter(peer.overs)) for peer in peers}) == 1

    house = scenario(tmp_path, work)
    records = house.check()
    record = next(r for r in records if r.header.match in house.peers[0].overs)
    for peer in house.peers:
        (match,) = peer.overs
        seen = [e for e in record.events() if e.visible_to(peer.seats[match])]
        assert len(peer.events[match]) == len(seen)
    assert not failures(record)


def test_after_a_kill_the_grace_begins_anew_and_requests_keep_their_numbers(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(plays=False), house.peer(plays=False)
        for peer in (one, two):
            peer.client.join(game="kuhn")
        await house.settle()
        first = one if one.all(Turn) else two
        other = two if first is one else one
        first.client.act(first.last(Turn).match, request=1, action="raise")
        await house.settle()
        assert first.last(Turn).request == 2 and first.all(Acted)
        other.wanted = False
        await house.restart()
        await house.settle()
        seat = first.client.seats[first.last(Seated).match]
        assert seat.turn is not None and seat.turn.request == 2 and len(first.all(Turn)) == 2
        first.client.act(seat.seated.match, request=2, action="bet")
        await house.wait(31)
        assert first.overs
        other.connect()
        await house.settle()
        assert other.overs  # told from the record

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert record.footer is not None and record.footer.ended.count("forfeit") == 1


def test_a_kill_between_the_footer_and_the_store_loses_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(house: House) -> None:
        from arena import hosted

        stored = hosted.finish_hosted

        def dying(*args: object, **how: object) -> None:
            raise Killed

        monkeypatch.setattr(hosted, "finish_hosted", dying)
        peers = [house.peer(), house.peer()]
        for peer in peers:
            peer.client.join(game="kuhn")
        await house.settle()
        assert all(peer.overs for peer in peers)
        monkeypatch.setattr(hosted, "finish_hosted", stored)
        for _ in range(2):
            await house.restart()
            await house.settle()

    house = scenario(tmp_path, work)
    house.check()
    with Store(tmp_path) as store:
        assert len(store.rated_matches()) == 1


def full_disk(monkeypatch: pytest.MonkeyPatch, *, notes: bool) -> list[bool]:
    """Let record and store refuse while the returned list holds True; with `notes` files can be made, but empty."""
    from arena import hosted

    full, write, store, note = [False], RecordWriter.write, hosted.finish_hosted, hosted.note_failure

    def refusing(self: RecordWriter, entries: Iterable[Entry]) -> None:
        if full[0]:
            raise RecordWriteFailed(f"{self.path}: cannot write the record: No space left on device")
        write(self, entries)

    def storing(*args: Any, **how: Any) -> None:
        if full[0]:
            raise StoreError("arena.db: cannot write to the store: database or disk is full")
        store(*args, **how)

    monkeypatch.setattr(RecordWriter, "write", refusing)
    monkeypatch.setattr(hosted, "finish_hosted", storing)
    if not notes:
        monkeypatch.setattr(hosted, "note_failure", lambda record, reason: None)
    else:
        monkeypatch.setattr(hosted, "note_failure", lambda record, reason: note(record, ""))
    return full


async def failed_and_killed(house: House, full: list[bool]) -> tuple[Peer, Peer]:
    """Let a match fail on a full disk, its players told, and kill the host before the store knows."""
    peers = house.peer(plays=False, seed=1), house.peer(plays=False, seed=2)
    for peer in peers:
        peer.client.join(game="kuhn")
    await house.settle()
    full[0] = True
    for peer in peers:
        for seat in list(peer.client.seats.values()):
            if seat.turn is not None:
                peer.answer(seat.turn)
    await house.settle()
    for peer in peers:
        assert peer.lefts() == ["unavailable"] and peer.client.seats == {}
    full[0] = False
    await house.restart()
    await house.settle()
    return peers


def failed_matches(home: Path) -> list[str]:
    with Store(home) as store:
        return [error for row in store.tournaments() for _, _, error in store.failures(row.id)]


def test_a_match_that_failed_stays_failed_when_the_host_is_killed_before_the_store_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = full_disk(monkeypatch, notes=True)

    async def work(house: House) -> None:
        await failed_and_killed(house, full)
        assert house.host.tables == {} and len(failed_matches(tmp_path)) == 1
        await house.restart()
        assert house.host.tables == {} and len(failed_matches(tmp_path)) == 1

    scenario(tmp_path, work)
    assert not list(tmp_path.rglob("*.failed"))
    with Store(tmp_path) as store:
        assert store.rated_matches() == []


def test_a_match_to_which_nobody_comes_back_after_a_kill_fails_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = full_disk(monkeypatch, notes=False)

    async def work(house: House) -> None:
        await failed_and_killed(house, full)
        await house.wait(29)
        assert len(house.host.tables) == 1 and failed_matches(tmp_path) == []
        await house.wait(2)
        assert house.host.tables == {}

    scenario(tmp_path, work)
    (error,) = failed_matches(tmp_path)
    assert "no player came back after the server was started again" in error
    with Store(tmp_path) as store:
        assert store.rated_matches() == []


def test_a_match_that_a_full_disk_stopped_goes_on_with_those_who_were_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = full_disk(monkeypatch, notes=False)

    async def work(house: House) -> None:
        peers = house.peer(plays=False, seed=1), house.peer(plays=False, seed=2)
        for peer in peers:
            peer.client.join(game="kuhn")
        await house.settle()
        for peer in peers:
            peer.on_frame = lambda way, message: True  # nothing reaches anyone any more
        full[0] = True
        await house.wait(61 + 61)
        assert house.host.tables == {}
        full[0] = False
        for peer in peers:
            peer.on_frame, peer.plays = None, True
        await house.restart()
        await house.wait(5)
        for peer in peers:
            for seat in list(peer.client.seats.values()):
                if seat.turn is not None:
                    peer.answer(seat.turn)
        await house.wait(5)
        assert all(len(peer.overs) == 1 for peer in peers)

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert not failures(record) and failed_matches(tmp_path) == []


def test_a_record_that_is_damaged_is_a_named_failure_and_the_host_starts(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        peers = [house.peer(plays=False), house.peer(plays=False)]
        for peer in peers:
            peer.client.join(game="kuhn")
        await house.settle()
        (path,) = (tmp_path / "replays" / "live").rglob("*.arena")
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        path.write_bytes(data)
        await house.restart()
        await house.settle()
        for peer in peers:
            assert "bad_resume" in [m.code for m in peer.raw if isinstance(m, Error)]
            assert peer.client.seats == {}

    scenario(tmp_path, work)
    with Store(tmp_path) as store:
        (row,) = store.tournaments()
        assert len(store.failures(row.id)) == 1


def test_a_request_whose_seat_was_never_heard_of_is_answered_after_a_kill(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(), house.peer(plays=False)
        one.on_frame = lambda way, message: way == "in" and isinstance(message, Seated)
        for peer in (one, two):
            peer.client.join(game="kuhn")
        await house.settle()
        assert not one.client.seats and two.client.seats
        one.on_frame = None
        two.plays = True
        await house.restart()
        await house.wait(1)
        for peer in (one, two):
            for seat in list(peer.client.seats.values()):
                if seat.turn is not None and seat.answer is None:
                    peer.answer(seat.turn)
        await house.wait(5)
        assert one.overs.keys() == two.overs.keys() != set()

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert not failures(record)


def test_a_request_that_comes_again_while_its_match_begins_is_given_that_seat(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(), house.peer()
        one.client.join(game="kuhn")
        await house.settle()
        two.client.join(game="kuhn")
        two.pump()
        assert not one.client.seats and house.host.lobbies() == []  # it begins, and nobody is seated yet
        one.drop()
        one.connect()
        one.pump()
        await house.wait(20)
        assert house.host.lobbies() == [] and one.overs.keys() == two.overs.keys() != set()

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert not failures(record)


def test_a_waiting_place_goes_along_to_another_connection_of_the_same_request(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two = house.peer(), house.peer()
        one.client.join(game="kuhn")
        await house.settle()
        lost, one.session = one.session, None  # half open: the server does not know yet
        one.connect()
        await house.settle()
        assert len(house.host.lobbies()) == 1 and one.last(Waiting).filled == 1
        assert lost is not None
        lost.lost()
        two.client.join(game="kuhn")
        await house.wait(5)
        assert one.overs.keys() == two.overs.keys() != set()

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert not failures(record)


def test_records_hold_no_more_than_was_played(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        peer = house.peer()
        peer.client.join(game="kuhn", name="ann", agent="bot\x1b[31m 1.0")
        await house.wait(11)

    (record,) = scenario(tmp_path, work).check()
    info = next(info for info in record.header.seats if info.spec == "ws:ann")
    assert info.agent.isprintable()
    thoughts = [entry.thought for entry in record.entries if isinstance(entry, Input) and entry.thought]
    assert set(thoughts) == {"hm"}
    assert all("hm" not in str(entry) for entry in record.entries if isinstance(entry, Event))
    assert verify(read_record(next((tmp_path / "replays" / "live").rglob("*.arena")))).ok
