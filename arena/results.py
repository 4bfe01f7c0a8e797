"""Finished matches as plain data: what a store feeds to ratings and standings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite

from arena.errors import RatingError
from games.base import Outcome


@dataclass(frozen=True, slots=True)
class RatedSeat:
    """One seat of a finished match; `place` 1 is the best, None takes the order from `value`, the return."""

    player: str
    team: str
    role: str
    value: float
    place: int | None = None
    forfeited: bool = False
    forced: int = 0
    """Moves that the referee played for the seat."""
    illegal: int = 0
    """Answers that were refused as illegal."""


@dataclass(frozen=True, slots=True)
class RatedMatch:
    """A finished match. Matches with the same `deal` share their luck, as intervals must know."""

    game: str
    seats: tuple[RatedSeat, ...]
    deal: int | str | None = None

    @property
    def rated(self) -> bool:
        """Whether it says something about strength by play: two or more sides and no forfeit."""
        return not any(seat.forfeited for seat in self.seats) and len({s.team for s in self.seats}) > 1

    def ranking(self) -> tuple[tuple[str, ...], ...]:
        """Return the sides from first to last, tied ones together, by place or else by mean return.

        Raises `RatingError` where returns are not finite, or places are missing or differ within a side.
        """
        scores: dict[str, float] = {}
        places = [seat.place is not None for seat in self.seats]
        if not self.seats or any(places) != all(places):
            raise RatingError(f"ratings: a match of {self.game} needs a place for every seat or for none")
        for team in {seat.team for seat in self.seats}:
            members = [seat for seat in self.seats if seat.team == team]
            if not all(isfinite(seat.value) for seat in members):
                raise RatingError(
                    f"ratings: side {team!r} of a match of {self.game} has a return that is no number"
                )
            if all(places):
                found = {seat.place for seat in members}
                if len(found) > 1:
                    raise RatingError(f"ratings: side {team!r} of a match of {self.game} has several places")
                scores[team] = -float(members[0].place or 0)
            else:
                scores[team] = round(fsum(seat.value for seat in members) / len(members), 9)
        return tuple(
            tuple(sorted(team for team in scores if scores[team] == score))
            for score in sorted(set(scores.values()), reverse=True)
        )


def rated_match(
    outcome: Outcome,
    *,
    game: str,
    players: Sequence[str],
    forfeited: Iterable[int] = (),
    forced: Mapping[int, int] | None = None,
    illegal: Mapping[int, int] | None = None,
    deal: int | str | None = None,
) -> RatedMatch:
    """Return the match that `outcome` ended, with `players` by seat and what went wrong at each seat."""
    gone, forced, illegal = set(forfeited), forced or {}, illegal or {}
    seats = tuple(
        RatedSeat(
            player=player,
            team=outcome.teams[seat],
            role=outcome.roles[seat],
            value=outcome.returns[seat],
            forfeited=seat in gone,
            forced=forced.get(seat, 0),
            illegal=illegal.get(seat, 0),
        )
        for seat, player in enumerate(players)
    )
    return RatedMatch(game, seats, deal)
