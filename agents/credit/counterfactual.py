"""Counterfactual credit: what would have come of the match without a seat's decisions, or without a single one.

`v(S)` is the team's result where the members of S decide as they did and the decisions of the others are the
reference's, from the first of them on; see `agents.credit.replay` for who decides what once play has left the record.
`v` of all members is the recorded result itself. Every coalition is replayed with the same seeds, so that what is
compared differs by the decisions alone. A replicate is one such set of replays; its luck is that of the agents, and of
the hidden facts where these are resampled.

    leave-one-out   v(all) - v(all but the seat)
    shapley         the mean, over the orders in which the members may join, of what the seat adds when it joins

A decision's credit is the result less what comes of it where the reference takes that one decision. Then either the
seat's own agent plays on (`play_on="agent"`), or the reference keeps the seat (`play_on="reference"`), whose credits
sum to leave-one-out. What a seat's decisions leave of its share is spread evenly over them.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import fsum, isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agents.credit.base import Cost, Credit, Label, SeatCredit, StepCredit, exact
from agents.credit.cast import RANDOM, MakeAgent, make_cast
from agents.credit.coalitions import MAX_EXACT, along, antithetic, chain, influence, shapley
from agents.credit.estimate import half_width, interval
from agents.credit.line import Line, read_line, team_return
from agents.credit.replay import Cast, Counts, Replay, Span, leaves
from agents.errors import BadCredit
from games.base import State
from games.rng import MAX_SEED, derive_seed
from replays.record import Record

if TYPE_CHECKING:
    from agents.policy.service import Policies

RESAMPLES = 64
"""Tries for a resampled world in which the same seats form the team."""
TOGETHER = 32
"""Replays at a time where somebody in them waits for a model."""


@dataclass(frozen=True, slots=True)
class CounterfactualSettings:
    """How matches are replayed, and how many.

    Args:
        reference: spec of the player whose decisions stand in for a seat's.
        stand_in: spec of who plays on for recorded players that cannot be rebuilt; None refuses their records.
        hidden: `fixed` leaves all hidden facts, and what chance brings later, as they were; `resampled` draws anew
            what the first seat to be replaced could not know, sides apart.
        error: replicates end when half of every seat's 95 % interval is at most this, in the unit of the result.
        least, most: replicates, at the fewest and at most; `most` goes before `least`.
        coalitions: members up to which Shapley values look at all coalitions, and beyond which at sampled orders, one
            and its reverse a replicate.
        steps: whether decisions are credited too.
        step_replicates: replays of each decision.
        play_on: who plays on after a replaced decision: the seat's own `agent`, or the `reference`.
        seed: of the replays.
    """

    reference: str = RANDOM
    stand_in: str | None = None
    hidden: Literal["fixed", "resampled"] = "fixed"
    error: float = 0.1
    least: int = 4
    most: int = 32
    coalitions: int = 5
    steps: bool = True
    step_replicates: int = 8
    play_on: Literal["agent", "reference"] = "agent"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("hidden", ("fixed", "resampled")), ("play_on", ("agent", "reference"))):
            if (got := getattr(self, name)) not in allowed:
                raise BadCredit(f"credit {name}: got {str(got)[:40]!r}, allowed are {', '.join(allowed)}")
        if not (isfinite(self.error) and self.error >= 0):
            raise BadCredit(f"credit error: got {self.error}, a number from 0 up is needed")
        for name, low, high in (
            ("least", 1, 100_000),
            ("most", 1, 100_000),
            ("coalitions", 1, MAX_EXACT),
            ("step_replicates", 1, 100_000),
            ("seed", 0, MAX_SEED),
        ):
            if not low <= (got := getattr(self, name)) <= high:
                raise BadCredit(f"credit {name}: got {got}, allowed are whole numbers from {low} to {high}")


_SETTINGS = frozenset(field.name for field in fields(CounterfactualSettings))


class _Table:
    """One team of one line, and the replays of it."""

    def __init__(
        self, line: Line, members: tuple[int, ...], cast: Cast, settings: CounterfactualSettings
    ) -> None:
        self.line = line
        self.members = members
        self.cast = cast
        self.settings = settings
        self.result = team_return(line.outcome, members)
        self.counts = Counts()
        self.lowest = self.highest = self.result
        self._room = asyncio.Semaphore(TOGETHER)

    @property
    def spread(self) -> float:
        """The difference between the best and the worst result seen."""
        return self.highest - self.lowest

    async def values(self, asked: Sequence[dict[int, Span]], *, replicate: int) -> list[float]:
        """Return the team's result under each set of replaced decisions."""
        if self.cast.instant:
            found = []
            for spans in asked:
                replay = self._replay(spans, replicate)
                found.append(self.result if replay is None else team_return(replay.run(), self.members))
                await asyncio.sleep(0)
        else:
            found = list(await asyncio.gather(*(self._value(spans, replicate) for spans in asked)))
        self.lowest, self.highest = min(self.lowest, *found), max(self.highest, *found)
        return found

    async def _value(self, spans: dict[int, Span], replicate: int) -> float:
        async with self._room:
            replay = self._replay(spans, replicate)
            return self.result if replay is None else team_return(await replay.play(), self.members)

    def _replay(self, spans: dict[int, Span], replicate: int) -> Replay | None:
        """Return the replay, None where nothing that was decided is replaced."""
        start = leaves(self.line, spans)
        if start is None:
            return None
        seed = derive_seed(
            self.settings.seed, "credit", self.line.header.seed, self.line.header.match, replicate
        )
        world = None
        if self.settings.hidden == "resampled":
            acting = [seat for seat in sorted(spans) if seat in self.line.final.plies[start]]
            world = resampled(
                self.line.states[start], acting[replicate % len(acting)], seed=derive_seed(seed, "world")
            )
        return Replay(
            self.line, self.cast, spans=spans, seed=seed, start=start, world=world, counts=self.counts
        )

    async def coalitions(self, masks: Sequence[int], *, replicate: int) -> dict[int, float]:
        """Return the value of each coalition of members."""
        members = self.members
        everyone = (1 << len(members)) - 1
        asked = [mask for mask in masks if mask != everyone]
        spans = [{seat: Span() for i, seat in enumerate(members) if not mask >> i & 1} for mask in asked]
        found = dict(zip(asked, await self.values(spans, replicate=replicate), strict=True)) if asked else {}
        found[everyone] = self.result
        return found

    def closed(self, rows: Sequence[Sequence[float]]) -> bool:
        """Whether the replicates so far are enough."""
        settings = self.settings
        if len(rows) < max(settings.least, 2):
            return False
        halves = [half_width(column, spread=self.spread) for column in zip(*rows, strict=True)]
        return all(half is not None and half <= settings.error for half in halves)


def resampled(state: State, seat: int, *, seed: int) -> State:
    """Return a state that `seat` cannot tell from `state`, sides as they are; `state` itself where none was found."""
    rng = random.Random(seed)
    for _ in range(RESAMPLES):
        found: State = state.resample(seat, rng)
        if found.teams() == state.teams():
            return found
    return state


class Counterfactual:
    """Base of the two methods: settings, the table, steps, and what a seat's decisions leave of its share.

    Args:
        make: makes bots from their specs.
        policies: the engines that run, for language models among the players.
        settings: see `CounterfactualSettings`.
    """

    name: ClassVar[str]
    efficient: ClassVar[bool]

    def __init__(
        self, *, make: MakeAgent | None = None, policies: "Policies | None" = None, **settings: Any
    ) -> None:
        unknown = sorted(settings.keys() - _SETTINGS)
        if unknown:
            raise BadCredit(
                f"credit setting: got {unknown[0][:40]!r}, allowed are {', '.join(sorted(_SETTINGS))}"
            )
        self.settings = CounterfactualSettings(**settings)
        self.make = make
        self.policies = policies

    async def credit(self, record: Record, *, team: str) -> Credit:
        return await self.credit_line(read_line(record), team=team)

    async def credit_line(self, line: Line, *, team: str) -> Credit:
        """Do as `credit` does, for a record that was read already."""
        began = time.perf_counter()
        members = line.members(team)
        settings = self.settings
        cast = await make_cast(
            line,
            reference=settings.reference,
            stand_in=settings.stand_in,
            make=self.make,
            policies=self.policies,
        )
        table = _Table(line, members, cast, settings)
        seats, baseline = await self._divide(table)
        steps = await _steps(table, seats) if settings.steps else ()
        counts = table.counts
        notes = list(cast.notes)
        if counts.failures:
            notes.append(f"{counts.failures} turns in replays failed, and were played by default")
        return Credit(
            self.name,
            team,
            table.result,
            seats,
            steps,
            Cost(counts.replays, counts.model_calls, time.perf_counter() - began),
            baseline,
            tuple(notes),
        )

    async def _divide(self, table: _Table) -> tuple[tuple[SeatCredit, ...], float | None]:
        raise NotImplementedError


class LeaveOneOut(Counterfactual):
    """Credits a seat with what the result loses without its decisions. The shares need not sum to the result."""

    name = "leave-one-out"
    efficient = False

    async def _divide(self, table: _Table) -> tuple[tuple[SeatCredit, ...], None]:
        everyone = (1 << len(table.members)) - 1
        masks = [everyone ^ 1 << i for i in range(len(table.members))]
        rows: list[list[float]] = []
        while len(rows) < table.settings.most and not table.closed(rows):
            found = await table.coalitions(masks, replicate=len(rows))
            rows.append([table.result - found[mask] for mask in masks])
        shares = [fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        known = [not table.line.taken[seat] for seat in table.members]
        return _seats(table, rows, shares, rows, known=known), None


class Shapley(Counterfactual):
    """Divides the result by Shapley values.

    They sum to what the team got beyond what the reference gets in its place, at every seat; the rest is the
    `baseline`. It is shared by how much hangs on each seat (the mean size of what it adds), so that the shares sum to
    the result, a dummy gets nothing, and seats that can be exchanged get the same. Where nothing hangs on anybody the
    shares are equal.
    """

    name = "shapley"
    efficient = True

    async def _divide(self, table: _Table) -> tuple[tuple[SeatCredit, ...], float]:
        n, settings = len(table.members), table.settings
        whole = n <= settings.coalitions
        rows: list[list[float]] = []
        hanging = [0.0] * n
        totals = [0.0] * (1 << n if whole else 0)
        while len(rows) < settings.most and not table.closed(rows):
            replicate = len(rows)
            if whole:
                found = await table.coalitions(range(1 << n), replicate=replicate)
                values = [found[mask] for mask in range(1 << n)]
                totals = [total + value for total, value in zip(totals, values, strict=True)]
                rows.append(shapley(values, members=n))
            else:
                rng = random.Random(derive_seed(settings.seed, "orders", replicate))
                orders = antithetic(n, rng)
                masks = sorted(
                    {
                        mask
                        for order in orders
                        for _, before, after in chain(order)
                        for mask in (before, after)
                    }
                )
                added = along(orders, await table.coalitions(masks, replicate=replicate), members=n)
                rows.append([fsum(values) / len(values) for values in added])
                hanging = [sum_ + fsum(map(abs, values)) for sum_, values in zip(hanging, added, strict=True)]
        if whole:
            hanging = influence([total / len(rows) for total in totals], members=n)
        added_mean = [fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        baseline = fsum([table.result, *(-value for value in added_mean)])
        weight = fsum(hanging)
        part = [value / weight for value in hanging] if weight > 0 else [1 / n] * n
        shares = exact(
            [value + baseline * own for value, own in zip(added_mean, part, strict=True)], total=table.result
        )
        credited = [
            [
                value + fsum([table.result, *(-v for v in row)]) * own
                for value, own in zip(row, part, strict=True)
            ]
            for row in rows
        ]
        return _seats(table, rows, shares, credited, known=[value == 0 for value in hanging]), baseline


def _seats(
    table: _Table,
    rows: list[list[float]],
    shares: Sequence[float],
    credited: list[list[float]],
    *,
    known: Sequence[bool],
) -> tuple[SeatCredit, ...]:
    """Return the seats' credits; `known` says whose value is no estimate: who decided nothing, or changed nothing."""
    line, found = table.line, []
    for i, seat in enumerate(table.members):
        own = [row[i] for row in rows]
        info = line.header.seats[seat]
        spread = 0.0 if known[i] else table.spread
        low, high = interval([row[i] for row in credited], spread=spread, centre=shares[i])
        found.append(
            SeatCredit(seat, info.name, line.outcome.roles[seat], shares[i], low, high, fsum(own) / len(own))
        )
    return tuple(found)


async def _steps(table: _Table, seats: Sequence[SeatCredit]) -> tuple[StepCredit, ...]:
    line, settings = table.line, table.settings
    keep = settings.play_on == "reference"
    asked: list[dict[int, Span]] = [
        {seat: Span(taken.ply, None if keep else taken.ply + 1)}
        for seat in table.members
        for taken in line.taken[seat]
    ]
    rows = [await table.values(asked, replicate=r) for r in range(settings.step_replicates)] if asked else []
    columns = iter(list(zip(*rows, strict=True)))
    steps: list[StepCredit] = []
    for credit in seats:
        made = line.taken[credit.seat]
        if not made:
            continue
        worth = [next(columns) for _ in made]
        # Kept by the reference from here on, a decision is compared with the next one, else with what came of it.
        whole = (table.result,) * settings.step_replicates
        after = [*worth[1:], whole] if keep else [whole] * len(made)
        added = [
            [then - now for then, now in zip(later, sooner, strict=True)]
            for later, sooner in zip(after, worth, strict=True)
        ]
        means = [fsum(values) / len(values) for values in added]
        left = (credit.credit - fsum(means)) / len(made)
        parts = exact([mean + left for mean in means], total=credit.credit)
        for taken, values, part in zip(made, added, parts, strict=True):
            low, high = interval(values, spread=table.spread)
            label: Label | None = None
            mean = fsum(values) / len(values)
            if low is not None and high is not None:
                label = "good" if low > 0 else "bad" if high < 0 else None
            steps.append(StepCredit(taken.ply, credit.seat, part, label, low, high, mean))
    return tuple(sorted(steps, key=lambda step: (step.ply, step.seat)))
