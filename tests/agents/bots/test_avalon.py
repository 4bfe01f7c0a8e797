"""The scripted Avalon player: an exact posterior, legal decisions, the same decision after a rebuild."""

import json
import random
from importlib.resources import files
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.base import Seat
from agents.bots.avalon import AvalonBot, known_mask
from agents.bots.avalon_belief import (
    Belief,
    Played,
    Proposed,
    Reader,
    Tables,
    Voted,
    fitted_tables,
    quest_situation,
    space_for,
    start_belief,
)
from agents.bots.avalon_speech import Claims, parse_claims
from games.avalon import Avalon, AvalonState
from games.avalon.rules import EVIL, FAIL, GOOD, MERLIN, MORDRED, OBERON, SIDES, make_deck, sighting
from games.base import Event
from games.referee import Turn
from games.rng import derive_seed

GAME = Avalon()


def seat_bots(state: AvalonState, seed: int) -> list[AvalonBot]:
    seats = range(state.seats)
    return [AvalonBot(Seat(GAME, state.seats, state.options, s, derive_seed(seed, s))) for s in seats]


def tell(bots: list[AvalonBot], events: list[Event]) -> None:
    for bot in bots:
        bot.observe([event for event in events if event.visible_to(bot.seat.seat)])


def play(state: AvalonState, seed: int, plies: int = 10_000, scripted: bool = True) -> list[AvalonBot]:
    """Play on; with `scripted` false the bots only watch a random match."""
    bots, rng = seat_bots(state, seed), random.Random(seed)
    tell(bots, state.history)
    for ply in range(plies):
        turns = state.turns()
        if not turns:
            break
        actions = {}
        for seat, space in turns.items():
            action = bots[seat].decide(Turn(seat, ply, space)).action if scripted else space.sample(rng)
            assert space.contains(action), (space, action)
            actions[seat] = action
        tell(bots, state.apply(actions))
    return bots


def own_knowledge(state: AvalonState, seat: int) -> tuple[Any, ...]:
    """What the events told a seat, read from the state itself rather than by the player's code."""
    told = SIDES[state.roles()[seat]] == EVIL and state.phase in ("confer", "assassinate")
    return (
        state.roles()[seat],
        sighting(state.roles(), seat),
        [(target, state.teams()[target]) for holder, target in state.examined if holder == seat],
        tuple(s for s in range(state.seats) if state.teams()[s] == EVIL) if told else None,
    )


def possible(state: AvalonState, seat: int) -> set[tuple[Any, ...]]:
    """All (evil set, merlin, mordred, oberon) of full deals that fit what the seat knows, by brute force."""
    role, seen, examined, told = own_knowledge(state, seat)
    found = set()
    for roles in set(permutations(state.roles())):
        if roles[seat] != role or sighting(roles, seat) != seen:
            continue
        evil = tuple(s for s in range(state.seats) if SIDES[roles[s]] == EVIL)
        if told is not None and (evil != told or roles.index("assassin") != state.roles().index("assassin")):
            continue
        if any((target in evil) != (side == EVIL) for target, side in examined):
            continue
        if any(
            len(set(team) & set(evil) - {seat}) < fails - (state.plies[ply].get(seat) == FAIL)
            for ply, team, fails, _ in state.results
        ):
            continue
        at = [roles.index(name) if name in roles else state.seats for name in (MERLIN, MORDRED, OBERON)]
        found.add((evil, *at))
    return found


def supported(bot: AvalonBot) -> set[tuple[Any, ...]]:
    assert bot.belief is not None
    space = bot.belief.space
    rows, columns = np.nonzero(bot.posterior())
    return {
        (space.sets[r], int(space.merlin[r, c]), int(space.mordred[r, c]), int(space.oberon[r, c]))
        for r, c in zip(rows, columns, strict=True)
    }


DECKS = [
    "merlin,percival,assassin,morgana",
    "merlin,assassin,oberon",
    "merlin,percival,assassin,mordred",
    "none",
]
LARGE_DECKS = [*DECKS, "merlin,percival,assassin,mordred,oberon", "merlin,percival,assassin,morgana,mordred"]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 7), st.data(), st.booleans())
def test_exactly_the_possible_assignments_have_probability(
    seed: int, seats: int, data: st.DataObject, scripted: bool
) -> None:
    roles = data.draw(st.sampled_from(LARGE_DECKS if seats == 7 else DECKS))
    plies = data.draw(st.integers(0, 60))
    state = GAME.new(seed=seed, seats=seats, options={"roles": roles, "lady": True})
    bots = play(state, seed, plies, scripted)
    if state.phase == "over":
        return
    for seat in range(seats) if seats < 7 else [seed % seats]:
        assert supported(bots[seat]) == possible(state, seat)
        assert bots[seat].posterior().sum() == pytest.approx(1)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 10), st.booleans())
def test_the_truth_keeps_probability_whatever_is_played(seed: int, seats: int, scripted: bool) -> None:
    state = GAME.new(seed=seed, seats=seats, options={"lady": seed % 2 == 0})
    bots = play(state, seed, 40 + seed % 80, scripted)
    evil = tuple(s for s in range(seats) if state.teams()[s] == EVIL)
    for bot in bots:
        assert bot.belief is not None
        assert bot.posterior()[bot.belief.space.row[evil]].sum() > 0


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 10), st.integers(1, 90))
def test_a_bot_rebuilt_from_its_events_decides_the_same(seed: int, seats: int, plies: int) -> None:
    state = GAME.new(seed=seed, seats=seats, options={"lady": True})
    bots = play(state, seed, plies)
    rebuilt = seat_bots(state, seed)
    tell(rebuilt, state.history)
    for old, new in zip(bots, rebuilt, strict=True):
        assert old.view == new.view
        assert old.belief is not None and new.belief is not None
        assert np.array_equal(old.belief.weights, new.belief.weights)
    for seat, space in state.turns().items():
        turn = Turn(seat, len(state.plies), space)
        assert bots[seat].decide(turn) == rebuilt[seat].decide(turn)


@pytest.mark.parametrize("seats", range(5, 11))
def test_whole_matches_are_legal_and_the_same_seed_gives_the_same_match(seats: int) -> None:
    histories = []
    for _ in range(2):
        state = GAME.new(
            seed=seats, seats=seats, options={"lady": True, "speech_rounds": 2, "max_speech_chars": 40}
        )
        play(state, 3)
        assert state.outcome() is not None
        histories.append(state.history)
    assert histories[0] == histories[1]


@pytest.mark.parametrize("roles", ["none", "merlin,assassin", "merlin,assassin,oberon", "mordred,oberon"])
def test_every_deck_is_played(roles: str) -> None:
    for seed in range(6):
        state = GAME.new(seed=seed, seats=5 + seed, options={"roles": roles})
        play(state, seed)
        assert state.outcome() is not None


def test_a_belief_is_a_function_of_the_public_events_alone() -> None:
    state = GAME.new(seed=5, seats=6)
    bots = play(state, 5, 60)
    beliefs = {id(bot.belief) for bot in bots}
    assert len(beliefs) == 1
    lone = start_belief(make_deck(6), Tables(_counts()))
    reader = Reader()
    for event in state.history:
        item = reader.read(event) if event.audience is None else None
        if item is not None:
            lone = lone.after(item)
    assert bots[0].belief is not None
    assert np.array_equal(lone.weights, bots[0].belief.weights)


def _counts() -> dict[str, Any]:
    text = files("agents.bots").joinpath("avalon_parameters.json").read_text(encoding="utf-8")
    counts: dict[str, Any] = json.loads(text)["counts"]
    return counts


def test_fails_exclude_and_successes_only_suggest() -> None:
    belief = start_belief(make_deck(5))
    after = belief.after(Played((0, 1), 1, 0))
    pairs = after.by_set
    for i, chosen in enumerate(belief.space.sets):
        assert (pairs[i] == 0) == (not set(chosen) & {0, 1})
    both = belief.after(Played((0, 1), 2, 0)).by_set
    assert both[belief.space.row[0, 1]] == pytest.approx(1)
    calm = belief.after(Played((0, 1), 0, 1)).suspicion
    assert 0 < calm[0] < 0.4 < calm[3]


def test_claims_of_those_who_know_weigh() -> None:
    belief = start_belief(make_deck(5))
    item = Proposed(0, (0, 1), 1, ((2, Claims(suspects=(3,), lady=((4, True),))),))
    silent = belief.after(Proposed(0, (0, 1), 1))
    assert not np.array_equal(belief.after(item).weights, silent.weights)
    assert np.all(np.isfinite(belief.log_likelihood(item)))


def test_soft_evidence_never_excludes() -> None:
    belief = start_belief(make_deck(10))
    for i in range(120):
        votes = ("approve",) * 10 if i % 2 else ("reject",) * 10
        belief = belief.after(Voted((0, 1, 2), 1, votes, 1, 1, 0))
        belief = belief.after(Proposed(3, (0, 1, 2), 1, ((4, Claims((5, 6), (7,))),)))
    assert belief.weights.min() > 0 and belief.weights.sum() == pytest.approx(1)


def test_the_last_vote_says_nothing() -> None:
    belief = start_belief(make_deck(7))
    votes = ("approve", "reject", "approve", "reject", "approve", "reject", "approve")
    last = belief.after(Voted((0, 1), 1, votes, 5, 1, 0))
    assert np.allclose(last.weights, belief.weights)
    assert not np.allclose(belief.after(Voted((0, 1), 1, votes, 1, 1, 0)).weights, belief.weights)


@pytest.mark.parametrize("seats", range(5, 11))
def test_hypotheses_are_all_assignments_once(seats: int) -> None:
    space = space_for(make_deck(seats))
    rows = {
        (chosen, int(m), int(d), int(o))
        for i, chosen in enumerate(space.sets)
        for m, d, o in zip(space.merlin[i], space.mordred[i], space.oberon[i], strict=True)
    }
    assert len(rows) == space.uniform.size
    for chosen, merlin, mordred, oberon in rows:
        assert merlin not in chosen
        assert mordred in (*chosen, seats) and oberon in (*chosen, seats)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("I trust 1 and 3. I suspect 4.", Claims((4,), (1, 3))),
        ("I suspect seat 2, seat 3 and 4", Claims((2, 3, 4))),
        ("I do not trust 3", Claims((3,))),
        ("I don't suspect 3", Claims((), (3,))),
        ("I trust 0 and 9 and 77", Claims()),
        ("I examined 2: evil. I examined 4: good.", Claims((), (), ((2, True), (4, False)))),
        ("we trust no one, seat 3 said 4", Claims()),
        ("trust 1 trust 2 suspect 1", Claims((1,), (2,))),
        ("", Claims()),
    ],
)
def test_claims_are_read_from_speech(text: str, claims: Claims) -> None:
    assert parse_claims(text, 0, 5) == claims


def test_what_the_bots_say_they_can_read() -> None:
    state = GAME.new(seed=11, seats=8, options={"lady": True})
    play(state, 11)
    texts = [(e.data["seat"], e.data["text"]) for e in state.history if e.kind == "speech"]
    read = [parse_claims(text, seat, 8) for seat, text in texts]
    spoken = [claims for (_, text), claims in zip(texts, read, strict=True) if "I am good" not in text]
    assert spoken and all(claims != Claims() for claims in spoken)


def test_long_speech_is_read_in_linear_time() -> None:
    for text in ("trust 1 and " * 400, "seat " * 1000, "1, " * 1600, "not " * 1200):
        parse_claims(text, 0, 10)


@pytest.mark.parametrize(
    ("quest", "won", "lost", "needed", "situation"),
    [(1, 0, 0, 1, 0), (2, 1, 0, 1, 1), (3, 2, 0, 1, 2), (3, 0, 2, 1, 3), (4, 2, 1, 2, 4), (5, 2, 2, 1, 2)],
)
def test_situations(quest: int, won: int, lost: int, needed: int, situation: int) -> None:
    assert quest_situation(quest, won, lost, needed) == situation


def test_the_posterior_of_good_seats_is_calibrated_in_self_play() -> None:
    predicted, evil = [], []
    for seed in range(80):
        seats = 5 + seed % 4
        state = GAME.new(seed=derive_seed(1234, seed), seats=seats)
        bots = seat_bots(state, seed)
        new = list(state.history)
        while True:
            tell(bots, new)
            turns = state.turns()
            if not turns:
                break
            if state.phase == "vote":
                for bot in bots:
                    if state.teams()[bot.seat.seat] == GOOD:
                        predicted += bot.suspicion().tolist()
                        evil += [side == EVIL for side in state.teams()]
            new = state.apply(
                {s: bots[s].decide(Turn(s, 0, space)).action or "" for s, space in turns.items()}
            )
    p, e = np.array(predicted), np.array(evil, dtype=float)
    assert e[p == 0].sum() == 0 and e[p == 1].all()
    bins = np.minimum((p * 10).astype(int), 9)
    error = sum(abs((p[bins == b] - e[bins == b]).sum()) for b in range(10)) / len(p)
    assert error < 0.06
    base = np.mean((e.mean() - e) ** 2)
    assert np.mean((p - e) ** 2) < 0.7 * base


def test_scripted_beats_random_on_either_side() -> None:
    won = {GOOD: 0, EVIL: 0}
    for side in won:
        for seed in range(40):
            state = GAME.new(seed=seed, seats=6)
            bots, rng = seat_bots(state, seed), random.Random(seed)
            new = list(state.history)
            while True:
                tell(bots, new)
                turns = state.turns()
                if not turns:
                    break
                actions = {}
                for s, space in turns.items():
                    mine = state.teams()[s] == side
                    actions[s] = bots[s].decide(Turn(s, 0, space)).action if mine else space.sample(rng)
                new = state.apply(actions)
            won[side] += state.outcome().returns[state.teams().index(side)] > 0
    assert won[GOOD] >= 24 and won[EVIL] >= 36


def test_the_tables_that_ship_have_the_right_shapes_and_are_distributions() -> None:
    tables = fitted_tables()
    for name, shape in Tables.SHAPES.items():
        table = getattr(tables, name)
        assert table.shape == shape
        assert np.allclose(np.exp(table).sum(axis=-1), 1)
    with pytest.raises(ValueError, match="vote_plain"):
        Tables({**Tables.blank(), "vote_plain": [[0.0]]})


def test_known_mask_of_percival_needs_one_merlin_and_one_morgana() -> None:
    state = GAME.new(seed=2, seats=5)
    seat = state.roles().index("percival")
    space = space_for(tuple(state.view(seat).deck))
    mask = known_mask(space, state.view(seat))
    pair = state.view(seat).seen
    for row, column in zip(*np.nonzero(mask), strict=True):
        assert space.merlin[row, column] in pair
        assert len(set(pair) & set(space.sets[row])) == 1
    assert isinstance(Belief(space, fitted_tables(), space.uniform).suspicion, np.ndarray)
