"""What is kept of a match beside its record: made from how it was played, or from the record of it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path

from agents.match import MatchResult
from games.base import Outcome
from games.referee import REFEREE_KINDS, tally
from replays.record import Header, Record


@dataclass(frozen=True, slots=True)
class SeatReport:
    """One seat of a finished match; `counts` are the referee's for this seat."""

    player: str
    spec: str
    team: str
    role: str
    value: float
    ended: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class MatchReport:
    """How a match ended. `error` is one line where the match could not be played; the rest is then empty."""

    match: str
    game: str
    seed: int
    error: str | None = None
    reason: str = ""
    turn_limit: bool = False
    seats: tuple[SeatReport, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    record: Path | None = None
    record_bytes: int = 0

    def outcome(self) -> Outcome:
        """Return the outcome of a match that was played."""
        return Outcome(
            self.reason,
            tuple(seat.value for seat in self.seats),
            tuple(seat.team for seat in self.seats),
            tuple(seat.role for seat in self.seats),
            self.turn_limit,
        )

    @property
    def points(self) -> dict[str, float] | None:
        """Points by player, see `points`; None where the match could not be played."""
        return None if self.error is not None else points((seat.player, seat.value) for seat in self.seats)


def result_of(record: Record) -> MatchResult:
    """Return how a recorded match ended. Its record must be whole."""
    footer = record.footer
    assert footer is not None
    counts = seat_counts(record, len(record.header.seats))
    return MatchResult(footer.outcome, footer.ended, footer.counts, counts)


def points(seats: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return each player's points in a match, 0 … 1, from (player, return) by seat: the mean of its seats."""
    held: dict[str, list[float]] = {}
    for player, value in seats:
        held.setdefault(player, []).append(1.0 if value > 0 else 0.0 if value < 0 else 0.5)
    return {player: fsum(got) / len(got) for player, got in held.items()}


def match_report(
    header: Header, result: MatchResult, *, players: Sequence[str], record: Path | None, record_bytes: int
) -> MatchReport:
    """Return the report of a match that was played.

    Args:
        header: the record's.
        result: how it ended.
        players: by seat, the name under which each is rated (two may share one, unlike the names in the header).
        record: where the record is; None where there is none.
        record_bytes: its size.
    """
    outcome = result.outcome
    seats = zip(
        players,
        header.seats,
        outcome.teams,
        outcome.roles,
        outcome.returns,
        result.ended,
        result.seat_counts,
        strict=True,
    )
    return MatchReport(
        match=header.match,
        game=header.game,
        seed=header.seed,
        reason=outcome.reason,
        turn_limit=outcome.turn_limit,
        seats=tuple(
            SeatReport(player, info.spec, team, role, float(value), ended, dict(counts))
            for player, info, team, role, value, ended, counts in seats
        ),
        counts={name: count for name, count in result.counts.items() if count},
        record=record,
        record_bytes=record_bytes,
    )


def seat_counts(record: Record, seats: int) -> tuple[dict[str, int], ...]:
    """Return what went wrong at each seat of a record."""
    counts: list[Counter[str]] = [Counter() for _ in range(seats)]
    for event in record.events():
        if event.kind in REFEREE_KINDS:
            tally(counts[event.data["seat"]], event)
    return tuple(dict(seat) for seat in counts)
