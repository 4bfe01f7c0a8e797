import pytest
from pydantic import ValidationError

from agents.training.config import (
    Budget,
    EvaluationSettings,
    LeagueSettings,
    PlayedGame,
    Rollout,
    Schedule,
    Start,
    TaskSettings,
    TrainConfig,
)

KUHN = (PlayedGame(game="kuhn"),)


def test_a_budget_of_nothing_is_some_minutes() -> None:
    assert Budget().limit_minutes == 10
    assert Budget(updates=3).limit_minutes is None
    assert Budget(updates=3, minutes=2).limit_minutes == 2


def test_the_digest_is_of_what_decides_what_happens() -> None:
    config = TrainConfig(games=KUHN)
    same = TrainConfig(games=KUHN, budget=Budget(updates=7), checkpoint_every=3, tensorboard=False)
    assert config.digest == same.digest
    assert config.digest != TrainConfig(games=KUHN, seed=1).digest
    falls = Schedule(final=0.1)
    some = TrainConfig(games=KUHN, schedule=falls, budget=Budget(updates=7))
    more = TrainConfig(games=KUHN, schedule=falls, budget=Budget(updates=9))
    assert some.digest != more.digest, "how fast the steps get smaller depends on how many there are"


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_the_learning_rate_falls_from_one_to_its_end(shape: str) -> None:
    schedule = Schedule(hold=0.5, final=0.1, shape=shape)  # type: ignore[arg-type]
    factors = [schedule.factor(update, updates=11) for update in range(11)]
    assert factors[:6] == [1.0] * 6 and factors[-1] == pytest.approx(0.1)
    assert factors == sorted(factors, reverse=True)
    assert schedule.factor(100, updates=11) == pytest.approx(0.1)
    assert schedule.factor(5, updates=None) == Schedule().factor(5, updates=10) == 1.0


def test_each_mechanism_is_a_switch_of_its_own() -> None:
    names = ("questioning", "navigating", "attributing")
    assert [TaskSettings().has(name) for name in names] == [False] * 3  # type: ignore[arg-type]
    assert [TaskSettings(mode="overall").has(name) for name in names] == [True] * 3  # type: ignore[arg-type]
    for one in names:
        alone = TaskSettings.model_validate({one: {"enabled": True}})
        without = TaskSettings.model_validate({"mode": "overall", one: {"enabled": False}})
        for name in names:
            assert alone.has(name) == (name == one)  # type: ignore[arg-type]
            assert without.has(name) == (name != one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: TrainConfig(
                games=KUHN,
                credit={"method": "adca", "alpha": 0.2},
                tasks={"tasks": 1, "attributing": {"enabled": True}},
            ),
            r"tasks.attributing.alpha: got 0.1, but games are labelled with credit.alpha 0.2",
        ),
        (
            lambda: TrainConfig(games=KUHN, credit={"stand_in": "policy:a"}),
            "credit.stand_in: got 'policy:a', but with credit.stand_in no model plays in replays",
        ),
        (
            lambda: TrainConfig(games=KUHN, credit={"stand_in": "scripted", "reference": "policy"}),
            "credit.reference: got 'policy', but with credit.stand_in",
        ),
        (lambda: TrainConfig(), "there is nothing to train on"),
        (lambda: TrainConfig(games=KUHN, rollout=Rollout(deals=0)), "games are to be played"),
        (
            lambda: TrainConfig(games=KUHN, start=Start(weights="fresh")),
            "fresh weights are trained as a whole",
        ),
        (lambda: Start(hidden=100), "hidden: got 100"),
        (lambda: Start(weights="fresh", adapter="a@1"), "fresh weights belong to no adapter"),
        (lambda: Rollout(deals=1000, plays=1000), "at most 100000 matches"),
        (lambda: Rollout(seeds=(-1,)), "seeds: got -1"),
        (lambda: LeagueSettings(itself=0), "somebody must be played"),
        (lambda: LeagueSettings(itself=0, past=1), "at first there are no past versions"),
        (lambda: LeagueSettings(bots=1), "opponents names none"),
        (lambda: LeagueSettings(opponents=("human",)), "nobody is there to play"),
        (lambda: LeagueSettings(mates="random"), "against itself the learner has all seats"),
        (lambda: EvaluationSettings(mates="random"), "opponents names none"),
        (lambda: LeagueSettings(mates="ws"), "nobody is there to play"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(make: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make()  # type: ignore[operator]
