"""From a match that was played, or the record of one, to the report that the store takes."""

from collections.abc import Sequence
from pathlib import Path

from agents.match import MatchResult
from arena.runner import MatchReport, SeatReport, seat_counts
from replays.record import Header, Record


def result_of(record: Record) -> MatchResult:
    """Return how a recorded match ended. Its record must be whole."""
    footer = record.footer
    assert footer is not None
    counts = seat_counts(record, len(record.header.seats))
    return MatchResult(footer.outcome, footer.ended, footer.counts, counts)


def match_report(
    header: Header, result: MatchResult, *, players: Sequence[str], record: Path, record_bytes: int
) -> MatchReport:
    """Return the report of a match that was played.

    Args:
        header: the record's.
        result: how it ended.
        players: by seat, the name under which each is rated (two may share one, unlike the names in the header).
        record: where the record is.
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
