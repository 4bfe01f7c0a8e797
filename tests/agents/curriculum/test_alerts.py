from agents.curriculum.alerts import collapse, disagreement, duplicates, wasted
from agents.curriculum.config import Alarms
from tests.agents.curriculum.helpers import row

ALARMS = Alarms()


def test_a_collapse_is_told_when_it_is_sure() -> None:
    good = [row(i, success=i % 2 == 0) for i in range(100)]
    bad = [row(100 + i, success=i % 25 == 0) for i in range(50)]
    assert collapse(good, ALARMS) is None
    assert collapse(bad[:49], ALARMS) is None  # too few
    found = collapse(good + bad, ALARMS)
    assert found is not None
    assert found.text == "success collapsed: 2 of the last 50 attempts, under 20%"
    unsure = [row(i, success=i % 6 == 0) for i in range(50)]
    assert collapse(unsure, ALARMS) is None  # 9 of 50 may be more than a fifth
    tests = [row(200 + i, success=False, purpose="test") for i in range(50)]
    assert collapse(good + tests, ALARMS) is None  # tests are meant to be hard


def test_duplicates_that_pile_up() -> None:
    assert duplicates(40, {"duplicate": 20, "similar": 20, "easy": 5}, ALARMS) is None
    assert duplicates(4, {"duplicate": 20}, ALARMS) is None  # too few
    found = duplicates(20, {"duplicate": 20, "similar": 40, "unmade": 500, "given_up": 9}, ALARMS)
    assert found is not None
    assert found.text == "duplicates pile up: 60 of 80 tasks repeat old ones, over 50%"
    assert found.to_data()["kind"] == "duplicates"


def test_a_judge_that_disagrees_with_itself() -> None:
    steady = [(f"c{i % 20}", i % 20 < 10) for i in range(60)]
    assert disagreement(steady, ALARMS) is None
    assert disagreement([("once", True), ("twice", False)], ALARMS) is None
    found = disagreement([*steady, ("c0", False), ("c1", False), ("c2", False)], ALARMS)
    assert found is not None
    assert found.text == "the judge disagrees with itself: on 3 of 20 cases, over 10%"


def test_a_proposer_whose_tasks_come_to_nothing() -> None:
    assert wasted(0, 49, ALARMS) is None  # too few
    assert wasted(5, 50, ALARMS) is None  # perhaps one in ten
    found = wasted(0, 60, ALARMS)
    assert found is not None and found.kind == "proposer"
    assert found.text == "the proposer's tasks come to nothing: 0 of 60 were taken, under 10%"
