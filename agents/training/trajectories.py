"""Trajectories: what a seat's model wrote in one match, across all its turns, and what came of it.

They are read from records. The record is simulated again for the action spaces of its turns, so that the masks
under which the model chose can be built once more; nothing is asked of the model a second time.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.errors import BadRollout
from agents.policy.base import Constraint
from agents.prompting.answers import constraint_of
from games.base import Event
from games.referee import Input, Referee, Turn
from replays.codec import pack
from replays.record import Footer, Header, Record
from replays.verify import start

DEAL_CHARS = 16
FAILED = frozenset({"unparsed", "ambiguous", "illegal", "timeout", "disconnect", "error", "forfeit"})
"""Causes that are a seat's failures; others say why tokens are not learned from."""

Kind = Literal["action", "thought", "both"]


@dataclass(frozen=True, slots=True)
class Step:
    """One completion of a seat's model.

    Args:
        ply, attempt: at which it was written.
        kind: the action, a thought before it, or both in one reply.
        prompt_ids, token_ids: the tokens.
        logprobs: of each of `token_ids` under the distribution it was drawn from.
        constraint: what it was held to; None for free text.
        temperature, top_p: of that distribution.
        failure: why the referee did not take it, None where it did.
        forced: whether the default was played in its place.
        stripped: whether the prompt is not the one it was written to: advice that stood in it is taken out.
    """

    ply: int
    attempt: int
    kind: Kind
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    constraint: Constraint | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    failure: str | None = None
    forced: bool = False
    stripped: bool = False


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One seat of one match.

    Args:
        match: the match's name.
        game, options, seats: what was played, the options as a digest, and among how many.
        deal: what the match shares with those of the same deal: game, rules, options, seats and seed, as a digest.
        seat, role, team, player: who.
        adapter: the version that played, `base` without one.
        steps: what the model wrote, in order; empty where it never answered.
        outcome: the seat's return.
        causes: what went wrong, by cause and how often: the referee's failures, `forced`, `late`, and `no_tokens`,
            `bad_trace` and `greedy` for answers that cannot be learned from.
        stratum: whatever else a baseline must not mix, such as who the opponents were.
    """

    match: str
    game: str
    options: str
    seats: int
    deal: str
    seat: int
    role: str
    team: str
    player: str
    adapter: str
    steps: tuple[Step, ...]
    outcome: float
    causes: dict[str, int] = field(default_factory=dict)
    stratum: str = ""

    @property
    def failures(self) -> int:
        """Return how many of the seat's answers failed."""
        return sum(count for cause, count in self.causes.items() if cause in FAILED)

    @property
    def tokens(self) -> int:
        """Return how many tokens the model wrote."""
        return sum(len(step.token_ids) for step in self.steps)


def harvest(record: Record, *, players: Collection[str] | None = None, stratum: str = "") -> list[Trajectory]:
    """Return a trajectory for each seat of a record that can be trained on, by seat.

    Args:
        record: whole, of the rules that are installed.
        players: names of those who are trained; None takes every seat for which tokens are recorded.
        stratum: of the trajectories.

    Raises `BadRollout` in one line for a record that was cut short, is of other rules, or is not what they give.
    """
    header, footer = record.header, record.footer
    if footer is None:
        raise BadRollout(f"match {header.match or '?'}: its record was cut short, and has no outcome")
    seats = {
        seat: _Harvest() for seat, info in enumerate(header.seats) if players is None or info.name in players
    }
    try:
        referee = start(record)
        for entry in record.entries:
            if not isinstance(entry, Event):
                turn = referee.turns().get(entry.seat)
                seen = referee.feed(entry)
                if entry.seat in seats:
                    seats[entry.seat].take(entry, turn, _own(seen[1:], entry.seat))
        _compare(referee, footer)
    except Exception as error:  # rules may raise anything on what they never emitted or accepted
        raise BadRollout(f"match {header.match or '?'}: {str(error)[:300]}") from None
    deal, options = _digest(header, seed=True), _digest(header, seed=False)
    found = []
    for seat, kept in seats.items():
        if players is None and not kept.steps:
            continue
        found.append(
            Trajectory(
                match=header.match,
                game=header.game,
                options=options,
                seats=len(header.seats),
                deal=deal,
                seat=seat,
                role=footer.outcome.roles[seat],
                team=footer.outcome.teams[seat],
                player=header.seats[seat].name,
                adapter=kept.adapter,
                steps=tuple(kept.steps),
                outcome=float(footer.outcome.returns[seat]),
                causes=dict(sorted(kept.causes.items())),
                stratum=stratum,
            )
        )
    return found


class _Harvest:
    """What is gathered of one seat."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.causes: Counter[str] = Counter()
        self.adapter = ""

    def take(self, given: Input, turn: Turn | None, notes: Sequence[Event]) -> None:
        kinds = {event.kind for event in notes}
        if "late" in kinds or turn is None or turn.ply != given.ply:
            self.causes["forfeit" if given.failure == "forfeit" and "late" not in kinds else "late"] += 1
            return
        failure = given.failure
        for event in notes:
            if event.kind in ("rejected", "forced"):
                failure = str(event.data["failure"])
        if failure is not None:
            self.causes[failure] += 1
        forced = "forced" in kinds
        self.causes["forced"] += forced
        self.causes = +self.causes
        trace = given.trace or {}
        if not trace.get("token_ids"):
            if failure is None:
                self.causes["no_tokens"] += 1
            return
        self.adapter = self.adapter or str(trace.get("adapter", ""))
        both = trace.get("mode") == "one"
        asked: list[tuple[Kind, dict[str, Any], Constraint | None]] = [
            ("both" if both else "action", trace, None if both else constraint_of(turn.space))
        ]
        if trace.get("thought"):
            asked.insert(0, ("thought", trace["thought"], None))
        for kind, part, constraint in asked:
            self._add(kind, part, trace, constraint, turn, failure, forced)

    def _add(
        self,
        kind: Kind,
        part: dict[str, Any],
        trace: dict[str, Any],
        constraint: Constraint | None,
        turn: Turn,
        failure: str | None,
        forced: bool,
    ) -> None:
        try:
            plain = part.get("plain_prompt_ids")
            prompt_ids = tuple(map(int, part["prompt_ids"] if plain is None else plain))
            token_ids = tuple(map(int, part["token_ids"]))
            logprobs = tuple(map(float, part["logprobs"]))
            temperature = float(trace.get("temperature", 1.0))
            top_p = float(trace.get("top_p", 1.0))
            whole = prompt_ids and token_ids and len(logprobs) == len(token_ids) and 0 < top_p <= 1
            if not (whole and math.isfinite(sum(logprobs)) and math.isfinite(temperature)):
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            self.causes["bad_trace"] += 1
            return
        if temperature <= 0:  # the likeliest token was no choice
            self.causes["greedy"] += 1
            return
        self.steps.append(
            Step(
                ply=turn.ply,
                attempt=turn.attempt,
                kind=kind,
                prompt_ids=prompt_ids,
                token_ids=token_ids,
                logprobs=logprobs,
                constraint=constraint,
                temperature=temperature,
                top_p=top_p,
                failure=failure,
                forced=forced,
                stripped=plain is not None,
            )
        )


def _own(entries: Sequence[Any], seat: int) -> list[Event]:
    """Return what the referee noted of the seat's own input."""
    kinds = ("rejected", "forced", "late", "forfeit")
    return [
        entry
        for entry in entries
        if isinstance(entry, Event) and entry.kind in kinds and entry.data.get("seat") == seat
    ]


def _compare(referee: Referee, footer: Footer) -> None:
    if referee.outcome() != footer.outcome:
        raise BadRollout("its outcome is not what the rules give")


def _digest(header: Header, *, seed: bool) -> str:
    parts: list[Any] = [header.game, header.rules, header.options, len(header.seats)]
    return hashlib.sha256(pack([*parts, header.seed] if seed else parts)).hexdigest()[:DEAL_CHARS]
