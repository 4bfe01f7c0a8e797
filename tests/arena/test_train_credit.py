import asyncio
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from agents.credit.adca import AdcaSettings, fuse
from agents.credit.base import Cost, Credit, SeatCredit
from agents.credit.labels import SeatLabels, StepLabel
from agents.errors import BadLabels, NotRebuilt
from agents.policy.base import Constraint
from agents.training.advantages import advantages
from agents.training.settings import AdvantageSettings
from agents.training.trajectories import Step, Trajectory
from arena.runner import MatchJob, run_match
from arena.schedule import MatchPlan
from arena.train_attempts import Attempts
from arena.train_credit import Credits
from arena.train_rollouts import LEARNER, Rollouts
from replays.reader import read_record
from replays.record import Record
from tests.arena.training import small

AVALON = {"games": [{"game": "avalon"}]}


@lru_cache(maxsize=4)
def _played(game: str, seats: int, folder: Path) -> Record:
    path = folder / f"{game}.arena"
    plan = MatchPlan(0, game, 5, 0, 0, (LEARNER,) * seats)
    job = MatchJob("u0-d0-p0", plan, seats, {LEARNER: "random"}, record=path)
    with asyncio.Runner() as loop:
        assert run_match(job, loop=loop).error is None
    return read_record(path)


def _rollouts(record: Record) -> Rollouts:
    """Return a record as if a language model had played it: each seat a trajectory with two steps."""
    assert record.footer is not None
    outcome = record.footer.outcome
    trajectories = [
        Trajectory(
            match=record.header.match,
            game=record.header.game,
            options="",
            seats=len(record.header.seats),
            deal="d",
            seat=seat,
            role=outcome.roles[seat],
            team=outcome.teams[seat],
            player=LEARNER,
            adapter="x@1",
            steps=tuple(_step(ply) for ply in (0, 1)),
            outcome=float(outcome.returns[seat]),
        )
        for seat in range(len(record.header.seats))
    ]
    return Rollouts(trajectories, [record], matches=1)


def _step(ply: int) -> Step:
    return Step(ply, 0, "action", (1, 2), (3, 4), (-0.5, 0.0), Constraint(choices=("a", "b")))


class Says:
    """Calls what a seat does in ply 0 good, and leaves ply 1 alone; costs two tokens a seat."""

    name = "says"
    version = "says-1"

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    async def label(self, record: Record, *, seats: Collection[int]) -> dict[int, SeatLabels]:
        if self.fails:
            raise BadLabels("it knows no such game")
        return {
            seat: SeatLabels(
                seat,
                (StepLabel(0, seat, 1 if seat else -1),),
                model_calls=1,
                prompt_tokens=2,
            )
            for seat in seats
        }


class Shares:
    name = "shares"
    efficient = True

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.teams: list[str] = []

    async def credit(self, record: Record, *, team: str) -> Credit:
        self.teams.append(team)
        if self.fails:
            raise NotRebuilt("seat 0: gone")
        assert record.footer is not None
        seats = [seat for seat, of in enumerate(record.footer.outcome.teams) if of == team]
        given = [SeatCredit(seat, LEARNER, "", float(place)) for place, seat in enumerate(seats)]
        return Credit("shares", team, 0.0, tuple(given), cost=Cost(replays=7))


def _divide(credits: Credits, rollouts: Rollouts, attempts: Attempts | None = None) -> Any:
    return asyncio.run(credits.divide(rollouts, attempts or Attempts()))


def test_without_a_method_outcomes_are_as_they_are(tmp_path: Path) -> None:
    found = _divide(Credits(small()), _rollouts(_played("kuhn", 2, tmp_path)))
    assert (found.outcomes, found.labels, found.process) == (None, None, None) and found.cost() == {}


def test_labels_reach_their_steps_and_are_fused(tmp_path: Path) -> None:
    config = small(credit={"method": "adca", "alpha": 0.2, "bound": 0.4, "discount": 0.5})
    rollouts = _rollouts(_played("kuhn", 2, tmp_path))
    found = _divide(Credits(config, labellers={"kuhn": Says()}), rollouts)
    assert found.labels == [[-1.0, 0.0], [1.0, 0.0]]
    assert found.cost()["tokens"] == 4 and found.cost()["model_calls"] == 2
    more = [*rollouts.trajectories, *rollouts.trajectories]
    settings = AdvantageSettings(scale="none", by_deal=False)
    steps = advantages(more, settings=settings, labels=[*found.labels, *found.labels], process=found.process)
    assert len(steps) == 4 and all(len(row) == 2 for row in steps)
    assert found.process is not None
    group: list[list[float]] = [[1.0, 1.0], [-1.0, 1.0]]
    as_configured = fuse([1.0, -1.0], group, AdcaSettings(alpha=0.2, bound=0.4, discount=0.5))
    assert found.process([1.0, -1.0], group) == as_configured
    assert as_configured != fuse([1.0, -1.0], group, AdcaSettings(alpha=0.2, bound=0.4))


def test_a_judge_that_fails_leaves_all_neutral_and_is_counted(tmp_path: Path) -> None:
    config = small(credit={"method": "adca"})
    found = _divide(
        Credits(config, labellers={"kuhn": Says(fails=True)}), _rollouts(_played("kuhn", 2, tmp_path))
    )
    assert found.labels == [[0.0, 0.0], [0.0, 0.0]]
    assert found.causes == {"bad_labels": 1} and found.matches == 0


def test_beside_mates_the_learners_share_alone_takes_the_place_of_its_return(tmp_path: Path) -> None:
    config = small(**AVALON, credit={"method": "shapley"})
    method = Shares()
    rollouts = _rollouts(_played("avalon", 5, tmp_path))
    own = [one for one in rollouts.trajectories if one.team == "good"][1]
    rollouts.trajectories = [own]
    found = _divide(Credits(config, method=method), rollouts)
    assert method.teams == ["good"], "nobody is credited on the other side"
    assert found.outcomes == [1.0 * 3], "times the seats of its team, mates and all"


def test_a_share_takes_the_place_of_a_return_in_teams(tmp_path: Path) -> None:
    config = small(**AVALON, credit={"method": "shapley"})
    method = Shares()
    rollouts = _rollouts(_played("avalon", 5, tmp_path))
    found = _divide(Credits(config, method=method), rollouts)
    assert sorted(method.teams) == ["evil", "good"] and found.replays == 14
    assert found.outcomes is not None
    for team, seats in (("good", 3), ("evil", 2)):
        own = [o for o, one in zip(found.outcomes, rollouts.trajectories, strict=True) if one.team == team]
        assert own == [float(place * seats) for place in range(seats)]


def test_a_share_that_cannot_be_had_leaves_the_return(tmp_path: Path) -> None:
    config = small(**AVALON, credit={"method": "shapley"})
    rollouts = _rollouts(_played("avalon", 5, tmp_path))
    found = _divide(Credits(config, method=Shares(fails=True)), rollouts)
    assert found.outcomes == [one.outcome for one in rollouts.trajectories]
    assert found.causes == {"not_rebuilt": 2}


def test_of_a_single_seat_the_share_is_its_return(tmp_path: Path) -> None:
    config = small(credit={"method": "shapley"})
    method = Shares()
    rollouts = _rollouts(_played("kuhn", 2, tmp_path))
    found = _divide(Credits(config, method=method), rollouts)
    assert method.teams == [] and found.outcomes == [one.outcome for one in rollouts.trajectories]


def test_only_a_share_of_the_matches_is_divided(tmp_path: Path) -> None:
    config = small(**AVALON, credit={"method": "shapley", "share": 1e-9})
    method = Shares()
    _divide(Credits(config, method=method), _rollouts(_played("avalon", 5, tmp_path)))
    assert method.teams == []


@pytest.mark.parametrize("labels", [[[1, -1]], [[0, 0]]])
def test_labels_of_tasks_come_after_those_of_games(labels: Sequence[Any], tmp_path: Path) -> None:
    rollouts = _rollouts(_played("kuhn", 2, tmp_path))
    attempts = Attempts(trajectories=rollouts.trajectories[:1], labels=[list(one) for one in labels])
    found = _divide(Credits(small()), rollouts, attempts)
    if any(map(any, labels)):
        assert found.labels == [[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]]
    else:
        assert found.labels is None and found.process is None


def test_the_judges_and_methods_of_a_configuration_are_opened(tmp_path: Path) -> None:
    from agents.credit.counterfactual import Shapley
    from agents.credit.label_rules import RulesLabeller
    from agents.policy.service import Policies
    from tests.arena.training import settings

    async def opened(**credit: Any) -> Any:
        where = settings(tmp_path)
        policies = Policies(where.policy, home=tmp_path)
        async with Credits.open(small(credit=credit), policies=policies, settings=where) as found:
            return found

    found = asyncio.run(opened(method="adca"))
    assert isinstance(found._labellers["kuhn"], RulesLabeller)
    found = asyncio.run(opened(method="shapley", error=0.5))
    assert isinstance(found._method, Shapley) and found._method.settings.error == 0.5
    assert found._method.policies is not None and found._method.settings.least == 4
    found = asyncio.run(opened(method="shapley", stand_in="scripted", least_replicates=2))
    assert found._method.policies is None
    assert (found._method.settings.stand_in, found._method.settings.least) == ("scripted", 2)
    with pytest.raises(BadLabels, match="there is no trained judge"):
        asyncio.run(opened(method="adca", labels="learned"))
