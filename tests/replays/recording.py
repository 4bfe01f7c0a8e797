"""Records for tests: matches of random play, some with everything that can go wrong at a seat."""

import random
from collections.abc import Iterable
from dataclasses import replace

from games.base import Event
from games.referee import Entry, Input, Referee
from games.registry import load_game
from replays.codec import CHAIN_START, frame, link, pack
from replays.reader import FrameReader
from replays.record import Footer, Header, Record, SeatInfo
from replays.writer import RecordEncoder


def header(game: str = "kuhn", *, seats: int = 2, seed: int = 7, match: str = "m") -> Header:
    info = tuple(SeatInfo(f"p{seat}", "random", "1") for seat in range(seats))
    return Header(game, load_game(game).version, {}, seed, info, 1, match)


def referee(head: Header) -> Referee:
    state = load_game(head.game).new(seed=head.seed, seats=len(head.seats), options=head.options)
    return Referee(state, retries=head.retries)


def turns(table: Referee, *, seed: int, messy: bool = False) -> Iterable[Input]:
    """Yield inputs for as long as the match goes on; the caller feeds them."""
    rng = random.Random(seed)
    while open_turns := table.turns():
        for seat, turn in open_turns.items():
            given = Input(seat, turn.ply, turn.space.sample(rng))
            if messy:
                given = rng.choice(
                    [
                        given,
                        given,
                        given._replace(thought="seat 1 is «strange» \u202e", trace={"ids": [1, 2], "p": 0.5}),
                        Input(seat, turn.ply, ("no", "such")),
                        Input(seat, turn.ply, None, "unparsed", "no option was named"),
                        Input(seat, turn.ply, None, "timeout"),
                        Input(seat, turn.ply - 1, "check"),
                        Input(seat, turn.ply, None, rng.choice(("timeout", "timeout", "forfeit"))),
                    ]
                )
            yield given


def footer(table: Referee) -> Footer:
    outcome = table.outcome()
    assert outcome is not None
    return Footer(outcome, tuple(map(table.ended, range(table.state.seats))), dict(table.counts))


def entries(head: Header, *, messy: bool = False, seed: int | None = None) -> tuple[list[Entry], Footer]:
    table = referee(head)
    made: list[Entry] = list(table.opening())
    for given in turns(table, seed=head.seed if seed is None else seed, messy=messy):
        made += table.feed(given)
    return made, footer(table)


def encode(head: Header, made: Iterable[Entry], end: Footer | None) -> bytes:
    encoder = RecordEncoder()
    data = encoder.header(head) + encoder.entries(made)
    return data if end is None else data + encoder.footer(end)


def make(game: str = "kuhn", *, seats: int = 2, seed: int = 7, messy: bool = False) -> bytes:
    """Return the bytes of the record of one match."""
    head = header(game, seats=seats, seed=seed)
    return encode(head, *entries(head, messy=messy))


def read(data: bytes) -> Record:
    return FrameReader(data).read()


def bodies(data: bytes) -> list[bytes]:
    """Return the bodies of all frames, the header's and the footer's as well."""
    record = read(data)
    assert record.footer is not None and record.damage is None
    return [pack(["h", record.header.to_data()]), *record.bodies, pack(["f", record.footer.to_data()])]


def seal(parts: Iterable[bytes]) -> bytes:
    """Return a record whose hashes are right, whatever its bodies say: what a forger would write."""
    chain, frames = CHAIN_START, []
    for body in parts:
        chain = link(chain, body)
        frames.append(frame(body, chain))
    return b"".join(frames)


def forge(data: bytes, made: list[Entry], end: Footer | None = None, head: Header | None = None) -> bytes:
    """Return the record `data` with other entries (and footer, header), consistently hashed and counted."""
    record = read(data)
    assert record.footer is not None
    return encode(head or record.header, made, end or record.footer)


def swap(entry: Event, **data: object) -> Event:
    return entry._replace(data={**entry.data, **data})


def forged_footer(data: bytes, **changes: object) -> bytes:
    """Return `data` with its footer changed and the frame hashed anew."""
    record = read(data)
    assert record.footer is not None
    *rest, _ = bodies(data)
    return seal([*rest, pack(["f", replace(record.footer, **changes).to_data()])])  # type: ignore[arg-type]
