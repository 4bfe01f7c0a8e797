import json
import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.base import Event
from games.errors import BadOption, BadSeats, IllegalAction, MatchOver
from games.registry import load_game
from games.rng import Chance, RecordedChance
from games.werewolf import ROLES, WerewolfState
from games.werewolf.setup import DEFAULT_MIX, deck
from games.werewolf.view import Deed, Sight

GAME = load_game("werewolf")
FULL = "werewolf=2,seer=1,doctor=1,hunter=1,witch=1"


def deal(roles: str, *, seed: int = 0, **options: object) -> WerewolfState:
    """A match in which seat i holds the i-th role, by initial: v, w(erewolf), s, d, h, x (witch)."""
    names = dict(zip("vwsdhx", ROLES, strict=True))
    dealt = [names[letter] for letter in roles]
    mix = {role: dealt.count(role) for role in ROLES if role in dealt}
    options = {"roles": mix, **options}
    cards = list(deck(len(dealt), GAME.parse_options(options)))
    order = []
    for role in dealt:
        order.append(cards.index(role))
        cards[order[-1]] = ""
    state: WerewolfState = GAME.start(RecordedChance([order]), seats=len(dealt), options=options)
    state.chance = Chance(seed)
    assert state.roles() == tuple(dealt)
    return state


def step(state: WerewolfState, given: Mapping[int, str] | None = None) -> list[str]:
    """Play one ply, defaults where nothing is given; return the kinds of its events."""
    actions = {seat: space.default for seat, space in state.turns().items()}
    return [event.kind for event in state.apply({**actions, **(given or {})})]


def night(
    state: WerewolfState,
    kill: int,
    *,
    see: int | None = None,
    protect: int | None = None,
    potion: str = "none",
) -> None:
    while state.phase == "wolf_talk":
        step(state)
    assert state.phase == "night"
    given = {}
    for seat, space in state.turns().items():
        if space.label == "wolf_target":
            given[seat] = str(kill)
        elif space.label == "see" and see is not None:
            given[seat] = str(see)
        elif space.label == "protect":
            given[seat] = (
                next(o for o in space.options if o != str(kill)) if protect is None else str(protect)
            )
    step(state, given)
    if state.phase == "potion":
        step(state, {state.witch: potion})


def talk(state: WerewolfState) -> None:
    while state.phase == "speak":
        step(state)
    assert state.phase == "vote"


def vote(state: WerewolfState, at: int | None = None) -> None:
    """Talk, then everyone votes for `at` (who abstains); last words are left to the caller."""
    talk(state)
    step(state, {} if at is None else {seat: str(at) for seat in state.turns() if seat != at})


def play(seed: int, seats: int, **options: object) -> WerewolfState:
    rng = random.Random(seed)
    state: WerewolfState = GAME.new(seed=seed, seats=seats, options=options)
    while turns := state.turns():
        state.apply({seat: space.sample(rng) for seat, space in turns.items()})
    return state


def public(state: WerewolfState) -> list[tuple[str, dict[str, object]]]:
    return [(event.kind, event.data) for event in state.history if event.audience is None]


# Set-up


@pytest.mark.parametrize("seats", range(5, 13))
def test_default_mix_fits_every_size(seats: int) -> None:
    state = GAME.new(seats=seats)
    dealt = Counter(state.roles())
    assert {role: dealt[role] for role in DEFAULT_MIX[seats]} == DEFAULT_MIX[seats]
    assert sum(dealt.values()) == seats
    assert state.view(None).mix == dict(dealt)


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        ("seer=1", "got no werewolf, at least 1 is needed"),
        ("werewolf=0", "got no werewolf"),
        ("werewolf=4", "got 4 werewolves among 8 seats, fewer than half are allowed, so at most 3"),
        ("werewolf=2,seer=2", "got 2 of seer, at most 1 is allowed"),
        ("werewolf=2,doctor=3", "got 3 of doctor, at most 1"),
        ("werewolf=3,seer=1,doctor=1,hunter=1,witch=1,villager=2", "got 9 roles, there are 8 seats"),
        ("werewolf=2,villager=5", "got 7 roles for 8 seats, name 6 villagers or leave them out"),
        ("werewolf=2,bodyguard=1", "no role is called 'bodyguard', roles are villager, werewolf"),
        ("werewolf=2,werewolf=1", "werewolf is named twice"),
        ("werewolf", "werewolf needs a count from 0 to 12, as in werewolf=1"),
        ("werewolf=-1", "werewolf needs a count"),
        ({"werewolf": True}, "werewolf needs a count"),
        ({"werewolf": 1.5}, "werewolf needs a count"),
        (7, "write a mapping or ROLE=COUNT"),
    ],
)
def test_wrong_role_mix_is_one_clear_line(roles: object, says: str) -> None:
    with pytest.raises(BadOption) as caught:
        GAME.new(seats=8, options={"roles": roles})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"ties": "coin"}, {"max_days": 0}, {"speech_rounds": -1}, {"max_speech_chars": 0}, {"moon": "full"}],
)
def test_wrong_options_are_one_clear_line(options: dict[str, object]) -> None:
    with pytest.raises(BadOption) as caught:
        GAME.new(seats=8, options=options)
    assert next(iter(options)) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seats", [4, 13, True, "8"])
def test_wrong_seats(seats: object) -> None:
    with pytest.raises(BadSeats, match="5 to 12"):
        GAME.new(seats=seats)


def test_role_mix_as_text_or_mapping_is_the_same_and_survives_a_save() -> None:
    text = GAME.new(seats=7, options={"roles": "seer=1, werewolf=2"})
    mapping = GAME.new(seats=7, options={"roles": {"werewolf": 2, "seer": 1}})
    assert text.options == mapping.options
    assert text.history == mapping.history
    saved = json.loads(json.dumps(text.save()))
    assert GAME.load(saved).history == text.history


def test_states_do_not_touch_each_other() -> None:
    alone = play(3, 12, roles=FULL).history
    play(4, 5)
    both = [GAME.new(seed=3, seats=12, options={"roles": FULL}), GAME.new(seed=9, seats=5)]
    rng = random.Random(3)
    other = random.Random(9)
    while turns := both[0].turns():
        both[0].apply({seat: space.sample(rng) for seat, space in turns.items()})
        if hers := both[1].turns():
            both[1].apply({seat: space.sample(other) for seat, space in hers.items()})
    assert both[0].history == alone


# Night


def test_wolves_know_each_other_and_nobody_else_is_told() -> None:
    state = deal("wwsdvvv")
    assert state.view(0).pack == state.view(1).pack == [0, 1]
    for seat in range(2, 7):
        assert state.view(seat).roles == {seat: state.roles()[seat]}
    assert state.view(None).roles == {}


def test_wolves_talk_before_they_choose_and_only_wolves_hear() -> None:
    state = deal("wwsdvvv", wolf_talk_rounds=2)
    assert list(state.turns()) == [0, 1]
    step(state, {0: "seat 2?", 1: "yes"})
    step(state, {0: "fine"})
    assert [speech.text for speech in state.view(1).wolf_talk] == ["seat 2?", "yes", "fine", ""]
    assert not state.view(2).wolf_talk
    assert not state.view(None).wolf_talk
    assert {space.label for space in state.turns().values()} == {"wolf_target", "see", "protect"}


def test_wolves_may_not_choose_a_wolf_nor_abstain() -> None:
    state = deal("wwsdvvv", wolf_talk_rounds=0)
    space = state.turns()[0]
    assert space.options == ("2", "3", "4", "5", "6")
    for wrong in ("0", "1", "abstain", "none", "7", ""):
        with pytest.raises(IllegalAction):
            step(state, {0: wrong})


def test_wolves_majority_and_recorded_draw_on_a_tie() -> None:
    state = deal("wwwsvvvv", wolf_talk_rounds=0)
    step(state, {0: "4", 1: "5", 2: "5"})
    assert state.view(0).deaths[0].seat == 5
    assert len(state.draws()) == 1
    found = set()
    for seed in range(20):
        state = deal("wwsvvvv", wolf_talk_rounds=0, seed=seed)
        step(state, {0: "4", 1: "6"})
        drawn = state.draws()[-1]
        assert state.view(0).deaths[0].seat == (4, 6)[drawn]
        found.add(drawn)
    assert found == {0, 1}


def test_seer_learns_privately_even_on_the_night_of_death() -> None:
    state = deal("wwsdvvv")
    night(state, 2, see=1)
    assert state.view(2).sights == [Sight(1, 2, 1, True)]
    assert all(not state.view(seat).sights for seat in (0, 1, 3, 4, None))
    assert 2 not in state.view(2).alive


def test_doctor_saves_but_not_from_poison_and_not_twice_in_a_row() -> None:
    state = deal("wwdxvvvv")
    night(state, 4, protect=4, potion="poison 4")
    assert [death.seat for death in state.view(None).deaths] == [4]
    vote(state)
    while state.phase != "night":
        step(state)
    assert state.turns()[2].options == ("0", "1", "2", "3", "5", "6", "7")
    night(state, 5, protect=5)
    assert state.view(None).alive == [0, 1, 2, 3, 5, 6, 7]
    assert [deed.at for deed in state.view(2).protections] == [4, 5]
    assert not state.view(5).protections


def test_doctor_options() -> None:
    state = deal("wwdvvvv", wolf_talk_rounds=0, doctor_self=False, doctor_repeat=True)
    assert "2" not in state.turns()[2].options
    night(state, 4, protect=3)
    vote(state)
    assert "3" in state.turns()[2].options


def test_nights_resolve_with_seer_and_doctor_dead() -> None:
    state = deal("wwsdvvvvv")
    night(state, 2, protect=3)
    vote(state, 3)
    step(state)
    assert state.phase == "wolf_talk"
    step(state)
    assert set(state.turns()) == {0, 1}
    night(state, 4)
    assert state.phase == "speak"
    assert state.view(None).alive == [0, 1, 5, 6, 7, 8]


def test_witch_learns_the_target_and_has_one_potion_of_each() -> None:
    state = deal("wwxdvvvvvv")
    while state.phase != "night":
        step(state)
    step(state, {0: "4", 1: "4", 3: "4"})
    assert state.view(2).attacks == [Deed(1, 2, "attack", 4)]
    assert not state.view(3).attacks
    assert state.turns()[2].options[:2] == ("none", "heal")
    step(state, {2: "heal"})
    assert len(state.view(None).alive) == 10
    assert not state.view(2).heal_left
    vote(state)
    while state.phase != "night":
        step(state)
    step(state, {0: "2", 1: "2"})
    assert "heal" not in state.turns()[2].options
    assert "poison 2" not in state.turns()[2].options
    step(state, {2: "poison 1"})
    assert [(death.seat, death.cause) for death in state.view(None).deaths] == [(1, "night"), (2, "night")]
    assert state.view(None).potions == []


def test_witch_without_potions_is_still_asked_so_that_nothing_shows() -> None:
    state = deal("wwxdvvvvvv")
    night(state, 4, potion="heal")
    vote(state)
    night(state, 5, potion="poison 6")
    vote(state)
    step(state)
    step(state, {0: "7", 1: "7"})
    assert state.turns()[2].options == ("none",)


@pytest.mark.parametrize("reveal", [True, False])
def test_no_length_of_a_night_tells_that_the_witch_is_dead(reveal: bool) -> None:
    plies = {}
    for victim in (2, 4):  # the witch, a villager
        state = deal("wwxdvvvvvv", reveal=reveal)
        night(state, victim)
        vote(state)
        before = len(state.plies)
        night(state, 5)
        plies[victim] = len(state.plies) - before
        told = [event.kind for event in state.history if event.audience == (2,)]
        assert told.count("attack") == (1 if victim == 2 else 2)
        assert told.count("potion") == (1 if victim == 2 and reveal else 2)
        assert 5 not in state.view(None).alive
    assert (plies[2] == plies[4]) is not reveal


def test_a_dead_witch_can_answer_nothing() -> None:
    state = deal("wwxdvvvvvv", reveal=False)
    night(state, 2)
    vote(state)
    step(state)
    step(state, {0: "4", 1: "4"})
    assert {seat: space.options for seat, space in state.turns().items()} == {2: ("none",)}


def test_the_bound_holds_where_nobody_ever_dies() -> None:
    state = GAME.new(
        seats=12, options={"speech_rounds": 5, "doctor_repeat": True, "roles": "werewolf=2,doctor=1"}
    )
    while turns := state.turns():
        safe = {"wolf_target": str(state.doctor), "protect": str(state.doctor), "vote": "abstain"}
        step(state, {seat: safe[space.label] for seat, space in turns.items() if space.label in safe})
    assert state.outcome().reason == "turn_limit"
    assert len(state.plies) <= GAME.max_plies(12, state.options)


def test_lone_wolf_talks_only_where_roles_stay_hidden() -> None:
    assert deal("wsdvv").phase == "night"
    assert deal("wsdvv", reveal=False).phase == "wolf_talk"


# Hunter


def test_hunter_shoots_at_night_and_the_match_goes_on() -> None:
    state = deal("wwhvvvv")
    night(state, 2)
    assert state.phase == "shoot"
    assert list(state.turns()) == [2]
    assert state.turns()[2].default == "none"
    step(state, {2: "0"})
    assert state.view(None).roles == {2: "hunter", 0: "werewolf"}
    assert state.phase == "speak"
    assert state.view(None).alive == [1, 3, 4, 5, 6]


def test_hunter_shoots_after_last_words_and_may_end_the_match() -> None:
    state = deal("whvvv")
    night(state, 4)
    vote(state, 1)
    step(state, {1: "I was the hunter"})
    assert state.phase == "shoot"
    assert step(state, {1: "0"}) == ["shot", "end"]
    assert state.outcome().reason == "wolves_dead"
    assert state.outcome().returns == (-1.0, 1.0, 1.0, 1.0, 1.0)


def test_hunter_may_hold_his_fire() -> None:
    state = deal("wwhvvvv")
    night(state, 2)
    step(state)
    assert state.view(None).shots == [Deed(1, 2, "shot", None)]
    assert state.view(None).alive == [0, 1, 3, 4, 5, 6]


def test_hunter_shooting_a_villager_can_bring_parity() -> None:
    state = deal("wwhvvvv")
    night(state, 2)
    step(state, {2: "3"})
    vote(state, 4)
    assert step(state) == ["last_words", "out", "end"]
    assert state.outcome().reason == "wolf_parity"


def test_poisoned_hunter_does_not_shoot() -> None:
    state = deal("wwhxvvvv")
    night(state, 2, potion="poison 2")
    assert [death.seat for death in state.view(None).deaths] == [2]
    assert state.phase == "speak"


def test_hunter_and_last_wolf_dying_in_one_night_end_it_without_a_shot() -> None:
    state = deal("whxvv")
    night(state, 1, potion="poison 0")
    assert state.outcome().reason == "wolves_dead"
    assert not state.view(None).shots


# Day


def test_speech_order_starts_one_seat_later_each_day_and_repeats_per_round() -> None:
    state = deal("wwdvvvvv", speech_rounds=2)
    night(state, 3, protect=3)
    spoken = []
    while state.phase == "speak":
        spoken += list(state.turns())
        step(state)
    assert spoken == [*range(8), *range(8)]
    vote(state, 3)
    step(state)
    night(state, 4)
    spoken = []
    while state.phase == "speak":
        spoken += list(state.turns())
        step(state)
    assert spoken == [1, 2, 5, 6, 7, 0] * 2


def test_no_speech_rounds_go_straight_to_the_vote() -> None:
    state = deal("wwdvvvv", speech_rounds=0)
    night(state, 3)
    assert state.phase == "vote"


def test_votes_are_revealed_together_with_abstentions() -> None:
    state = deal("wwdvvvvv")
    night(state, 7)
    talk(state)
    assert list(state.turns()) == [0, 1, 2, 3, 4, 5, 6]
    assert state.turns()[3].options == ("abstain", "0", "1", "2", "4", "5", "6")
    kinds = step(state, {0: "3", 1: "3", 4: "0"})
    assert kinds == ["vote"]
    (revealed,) = state.view(None).votes
    assert revealed.votes == {0: 3, 1: 3, 2: None, 3: None, 4: 0, 5: None, 6: None}
    assert (revealed.out, revealed.tied) == (3, ())
    assert list(state.turns()) == [3]
    assert state.turns()[3].label == "last_words"


def test_everybody_abstaining_is_counted_whole_and_nobody_dies() -> None:
    state = deal("wwdvvvvv")
    night(state, 7)
    vote(state)
    (revealed,) = state.view(None).votes
    assert revealed.votes == dict.fromkeys(range(7))
    assert (revealed.out, revealed.tied) == (None, ())
    assert state.phase == "wolf_talk"
    assert len(state.view(None).alive) == 7


def test_everybody_abstaining_needs_no_runoff() -> None:
    state = deal("wwdvvvvv", ties="runoff")
    night(state, 7)
    vote(state)
    assert state.phase == "wolf_talk"


def test_tie_kills_nobody() -> None:
    state = deal("wwdvvvvv")
    night(state, 7)
    talk(state)
    step(state, {0: "3", 3: "0"})
    assert state.view(None).votes[0].tied == (0, 3)
    assert state.phase == "wolf_talk"
    assert len(state.view(None).alive) == 7


def test_runoff_among_the_tied_alone_then_out_or_nobody() -> None:
    for second, out in ({4: "0", 5: "0", 6: "3"}, 0), ({4: "0", 6: "3"}, None), ({}, None):
        state = deal("wwdvvvvv", ties="runoff")
        night(state, 7)
        talk(state)
        step(state, {0: "3", 3: "0"})
        assert state.phase == "vote"
        assert state.turns()[4].options == ("abstain", "0", "3")
        assert state.turns()[0].options == ("abstain", "3")
        step(state, second)
        first, runoff = state.view(None).votes
        assert (first.runoff, runoff.runoff, runoff.out) == (False, True, out)
        assert state.phase == ("wolf_talk" if out is None else "last_words")


# Endings


def test_last_wolf_voted_out_ends_cleanly() -> None:
    state = deal("wsdvv")
    night(state, 3, see=0)
    vote(state, 0)
    assert step(state, {0: "well played"}) == ["last_words", "out", "end"]
    assert state.turns() == {}
    assert state.outcome().reason == "wolves_dead"
    assert state.outcome().returns == (-1.0, 1.0, 1.0, 1.0, 1.0)
    assert [kind for kind, _ in public(state)].count("night") == 1
    with pytest.raises(MatchOver):
        state.apply({})


def test_parity_ends_it() -> None:
    state = deal("wsdvv")
    night(state, 3)
    vote(state, 4)
    step(state)
    night(state, 1)
    assert state.outcome().reason == "wolf_parity"
    assert state.outcome().returns == (1.0, -1.0, -1.0, -1.0, -1.0)
    assert state.outcome().teams == ("wolves", *["village"] * 4)
    assert state.outcome().ended(0) == "won"


@pytest.mark.parametrize("role", ["h", "x"])
def test_parity_waits_for_a_hunter_or_an_armed_witch(role: str) -> None:
    state = deal(f"w{role}vvv")
    night(state, 2)
    vote(state, 3)
    step(state)
    night(state, 4)
    assert state.outcome() is None
    vote(state)
    night(state, 1, potion="poison 0")
    if role == "h":
        step(state, {1: "0"})
    assert state.outcome().reason == "wolves_dead"


def test_parity_does_not_wait_for_a_witch_without_poison() -> None:
    state = deal("wxvvv")
    night(state, 2, potion="poison 3")
    assert state.outcome() is None
    night_fell = state.day
    vote(state)
    night(state, 4)
    assert state.day == night_fell + 1
    assert state.outcome().reason == "wolf_parity"


def test_wolves_outnumbering_an_armed_village_win() -> None:
    state = deal("wwhvv")
    night(state, 3)
    vote(state, 4)
    step(state)
    assert state.outcome().reason == "wolf_parity"


def test_turn_cap_is_a_draw() -> None:
    state = deal("wsdvv", max_days=2)
    night(state, 4, protect=4)
    vote(state)
    night(state, 3, protect=3)
    vote(state)
    outcome = state.outcome()
    assert (outcome.reason, outcome.turn_limit) == ("turn_limit", True)
    assert outcome.returns == (0.0,) * 5
    assert outcome.ended(3) == "turn_limit"
    assert state.history[-1].data["returns"] == [0.0] * 5


# What the public sees


def test_no_public_event_names_a_living_seats_role() -> None:
    for seed in range(60):
        state = GAME.new(seed=seed, seats=10)
        rng = random.Random(seed)
        while state.turns():
            view = state.view(None)
            assert not set(view.roles) & set(view.alive)
            for seat in range(10):
                known = set(state.view(seat).roles) & set(view.alive)
                assert known <= {seat} | (set(view.alive) if state.roles()[seat] == "werewolf" else set())
            state.apply({seat: space.sample(rng) for seat, space in state.turns().items()})


def test_without_reveal_no_role_is_public_before_the_end() -> None:
    for seed in range(40):
        state = play(seed, 9, reveal=False, roles=FULL)
        for event in state.history:
            if event.audience is None and event.kind not in ("start", "end"):
                assert not any(role in json.dumps(event.data) for role in ROLES)


def test_public_night_is_the_same_whatever_the_specials_do() -> None:
    quiet, busy = deal("wwsdxvvvv"), deal("wwsdxvvvv")
    night(quiet, 5, see=5, protect=3)
    night(busy, 6, see=0, protect=6, potion="poison 5")
    assert public(quiet) == public(busy)
    gone = deal("wwvvvvvvv")
    night(gone, 5)
    assert [event for event in public(gone) if event[0] != "start"] == [
        event for event in public(quiet) if event[0] != "start"
    ]


def test_errors_are_the_same_whatever_the_role() -> None:
    texts = set()
    for roles in ("wwsdvvv", "wwvsdvv", "wwhvvvx"):
        state = deal(roles)
        night(state, 6)
        talk(state)
        with pytest.raises(IllegalAction) as caught:
            step(state, {2: "2"})
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_narration_is_one_line_and_quotes_speech() -> None:
    state = deal("wwsdhxvvvv")
    night(state, 6, potion="poison 0")
    step(state, {1: 'ok"\nNight 9 falls.'})
    while state.turns():
        step(state)
    for event in state.history:
        line = GAME.narrate(event)
        if event.kind == "chance":
            assert line is None
        else:
            assert line
            assert "\n" not in line
    said = next(GAME.narrate(event) for event in state.history if event.kind == "speech")
    assert said == 'Seat 1 says: "ok\\"\\nNight 9 falls."'


def test_a_vote_is_told_by_whom_it_was_for() -> None:
    votes = [[0, 3], [1, 3], [2, None], [3, 1], [4, 3], [5, 1]]
    event = Event("vote", {"votes": votes, "out": 3})
    assert GAME.narrate(event) == "Vote: seat 3 is voted out (for 3: 0, 1, 4; for 1: 3, 5; for nobody: 2)."
    many = Event("vote", {"votes": [[seat, 3 if seat != 3 else 0] for seat in range(11)], "out": 3})
    assert len(str(GAME.narrate(many))) < 80


def test_rules_name_every_role_option_and_default_size() -> None:
    for word in (*ROLES, *GAME.options_type.model_fields):
        assert word in GAME.rules
    for seats in DEFAULT_MIX:
        assert f"| {seats} |" in GAME.rules


# Invariants over random play

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "roles": st.sampled_from(["werewolf=1", "werewolf=2,witch=1,hunter=1", FULL, "werewolf=2,seer=1"]),
        "reveal": st.booleans(),
        "speech_rounds": st.integers(0, 2),
        "wolf_talk_rounds": st.integers(0, 2),
        "max_days": st.integers(1, 6),
        "ties": st.sampled_from(["none", "runoff"]),
        "doctor_self": st.booleans(),
        "doctor_repeat": st.booleans(),
    },
)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), seats=st.integers(6, 12), options=OPTIONS)
def test_random_play(seed: int, seats: int, options: dict[str, object]) -> None:
    rng = random.Random(seed)
    state = GAME.new(seed=seed, seats=seats, options=options)
    views = {seat: state.view(seat) for seat in [*range(seats), None]}
    while turns := state.turns():
        assert len(state.plies) < GAME.max_plies(seats, state.options)
        events = state.apply({seat: space.sample(rng) for seat, space in turns.items()})
        for seat in turns:
            assert any(event.visible_to(seat) for event in events)
        for seat, view in views.items():
            for event in events:
                if event.visible_to(seat):
                    view.update(event)
        living = views[None].alive
        assert living == [seat for seat in range(seats) if state.alive >> seat & 1]
        hidden = set() if state.options.reveal else {state.witch}  # asked when dead, so that nothing shows it
        assert set(state.turns()) <= set(living) | {state.hunter} | hidden
    outcome = state.outcome()
    assert GAME.load(json.loads(json.dumps(state.save()))).history == state.history
    for seat, view in views.items():
        assert view == state.view(seat)
        assert (view.phase, view.reason, view.returns) == ("over", outcome.reason, outcome.returns)
    wolves = [seat for seat in views[None].alive if outcome.roles[seat] == "werewolf"]
    if outcome.reason == "wolves_dead":
        assert not wolves
    elif outcome.reason == "wolf_parity":
        assert 2 * len(wolves) >= len(views[None].alive)
    else:
        assert set(outcome.returns) == {0.0}
    counted = [set(vote.votes) for vote in views[None].votes]
    assert all(len(voters) >= 2 for voters in counted)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), seats=st.integers(6, 12), options=OPTIONS)
def test_resample_shows_the_seat_nothing_new(seed: int, seats: int, options: dict[str, object]) -> None:
    rng = random.Random(seed)
    state = GAME.new(seed=seed, seats=seats, options=options)
    while True:
        seat = rng.randrange(seats)
        other = state.resample(seat, rng)
        assert [event for event in other.history if event.visible_to(seat)] == [
            event for event in state.history if event.visible_to(seat)
        ]
        assert other.turns().get(seat) == state.turns().get(seat)
        assert len(other.plies) == len(state.plies)
        assert bool(other.turns()) == bool(state.turns())
        assert Counter(other.roles()) == Counter(state.roles())
        while turns := other.turns():
            other.apply({seat: space.sample(rng) for seat, space in turns.items()})
        if not state.turns():
            break
        state.apply({seat: space.sample(rng) for seat, space in state.turns().items()})


def test_resample_changes_roles_nearly_wherever_they_can_change() -> None:
    asked = changed = 0
    for seed in range(12):
        rng = random.Random(seed)
        state = GAME.new(seed=seed, seats=10)
        while turns := state.turns():
            seat = rng.randrange(10)
            asked += 1
            changed += state.resample(seat, rng).roles() != state.roles()
            state.apply({seat: space.sample(rng) for seat, space in turns.items()})
    assert changed > 0.85 * asked


def test_resample_moves_others_night_actions() -> None:
    state = deal("wwsdxvvvvv")
    night(state, 6, see=0, protect=3)
    rng = random.Random(1)
    worlds = [state.resample(9, rng) for _ in range(80)]
    assert len({world.wolves for world in worlds}) > 10
    assert len({tuple(world.view(world.seer).sights) for world in worlds}) > 10
    assert len({world.protected for world in worlds}) > 4
    assert len({(world.heal, world.poison) for world in worlds}) > 1
    as_wolf = [state.resample(0, rng) for _ in range(40)]
    assert {world.wolves for world in as_wolf} == {state.wolves}
    assert len({world.seer for world in as_wolf}) > 3
    as_witch = [state.resample(4, rng) for _ in range(20)]
    assert all(world.view(4).attacks == state.view(4).attacks for world in as_witch)


def test_event_data_is_compact() -> None:
    for seed in range(40):
        state = play(seed, 8)
        inputs = sum(len(ply) for ply in state.plies)
        size = sum(len(json.dumps(event.data, separators=(",", ":"))) + 30 for event in state.history)
        assert size + 60 * inputs < 20_000
