import math

import pytest

from agents.errors import BadCheckpoint
from agents.training.groups import Baselines, Group, form_groups
from tests.agents.training.made import trajectory


def test_matches_of_one_deal_are_compared_among_themselves() -> None:
    given = [
        trajectory(match=f"m{match}", deal=f"d{match // 2}", role=role)
        for match in range(4)
        for role in ("first", "second")
    ]
    groups = form_groups(given)
    assert {(group.role, group.deal, group.members) for group in groups} == {
        ("first", "d0", (0, 2)),
        ("second", "d0", (1, 3)),
        ("first", "d1", (4, 6)),
        ("second", "d1", (5, 7)),
    }


def test_what_is_alone_in_its_deal_is_compared_whatever_the_deal() -> None:
    given = [trajectory(match=f"m{number}", deal=deal) for number, deal in enumerate("aabc")]
    groups = form_groups(given)
    assert [(group.deal, group.members, group.matches) for group in groups] == [
        ("a", (0, 1), 2),
        (None, (2, 3), 2),
    ]
    (one,) = form_groups(given, by_deal=False)
    assert (one.deal, one.members) == (None, (0, 1, 2, 3))
    (few,) = form_groups(given, least=3)
    assert few.deal is None


def test_two_seats_of_one_match_are_one_match() -> None:
    given = [trajectory(match="m", seat=seat, role="servant") for seat in range(3)]
    (group,) = form_groups(given)
    assert (group.deal, group.matches) == (None, 1)


@pytest.mark.parametrize("name", ["game", "options", "seats", "role", "stratum"])
def test_no_group_mixes(name: str) -> None:
    other = 3 if name == "seats" else "other"
    given = [trajectory(match=f"m{number}", **{name: value}) for number, value in enumerate([other, other])]
    mixed = [trajectory(match="a"), *given, trajectory(match="b")]
    groups = form_groups(mixed)
    assert sorted(group.members for group in groups) == [(0, 3), (1, 2)]
    assert sum(len(group.members) for group in groups) == len(mixed)


GROUP = Group("kuhn", "o", 2, "first", "", None, (0,), 1)


def test_running_baselines_are_those_before() -> None:
    running = Baselines(momentum=0.5)
    assert running.of(GROUP) is None
    running.add(GROUP, [1.0, 3.0])
    assert running.of(GROUP) == (2.0, 1.0)
    running.add(GROUP, [4.0])
    mean, spread = running.of(GROUP) or (0.0, 0.0)
    assert mean == 3.0 and spread == pytest.approx(math.sqrt((5 + 16) / 2 - 9))
    again = Baselines()
    again.load(running.state())
    assert again.of(GROUP) == running.of(GROUP)
    with pytest.raises(BadCheckpoint, match="cannot be read"):
        again.load({"known": [[1]]})
