"""Fit the likelihood tables of the scripted Avalon player to its own play.

The tables depend on how the bot plays, and the bot plays by the tables, so the fit is repeated: each round
plays matches among bots that hold the tables of the round before, and counts what seats of each kind did.
Writes the counts to agents/bots/avalon_parameters.json.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from agents.base import Seat
from agents.bots.avalon import AvalonBot
from agents.bots.avalon_belief import (
    INFORMED,
    LONE,
    PLAIN,
    SEER,
    Array,
    Belief,
    Item,
    Played,
    Proposed,
    Reader,
    Tables,
    interest,
    start_belief,
)
from games.avalon import Avalon, AvalonState
from games.avalon.rules import APPROVE, EVIL, MAX_REJECTIONS, MERLIN, MORDRED, OBERON, SIDES
from games.referee import Turn
from games.rng import derive_seed

OUTPUT = Path(__file__).resolve().parent.parent / "agents" / "bots" / "avalon_parameters.json"
GAME = Avalon()


class Counter:
    """Counts what each kind of seat did in one match after another."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.counts: dict[str, Array] = Tables.blank()

    def add(self, state: AvalonState) -> None:
        """Count a finished match."""
        roles = state.roles()
        evil = {s for s, role in enumerate(roles) if SIDES[role] == EVIL}
        lone = {s for s, role in enumerate(roles) if role == OBERON}
        shown = evil - {roles.index(MORDRED) if MORDRED in roles else -1}
        kinds = [
            LONE if role == OBERON else INFORMED if SIDES[role] == EVIL else SEER if role == MERLIN else PLAIN
            for role in roles
        ]
        reader = Reader()
        belief: Belief | None = None
        held: dict[tuple[int, int], bool] = {}
        for event in state.history:
            if event.audience is not None:
                continue
            item = reader.read(event)
            if event.kind == "start":
                belief = start_belief(tuple(event.data["deck"]), self.tables)
            if item is None or belief is None:
                continue
            self._count(belief, item, kinds, evil, lone, shown, held)
            belief = belief.after(item)

    def _count(
        self,
        belief: Belief,
        item: Item,
        kinds: list[int],
        evil: set[int],
        lone: set[int],
        shown: set[int],
        held: dict[tuple[int, int], bool],
    ) -> None:
        counts = self.counts
        team = set(item.team)
        if isinstance(item, Played):
            counts["fails"][item.situation, min(len(team & evil), 3), min(item.fails, 4)] += 1
            return
        if isinstance(item, Proposed):
            self._count_claims(belief, item, kinds, evil, shown, held)
            kind, quality = kinds[item.leader], belief.quality(item.team, item.needed)[item.leader]
            counts["propose_quality"][kind, quality] += 1
            if kind in (PLAIN, SEER):
                counts["propose_shown"][int(kind == SEER), quality, int(bool(team & shown))] += 1
            return
        if item.attempt == MAX_REJECTIONS:
            return
        approval = belief.approval(item)
        for seat, kind in enumerate(kinds):
            vote = int(item.votes[seat] == APPROVE)
            if kind == PLAIN:
                counts["vote_plain"][approval[seat], vote] += 1
            elif kind == SEER:
                counts["vote_seer"][int(bool(team & shown)), approval[seat], vote] += 1
            else:
                known = {seat} if kind == LONE else evil - lone
                wish = int(interest(np.array(float(len(team & known))), item.needed, item.critical))
                counts["vote_lone" if kind == LONE else "vote_informed"][wish, approval[seat], vote] += 1

    def _count_claims(
        self,
        belief: Belief,
        item: Proposed,
        kinds: list[int],
        evil: set[int],
        shown: set[int],
        held: dict[tuple[int, int], bool],
    ) -> None:
        said = dict(item.said)
        for speaker, kind in enumerate(kinds):
            claims = said.get(speaker)
            for target in range(len(kinds)):
                if target == speaker or kind not in (PLAIN, SEER):
                    continue
                b = belief.suspicion_bins[speaker, target]
                for verb, suspected in (("suspect", True), ("trust", False)):
                    listed = () if claims is None else claims.suspects if suspected else claims.trusts
                    if target not in listed and held.get((speaker, target)) is suspected:
                        continue
                    table = self.counts[f"{verb}_plain" if kind == PLAIN else f"{verb}_seer"]
                    if kind == SEER:
                        table = table[int(target in shown)]
                    table[b, int(target in listed)] += 1
            if claims is not None:
                row = {PLAIN: 0, SEER: 0, INFORMED: 1, LONE: 2}[kind]
                for target, said_evil in claims.lady:
                    self.counts["lady"][row, int(target in evil), int(said_evil)] += 1
                held.update({(speaker, t): True for t in claims.suspects})
                held.update({(speaker, t): False for t in claims.trusts})


def play(bot: type[AvalonBot], seats: int, seed: int, options: dict[str, Any]) -> AvalonState:
    """Play one match among bots of one class."""
    state: AvalonState = GAME.new(seed=seed, seats=seats, options=options)
    bots = [bot(Seat(GAME, seats, state.options, s, derive_seed(seed, "seat", s))) for s in range(seats)]
    new, ply = list(state.history), 0
    while True:
        for seat in range(seats):
            bots[seat].observe([event for event in new if event.visible_to(seat)])
        turns = state.turns()
        if not turns:
            return state
        actions = {s: bots[s].decide(Turn(s, ply, space)).action for s, space in turns.items()}
        new = state.apply(actions)  # type: ignore[arg-type]
        ply += 1


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matches", type=int, default=400, help="matches per size and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    counts: dict[str, Array] = Tables.blank()
    for number in range(args.rounds):
        tables = Tables(counts)
        bot = type("FittedBot", (AvalonBot,), {"tables": tables})
        counter = Counter(tables)
        for seats in range(5, 11):
            for i in range(args.matches):
                seed = derive_seed(args.seed, number, seats, i)
                counter.add(play(bot, seats, seed, {"lady": i % 4 == 0}))
        counts = counter.counts
        print(f"round {number + 1}: {int(counts['propose_quality'].sum())} proposals", file=sys.stderr)
    data = {
        "fit": {"matches_per_size": args.matches, "rounds": args.rounds, "seed": args.seed},
        "counts": {name: np.asarray(table).astype(int).tolist() for name, table in counts.items()},
    }
    args.output.write_text(json.dumps(data, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
