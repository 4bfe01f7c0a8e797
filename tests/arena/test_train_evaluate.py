import pytest

from arena.report import MatchReport, SeatReport
from arena.train import _specs
from arena.train_evaluate import Against, _summary, interval, plan
from arena.train_rollouts import LEARNER, MATE, OPPONENT
from games.registry import load_game
from tests.arena.training import small


def _report(own: float, *, side: int, error: str | None = None, illegal: int = 0) -> MatchReport:
    names = (LEARNER, OPPONENT) if side == 0 else (OPPONENT, LEARNER)
    values = (own, -own) if side == 0 else (-own, own)
    seats = tuple(
        SeatReport(
            name,
            name,
            team,
            team,
            value,
            "won" if value > 0 else "lost",
            {"illegal": illegal if name == LEARNER else 0, "forced": 1},
        )
        for name, team, value in zip(names, ("first", "second"), values, strict=True)
    )
    return MatchReport("m", "kuhn", 1, error=error, seats=seats, counts={"turns": 4})


def _told(returns: list[tuple[float, float]], **rest: int) -> Against:
    """Return the summary of deals, each played from both sides."""
    reports = [_report(own, side=side, **rest) for both in returns for side, own in enumerate(both)]  # type: ignore[arg-type]
    return _summary("kuhn", "random", reports, [deal for deal in range(len(returns)) for _ in range(2)])


def test_points_are_over_deals_and_by_side() -> None:
    told = _told([(1, 1), (1, -2), (-1, -1), (2, -1)])
    assert (told.matches, told.failed, told.score, told.value) == (8, 0, 0.5, 0.0)
    assert told.by_side == {"first": 0.75, "second": 0.25}
    low, high = interval([1.0, 0.5, 0.0, 0.5])
    assert low is not None and (told.low, told.high) == (max(0.0, low), min(1.0, high))


@pytest.mark.parametrize("own", [(1, 1), (1, -1), (-1, -1)])
def test_deals_that_all_end_alike_do_not_prove_that_all_would(own: tuple[float, float]) -> None:
    few, many = _told([own] * 4), _told([own] * 40)
    for told in (few, many):
        assert told.score is not None and told.low is not None and told.high is not None
        assert told.low <= told.score <= told.high and told.high > told.low
    assert few.high - few.low > many.high - many.low > 0.05  # type: ignore[operator]


def test_a_single_deal_has_no_interval_and_what_failed_is_left_out() -> None:
    told = _told([(1, 1)], illegal=1)
    assert (told.score, told.low, told.high) == (1.0, None, None)
    assert told.failures == 0.5, "what was forced is not counted twice"
    told = _summary("kuhn", "random", [_report(1, side=0, error="no")] * 2, [0, 0])
    assert (told.matches, told.failed, told.score, told.value) == (0, 2, None, None)


def test_every_deal_is_played_from_each_side_and_is_the_same_each_time() -> None:
    config = small(evaluation={"opponents": ["random", "planner"], "deals": 3})
    ((game, opponent, first),) = plan(config, spec="policy:small@1", update=1)
    ((_, _, later),) = plan(config, spec="policy:small@9", update=9)
    assert (game.game, opponent, len(first)) == ("kuhn", "random", 6), "the planner does not play Kuhn poker"
    assert [one.job.plan.seating for one in first[:2]] == [(LEARNER, OPPONENT), (OPPONENT, LEARNER)]
    assert [one.job.plan.seed for one in first] == [one.job.plan.seed for one in later]
    assert len({one.job.plan.seed for one in first}) == 3


def test_beside_mates_every_deal_is_played_from_each_seat() -> None:
    config = small(
        games=[{"game": "avalon"}], evaluation={"opponents": ["random"], "mates": "scripted", "deals": 2}
    )
    ((_, _, jobs),) = plan(config, spec="policy:small@1", update=1)
    assert len(jobs) == 10 and len({one.job.match for one in jobs}) == 10
    for place, one in enumerate(jobs):
        teams = load_game("avalon").new(seed=one.job.plan.seed, seats=5).teams()
        own = teams[place % 5]
        assert one.job.plan.seating == tuple(
            LEARNER if seat == place % 5 else MATE if team == own else OPPONENT
            for seat, team in enumerate(teams)
        )
        assert one.job.players == {LEARNER: "policy:small@1", OPPONENT: "random", MATE: "scripted"}
    assert _specs(config) == ["policy"]
    model = small(
        games=[{"game": "avalon"}], evaluation={"opponents": ["random"], "mates": "policy:a@1", "deals": 1}
    )
    assert _specs(model) == ["policy", "policy:a@1"], "models that sit beside it are started"
    alone = small(evaluation={"opponents": ["random"], "mates": "scripted", "deals": 1})
    ((_, _, jobs),) = plan(alone, spec="policy:small@1", update=1)
    assert [set(one.job.players) for one in jobs] == [{LEARNER, OPPONENT}] * 2, "nobody sits beside it"


def test_sides_count_alike_however_many_seats_they_have() -> None:
    def report(own: float, team: str) -> MatchReport:
        seat = SeatReport(LEARNER, LEARNER, team, team, own, "won" if own > 0 else "lost", {})
        return MatchReport("m", "avalon", 1, seats=(seat,), counts={})

    reports = [report(1, "evil"), report(1, "evil"), *(report(value, "good") for value in (1, -1, -1))]
    told = _summary("avalon", "random", reports, [0] * 5)
    assert told.by_side == {"evil": 1.0, "good": pytest.approx(1 / 3)}
    assert told.score == pytest.approx(2 / 3), "not 3 of 5"
