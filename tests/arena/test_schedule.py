"""Schedules: counts balance whenever they can, nobody is lost or doubled, and arguments alone decide."""

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.errors import ScheduleError
from arena.schedule import MatchPlan, imbalance, plan, rotation, rounds_of, zigzag
from games.errors import BadSeed
from games.rng import MAX_SEED

SIDES = ("good", "evil")


def names(count):
    return [f"p{i}" for i in range(count)]


def make(count, *, seats=2, matches=10, seed=0, sides=SIDES, **more):
    return plan(names(count), game="g", seats=seats, team_names=sides, matches=matches, seed=seed, **more)


# The bricks.


@pytest.mark.parametrize("count", range(2, 41))
def test_rounds_hold_every_pair_once_and_any_prefix_is_even(count):
    pairs = [pair for line in rounds_of(count) for pair in line]
    assert sorted(tuple(sorted(pair)) for pair in pairs) == list(combinations(range(count), 2))
    played = Counter(dict.fromkeys(range(count), 0))
    for pair in pairs:
        played.update(pair)
        assert max(played.values()) - min(played.values()) <= 1


@pytest.mark.parametrize("count", range(2, 41, 2))
def test_zigzag_puts_every_ordered_pair_side_by_side_once(count):
    rows = [[(row + offset) % count for offset in zigzag(count)] for row in range(count)]
    beside = Counter(pair for row in rows for pair in pairwise(row))
    assert set(beside.values()) == {1}
    assert len(beside) == count * (count - 1)


@given(players=st.integers(1, 40), seats=st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_rotation_seats_everyone_everywhere_once_and_any_prefix_is_even(players, seats):
    offsets, rows = rotation(players, seats=seats)
    assert sorted(rows) == list(range(players))
    assert len(offsets) == seats
    per_match = Counter(offsets)
    assert max(per_match.values()) - min(per_match.get(i, 0) for i in range(players)) <= 1
    at_seat = Counter((seat, (row + offset) % players) for row in rows for seat, offset in enumerate(offsets))
    assert set(at_seat.values()) == {1}
    assert len(at_seat) == seats * players
    held = Counter(dict.fromkeys(range(players), 0))
    for row in rows:
        held.update((row + offset) % players for offset in offsets)
        assert max(held.values()) - min(held.values()) <= 1


# Whole plans.


@given(
    count=st.integers(1, 40),
    seats=st.integers(2, 12),
    matches=st.integers(0, 500),
    mode=st.sampled_from(["auto", "sides", "mixed"]),
    format=st.sampled_from(["round-robin", "gauntlet"]),
    seed=st.integers(0, MAX_SEED),
)
@settings(max_examples=80, deadline=None)
def test_any_plan_is_whole_and_deterministic(count, seats, matches, mode, format, seed):
    arguments = {"seats": seats, "matches": matches, "mode": mode, "format": format, "seed": seed}
    plans = make(count, **arguments)
    assert plans == make(count, **arguments)
    assert [match.index for match in plans] == list(range(matches))
    teams = [SIDES[i % 2] for i in range(seats)]
    for match in plans:
        assert (match.seating is None) != (match.sides is None)
        seated = match.seated(teams)
        assert len(seated) == seats
        assert set(seated) == set(match.players) <= set(names(count))
        if match.seating is not None:
            held = Counter(seated)
            assert max(held.values()) - min(held.values()) <= 1
    assert len({match.seed for match in plans}) == len({match.deal for match in plans})
    report = imbalance(plans, players=names(count))
    assert sum(report.matches.values()) == sum(len(match.players) for match in plans)
    assert all(held <= sum(report.matches.values()) for held in report.matches.values())


@given(count=st.integers(2, 40), cycles=st.integers(1, 2), seats=st.integers(2, 12), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_round_robin_is_balanced_whenever_the_number_divides(count, cycles, seats, seed):
    plans = make(count, seats=seats, matches=count * (count - 1) * cycles, seed=seed)
    report = imbalance(plans, players=names(count))
    assert report.balanced
    assert report.lines == ()
    assert set(report.pairs.values()) == {2 * cycles}
    assert {match.deal: match for match in plans}.keys() == set(range(len(plans) // 2))
    for one, two in zip(plans[::2], plans[1::2], strict=True):
        assert one.seed == two.seed
        assert one.players == two.players[::-1]


@given(count=st.integers(2, 40), matches=st.integers(0, 500))
@settings(max_examples=60, deadline=None)
def test_a_round_robin_cut_short_is_as_even_as_pairs_allow(count, matches):
    report = imbalance(make(count, matches=matches), players=names(count))
    assert report.spread["matches"] <= 2
    assert report.spread["pairs"] <= 2
    assert report.spread.get("seat 0", 0) <= 2
    assert len(report.cut_deals) == matches % 2
    assert (report.lines == ()) == (not any(report.spread.values()) and not report.cut_deals)


@given(count=st.integers(2, 40), blocks=st.integers(1, 6), seats=st.integers(2, 12), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_mixed_plan_of_whole_blocks_gives_everyone_every_dealt_seat_equally_often(
    count, blocks, seats, seed
):
    plans = make(count, seats=seats, matches=count * blocks, mode="mixed", seed=seed)
    held = Counter(
        (match.deal, seat, player) for match in plans for seat, player in enumerate(match.seating or ())
    )
    assert set(held.values()) == {1}
    assert len(held) == blocks * seats * count
    assert imbalance(plans, players=names(count)).balanced


@given(count=st.integers(1, 40), matches=st.integers(0, 500), seats=st.integers(2, 12))
@settings(max_examples=80, deadline=None)
def test_a_mixed_plan_cut_short_differs_by_one(count, matches, seats):
    plans = make(count, seats=seats, matches=matches, mode="mixed") if count > 1 else ()
    report = imbalance(plans, players=names(count))
    seat_counts = [sum(places.values()) for places in report.places.values()]
    assert max(seat_counts) - min(seat_counts) <= 1
    assert report.spread["matches"] <= 1
    assert all(report.spread[f"seat {i}"] <= 1 for i in range(seats) if plans)


def test_a_mixed_plan_evens_out_who_meets_whom():
    report = imbalance(make(12, seats=5, matches=240, mode="mixed"), players=names(12))
    mean = 240 * 20 / (12 * 11)
    assert all(abs(met - mean) / mean < 0.25 for met in report.pairs.values())


def test_a_gauntlet_is_the_first_against_each_other():
    plans = make(5, matches=16, format="gauntlet")
    report = imbalance(plans, players=names(5))
    assert {pair: met for pair, met in report.pairs.items() if met} == {
        ("p0", f"p{i}"): 4 for i in range(1, 5)
    }
    assert report.places["p0"] == {"seat 0": 8, "seat 1": 8}


def test_a_mixed_gauntlet_shares_the_seats_and_changes_them():
    one, two = make(2, seats=5, matches=2, format="gauntlet", mode="mixed")
    assert one.seating == ("p0", "p1", "p0", "p1", "p0")
    assert two.seating == ("p1", "p0", "p1", "p0", "p1")
    assert one.seed == two.seed


def test_sides_are_turned_into_seats_after_the_deal():
    one, two = make(2, seats=5, matches=2)
    dealt = ("evil", "good", "good", "evil", "good")
    held = dict(one.sides or ())
    assert one.seated(dealt) == tuple(held[side] for side in dealt)
    assert dict(two.sides or ()) == {"good": held["evil"], "evil": held["good"]}


def test_one_player_plays_itself_on_a_deal_of_its_own_each_time():
    plans = make(1, seats=5, matches=4)
    assert [match.seated(["good", "evil"] * 2) for match in plans] == [("p0",) * 4] * 4
    assert len({match.seed for match in plans}) == 4
    assert imbalance(plans, players=["p0"]).balanced


def test_deals_do_not_depend_on_the_players_but_on_the_seed_and_the_game():
    seeds = [match.seed for match in make(4, matches=12)]
    assert [match.seed for match in make(6, matches=12)] == seeds
    assert [match.seed for match in make(4, matches=12, seed=1)] != seeds
    other = plan(names(4), game="h", seats=2, team_names=SIDES, matches=12, seed=0)
    assert [match.seed for match in other] != seeds


def test_the_imbalance_is_told_in_words():
    report = imbalance(make(5, seats=5, matches=7, mode="mixed"), players=names(5))
    assert not report.balanced
    assert any(line.startswith("seat 0: 1 to 2") for line in report.lines)
    assert report.lines[-1] == "deals without their full rotation, so with roles unevenly held: 1"
    report = imbalance(make(3, matches=2), players=names(3))
    assert "matches per player: 0 to 2" in report.lines
    assert "matches per pair: 0 to 2" in report.lines


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"players": []}, "got no player"),
        ({"players": ["a", "b", "a"]}, "players: got 'a' twice"),
        ({"matches": -1}, "matches: got -1"),
        ({"seats": 0}, "seats: got 0"),
        ({"mode": "any"}, "seating: got 'any', allowed are auto"),
        ({"mode": "seats", "seats": 5}, "allows sides, mixed"),
        ({"mode": "sides", "team_names": ("a", "b", "c"), "seats": 3}, "allows mixed"),
        ({"format": "swiss"}, "format: got 'swiss'"),
    ],
)
def test_bad_input_is_one_line(change, words):
    arguments = {"players": ["a", "b"], "game": "g", "seats": 2, "team_names": SIDES, "matches": 2, "seed": 0}
    arguments |= change
    players = arguments.pop("players")
    with pytest.raises(ScheduleError) as error:
        plan(players, **arguments)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_a_seed_out_of_range_is_refused():
    with pytest.raises(BadSeed):
        make(2, seed=-1)


def test_a_deal_that_does_not_fit_the_plan_is_refused():
    with pytest.raises(ScheduleError, match="planned for 2 seats, dealt were 3"):
        MatchPlan(0, "g", 0, 0, 0, seating=("a", "b")).seated(["x"] * 3)
    with pytest.raises(ScheduleError, match="'third' in the deal"):
        MatchPlan(0, "g", 0, 0, 0, sides=(("good", "a"), ("evil", "b"))).seated(["good", "third"])
