"""How good the learner is: matches against fixed opponents, and in small games what a best response would gain.

The deals of an evaluation are the same every time, so that two evaluations of a run are compared on equal luck. Every
deal is played from each side, or beside mates from each seat; what is stated is over deals, for the matches of one deal
are not independent.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import fmean
from typing import Any

from scipy.special import stdtrit

from agents.policy.chat import ChatTokenizer
from agents.policy.service import Policies, playing
from agents.policy.spec import parse_spec
from agents.training.config import PlayedGame, TrainConfig
from agents.training.exact import Probabilities, policy_table, table_nash_conv
from agents.training.learner import Learner
from arena.config import MatchSettings
from arena.report import MatchReport
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from arena.standings import wilson
from arena.train_rollouts import (
    LEARNER,
    MATE,
    OPPONENT,
    Planned,
    play,
    plays,
    seating_beside,
    seating_by_side,
)
from games.registry import load_game
from games.rng import derive_seed

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Against:
    """The learner's results against one opponent at one game.

    Args:
        game, opponent: which.
        matches, failed: that were played, and that could not be.
        score: the mean of the learner's points (1 a win, 0.5 a draw), in each deal of its sides alike, however many
            seats they have; `low` and `high` its 95 % interval over deals.
        value: the mean of its returns.
        by_side: points by the side that it sat on.
        failures: share of its answers that were unreadable, illegal or late.
    """

    game: str
    opponent: str
    matches: int
    failed: int
    score: float | None
    low: float | None
    high: float | None
    value: float | None
    by_side: dict[str, float]
    failures: float

    def to_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def plan(config: TrainConfig, *, spec: str, update: int) -> list[tuple[PlayedGame, str, list[Planned]]]:
    """Return the matches of an evaluation, by game and opponent."""
    found = []
    for game in config.games:
        rules = load_game(game.game)
        seats = game.seats or rules.default_seats
        for opponent in config.evaluation.opponents:
            if not plays(opponent, game.game):
                continue
            jobs: list[Planned] = []
            for deal in range(config.evaluation.deals):
                seed = derive_seed(config.seed, "evaluation", game.game, deal)
                teams = rules.new(seed=seed, seats=seats, options=game.options).teams()
                for name, seating in _seatings(teams, beside=config.evaluation.mates is not None):
                    players = {LEARNER: spec, OPPONENT: opponent}
                    if config.evaluation.mates is not None and MATE in seating:
                        players[MATE] = config.evaluation.mates
                    job = MatchJob(
                        f"e{update}-{opponent}-d{deal}-{name}",
                        MatchPlan(len(jobs), game.game, seed, deal, 0, seating=seating),
                        len(teams),
                        players,
                        options=dict(game.options),
                    )
                    jobs.append(Planned(job, opponent))
            found.append((game, opponent, jobs))
    return found


def _seatings(teams: Sequence[str], *, beside: bool) -> list[tuple[str, tuple[str, ...]]]:
    """Return, by the name of its side or the number of its seat, where the learner sits in the matches of a deal."""
    if beside:
        return [(str(seat), seating_beside(teams, seat)) for seat in range(len(teams))]
    return [(side, seating_by_side(teams, side)) for side in dict.fromkeys(teams)]


async def against(
    config: TrainConfig,
    *,
    spec: str,
    update: int,
    policies: Policies,
    match: MatchSettings,
    concurrency: int,
) -> list[Against]:
    """Play the learner against the fixed opponents. Matches that fail are counted, and left out."""
    found = []
    for game, opponent, planned in plan(config, spec=spec, update=update):
        reports = await play(planned, policies=policies, match=match, concurrency=concurrency)
        deals = [entry.job.plan.deal for entry in planned]
        found.append(_summary(game.game, opponent, reports, deals))
    return found


def _summary(game: str, opponent: str, reports: Sequence[MatchReport], deals: Sequence[int]) -> Against:
    by_deal: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    by_side: dict[str, list[float]] = defaultdict(list)
    values: list[float] = []
    answers = failures = failed = 0
    for report, deal in zip(reports, deals, strict=True):
        if report.error is not None or report.points is None:
            failed += 1
            continue
        points = report.points[LEARNER]
        own = [seat for seat in report.seats if seat.player == LEARNER]
        by_deal[deal][own[0].team].append(points)
        by_side[own[0].team].append(points)
        values.append(sum(seat.value for seat in own) / len(own))
        answers += report.counts.get("turns", 0) * len(own) // max(1, len(report.seats))
        failures += sum(count for seat in own for cause, count in seat.counts.items() if cause != "forced")
    means = [fmean(fmean(points) for points in sides.values()) for sides in by_deal.values()]
    low, high = interval(means)
    if low is not None and low == high:  # deals that all end alike do not prove that all would
        low, high = wilson(means[0], n=len(means))
    return Against(
        game,
        opponent,
        matches=len(reports) - failed,
        failed=failed,
        score=sum(means) / len(means) if means else None,
        low=None if low is None else max(0.0, low),
        high=None if high is None else min(1.0, high),
        value=sum(values) / len(values) if values else None,
        by_side={side: sum(one) / len(one) for side, one in sorted(by_side.items())},
        failures=min(1.0, failures / max(1, answers)),
    )


def interval(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return Student's 95 % interval of a mean; none for fewer than two values."""
    count = len(values)
    if count < 2:
        return None, None
    mean = sum(values) / count
    error = sqrt(sum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error
    return mean - half, mean + half


class Exact:
    """Computes how far the learner is from perfect play in the small games of a run.

    Args:
        config: names the games.
        learner: whose weights are asked; blocking.
        policies: how it plays.
        spec: of the learner.
    """

    def __init__(self, config: TrainConfig, *, learner: Learner, policies: Policies, spec: str) -> None:
        self.games = config.games
        self.learner = learner
        engine = policies.batcher(spec).engine
        self.context_tokens = engine.context_tokens
        self.playing = playing(policies.settings, parse_spec(spec))
        self.tokenizer = ChatTokenizer(learner.model.folder)

    def tables(self, *, latest: bool = False) -> dict[str, Probabilities]:
        """Return the learner's policy by game, by its averaged weights where there are, unless `latest`.

        Raises `NotSolvable`.
        """
        return {
            one.game: policy_table(
                self.learner,
                load_game(one.game),
                tokenizer=self.tokenizer,
                playing=self.playing,
                context_tokens=self.context_tokens,
                options=one.options,
                averaged=bool(self.learner.settings.average) and not latest,
            )
            for one in self.games
        }

    def nash_conv(self, *, latest: bool = False) -> dict[str, float]:
        """Return NashConv by game; `latest` as of `tables`. Raises `NotSolvable`."""
        options = {one.game: one.options for one in self.games}
        return {
            name: table_nash_conv(load_game(name), table, options=options[name])
            for name, table in self.tables(latest=latest).items()
        }
