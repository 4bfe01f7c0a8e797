"""The referee: a match as a state machine. Inputs in, entries out; no await, no clock.

The record is the referee's output: every `Input` it was given, in order, each followed by the `Event`s that
came of it. Feeding the same inputs to a fresh referee gives the same events, which is how a record is
verified and how a match resumes.

What goes wrong at a seat is an event as well, addressed to that seat alone (others must not learn who was
asked twice): `rejected` (asked again with the reason), `forced` (the default was played), `late`, `forfeit`.
"""

from collections import Counter
from typing import Any, NamedTuple

from games.base import Event, Outcome, State
from games.errors import IllegalAction
from games.spaces import Action, ActionSpace

FAILURES = ("unparsed", "ambiguous", "illegal", "timeout", "disconnect", "error", "forfeit")
"""Causes of a failed turn, counted apart. `error` is an agent that raised."""

RETRIED = ("unparsed", "ambiguous", "illegal")
"""Failures that are asked again while retries are left; the others play the default at once."""

REFEREE_KINDS = frozenset({"rejected", "forced", "late", "forfeit"})
"""The kinds of event that the referee adds to those of the rules."""

DEFAULT_RETRIES = 2
MAX_REASON_CHARS = 300


class Turn(NamedTuple):
    """A seat's open turn; `attempt` counts from 0, and `failure` and `reason` say what was wrong with the last."""

    seat: int
    ply: int
    space: ActionSpace
    attempt: int = 0
    failure: str | None = None
    reason: str = ""


class Input(NamedTuple):
    """What the referee was told: an action, or why there is none (`failure`, one of `FAILURES`).

    `thought` and `trace` are carried for the record and read by nobody here.
    """

    seat: int
    ply: int
    action: Action | None = None
    failure: str | None = None
    reason: str = ""
    thought: str | None = None
    trace: dict[str, Any] | None = None


Entry = Input | Event


class Referee:
    """Runs one state to its end.

    Args:
        state: a fresh state; its first events are in `opening()`.
        retries: how often an illegal or unreadable answer is asked again within one turn.
    """

    def __init__(self, state: State, *, retries: int = DEFAULT_RETRIES) -> None:
        self.state = state
        self.retries = retries
        self.ply = 0
        self.forfeited: set[int] = set()
        self.counts: Counter[str] = Counter()
        self._open: dict[int, Turn] = {}
        self._taken: dict[int, Action] = {}
        self._open_turns()

    def opening(self) -> list[Event]:
        """Return the events of the deal, which no input caused."""
        return self.state.history.copy() if self.ply == 0 else []

    def turns(self) -> dict[int, Turn]:
        """Return the open turns by seat; empty when the match is over."""
        return dict(self._open)

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return not self._open and not self._taken

    def outcome(self) -> Outcome | None:
        """Return how the match ended, or None while it goes on."""
        return self.state.outcome()

    def ended(self, seat: int) -> str:
        """Return how the match ended for `seat`: `forfeit`, or what `Outcome.ended` says."""
        outcome = self.outcome()
        if outcome is None:
            raise IllegalAction("the match goes on, no seat has ended")
        return "forfeit" if seat in self.forfeited else outcome.ended(seat)

    def feed(self, given: Input) -> list[Entry]:
        """Take one input and return it with the events that came of it, in order.

        An input for a turn that is no longer open (or never was) is recorded as late and changes nothing.
        Raises `IllegalAction` for a seat that does not exist or a failure that is none of `FAILURES`.
        """
        entries: list[Entry] = [given]
        seat = given.seat
        if not 0 <= seat < self.state.seats:
            raise IllegalAction(f"seat: got {seat}, this match has seats 0 to {self.state.seats - 1}")
        if given.failure is not None and given.failure not in FAILURES:
            raise IllegalAction(f"failure: got {given.failure[:40]!r}, allowed are {', '.join(FAILURES)}")
        if given.failure == "forfeit":
            self._forfeit(seat, entries)
            return entries
        turn = self._open.get(seat)
        if turn is None or turn.ply != given.ply:
            self._note(entries, "late", {"seat": seat, "ply": given.ply})
            return entries
        failure, reason = given.failure, given.reason[:MAX_REASON_CHARS]
        if failure is None:
            action = turn.space.from_json(given.action)
            if turn.space.contains(action):
                self._take(seat, action)  # type: ignore[arg-type]
                self._advance(entries)
                return entries
            failure = "illegal"
            reason = f"{str(given.action)[:80]!r} is not legal; answer with {turn.space.describe()}"[
                :MAX_REASON_CHARS
            ]
        if failure in RETRIED and turn.attempt < self.retries:
            again = turn._replace(attempt=turn.attempt + 1, failure=failure, reason=reason)
            self._open[seat] = again
            data = {"seat": seat, "failure": failure, "reason": reason, "attempt": again.attempt}
            self._note(entries, "rejected", data)
        else:
            self._force(seat, failure, entries)
            self._advance(entries)
        return entries

    def submit(self, seat: int, action: Action) -> list[Entry]:
        """Give `seat`'s action for the ply that is open; see `feed`."""
        return self.feed(Input(seat, self.ply, action))

    def fail(self, seat: int, failure: str, reason: str = "") -> list[Entry]:
        """Say that `seat` gave no action, and why (one of `FAILURES`); see `feed`."""
        return self.feed(Input(seat, self.ply, None, failure, reason))

    def timeout(self, seat: int) -> list[Entry]:
        """Say that `seat`'s deadline passed: its default is played."""
        return self.fail(seat, "timeout")

    def forfeit(self, seat: int) -> list[Entry]:
        """Say that `seat` is gone: its defaults are played from now on, and it has forfeited."""
        return self.fail(seat, "forfeit")

    def _open_turns(self) -> None:
        self._open = {seat: Turn(seat, self.ply, space) for seat, space in self.state.turns().items()}

    def _forfeit(self, seat: int, entries: list[Entry]) -> None:
        if seat in self.forfeited or self.over:
            self._note(entries, "late", {"seat": seat, "ply": self.ply})
            return
        self.forfeited.add(seat)
        self._note(entries, "forfeit", {"seat": seat})
        if seat in self._open:
            self._force(seat, "forfeit", entries)
            self._advance(entries)

    def _force(self, seat: int, failure: str, entries: list[Entry]) -> None:
        self._note(entries, "forced", {"seat": seat, "failure": failure})
        self._take(seat, self._open[seat].space.default)

    def _take(self, seat: int, action: Action) -> None:
        self.counts["turns"] += 1
        del self._open[seat]
        self._taken[seat] = action

    def _advance(self, entries: list[Entry]) -> None:
        while self._taken and not self._open:
            taken, self._taken = self._taken, {}
            entries.extend(self.state.apply(taken))
            self.ply += 1
            self._open_turns()
            for gone in sorted(self._open.keys() & self.forfeited):
                self._force(gone, "forfeit", entries)

    def _note(self, entries: list[Entry], kind: str, data: dict[str, Any]) -> None:
        event = Event(kind, data, (data["seat"],))
        tally(self.counts, event)
        entries.append(event)


def tally(counts: Counter[str], event: Event) -> None:
    """Add one event of a stream to the counts of what went wrong (all of a referee's but `turns`)."""
    if event.kind == "rejected":
        counts[event.data["failure"]] += 1
    elif event.kind == "forced":
        counts["forced"] += 1
        if event.data["failure"] != "forfeit":
            counts[event.data["failure"]] += 1
    elif event.kind in ("late", "forfeit"):
        counts[event.kind] += 1
