"""Frames that no well-behaved client sends: malformed, oversized, out of order, replayed."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgpack

from arena.contest import OnlineTournament
from arena.session import Session
from clients.protocol.codec import JSON, decode, encode
from clients.protocol.messages import (
    CLIENT_MESSAGES,
    MAX_CLIENT_BYTES,
    Act,
    Error,
    Events,
    Hello,
    Join,
    Respond,
    Resume,
    Seated,
    Unwatch,
    Waiting,
    Watch,
)
from tests.arena.hosting import House

WORDS = (
    "",
    "kuhn",
    "avalon",
    "cup",
    "public",
    "seat",
    "all",
    "lobby",
    "match",
    "tournament",
    "check",
    "bet",
    "\x00\x1b[2J\u202e\ud800",
    "../../etc/passwd",
    "x" * 300,
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**53, 2**63 - 1, -(2**63), 0.5, float("nan"), float("inf"), [], {}, [[]], [None],
    {"a": 1}, {"": {"": []}}, b"bytes", [1] * 100,
)  # fmt: skip


class FrameSource:
    """Draws frames from a seed.

    Args:
        seed: of the draws.
        subprotocol: the encoding that most of them have.
        known: texts worth trying: tokens, matches, tickets, ids.
    """

    def __init__(self, seed: int, *, subprotocol: str, known: Sequence[str]) -> None:
        self.rng = random.Random(seed)
        self.subprotocol = subprotocol
        self.known = list(known)
        self.sent: list[bytes | str] = []

    def frame(self) -> bytes | str:
        """Return one frame: now and then one that was sent before."""
        rng = self.rng
        if self.sent and rng.random() < 0.15:
            return rng.choice(self.sent)
        roll = rng.random()
        if roll < 0.03:
            frame: bytes | str = rng.randbytes(rng.randrange(200))
        elif roll < 0.04:
            frame = self._encode(
                {"type": "ping", "id": "x", "pad": "y" * (MAX_CLIENT_BYTES + rng.randrange(99))}
            )
        elif roll < 0.05:
            frame = self._encode(self._nested(rng.choice((5, 40, 2000))))
        elif roll < 0.35:
            frame = self._encode(self._plausible())
        else:
            frame = self._encode(self._message())
            if roll < 0.45:
                frame = self._damaged(frame)
        if len(self.sent) < 500:
            self.sent.append(frame)
        return frame

    def _message(self) -> Any:
        rng = self.rng
        kind = rng.choice(CLIENT_MESSAGES)
        message: dict[str, Any] = {"type": kind.model_fields["type"].default}
        for name in kind.model_fields:
            if name != "type" and rng.random() < 0.9:
                message[name] = self._value(name)
        if rng.random() < 0.05:
            message["type"] = rng.choice((*WORDS, 7, None, "welcome", "seated", "turn"))
        return message

    def _plausible(self) -> dict[str, Any]:
        """Return what a client that plays might send, if not always now."""
        rng = self.rng
        known = rng.choice(self.known)
        match rng.randrange(6):
            case 0 | 1:
                return {"type": "join", "id": f"j{rng.randrange(10**6)}", "game": "kuhn", "name": "ann"}
            case 2 | 3:
                action = rng.choice(("check", "bet", "call", "fold"))
                return {"type": "act", "match": known, "request": rng.randrange(1, 4), "action": action}
            case 4:
                return {"type": "resume", "id": "r", "resume": known, "seen": rng.randrange(3)}
        return {"type": "watch", "id": "w", "match": known}

    def _value(self, name: str) -> Any:
        rng = self.rng
        if rng.random() < 0.12:
            return rng.choice((*VALUES, *WORDS))
        match name:
            case "versions":
                return [1]
            case "capabilities":
                return rng.choice(([], ["schema"]))
            case "options":
                return rng.choice(({}, {}, {}, {"stake": 1}, {"lady": True}))
            case "seats" | "seat":
                return rng.choice((None, 0, 1, 2, 5))
            case "request" | "seen":
                return rng.randrange(6)
            case "accept":
                return rng.random() < 0.5
            case "game":
                return rng.choice(("kuhn", "avalon"))
            case "where":
                return rng.choice(("lobby", "match", "tournament"))
            case "perspective":
                return rng.choice(("public", "seat", "all"))
            case "action":
                return rng.choice(("check", "bet", "call", "fold", ["seat 0", "seat 1"], None))
            case "failure":
                return rng.choice((None, None, "unparsed", "error"))
        return rng.choice((*self.known, *WORDS[:4], f"q{rng.randrange(4)}"))

    def _nested(self, depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value] if self.rng.random() < 0.5 else {"a": value}
        return {"type": "join", "id": "deep", "game": "kuhn", "options": {"deep": value}}

    def _damaged(self, frame: bytes | str) -> bytes | str:
        rng = self.rng
        if not frame:
            return frame
        at = rng.randrange(len(frame))
        if isinstance(frame, str):
            return frame[:at] + rng.choice(("", "\x00", '"', "}", "\ud800")) + frame[at + rng.randrange(3) :]
        return frame[:at] + rng.randbytes(rng.randrange(3)) + frame[at + rng.randrange(3) :]

    def _encode(self, value: Any) -> bytes | str:
        subprotocol = self.subprotocol
        if self.rng.random() < 0.02:
            subprotocol = "" if subprotocol == JSON else JSON
        try:
            if subprotocol == JSON:
                return json.dumps(value, default=str)
            packed: bytes = msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass")
            return packed
        except (ValueError, RecursionError):
            return b"\xdd\xff\xff\xff\xff" if subprotocol != JSON else "[" * 5000


async def pelt(house: House, *, subprotocol: str, frames: int, seed: int, answers: Counter[str]) -> None:
    """Throw frames at sessions of one house; every one is answered, taken, or closes its connection."""
    rng = random.Random(seed)
    source = FrameSource(seed, subprotocol=subprotocol, known=["cup", "ann"])
    cup = {"name": "cup", "game": "kuhn", "matches": 4, "players": 2}
    house.host.add_tournament(OnlineTournament.model_validate(cup))
    peer = house.peer(plays=False)
    peer.connect()
    session: Session | None = None
    seats: dict[str, int] = {}

    def hear() -> int:
        assert session is not None
        heard = 0
        while due := session.frames_to_send():
            for frame in due:
                heard += 1
                message = decode(frame, sender="server", subprotocol=subprotocol)
                answers[message.code if isinstance(message, Error) else message.type] += 1
                if isinstance(message, Seated):
                    seats[message.match] = message.seat
                    source.known += [message.match, message.resume]
                elif isinstance(message, Events):
                    peer.heard.append((message.match, seats[message.match], message))
                elif isinstance(message, Waiting):
                    source.known.append(message.ticket)
        del source.known[:-12]
        return heard

    for number in range(frames):
        if session is None:
            session = Session(
                house.host,
                subprotocol=subprotocol,
                address="10.0.0.3",
                gate=house.gate,
                wake=lambda: None,
                clock=house.clock.time,
            )
            if rng.random() < 0.9:
                session.receive(encode(Hello(), subprotocol=subprotocol))
        frame = source.frame()
        hear()
        session.receive(frame)
        if not hear() and session.closing is None:
            # Silence is right where the answer comes later (a seat, a receipt, a record), and for unwatch.
            message = decode(frame, sender="client", subprotocol=subprotocol)
            assert isinstance(message, Act | Join | Respond | Resume | Watch | Unwatch), message
            answers[f"later: {message.type}"] += 1
        if session.closing is not None:
            answers[f"close {session.closing[0]}"] += 1
        if session.closing is not None or rng.random() < 0.01:
            session.lost()
            session = None
        if number % 50 == 0:
            await asyncio.sleep(0)
            await house.wait(rng.choice((0, 1, 3)))
            if session is not None:
                hear()
    if session is not None:
        session.lost()
    await house.wait(200)
