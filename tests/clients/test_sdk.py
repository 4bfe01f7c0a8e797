"""The client library on real sockets: matches, losses at every step, and what it says when it cannot go on."""

import asyncio
import random
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import serve as serve_websockets

from clients import blocking
from clients.errors import BadAddress, ClientError, Disconnected, ProtocolError, Refused, SeatLost
from clients.protocol import messages as wire
from clients.protocol.codec import JSON, MSGPACK, SUBPROTOCOLS
from clients.protocol.messages import Snapshot
from clients.sdk import Arena, Match, Turn, connect
from games.base import Event
from games.errors import RulesVersionMismatch, UnknownGame
from games.registry import game_names
from tests.clients.fake_server import Cutter, ModelArena, serve

pytestmark = pytest.mark.usefixtures("no_blocking")


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario to its end, and see that it leaves no task behind."""

    async def whole() -> None:
        await scenario()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(whole())


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that has no event of its own; the test's timeout ends it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


@asynccontextmanager
async def world(
    model: ModelArena | None = None, *, cuts: Sequence[float | None] = (), **options: Any
) -> AsyncIterator[tuple[ModelArena, Cutter, Arena]]:
    """A model of the server, a proxy in front of it, and a client behind the proxy."""
    model = ModelArena() if model is None else model
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serve(model))
        cutter = await stack.enter_async_context(Cutter(port, cuts).run())
        arena = await stack.enter_async_context(connect(f"ws://127.0.0.1:{cutter.port}", **options))
        yield model, cutter, arena


async def play(match: Match) -> list[int]:
    """Play at random, the same to the same request; return the requests that were asked."""
    asked = []
    async for turn in match:
        asked.append(turn.request)
        assert await turn.play(turn.space.sample(random.Random(turn.request))) == "taken"
    return asked


def same(match: Match, model: ModelArena) -> None:
    """See that a seat was told all that it was to be told, once and in order."""
    there = model.matches[match.id]
    assert [(event.kind, event.data) for event in match.events] == [(e.kind, e.data) for e in there.told]
    assert match.over == there.over
    assert vars_of(match.view) == vars_of(there.state.view(match.seat))


def vars_of(view: Any) -> Any:
    return (
        {name: getattr(view, name) for name in view.__slots__} if hasattr(view, "__slots__") else vars(view)
    )


@pytest.mark.parametrize("subprotocol", SUBPROTOCOLS)
@pytest.mark.parametrize("game", ["kuhn", "avalon", "werewolf"])
def test_a_match(game: str, subprotocol: str) -> None:
    async def scenario() -> None:
        async with world(ModelArena(token="secret"), token="secret", subprotocol=subprotocol) as (
            model,
            _,
            arena,
        ):
            assert arena.identity is not None and arena.identity.name == "me"
            assert arena.server is not None and arena.server.server == "model"
            match = await arena.join(game=game, name="me", agent="test 1")
            asked = await play(match)
            assert asked == list(range(1, len(asked) + 1)) and asked
            same(match, model)
            assert match.ended in ("won", "lost", "drawn", "turn_limit")
            assert match.names[0] == "me"
            assert await match.result() is match.over
            assert arena.matches == {}

    run(scenario)


def test_everything_that_a_seat_is_told() -> None:
    async def scenario() -> None:
        async with world() as (_, _, arena):
            match = await arena.join(game="kuhn")
            kinds = []
            async for update in match.updates():
                kinds.append(type(update))
                if isinstance(update, Turn):
                    assert update is match.turn and update.open
                    assert 0 < update.seconds_left() <= 60
                    await update.play(update.space.default)
                    assert not update.open
                    await update.wait_closed()
            assert kinds[0] is Event and Turn in kinds and kinds[-1] is wire.Over
            again = [type(update) async for update in match.updates()]
            assert again == kinds

    run(scenario)


def test_two_matches_at_once_on_one_connection() -> None:
    async def scenario() -> None:
        async with world() as (model, cutter, arena):
            matches = await asyncio.gather(arena.join(game="avalon"), arena.join(game="werewolf"))
            await asyncio.gather(*map(play, matches))
            for match in matches:
                same(match, model)
            assert cutter.connections == 1

    run(scenario)


@pytest.mark.parametrize("token", ["", "secret"])
def test_cut_after_and_within_every_message(token: str) -> None:
    async def scenario() -> None:
        for halves in range(24):
            model = ModelArena(token=token)
            async with world(model, cuts=[None, halves / 2], token=token) as (_, cutter, arena):
                cutter.cut()
                match = await arena.join(game="kuhn", seats=2)
                await play(match)
                same(match, model)
                assert model.matches[match.id].referee.counts["late"] == 0
                assert len(model.matches) == 1

    run(scenario)


@pytest.mark.parametrize("game", ["avalon", "werewolf"])
def test_cut_again_and_again(game: str) -> None:
    async def scenario() -> None:
        model = ModelArena()
        cuts = [None, *(halves / 2 for halves in range(5, 40, 3))]
        async with world(model, cuts=cuts) as (_, cutter, arena):
            match = await arena.join(game=game)
            cutter.cut()
            await play(match)
            same(match, model)
            assert cutter.connections > 2
            assert len(model.matches) == 1

    run(scenario)


def test_a_cut_while_the_agent_thinks() -> None:
    async def scenario() -> None:
        said: list[str] = []
        async with world(on_status=lambda status, why: said.append(status)) as (model, cutter, arena):
            match = await arena.join(game="kuhn")
            async for turn in match:
                before = turn.asked
                cutter.cut()
                await until(lambda: model.matches[match.id].session is None)
                # The answer is given while there is no connection; it arrives all the same.
                assert await turn.play(turn.space.default) == "taken"
                assert turn.asked is not before
            same(match, model)
            assert said[:3] == ["connected", "reconnecting", "connected"]

    run(scenario)


def test_a_turn_that_was_played_for_the_seat_is_passed_over() -> None:
    async def scenario() -> None:
        async with world() as (model, _, arena):
            match = await arena.join(game="avalon")
            first = await anext(aiter(match))
            model.matches[match.id].timeout()
            await first.wait_closed()
            assert await first.play("too late") == "deadline"
            assert await play(match)
            same(match, model)
            assert "forced" in [event.kind for event in match.events]

    run(scenario)


def test_an_answer_that_comes_too_late_is_told_so() -> None:
    async def scenario() -> None:
        async with world() as (model, _, arena):
            match = await arena.join(game="kuhn")
            turn = await anext(aiter(match))
            there = model.matches[match.id]
            there.request += 1
            assert await turn.play(turn.space.default) == "deadline"

    run(scenario)


def test_answers_that_fail_are_asked_again_with_the_reason() -> None:
    async def scenario() -> None:
        async with world(ModelArena(retries=3)) as (model, _, arena):
            match = await arena.join(game="kuhn")
            turns = aiter(match)
            first = await anext(turns)
            assert await first.decline("no idea") == "taken"
            second = await anext(turns)
            assert (second.attempt, second.failure, second.reason) == (1, "unparsed", "no idea")
            assert await second.play("no such action") == "taken"
            third = await anext(turns)
            assert third.attempt == 2 and third.failure == "illegal" and "no such action" in third.reason
            with pytest.raises(ProtocolError):
                await third.play(7)  # type: ignore[arg-type]
            assert await third.pass_(thought="I pass") == "taken"
            counts = model.matches[match.id].referee.counts
            assert (counts["unparsed"], counts["illegal"]) == (1, 1)

    run(scenario)


def test_an_agent_that_failed_is_not_asked_again() -> None:
    async def scenario() -> None:
        async with world() as (model, _, arena):
            match = await arena.join(game="kuhn")
            async for turn in match:
                await turn.decline("it broke", failure="error")
            assert model.matches[match.id].referee.counts["error"] >= 1

    run(scenario)


def test_leaving_a_match() -> None:
    async def scenario() -> None:
        async with world() as (model, _, arena):
            match = await arena.join(game="avalon")
            turn = await anext(aiter(match))
            match.leave()
            with pytest.raises(SeatLost, match="left") as caught:
                await match.result()
            assert caught.value.reason == "left"
            assert await turn.play(turn.space.default) == "closed"
            over = model.matches[match.id].over
            assert over is not None and over.ended[0] == "forfeit"

    run(scenario)


def test_a_waiting_place() -> None:
    async def scenario() -> None:
        seen = []
        async with world(ModelArena(hold=True)) as (model, _, arena):
            told = asyncio.Event()

            def waiting(message: wire.Waiting) -> None:
                seen.append(message.filled)
                told.set()

            ticket = arena.ask(game="kuhn", on_waiting=waiting)
            await told.wait()
            assert ticket.waiting is not None and seen == [1]
            model.fill()
            await play(await ticket.match())
            with pytest.raises(SeatLost, match="has had its seat"):
                await ticket.match()

    run(scenario)


def test_giving_up_a_waiting_place() -> None:
    async def scenario() -> None:
        async with world(ModelArena(hold=True)) as (model, _, arena):
            ticket = arena.ask(game="kuhn")
            ticket.withdraw()
            with pytest.raises(SeatLost, match="given up"):
                await ticket.match()
            joining = asyncio.create_task(arena.join(game="kuhn"))
            await until(lambda: model.waiting)
            joining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await joining
            await until(lambda: not model.waiting)
            assert model.matches == {}

    run(scenario)


def test_a_waiting_place_outlives_a_cut() -> None:
    async def scenario() -> None:
        async with world(ModelArena(hold=True)) as (model, cutter, arena):
            ticket = arena.ask(game="kuhn")
            await until(lambda: model.waiting)
            cutter.cut()
            first = next(iter(model.waiting.values()))[0]
            await until(lambda: next(iter(model.waiting.values()))[0] is not first)
            model.fill()
            await play(await ticket.match())
            assert len(model.matches) == 1

    run(scenario)


def test_a_challenge_that_is_declined() -> None:
    async def scenario() -> None:
        async with world() as (_, _, arena):
            with pytest.raises(SeatLost) as caught:
                await arena.challenge("somebody", game="kuhn").match()
            assert caught.value.reason == "declined"

    run(scenario)


def test_being_challenged() -> None:
    async def scenario() -> None:
        async with world() as (model, _, arena):
            match = await arena.join(game="kuhn")
            session = model.matches[match.id].session
            assert session is not None
            session.send(wire.Challenged(ticket="t", opponent="you", game="kuhn", options={}))
            challenge = await anext(arena.challenges())
            assert (challenge.opponent, challenge.game) == ("you", "kuhn")
            challenge.decline()
            with pytest.raises(SeatLost, match="declined"):
                await challenge.accept().match()

    run(scenario)


def test_watching() -> None:
    async def scenario() -> None:
        async with world() as (_, _, arena):
            match = await arena.join(game="kuhn")
            await play(match)
            told = [message async for message in arena.watch(match.id)]
            assert isinstance(told[0], Snapshot) and isinstance(told[-1], wire.Frames) and told[-1].over
            with pytest.raises(Refused, match="unknown_match"):
                await anext(arena.watch("no such"))

    run(scenario)


@pytest.mark.parametrize("code", ["unknown_game", "limit", "rate_limited", "forbidden", "unauthorised"])
def test_a_request_that_is_refused(code: str) -> None:
    async def scenario() -> None:
        async with world(ModelArena(refuse=code)) as (_, _, arena):
            with pytest.raises(Refused, match="not now") as caught:
                await arena.join(game="kuhn")
            assert caught.value.wire == code

    run(scenario)


def test_options_that_the_game_refuses() -> None:
    async def scenario() -> None:
        async with world() as (_, _, arena):
            with pytest.raises(Refused, match="bad_setup"):
                await arena.join(game="kuhn", seats=9)
            with pytest.raises(ProtocolError, match="name"):
                await arena.join(game="kuhn", name="x" * 300)

    run(scenario)


def test_a_token_that_is_refused_is_shown_once() -> None:
    async def scenario() -> None:
        model = ModelArena(token="secret")
        async with serve(model) as port, Cutter(port).run() as cutter:
            with pytest.raises(Refused, match="no such token") as caught:
                async with connect(f"ws://127.0.0.1:{cutter.port}", token="wrong"):
                    raise AssertionError("it was let in")
            assert caught.value.wire == "unauthorised"
            assert cutter.connections == 1

    run(scenario)


def test_a_token_that_is_revoked_ends_it_at_the_next_connection() -> None:
    async def scenario() -> None:
        async with world(ModelArena(token="secret"), token="secret") as (model, cutter, arena):
            match = await arena.join(game="avalon")
            model.token = "another"
            cutter.cut()
            with pytest.raises(Refused, match="unauthorised"):
                await match.result()
            assert cutter.connections == 2

    run(scenario)


def test_a_seat_that_another_connection_takes_over() -> None:
    async def scenario() -> None:
        async with world() as (model, cutter, arena):
            match = await arena.join(game="avalon")
            there = model.matches[match.id]
            there.attach(model.connect(), "", 0)
            with pytest.raises(SeatLost) as caught:
                await match.result()
            assert caught.value.reason == "taken"
            # And it does not take the seat back when it comes again.
            cutter.cut()
            await play(await arena.join(game="kuhn"))
            assert there.session is not None and there.session.subprotocol == MSGPACK

    run(scenario)


def test_a_seat_that_is_not_held_any_more() -> None:
    async def scenario() -> None:
        async with world() as (model, cutter, arena):
            match = await arena.join(game="avalon")
            model.matches[match.id].resume = "changed"
            cutter.cut()
            with pytest.raises(SeatLost) as caught:
                await match.result()
            assert caught.value.reason == "expired"
            await play(await arena.join(game="kuhn"))

    run(scenario)


def test_a_server_that_is_gone_for_good() -> None:
    async def scenario() -> None:
        async with world(reconnect_s=0.3) as (_, cutter, arena):
            match = await arena.join(game="avalon")
            turn = await anext(aiter(match))
            cutter.refuse = True
            cutter.cut()
            with pytest.raises(Disconnected, match=r"tried for 0\.3 s") as caught:
                await turn.play(turn.space.default)
            assert "\n" not in str(caught.value)
            for call in (match.result, match.line.join, arena.challenges().__anext__):  # type: ignore[attr-defined]
                with pytest.raises(Disconnected):
                    await call()
            assert arena.status == "closed"
            assert cutter.connections >= 2, "it was tried again at least once"

    run(scenario)


def test_the_server_s_grace_bounds_the_attempts() -> None:
    async def scenario() -> None:
        async with world(ModelArena(grace_s=0.2)) as (_, cutter, arena):
            match = await arena.join(game="avalon")
            cutter.refuse = True
            cutter.cut()
            with pytest.raises(Disconnected, match=r"tried for 0\.2 s"):
                await match.result()

    run(scenario)


def test_closing_ends_everything() -> None:
    async def scenario() -> None:
        async with world() as (_, _, arena):
            match = await arena.join(game="avalon")
            await arena.close()
            with pytest.raises(Disconnected, match="closed here"):
                await match.result()
            with pytest.raises(Disconnected, match="closed here"):
                arena.ask(game="kuhn")

    run(scenario)


def test_a_connection_is_entered_first() -> None:
    with pytest.raises(ClientError, match="async with"):
        connect("ws://127.0.0.1:1").ask(game="kuhn")


def test_a_game_that_is_not_installed_or_has_other_rules() -> None:
    game_names()  # the list of installed games is read from disk once

    async def scenario() -> None:
        async with world(ModelArena(hold=True)) as (model, _, arena):
            ticket = arena.ask(game="kuhn")
            await until(lambda: model.waiting)
            session, join = next(iter(model.waiting.values()))
            model.waiting.clear()
            seated = wire.Seated(
                id=join.id, match="m", game="chess", rules="1", options={}, seats=2, seat=0, names=[],
                resume="r", events=0, retries=0, deadline_s=1,
            )  # fmt: skip
            session.send(seated)
            with pytest.raises(UnknownGame, match="chess"):
                await ticket.match()
            other = arena.ask(game="kuhn")
            await until(lambda: model.waiting)
            session, join = next(iter(model.waiting.values()))
            session.send(
                seated.model_copy(update={"id": join.id, "game": "kuhn", "rules": "99", "match": "n"})
            )
            with pytest.raises(RulesVersionMismatch, match="99"):
                await other.match()
            left = [message for message in session.received if isinstance(message, wire.Leave)]
            assert "m" in [message.match for message in left]

    run(scenario)


def test_a_view_that_cannot_read_an_event_costs_that_seat_alone() -> None:
    async def scenario() -> None:
        async with world() as (model, _, arena):
            match, other = await asyncio.gather(arena.join(game="avalon"), arena.join(game="kuhn"))
            there = model.matches[match.id]
            assert there.session is not None
            there.session.send(wire.Events(match=match.id, first=len(there.told), events=[["proposal", {}]]))
            with pytest.raises(SeatLost, match="cannot be played") as caught:
                await match.result()
            assert caught.value.reason == "unreadable"
            await play(other)

    run(scenario)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("127.0.0.1:8765", "the form is ws://"),
        ("http://127.0.0.1:8765", "try ws://127.0.0.1:8765"),
        ("https://example.org", "try wss://example.org"),
        ("ws://", "a host is needed"),
        ("ws://host:port", "URL: got"),
        ("ws://[::1", "URL: got"),
        ("ws://me:secret@host", "nothing secret"),
        ("ws://host/?token=secret", "nothing secret"),
        ("", "URL: got ''"),
    ],
)
def test_addresses_that_are_none(url: str, text: str) -> None:
    with pytest.raises(BadAddress, match=text) as caught:
        connect(url)
    assert "secret@" not in str(caught.value) and "=secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def refused(url: str, **options: Any) -> ClientError:
    with pytest.raises(ClientError) as caught:
        async with connect(url, **options):
            raise AssertionError("it was let in")
    assert "\n" not in str(caught.value)
    return caught.value


def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

        async def scenario() -> None:
            error = await refused(f"ws://127.0.0.1:{port}")
            assert isinstance(error, Disconnected) and "connection refused" in str(error)
            assert "refused" in str(await refused(f"ws://localhost:{port}"))

        run(scenario)


def test_what_answers_is_no_arena() -> None:
    async def answer(text: bytes) -> AsyncIterator[int]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1000)
            writer.write(text)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def scenario() -> None:
        for text, kind, words in [
            (b"SSH-2.0-OpenSSH\r\n", BadAddress, "no websocket server; if TLS is spoken there, use wss://"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", BadAddress, "HTTP 200"),
            (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", BadAddress, "HTTP 404"),
            (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", Refused, "HTTP 403"),
            (b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n", Disconnected, "HTTP 429"),
            (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", Disconnected, "HTTP 503"),
        ]:
            async for port in answer(text):
                error = await refused(f"ws://127.0.0.1:{port}")
                assert isinstance(error, kind) and words in str(error), error
            async for port in answer(text):
                error = await refused(f"wss://127.0.0.1:{port}")
                assert isinstance(error, BadAddress) and "speaks no TLS" in str(error), error

    run(scenario)


def test_a_websocket_server_that_speaks_something_else() -> None:
    async def scenario() -> None:
        async def handle(websocket: Any) -> None:
            await websocket.wait_closed()

        async with serve_websockets(handle, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            error = await refused(f"ws://127.0.0.1:{port}")
            assert isinstance(error, Refused) and error.wire == "version"

    run(scenario)


@pytest.mark.parametrize("says", [None, "not json", '{"type":"turn"}'])
def test_a_server_that_does_not_shake_hands(says: str | None) -> None:
    async def scenario() -> None:
        async def handle(websocket: Any) -> None:
            if says is not None:
                await websocket.send(says)
            await websocket.wait_closed()

        async with serve_websockets(handle, "127.0.0.1", 0, subprotocols=[JSON]) as server:  # type: ignore[list-item]
            port = server.sockets[0].getsockname()[1]
            # Who says something is judged by it, however long it takes.
            open_timeout_s = 0.3 if says is None else 3600.0
            error = await refused(f"ws://127.0.0.1:{port}", subprotocol=JSON, open_timeout_s=open_timeout_s)
            assert isinstance(error, Disconnected if says is None else ProtocolError)

    run(scenario)


def test_tls(tmp_path: Any) -> None:
    context, trusted = certificates(tmp_path)

    async def scenario() -> None:
        async with serve(ModelArena(), ssl=context) as port:
            error = await refused(f"wss://127.0.0.1:{port}")
            assert isinstance(error, BadAddress) and "certificate is not trusted" in str(error)
            error = await refused(f"ws://127.0.0.1:{port}")
            assert "if TLS is spoken there, use wss://" in str(error)
            async with connect(f"wss://127.0.0.1:{port}", ssl=trusted) as arena:
                await play(await arena.join(game="kuhn"))

    run(scenario)


def certificates(folder: Any) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server with a fresh certificate of its own, and of a client that trusts it."""
    import shutil
    import subprocess

    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, ssl.create_default_context(cafile=str(certificate))


def test_importing_the_sdk_is_light() -> None:
    import subprocess
    import sys

    code = "import sys, clients.blocking; print([m for m in ('websockets', 'stamina') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Server:
    """The model and a proxy in front of it in a thread of their own, for clients that block."""

    def __init__(self, model: ModelArena) -> None:
        self.model = model
        self.loop = asyncio.new_event_loop()
        self.started = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.port = 0
        self.cutter: Cutter

    def _run(self) -> None:
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self.stop = asyncio.Event()
        async with serve(self.model) as port, Cutter(port).run() as self.cutter:
            self.port = self.cutter.port
            self.started.set()
            await self.stop.wait()

    def __enter__(self) -> "Server":
        self.thread.start()
        self.started.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()

    def cut(self) -> None:
        self.loop.call_soon_threadsafe(self.cutter.cut)


def test_the_blocking_client() -> None:
    before = threading.active_count()
    with Server(ModelArena(token="secret", retries=3)) as server:
        with blocking.connect(f"ws://127.0.0.1:{server.port}", token="secret") as arena:
            match = arena.join(game="avalon")
            for turn in match:
                assert turn.seconds_left() > 0
                if turn.request == 1:
                    server.cut()
                    assert turn.decline("no idea") == "taken"
                elif turn.request == 2:
                    assert turn.attempt == 1
                    assert turn.pass_() == "taken"
                else:
                    assert turn.play(turn.space.sample(random.Random(turn.request))) == "taken"
            there = server.model.matches[match.id]
            assert match.over == there.over and match.ended == there.over.ended[0]  # type: ignore[union-attr]
            assert [event.data for event in match.events] == [event.data for event in there.told]
            assert vars_of(match.view) == vars_of(there.state.view(0))
            left = arena.join(game="avalon")
            left.leave()
            with pytest.raises(SeatLost):
                list(left)
        with pytest.raises(ClientError, match="with connect"):
            arena.join(game="kuhn")
    assert threading.active_count() == before


def test_the_blocking_client_cannot_connect() -> None:
    before = threading.active_count()
    with pytest.raises(Disconnected), blocking.connect("ws://127.0.0.1:1"):
        raise AssertionError("it was let in")
    assert threading.active_count() == before
