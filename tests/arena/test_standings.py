"""Standings: every seat counted once in exactly one column, and what the table says of each player."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.results import RatedMatch, RatedSeat
from arena.standings import COLUMNS, leaderboard, wilson
from games.registry import load_game

SIDES = {"g": ("good", "evil")}


def match(good, evil, value, *, gone=(), forced=(), game="g"):
    seats = [(name, "good", value) for name in good] + [(name, "evil", -value) for name in evil]
    return RatedMatch(
        game,
        tuple(
            RatedSeat(
                name,
                team,
                f"{team} {i % 2}",
                float(value),
                forfeited=i in gone,
                forced=int(i in forced),
                illegal=2,
            )
            for i, (name, team, value) in enumerate(seats)
        ),
    )


def rows(matches, **more):
    return {row.player: row for row in leaderboard(matches, sides=SIDES, **more).standings}


def columns(row):
    return {name: getattr(row.tally, name) for name in COLUMNS if getattr(row.tally, name)}


matches_of = st.lists(
    st.builds(
        match,
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=4),
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=3),
        st.sampled_from([-1, 0, 1]),
        gone=st.sets(st.integers(0, 6), max_size=2),
        game=st.sampled_from(["g", "h"]),
    ),
    max_size=12,
)


@given(matches=matches_of, seed=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_every_seat_falls_into_one_column(matches, seed):
    table = leaderboard(matches, sides=SIDES)
    for row in table.standings:
        mine = [m for m in matches if m.game == row.game and any(s.player == row.player for s in m.seats)]
        seats = sum(s.player == row.player for m in mine for s in m.seats)
        assert row.tally.played == seats
        assert row.matches == len(mine)
        assert sum(tally.played for tally in row.by_role.values()) == seats
        for name in COLUMNS:
            assert sum(getattr(tally, name) for tally in row.by_role.values()) == getattr(row.tally, name)
        assert row.illegal == 2 * seats
    assert sum(row.tally.played for row in table.standings) == sum(len(m.seats) for m in matches)
    seed.shuffle(matches)
    assert leaderboard(matches, sides=SIDES) == table
    json.dumps(table.as_dict(), allow_nan=False)


def test_a_win_by_forfeit_is_no_win_by_play():
    found = rows([match("ab", "cd", 1, gone={2})])
    assert columns(found["a"]) == {"walkovers": 1}
    assert columns(found["c"]) == {"forfeits": 1}
    assert columns(found["d"]) == {"lost": 1}
    assert found["a"].tally.score is None
    assert (found["a"].rating, found["a"].low, found["a"].rated) == (1500.0, None, 0)


def test_who_forfeits_has_forfeited_even_if_the_side_wins():
    found = rows([match("ab", "cd", 1, gone={0})])
    assert columns(found["a"]) == {"forfeits": 1}
    assert columns(found["b"]) == {"won": 1}
    assert columns(found["c"]) == {"lost": 1}


def test_a_win_over_a_forced_move_is_marked():
    found = rows([match("a", "b", 1, forced={1}), match("a", "b", 1, forced={0}), match("a", "b", 1)])
    assert (found["a"].tally.won, found["a"].won_forced, found["a"].forced) == (3, 1, 1)
    assert found["b"].forced == 1


def test_seven_seats_and_six_players():
    found = rows([match("abca", "def", 1)])
    assert columns(found["a"]) == {"won": 2}
    assert found["a"].matches == 1
    assert found["a"].tally.sides == 1
    assert sum(row.tally.played for row in found.values()) == 7


def test_a_mirror_match_is_won_and_lost():
    found = rows([match("a", "a", 1)])
    assert columns(found["a"]) == {"won": 1, "lost": 1}
    assert found["a"].tally.score == 0.5


def test_draws_and_a_tie_among_several():
    found = rows([match("a", "b", 0)])
    assert columns(found["a"]) == columns(found["b"]) == {"drawn": 1}
    assert found["a"].tally.score == 0.5
    race = RatedMatch(
        "g", tuple(RatedSeat(p, f"of {p}", "r", v) for p, v in zip("abc", (2, 2, 1), strict=True))
    )
    found = {row.player: row for row in leaderboard([race]).standings}
    assert columns(found["a"]) == columns(found["b"]) == {"drawn": 1}
    assert columns(found["c"]) == {"lost": 1}


def test_a_game_of_one_side_is_counted_by_its_return_and_not_rated():
    alone = RatedMatch("g", (RatedSeat("a", "team", "r", 1.0), RatedSeat("b", "team", "r", 1.0)))
    found = rows([alone, replace(alone, seats=tuple(replace(s, value=-1.0) for s in alone.seats))])
    assert columns(found["a"]) == {"won": 1, "lost": 1}
    assert found["a"].rated == 0


def test_the_rows_have_the_keys_of_the_command_line():
    table = leaderboard([match("a", "b", 1), match("b", "a", 1), match("a", "b", 1)], sides=SIDES).as_dict()
    first = table["standings"][0]
    assert first.keys() >= {
        "player", "game", "played", "won", "drawn", "lost", "score", "rating", "low", "high", "by_role",
        "forced", "illegal", "credit",
    }  # fmt: skip
    assert first["credit"] == pytest.approx(1 / 3)
    assert (first["accusation"], table["credit"]) == (None, "equal")
    assert first["player"] == "a"
    assert first["low"] < first["rating"] < first["high"]
    assert first["by_role"]["good 0"].keys() >= {"played", "won", "drawn", "lost", "score"}
    effect = table["side_effect"]["g"]
    assert (effect["side"], effect["share"], list(effect["sides"])) == ("good", 1.0, ["good", "evil"])
    assert effect["low"] < effect["value"] < effect["high"]
    assert first["mean_return"] == pytest.approx(1 / 3)
    assert first["return_low"] < 1 / 3 < first["return_high"]


def test_mirrored_luck_cancels_in_the_interval_of_the_mean_return():
    alone = [match(x, y, r) for r in [1, -1] * 20 for x, y in ("ab", "ba")]
    paired = [replace(m, deal=i // 2) for i, m in enumerate(alone)]
    wide, narrow = (rows(m)["a"].mean_return for m in (alone, paired))
    assert wide[0] == narrow[0] == 0.0
    assert wide[1] < -0.1 and wide[2] > 0.1
    assert narrow[1:] == (0.0, 0.0)


def test_a_listed_player_without_a_match_has_a_row():
    found = rows([match("a", "b", 1), match("b", "a", 1)], players=["z"])
    assert found["z"].as_dict()["played"] == 0
    assert found["z"].rating == 1500.0
    assert leaderboard([], players=["z"]).standings == ()


def test_warnings_name_what_cannot_be_compared():
    table = leaderboard([match("a", "b", 1), match("b", "a", 1), match("c", "d", 1)], sides=SIDES)
    text = " ".join(table.warnings())
    assert "2 groups of players never met" in text
    assert "a, b; c, d" in text
    mates = [match("a", "b", 1), match("b", "a", 1), match("ab", "cd", 1)]
    mates = [replace(m, seats=tuple(replace(s, role=s.team) for s in m.seats)) for m in mates]
    (line,) = leaderboard(mates, sides=SIDES).warnings()
    assert "do not tell the rating of c, d apart" in line
    assert leaderboard([match("a", "b", 1), match("b", "a", 1)], sides=SIDES).warnings() == []


def test_wilson():
    low, high = wilson(0.5, n=100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)
    assert wilson(0.0, n=10)[0] == 0.0
    assert wilson(1.0, n=10)[1] == 1.0


def test_sides_that_differ_by_name_alone_have_no_effect():
    def race(*players):
        seats = tuple(
            RatedSeat(player, team, "smith", float(-place))
            for place, (player, team) in enumerate(zip(players, ("red", "blue", "green"), strict=False))
        )
        return RatedMatch("forge", seats)

    matches = [race("a", "b", "c"), race("b", "a"), race("c", "a", "b")]
    sides = {"forge": load_game("forge").unlike_sides, "kuhn": load_game("kuhn").unlike_sides}
    assert sides == {"forge": (), "kuhn": ("first", "second")}
    table = leaderboard(matches, sides=sides)
    assert table.as_dict()["side_effect"] == {} and table.fits[0].sides == ()
    assert [row.player for row in table.standings] == ["a", "b", "c"]
