import random
from collections import Counter
from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.base import Seat
from agents.bots.werewolf import WerewolfBot
from agents.bots.werewolf_belief import Belief, Said, parse_speech
from games.base import Event
from games.referee import Turn
from games.registry import load_game
from games.rng import derive_seed
from games.werewolf import WerewolfState

GAME = load_game("werewolf")
FULL = "werewolf=2,seer=1,doctor=1,hunter=1,witch=1"


def bot_at(state: WerewolfState, seat: int, seed: int) -> WerewolfBot:
    return WerewolfBot(Seat(GAME, state.seats, state.options, seat, derive_seed(seed, "seat", seat)))


def steps(
    seed: int, seats: int, scripted: float = 1.0, **options: object
) -> Iterator[tuple[WerewolfState, list[WerewolfBot], dict[int, object]]]:
    """Play; yield the state, the bots and the actions before each ply. Seats that are not scripted play randomly."""
    rng = random.Random(seed)
    state: WerewolfState = GAME.new(seed=seed, seats=seats, options=options)
    bots = [bot_at(state, seat, seed) for seat in range(seats)]
    drawn = [rng.random() >= scripted for _ in range(seats)]
    events = state.history
    while True:
        for seat, bot in enumerate(bots):
            bot.observe([event for event in events if event.visible_to(seat)])
        turns = state.turns()
        actions: dict[int, object] = {}
        for seat, space in turns.items():
            action = bots[seat].decide(Turn(seat, len(state.plies), space)).action
            assert space.contains(action)
            actions[seat] = space.sample(rng) if drawn[seat] else action
        yield state, bots, actions
        if not turns:
            return
        events = state.apply(actions)


def seen(state: WerewolfState, seat: int) -> list[Event]:
    return [event for event in state.history if event.visible_to(seat)]


# Speech


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I am the seer: 3 is a werewolf, 5 is not.", Said("seer", ((3, True), (5, False)))),
        ("i am a Hunter. I suspect seat 4. I trust 2.", Said("hunter", suspect=4, trust=2)),
        ("Kill 7.", Said(kill=7)),
        ("3 is a werewolf", Said()),
        ("I suspect 9. I suspect 99999999999999999999", Said()),
        ("I am the seer: 8 is a werewolf, 12 is not", Said("seer")),
        ("", Said()),
        ("x" * 200_000 + " I suspect 1." + " I am the" * 20_000, Said(suspect=1)),
    ],
)
def test_parse_speech(text: str, said: Said) -> None:
    assert parse_speech(text, 8) == said


# The belief against brute force


def brute_force(state: WerewolfState, seat: int) -> tuple[np.ndarray, np.ndarray]:
    """P(wolf) and P(seer) by going through every role assignment and every fact that the seat was told."""
    seats = state.seats
    wolf, seer, count = np.zeros(seats), np.zeros(seats), 0
    for roles in sorted(set(permutations(state.roles()))):
        if all(_holds(roles, event, state, seat) for event in seen(state, seat)) and _went_on(roles, state):
            count += 1
            wolf += [role == "werewolf" for role in roles]
            seer += [role == "seer" for role in roles]
    return wolf / count, seer / count


def _holds(roles: tuple[str, ...], event: Event, state: WerewolfState, seat: int) -> bool:
    data = event.data
    mix = Counter(roles)
    match event.kind:
        case "role":
            return roles[data["seat"]] == data["role"]
        case "pack":
            return {s for s, role in enumerate(roles) if role == "werewolf"} == set(data["seats"])
        case "see":
            return (roles[data["at"]] == "werewolf") == data["wolf"]
        case "attack":
            return roles[data["at"]] != "werewolf"
        case "dawn":
            poisoned = [s for s, _ in data["dead"] if roles[s] == "werewolf"]
            if poisoned and (not mix["witch"] or (not mix["doctor"] and len(data["dead"]) == 1)):
                return False
            return all(role in (None, roles[s]) for s, role in data["dead"])
        case "out":
            return data["role"] in (None, roles[data["seat"]])
        case "shot":
            if data["at"] is not None and data["role"] not in (None, roles[data["at"]]):
                return False
            return roles[data["seat"]] == "hunter"
        case "end":
            return list(roles) == data["roles"]
    return True


def _went_on(roles: tuple[str, ...], state: WerewolfState) -> bool:
    """Whether no nightfall and no day that began should have been the end, and one poison explains the nights."""
    alive = set(range(state.seats))
    night_dead: list[int] = []
    fresh = False
    for event in state.history:
        data = event.data
        if event.kind == "night" or (fresh and event.kind in ("speech", "vote")):
            fresh = False
            wolves = sum(roles[s] == "werewolf" for s in alive)
            armed = any(roles[s] in ("hunter", "witch") for s in alive)
            if not wolves or 2 * wolves > len(alive) or (2 * wolves == len(alive) and not armed):
                return False
        elif event.kind == "dawn":
            fresh = True
            night_dead += [s for s, _ in data["dead"]]
            alive -= {s for s, _ in data["dead"]}
        elif event.kind == "out":
            alive.discard(data["seat"])
        elif event.kind == "shot" and data["at"] is not None:
            alive.discard(data["at"])
    return sum(roles[s] == "werewolf" for s in night_dead) <= 1


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    setup=st.sampled_from(
        [
            (5, "werewolf=1,seer=1,doctor=1", True),
            (6, "werewolf=2,seer=1", True),
            (6, "werewolf=2,seer=1,doctor=1,hunter=1", True),
            (6, "werewolf=1,seer=1,witch=1,hunter=1", True),
            (6, "werewolf=2,doctor=1,witch=1", True),
            (6, "werewolf=2,seer=1,doctor=1", False),
            (7, "werewolf=2,seer=1", False),
            (5, "werewolf=1", False),
        ]
    ),
)
def test_facts_alone_give_the_uniform_posterior_of_brute_force(
    seed: int, setup: tuple[int, str, bool]
) -> None:
    seats, roles, reveal = setup
    rng = random.Random(seed)
    for state, _, _ in steps(seed, seats, 0.5, roles=roles, reveal=reveal, max_days=4):
        if rng.random() < 0.2 or not state.turns():
            seat = rng.randrange(seats)
            belief = Belief(seat, hard_only=True)
            weighed = Belief(seat)
            for event in seen(state, seat):
                belief.observe(event)
                weighed.observe(event)
            wolf, seer = brute_force(state, seat)
            np.testing.assert_allclose(belief.wolf, wolf, atol=1e-12)
            np.testing.assert_allclose(belief.seer, seer, atol=1e-12)
            np.testing.assert_array_equal(weighed.wolf > 0, wolf > 0)
            np.testing.assert_array_equal(weighed.wolf == 0, wolf == 0)
            np.testing.assert_array_equal(weighed.seer == 0, seer == 0)
            assert weighed.wolf.sum() == pytest.approx(state.roles().count("werewolf"))


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    seats=st.integers(7, 12),
    reveal=st.booleans(),
    scripted=st.sampled_from([0.0, 0.5, 1.0]),
    roles=st.sampled_from([FULL, "werewolf=2,witch=1", "werewolf=3,seer=1,hunter=1", None]),
)
def test_the_truth_and_what_cannot_be_told_from_it_stay_possible(
    seed: int, seats: int, reveal: bool, scripted: float, roles: str | None
) -> None:
    rng = random.Random(seed)
    options = {"reveal": reveal} if roles is None else {"reveal": reveal, "roles": roles}
    for state, bots, _ in steps(seed, seats, scripted, **options):
        for seat, bot in enumerate(bots):
            if rng.random() > 0.1:
                continue
            for event in bot._unread:
                bot.belief.observe(event)
            bot._unread.clear()
            for world in (state, state.resample(seat, rng)):
                dealt = world.roles()
                wolves = [s for s, role in enumerate(dealt) if role == "werewolf"]
                seer = dealt.index("seer") if "seer" in dealt else None
                assert bot.belief.possible(wolves, seer)


# Decisions


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    seats=st.integers(6, 12),
    scripted=st.sampled_from([0.3, 1.0]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "roles": st.sampled_from(["werewolf=1", FULL, "werewolf=2,witch=1,hunter=1"]),
            "reveal": st.booleans(),
            "ties": st.sampled_from(["none", "runoff"]),
            "wolf_talk_rounds": st.integers(0, 2),
            "speech_rounds": st.integers(0, 2),
            "max_speech_chars": st.sampled_from([1, 20, 300]),
            "doctor_self": st.booleans(),
        },
    ),
)
def test_decisions_are_legal_and_a_rebuilt_bot_decides_the_same(
    seed: int, seats: int, scripted: float, options: dict[str, object]
) -> None:
    rng = random.Random(seed)
    for state, bots, _ in steps(seed, seats, scripted, **options):
        for seat, space in state.turns().items():
            if rng.random() < 0.1:
                turn = Turn(seat, len(state.plies), space)
                again = bot_at(state, seat, seed)
                again.observe(seen(state, seat))
                assert again.decide(turn) == bots[seat].decide(turn)


def test_wolves_agree_and_never_choose_a_fellow() -> None:
    nights = 0
    for seed in range(12):
        for state, _, actions in steps(seed, 10):
            if state.phase == "night":
                pack = [s for s in state.turns() if state.roles()[s] == "werewolf"]
                assert len({actions[s] for s in pack}) == 1
                nights += 1
    assert nights > 20


def test_the_seer_who_found_a_wolf_says_so() -> None:
    found = 0
    for seed in range(30):
        for state, bots, actions in steps(seed, 8):
            speaker = next(iter(state.turns()), None)
            if state.phase == "speak" and state.roles()[speaker] == "seer":
                for sight in bots[speaker].view.sights:
                    if sight.wolf:
                        assert f"{sight.at} is a werewolf" in actions[speaker]
                        found += 1
    assert found > 5


def events_of_a_claim(*, dead_seer: bool) -> list[Event]:
    mix = {"villager": 4, "werewolf": 2, "seer": 1}
    events = [
        Event("start", {"seats": 7, "mix": mix}),
        Event("role", {"seat": 6, "role": "villager"}, (6,)),
        Event("night", {"day": 1}),
        Event("dawn", {"day": 1, "dead": []}),
        Event("speech", {"seat": 0, "text": "I am the seer: 3 is a werewolf. I suspect 3."}),
    ]
    if dead_seer:
        events += [Event("night", {"day": 2}), Event("dawn", {"day": 2, "dead": [[0, "seer"]]})]
    return events


def test_claims_are_believed_more_once_the_seer_is_revealed_and_less_when_countered() -> None:
    claimed, proven, countered = Belief(6), Belief(6), Belief(6)
    for event in events_of_a_claim(dead_seer=False):
        claimed.observe(event)
        countered.observe(event)
    countered.observe(Event("speech", {"seat": 3, "text": "I am the seer: 0 is a werewolf. I suspect 0."}))
    for event in events_of_a_claim(dead_seer=True):
        proven.observe(event)
    assert proven.wolf[3] > claimed.wolf[3] > countered.wolf[3] > 2 / 6
    assert proven.wolf[3] > 0.9
    assert proven.wolf[0] == 0
    assert countered.wolf[0] > claimed.wolf[0]
    assert claimed.wolf[6] == 0
    assert claimed.public_wolf[6] > 0


def test_own_words_are_no_evidence_to_oneself() -> None:
    silent, spoke = Belief(6), Belief(6)
    for event in events_of_a_claim(dead_seer=False)[:4]:
        silent.observe(event)
        spoke.observe(event)
    spoke.observe(Event("speech", {"seat": 6, "text": "I suspect 2. I trust 4."}))
    spoke.observe(Event("vote", {"votes": [[6, 2]], "out": 2}))
    np.testing.assert_allclose(spoke.wolf, silent.wolf, atol=1e-12)
    assert spoke.public_wolf[6] != pytest.approx(silent.public_wolf[6], abs=1e-6)


def test_probabilities_are_calibrated_and_reasoning_wins() -> None:
    predicted: list[float] = []
    true: list[bool] = []
    won = 0
    for seed in range(80):
        for state, bots, _ in steps(seed, 8):
            teams = state.teams()
            if state.phase == "vote":
                for holder in state.turns():
                    if teams[holder] == "village":
                        others = [s for s in state.turns() if s != holder]
                        predicted += [float(bots[holder].belief.wolf[s]) for s in others]
                        true += [teams[s] == "wolves" for s in others]
        won += state.outcome().reason == "wolves_dead"
    bins = np.minimum((np.array(predicted) * 10).astype(int), 9)
    error = sum(
        abs(np.sum(np.array(predicted)[bins == b]) - np.sum(np.array(true)[bins == b])) for b in range(10)
    )
    assert error / len(predicted) < 0.1
    assert won > 30
