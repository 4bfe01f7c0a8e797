"""The matches between two updates: planned from the seed, played like any other match, read back as trajectories."""

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agents.errors import BadRollout, PlayerCannotPlay
from agents.players import Player, check_plays
from agents.policy.service import Policies
from agents.training.config import PlayedGame, TrainConfig
from agents.training.league import ITSELF, League
from agents.training.trajectories import Trajectory, harvest
from arena.config import MatchSettings
from arena.errors import TrainStopped
from arena.report import MatchReport
from arena.runner import MatchJob, run_policy_match
from arena.schedule import MatchPlan
from games.base import Game
from games.registry import load_game
from games.rng import derive_seed
from replays.errors import RecordError
from replays.reader import read_record
from replays.record import SUFFIX, Record

LEARNER, OPPONENT, MATE = "learner", "opponent", "mate"


@dataclass(frozen=True, slots=True)
class Planned:
    """A match to be played, and whom the learner meets in it: a spec, or `itself`."""

    job: MatchJob
    opponent: str


@dataclass(slots=True)
class Rollouts:
    """What came of the matches between two updates.

    `failed` counts those without a trajectory by cause, `points` and `met` by opponent the learner's points and
    the matches they are of.
    """

    trajectories: list[Trajectory] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    matches: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    points: dict[str, float] = field(default_factory=dict)
    met: Counter[str] = field(default_factory=Counter)
    plies: int = 0


def plan(config: TrainConfig, *, update: int, spec: str, league: League, folder: Path) -> list[Planned]:
    """Return the matches of an update. What is planned follows from the seed, the update and the league.

    All matches of a deal have the same opponent, and the learner sits on each side in turn; beside mates, on one seat
    of it after the other.

    Args:
        config: of the run.
        update: which.
        spec: the learner's, of the version that plays.
        league: gives the opponents.
        folder: where the records go.
    """
    found: list[Planned] = []
    if not config.games:  # tasks alone are trained on
        return found
    chance = random.Random(derive_seed(config.seed, "games", update))
    for place in range(config.rollout.deals):
        (game,) = chance.choices(config.games, [one.weight for one in config.games])
        rules = load_game(game.game)
        seeds = config.rollout.seeds
        seed = seeds[place % len(seeds)] if seeds else derive_seed(config.seed, "deal", update, place)
        barred = [one.spec for one in league.bots if not plays(one.spec, game.game)]
        member = league.draw(derive_seed(config.seed, "league", update, place), barred=barred)
        teams = _teams(rules, game, seed)
        sides = list(dict.fromkeys(teams))
        for play in range(config.rollout.plays):
            name = f"u{update}-d{place}-p{play}"
            players = {LEARNER: spec}
            if member.spec == ITSELF:
                seating = seating_by_side(teams, "")
            else:
                players[OPPONENT] = member.spec
                side, again = sides[play % len(sides)], play // len(sides)
                if config.league.mates is None:
                    seating = seating_by_side(teams, side)
                else:
                    own = seats_of(teams, side)
                    if seeds:  # a deal that comes back is played from another seat
                        again += place // len(seeds) + update
                    seating = seating_beside(teams, own[(place + again) % len(own)])
                    if MATE in seating:
                        players[MATE] = config.league.mates
            job = MatchJob(
                name,
                MatchPlan(len(found), game.game, seed, place, update, seating=seating),
                len(teams),
                players,
                options=dict(game.options),
                record=folder / f"{name}{SUFFIX}",
            )
            found.append(Planned(job, member.spec))
    return found


def _teams(rules: Game, game: PlayedGame, seed: int) -> tuple[str, ...]:
    seats = game.seats or rules.default_seats
    teams: tuple[str, ...] = rules.new(seed=seed, seats=seats, options=game.options).teams()
    return teams


def plays(spec: str, game: str) -> bool:
    """Whether a player of this spec plays a game. Raises a `PlayerError` for a spec that means nothing."""
    try:
        check_plays(Player(spec, spec), game=game)
    except PlayerCannotPlay:
        return False
    return True


def seating_by_side(teams: Sequence[str], side: str) -> tuple[str, ...]:
    """Return who sits where: the learner on one side, or everywhere where `side` is empty."""
    return tuple(LEARNER if side in ("", team) else OPPONENT for team in teams)


def seats_of(teams: Sequence[str], side: str) -> list[int]:
    """Return the seats of a side."""
    return [seat for seat, team in enumerate(teams) if team == side]


def seating_beside(teams: Sequence[str], seat: int) -> tuple[str, ...]:
    """Return who sits where: the learner on one seat, mates on the others of its side."""
    own = (MATE if team == teams[seat] else OPPONENT for team in teams)
    return tuple(LEARNER if place == seat else name for place, name in enumerate(own))


async def play(
    planned: Sequence[Planned],
    *,
    policies: Policies,
    match: MatchSettings,
    concurrency: int,
) -> list[MatchReport]:
    """Play the matches, many at a time, and return their reports in order."""
    room = asyncio.Semaphore(concurrency)

    async def one(job: MatchJob) -> MatchReport:
        job = replace(job, retries=match.retries, deadline_s=match.deadline_s)
        async with room:
            return await run_policy_match(job, policies=policies)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(entry.job)) for entry in planned]
    return [task.result() for task in tasks]


def gather(planned: Sequence[Planned], reports: Sequence[MatchReport], *, max_failed: float) -> Rollouts:
    """Read the records back. A match that failed, or cannot be read, is counted with its cause and never played again.

    Raises `TrainStopped` where more than the share `max_failed` of them failed.
    """
    found = Rollouts(matches=len(planned))
    last = ""
    for entry, report in zip(planned, reports, strict=True):
        if report.error is not None or report.record is None:
            found.failed["match"] += 1
            last = report.error or "no record"
            continue
        try:
            record = read_record(report.record)
            found.trajectories += harvest(record, players={LEARNER}, stratum=entry.opponent)
        except (RecordError, BadRollout) as error:
            found.failed[error.code] += 1
            last = str(error)
            continue
        found.records.append(record)
        found.plies += report.counts.get("turns", 0)
        if entry.opponent != ITSELF and report.points is not None:
            found.points[entry.opponent] = found.points.get(entry.opponent, 0.0) + report.points[LEARNER]
            found.met[entry.opponent] += 1
    failed = sum(found.failed.values())
    if planned and failed > max_failed * len(planned):
        raise TrainStopped(f"{failed} of {len(planned)} matches failed, the last so: {last[:300]}")
    return found


def clear(folder: Path) -> None:
    """Drop the records of an update."""
    shutil.rmtree(folder, ignore_errors=True)
