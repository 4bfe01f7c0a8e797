"""What the tests of labels share: matches of which every decision is given."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.credit.labels import Labeller, SeatLabels
from games.referee import Input
from games.spaces import Action
from replays.record import Record
from tests.replays.recording import encode, footer, header, read, referee

Answer = Callable[[Any, int, Any], Action | None]
"""From state, seat and space to the action; None plays at random, as drawn by the space from the seat."""


def play(
    game: str,
    answer: Answer,
    *,
    seats: int,
    seed: int = 1,
    options: Mapping[str, Any] | None = None,
    wrong: Collection[int] = (),
) -> Record:
    """Return the record of a match in which `answer` decides; seats in `wrong` never give a legal answer."""
    head = replace(header(game, seats=seats, seed=seed), options=dict(options or {}), retries=0)
    table = referee(head)
    made: list[Any] = list(table.opening())
    while turns := table.turns():
        for seat, turn in turns.items():
            chosen = answer(table.state, seat, turn.space)
            action = turn.space.default if chosen is None else chosen
            made += table.feed(
                Input(
                    seat, turn.ply, None if seat in wrong else action, "unparsed" if seat in wrong else None
                )
            )
    return read(encode(head, made, footer(table)))


def labels(labeller: Labeller, record: Record, seats: Sequence[int] | None = None) -> dict[int, SeatLabels]:
    """Return what a labeller says of all seats, or of some."""
    chosen = range(len(record.header.seats)) if seats is None else seats
    return asyncio.run(labeller.label(record, seats=chosen))


def said(found: SeatLabels) -> dict[int, tuple[int, str]]:
    """Return a seat's labels that are not neutral, by ply."""
    return {step.ply: (step.value, step.why) for step in found.steps if step.value}
