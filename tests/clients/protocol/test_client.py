"""The client's state machine: scripts of expect and reply, and whole matches with losses at every step."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.errors import ProtocolError, Refused
from clients.protocol.client import ClientConnection
from clients.protocol.codec import JSON, MSGPACK, SUBPROTOCOLS, decode, encode
from clients.protocol.messages import (
    MAX_CLIENT_BYTES,
    Act,
    Acted,
    Authenticate,
    Authenticated,
    Error,
    Events,
    Frames,
    Hello,
    Join,
    Leave,
    Left,
    Message,
    Over,
    Resume,
    Seated,
    Stale,
    Turn,
    Unwatch,
    Waiting,
    Watch,
    Welcome,
)
from games.spaces import space_from_data
from tests.clients.fake_server import ModelArena, ModelSession

WELCOME = Welcome(version=1, server="test")
OVER = Over(match="m", reason="", returns=[], teams=[], roles=[], ended=[], counts={})


def seated(match: str = "m", *, identity: str = "", events: int = 0) -> Seated:
    return Seated(
        id=identity, match=match, game="kuhn", rules="1", options={}, seats=2, seat=0, names=[],
        resume=f"secret-{match}", events=events, retries=2, deadline_s=60,
    )  # fmt: skip


def turn(request: int, *, match: str = "m", deadline_s: float = 60) -> Turn:
    return Turn(
        match=match,
        request=request,
        space={"kind": "text", "max_chars": 9},
        describe="",
        deadline_s=deadline_s,
    )


def events(first: int, *kinds: str) -> Events:
    return Events(match="m", first=first, events=[[kind, {}] for kind in kinds])


class Script:
    """A connection, what it says, and what it is told."""

    def __init__(self, **options: Any) -> None:
        self.connection = ClientConnection(subprotocol=JSON, nonce="n", **options)
        self.connection.start()

    def tell(self, *messages: Message) -> list[Message]:
        return [
            taken
            for message in messages
            for taken in self.connection.receive(encode(message, subprotocol=JSON))
        ]

    def said(self) -> list[Message]:
        return [
            decode(frame, sender="client", subprotocol=JSON) for frame in self.connection.frames_to_send()
        ]

    def again(self) -> list[Message]:
        """Lose the socket and come back up to the welcome; return what is said then."""
        self.connection.start()
        assert isinstance(self.said()[0], Hello)
        self.tell(WELCOME)
        return self.said()


@pytest.fixture
def script() -> Script:
    """A connection past the handshake."""
    made = Script()
    made.said()
    made.tell(WELCOME)
    return made


@pytest.fixture
def seat(script: Script) -> Script:
    """A connection with a seat in match `m`."""
    identity = script.connection.join(game="kuhn")
    script.said()
    script.tell(seated(identity=identity))
    return script


def test_the_handshake_without_a_token() -> None:
    script = Script(client="me 1", capabilities=("schema",))
    assert script.said() == [Hello(client="me 1", capabilities=["schema"])]
    assert not script.connection.ready
    script.connection.join(game="kuhn")
    assert script.said() == []
    assert script.tell(WELCOME) == [WELCOME]
    assert script.connection.ready
    assert script.said() == [Join(id="n-1", game="kuhn")]


def test_the_handshake_with_a_token() -> None:
    script = Script(token="secret")
    script.connection.join(game="kuhn")
    script.said()
    script.tell(WELCOME)
    assert script.said() == [Authenticate(token="secret")]
    assert not script.connection.ready
    script.tell(Authenticated(name="me", scopes=["play"]))
    assert script.said() == [Join(id="n-1", game="kuhn")]
    assert "secret" not in repr(script.connection)


def test_a_token_that_is_refused_is_final() -> None:
    script = Script(token="wrong")
    script.tell(WELCOME)
    with pytest.raises(Refused, match="no such token") as caught:
        script.tell(Error(code="unauthorised", message="no such token"))
    assert caught.value.wire == "unauthorised"


def test_another_version_is_refused() -> None:
    script = Script()
    with pytest.raises(Refused, match="version 2, this client 1"):
        script.tell(Welcome(version=2, server="newer"))


def test_nothing_comes_before_welcome() -> None:
    with pytest.raises(ProtocolError, match="before welcome"):
        Script().tell(turn(1))


def test_welcome_and_authenticated_come_once(script: Script) -> None:
    with pytest.raises(ProtocolError, match="twice"):
        script.tell(WELCOME)
    with pytest.raises(ProtocolError, match="question"):
        script.tell(Authenticated(name="me", scopes=[]))


@pytest.mark.parametrize("code", ["limit", "rate_limited", "shutdown", "newer than this client"])
def test_a_server_that_cannot_just_now_may_be_asked_again(code: str) -> None:
    script = Script()
    with pytest.raises(ProtocolError, match="not now"):
        script.tell(Error(code=code, message="not now"))
    assert script.again() == []


def test_an_unknown_subprotocol() -> None:
    with pytest.raises(ProtocolError, match=r"arena\.2"):
        ClientConnection(subprotocol="arena.2")


def test_requests_that_are_settled_are_not_asked_again(script: Script) -> None:
    first = script.connection.join(game="kuhn")
    second = script.connection.join(game="avalon")
    third = script.connection.join(game="werewolf")
    assert len(script.said()) == 3
    script.tell(seated(identity=first), Error(code="unknown_game", message="", id=second))
    assert script.again() == [
        Resume(id="n-4", resume="secret-m", seen=0),
        Join(id=third, game="werewolf"),
    ]


def test_a_tournament_is_asked_for_until_it_is_over(script: Script) -> None:
    identity = script.connection.join(where="tournament", tournament="cup")
    script.said()
    script.tell(seated("m1", identity=identity), OVER.model_copy(update={"match": "m1"}))
    script.tell(seated("m2", identity=identity))
    assert [type(message) for message in script.again()] == [Resume, Join]
    script.tell(Left(id=identity, reason="over"))
    assert [type(message) for message in script.again()] == [Resume]


def test_a_waiting_place_that_was_given_up_is_not_asked_for_again(script: Script) -> None:
    identity = script.connection.join(game="kuhn")
    script.tell(Waiting(id=identity, ticket="t", game="kuhn", filled=1, seats=2))
    script.said()
    leaving = script.connection.leave(ticket="t")
    assert script.said() == [Leave(id=leaving, ticket="t")]
    script.tell(Left(id=leaving, ticket="t"))
    assert script.again() == []


def test_withdrawing_before_the_ticket_is_known(script: Script) -> None:
    identity = script.connection.join(game="kuhn")
    script.connection.withdraw(identity)
    script.said()
    assert script.tell(Waiting(id=identity, ticket="t", game="kuhn", filled=1, seats=2)) == []
    assert [type(message) for message in script.said()] == [Leave]


def test_a_seat_that_crosses_its_withdrawal_is_given_back(script: Script) -> None:
    identity = script.connection.join(game="kuhn")
    script.tell(Waiting(id=identity, ticket="t", game="kuhn", filled=1, seats=2))
    script.connection.withdraw(identity)
    script.said()
    assert script.tell(seated(identity=identity)) == []
    assert script.said() == [Leave(id="n-3", match="m")]
    assert script.connection.seats == {}
    script.connection.withdraw("unheard of")
    assert script.said() == []


def test_events_are_handed_out_once(seat: Script) -> None:
    assert seat.tell(events(0, "a", "b")) == [events(0, "a", "b")]
    assert seat.tell(events(0, "a", "b")) == []
    assert seat.tell(events(1, "b", "c")) == [events(2, "c")]
    assert seat.tell(events(3)) == []
    assert seat.connection.seats["m"].seen == 3


def test_a_gap_in_the_events_is_noticed(seat: Script) -> None:
    seat.tell(events(0, "a"))
    with pytest.raises(ProtocolError, match="1 are known, the next came as 2") as caught:
        seat.tell(events(2, "c"))
    assert caught.value.wire == "out_of_order"
    assert seat.again() == [Resume(id="n-2", resume="secret-m", seen=1)]


def test_what_concerns_no_held_seat_is_dropped(script: Script) -> None:
    assert script.tell(events(0, "a"), turn(1), OVER) == []
    assert script.connection.act("m", request=1, action="x") is False


def test_an_answer(seat: Script) -> None:
    assert seat.tell(turn(1)) == [turn(1)]
    assert seat.connection.act("m", request=2, action="x") is False
    assert seat.connection.act("m", request=1, action="x", thought="hm") is True
    assert seat.connection.act("m", request=1, action="y") is False
    assert seat.said() == [Act(match="m", request=1, action="x", thought="hm")]
    taken = Acted(match="m", request=1)
    assert seat.tell(taken) == [taken]
    assert seat.connection.act("m", request=1, action="x") is False


def test_a_turn_comes_again_after_a_failure_under_a_new_request(seat: Script) -> None:
    seat.tell(turn(1))
    seat.connection.act("m", request=1, failure="unparsed", reason="no idea")
    seat.tell(Acted(match="m", request=1))
    assert seat.tell(turn(2)) == [turn(2)]
    assert seat.connection.act("m", request=2, action=("a", "b")) is True
    assert seat.said()[-1] == Act(match="m", request=2, action=["a", "b"])


def test_a_repeated_turn_is_not_handed_out_again(seat: Script) -> None:
    seat.tell(turn(1))
    seat.again()
    assert seat.tell(seated(identity="n-2"), turn(1, deadline_s=7)) == []
    held = seat.connection.seats["m"].turn
    assert held is not None and held.deadline_s == 7
    assert seat.connection.act("m", request=1, action="x") is True


def test_an_answer_whose_receipt_is_open_is_sent_again_with_its_turn(seat: Script) -> None:
    seat.tell(turn(1))
    seat.connection.act("m", request=1, action="x")
    seat.said()
    assert [type(message) for message in seat.again()] == [Resume]
    assert seat.tell(seated(identity="n-2")) == []
    assert seat.said() == []
    assert seat.tell(turn(1)) == []
    assert seat.said() == [Act(match="m", request=1, action="x")]


def test_an_answer_that_had_arrived_is_not_sent_again(seat: Script) -> None:
    seat.tell(turn(1))
    seat.connection.act("m", request=1, action="x")
    seat.again()
    assert seat.tell(seated(identity="n-2"), events(0, "moved"), turn(2)) == [events(0, "moved"), turn(2)]
    assert seat.said() == []


def test_an_answer_given_while_the_connection_is_down(seat: Script) -> None:
    seat.tell(turn(1))
    seat.connection.start()
    assert seat.connection.act("m", request=1, action="x") is True
    assert [type(message) for message in seat.said()] == [Hello]
    seat.tell(WELCOME)
    assert [type(message) for message in seat.said()] == [Resume]
    seat.tell(seated(identity="n-2"), turn(1))
    assert seat.said() == [Act(match="m", request=1, action="x")]


def test_an_answer_given_while_the_seat_is_taken_up_again(seat: Script) -> None:
    seat.tell(turn(1))
    seat.again()
    seat.connection.act("m", request=1, action="x")
    assert seat.said() == []
    seat.tell(seated(identity="n-2"), turn(1))
    assert seat.said() == [Act(match="m", request=1, action="x")]


def test_a_stale_answer_is_told(seat: Script) -> None:
    seat.tell(turn(1))
    seat.connection.act("m", request=1, action="x")
    stale = Stale(match="m", request=1, reason="deadline")
    assert seat.tell(stale) == [stale]
    assert seat.connection.seats["m"].turn is None


@pytest.mark.parametrize("kind", ["forced", "forfeit"])
def test_a_turn_that_was_played_for_the_seat_is_closed(seat: Script, kind: str) -> None:
    seat.tell(turn(1))
    seat.tell(events(0, kind))
    assert seat.connection.act("m", request=1, action="x") is False


def test_over_comes_once_and_ends_the_seat(seat: Script) -> None:
    assert seat.tell(OVER, OVER) == [OVER]
    assert seat.again() == []


def test_a_seat_that_is_not_held_any_more(seat: Script) -> None:
    seat.again()
    gone = Error(code="bad_resume", message="no such seat", id="n-2")
    assert seat.tell(gone) == [gone, Left(id="n-2", match="m", reason="expired")]
    assert seat.again() == []


def test_a_seat_that_cannot_be_taken_up_just_now_is_kept(seat: Script) -> None:
    seat.again()
    with pytest.raises(ProtocolError, match="m could not be taken up: slow down"):
        seat.tell(Error(code="rate_limited", message="slow down", id="n-2"))
    assert seat.again() == [Resume(id="n-3", resume="secret-m", seen=0)]


def test_a_seat_that_another_connection_took_over_is_not_taken_back(seat: Script) -> None:
    taken = Error(code="taken", message="taken over", match="m")
    assert seat.tell(taken) == [taken]
    assert seat.again() == []


def test_a_server_that_has_forgotten_events_is_not_played_on(seat: Script) -> None:
    seat.tell(events(0, "a", "b"))
    seat.again()
    assert seat.tell(seated(identity="n-2", events=1)) == [Left(id="n-2", match="m", reason="unavailable")]
    assert seat.connection.seats == {}


def test_a_seat_that_ended_while_its_resume_was_under_way(seat: Script) -> None:
    seat.again()
    seat.tell(Left(match="m", reason="expired"))
    assert seat.again() == []


def test_a_seat_that_the_server_knows_nothing_of(seat: Script) -> None:
    unknown = Error(code="unknown_match", message="you have no seat there", match="m")
    assert seat.tell(unknown) == [unknown, Left(match="m", reason="unavailable")]
    assert seat.again() == []


def test_leaving_a_seat_that_the_server_knows_nothing_of(seat: Script) -> None:
    identity = seat.connection.leave(match="m")
    seat.tell(Error(code="unknown_match", message="you have no seat there", id=identity, match="m"))
    assert seat.again() == []


def test_watching_an_unknown_match_costs_no_seat(seat: Script) -> None:
    identity = seat.connection.watch(match="m")
    unknown = Error(code="unknown_match", message="no such match", id=identity, match="m")
    assert seat.tell(unknown) == [unknown]
    assert "m" in seat.connection.seats


def test_a_new_resume_token_is_used(seat: Script) -> None:
    seat.again()
    seat.tell(seated(identity="n-2").model_copy(update={"resume": "newer"}))
    assert seat.again() == [Resume(id="n-3", resume="newer", seen=0)]


def test_watching_goes_on_after_a_loss_until_it_is_ended(script: Script) -> None:
    first = script.connection.watch(match="m")
    second = script.connection.watch(match="m", perspective="all")
    assert [message.id for message in script.said() if isinstance(message, Watch)] == [first, second]
    assert script.again() == [Watch(id=second, match="m", perspective="all")]
    script.connection.unwatch(match="m")
    assert [type(message) for message in script.said()] == [Unwatch]
    assert script.again() == []


def test_a_match_that_was_watched_to_its_end(script: Script) -> None:
    script.connection.watch(match="m")
    script.tell(Frames(match="m", first=0, entries=[], over=True))
    assert script.again() == []


def test_challenges(script: Script) -> None:
    asked = script.connection.challenge(opponent="you", game="kuhn")
    answered = script.connection.respond(ticket="t", accept=False)
    assert len(script.said()) == 2
    script.tell(Left(id=asked, reason="declined"), Left(id=answered, ticket="t", reason="declined"))
    assert script.again() == []


def test_unknown_frames_are_errors(script: Script) -> None:
    with pytest.raises(ProtocolError):
        script.connection.receive("{}")


@pytest.mark.parametrize("action", [7, ["a", 7], None, "\ud800"])
def test_an_answer_that_is_none_is_refused_here(seat: Script, action: Any) -> None:
    seat.tell(turn(1))
    with pytest.raises(ProtocolError, match="allowed is a string") as caught:
        seat.connection.act("m", request=1, action=action)
    assert caught.value.wire == "bad_message"
    assert seat.connection.act("m", request=1, action="x") is True


def test_an_answer_that_is_too_long_is_refused_here(seat: Script) -> None:
    seat.tell(turn(1))
    with pytest.raises(ProtocolError, match=f"allowed are {MAX_CLIENT_BYTES}") as caught:
        seat.connection.act("m", request=1, action="x" * MAX_CLIENT_BYTES)
    assert caught.value.wire == "too_large"


@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
@pytest.mark.parametrize("character", ["x", "思", "\x01", "\U0001f600", "\ud800"])
def test_a_long_thought_is_cut_to_the_frame(subprotocol: str, character: str) -> None:
    connection = ClientConnection(subprotocol=subprotocol)
    connection.start()
    for message in (WELCOME, seated(), turn(1)):
        connection.receive(encode(message, subprotocol=subprotocol))
    connection.frames_to_send()
    connection.act("m", request=1, action="y" * 1000, thought=character * 100_000, reason=character * 5000)
    [frame] = connection.frames_to_send()
    answer = decode(frame, sender="client", subprotocol=subprotocol)
    assert isinstance(answer, Act)
    assert answer.action == "y" * 1000 and answer.thought and len(answer.thought) > 5000


def test_a_server_with_a_smaller_limit() -> None:
    script = Script()
    script.tell(WELCOME.model_copy(update={"max_bytes": 1000}), seated(), turn(1))
    with pytest.raises(ProtocolError, match="allowed are 1000"):
        script.connection.act("m", request=1, action="x" * 1000)


# Whole matches against the model of a server


class Line:
    """Carries frames between a client and the model, and loses the connection where it is told to.

    Frames are carried one by one. `lost` names the steps (frames carried in either direction, counted) at which
    the connection breaks instead: everything under way is then gone, on both sides.
    """

    def __init__(self, arena: ModelArena, lost: set[int], **options: Any) -> None:
        self.arena = arena
        self.lost = lost
        self.steps = 0
        self.client = ClientConnection(**options)
        self.up: list[bytes | str] = []
        self.down: list[bytes | str] = []
        self.session: ModelSession
        self.told: list[Message] = []
        self.reconnect()

    def reconnect(self) -> None:
        self.client.start()
        self.session = self.arena.connect(self.client.subprotocol)
        self.up, self.down = [], []

    def run(self, answer: Callable[[ClientConnection, Turn], None]) -> None:
        """Carry frames until nothing moves any more."""
        while True:
            self.up += self.client.frames_to_send()
            self.down += self.session.frames_to_send()
            if not self.up and not self.down:
                return
            self.steps += 1
            if self.steps in self.lost:
                self.session.lost()
                self.reconnect()
            elif self.up:
                self.session.receive(self.up.pop(0))
            else:
                for message in self.client.receive(self.down.pop(0)):
                    self.told.append(message)
                    if isinstance(message, Turn):
                        answer(self.client, message)


def choose(client: ClientConnection, asked: Turn) -> None:
    """Answer at random, the same to the same request; now and then wrongly."""
    rng = random.Random(asked.request)
    space = space_from_data(asked.space)
    if rng.random() < 0.1:
        client.act(asked.match, request=asked.request, failure="unparsed", reason="no idea")
    else:
        client.act(asked.match, request=asked.request, action=space.sample(rng))


def whole(game: str, lost: set[int], *, subprotocol: str = MSGPACK, token: str = "") -> Line:
    line = Line(ModelArena(token=token), lost, subprotocol=subprotocol, token=token, nonce="n")
    line.client.join(game=game)
    line.run(choose)
    return line


def outcome(line: Line) -> tuple[Any, ...]:
    """Return what the application was told of the match, and what the server had of it."""
    [match] = line.arena.matches.values()
    seen = [event for message in line.told if isinstance(message, Events) for event in message.events]
    asked = [message.request for message in line.told if isinstance(message, Turn)]
    over = [message for message in line.told if isinstance(message, Over)]
    assert seen == [[event.kind, event.data] for event in match.told]
    assert asked == sorted(set(asked)) == list(range(1, match.request + 1))
    assert len(over) == 1 and over[0] == match.over
    assert len([message for message in line.told if isinstance(message, Seated)]) == 1
    assert line.client.seats == {}
    assert match.referee.counts["late"] == 0
    return seen, asked, over, dict(match.referee.counts)


@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
def test_a_whole_match(game: str, subprotocol: str) -> None:
    outcome(whole(game, set(), subprotocol=subprotocol, token="secret"))


@pytest.mark.parametrize("token", ["", "secret"])
@pytest.mark.parametrize("game", ["kuhn", "werewolf"])
def test_one_loss_at_every_step(game: str, token: str) -> None:
    smooth = whole(game, set(), token=token)
    expected = outcome(smooth)
    for step in range(1, smooth.steps + 1):
        assert outcome(whole(game, {step}, token=token)) == expected


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(1, 400), max_size=60), st.sampled_from(SUBPROTOCOLS))
def test_any_losses(lost: set[int], subprotocol: str) -> None:
    # A run in which every handshake is cut would never end; three steps make one, so most come through.
    expected = outcome(whole("avalon", set(), subprotocol=subprotocol))
    assert outcome(whole("avalon", lost, subprotocol=subprotocol)) == expected


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_a_hostile_server_gives_protocol_errors(frames: list[bytes]) -> None:
    connection = ClientConnection()
    connection.start()
    for frame in [encode(WELCOME, subprotocol=MSGPACK), *frames]:
        try:
            connection.receive(frame)
        except (ProtocolError, Refused):
            connection.start()


SERVER_SAYS = st.one_of(
    st.just(WELCOME),
    st.just(Authenticated(name="me", scopes=[])),
    st.builds(
        seated,
        st.sampled_from("mn"),
        identity=st.sampled_from(["", "n-1", "n-2", "n-3"]),
        events=st.integers(0, 3),
    ),
    st.builds(turn, st.integers(0, 3), match=st.sampled_from("mn")),
    st.builds(events, st.integers(0, 3), st.sampled_from(["a", "forced"])),
    st.builds(Acted, match=st.sampled_from("mn"), request=st.integers(0, 3)),
    st.builds(
        Left,
        id=st.sampled_from(["", "n-1", "n-2"]),
        ticket=st.sampled_from(["", "t"]),
        match=st.sampled_from(["", "m"]),
    ),
    st.builds(
        Waiting,
        id=st.sampled_from(["n-1", "n-2"]),
        ticket=st.just("t"),
        game=st.just("kuhn"),
        filled=st.just(1),
        seats=st.just(2),
    ),
    st.builds(
        Error,
        code=st.sampled_from(["bad_resume", "taken", "rate_limited", "unauthorised"]),
        message=st.just("no"),
        id=st.sampled_from(["", "n-1", "n-2", "n-3"]),
        match=st.sampled_from(["", "m"]),
    ),
    st.just(OVER),
)
CLIENT_DOES = st.sampled_from(["start", "join", "act", "leave", "withdraw", "watch", "unwatch", "cup"])


@settings(max_examples=200, deadline=None)
@given(st.lists(SERVER_SAYS | CLIENT_DOES, max_size=25), st.sampled_from(["", "secret"]))
def test_no_order_of_things_breaks_it(steps: list[Any], token: str) -> None:
    connection = ClientConnection(subprotocol=JSON, token=token, nonce="n")
    connection.start()
    seen: dict[str, int] = {}
    for step in steps:
        match step:
            case "start":
                connection.start()
            case "join":
                connection.join(game="kuhn")
            case "cup":
                connection.join(where="tournament", tournament="cup")
            case "act":
                for match, held in connection.seats.items():
                    if held.turn is not None:
                        connection.act(match, request=held.turn.request, action="x")
            case "leave":
                connection.leave(match="m")
            case "withdraw":
                connection.withdraw("n-1")
            case "watch":
                connection.watch(match="m")
            case "unwatch":
                connection.unwatch(match="m")
            case _:
                try:
                    for message in connection.receive(encode(step, subprotocol=JSON)):
                        if isinstance(message, Seated) and message.match not in seen:
                            seen[message.match] = 0
                        elif isinstance(message, Left | Over):
                            seen.pop(message.match, None)
                        elif isinstance(message, Error) and message.code == "taken":
                            seen.pop(message.match, None)
                        elif isinstance(message, Events):
                            assert message.first == seen[message.match]
                            seen[message.match] += len(message.events)
                except (ProtocolError, Refused):
                    connection.start()
        for frame in connection.frames_to_send():
            decode(frame, sender="client", subprotocol=JSON)
