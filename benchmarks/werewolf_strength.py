"""How strong the scripted Werewolf player is, and whether it believes what it should.

For every size: scripted village against random wolves, random village against scripted wolves, scripted against
scripted, and random against random for reference: the share of matches that the village won, with the 95 %
Wilson interval, and the share drawn. Then the reliability table of the posterior: what scripted village seats
believed of every living seat but themselves before each vote, against what was true.
"""

import argparse
import json
import math
import sys
import time
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from agents.base import Bot, Decision, Seat
from agents.bots.werewolf import WerewolfBot
from agents.bots.werewolf_belief import FITTED, Likelihoods
from games.referee import Turn
from games.registry import load_game
from games.rng import derive_seed
from games.werewolf import WerewolfState
from games.werewolf.setup import VILLAGE, VOTE, WOLVES

GAME = load_game("werewolf")
MATCH_UPS = (("scripted", "random"), ("random", "scripted"), ("scripted", "scripted"), ("random", "random"))
"""Who plays the village and who plays the wolves."""
BINS = 10


class UniformBot(Bot):
    """Plays a uniformly drawn legal action."""

    def observe(self, events: Any) -> None:
        self.events_seen += len(events)

    def decide(self, turn: Turn) -> Decision:
        return Decision(turn.space.sample(self.rng()))


class Reliability:
    """Predictions and what was true, by bin of the prediction; kept by moment (day) and over all."""

    def __init__(self) -> None:
        self.sums: dict[str, Any] = defaultdict(lambda: np.zeros((BINS, 3)))

    def add(self, moment: str, predicted: float, true: bool) -> None:
        row = min(int(predicted * BINS), BINS - 1)
        for name in (moment, "all"):
            self.sums[name][row] += (1.0, predicted, true)

    def table(self, moment: str = "all") -> list[dict[str, float]]:
        rows = []
        for row, (n, predicted, true) in enumerate(self.sums[moment]):
            if n:
                rows.append(
                    {"from": row / BINS, "n": int(n), "predicted": predicted / n, "observed": true / n}
                )
        return rows

    def error(self, moment: str = "all") -> float:
        """Return the expected calibration error: the mean of |predicted - observed| over predictions."""
        sums = self.sums[moment]
        return float(np.abs(sums[:, 1] - sums[:, 2]).sum() / sums[:, 0].sum())


def play(
    seed: int,
    seats: int,
    sides: dict[str, str],
    options: Any,
    beliefs: Reliability | None = None,
    *,
    likelihoods: Likelihoods = FITTED,
) -> WerewolfState:
    """Play one match; where `beliefs` is given, note what scripted village seats believe before each vote."""
    state: WerewolfState = GAME.new(seed=seed, seats=seats, options=options)
    teams = state.teams()
    bots: list[Bot] = []
    for number in range(seats):
        seat = Seat(GAME, seats, state.options, number, derive_seed(seed, "seat", number))
        scripted = sides[teams[number]] == "scripted"
        bots.append(WerewolfBot(seat, likelihoods=likelihoods) if scripted else UniformBot(seat))
    events = state.history
    ply = 0
    while True:
        for number, bot in enumerate(bots):
            seen = [event for event in events if event.audience is None or number in event.audience]
            if seen:
                bot.observe(seen)
        turns = state.turns()
        if not turns:
            return state
        actions = {}
        for number, space in turns.items():
            action = bots[number].decide(Turn(number, ply, space)).action
            assert action is not None
            actions[number] = action
        if beliefs is not None and state.phase == VOTE:
            _note(beliefs, state, bots)
        events = state.apply(actions)
        ply += 1


def _note(beliefs: Reliability, state: WerewolfState, bots: list[Bot]) -> None:
    teams = state.teams()
    for holder in state.turns():
        bot = bots[holder]
        if teams[holder] == VILLAGE and isinstance(bot, WerewolfBot):
            chance = bot.belief.wolf
            for seat in state.turns():
                if seat != holder:
                    moment = f"day {state.day}" if state.day < 4 else "day 4 and later"
                    beliefs.add(moment, float(chance[seat]), teams[seat] == WOLVES)


def wilson(wins: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share (Wilson 1927)."""
    z = 1.959964
    share = wins / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def measure(
    seats: int, village: str, wolves: str, *, matches: int, seed: int, options: Any
) -> dict[str, Any]:
    """Play `matches` matches of one match-up and return the village's share with its interval."""
    ended: Counter[str] = Counter()
    beliefs = Reliability()
    start = time.process_time()
    for number in range(matches):
        match_seed = derive_seed(seed, "match", seats, number)
        state = play(match_seed, seats, {VILLAGE: village, WOLVES: wolves}, options, beliefs)
        outcome = state.outcome()
        assert outcome is not None
        ended[outcome.reason] += 1
    cpu_s = time.process_time() - start
    won = ended["wolves_dead"]
    low, high = wilson(won, matches)
    row: dict[str, Any] = {
        "seats": seats,
        "village": village,
        "wolves": wolves,
        "matches": matches,
        "village_won": won / matches,
        "low": low,
        "high": high,
        "drawn": ended["turn_limit"] / matches,
        "cpu_ms_per_match": 1e3 * cpu_s / matches,
    }
    if village == "scripted":
        row["calibration_error"] = beliefs.error()
        row["reliability"] = {moment: beliefs.table(moment) for moment in sorted(beliefs.sums)}
    return row


def main() -> None:
    """Run the measurement from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=1000, help="matches per size and match-up")
    parser.add_argument("--sizes", default="5,6,7,8,9,10,11,12", help="numbers of seats, with commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--option", action="append", default=[], metavar="K=V", help="an option of the game")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    args = parser.parse_args()
    options = dict(pair.split("=", 1) for pair in args.option)
    rows = []
    for seats in [int(size) for size in args.sizes.split(",")]:
        for village, wolves in MATCH_UPS:
            row = measure(seats, village, wolves, matches=args.matches, seed=args.seed, options=options)
            rows.append(row)
            if not args.json:
                _show(row)
    if args.json:
        json.dump({"matches": args.matches, "seed": args.seed, "options": options, "rows": rows}, sys.stdout)
    else:
        _show_reliability(rows)


def _show(row: dict[str, Any]) -> None:
    print(
        f"{row['seats']:2d} seats  village {row['village']:8s} wolves {row['wolves']:8s}  "
        f"village won {row['village_won']:.3f} [{row['low']:.3f}, {row['high']:.3f}]  "
        f"drawn {row['drawn']:.3f}  {row['cpu_ms_per_match']:.1f} ms CPU per match"
        + (f"  calibration error {row['calibration_error']:.3f}" if "calibration_error" in row else ""),
        flush=True,
    )


def _show_reliability(rows: list[dict[str, Any]]) -> None:
    for wolves in ("random", "scripted"):
        sums: dict[str, Any] = defaultdict(lambda: np.zeros((BINS, 3)))
        for row in rows:
            if row["village"] == "scripted" and row["wolves"] == wolves:
                for moment, table in row["reliability"].items():
                    for line in table:
                        n = line["n"]
                        place = round(line["from"] * BINS)
                        sums[moment][place] += (n, n * line["predicted"], n * line["observed"])
        for moment, total in sorted(sums.items()):
            error = np.abs(total[:, 1] - total[:, 2]).sum() / total[:, 0].sum()
            print(f"\nP(wolf) held by village seats against {wolves} wolves, {moment}: error {error:.3f}")
            for place, (n, predicted, true) in enumerate(total):
                if n:
                    print(
                        f"  {place / BINS:.1f}-{(place + 1) / BINS:.1f}  n {int(n):8d}  "
                        f"predicted {predicted / n:.3f}  observed {true / n:.3f}"
                    )


if __name__ == "__main__":
    main()
