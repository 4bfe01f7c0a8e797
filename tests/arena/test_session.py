"""One connection, as scripts of what is sent and what comes back."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from arena.auth import Gate
from arena.limits import Rate
from arena.session import MAX_STRIKES, MAX_WAITING, MAX_WATCHED, Session
from clients.protocol.codec import JSON, decode, encode
from clients.protocol.messages import (
    ERROR_CODES,
    MAX_CLIENT_BYTES,
    Act,
    Acted,
    Authenticate,
    Authenticated,
    Challenge,
    Error,
    Events,
    Frames,
    Hello,
    Join,
    Leave,
    Left,
    Message,
    Over,
    Ping,
    Pong,
    Respond,
    Resume,
    Seated,
    Snapshot,
    Stale,
    Turn,
    Unwatch,
    Waiting,
    Watch,
    Welcome,
)
from games.referee import Input
from tests.arena.hosting import House, Peer, scenario

MSGPACK = "arena.1.msgpack"
T = TypeVar("T")


class Script:
    """Messages out, messages in, one connection; nothing is made good as a client would."""

    def __init__(self, house: House, *, gate: Gate | None = None, subprotocol: str = MSGPACK) -> None:
        self.house = house
        self.subprotocol = subprotocol
        self.session = Session(
            house.host,
            subprotocol=subprotocol,
            address="10.0.0.2",
            gate=gate or house.gate,
            wake=lambda: None,
            clock=house.clock.time,
        )

    def raw(self, frame: bytes | str) -> list[Message]:
        self.session.receive(frame)
        return self.due()

    def due(self) -> list[Message]:
        found: list[Message] = []
        while frames := self.session.frames_to_send():
            found += [decode(frame, sender="server", subprotocol=self.subprotocol) for frame in frames]
        return found

    def say(self, message: Message) -> list[Message]:
        return self.raw(encode(message, subprotocol=self.subprotocol))

    async def ask(self, message: Message) -> list[Message]:
        found = self.say(message)
        await self.house.settle()
        return found + self.due()

    def greet(self, token: str = "") -> "Script":
        (welcome,) = self.say(Hello())
        assert isinstance(welcome, Welcome)
        if token:
            (shown,) = self.say(Authenticate(token=token))
            assert isinstance(shown, Authenticated), shown
        return self

    def code(self, message: Message) -> str:
        return only_code(self.say(message))


def only_code(found: list[Message]) -> str:
    (error,) = found
    assert isinstance(error, Error), error
    assert error.code in ERROR_CODES
    assert "\n" not in error.message and len(error.message) <= 500
    return error.code


EVERY_MESSAGE: list[Message] = [
    Authenticate(token="t"),
    Join(id="i", game="kuhn"),
    Challenge(id="i", opponent="b", game="kuhn"),
    Respond(id="i", ticket="t", accept=True),
    Leave(id="i", ticket="t"),
    Act(match="m", request=1, action="x"),
    Resume(id="i", resume="r"),
    Watch(id="i", match="m"),
    Unwatch(id="i", match="m"),
    Ping(id="i"),
]


def test_nothing_is_taken_before_hello_and_hello_is_taken_once(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        script = Script(house)
        for message in EVERY_MESSAGE:
            assert script.code(message) == "out_of_order"
        script.greet()
        assert script.code(Hello()) == "out_of_order"
        assert script.say(Ping(id="p")) == [Pong(id="p")]

    scenario(tmp_path, work)


def test_hello_names_a_version_or_is_closed(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        script = Script(house)
        assert script.code(Hello(versions=[7])) == "version"
        assert script.session.closing is not None and script.session.closing[0] == 1002
        assert script.say(Hello()) == []
        newer = Script(house)
        (welcome,) = newer.say(Hello(versions=[2, 1], capabilities=["schema", "other"]))
        assert isinstance(welcome, Welcome) and welcome.version == 1

    scenario(tmp_path, work)


def test_tokens_and_scopes(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        player, watcher = house.token("ann", "play"), house.token("eve", "watch")
        nobody = Script(house).greet()
        assert nobody.code(Authenticate(token="arena_play_none")) == "unauthorised"
        for message in EVERY_MESSAGE[1:4]:
            assert nobody.code(message) == "unauthorised"
        assert nobody.code(Watch(id="w", match="m")) == "unauthorised"
        ann, eve = Script(house).greet(player), Script(house).greet(watcher)
        assert ann.code(Authenticate(token=player)) == "out_of_order"
        assert ann.code(Watch(id="w", match="m")) == "forbidden"
        for message in EVERY_MESSAGE[1:4]:
            assert eve.code(message) == "forbidden"
        (waiting,) = ann.say(Join(id="j", game="kuhn"))
        assert isinstance(waiting, Waiting) and waiting.filled == 1
        assert [place.name for place in house.host.waiting.waiting()] == ["ann"]

    scenario(tmp_path, work, anonymous=())


def test_a_name_that_a_token_bears_is_for_that_token_alone_and_names_are_cleaned(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        token = house.token("ann", "play")
        guest = Script(house).greet()
        assert guest.code(Join(id="j", game="kuhn", name="ann")) == "forbidden"
        guest.say(Join(id="k", game="kuhn", name="a\u202e\x1b[31m<b>" + "x" * 180))
        ann = Script(house).greet(token)
        found = await ann.ask(Join(id="j", game="kuhn"))
        names = next(message for message in found if isinstance(message, Seated)).names
        assert "ann" in names
        for name in names:
            assert name.isprintable() and "<" not in name and len(name) <= 40

    scenario(tmp_path, work)


# Every code, each from the situation it is for


async def _bad_frame(house: House) -> str:
    script = Script(house).greet()
    code = only_code(script.raw(b"\xc1"))
    assert script.session.closing is not None and script.session.closing[0] == 1007
    assert script.say(Ping(id="p")) == []
    return code


async def _too_large(house: House) -> str:
    script = Script(house).greet()
    code = only_code(script.raw(b"\xc0" * (MAX_CLIENT_BYTES + 1)))
    assert script.session.closing is not None and script.session.closing[0] == 1009
    return code


async def _bad_message(house: House) -> str:
    script = Script(house, subprotocol=JSON).greet()
    for frame in (
        "{}",
        "[]",
        '{"type":"act"}',
        '{"type":"\\u001b[2J"}',
        '{"type":"join","id":""}',
        '{"type":"seated"}',
    ):
        assert only_code(script.raw(frame)) == "bad_message"
    assert script.session.closing is None
    return only_code(script.say(Leave(id="l")))


async def _out_of_order(house: House) -> str:
    return Script(house).code(Ping(id="p"))


async def _version(house: House) -> str:
    return Script(house).code(Hello(versions=[]))


async def _unauthorised(house: House) -> str:
    return Script(house).greet().code(Authenticate(token="x"))


async def _forbidden(house: House) -> str:
    script = Script(house).greet(house.token("eve", "watch"))
    house.gate.anonymous = frozenset()
    return script.code(Join(id="j", game="kuhn"))


async def _rate_limited(house: House) -> str:
    rates = {"message": Rate(1, 3)}
    gate = Gate(house.home, anonymous=("play",), rates=rates, clock=house.clock.time, now=house.clock.time)
    script = Script(house, gate=gate).greet()
    assert [script.say(Ping(id="p")) for _ in range(2)] == [[Pong(id="p")]] * 2
    code = script.code(Ping(id="p"))
    house.clock.pass_to(house.clock.now + 1)
    assert script.say(Ping(id="p")) == [Pong(id="p")]
    return code


async def _limit(house: House) -> str:
    script = Script(house).greet()
    script.say(Join(id="a", game="kuhn"))
    script.say(Join(id="b", game="avalon"))
    return script.code(Join(id="c", game="werewolf"))


async def _unknown_game(house: House) -> str:
    return Script(house).greet().code(Join(id="j", game="chess\x1b[2J"))


async def _bad_setup(house: House) -> str:
    script = Script(house).greet()
    assert script.code(Join(id="j", game="kuhn", seats=3)) == "bad_setup"
    assert script.code(Join(id="j", game="kuhn", options={"stake": {"deep": [1]}})) == "bad_setup"
    assert script.code(Join(id="j", game="avalon", options={"lady": "x" * 3000})) == "bad_setup"
    return script.code(Join(id="j", game="kuhn", options={"stake": 3}))


async def _unknown_match(house: House) -> str:
    script = Script(house).greet()
    assert script.code(Act(match="m", request=1, action="x")) == "unknown_match"
    assert script.code(Leave(id="l", match="m")) == "unknown_match"
    assert script.code(Join(id="j", where="match", match="friends")) == "unknown_match"
    assert script.code(Join(id="j", where="match", match=" ", game="kuhn")) == "unknown_match"
    return script.code(Watch(id="w", match="../../etc/passwd"))


async def _unknown_ticket(house: House) -> str:
    script = Script(house).greet()
    (waiting,) = script.say(Join(id="j", game="kuhn"))
    assert isinstance(waiting, Waiting)
    other = Script(house).greet()
    assert other.code(Leave(id="l", ticket=waiting.ticket)) == "unknown_ticket"
    assert other.code(Leave(id="l", ticket="none")) == "unknown_ticket"
    return other.code(Respond(id="r", ticket="none", accept=True))


async def _unknown_tournament(house: House) -> str:
    return Script(house).greet().code(Join(id="j", where="tournament", tournament="cup"))


async def _bad_resume(house: House) -> str:
    return only_code(await Script(house).greet().ask(Resume(id="r", resume="0" * 64)))


async def _taken(house: House) -> str:
    one, two = Script(house).greet(), Script(house).greet()
    one.say(Join(id="a", game="kuhn"))
    two.say(Join(id="b", game="kuhn"))
    await house.settle()
    seated = next(message for message in one.due() if isinstance(message, Seated))
    await two.ask(Resume(id="r", resume=seated.resume))
    third = Script(house).greet()
    await third.ask(Resume(id="r", resume=seated.resume))
    (error,) = one.due()
    assert isinstance(error, Error) and error.match == seated.match
    assert one.code(Act(match=seated.match, request=1, action="x")) == "unknown_match"
    return error.code


async def _shutdown(house: House) -> str:
    script = Script(house).greet()
    script.session.shutdown()
    code = only_code(script.due())
    assert script.session.closing is not None and script.session.closing[0] == 1012
    return code


async def _internal(house: House) -> str:
    script = Script(house).greet()

    def broken(*args: object) -> None:
        raise ZeroDivisionError("secret")

    house.host.join = broken  # type: ignore[method-assign]
    (error,) = script.say(Join(id="j", game="kuhn"))
    assert isinstance(error, Error) and error.id == "j" and "secret" not in error.message
    return error.code


PRODUCED: dict[str, Callable[[House], Awaitable[str]]] = {
    "bad_frame": _bad_frame,
    "too_large": _too_large,
    "bad_message": _bad_message,
    "out_of_order": _out_of_order,
    "version": _version,
    "unauthorised": _unauthorised,
    "forbidden": _forbidden,
    "rate_limited": _rate_limited,
    "limit": _limit,
    "unknown_game": _unknown_game,
    "bad_setup": _bad_setup,
    "unknown_match": _unknown_match,
    "unknown_ticket": _unknown_ticket,
    "unknown_tournament": _unknown_tournament,
    "bad_resume": _bad_resume,
    "taken": _taken,
    "shutdown": _shutdown,
    "internal": _internal,
}


@pytest.mark.parametrize("code", ERROR_CODES)
def test_every_code_comes_from_its_situation(tmp_path: Path, code: str) -> None:
    async def work(house: House) -> None:
        assert await PRODUCED[code](house) == code

    scenario(tmp_path, work, max_lobbies=2)


def test_too_many_refused_messages_close_the_connection(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        script = Script(house).greet()
        for _ in range(MAX_STRIKES):
            assert script.session.closing is None
            script.code(Leave(id="l", ticket="none"))
        assert script.session.closing is not None and script.session.closing[0] == 1008

    scenario(tmp_path, work)


def test_a_client_that_asks_without_reading_is_cut_off(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        script = Script(house).greet()
        frame = encode(Ping(id="p"), subprotocol=MSGPACK)
        for _ in range(2 * MAX_WAITING):
            script.session.receive(frame)
        assert script.session.closing is not None and script.session.closing[0] == 1008
        assert script.due() == []

    scenario(tmp_path, work)


# A match


async def seated_pair(house: House, **how: Any) -> tuple[Script, Script, dict[Script, list[Message]]]:
    """Return two scripts seated at Kuhn poker, in the order of their seats, and what each was told."""
    pair = [Script(house, **how).greet(), Script(house, **how).greet()]
    told = {script: script.say(Join(id=f"j{i}", game="kuhn", name=f"p{i}")) for i, script in enumerate(pair)}
    await house.settle()
    for script in pair:
        told[script] += script.due()
    pair.sort(key=lambda script: first(told[script], Seated).seat)
    return pair[0], pair[1], told


def first(messages: list[Message], kind: type[T]) -> T:
    return next(message for message in messages if isinstance(message, kind))


def test_a_match_step_by_step(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, told = await seated_pair(house)
        kinds = [message.type for message in told[one]]
        assert kinds[-3:] == ["seated", "events", "turn"]
        assert [message.type for message in told[two]][-2:] == ["seated", "events"]
        seated, turn = first(told[one], Seated), first(told[one], Turn)
        assert (turn.request, turn.attempt, turn.space["default"]) == (1, 0, "check")
        match = seated.match
        assert first(told[one], Events).first == 0
        stale = await two.ask(Act(match=match, request=1, action="check"))
        assert stale == [Stale(match=match, request=1, reason="unknown")]
        found = await one.ask(Act(match=match, request=1, action="raise"))
        assert [message.type for message in found] == ["acted", "events", "turn"]
        again = first(found, Turn)
        assert (again.request, again.attempt, again.failure) == (2, 1, "illegal")
        assert two.due() == []  # nobody learns who was asked twice
        late = await one.ask(Act(match=match, request=1, action="bet"))
        assert late == [Stale(match=match, request=1, reason="answered")]
        found = await one.ask(Act(match=match, request=2, action="bet"))
        assert [message.type for message in found] == ["acted", "events"]
        found = two.due()
        assert [message.type for message in found] == ["events", "turn"]
        found = await two.ask(Act(match=match, request=1, action="fold"))
        assert [message.type for message in found] == ["acted", "events", "over"]
        over = first(found, Over)
        assert over.returns == [1.0, -1.0] and over.ended == ["won", "lost"]
        assert [message.type for message in one.due()] == ["events", "over"]
        late = await one.ask(Act(match=match, request=3, action="bet"))
        assert late == [Stale(match=match, request=3, reason="closed")]

    house = scenario(tmp_path, work)
    (record,) = house.check()
    assert [entry.action for entry in record.entries if isinstance(entry, Input)] == ["raise", "bet", "fold"]


def test_the_same_answer_again_changes_nothing(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, _, told = await seated_pair(house)
        match = first(told[one], Seated).match
        act = Act(match=match, request=1, action="bet")
        frame = encode(act, subprotocol=MSGPACK)
        for _ in range(5):
            one.session.receive(frame)
        one.session.receive(encode(act.model_copy(update={"action": "check"}), subprotocol=MSGPACK))
        await house.settle()
        found = one.due()
        assert [message for message in found if isinstance(message, Acted)] == [Acted(match=match, request=1)]
        assert await one.ask(act) == [Stale(match=match, request=1, reason="answered")]

    house = scenario(tmp_path, work)
    (record,) = house.records()
    assert [entry.action for entry in record.entries if isinstance(entry, Input)] == ["bet"]


def test_a_late_answer_is_told_so_and_dropped(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, _, told = await seated_pair(house)
        match = first(told[one], Seated).match
        await house.wait(121)  # the deadline and the bank
        found = one.due()
        assert [event[0] for event in first(found, Events).events] == ["forced", "move"]
        late = await one.ask(Act(match=match, request=1, action="bet"))
        assert late == [Stale(match=match, request=1, reason="deadline")]

    house = scenario(tmp_path, work)
    (record,) = house.records()
    assert [entry.failure for entry in record.entries if isinstance(entry, Input)] == ["timeout"]


def test_a_failure_is_an_answer(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, _, told = await seated_pair(house)
        match = first(told[one], Seated).match
        found = await one.ask(Act(match=match, request=1, failure="ambiguous", reason="two moves"))
        again = first(found, Turn)
        assert (again.failure, again.reason) == ("ambiguous", "two moves")
        found = await one.ask(Act(match=match, request=2, failure="error"))
        assert first(found, Events).events[0][0] == "forced"

    scenario(tmp_path, work)


def test_a_seat_is_taken_up_with_its_token_from_the_events_that_are_missing(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, told = await seated_pair(house)
        seated = first(told[one], Seated)
        one.session.lost()
        back = Script(house, subprotocol=JSON)
        back.say(Hello(capabilities=["schema"]))
        found = await back.ask(Resume(id="r", resume=seated.resume, seen=1))
        assert [message.type for message in found] == ["seated", "turn"]
        assert first(found, Turn).request == 1 and first(found, Turn).json_schema == {
            "enum": ["check", "bet"]
        }
        found = await back.ask(Resume(id="r", resume=seated.resume, seen=0))
        assert [message.type for message in found] == ["seated", "events", "turn"]
        assert only_code(await back.ask(Resume(id="r", resume=seated.resume, seen=99))) == "bad_resume"
        await back.ask(Act(match=seated.match, request=1, action="bet"))
        found = await back.ask(Leave(id="l", match=seated.match))
        assert found == [Left(id="l", match=seated.match)]
        assert only_code(await back.ask(Resume(id="r", resume=seated.resume))) == "bad_resume"
        await two.ask(Act(match=seated.match, request=1, action="fold"))

    house = scenario(tmp_path, work)
    house.check()


def test_a_seat_is_told_the_rest_after_the_match_is_over(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, told = await seated_pair(house)
        seated = first(told[one], Seated)
        await one.ask(Act(match=seated.match, request=1, action="bet"))
        one.session.lost()
        await two.ask(Act(match=seated.match, request=1, action="call"))
        assert house.host.kept()["tables"] == 0
        back = Script(house).greet()
        found = await back.ask(Resume(id="r", resume=seated.resume, seen=2))
        assert [message.type for message in found] == ["seated", "events", "over"]
        assert [event[0] for event in first(found, Events).events] == ["move", "showdown", "end"]
        assert only_code(await back.ask(Resume(id="r", resume=seated.resume, seen=99))) == "bad_resume"

    house = scenario(tmp_path, work)
    house.check()


def test_one_connection_has_one_seat_in_a_match(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, two, told = await seated_pair(house)
        other = first(told[two], Seated)
        assert only_code(await one.ask(Resume(id="r", resume=other.resume))) == "limit"
        script = Script(house).greet()
        script.say(Join(id="a", game="kuhn"))
        found = await script.ask(Join(id="b", game="kuhn"))
        assert [message.type for message in found] == ["waiting"]  # in a lobby of its own
        assert len(house.host.lobbies()) == 2

    scenario(tmp_path, work)


def test_the_same_request_again_is_the_same_place_and_the_same_seat(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one = Script(house).greet()
        ask = Join(id="a-request-of-its-own", game="kuhn")
        (first_time,) = one.say(ask)
        (second_time,) = one.say(ask)
        assert isinstance(first_time, Waiting) and isinstance(second_time, Waiting)
        assert first_time.ticket == second_time.ticket
        two = Script(house).greet()
        await two.ask(Join(id="b", game="kuhn"))
        seated = first(one.due(), Seated)
        one.session.lost()
        back = Script(house).greet()  # as a client does that never heard of its seat
        again = first(await back.ask(ask), Seated)
        assert (again.match, again.seat, again.resume) == (seated.match, seated.seat, seated.resume)
        assert house.host.lobbies() == []

    scenario(tmp_path, work)


def test_the_token_of_a_seat_is_in_no_file(tmp_path: Path) -> None:
    secrets: list[str] = []

    async def work(house: House) -> None:
        one, _, told = await seated_pair(house)
        secrets.append(first(told[one], Seated).resume)

    scenario(tmp_path, work)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found
    for path in found:
        content = path.read_bytes()
        assert secrets[0].encode() not in content and bytes.fromhex(secrets[0]) not in content


# Watching


def test_watching_with_and_without_the_right(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        admin = house.token("root", "admin")
        one, two, told = await seated_pair(house)
        match = first(told[one], Seated).match
        guest = Script(house).greet()
        found = guest.say(Watch(id="w", match=match))
        assert first(found, Snapshot).allowed == ["public"] and first(found, Snapshot).live
        shown = [message for message in found if isinstance(message, Frames)]
        assert [entry for message in shown for entry in message.entries] == []  # the cards are private
        assert guest.code(Watch(id="w", match=match, perspective="all")) == "forbidden"
        assert guest.code(Watch(id="w", match=match, perspective="seat", seat=0)) == "forbidden"
        assert guest.code(Watch(id="w", match=match, perspective="seat")) == "bad_message"
        assert two.code(Watch(id="w", match=match, perspective="seat", seat=0)) == "forbidden"
        own = one.say(Watch(id="w", match=match, perspective="seat", seat=0))
        assert first(own, Snapshot).perspective == "seat"
        assert [entry[1] for entry in first(own, Frames).entries] == ["card"]
        root = Script(house).greet(admin)
        everything = root.say(Watch(id="w", match=match, perspective="all"))
        assert [entry[1] for entry in first(everything, Frames).entries] == [
            "chance",
            "chance",
            "card",
            "card",
        ]
        await one.ask(Act(match=match, request=1, action="bet", thought="a bluff"))
        frames = [message for message in guest.due() if isinstance(message, Frames)]
        assert [entry[1] for message in frames for entry in message.entries] == ["move"]
        frames = [message for message in root.due() if isinstance(message, Frames)]
        assert [entry[0] for message in frames for entry in message.entries] == ["i", "e"]
        guest.say(Unwatch(id="u", match=match))
        two.due()
        await two.ask(Act(match=match, request=1, action="fold"))
        assert guest.due() == []
        over = guest.say(Watch(id="w", match=match, perspective="all"))
        assert not first(over, Snapshot).live and first(over, Frames).over

    house = scenario(tmp_path, work)
    house.check()


def test_limits_on_watching_and_a_lost_connection_stops_it(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        one, _, told = await seated_pair(house)
        match = first(told[one], Seated).match
        script = Script(house).greet()
        for _ in range(3):
            script.say(Watch(id="w", match=match))
        assert house.hub.watchers == 1
        script.session.lost()
        assert house.hub.watchers == 0
        script.session.lost()
        script.session.receive(b"\xc1")
        assert script.due() == []

    scenario(tmp_path, work)
    assert MAX_WATCHED > 1


def test_events_of_a_long_history_come_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.hold.MAX_BATCH", 3)
    monkeypatch.setattr("arena.session.PORTION_BYTES", 200)

    async def work(house: House) -> None:
        peer = house.peer(seed=4)
        peer.client.join(game="avalon")
        await house.wait(30)
        assert len(peer.overs) == 1
        again = house.peer(plays=False)
        again.client.seats = {}
        seated = peer.all(Seated)[0]
        assert again.session is not None
        script = Script(house).greet()
        found = await script.ask(Resume(id="r", resume=seated.resume))
        told = [message for message in found if isinstance(message, Events)]
        assert len(told) > 10 and isinstance(found[-1], Over)
        assert [event for message in told for event in message.events] == peer.events[seated.match]

    house = scenario(tmp_path, work)
    house.check()


@pytest.mark.parametrize("subprotocol", [MSGPACK, JSON])
@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
def test_whole_matches_over_the_wire(tmp_path: Path, game: str, subprotocol: str) -> None:
    async def work(house: House) -> None:
        peers: list[Peer] = [house.peer(seed=seed, subprotocol=subprotocol) for seed in range(2)]
        for peer in peers:
            peer.client.join(game=game, name="same name")
        await house.wait(11)
        assert all(len(peer.overs) == 1 for peer in peers)
        assert peers[0].all(Seated)[0].match == peers[1].all(Seated)[0].match
        assert len(set(peers[0].all(Seated)[0].names)) == peers[0].all(Seated)[0].seats

    house = scenario(tmp_path, work)
    (record,) = house.check()
    for peer in house.peers:
        (match,) = peer.events
        seen = [e for e in record.events() if e.visible_to(peer.seats[match])]
        assert len(peer.events[match]) == len(seen)


def test_a_refusal_names_its_request(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        (error,) = Script(house).greet().say(Join(id="mine", game="chess"))
        assert isinstance(error, Error) and error.id == "mine"

    scenario(tmp_path, work)
