"""The decisions in a record: for each, the turn as the seat had it, what it answered, and what came of that."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agents.base import Seat
from agents.policy.spec import is_policy
from games.base import Event, Game, State
from games.errors import BadChance, BadSeats, ChanceNeeded
from games.referee import Input, Turn
from games.rng import derive_seed
from replays.errors import RecordDamaged, RecordError
from replays.reader import read_record
from replays.record import Record
from replays.verify import start

Fate = Literal["played", "asked again", "default played"]
"""What came of an answer."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One answer to one turn.

    Args:
        index: among all decisions of the record.
        turn: as the seat had it, the attempt included.
        given: what was answered.
        fate: what came of it.
        events: how many of the record's events lie before it.
        policy: whether a language model answered.
    """

    index: int
    turn: Turn
    given: Input
    fate: Fate
    events: int
    policy: bool


@dataclass(frozen=True, slots=True)
class Moments:
    """All decisions of a record, in order."""

    path: Path
    record: Record
    game: Game
    state: State
    """As it was at the start; gives seats and options."""
    events: tuple[Event, ...]
    all: tuple[Moment, ...]

    @property
    def damage(self) -> str:
        """What is wrong with the record, empty where it is whole."""
        damage = self.record.damage
        return (
            "" if damage is None else f"the record is damaged from event {damage.event} on: {damage.reason}"
        )

    def seat(self, index: int) -> Seat:
        """Return the seat as its agent had it, with the same seed where the match was one of a tournament's."""
        header = self.record.header
        seed = derive_seed(header.seed, "agent", header.match, index)
        return Seat(self.game, self.state.seats, self.state.options, index, seed)

    def before(self, moment: Moment) -> Sequence[Event]:
        """Return what the seat had seen when it was asked."""
        seat = moment.turn.seat
        return [event for event in self.events[: moment.events] if event.visible_to(seat)]

    def listed(self, *, seat: int | None = None) -> list[Moment]:
        """Return the decisions to step through: those of language models where there are any, else all."""
        chosen = [moment for moment in self.all if seat in (None, moment.turn.seat)]
        return [moment for moment in chosen if moment.policy] or chosen

    def find(self, *, ply: int | None = None, seat: int | None = None, attempt: int = 0) -> Moment:
        """Return a decision: by default the first of a language model, else the first.

        Args:
            ply, seat: which one; None takes the first that fits the other.
            attempt: at that turn, from 0.

        Raises `BadSeats` or `RecordError` in one line where there is no such decision.
        """
        self._check(seat)
        fits = [moment for moment in self.listed(seat=seat) if ply in (None, moment.turn.ply)]
        if not fits:
            fits = [m for m in self.all if seat in (None, m.turn.seat) and ply in (None, m.turn.ply)]
        if not fits:
            raise self._none(ply, seat)
        first = fits[0].turn
        same = [m for m in self.all if (m.turn.ply, m.turn.seat) == (first.ply, first.seat)]
        for moment in same:
            if moment.turn.attempt == attempt:
                return moment
        raise RecordError(
            f"attempt: got {attempt}, seat {first.seat} was asked {len(same)} times at ply {first.ply}: "
            f"0 to {len(same) - 1}"
            if len(same) > 1
            else f"attempt: got {attempt}, seat {first.seat} was asked once at ply {first.ply}: 0"
        )

    def attempts(self, moment: Moment) -> int:
        """Return how often the seat was asked at this turn."""
        return sum((m.turn.ply, m.turn.seat) == (moment.turn.ply, moment.turn.seat) for m in self.all)

    def _check(self, seat: int | None) -> None:
        if seat is not None and not 0 <= seat < self.state.seats:
            raise BadSeats(f"seat: got {seat}, this match has seats 0 to {self.state.seats - 1}")

    def _none(self, ply: int | None, seat: int | None) -> RecordError:
        if not self.all:
            return RecordError(f"{self.path}: nobody has decided anything in this record")
        last = self.all[-1].turn.ply
        if ply is not None and not 0 <= ply <= last:
            lost = f"; {self.damage}" if self.damage else ""
            return RecordError(f"ply: got {ply}, this record has plies 0 to {last}{lost}")
        seats = sorted({m.turn.seat for m in self.all if m.turn.ply == ply})
        if ply is not None and seats:
            return RecordError(f"seat: got {seat}, at ply {ply} decided: {', '.join(map(str, seats))}")
        return RecordError(f"seat: got {seat}, it decided nothing in this record")


def read_moments(path: Path) -> Moments:
    """Return the decisions in a record, up to where it was cut short.

    Raises `RecordError`, or `RulesVersionMismatch` and `UnknownGame` where its rules are not installed.
    """
    record = read_record(path)
    try:
        referee = start(record)
    except (BadChance, ChanceNeeded) as error:
        raise RecordDamaged(f"{path}: its deal is not whole: {error}") from None
    state = referee.state.clone()
    found: list[Moment] = []
    events: list[Event] = []
    specs = [seat.spec for seat in record.header.seats]
    try:
        for entry in record.entries:
            if isinstance(entry, Event):
                events.append(entry)
                continue
            turn = referee.turns().get(entry.seat)
            after = referee.feed(entry)
            if turn is None or turn.ply != entry.ply or entry.failure == "forfeit":
                continue
            model = is_policy(specs[entry.seat]) or bool(entry.trace and "token_ids" in entry.trace)
            found.append(Moment(len(found), turn, entry, _fate(after, entry.seat), len(events), model))
    except Exception as error:  # rules may raise anything on what they never emitted
        raise RecordDamaged(
            f"{path}: its inputs are not a match of these rules: {str(error)[:120]}"
        ) from None
    return Moments(path, record, referee.state.game, state, tuple(events), tuple(found))


def _fate(after: Sequence[Input | Event], seat: int) -> Fate:
    for entry in after:
        if isinstance(entry, Event) and entry.data.get("seat") == seat:
            if entry.kind == "rejected":
                return "asked again"
            if entry.kind == "forced":
                return "default played"
    return "played"
