"""How fast a match is played back."""

import pytest

from clients.spectator.pace import LONGEST_S, SPEEDS, STEP_S, Pace
from games.base import Event


def test_a_speech_stays_longer_but_not_for_ever() -> None:
    pace = Pace()
    short, long = Event("speech", {"text": "I am good."}), Event("speech", {"text": "x" * 10_000})
    assert pace.stay_s(None, speech={"speech"}) == pace.stay_s(short, speech={"vote"}) == STEP_S
    assert STEP_S < pace.stay_s(short, speech={"speech"}) < pace.stay_s(long, speech={"speech"}) == LONGEST_S


def test_an_event_without_words_is_no_speech() -> None:
    assert Pace().stay_s(Event("speech", {"text": 7}), speech={"speech"}) == STEP_S


@pytest.mark.parametrize(("by", "last"), [(1, SPEEDS[-1]), (-1, SPEEDS[0])])
def test_the_fastest_and_the_slowest_stay(by: int, last: float) -> None:
    pace = Pace()
    seen = [pace.speed]
    for _ in SPEEDS:
        pace.shift(by)
        seen.append(pace.speed)
    assert seen[0] == 1.0 and seen[-1] == last
    assert pace.stay_s(None, speech=()) == STEP_S / last
