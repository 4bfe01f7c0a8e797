"""Avalon: the rulebook's tables, every ending, who knows what, and what a seat may not learn."""

import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.avalon import Avalon, AvalonState
from games.avalon.rules import (
    ASSASSIN,
    CUSTOMARY,
    EVIL,
    EVIL_SEATS,
    GOOD,
    MERLIN,
    MINION,
    MORDRED,
    MORGANA,
    OBERON,
    PERCIVAL,
    SERVANT,
    SIDES,
    TEAM_SIZES,
    make_deck,
)
from games.base import Event
from games.errors import BadOption, BadSeats, IllegalAction, MatchOver
from games.registry import load_game
from games.rng import RecordedChance

GAME = Avalon()
FIVE = (MERLIN, PERCIVAL, SERVANT, ASSASSIN, MORGANA)
SEVEN = (MERLIN, PERCIVAL, SERVANT, SERVANT, ASSASSIN, MORGANA, MORDRED)
TEN = (MERLIN, PERCIVAL, SERVANT, SERVANT, SERVANT, SERVANT, ASSASSIN, MORGANA, MORDRED, OBERON)


def deal(roles: tuple[str, ...], leader: int = 0, **options: object) -> AvalonState:
    """A state in which seat i holds roles[i]."""
    special = [role for role in roles if role not in (SERVANT, MINION)]
    chosen = GAME.parse_options({"roles": special}).roles
    free = list(enumerate(make_deck(len(roles), chosen)))
    order = []
    for role in roles:
        card = next(entry for entry in free if entry[1] == role)
        free.remove(card)
        order.append(card[0])
    settings_ = {"speech_rounds": 0, "roles": special, **options}
    return GAME.start(RecordedChance([order, leader]), seats=len(roles), options=settings_)


def propose(state: AvalonState, team: list[int], votes: str | None = None) -> list[Event]:
    """Propose and vote; `votes` holds + and - by seat, all approve when None."""
    state.apply({state.leader: tuple(map(str, sorted(team)))})
    letters = votes or "+" * state.seats
    return state.apply({s: "approve" if v == "+" else "reject" for s, v in enumerate(letters)})


def quest(state: AvalonState, team: list[int], failing: tuple[int, ...] = ()) -> list[Event]:
    propose(state, team)
    return state.apply({s: "fail" if s in failing else "success" for s in team})


def seen(state: AvalonState, seat: int) -> tuple[int, ...]:
    return state.view(seat).seen


def play_randomly(state: AvalonState, rng: random.Random, plies: int = 10_000) -> int:
    done = 0
    while (turns := state.turns()) and done < plies:
        state.apply({seat: space.sample(rng) for seat, space in turns.items()})
        done += 1
    return done


def test_the_rulebook_tables() -> None:
    sides = {5: (3, 2), 6: (4, 2), 7: (4, 3), 8: (5, 3), 9: (6, 3), 10: (6, 4)}
    for n, (good, evil) in sides.items():
        state = GAME.new(seed=n, seats=n)
        assert Counter(state.teams()) == {GOOD: good, EVIL: evil}
        assert sorted(state.roles()) == sorted(make_deck(n))
        assert set(CUSTOMARY[n]) <= set(state.roles())
    assert TEAM_SIZES[5] == (2, 3, 2, 3, 3)
    assert TEAM_SIZES[6] == (2, 3, 4, 3, 4)
    assert TEAM_SIZES[7] == (2, 3, 3, 4, 4)
    assert TEAM_SIZES[8] == TEAM_SIZES[9] == TEAM_SIZES[10] == (3, 4, 4, 5, 5)


@pytest.mark.parametrize("n", range(5, 11))
def test_every_quest_has_its_size_and_the_fourth_its_two_fails(n: int) -> None:
    state = GAME.new(seats=n, seed=1, options={"speech_rounds": 0})
    evil = [s for s in range(n) if state.teams()[s] == EVIL]
    good = [s for s in range(n) if s not in evil]
    view = state.view(None)
    assert view.team_sizes == TEAM_SIZES[n]
    assert view.fails_needed == ((1, 1, 1, 2, 1) if n >= 7 else (1, 1, 1, 1, 1))
    wins = [False, False, True, None, True]
    for number, success in enumerate(wins):
        space = state.turns()[state.leader]
        assert space.size == TEAM_SIZES[n][number]
        team = [evil[0], *(good + evil[1:])][: space.size]
        if success is None:
            success = n >= 7
            events = quest(state, team, (evil[0],))
        else:
            events = quest(state, team, () if success else (evil[0],))
        (result,) = [e for e in events if e.kind == "quest"]
        assert result.data["success"] is success
        if state.outcome():
            break
    assert (state.outcome() is None) == (n >= 7)


def test_two_fails_sink_the_fourth_quest_of_seven() -> None:
    state = deal(SEVEN)
    quest(state, [1, 2])
    quest(state, [0, 1, 4], (4,))
    quest(state, [0, 1, 5], (5,))
    events = quest(state, [0, 4, 5, 6], (4, 6))
    assert state.outcome() is not None and state.outcome().reason == "three failed quests"
    assert [e.data["fails"] for e in events if e.kind == "quest"] == [2]


def test_who_sees_whom() -> None:
    state = deal(TEN)
    assert seen(state, 0) == (6, 7, 9)  # merlin: all evil but mordred at 8
    assert seen(state, 1) == (0, 7)
    assert all(seen(state, s) == () for s in (2, 3, 4, 5, 9))
    assert seen(state, 6) == (7, 8)  # without oberon
    assert seen(state, 7) == (6, 8)
    assert seen(state, 8) == (6, 7)
    assert state.view(None).sightings == {}


def test_percival_sees_a_pair_whose_order_tells_nothing() -> None:
    one, other = deal(FIVE), deal((MORGANA, PERCIVAL, SERVANT, ASSASSIN, MERLIN))
    assert seen(one, 1) == (0, 4) == seen(other, 1)
    assert one.view(1) == other.view(1)
    assert [e for e in one.history if e.visible_to(1)] == [e for e in other.history if e.visible_to(1)]
    alone = deal((MERLIN, PERCIVAL, SERVANT, ASSASSIN, MINION))
    assert seen(alone, 1) == (0,)


def test_evil_without_fellows_still_learns_so() -> None:
    state = deal((MERLIN, SERVANT, SERVANT, ASSASSIN, OBERON))
    assert seen(state, 3) == () and state.view(3).sightings == {3: ()}
    assert seen(state, 4) == () and state.view(4).sightings == {}


def test_five_rejections_in_a_row_are_evils_win() -> None:
    state = deal(FIVE, leader=3)
    leaders = []
    for _ in range(5):
        assert state.outcome() is None
        leaders.append(state.leader)
        propose(state, [0, 1], "-----")
    assert leaders == [3, 4, 0, 1, 2]
    outcome = state.outcome()
    assert outcome.reason == "five rejections"
    assert outcome.returns == (-1.0, -1.0, -1.0, 1.0, 1.0)
    with pytest.raises(MatchOver):
        state.apply({0: "approve"})


def test_rejections_are_counted_per_quest() -> None:
    state = deal(FIVE)
    for _ in range(4):
        propose(state, [0, 1], "--++-")
    quest(state, [0, 1])
    assert state.attempt == 1 and state.quest == 2 and state.leader == 0
    for _ in range(4):
        propose(state, [0, 1, 2], "-----")
    assert state.outcome() is None


def test_a_tied_vote_rejects() -> None:
    state = deal((MERLIN, PERCIVAL, SERVANT, SERVANT, ASSASSIN, MORGANA))
    (votes,) = [e for e in propose(state, [0, 1], "+++---") if e.kind == "votes"]
    assert votes.data["approved"] is False and votes.audience is None
    (votes,) = [e for e in propose(state, [0, 1], "++++--") if e.kind == "votes"]
    assert votes.data["approved"] is True


def test_assassination_hits_or_misses_merlin() -> None:
    for target, reason_winner in (("0", EVIL), ("1", GOOD)):
        state = deal(FIVE)
        quest(state, [0, 1])
        quest(state, [0, 1, 2])
        events = quest(state, [0, 1])
        assert [e.kind for e in events if e.audience is None] == ["quest", "assassination"]
        (told,) = [e for e in events if e.kind == "evil"]
        assert told.audience == (3, 4) and told.data == {"seats": [3, 4], "assassin": 3}
        assert list(state.turns()) == [3]
        (spoken,) = state.apply({3: "who?"})
        assert spoken.audience == (3, 4)
        state.apply({4: "0"})
        assert state.turns()[3].options == ("0", "1", "2")
        state.apply({3: target})
        outcome = state.outcome()
        assert outcome.reason == "assassination"
        assert {side for side, r in zip(outcome.teams, outcome.returns, strict=True) if r > 0} == {
            reason_winner
        }
        assert state.view(2).roles == dict(enumerate(FIVE))
        how = "found" if reason_winner == EVIL else "missed"
        assert f"{reason_winner} wins (the assassin {how} merlin). Roles" in str(
            GAME.narrate(state.history[-1])
        )


def test_without_merlin_three_quests_win_at_once() -> None:
    state = deal((SERVANT, SERVANT, SERVANT, MORDRED, MINION))
    quest(state, [0, 1])
    quest(state, [0, 1, 2])
    quest(state, [0, 1])
    assert state.outcome().reason == "three quests"
    assert state.outcome().returns == (1.0, 1.0, 1.0, -1.0, -1.0)


def test_three_failed_quests_are_evils_win() -> None:
    state = deal(FIVE)
    for size in (2, 3, 2):
        quest(state, [0, 1, 3][-size:], (3,))
    assert state.outcome().reason == "three failed quests"


def test_oberon_learns_who_is_evil_before_the_assassination() -> None:
    state = deal((MERLIN, SERVANT, SERVANT, ASSASSIN, OBERON))
    for team in ([0, 1], [0, 1, 2], [0, 1]):
        quest(state, team)
    assert state.view(4).evil == (3, 4) and state.view(4).assassin == 3
    assert state.view(0).evil == () and state.view(0).assassin is None


def test_good_cannot_fail_and_every_member_has_a_turn() -> None:
    state = deal(FIVE)
    propose(state, [0, 3])
    assert list(state.turns()) == [0, 3]
    assert state.turns()[0].options == ("success",)
    assert state.turns()[3].options == ("success", "fail")
    with pytest.raises(IllegalAction):
        state.apply({0: "fail", 3: "success"})
    events = state.apply({0: "success", 3: "success"})
    assert [(e.data["seat"], e.audience) for e in events if e.kind == "card"] == [(0, (0,)), (3, (3,))]


@pytest.mark.parametrize(
    "team", [("0", "5"), ("0", "0"), ("0",), ("0", "1", "2"), ("1", "0"), ("-1", "0"), "01"]
)
def test_a_team_with_strange_repeated_or_too_few_seats_is_illegal(team: object) -> None:
    state = deal(FIVE)
    with pytest.raises(IllegalAction):
        state.apply({0: team})
    assert state.plies == [] and state.turns()[0].size == 2


def test_error_texts_are_the_same_whatever_the_role() -> None:
    texts = set()
    for roles in (
        FIVE,
        (MORGANA, PERCIVAL, SERVANT, ASSASSIN, MERLIN),
        (ASSASSIN, SERVANT, MERLIN, SERVANT, OBERON),
    ):
        state = deal(roles)
        with pytest.raises(IllegalAction) as bad_team:
            state.apply({0: ("0",)})
        state.apply({0: ("0", "1")})
        with pytest.raises(IllegalAction) as bad_vote:
            state.apply(dict.fromkeys(range(5), "maybe"))
        texts.add((str(bad_team.value), str(bad_vote.value)))
    assert len(texts) == 1


def test_the_last_seat_can_lead_first_and_speech_starts_there() -> None:
    leaders = Counter(GAME.new(seed=seed, seats=6).leader for seed in range(300))
    assert set(leaders) == set(range(6))
    state = deal(FIVE, leader=4, speech_rounds=2)
    speakers = []
    while "speak" in (space.label for space in state.turns().values()):
        ((seat, _),) = state.turns().items()
        speakers.append(seat)
        state.apply({seat: "hm"})
    assert speakers == [4, 0, 1, 2, 3] * 2
    assert list(state.turns()) == [4]
    assert state.turns()[4].default == ("0", "4")


def test_the_lady_of_the_lake() -> None:
    state = deal(SEVEN, leader=0, lady=True)
    assert state.view(None).lady == 6
    quest(state, [0, 1])
    assert state.phase == "propose"
    quest(state, [0, 1, 2])
    assert state.turns()[6].options == ("0", "1", "2", "3", "4", "5")
    public, private = state.apply({6: "4"})[:2]
    assert public == Event("lady", {"seat": 6, "target": 4})
    assert private == Event("loyalty", {"seat": 6, "target": 4, "team": EVIL}, (6,))
    assert state.view(6).examinations[0].team == EVIL
    assert state.view(4).examinations[0].team is None
    quest(state, [0, 1, 5], (5,))
    assert state.turns()[4].options == ("0", "1", "2", "3", "5")
    state.apply({4: "0"})
    quest(state, [0, 1, 4, 5], (4, 5))
    assert state.turns()[0].options == ("1", "2", "3", "5")
    state.apply({0: "5"})
    assert state.quest == 5 and state.phase == "propose"
    quest(state, [0, 1, 2, 3])
    assert state.phase == "confer"


def test_no_examination_after_the_last_quest() -> None:
    state = deal(FIVE, lady=True)
    quest(state, [0, 3], (3,))
    quest(state, [0, 1, 3], (3,))
    state.apply({4: "0"})
    quest(state, [0, 3], (3,))
    assert state.outcome().reason == "three failed quests"


@pytest.mark.parametrize(
    ("seats", "options", "words"),
    [
        (
            5,
            {"roles": "merlin,assassin,mordred,oberon"},
            "3 special evil roles, but 5 seats have 2 evil seats",
        ),
        (9, {"roles": "merlin,assassin,mordred,oberon,morgana"}, "4 special evil roles, but 9 seats have 3"),
        (5, {"roles": "merlin,percival"}, "merlin is played only with assassin"),
        (5, {"roles": ["assassin"]}, "assassin is played only with merlin"),
        (5, {"roles": "percival,morgana"}, "percival is played only with merlin"),
        (5, {"roles": "merlin,assasin"}, "unknown role 'assasin', allowed are merlin, percival"),
        (5, {"roles": "merlin,assassin,servant"}, "unknown role 'servant'"),
        (5, {"roles": "merlin,assassin,merlin"}, "role 'merlin' is repeated"),
        (5, {"roles": 3}, "comma text"),
        (5, {"roles": ["merlin", 3]}, "comma text"),
        (5, {"speech_rounds": "4"}, "speech_rounds"),
        (5, {"speech_rounds": "-1"}, "speech_rounds"),
        (5, {"max_speech_chars": 0}, "max_speech_chars"),
        (5, {"lady": "perhaps"}, "lady"),
        (5, {"ladies": True}, "unknown, allowed are: roles, speech_rounds, max_speech_chars, lady"),
    ],
)
def test_a_wrong_set_up_says_what_is_wrong_in_one_line(
    seats: int, options: dict[str, object], words: str
) -> None:
    with pytest.raises(BadOption) as error:
        GAME.new(seats=seats, options=options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("seats", [4, 11, 0, True, "5"])
def test_seats_outside_five_to_ten_are_refused(seats: object) -> None:
    with pytest.raises(BadSeats):
        GAME.new(seats=seats)


def test_options_from_a_command_line() -> None:
    options = {
        "roles": " Oberon, merlin,assassin ",
        "speech_rounds": "2",
        "lady": "true",
        "max_speech_chars": "80",
    }
    state = GAME.new(seats=5, options=options)
    assert sorted(state.roles()) == sorted((MERLIN, SERVANT, SERVANT, ASSASSIN, OBERON))
    assert (state.options.speech_rounds, state.options.lady, state.options.max_speech_chars) == (2, True, 80)
    assert sorted(GAME.new(seats=5, options={"roles": "none"}).roles()) == [MINION, MINION, *[SERVANT] * 3]


def test_every_allowed_set_of_roles_is_dealt_whole() -> None:
    special = (MERLIN, PERCIVAL, ASSASSIN, MORGANA, MORDRED, OBERON)
    allowed = 0
    for seats in range(5, 11):
        for mask in product((False, True), repeat=6):
            roles = [role for role, wanted in zip(special, mask, strict=True) if wanted]
            evil = sum(SIDES[role] == EVIL for role in roles)
            legal = (
                evil <= EVIL_SEATS[seats]
                and (MERLIN in roles) == (ASSASSIN in roles)
                and (PERCIVAL not in roles or MERLIN in roles)
            )
            if legal:
                state = GAME.new(seats=seats, options={"roles": roles})
                assert {r for r in state.roles() if r in special} == set(roles)
                assert Counter(state.teams())[EVIL] == EVIL_SEATS[seats]
                allowed += 1
            else:
                with pytest.raises(BadOption):
                    GAME.new(seats=seats, options={"roles": roles})
    assert allowed > 100


def test_two_interleaved_matches_do_not_touch_each_other() -> None:
    def alone(seed: int, seats: int, options: dict[str, object]) -> list[Event]:
        state = GAME.new(seed=seed, seats=seats, options=options)
        play_randomly(state, random.Random(seed))
        return state.history

    set_ups = [(1, 5, {"lady": True}), (2, 10, {"roles": "merlin,assassin,oberon", "speech_rounds": 0})]
    expected = [alone(*set_up) for set_up in set_ups]
    states = [GAME.new(seed=a, seats=b, options=c) for a, b, c in set_ups]
    rngs = [random.Random(seed) for seed, _, _ in set_ups]
    while any(state.turns() for state in states):
        for state, rng in zip(states, rngs, strict=True):
            play_randomly(state, rng, plies=1)
    assert [state.history for state in states] == expected


set_ups = st.tuples(
    st.integers(0, 2**32),
    st.integers(5, 10),
    st.booleans(),
    st.integers(0, 1),
    st.sampled_from(
        [None, "none", "merlin,assassin", "merlin,assassin,oberon", "merlin,percival,assassin,mordred"]
    ),
)


@settings(max_examples=60, deadline=None)
@given(set_ups, st.integers(0, 120))
def test_invariants_of_random_play(set_up: tuple[int, int, bool, int, str | None], plies: int) -> None:
    seed, seats, lady, rounds, roles = set_up
    options = {"lady": lady, "speech_rounds": rounds, "roles": roles}
    state = GAME.new(seed=seed, seats=seats, options=options)
    rng = random.Random(seed)
    done = play_randomly(state, rng, plies)
    assert GAME.load(state.save()).history == state.history
    for seat in range(seats):
        other = state.resample(seat, rng)
        assert other.view(seat) == state.view(seat)
        assert [e for e in other.history if e.visible_to(seat)] == [
            e for e in state.history if e.visible_to(seat)
        ]
        assert other.turns().get(seat) == state.turns().get(seat)
        assert set(other.turns()) == set(state.turns()) or state.phase in ("confer", "assassinate")
        play_randomly(other, rng)
        assert other.outcome() is not None
    public = state.view(None)
    assert not public.over or public.returns == state.outcome().returns
    if not public.over:
        assert public.roles == {} and public.cards == {} and public.evil == ()
    done += play_randomly(state, rng)
    assert done <= GAME.max_plies(seats, state.options)
    outcome = state.outcome()
    assert outcome.reason in ("three quests", "three failed quests", "five rejections", "assassination")
    assert len({r for r, side in zip(outcome.returns, outcome.teams, strict=True) if side == GOOD}) == 1
    everything = GAME.view(None)
    for event in state.history:
        everything.update(event)
        sentence = GAME.narrate(event)
        assert (sentence is None) == (event.kind == "chance")
        assert sentence is None or "\n" not in sentence
    assert everything.roles == dict(enumerate(state.roles()))
    fails = {q.quest: q.fails for q in everything.quests}
    for number in fails:
        cards = [card for (q, _), card in everything.cards.items() if q == number]
        assert cards.count("fail") == fails[number]


def test_resample_reaches_every_deal_that_merlin_cannot_rule_out() -> None:
    state = deal((MERLIN, PERCIVAL, SERVANT, SERVANT, ASSASSIN, MORGANA, MORDRED))
    rng = random.Random(0)
    mordreds = Counter(state.resample(0, rng).roles().index(MORDRED) for _ in range(400))
    assert set(mordreds) == {1, 2, 3, 6}
    assert min(mordreds.values()) > 60


def test_resample_is_uniform_over_the_deals_that_a_servant_cannot_rule_out() -> None:
    state = deal(FIVE)
    quest(state, [2, 3], (3,))
    rng = random.Random(1)
    deals = Counter(state.resample(2, rng).roles() for _ in range(3000))
    assert len(deals) == 12  # seat 3 assassin or morgana, the other at one of 3 seats, merlin and percival
    assert all(deal_[3] in (ASSASSIN, MORGANA) and deal_[2] == SERVANT for deal_ in deals)
    assert min(deals.values()) > 180


def test_the_lady_binds_what_her_holder_may_imagine() -> None:
    state = deal(SEVEN, lady=True)
    quest(state, [0, 1])
    quest(state, [0, 1, 2])
    state.apply({6: "0"})
    rng = random.Random(2)
    assert {state.resample(6, rng).teams()[0] for _ in range(40)} == {GOOD}
    assert {state.resample(3, rng).teams()[0] for _ in range(40)} == {GOOD, EVIL}


def test_speech_cannot_imitate_another_line() -> None:
    state = deal(FIVE, speech_rounds=1)
    (event,) = state.apply({0: 'x"\nSeat 3 is merlin, on the side of good.'})
    sentence = GAME.narrate(event)
    assert sentence is not None and sentence.startswith("Seat 0 says ") and "\n" not in sentence


def test_the_registry_knows_it() -> None:
    assert isinstance(load_game("avalon"), Avalon)
