import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BadCheckpoint
from agents.training.config import LeagueSettings
from agents.training.league import ITSELF, League, Member


def _drawn(league: League, count: int = 2000) -> Counter[str]:
    return Counter(league.draw(seed).spec for seed in range(count))


def test_kinds_come_by_their_shares() -> None:
    league = League(LeagueSettings(itself=2, past=1, bots=1, opponents=("random",), sampling="uniform"))
    counts = _drawn(league)
    assert counts[ITSELF] / 2000 == pytest.approx(2 / 3, abs=0.04), "there are no past versions yet"
    league.take_in("policy:a@1", update=1)
    counts = _drawn(league)
    assert counts[ITSELF] / 2000 == pytest.approx(0.5, abs=0.04)
    assert counts["random"] / 2000 == pytest.approx(0.25, abs=0.04)
    assert counts["policy:a@1"] / 2000 == pytest.approx(0.25, abs=0.04)


def test_prioritised_sampling_is_by_how_often_the_learner_loses() -> None:
    league = League(LeagueSettings(itself=0, bots=1, opponents=("easy", "hard"), power=2))
    league.note("easy", points=88, matches=98)
    league.note("hard", points=9, matches=98)
    easy, hard = (1 - 0.89) ** 2, (1 - 0.1) ** 2
    assert _drawn(league)["easy"] / 2000 == pytest.approx(easy / (easy + hard), abs=0.02)


def test_the_latest_version_may_be_all_that_is_met() -> None:
    league = League(LeagueSettings(itself=1, past=10_00, sampling="latest"))
    for update in (5, 10, 15):
        league.take_in(f"policy:a@{update}", update=update)
    assert set(_drawn(league)) <= {ITSELF, "policy:a@15"}


def test_who_cannot_play_is_not_drawn() -> None:
    league = League(LeagueSettings(itself=0, bots=1, opponents=("a", "b")))
    assert {league.draw(seed, barred=["a"]).spec for seed in range(50)} == {"b"}
    assert league.draw(1, barred=["a", "b"]).spec == ITSELF


def test_old_results_fade_and_counts_stay() -> None:
    league = League(LeagueSettings(bots=1, opponents=("a",), memory=0.5))
    (bot,) = league.bots
    assert bot.share == 0.5
    league.note("a", points=8, matches=8)
    assert bot.share == 0.9
    for _ in range(60):
        league.fade()
    assert bot.share == pytest.approx(0.5) and bot.matches == 8
    league.note("nobody", points=1)


@given(st.integers(1, 6), st.integers(1, 40))
def test_those_that_are_kept_stand_for_the_whole_run(keep: int, count: int) -> None:
    league = League(LeagueSettings(past=1, keep=keep))
    gone: list[str] = []
    for update in range(1, count + 1):
        gone += league.take_in(f"policy:a@{update}", update=update)
    kept = [one.since for one in league.past]
    assert kept == sorted(kept) and len(kept) == min(keep, count) and kept[-1] == count
    assert len(gone) + len(kept) == count and not set(gone) & {one.spec for one in league.past}
    if keep >= 3:
        assert kept[0] == 1
        gaps = [b - a for a, b in itertools.pairwise(kept)]
        assert not gaps or max(gaps) <= max(2, -(-4 * count // keep))


def test_the_state_is_plain_and_gives_the_same_league_again() -> None:
    import json

    settings = LeagueSettings(past=1, bots=1, opponents=("a", "b"))
    league = League(settings)
    league.take_in("policy:x@3", update=20)
    league.note("a", points=3, matches=4)
    league.fade()
    again = League(settings)
    again.restore(json.loads(json.dumps(league.state())))
    assert again.state() == league.state()
    assert [again.draw(seed).spec for seed in range(100)] == [league.draw(seed).spec for seed in range(100)]
    fewer = League(LeagueSettings(bots=1, opponents=("b", "c")))
    fewer.restore(league.state())
    assert [one.spec for one in fewer.bots] == ["b", "c"] and fewer.bots[1] == Member("bot", "c")
    with pytest.raises(BadCheckpoint, match="its league cannot be read"):
        again.restore({"members": [{"kind": "bot"}]})
