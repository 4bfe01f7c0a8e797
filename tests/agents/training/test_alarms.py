import json

import pytest

from agents.errors import BadCheckpoint
from agents.training.alarms import Alarm, Alarms, Signals
from agents.training.config import AlarmSettings

FINE = Signals(trajectories=8, outcome_low=-1, outcome_high=1, kl=0.01, answers=20, learner_tokens=100)


def _look(alarms: Alarms, *signals: Signals) -> list[Alarm]:
    return [alarm for one in signals for alarm in alarms.look(one)]


def test_nothing_is_wrong_with_a_fine_run() -> None:
    alarms = Alarms(AlarmSettings())
    assert _look(alarms, *[FINE] * 100) == []
    assert alarms.step == alarms.advice == 1.0


def test_a_reward_that_is_always_alike_is_told_and_stops() -> None:
    alarms = Alarms(AlarmSettings(flat_updates=3))
    flat = Signals(trajectories=8, flat=True)
    assert _look(alarms, flat, flat, FINE, flat, flat) == []
    (alarm,) = alarms.look(flat)
    assert (alarm.kind, alarm.action) == ("flat", "stop")
    assert alarm.text == "every reward is 0 for 3 updates: nothing is learned"
    assert alarm.to_data() == {"alarm": "flat", "text": alarm.text, "action": "stop"}
    mixed = Signals(trajectories=8, flat=True, outcome_low=0, outcome_high=1)
    (alarm,) = _look(Alarms(AlarmSettings(flat_updates=1)), mixed)
    assert alarm.text.startswith("within each group all rewards are the same")


def test_a_step_that_goes_too_far_makes_the_next_smaller_until_it_has_recovered() -> None:
    alarms = Alarms(AlarmSettings(kl=0.1, step=0.5, recover=1.1))
    spike = Signals(trajectories=8, kl=0.2)
    assert [alarm.kind for alarm in _look(alarms, spike, spike)] == ["kl_spike", "kl_spike"]
    assert alarms.step == pytest.approx(0.275)
    _look(alarms, *[FINE] * 20)
    assert alarms.step == 1.0
    for _ in range(100):
        alarms.look(spike)
    assert alarms.step == pytest.approx(1e-3), "it never becomes nothing"


def test_format_failures_are_told_once_while_they_last() -> None:
    alarms = Alarms(AlarmSettings(failures=0.2))
    bad = Signals(trajectories=8, answers=10, failures=3)
    (alarm,) = _look(alarms, bad, bad, bad)
    assert alarm.text == "30% of 10 answers failed, more than 20%" and alarm.action == "note"
    assert len(_look(alarms, FINE, bad)) == 1


def test_numbers_that_are_not_finite_back_off_and_then_stop() -> None:
    alarms = Alarms(AlarmSettings(not_finite_updates=2))
    bad = Signals(finite=False)
    assert [alarm.action for alarm in _look(alarms, bad, FINE, bad, bad)] == ["back_off", "back_off", "stop"]


def test_advice_that_hurts_is_halved_and_given_up_at_last() -> None:
    alarms = Alarms(AlarmSettings(retrieval_attempts=100))
    hurts = Signals(trajectories=8, advised=100, advised_won=10, plain=100, plain_won=60)
    helps = Signals(trajectories=8, advised=100, advised_won=60, plain=100, plain_won=50)
    (alarm,) = alarms.look(hurts)
    assert alarm.text == "10% of 100 attempts with advice succeeded, 60% without"
    assert alarms.advice == 0.5 and alarms.step == 1.0
    assert _look(alarms, helps, helps) == []
    few = Signals(trajectories=8, advised=50, advised_won=0, plain=100, plain_won=60)
    assert alarms.look(few) == [], "too few to compare"
    assert len(_look(alarms, *[hurts] * 6)) == 6
    assert alarms.advice == 0.0


def test_judges_that_cost_too_much_are_told() -> None:
    alarms = Alarms(AlarmSettings(judge_tokens=0.5, judge_cost="stop"))
    dear = Signals(trajectories=8, judge_tokens=80, learner_tokens=100)
    (alarm,) = _look(alarms, dear, dear)
    assert alarm.action == "stop"
    assert alarm.text == "judges took 0.80 tokens for each of the learner's, more than 0.5"


def test_what_is_ignored_is_not_told() -> None:
    alarms = Alarms(AlarmSettings(flat_updates=1, flat="ignore"))
    assert alarms.look(Signals(trajectories=8, flat=True)) == []


def test_the_state_is_plain() -> None:
    settings = AlarmSettings(kl=0.1)
    alarms = Alarms(settings)
    _look(alarms, Signals(trajectories=1, kl=1, advised=7), Signals(trajectories=1, flat=True))
    again = Alarms(settings)
    again.restore(json.loads(json.dumps(alarms.state())))
    assert again.state() == alarms.state() and again.step == alarms.step < 1
    with pytest.raises(BadCheckpoint, match="its alarms cannot be read: unknown 'more'"):
        again.restore({"more": 1})
