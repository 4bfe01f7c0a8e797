"""How surely credit finds a planted free rider or saboteur, and how rarely it accuses a team of equals.

Matches are played, recorded, and credited as `arena credit DIR` does it: each seat's decisions replaced once by those
of the reference, the scripted player. In Avalon five players sit anywhere by the deal, in Werewolf eight; in Forge's
relay two teams of two race. One player is planted: the free rider plays every default (approves all, is silent,
waits); the saboteur plays against its team (in Avalon and Werewolf for the other side, with all that it knows; in the
relay it names the wrong subtask, hints the wrong way and runs back). `to mates` is what the planted player contributes
less than its team-mates in the pool.

Power: the share of experiments that accuse the planted player. False accusations: the share of experiments that accuse
anyone else, which among equals is anyone. An experiment draws its matches from the pool with replacement, and deals the
names of the players that are equals anew in each match, which is what being equal means. Intervals are Wilson's over
experiments; the pool's own chance comes on top.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents.base import Agent, Bot, Decision, Seat
from agents.bots.avalon import AvalonBot
from agents.bots.forge import BACK, LETTERS, PlannerBot, hinted
from agents.bots.werewolf import WerewolfBot
from agents.credit.base import make_method
from agents.credit.counterfactual import Counterfactual
from agents.credit.line import read_line
from agents.credit.summary import Contribution, summarise
from agents.players import make_agent
from arena.credit import MANY, contributions
from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from arena.standings import wilson
from games.referee import Turn
from games.registry import load_game
from games.spaces import Choice
from games.werewolf.setup import NONE, POISON
from replays.reader import read_record

PLANTS = EQUALS, FREE_RIDER, SABOTEUR = "equals", "free rider", "saboteur"
PLANTED = "planted"


class Game(NamedTuple):
    """What is played: the game, its seats and options."""

    name: str
    seats: int
    options: dict[str, Any]


GAMES = {
    "avalon": Game("avalon", 5, {}),
    "werewolf": Game("werewolf", 8, {}),
    "relay": Game("forge", 4, {"mode": "relay"}),
}


class Idle(Bot):
    """Plays every default."""

    def decide(self, turn: Turn) -> Decision:
        return Decision(turn.space.default)


class AvalonSaboteur(AvalonBot):
    """Plays for the other side with all that it knows.

    A good one proposes and votes for the teams that are least likely safe, and praises whom it suspects. An evil one
    proposes and votes for clean teams, tells on its fellows, never fails a quest, and stabs who is least like merlin.
    """

    def _opinion(self, often: float, rng: random.Random) -> Any:
        return np.asarray(self.posterior().sum(axis=1)) if self._is_evil else super()._opinion(often, rng)

    def _chances(self, opinion: Any, size: int) -> Any:
        teams, chances = super()._chances(opinion, size)
        return teams, chances if self._is_evil else 1 - chances

    def _fellows(self) -> set[int]:
        return set()

    def _fails(self, rng: random.Random) -> bool:
        return False

    def _speak(self, rng: random.Random) -> str:
        words = super()._speak(rng)
        if self._is_evil:
            return words
        return words.replace("trust", "doubt").replace("suspect", "trust").replace("doubt", "suspect")

    def _merlin(self, rng: random.Random) -> int:
        likely = super()._merlin(rng)
        good = [seat for seat in range(self.view.seats) if seat not in self.view.evil and seat != likely]
        return rng.choice(good)


class WerewolfSaboteur(WerewolfBot):
    """Votes for, accuses, poisons and shoots its own side, and spares the other.

    A villager takes whom it holds most surely for a villager for a wolf; a wolf tells on its fellows, and names the
    seat that the pack wants least.
    """

    def decide(self, turn: Turn) -> Decision:
        usual = super().decide(turn)
        options = turn.space.options if isinstance(turn.space, Choice) else ()
        label, own = turn.space.label, self._own()
        match label:
            case "vote" | "shoot" if str(own) in options:
                return Decision(str(own))
            case "potion":
                return Decision(f"{POISON} {own}" if f"{POISON} {own}" in options else NONE)
            case "speak" | "last_words" if own is not None:
                return Decision(f"I suspect {own}.")
            case "wolf_target" | "protect" | "see":
                seats = [option for option in options if option.isdigit()]
                return Decision(min(seats, key=lambda option: self._worth(label, int(option))))
        return usual

    def _own(self) -> int | None:
        """Return the living seat of its own side that it would see dead."""
        others = [seat for seat in self.view.alive if seat != self.me]
        if self.evil:
            return next((seat for seat in others if seat in self.view.pack), None)
        return min(others, key=lambda seat: self.belief.wolf[seat] + self._noise[seat], default=None)

    def _worth(self, label: str, seat: int) -> float:
        match label:
            case "wolf_target":
                return self._danger(seat)
            case "protect":
                return -float(self.belief.wolf[seat])
        return -float(seat in {sight.at for sight in self.view.sights})


class RelaySaboteur(PlannerBot):
    """Names the wrong subtask, hints the wrong way, and runs back."""

    def decide(self, turn: Turn) -> Decision:
        right = str(super().decide(turn).action)
        options = turn.space.options if isinstance(turn.space, Choice) else ()
        match turn.space.label:
            case "direct":
                wrong = [option for option in options if option != right]
                return Decision(self.rng().choice(wrong) if wrong else right)
            case "hint":
                back = {letter: LETTERS[BACK[word]] for word, letter in LETTERS.items() if word in BACK}
                return Decision("".join(back.get(letter, letter) for letter in right))
        team = self.view.teams[self.seat.seat % 2]
        wrong_way = BACK.get(hinted(team.hint, team.moves) or right, "wait")
        return Decision(
            wrong_way if wrong_way in options else "wait" if "wait" in options else turn.space.default
        )


SABOTEURS: dict[str, Callable[[Seat], Agent]] = {
    "avalon": AvalonSaboteur,
    "forge": RelaySaboteur,
    "werewolf": WerewolfSaboteur,
}


def make(spec: str, seat: Seat) -> Agent:
    """Return a bot, planted ones among them."""
    if spec == FREE_RIDER:
        return Idle(seat)
    if spec == SABOTEUR:
        return SABOTEURS[seat.game.name](seat)
    return make_agent(spec, seat)


def collect(
    game: Game,
    planted: str,
    *,
    matches: int,
    method: str,
    reference: str,
    folder: Path,
    loop: asyncio.Runner,
) -> tuple[list[list[Contribution]], dict[str, float]]:
    """Play and credit matches; return the contributions by match, and the CPU seconds and replays of a match."""
    rules = load_game(game.name)
    options = rules.parse_options(game.options)
    players = {f"player {seat}": "scripted" for seat in range(game.seats)}
    if planted != EQUALS:
        players = {PLANTED: planted, **dict(list(players.items())[1:])}
    names = tuple(players)
    crediting = make_method(method, make=make, reference=reference, **MANY)
    assert isinstance(crediting, Counterfactual)
    found, replays, began, spent = [], 0, time.process_time(), 0.0
    for number in range(matches):
        # In a relay the teams are the even and the odd seats: turning them seats everyone in either team.
        turned = tuple(names[(seat + number) % game.seats] for seat in range(game.seats))
        path = folder / f"{game.name}-{planted}-{number}.arena"
        job = MatchJob(
            str(number),
            MatchPlan(number, game.name, number, number, 0, turned),
            game.seats,
            players,
            options.model_dump(mode="json"),
            record=path,
        )
        report = run_match(job, loop=loop, make=make)
        if report.error is not None:
            raise SystemExit(report.error)
        start = time.process_time()
        line = read_line(read_record(path))
        rows: list[Contribution] = []
        for team in line.team_names:
            credit = loop.run(crediting.credit_line(line, team=team))
            rows += contributions(line, credit, match=str(number))
            replays += credit.cost.replays
        found.append(rows)
        spent += time.process_time() - start
        path.unlink()
    whole = time.process_time() - began
    return found, {
        "cpu_s_a_match": whole / matches,
        "credit_cpu_s_a_match": spent / matches,
        "replays_a_match": replays / matches,
    }


def experiment(pool: Sequence[Sequence[Contribution]], *, matches: int, rng: random.Random) -> list[str]:
    """Return who is accused over matches drawn from the pool."""
    rows: list[Contribution] = []
    for number, drawn in enumerate(rng.choices(pool, k=matches)):
        equals = sorted({row.player for row in drawn} - {PLANTED})
        names = dict(zip(equals, rng.sample(equals, len(equals)), strict=True)) | {PLANTED: PLANTED}
        rows += [replace(row, deal=str(number), match=str(number), player=names[row.player]) for row in drawn]
    return [row.player for row in summarise(rows, idle_reference=False) if row.accusation is not None]


def share(count: int, experiments: int) -> dict[str, float]:
    """Return a share with its 95 % interval."""
    low, high = wilson(count / experiments, n=experiments)
    return {"share": count / experiments, "low": low, "high": high}


def main(argv: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", nargs="+", choices=sorted(GAMES), default=sorted(GAMES))
    parser.add_argument("--method", choices=["leave-one-out", "shapley"], default="leave-one-out")
    parser.add_argument("--reference", default="scripted", help="who takes a seat's place")
    parser.add_argument("--pool", type=int, default=400, help="matches played for each planted player")
    parser.add_argument("--matches", type=int, nargs="+", default=[25, 50, 100, 200], help="of an experiment")
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--planted", nargs="+", choices=PLANTS, default=list(PLANTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(argv)
    lines: list[dict[str, Any]] = []
    if not asked.json:
        print("| game | planted | to mates | matches | found | others accused | CPU ms a match | replays |")
        print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as loop:
        for name in asked.games:
            for planted in asked.planted:
                pool, cost = collect(
                    GAMES[name],
                    planted,
                    matches=asked.pool,
                    method=asked.method,
                    reference=asked.reference,
                    folder=Path(folder),
                    loop=loop,
                )
                rows = [row for match in pool for row in match]
                behind = [
                    row.behind for row in summarise(rows, idle_reference=False) if row.player == PLANTED
                ]
                for matches in asked.matches:
                    rng = random.Random(f"{asked.seed} {name} {planted} {matches}")
                    accused = [experiment(pool, matches=matches, rng=rng) for _ in range(asked.experiments)]
                    line = {"game": name, "planted": planted, "matches": matches, "pool": asked.pool, **cost}
                    innocent = sum(any(who != PLANTED for who in found) for found in accused)
                    line["false"] = share(innocent, asked.experiments)
                    if planted != EQUALS:
                        line["to_mates"] = behind[0]
                        line["power"] = share(sum(PLANTED in found for found in accused), asked.experiments)
                    lines.append(line)
                    if not asked.json:
                        print(shown(line), flush=True)
    if asked.json:
        json.dump(lines, sys.stdout, indent=2)


def shown(line: dict[str, Any]) -> str:
    """Return a line of the table."""

    def interval(found: dict[str, float] | None) -> str:
        return "-" if found is None else f"{found['share']:.1%} ({found['low']:.1%} to {found['high']:.1%})"

    to_mates = "-" if line.get("to_mates") is None else f"{line['to_mates']:+.2f}"
    return (
        f"| {line['game']} | {line['planted']} | {to_mates} | {line['matches']} | {interval(line.get('power'))} "
        f"| {interval(line['false'])} | {line['credit_cpu_s_a_match'] * 1000:.0f} | {line['replays_a_match']:.1f} |"
    )


if __name__ == "__main__":
    main()
