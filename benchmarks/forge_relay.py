"""Is a silent setter told from a careless runner, in a relay's teams of two?

Four planners run `--legs` legs, so that every seat directs and runs half of them. In the first team seat 0 is planted:
it names no subtask and hints nothing when it directs (`silent`), or it does as it is told only three times in ten when
it runs (`careless`). Each seat of that team has two accounts, the steps lost a leg by its setting and by its running,
as the legs tell them to everybody. An account is flagged where it exceeds all but 1.25 % of what honest teams lost in
other matches, so that of an honest team's four accounts one is flagged in at most one match in twenty; of several, the
one that lost most beyond its limit is blamed. A fault is told right where its account is blamed.

    python -m benchmarks.forge_relay
"""

import argparse
import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from agents.base import Seat
from agents.bots.forge import PlannerBot
from agents.curriculum.metrics import Share
from agents.match import play
from benchmarks._measure import machine, positive, table
from games.referee import Referee
from games.registry import load_game
from games.rng import derive_seed
from games.spaces import ActionSpace
from games.tasks.forge_setup import SILENT
from games.tasks.forge_view import ForgeView

FORGE = load_game("forge")
SEATS = 4
CALIBRATION, TEST = 1, 2
Account = tuple[int, str]
"""A seat in a role."""


class SilentBot(PlannerBot):
    """Runs like any planner, and says nothing when it directs."""

    def direct(self, view: ForgeView) -> str:
        return SILENT

    def hint(self, view: ForgeView, space: ActionSpace) -> str:
        return ""


class CarelessBot(PlannerBot):
    """Directs like any planner, and seldom does what it is told when it runs."""

    skill = 0.3


PLANTED: dict[str, tuple[type[PlannerBot], Account | None]] = {
    "nothing": (PlannerBot, None),
    "silent": (SilentBot, (0, "setting")),
    "careless": (CarelessBot, (0, "running")),
}


def accounts(first: type[PlannerBot], *, seed: int, legs: int) -> dict[Account, float]:
    """Play a match with `first` on seat 0; return the steps a leg that each member of its team lost, by role."""
    state = FORGE.new(seed=seed, seats=SEATS, options={"mode": "relay", "rounds": legs})
    bots = [first, *[PlannerBot] * (SEATS - 1)]
    agents = [bot(Seat(FORGE, SEATS, state.options, i, derive_seed(seed, i))) for i, bot in enumerate(bots)]
    asyncio.run(play(Referee(state), agents))
    lost: dict[Account, list[int]] = defaultdict(list)
    for leg in state.view(None).legs:
        if leg.team == 0:
            lost[leg.setter, "setting"].append(leg.lost_setting)
            for seat, steps in zip(leg.runners, leg.lost_running, strict=True):
                lost[seat, "running"].append(steps)
    return {account: fmean(steps) for account, steps in lost.items()}


def lines(matches: int, *, legs: int) -> dict[str, float]:
    """Return, by role, what an honest account exceeds in 1.25 % of the cases."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(matches):
        for (_, role), steps in accounts(
            PlannerBot, seed=derive_seed(CALIBRATION, number), legs=legs
        ).items():
            found[role].append(steps)
    return {role: float(np.quantile(steps, 1 - 0.0125)) for role, steps in found.items()}


def share(count: int, total: int) -> str:
    """Return a share with its 95 % Wilson interval as text."""
    low, high = Share(total, count).interval or (0.0, 1.0)
    return f"{count / total:.3f} ({low:.3f} to {high:.3f})"


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A relay's accounts: silent setter or careless runner?")
    parser.add_argument("--matches", type=positive, default=200, help="matches of each kind")
    parser.add_argument("--legs", type=int, choices=range(2, 9), default=8, help="legs of a match")
    flags = parser.parse_args(args)
    print(machine("evoke-arena"))
    limits = lines(flags.matches, legs=flags.legs)
    print(
        "flagged above " + ", ".join(f"{steps:.2f} steps a leg by {role}" for role, steps in limits.items())
    )
    rows = []
    for name, (bot, planted) in PLANTED.items():
        told: Counter[str] = Counter()
        lost: dict[Account, list[float]] = defaultdict(list)
        for number in range(flags.matches):
            found = accounts(bot, seed=derive_seed(TEST, number), legs=flags.legs)
            beyond = {account: steps - limits[account[1]] for account, steps in found.items()}
            worst = max(beyond, key=lambda account: beyond[account])
            blamed = worst if beyond[worst] > 0 else None
            told["right" if blamed == planted else "nobody" if blamed is None else "other"] += 1
            for account, steps in found.items():
                lost[account].append(steps)
        means = [f"{fmean(lost[seat, role]):.1f}" for seat in (0, 2) for role in ("setting", "running")]
        cells = [share(told[kind], flags.matches) for kind in ("right", "nobody", "other")]
        rows.append([name, *means, *cells])
    head = ["planted on seat 0", "0 setting", "0 running", "2 setting", "2 running"]
    print(table([*head, "told right", "nobody blamed", "another blamed"], rows))


if __name__ == "__main__":
    main()
