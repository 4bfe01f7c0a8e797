"""The recorded line: a record read as states and decisions, from which play can leave at any ply."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from agents.errors import BadCredit, RecordNotCredited
from games.base import Event, Game, Outcome, State
from games.errors import ArenaError, RulesVersionMismatch, UnknownGame
from games.referee import Input
from games.registry import load_game
from games.spaces import Action, ActionSpace
from replays.errors import RecordDamaged
from replays.record import Footer, Header, Record
from replays.verify import Resimulation
from replays.visitors import walk


class Taken(NamedTuple):
    """A decision as it stands in the record: what was played, be it the seat's own answer or a forced default."""

    ply: int
    seat: int
    space: ActionSpace
    action: Action
    forced: bool = False


@dataclass(slots=True)
class Line:
    """A recorded match, whole. Its states are never played on: clone them."""

    header: Header
    game: Game
    states: tuple[State, ...]
    """The state before each ply."""
    final: State
    outcome: Outcome
    taken: tuple[tuple[Taken, ...], ...]
    """By seat, its decisions in order."""
    seen: tuple[tuple[Event, ...], ...]
    """By seat, the rules' events that it saw."""
    seen_before: tuple[tuple[int, ...], ...]
    """By seat, for each of its decisions, how many of them it had seen."""

    @property
    def seats(self) -> int:
        """How many seats there are."""
        return len(self.taken)

    @property
    def team_names(self) -> tuple[str, ...]:
        """The teams of this match, in the game's order."""
        here = set(self.outcome.teams)
        named = [name for name in self.game.team_names if name in here]
        return (*named, *sorted(here.difference(named)))

    def default_team(self) -> str:
        """Return the first team of two or more seats, else the first."""
        for name in self.team_names:
            if self.outcome.teams.count(name) > 1:
                return name
        return self.team_names[0]

    def members(self, team: str) -> tuple[int, ...]:
        """Return a team's seats. Raises `BadCredit` for a team that the match has not."""
        found = tuple(seat for seat, name in enumerate(self.outcome.teams) if name == team)
        if not found:
            raise BadCredit(f"team: got {team[:40]!r}, this match has {', '.join(self.team_names)}")
        return found

    def result(self, team: str) -> float:
        """Return a team's result: the mean return of its seats."""
        return team_return(self.outcome, self.members(team))

    def decides_from(self, seat: int, ply: int = 0) -> int | None:
        """Return the ply of `seat`'s first decision at `ply` or later, None where there is none."""
        plies = [taken.ply for taken in self.taken[seat]]
        at = bisect_left(plies, ply)
        return plies[at] if at < len(plies) else None


def team_return(outcome: Outcome, members: tuple[int, ...]) -> float:
    """Return the mean return of some seats."""
    return sum(outcome.returns[seat] for seat in members) / len(members)


class _Reading(Resimulation):
    """Verifies the record on the way, and keeps a state for each ply."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.states: list[State] = []
        self.forced: set[tuple[int, int]] = set()
        self.gone: dict[int, int] = {}
        """By seat, the first ply that it had forfeited."""

    def begin(self, header: Header) -> None:
        super().begin(header)
        self.states.append(self.referee.state.clone())

    def input(self, given: Input, ply: int) -> None:
        now, seat = self.referee.ply, given.seat
        asked = seat in self.referee.turns()
        super().input(given, ply)
        for entry in self._expected:
            if not isinstance(entry, Event):
                continue
            if entry.kind == "forfeit":
                self.gone[seat] = now if asked else now + 1
            elif entry.kind == "forced" and entry.data["seat"] == seat:
                self.forced.add((seat, now))
        self._keep()

    def _keep(self) -> None:
        # One input plays several plies where only seats that have forfeited are asked.
        plies = self.referee.state.plies
        while len(self.states) < len(plies):
            state = self.states[-1].clone()
            state.apply(plies[len(self.states) - 1])
            self.states.append(state)
        if len(self.states) == len(plies):
            self.states.append(self.referee.state.clone())

    def was_forced(self, seat: int, ply: int) -> bool:
        """Whether a decision was the referee's default."""
        return (seat, ply) in self.forced or ply >= self.gone.get(seat, ply + 1)

    def end(self, footer: Footer | None) -> None:
        super().end(footer)


def read_line(record: Record) -> Line:
    """Return the line of a whole record, which is verified on the way.

    Raises `RecordNotCredited` where it is cut short or made under other rules, `RecordDamaged` where it is not what
    the rules give.
    """
    header = record.header
    try:
        game = load_game(header.game)
    except UnknownGame as error:
        raise RecordNotCredited(str(error)) from None
    if game.version != header.rules:
        raise RecordNotCredited(
            f"the record was made under {header.game} rules {header.rules[:40]}, installed are rules {game.version}: "
            "it cannot be played on"
        )
    damage = record.damage
    if damage is not None and not damage.truncated:
        raise RecordDamaged(f"event {damage.event} is bad: {damage.reason}")
    if record.footer is None:
        raise RecordNotCredited("the record is cut short: a match without its end has no result to divide")
    reading = _Reading(record)
    try:
        walk(record, reading)
    except RulesVersionMismatch as error:
        raise RecordNotCredited(str(error)) from None
    except RecordDamaged:
        raise
    except Exception as error:  # rules may raise anything on what they never emitted or accepted
        raise RecordDamaged(f"event {reading.checked} is bad: {_reason(error)}") from None
    return _line(game, header, reading)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ArenaError) or str(error) else type(error).__name__


def _line(game: Game, header: Header, reading: _Reading) -> Line:
    final = reading.referee.state
    outcome = final.outcome()
    assert outcome is not None
    states = tuple(reading.states[: len(final.plies)])
    marks = [len(state.history) for state in states]
    taken, seen, before = [], [], []
    for seat in range(final.seats):
        own = [index for index, event in enumerate(final.history) if event.visible_to(seat)]
        made = tuple(
            Taken(ply, seat, states[ply].turns()[seat], actions[seat], reading.was_forced(seat, ply))
            for ply, actions in enumerate(final.plies)
            if seat in actions
        )
        taken.append(made)
        seen.append(tuple(final.history[index] for index in own))
        before.append(tuple(bisect_left(own, marks[decision.ply]) for decision in made))
    return Line(header, game, states, final, outcome, tuple(taken), tuple(seen), tuple(before))
