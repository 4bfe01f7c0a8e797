"""Fit the likelihoods of the scripted Werewolf player's belief to its own play.

Plays matches (scripted against scripted, and some against random wolves), takes from each what one village seat
saw, and moves one parameter after another while the log loss of P(seat is wolf) before each vote falls. How the
bot plays depends on the parameters, so the whole is repeated. Prints the parameters for `Likelihoods`.
"""

import argparse
import random
from dataclasses import asdict, fields, replace

import numpy as np

from agents.bots.werewolf_belief import Belief, Likelihoods
from benchmarks.werewolf_strength import play
from games.base import Event
from games.rng import derive_seed
from games.werewolf.setup import VILLAGE, WOLVES

Case = tuple[int, list[Event], tuple[bool, ...]]
"""A village seat, what it saw, and who was a wolf."""
SCORES = ("vote_follow", "vote_follow_wolf", "say_follow", "say_follow_wolf", "trust_follow")
LEANS = ("vote_nose", "vote_shield", "say_nose", "say_shield", "trust_nose", "trust_cover")
STATED = ("mute", "mute_wolf", "wrong", "claim_other", "abstain", "abstain_wolf")
"""Parameters that self-play says nothing about; they stay as they are stated."""


def cases(likelihoods: Likelihoods, *, matches: int, seed: int, random_share: float) -> list[Case]:
    """Return what one village seat saw of each of `matches` matches."""
    found: list[Case] = []
    rng = random.Random(seed)
    for number in range(matches):
        seats = 5 + number % 8
        wolves = "random" if rng.random() < random_share else "scripted"
        sides = {VILLAGE: "scripted", WOLVES: wolves}
        state = play(derive_seed(seed, "fit", number), seats, sides, {}, likelihoods=likelihoods)
        teams = state.teams()
        seat = rng.choice([s for s in range(seats) if teams[s] == VILLAGE])
        events = [event for event in state.history if event.visible_to(seat)]
        found.append((seat, events, tuple(team == WOLVES for team in teams)))
    return found


def log_loss(likelihoods: Likelihoods, given: list[Case]) -> float:
    """Return the mean log loss of P(wolf) over the living seats that the seat does not know, before each vote."""
    losses: list[float] = []
    for seat, events, wolf in given:
        belief = Belief(seat, likelihoods=likelihoods)
        for event in events:
            if event.kind == "vote" and seat in belief.alive:
                chance = belief.wolf
                for other in belief.alive:
                    p = float(chance[other])
                    if other != seat and 0 < p < 1:
                        losses.append(-np.log(p if wolf[other] else 1 - p))
            belief.observe(event)
    return float(np.mean(losses))


def fit(likelihoods: Likelihoods, given: list[Case], *, sweeps: int) -> Likelihoods:
    """Return parameters with a lower log loss, by a coordinate search with shrinking steps."""
    best = log_loss(likelihoods, given)
    for sweep in range(sweeps):
        step = 0.5**sweep
        for name in [field.name for field in fields(Likelihoods)]:
            if name in STATED:
                continue
            for sign in (1, -1):
                moved = _moved(likelihoods, name, sign * step)
                loss = log_loss(moved, given)
                if loss < best - 1e-5:
                    likelihoods, best = moved, loss
                    break
        print(f"sweep {sweep}: log loss {best:.4f}", flush=True)
    return likelihoods


def _moved(likelihoods: Likelihoods, name: str, step: float) -> Likelihoods:
    value = float(getattr(likelihoods, name))
    if name in SCORES:
        value *= float(np.exp(0.5 * step))
    elif name in LEANS:
        value = max(0.0, value + 0.5 * step)
    else:
        odds = value / (1 - value) * float(np.exp(step))
        value = min(max(odds / (1 + odds), 0.05), 0.95)
    return replace(likelihoods, **{name: round(value, 4)})


def main() -> None:
    """Run the fit from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2, help="times to play anew with what was fitted")
    parser.add_argument("--sweeps", type=int, default=2)
    parser.add_argument(
        "--random-share", type=float, default=0.2, help="share of matches against random wolves"
    )
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    likelihoods = Likelihoods()
    for number in range(args.rounds):
        given = cases(
            likelihoods, matches=args.matches, seed=args.seed + number, random_share=args.random_share
        )
        likelihoods = fit(likelihoods, given, sweeps=args.sweeps)
        for name, value in asdict(likelihoods).items():
            print(f"    {name}: float = {value}")


if __name__ == "__main__":
    main()
