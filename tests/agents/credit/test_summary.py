"""Credit over many matches: who is behind its team-mates, and how rarely equals are accused."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.credit.summary import Contribution, below_zero, holm, summarise


def rows(
    matches: int, means: dict[str, float], *, seed: int = 1, spread: float = 1.0, roles: bool = False
) -> list[Contribution]:
    """Return contributions around each player's mean; with `roles`, one of them makes thrice as much of it."""
    rng = random.Random(seed)
    made = []
    for number in range(matches):
        lucky = rng.choice(sorted(means))
        for player, mean in means.items():
            role = "merlin" if roles and player == lucky else "servant"
            value = rng.gauss(mean * (3.0 if role == "merlin" else 1.0), spread)
            made.append(Contribution("g", f"d{number}", f"m{number}", "good", player, role, value, value))
    return made


def accused(made: list[Contribution], **settings: bool) -> dict[str, str]:
    found = summarise(made, idle_reference=settings.get("idle_reference", False))
    return {row.player: row.accusation for row in found if row.accusation is not None}


def test_who_does_nothing_where_others_do_rides_free() -> None:
    made = rows(120, {"a": 0.6, "b": 0.6, "c": 0.0}, roles=True)
    assert accused(made, idle_reference=True) == {"c": "free rider"}
    assert accused(made) == {"c": "free rider"}
    last = summarise(made, idle_reference=True)[-1]
    assert last.player == "c" and last.matches == 120
    assert last.behind == pytest.approx(-1.0, abs=0.3)
    assert last.behind_low is not None and last.behind_high is not None
    assert last.behind_low < last.behind < last.behind_high < 0
    assert last.p is not None and last.p < 0.05


def test_who_does_harm_is_a_saboteur_beside_an_idle_reference_only() -> None:
    made = rows(120, {"a": 0.4, "b": 0.4, "c": -0.6})
    assert accused(made, idle_reference=True) == {"c": "saboteur"}
    assert accused(made) == {"c": "free rider"}
    assert below_zero(made, game="g", player="c") < 0.001
    assert below_zero(made, game="g", player="a") > 0.5
    assert below_zero(made, game="h", player="c") == 1.0


def test_who_is_weaker_but_does_its_part_is_not_accused() -> None:
    assert accused(rows(200, {"a": 2.0, "b": 2.0, "c": 1.4}), idle_reference=True) == {}


def test_a_team_of_equals_is_rarely_accused() -> None:
    means = {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.1, "e": 0.1}
    found = sum(bool(accused(rows(40, means, seed=seed, roles=True))) for seed in range(400))
    assert found <= 20  # 5 %


def test_equals_that_are_all_bad_are_not_accused() -> None:
    assert accused(rows(100, {"a": -1.0, "b": -1.0, "c": -1.0}, seed=4), idle_reference=True) == {}


def test_few_deals_accuse_nobody() -> None:
    made = rows(7, {"a": 9.0, "b": 9.0, "c": -9.0})
    assert accused(made, idle_reference=True) == {}
    assert all(row.p is None for row in summarise(made, idle_reference=True))
    # Many matches of one deal are one.
    many = rows(60, {"a": 9.0, "b": 9.0, "c": -9.0})
    assert accused(many, idle_reference=True) == {"c": "saboteur"}
    assert accused([replace(row, deal="d") for row in many], idle_reference=True) == {}


def test_who_sits_with_itself_alone_cannot_be_behind() -> None:
    made = [Contribution("g", f"d{n}", f"m{n}", "red", "a", "smith", -1.0, -1.0) for n in range(20)]
    (row,) = summarise([*made, *made], idle_reference=True)
    assert row.behind is None and row.p is None and row.accusation is None
    assert row.contribution == -1.0


def test_games_are_apart() -> None:
    made = rows(30, {"a": 1.0, "b": 0.0})
    other = [
        Contribution("h", r.deal, r.match, r.team, r.player, r.role, r.credit, r.contribution) for r in made
    ]
    found = summarise(made + other, idle_reference=True)
    assert [(row.game, row.player) for row in found] == [("g", "a"), ("g", "b"), ("h", "a"), ("h", "b")]
    assert found[0].as_dict()["player"] == "a"


def test_without_any_spread_the_difference_itself_decides() -> None:
    made = rows(10, {"a": 1.0, "b": 0.0}, spread=0.0)
    assert accused(made, idle_reference=True) == {"b": "free rider"}


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({}) == {}


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=1, max_size=8))
def test_corrected_values_are_never_smaller_and_keep_the_order(tests: dict[str, float]) -> None:
    found = holm(tests)
    assert all(tests[name] <= found[name] <= 1 for name in tests)
    order = sorted(tests, key=lambda name: (tests[name], name))
    assert [found[name] for name in order] == sorted(found.values())
