"""The sequential test: bounds, ratio, decisions, and error rates by simulation."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from arena.errors import SprtError
from arena.sprt import Sprt, SprtTest, expected_score, log_likelihood_ratio

TEST = SprtTest(0, 100)


def simulate(test, shares, *, seed, runs=400, horizon=3000):
    """Return the shares of runs that took H1 and H0, and the mean length."""
    rng = np.random.default_rng(seed)
    live, counts = np.arange(runs), np.zeros((runs, len(shares)))
    taken, length = np.zeros(runs), np.full(runs, horizon)
    for step in range(1, horizon + 1):
        drawn = rng.choice(len(shares), size=len(live), p=shares)
        counts[live, drawn] += 1
        llr = test.llr(counts[live])
        over, under = llr >= test.upper, llr <= test.lower
        taken[live[over]], taken[live[under]] = 1, -1
        length[live[over | under]] = step
        live = live[~(over | under)]
        if not len(live):
            break
    return (taken == 1).mean(), (taken == -1).mean(), length.mean()


def match_shares(elo, draws):
    win = expected_score(elo) - draws / 2
    return [1 - win - draws, draws, win]


def pair_shares(elo, side=0.25):
    """Two mirrored matches of a game without draws whose first side is worth `side` of a point."""
    win = [expected_score(elo) + side, expected_score(elo) - side]
    lose = [1 - p for p in win]
    return [lose[0] * lose[1], 0, win[0] * lose[1] + lose[0] * win[1], 0, win[0] * win[1]]


# A rate of 0.05 over 400 runs has a standard error of 0.011; 0.085 lies three of them above.
@pytest.mark.parametrize("draws", [0.0, 0.4])
def test_error_rates_hold_for_matches(draws):
    wrong, right, _ = simulate(TEST, match_shares(TEST.elo0, draws), seed=1)
    assert wrong <= 0.085
    assert right >= 0.9
    right, wrong, _ = simulate(TEST, match_shares(TEST.elo1, draws), seed=2)
    assert wrong <= 0.085
    assert right >= 0.9


def test_error_rates_hold_for_pairs_and_pairs_are_cheaper():
    wrong, right, pairs = simulate(TEST, pair_shares(TEST.elo0), seed=3)
    assert wrong <= 0.085
    assert right >= 0.9
    right, wrong, _ = simulate(TEST, pair_shares(TEST.elo1), seed=4)
    assert wrong <= 0.085
    assert right >= 0.9
    _, _, matches = simulate(TEST, match_shares(TEST.elo0, 0.0), seed=3)
    assert 2 * pairs < matches


def test_a_stronger_player_than_h1_says_is_found_sooner():
    at, _, long = simulate(TEST, match_shares(100, 0.0), seed=5, runs=200)
    beyond, _, short = simulate(TEST, match_shares(250, 0.0), seed=5, runs=200)
    assert beyond >= at
    assert short < long / 2


def test_bounds_are_walds():
    test = SprtTest(0, 10, 0.05, 0.1)
    assert test.lower == pytest.approx(log(0.1 / 0.95))
    assert test.upper == pytest.approx(log(0.9 / 0.05))


@pytest.mark.parametrize("counts", [[30, 10, 60], [5, 0, 8], [3, 7, 20, 9, 4], [1, 1, 1, 1, 1]])
def test_the_ratio_is_that_of_the_likeliest_distributions(counts):
    """Against a general optimiser over all distributions with the given mean."""
    score = np.linspace(0, 1, len(counts))
    seen = np.maximum(np.array(counts, dtype=float), 1e-3)

    def best(mean):
        start = np.full(len(counts), 1 / len(counts))
        found = minimize(
            lambda p: -(seen * np.log(p)).sum(),
            start,
            jac=lambda p: -seen / p,
            method="SLSQP",
            bounds=[(1e-9, 1)] * len(counts),
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "eq", "fun": lambda p: p @ score - mean},
            ],
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        return -found.fun

    got = log_likelihood_ratio(counts, score0=0.5, score1=0.57)
    assert float(got) == pytest.approx(best(0.57) - best(0.5), abs=2e-4)


@given(counts=st.lists(st.integers(0, 500), min_size=3, max_size=5), elo=st.floats(1, 300))
@settings(max_examples=100, deadline=None)
def test_mirrored_results_mirror_the_ratio(counts, elo):
    there = SprtTest(-elo, elo).llr(counts)
    back = SprtTest(-elo, elo).llr(counts[::-1])
    assert float(there) == pytest.approx(-float(back), abs=1e-6)


def test_nothing_seen_is_no_evidence():
    assert float(TEST.llr([0, 0, 0])) == 0


def test_it_decides_once_and_stays():
    sprt = Sprt(SprtTest(0, 100))
    while sprt.status == "continue":
        sprt.update(1.0)
    assert sprt.status == "accept_h1"
    after = sprt.decided_after
    for _ in range(200):
        assert sprt.update(0.0) == "accept_h1"
    assert sprt.decided_after == after
    assert sprt.llr < sprt.test.lower
    assert sprt.outcomes == after + 200


def test_losses_take_h0_and_draws_end_as_well():
    sprt = Sprt(SprtTest(0, 100))
    while sprt.status == "continue":
        sprt.update(0.0)
    assert sprt.status == "accept_h0"
    drawn = Sprt(SprtTest(0, 100), paired=True)
    while drawn.status == "continue":
        drawn.update(0.5)
    assert drawn.status == "accept_h0"
    assert drawn.score == 0.5


def test_parse():
    assert SprtTest.parse("0, 10,0.05,0.1") == SprtTest(0.0, 10.0, 0.05, 0.1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,10,0.05", "expected four numbers elo0,elo1,alpha,beta"),
        ("", "sprt: got ''"),
        ("0,ten,0.05,0.05", "sprt elo1: got 'ten', expected a number"),
        ("10,0,0.05,0.05", "elo0 must be the smaller"),
        ("0,0,0.05,0.05", "elo0 must be the smaller"),
        ("0,10,0,0.05", "sprt alpha: got 0"),
        ("0,10,0.05,0.5", "sprt beta: got 0.5"),
        ("0,10,nan,0.05", "sprt alpha: got nan"),
        ("nan,10,0.05,0.05", "sprt elo0: got nan"),
        ("0,inf,0.05,0.05", "sprt elo1: got inf"),
    ],
)
def test_bad_tests_are_one_line(text, words):
    with pytest.raises(SprtError) as error:
        SprtTest.parse(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("paired", "score"), [(False, 0.25), (True, 0.3), (True, 1.25), (False, -0.5), (True, float("nan"))]
)
def test_a_score_off_the_scale_is_refused(paired, score):
    with pytest.raises(SprtError, match="got score"):
        Sprt(TEST, paired=paired).update(score)
