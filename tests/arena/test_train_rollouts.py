"""The matches between two updates: what is planned, what comes of playing it, and what is learned from."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.base import Seat
from agents.errors import BadPlayer, UnknownAdapter
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.training.config import TrainConfig
from agents.training.league import ITSELF, League
from agents.training.trajectories import harvest
from arena.config import MatchSettings
from arena.errors import TrainStopped
from arena.report import MatchReport
from arena.runner import failed
from arena.train_rollouts import (
    LEARNER,
    MATE,
    OPPONENT,
    Planned,
    Rollouts,
    clear,
    gather,
    plan,
    play,
    plays,
    seating_beside,
    seating_by_side,
    seats_of,
)
from games.registry import load_game
from replays.reader import read_record
from tests.arena.training import small

BOTS = {"itself": 1.0, "bots": 1.0, "opponents": ["random"], "sampling": "uniform"}


def planned(
    config: TrainConfig, folder: Path = Path("records"), *, update: int = 3, league: League | None = None
) -> list[Planned]:
    return plan(
        config, update=update, spec="policy:x@1", league=league or League(config.league), folder=folder
    )


def bots(config: TrainConfig, folder: Path, *, update: int = 3) -> list[Planned]:
    """Return a plan in which the learner is a bot as well."""
    return plan(config, update=update, spec="scripted", league=League(config.league), folder=folder)


def deals(config: TrainConfig, **rest: Any) -> list[tuple[str, int, str]]:
    """Return what is dealt: the game, the seed, the opponent."""
    return list(
        dict.fromkeys((one.job.plan.game, one.job.plan.seed, one.opponent) for one in planned(config, **rest))
    )


# The plan


def test_a_match_of_the_plan_is_named_numbered_and_recorded(tmp_path: Path) -> None:
    config = small(rollout={"deals": 2, "plays": 3}, league=BOTS)
    found = planned(config, tmp_path)
    names = [f"u3-d{deal}-p{number}" for deal in range(2) for number in range(3)]
    assert [one.job.match for one in found] == names and config.matches == 6
    assert [one.job.record for one in found] == [tmp_path / f"{name}.arena" for name in names]
    assert [one.job.plan.index for one in found] == list(range(6))
    assert [one.job.plan.deal for one in found] == [0, 0, 0, 1, 1, 1]
    assert {one.job.plan.round for one in found} == {3}
    for one in found:
        assert one.job.seats == 2 and one.job.players[LEARNER] == "policy:x@1"
        assert set(one.job.players) == set(one.job.plan.seating or ())
        assert one.job.players.get(OPPONENT, ITSELF) == one.opponent
    assert not list(tmp_path.iterdir()), "nothing is written yet"


@given(st.integers(0, 2**32), st.integers(0, 10**6))
def test_the_plan_follows_from_the_seed_and_the_update(seed: int, update: int) -> None:
    config = small(seed=seed, league=BOTS, rollout={"seeds": [], "deals": 5, "plays": 1})
    assert planned(config, update=update) == planned(config, update=update)
    dealt = {one.job.plan.seed for one in planned(config, update=update)}
    assert len(dealt) == 5, "every deal is another"
    assert not dealt & {one.job.plan.seed for one in planned(config, update=update + 1)}
    other = small(seed=seed + 1, league=BOTS, rollout={"seeds": [], "deals": 5, "plays": 1})
    assert not dealt & {one.job.plan.seed for one in planned(other, update=update)}


def test_given_seeds_are_taken_in_turn() -> None:
    config = small(rollout={"deals": 5, "plays": 2, "seeds": [7, 8]})
    assert [one.job.plan.seed for one in planned(config)] == [7, 7, 8, 8, 7, 7, 8, 8, 7, 7]


def test_more_plays_of_a_deal_change_no_deal() -> None:
    few, many = (small(league=BOTS, rollout={"seeds": [], "deals": 8, "plays": n}) for n in (1, 3))
    assert deals(few) == deals(many)


def test_games_are_drawn_by_their_weights_with_their_options_and_seats() -> None:
    games = [
        {"game": "kuhn", "weight": 1e-6},
        {"game": "avalon", "seats": 6, "options": {"lady": True}, "weight": 1e3},
    ]
    config = small(games=games, rollout={"deals": 6, "plays": 1, "seeds": []})
    for one in planned(config):
        assert (one.job.plan.game, one.job.seats, one.job.options) == ("avalon", 6, {"lady": True})
    even = small(games=[{"game": "kuhn"}, {"game": "avalon"}], rollout={"deals": 40, "plays": 1, "seeds": []})
    counted = Counter(one.job.plan.game for one in planned(even))
    assert min(counted.values()) > 8 and counted.total() == 40
    assert {one.job.seats for one in planned(even)} == {2, load_game("avalon").default_seats}


def test_without_games_nothing_is_planned() -> None:
    config = small(games=[], tasks={"tasks": 2}, rollout={"deals": 4})
    assert planned(config) == [] and config.matches == 0


def test_the_learner_sits_on_whole_sides_in_turn() -> None:
    config = small(
        games=[{"game": "avalon"}],
        league={**BOTS, "itself": 0.0},
        rollout={"deals": 3, "plays": 5, "seeds": []},
    )
    rules = load_game("avalon")
    for one in planned(config):
        teams = rules.new(seed=one.job.plan.seed, seats=5).teams()
        sides = list(dict.fromkeys(teams))
        side = sides[int(one.job.match.rpartition("p")[2]) % 2]
        assert one.job.plan.seating == tuple(LEARNER if team == side else OPPONENT for team in teams)


def test_beside_mates_the_learner_has_one_seat_of_its_side_after_the_other() -> None:
    config = small(
        games=[{"game": "avalon"}],
        league={**BOTS, "itself": 0.0, "mates": "scripted"},
        rollout={"deals": 2, "plays": 6, "seeds": []},
    )
    taken: dict[tuple[int, str], set[int]] = {}
    for one in planned(config):
        teams = load_game("avalon").new(seed=one.job.plan.seed, seats=5).teams()
        seating = one.job.plan.seating or ()
        (seat,) = (place for place, name in enumerate(seating) if name == LEARNER)
        assert [name == OPPONENT for name in seating] == [team != teams[seat] for team in teams]
        assert set(seating) == {LEARNER, MATE, OPPONENT} == set(one.job.players)
        assert one.job.players[MATE] == "scripted" and one.job.players[OPPONENT] == one.opponent == "random"
        taken.setdefault((one.job.plan.deal, teams[seat]), set()).add(seat)
    assert {side: {len(seats) for (_, own), seats in taken.items() if own == side} for _, side in taken} == {
        "good": {3},
        "evil": {2},
    }, "in six matches it has every seat"


def test_a_deal_that_comes_back_is_played_beside_mates_from_every_seat() -> None:
    config = small(
        games=[{"game": "avalon"}],
        league={**BOTS, "itself": 0.0, "mates": "scripted"},
        rollout={"deals": 2, "plays": 2, "seeds": [5, 6]},
    )
    taken: dict[int, set[int]] = {}
    for update in range(1, 4):
        for one in planned(config, update=update):
            taken.setdefault(one.job.plan.seed, set()).add((one.job.plan.seating or ()).index(LEARNER))
    assert taken == {5: set(range(5)), 6: set(range(5))}


def test_mates_are_none_where_a_side_has_one_seat_or_the_learner_plays_itself() -> None:
    beside = {**BOTS, "mates": "scripted"}
    for one in planned(small(league=beside, rollout={"deals": 4, "plays": 2})):
        assert MATE not in one.job.players and MATE not in (one.job.plan.seating or ())
        assert set(one.job.players) == set(one.job.plan.seating or ())
    config = small(games=[{"game": "avalon"}], league=beside, rollout={"deals": 20, "plays": 1, "seeds": []})
    itself = [one for one in planned(config) if one.opponent == ITSELF]
    assert itself and {one.job.plan.seating for one in itself} == {(LEARNER,) * 5}


def test_who_cannot_play_a_game_is_not_met_in_it() -> None:
    league = {"itself": 0.0, "bots": 1.0, "opponents": ["planner", "equilibrium"], "sampling": "uniform"}
    games = [{"game": "kuhn"}, {"game": "avalon"}, {"game": "forge"}]
    config = small(games=games, league=league, rollout={"deals": 30, "plays": 1, "seeds": []})
    met: dict[str, set[str]] = {}
    for one in planned(config):
        met.setdefault(one.job.plan.game, set()).add(one.opponent)
    assert met == {"kuhn": {"equilibrium"}, "forge": {"planner"}, "avalon": {ITSELF}}


def test_past_versions_are_met_by_their_spec() -> None:
    config = small(league={"itself": 1e-3, "past": 1000.0}, rollout={"deals": 4, "plays": 2})
    league = League(config.league)
    league.take_in("policy:small@7", update=1)
    for one in planned(config, league=league):
        assert one.opponent == one.job.players[OPPONENT] == "policy:small@7"
        assert sorted(one.job.plan.seating or ()) == [LEARNER, OPPONENT]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.sampled_from("abcd"))
def test_who_sits_where(teams: list[str], side: str) -> None:
    assert seating_by_side(teams, "") == (LEARNER,) * len(teams)
    seated = seating_by_side(teams, side)
    assert [name == LEARNER for name in seated] == [team == side for team in teams]
    assert set(seated) <= {LEARNER, OPPONENT}


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_who_sits_where_beside_mates(teams: list[str], data: Any) -> None:
    seat = data.draw(st.sampled_from(range(len(teams))))
    seated = seating_beside(teams, seat)
    assert [place for place, name in enumerate(seated) if name == LEARNER] == [seat]
    assert [place for place, name in enumerate(seated) if name != OPPONENT] == seats_of(teams, teams[seat])
    assert set(seated) <= {LEARNER, MATE, OPPONENT}


def test_whether_a_player_plays_a_game() -> None:
    assert plays("random", "avalon") and plays("policy:x@1", "kuhn") and plays("planner:0.5", "forge")
    assert not plays("planner", "kuhn") and not plays("equilibrium", "avalon")
    with pytest.raises(BadPlayer, match="got 'nobody'"):
        plays("nobody", "kuhn")


# The matches


def played(found: list[Planned], home: Path, *, concurrency: int = 4, **match: Any) -> list[MatchReport]:
    async def inside() -> list[MatchReport]:
        policies = Policies(PolicySettings(), home=home)
        return await play(found, policies=policies, match=MatchSettings(**match), concurrency=concurrency)

    return asyncio.run(inside())


def test_matches_are_played_and_reported_in_order(tmp_path: Path) -> None:
    found = bots(small(league=BOTS, rollout={"deals": 4, "plays": 2}), tmp_path)
    reports = played(found, tmp_path, retries=5)
    assert [report.match for report in reports] == [one.job.match for one in found]
    for one, report in zip(found, reports, strict=True):
        assert report.error is None and report.record == one.job.record
        header = read_record(one.job.record or Path()).header
        assert (header.match, header.seed, header.retries) == (one.job.match, one.job.plan.seed, 5)
        assert tuple(seat.name for seat in header.seats) == one.job.plan.seating
    assert {one.job.retries for one in found} != {5}, "the plan is as it was"


def test_the_same_plan_gives_the_same_records_however_many_at_a_time(tmp_path: Path) -> None:
    config = small(league=BOTS, rollout={"deals": 4, "plays": 2})
    made = []
    for concurrency in (1, 8):
        found = bots(config, tmp_path / str(concurrency))
        played(found, tmp_path, concurrency=concurrency)
        made.append([(one.job.record or Path()).read_bytes() for one in found])
    assert made[0] == made[1]


def test_matches_beside_mates_are_recorded_with_one_learner(tmp_path: Path) -> None:
    config = small(
        games=[{"game": "avalon", "options": {"speech_rounds": 0}}],
        league={**BOTS, "itself": 0.0, "mates": "random"},
        rollout={"deals": 1, "plays": 2, "seeds": []},
    )
    reports = played(bots(config, tmp_path / "records"), tmp_path)
    assert [one.error for one in reports] == [None, None]
    for report in reports:
        assert report.record is not None and report.points is not None and LEARNER in report.points
        names = [info.name for info in read_record(report.record).header.seats]
        assert names.count(LEARNER) == 1 and set(names) == {LEARNER, MATE, OPPONENT}


def test_no_match_to_play_is_no_report(tmp_path: Path) -> None:
    assert played([], tmp_path) == []


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_than_so_many_are_played_at_once_and_failures_are_reports(
    concurrency: int, tmp_path: Path
) -> None:
    class Refuses:
        now = most = 0

        async def pin(self, spec: str) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(3):
                await asyncio.sleep(0)
            self.now -= 1
            raise UnknownAdapter(f"there is no {spec}")

        def agent(self, spec: str, seat: Seat, **rest: Any) -> None:
            raise AssertionError("nothing was pinned")

    refuses = Refuses()
    found = planned(small(rollout={"deals": 3, "plays": 3}), tmp_path)
    reports = asyncio.run(
        play(found, policies=cast("Policies", refuses), match=MatchSettings(), concurrency=concurrency)
    )
    assert refuses.most == concurrency
    assert [report.error for report in reports] == ["there is no policy:x@1"] * 9
    assert not list(tmp_path.iterdir())


# What came of them


@pytest.fixture
def some(tmp_path: Path) -> tuple[list[Planned], list[MatchReport]]:
    """Return a plan of eight hands, half of them with a bot, and the reports of playing it."""
    config = small(league=BOTS, rollout={"deals": 4, "plays": 2})
    for update in range(100):
        found = bots(config, tmp_path / "records", update=update)
        if sum(one.opponent == ITSELF for one in found) == 4:
            return found, played(found, tmp_path)
    raise AssertionError("no update has two deals of each kind")


Some = tuple[list[Planned], list[MatchReport]]


def test_records_are_read_back_as_trajectories_of_the_learner(some: Some) -> None:
    found, reports = some
    rollouts = gather(found, reports, max_failed=0.0)
    assert (rollouts.matches, rollouts.failed) == (8, Counter())
    assert [record.header.match for record in rollouts.records] == [one.job.match for one in found]
    assert rollouts.plies == sum(report.counts["turns"] for report in reports)
    seats = [(one.match, one.seat, one.stratum) for one in rollouts.trajectories]
    assert seats == [
        (one.job.match, seat, one.opponent)
        for one in found
        for seat, name in enumerate(one.job.plan.seating or ())
        if name == LEARNER
    ]
    assert len(seats) == 4 * 2 + 4 * 1
    whole = [one for record in rollouts.records for one in harvest(record, players={LEARNER})]
    assert [replace(one, stratum="") for one in rollouts.trajectories] == whole


def test_points_are_of_matches_with_others(some: Some) -> None:
    found, reports = some
    rollouts = gather(found, reports, max_failed=0.0)
    assert rollouts.met == Counter({"random": 4}) and set(rollouts.points) == {"random"}
    won = sum(one.outcome > 0 for one in rollouts.trajectories if one.stratum == "random")
    assert rollouts.points["random"] == won, "there are no draws in Kuhn poker"


def test_what_failed_is_counted_by_its_cause(some: Some) -> None:
    found, reports = some
    records = [one.job.record or Path() for one in found]
    reports[0] = failed(found[0].job, "the engine is gone")
    reports[1] = replace(reports[1], record=None)
    records[2].unlink()
    records[3].write_bytes(b"nothing")
    records[4].write_bytes(records[4].read_bytes()[:-30])
    whole = bytearray(records[5].read_bytes())
    whole[-40] ^= 1
    records[5].write_bytes(whole)
    rollouts = gather(found, reports, max_failed=0.75)
    assert rollouts.failed == Counter(match=2, record_unreadable=1, not_a_record=1, bad_rollout=2)
    assert rollouts.matches == 8 and len(rollouts.records) == 2
    assert {one.match for one in rollouts.trajectories} == {one.job.match for one in found[6:]}
    assert rollouts.met.total() == sum(one.opponent != ITSELF for one in found[6:])


def test_more_failures_than_are_allowed_end_the_run_in_one_line(some: Some) -> None:
    found, reports = some
    for place in (2, 5):
        reports[place] = failed(found[place].job, f"{place} " + "x" * 400)
    assert gather(found, reports, max_failed=0.25).failed == Counter(match=2), "as many as are allowed"
    with pytest.raises(TrainStopped) as error:
        gather(found, reports, max_failed=0.24)
    assert str(error.value) == f"2 of 8 matches failed, the last so: 5 {'x' * 298}"
    reports[5] = replace(reports[5], error=None)
    with pytest.raises(TrainStopped, match=r"the last so: no record$"):
        gather(found, reports, max_failed=0.0)


def test_nothing_planned_is_nothing_gathered() -> None:
    assert gather([], [], max_failed=0.0) == Rollouts()


def test_records_are_dropped_with_their_folder_which_need_not_be_there(some: Some) -> None:
    folder = (some[0][0].job.record or Path()).parent
    assert len(list(folder.iterdir())) == 8
    clear(folder)
    assert not folder.exists()
    clear(folder)
