import math

import numpy as np
import pytest

from agents.errors import NotFinite, TrainingError
from agents.policy.base import Constraint
from agents.training.batches import Asked, Choice, Decision
from agents.training.plan import Plan
from agents.training.settings import LearnerSettings, LossSettings
from agents.training.trajectories import Trajectory
from tests.agents.training.made import step, trajectory


def decide(asked: Asked, constraint: Constraint | None) -> Decision:
    """Take every token for a choice but token 0."""
    return Decision(asked, tuple(Choice(i, t, None, None) for i, t in enumerate(asked.token_ids) if t))


def plan(trajectories: list[Trajectory], advantages: list[list[float]], **changes: object) -> Plan:
    return Plan(LearnerSettings.model_validate(changes), trajectories, advantages, decide, (0, 0))


ONE = trajectory(step((1,), (2, 3)), step((1, 2), (4, 0)))
TWO = trajectory(step((1,), (2, 3)))
EMPTY = trajectory()


def test_equal_completions_are_one_decision_with_many_uses() -> None:
    made = plan([ONE, EMPTY, TWO], [[1.0, 2.0], [], [3.0]])
    assert (len(made.decisions), made.found, made.tokens) == (2, [[0, 1], [], [0]], 5)
    (uses,) = made.rounds()
    assert [(use.decision, use.advantage) for use in uses] == [(0, 1.0), (1, 2.0), (0, 3.0)]
    assert [use.weight for use in uses] == [1 / 5] * 3
    assert [len(use.sampler) for use in uses] == [2, 1, 2]


def test_trajectories_can_weigh_alike() -> None:
    made = plan([ONE, EMPTY, TWO], [[1.0, 2.0], [], [3.0]], loss=LossSettings(aggregate="sequence"))
    (uses,) = made.rounds()
    assert [use.weight for use in uses] == [1 / 6, 1 / 6, 1 / 4]


def test_steps_share_the_trajectories_of_every_epoch() -> None:
    many = [trajectory(step((1, number), (2,))) for number in range(10)]
    made = plan(many, [[1.0]] * 10, epochs=2, steps=3)
    rounds = made.rounds()
    assert [len(uses) for uses in rounds] == [4, 3, 3, 4, 3, 3]
    for epoch in (rounds[:3], rounds[3:]):
        assert sorted(use.decision for uses in epoch for use in uses) == list(range(10))
    assert [use.decision for use in rounds[0]] != [use.decision for use in rounds[3]]
    assert rounds == plan(many, [[1.0]] * 10, epochs=2, steps=3).rounds()


def test_what_has_no_advantage_is_computed_only_where_something_else_is_asked() -> None:
    given, advantages = [ONE, TWO], [[0.0, 2.0], [0.0]]
    made = plan(given, advantages)
    (work,) = made.passes(made.rounds()[0])
    assert work.decisions == [1]
    held = plan(given, advantages, reference="start", loss=LossSettings(kl=0.1))
    (work,) = held.passes(held.rounds()[0])
    assert sorted(work.decisions) == [0, 1]


def test_uses_are_spread_over_the_choices() -> None:
    made = plan([ONE, TWO], [[1.0, 2.0], [3.0]])
    stripped = plan([trajectory(step((1,), (2, 3), stripped=True))], [[1.0]])
    (work,) = made.passes(made.rounds()[0])
    gather, advantages, weights, sampler = work.spread()
    by_choice = sorted(zip(work.one.token[gather].tolist(), advantages.tolist(), strict=True))
    assert by_choice == [(2, 1.0), (2, 3.0), (3, 1.0), (3, 3.0), (4, 2.0)]
    assert weights.sum() == pytest.approx(1.0)
    assert np.allclose(sampler, math.log(0.5))
    (work,) = stripped.passes(stripped.rounds()[0])
    assert np.isnan(work.spread()[3]).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TrainingError, match="1 trajectories, advantages of 2"):
        plan([ONE], [[1.0, 1.0], [1.0]])
    with pytest.raises(TrainingError, match="1 advantages for 2 steps"):
        plan([ONE], [[1.0]])
    with pytest.raises(NotFinite, match="an advantage is no finite number"):
        plan([TWO], [[math.nan]])
