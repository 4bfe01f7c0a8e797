"""Ratings: recovery, coverage, symmetry, and the cases that other systems got wrong."""

import random
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.errors import RatingError
from arena.plackett_luce import Ranking, maximise, objective, stages, tie_sizes
from arena.ratings import ANCHOR, ELO, PLAYER_SD_ELO, Fit, fit
from arena.results import RatedMatch, RatedSeat, rated_match
from games.base import Outcome

SIDES = ("good", "evil")


def match(good, evil, value, *, deal=None, roles=None):
    """A match of two sides, from good's point of view: 1 won, 0 drawn, -1 lost."""
    seats = [(name, "good", value) for name in good] + [(name, "evil", -value) for name in evil]
    return RatedMatch(
        "g",
        tuple(
            RatedSeat(name, team, roles[i] if roles else team, float(value))
            for i, (name, team, value) in enumerate(seats)
        ),
        deal,
    )


def race(*groups):
    """A free-for-all: groups of players from first to last, all on the side of their own name."""
    return RatedMatch(
        "race",
        tuple(
            RatedSeat(name, f"side of {name}", "runner", 0.0, place)
            for place, group in enumerate(groups, 1)
            for name in group
        ),
    )


def played(rng, truth, *, matches, good=3, evil=2, side=0.0):
    """Matches of distinct players drawn from `truth` (Elo), decided by the model."""
    found = []
    for _ in range(matches):
        who = rng.choice(len(truth), size=good + evil, replace=False)
        gap = truth[who[:good]].mean() - truth[who[good:]].mean() + side
        value = 1 if rng.random() < 1 / (1 + 10 ** (-gap / 400)) else -1
        named = [f"p{i:02}" for i in who]
        found.append(match(named[:good], named[good:], value))
    return found


def values(found: Fit):
    return {rating.player: rating.value for rating in found.ratings}


# Known values.


def test_two_players_differ_by_the_logit_of_the_score():
    found = fit([match(["a"], ["b"], 1)] * 75 + [match(["a"], ["b"], -1)] * 25, sides=())
    gap = found.difference("a", second="b")
    assert gap is not None
    assert gap.value == pytest.approx(400 * np.log10(3), rel=0.02)
    assert found.rating("a").value + found.rating("b").value == pytest.approx(2 * ANCHOR)
    # Fisher's information of n games is n p (1 - p); the prior adds a little.
    variance = 1 / (100 * 0.75 * 0.25 + (ELO / PLAYER_SD_ELO) ** 2 / 2) * ELO**2
    assert (gap.high - gap.value) / 1.959964 == pytest.approx(variance**0.5, rel=0.02)


def test_the_side_effect_is_the_logit_of_its_share():
    found = fit([match(["a"], ["a"], 1)] * 30 + [match(["a"], ["a"], -1)] * 10, sides=SIDES)
    good, evil = found.sides
    assert (good.side, evil.side) == SIDES
    assert good.value == pytest.approx(400 * np.log10(3), rel=0.03)
    assert good.value == -evil.value
    assert (good.share, good.matches) == (0.75, 40)
    assert good.low > 0
    assert found.rating("a").value == ANCHOR
    assert found.rating("a").low is None


def test_draws_are_fitted_by_davidsons_parameter():
    results = [1] * 30 + [0] * 40 + [-1] * 30
    found = fit([match(["a"], ["b"], r) for r in results] + [match(["b"], ["a"], r) for r in results])
    # Between equals a draw has the share ν / (2 + ν).
    ((size, nu),) = found.ties
    assert size == 2
    assert nu / (2 + nu) == pytest.approx(0.4, abs=0.005)
    assert found.rating("a").value == found.rating("b").value == ANCHOR


def test_plackett_luce_agrees_with_the_shares_of_first_places():
    races = [race("a", "b", "c")] * 2 + [race("a", "c", "b")] * 2 + [race("b", "a", "c"), race("c", "a", "b")]
    found = values(fit(races, sides=()))
    assert found["a"] > found["b"] == found["c"]
    # By the likelihood equations a wins p = 1/2 … of the first places and the same odds when second.
    odds = 10 ** ((found["a"] - found["b"]) / 400)
    assert 4 + 2 == pytest.approx(6 * odds / (odds + 2) + 2 * odds / (odds + 1), rel=0.03)


def test_a_tie_among_several_rates_the_tied_alike():
    found = values(fit([race("a", "bcd", "e")] * 10, sides=()))
    assert found["a"] > found["b"] > found["e"]
    assert found["b"] == found["c"] == found["d"]


@given(
    groups=st.permutations(range(5)),
    cuts=st.sets(st.integers(1, 4)),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=50, deadline=None)
def test_gradient_and_hessian_are_those_of_the_likelihood(groups, cuts, seed):
    rng = np.random.default_rng(seed)
    bounds = [0, *sorted(cuts), 5]
    ranking = Ranking(
        rng.normal(size=(5, 3)),
        tuple(tuple(groups[a:b]) for a, b in pairwise(bounds)),
    )
    ties = tie_sizes([ranking])
    batches = stages([ranking], ties)
    size = 3 + len(ties)
    weights, precision = np.array([2.0]), rng.uniform(0.1, 1, size)
    point, step = rng.normal(size=size), 1e-5
    _, gradient, hessian = objective(point, batches, weights, precision)
    for i in range(size):
        up, down = point.copy(), point.copy()
        up[i] += step
        down[i] -= step
        above, below = (objective(p, batches, weights, precision) for p in (up, down))
        assert gradient[i] == pytest.approx((above[0] - below[0]) / (2 * step), abs=1e-6)
        assert hessian[i] == pytest.approx(-(above[1] - below[1]) / (2 * step), abs=1e-6)
    best, covariance = maximise(batches, weights, precision)
    _, gradient, hessian = objective(best, batches, weights, precision)
    assert np.abs(gradient).max() < 1e-9
    assert covariance @ hessian == pytest.approx(np.eye(size), abs=1e-8)


def test_the_shares_of_all_outcomes_sum_to_one():
    features = np.random.default_rng(0).normal(size=(3, 2))
    outcomes = [((0,), (1,), (2,)), ((0,), (1, 2)), ((0, 1), (2,)), ((0, 1, 2),)]
    orders = {
        tuple(tuple(sorted(names[i] for i in group)) for group in outcome)
        for outcome in outcomes
        for names in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    }
    total = 0.0
    for groups in orders:
        value, _, _ = objective(
            np.array([0.3, -1.2, 0.4, -0.7]),
            stages([Ranking(features, groups)], (2, 3)),
            np.ones(1),
            np.zeros(4),
        )
        total += np.exp(value)
    assert len(orders) == 13
    assert total == pytest.approx(1.0)


# Recovery.


def test_twelve_equal_players_stay_within_noise():
    rng = np.random.default_rng(7)
    inside, spreads = [], []
    for _ in range(10):
        found = fit(played(rng, np.zeros(12), matches=2000), sides=SIDES)
        inside += [r.low <= ANCHOR <= r.high for r in found.ratings]
        errors = np.array([(r.high - r.low) / (2 * 1.96) for r in found.ratings])
        spreads.append(np.std([r.value for r in found.ratings], ddof=1) / errors.mean())
        assert all(abs(r.value - ANCHOR) < 4.5 * errors.max() for r in found.ratings)
        assert abs(found.sides[0].value) < 4 * (found.sides[0].high - found.sides[0].low) / (2 * 1.96)
    # 120 intervals: a share of 0.95 has a standard error of 0.02. Twelve ratings' spread has one of 0.21.
    assert np.mean(inside) >= 0.89
    assert np.mean(spreads) == pytest.approx(1, abs=0.21)


def test_planted_strengths_and_side_are_covered():
    rng = np.random.default_rng(11)
    inside, sides, errors = [], [], []
    for _ in range(200):
        truth = rng.normal(0, 150, 8)
        truth -= truth.mean()
        found = fit(played(rng, truth, matches=120, side=80.0), sides=SIDES)
        inside += [r.low <= ANCHOR + t <= r.high for r, t in zip(found.ratings, truth, strict=True)]
        errors += [r.value - ANCHOR - t for r, t in zip(found.ratings, truth, strict=True)]
        sides.append(found.sides[0].low <= 80 <= found.sides[0].high)
    assert 0.90 <= np.mean(inside) <= 0.98
    assert 0.90 <= np.mean(sides) <= 0.99
    assert abs(np.mean(errors)) < 1e-6


def test_planted_strengths_are_covered_in_free_for_alls():
    rng = np.random.default_rng(13)
    inside = []
    for _ in range(200):
        truth = rng.normal(0, 150, 6)
        truth -= truth.mean()
        races = []
        for _ in range(60):
            who = rng.choice(6, size=4, replace=False)
            # Sorting by strength plus Gumbel noise draws from Plackett and Luce (Yellott 1977).
            order = who[np.argsort(-(truth[who] / ELO + rng.gumbel(size=4)))]
            races.append(race(*([f"p{i}"] for i in order)))
        found = fit(races, sides=())
        inside += [r.low <= ANCHOR + t <= r.high for r, t in zip(found.ratings, truth, strict=True)]
    assert 0.90 <= np.mean(inside) <= 0.98


def test_the_bootstrap_agrees_with_laplace():
    matches = played(np.random.default_rng(3), np.linspace(-200, 200, 6), matches=400)
    plain, drawn = fit(matches, sides=SIDES), fit(matches, sides=SIDES, bootstrap=400, seed=5)
    for a, b in zip(plain.ratings, drawn.ratings, strict=True):
        assert a.value == b.value
        assert (b.high - b.low) / (a.high - a.low) == pytest.approx(1, abs=0.25)
    assert fit(matches, sides=SIDES, bootstrap=20, seed=5) == fit(matches, sides=SIDES, bootstrap=20, seed=5)
    assert fit(matches, sides=SIDES, bootstrap=20, seed=6) != fit(matches, sides=SIDES, bootstrap=20, seed=5)


def test_the_bootstrap_draws_deals_whole():
    """Mirrored matches that always split say more together than apart."""
    alone = [match([x], [y], r) for r in [1, -1] * 20 for x, y in ("ab", "ba")]
    paired = [replace(m, deal=i // 2) for i, m in enumerate(alone)]
    wide, narrow = (fit(m, sides=SIDES, bootstrap=100).rating("a") for m in (alone, paired))
    assert wide.high - wide.low > 50
    assert narrow.high - narrow.low < 1


def test_mirrored_deals_are_covered_by_default():
    """Luck of the deal helps a side in both matches and a player in one: both intervals must know it."""
    rng, hits = np.random.default_rng(8), {"player": [], "side": []}
    for _ in range(250):
        found = []
        for deal in range(60):
            luck = rng.normal(0, 500)
            for names in ("ab", "ba"):
                won = rng.random() < 1 / (1 + 10 ** (-luck / 400))
                found.append(match(names[:1], names[1:], 1 if won else -1, deal=deal))
        fitted = fit(found, sides=SIDES)
        rating, side = fitted.rating("a"), fitted.sides[0]
        hits["player"].append(rating.low <= ANCHOR <= rating.high)
        hits["side"].append(side.low <= 0 <= side.high)
        plain = fit([replace(m, deal=None) for m in found], sides=SIDES)
        assert plain.rating("a").high > rating.high
    for name, covered in hits.items():
        assert 0.9 <= np.mean(covered) <= 0.98, name


def test_matches_stored_twice_are_no_new_evidence():
    rng = np.random.default_rng(9)
    once = [replace(m, deal=i) for i, m in enumerate(played(rng, np.zeros(8), matches=200))]
    plain, twice = (fit(m, sides=SIDES) for m in (once, [*once, *once]))
    for one, two in zip(plain.ratings, twice.ratings, strict=True):
        assert two.high - two.low == pytest.approx(one.high - one.low, rel=0.1)


def test_few_deals_change_no_interval():
    found = [match(*names, r, deal=i) for i, r in enumerate([1, -1] * 5) for names in ("ab", "ba")]
    assert fit(found, sides=SIDES).ratings == fit([replace(m, deal=None) for m in found], sides=SIDES).ratings


# Symmetry.


@given(seed=st.integers(0, 10**6), bootstrap=st.sampled_from([0, 5]))
@settings(max_examples=25, deadline=None)
def test_no_order_matters(seed, bootstrap):
    rng = random.Random(seed)
    people = ["ann", "bob", "cyd", "dee", "eve", "fay"]
    matches = []
    for i in range(30):
        rng.shuffle(people)
        roles = ["merlin", rng.choice(["servant", "percival"]), "servant", "assassin", "minion"]
        matches.append(match(people[:3], people[3:5], rng.choice([-1, 0, 1]), deal=i // 3, roles=roles))
    shuffled = [replace(m, seats=tuple(rng.sample(m.seats, len(m.seats)))) for m in matches]
    rng.shuffle(shuffled)
    assert fit(matches, sides=SIDES, bootstrap=bootstrap) == fit(shuffled, sides=SIDES, bootstrap=bootstrap)


def test_equal_ratings_after_ties():
    found = fit([match(["a"], ["b"], 0), match(["b"], ["c"], 0), match(["c"], ["a"], 0)], sides=())
    assert values(found) == {"a": ANCHOR, "b": ANCHOR, "c": ANCHOR}


def test_teammates_who_share_every_result_stay_equal_and_are_not_told_apart():
    matches = [match(["a", "b"], ["c", "d", "e"], r) for r in (1, 1, -1, 1)]
    matches += [match(["c", "d"], ["a", "b", "e"], r) for r in (1, -1, -1)]
    found = fit(matches, sides=SIDES)
    assert found.rating("a").value == found.rating("b").value > found.rating("c").value
    assert found.rating("c").value == found.rating("d").value
    assert not found.rating("a").determined
    gap = found.difference("a", second="b")
    assert gap is not None
    assert not gap.determined
    assert gap.high - gap.low == pytest.approx(2 * 1.96 * 2**0.5 * PLAYER_SD_ELO, rel=0.01)


def test_a_side_is_worth_the_mean_of_its_members():
    """Three equal players against two of the same strength are even, not three halves as strong."""
    found = fit([match(["a", "b", "c"], ["d", "e"], r) for r in (1, -1) * 50], sides=())
    assert set(values(found).values()) == {ANCHOR}


def test_seven_seats_and_six_players_count_each_seat_once():
    double = match(["a", "b", "c", "a"], ["d", "e", "f"], 1)
    found = fit([double] * 8 + [match(["d", "e", "f", "d"], ["a", "b", "c"], 1)] * 8, sides=SIDES)
    assert {r.player: r.matches for r in found.ratings} == dict.fromkeys("abcdef", 16)
    # Held twice on the winning side, once on the losing one: a and d lose less than they win, each its way.
    assert found.rating("a").value == found.rating("d").value > found.rating("b").value


def test_mirror_matches_inform_the_side_alone():
    base = [match(["a"], ["b"], 1), match(["b"], ["a"], 1), match(["a"], ["b"], -1), match(["a"], ["b"], 1)]
    mirror = [match(["a"], ["a"], 1)] * 40
    assert fit(base, sides=()).ratings[0].value == fit(base + mirror, sides=()).ratings[0].value
    plain, more = fit(base, sides=SIDES).sides[0], fit(base + mirror, sides=SIDES).sides[0]
    assert more.value > plain.value
    assert more.high - more.low != plain.high - plain.low


# What cannot be known is said.


def test_groups_that_never_met_are_reported_and_not_compared():
    found = fit([match(["a"], ["b"], 1), match(["b"], ["a"], -1)] * 5 + [match(["c"], ["d"], 1)], sides=())
    assert found.groups == (("a", "b"), ("c", "d"))
    assert not found.connected
    assert found.difference("a", second="c") is None
    for group in found.groups:
        assert sum(found.rating(name).value for name in group) == pytest.approx(2 * ANCHOR)


def test_a_player_who_never_changes_sides_is_not_determined():
    found = fit([match(["a"], ["b"], r) for r in (1, 1, -1)], sides=SIDES)
    assert not any(r.determined for r in found.ratings)
    assert not found.sides[0].determined
    swapped = fit([match(["a"], ["b"], 1), match(["b"], ["a"], -1), match(["b"], ["a"], 1)], sides=SIDES)
    assert all(r.determined for r in swapped.ratings)
    assert swapped.sides[0].determined


def test_separable_results_stay_finite():
    found = fit([match(["a"], ["b"], 1), match(["b"], ["a"], -1)] * 100, sides=SIDES)
    gap = found.difference("a", second="b")
    assert gap is not None
    assert 400 < gap.low < gap.value < gap.high < 4000


def test_forfeits_are_counted_and_not_rated():
    won = match(["a"], ["b"], 1)
    given_up = replace(won, seats=(won.seats[0], replace(won.seats[1], forfeited=True)))
    found = fit([won, given_up, given_up], sides=())
    assert (found.rated, found.unrated) == (1, 2)
    assert found.ratings == fit([won], sides=()).ratings


@pytest.mark.parametrize("matches", [[], [match(["a"], [], 1)], [match(["a"], ["a"], 1)]])
def test_one_player_or_none_has_no_interval(matches):
    found = fit(matches, players=["a"], sides=SIDES)
    assert [(r.value, r.low, r.high) for r in found.ratings] == [(ANCHOR, None, None)]
    assert fit([]).ratings == ()


def test_an_anchor_holds_1500():
    matches = played(np.random.default_rng(1), np.linspace(-100, 100, 6), matches=100)
    found, free = fit(matches, anchor="p03"), fit(matches)
    assert found.reference == "p03"
    assert (found.rating("p03").value, found.rating("p03").low) == (ANCHOR, ANCHOR)
    shift = free.rating("p03").value - ANCHOR
    for a, b in zip(found.ratings, free.ratings, strict=True):
        assert a.value == pytest.approx(b.value - shift, abs=1e-5)
    assert found.difference("p00", second="p01").high == pytest.approx(
        free.difference("p00", second="p01").high
    )


def test_a_role_effect_is_fitted_where_the_mix_varies():
    rng = np.random.default_rng(2)
    matches = []
    for _ in range(600):
        captain = rng.random() < 0.5
        roles = ["captain" if captain else "hand", "hand", "crew", "crew"]
        value = 1 if rng.random() < (0.7 if captain else 0.5) else -1
        who = [f"p{i}" for i in rng.permutation(4)]
        matches.append(match(who[:2], who[2:], value, roles=roles))
    effects = {effect.role: effect for effect in fit(matches, sides=SIDES).roles}
    assert effects.keys() == {"captain", "hand"}
    assert effects["captain"].low > 0 > effects["hand"].high
    fixed = [replace(m, seats=tuple(replace(s, role=s.team) for s in m.seats)) for m in matches]
    assert fit(fixed, sides=SIDES).roles == ()


# Input.


def test_an_outcome_becomes_a_match():
    outcome = Outcome("quests", (1.0, -1.0, 1.0), ("good", "evil", "good"), ("merlin", "assassin", "servant"))
    found = rated_match(
        outcome, game="avalon", players=["a", "b", "a"], forfeited=[1], forced={1: 3}, illegal={0: 2}, deal=4
    )
    assert found.seats[1] == RatedSeat("b", "evil", "assassin", -1.0, None, True, 3, 0)
    assert (found.seats[0].illegal, found.seats[2].player) == (2, "a")
    assert not found.rated
    assert found.ranking() == (("good",), ("evil",))


@pytest.mark.parametrize(
    ("matches", "more", "words"),
    [
        ([match(["a"], ["b"], 1)], {"anchor": "z"}, "ratings anchor: got 'z', players are a, b"),
        ([match(["a"], ["b"], 1), race("a", "b")], {}, "a fit is of one game"),
        ([match(["a"], ["b"], float("nan"))], {}, "has a return that is no number"),
        (
            [RatedMatch("g", (RatedSeat("a", "x", "r", 0, 1), RatedSeat("b", "y", "r", 0)))],
            {},
            "for every seat",
        ),
        (
            [RatedMatch("g", tuple(RatedSeat("a", t, "r", 0, i) for i, t in enumerate("xyx")))],
            {},
            "has several places",
        ),
        ([race("abcdefghijk", "lmnopqrstuv")], {}, "ties of 11 among 22 sides"),
    ],
)
def test_bad_input_is_one_line(matches, more, words):
    with pytest.raises(RatingError) as error:
        fit(matches, **more)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_elo_scale():
    assert log(10) / 400 * ELO == pytest.approx(1)
