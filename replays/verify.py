"""Verifying a record: play it again from its seed and inputs, and compare every event."""

from dataclasses import dataclass
from pathlib import Path

from games.base import Event, Game
from games.errors import RulesVersionMismatch, UnknownGame
from games.referee import Entry, Input, Referee
from games.registry import load_game
from games.rng import Chance, RecordedChance, check_seed
from replays.codec import pack
from replays.errors import NotARecord, RecordDamaged, RecordTooNew
from replays.reader import read_record
from replays.record import Footer, Header, Record, entry_to_data
from replays.visitors import Visitor, walk


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a record is whole and true.

    `events` is how many events could be read, `first_bad` the index of the first that is missing or not what
    the rules emit; it is None where nothing was compared, because these rules are not installed.
    """

    ok: bool
    events: int
    first_bad: int | None = None
    reason: str = ""


def verify_file(path: Path) -> Verdict:
    """Read and verify one file. Raises `RecordUnreadable` where there is nothing to verify."""
    try:
        record = read_record(path)
    except (NotARecord, RecordTooNew) as error:
        return Verdict(False, 0, 0, str(error).removeprefix(f"{path}: "))
    return verify(record)


def verify(record: Record) -> Verdict:
    """Play the record again and compare every event's bytes, then the outcome and the counts."""
    total = sum(1 for _ in record.events())
    replay = Resimulation(record)
    try:
        walk(record, replay)
    except (RulesVersionMismatch, UnknownGame) as error:
        return Verdict(False, total, None, str(error))
    except _Mismatch as mismatch:
        return Verdict(False, total, replay.checked, str(mismatch))
    except Exception as error:  # rules may raise anything on what they never emitted or accepted
        return Verdict(False, total, replay.checked, f"the rules refuse what is recorded: {error}")
    if record.damage is not None:
        return Verdict(False, total, record.damage.event, record.damage.reason)
    return Verdict(True, total)


def start(record: Record) -> Referee:
    """Return a referee at the start of the recorded match, its chance read from the record.

    Raises `RulesVersionMismatch`, `UnknownGame`, or another `GameError` where the header is no match.
    """
    draws = [event.data["value"] for event in record.events() if event.kind == "chance"]
    return _start(record.header, RecordedChance(draws))


def rebuild(record: Record) -> tuple[Referee, list[Entry]]:
    """Return a referee that stands where the record ends, and the events that the record lacks there.

    Those are what the last input caused but the crash kept from being written: write them, then go on.
    Raises `RecordDamaged` where what is recorded is not what these rules and inputs give.
    """
    damage = record.damage
    if damage is not None and not damage.truncated:
        raise RecordDamaged(f"event {damage.event} is bad: {damage.reason}")
    replay = Resimulation(record)
    try:
        walk(record, replay)
    except _Mismatch as mismatch:
        raise RecordDamaged(f"event {replay.checked} is bad: {mismatch}") from None
    return replay.referee, replay.missing()


class _Mismatch(Exception):
    pass


class Resimulation(Visitor):
    """Feeds the recorded inputs to a fresh referee, and compares what it says with what is recorded.

    The chance is that of the header's seed, so a draw that was tampered with is itself the first bad event.
    """

    referee: Referee

    def __init__(self, record: Record) -> None:
        self.checked = 0
        self._bodies = iter(record.bodies)
        self._expected: list[Entry] = []
        self._at = 0

    def begin(self, header: Header) -> None:
        self.referee = _start(header, Chance(check_seed(header.seed)))
        self._expected = list(self.referee.opening())

    def input(self, given: Input, ply: int) -> None:
        next(self._bodies)
        self._nothing_missing()
        self._expected, self._at = self.referee.feed(given), 1

    def event(self, event: Event, index: int) -> None:
        body = next(self._bodies)
        if self._at == len(self._expected):
            raise _Mismatch(f"the rules emit no event here, recorded is {event.kind[:40]!r}")
        expected = self._expected[self._at]
        if pack(entry_to_data(expected)) != body:
            raise _Mismatch(_difference(expected, event))
        self._at += 1
        self.checked += 1

    def end(self, footer: Footer | None) -> None:
        if footer is None:
            return
        self._nothing_missing()
        referee, outcome = self.referee, self.referee.outcome()
        if outcome is None or not referee.over:
            raise _Mismatch("the footer stands before the end of the match")
        ended = tuple(referee.ended(seat) for seat in range(referee.state.seats))
        expected = Footer(outcome, ended, dict(referee.counts), self.checked, footer.chain).to_data()
        found = footer.to_data()
        for name in expected:
            if pack(expected[name]) != pack(found[name]):
                raise _Mismatch(f"the footer's {name} is not that of the match")

    def missing(self) -> list[Entry]:
        """Return the events that the last input caused and that were not compared yet."""
        return self._expected[self._at :]

    def _nothing_missing(self) -> None:
        if self._at < len(self._expected):
            raise _Mismatch(f"the rules emit {_kind(self._expected[self._at])!r} here, the record lacks it")


def _start(header: Header, chance: Chance) -> Referee:
    state = _game(header).start(chance, seats=len(header.seats), options=header.options)
    return Referee(state, retries=header.retries)


def _game(header: Header) -> Game:
    game = load_game(header.game)
    if game.version != header.rules:
        raise RulesVersionMismatch(
            f"recorded under {header.game} rules {header.rules[:40]}, installed are rules {game.version}"
        )
    return game


def _kind(entry: Entry) -> str:
    return entry.kind if isinstance(entry, Event) else "input"


def _difference(expected: Entry, recorded: Event) -> str:
    if _kind(expected) != recorded.kind:
        return f"the rules emit {_kind(expected)!r}, recorded is {recorded.kind[:40]!r}"
    return f"{recorded.kind!r} differs from what the rules emit"
