"""Swiss rounds: like meets like, nobody meets again before it is necessary, byes go round."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.errors import ScheduleError
from arena.swiss import Swiss
from games.rng import Chance

SIDES = ("good", "evil")


def swiss(count, *, matches, seed=0, seats=2, **more):
    players = [f"p{i}" for i in range(count)]
    return Swiss(players, game="g", seats=seats, team_names=SIDES, matches=matches, seed=seed, **more)


def points(match, chance=None):
    """A result: by chance, or the player of the lower number wins."""
    if len(match.players) == 1:
        return {match.players[0]: 0.5}
    a, b = sorted(match.players, key=lambda name: int(name[1:]))
    value = 1.0 if chance is None else chance.draw(3) / 2
    return {a: value, b: 1 - value}


def play(tournament, *, chance=None):
    results, rounds = {}, []
    while found := tournament.next_round(results):
        rounds.append(found)
        results |= {match.index: points(match, chance) for match in found}
    return rounds, results


def pairings(players, banned):
    """Whether all `players` can be paired without a banned pair, by trying everything."""
    if not players:
        return True
    first, *rest = players
    return any(
        frozenset((first, other)) not in banned and pairings([p for p in rest if p != other], banned)
        for other in rest
    )


@given(count=st.integers(1, 16), matches=st.integers(0, 80), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_rounds_are_whole_and_byes_fair(count, matches, seed):
    tournament = swiss(count, matches=matches, seed=seed)
    rounds, _ = play(tournament, chance=Chance(seed))
    planned = [match for found in rounds for match in found]
    assert tuple(planned) == tournament.planned
    assert [match.index for match in planned] == list(range(matches))
    for found in rounds[:-1]:
        seats = Counter(player for match in found for player in match.players)
        assert count == 1 or set(seats.values()) == {2}
        assert len(seats) == (count if count == 1 else count - count % 2)
    byes = tournament.byes.values()
    assert max(byes) - min(byes) <= 1
    assert sum(byes) == (len(rounds) if count % 2 and count > 1 else 0)


@given(count=st.integers(2, 8), seed=st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_no_pair_meets_again_before_it_is_necessary(count, seed):
    rounds, _ = play(swiss(count, matches=2 * (count // 2) * (count + 2), seed=seed), chance=Chance(seed))
    everyone = {f"p{i}" for i in range(count)}
    met, byes = set(), Counter(dict.fromkeys(everyone, 0))
    for found in rounds:
        if len(met) == count * (count - 1) // 2:
            break
        pairs = {frozenset(match.players) for match in found}
        free = sorted(everyone - {player for pair in pairs for player in pair})
        if pairs & met:
            for left in sorted(p for p in everyone if byes[p] == min(byes.values())) if free else [None]:
                assert not pairings(sorted(everyone - {left}), met)
        met |= pairs
        byes.update(free)


def test_leaders_meet_and_the_best_ends_first():
    tournament = swiss(8, matches=2 * 4 * 3, seed=3)
    rounds, results = play(tournament)
    ranked, score = tournament.ranking(results)
    assert ranked[0] == "p0"
    assert score["p0"] == 6
    unbeaten = {"p0"}
    for found in rounds[1:]:
        before = {
            name: sum(results[m.index].get(name, 0) for m in tournament.planned if m.round < found[0].round)
            for name in ranked
        }
        gaps = [abs(before[a] - before[b]) for match in found for a, b in [match.players]]
        assert sum(gaps) <= 4
    assert unbeaten == {name for name in ranked if score[name] == 6}


def test_mirrored_matches_share_the_deal():
    rounds, _ = play(swiss(6, matches=18, seats=5))
    planned = [match for found in rounds for match in found]
    for one, two in zip(planned[::2], planned[1::2], strict=True):
        assert one.seed == two.seed
        assert one.players == two.players[::-1]
        assert one.sides is not None
    assert all(a.index < b.index for a, b in pairwise(planned))


def test_one_player_plays_itself_on_a_deal_of_its_own_each_time():
    rounds, _ = play(swiss(1, matches=5))
    assert [len(found) for found in rounds] == [1] * 5
    assert len({match.seed for found in rounds for match in found}) == 5


def test_made_anew_it_plans_the_same_rounds():
    rounds, results = play(swiss(7, matches=30, seed=5), chance=Chance(1))
    again = swiss(7, matches=30, seed=5)
    assert [again.next_round(results) for _ in rounds] == rounds
    assert again.next_round(results) == ()


def test_forty_players_and_many_rounds_are_paired():
    rounds, _ = play(swiss(40, matches=400), chance=Chance(2))
    met = Counter(frozenset(match.players) for found in rounds for match in found)
    assert len(rounds) == 10
    assert set(met.values()) == {2}


def test_a_failed_match_counts_half_to_each():
    tournament = swiss(2, matches=4)
    first = tournament.next_round({})
    _, score = tournament.ranking({first[0].index: None, first[1].index: points(first[1])})
    assert score == {"p0": 1.5, "p1": 0.5}


@pytest.mark.parametrize("given_points", [{"p0": 1.0}, {"p0": 1.0, "p9": 0.0}, {"p0": 2.0, "p1": 0.0}])
def test_a_result_that_does_not_fit_is_refused(given_points):
    tournament = swiss(2, matches=4)
    tournament.next_round({})
    with pytest.raises(ScheduleError, match="match 0 needs points from 0 to 1"):
        tournament.next_round({0: given_points, 1: None})


def test_a_missing_result_is_named():
    tournament = swiss(4, matches=8)
    tournament.next_round({})
    with pytest.raises(ScheduleError, match="round 2 needs the result of match 0"):
        tournament.next_round({})
