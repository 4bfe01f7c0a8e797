"""The equilibrium of Kuhn poker as a bot: legal, exact, and the same again when rebuilt."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.base import Seat
from agents.bots.kuhn import DEFAULT_ALPHA, MAX_ALPHA, EquilibriumBot, aggression
from agents.errors import BadParameter
from agents.exploitability import agent_policy, information_states, nash_conv, value
from games.kuhn import BET, CARDS, CHECK, FOLD
from games.registry import load_game

KUHN = load_game("kuhn")
STATES = information_states(KUHN)


def seated(seat: int, seed: int, alpha: float = DEFAULT_ALPHA) -> EquilibriumBot:
    return EquilibriumBot(Seat(KUHN, 2, KUHN.parse_options(None), seat, seed), alpha=alpha)


def test_default_is_an_equilibrium() -> None:
    policy = agent_policy(KUHN, EquilibriumBot)
    assert nash_conv(KUHN, policy) == pytest.approx(0, abs=1e-12)
    assert value(KUHN, policy)[0] == pytest.approx(-1 / 18, abs=1e-12)


@given(st.floats(0, MAX_ALPHA))
def test_the_whole_family_is_equilibria(alpha: float) -> None:
    policy = agent_policy(KUHN, lambda seat: EquilibriumBot(seat, alpha=alpha))
    assert nash_conv(KUHN, policy) == pytest.approx(0, abs=1e-12)


def test_the_family_as_published() -> None:
    jack, queen, king = CARDS
    for alpha in (0.0, 0.2, 1 / 3):
        opening = [aggression(card, (), alpha=alpha) for card in CARDS]
        assert opening == [alpha, 0.0, 3 * alpha]
        assert aggression(queen, (CHECK, BET), alpha=alpha) == pytest.approx(alpha + 1 / 3)
    assert aggression(jack, (CHECK,)) == aggression(queen, (BET,)) == 1 / 3
    assert aggression(king, (CHECK,)) == aggression(king, (BET,)) == 1.0
    assert aggression(jack, (BET,)) == aggression(jack, (CHECK, BET)) == aggression(queen, (CHECK,)) == 0.0


@pytest.mark.parametrize("alpha", (-0.01, 0.34, float("nan"), float("inf")))
def test_alpha_outside_the_family(alpha: float) -> None:
    with pytest.raises(BadParameter, match=r"^alpha: got .*, allowed are numbers from 0 to 1/3$"):
        seated(0, 0, alpha)


@pytest.mark.parametrize("state", STATES, ids=[state.key for state in STATES])
def test_decisions_are_legal_and_as_frequent_as_stated(state: object) -> None:
    (known,) = [other for other in STATES if other is state]
    turn, draws = known.turn(), 2000
    counts: Counter[object] = Counter()
    for seed in range(draws):
        bot = seated(known.seat, seed)
        bot.observe(known.events)
        counts[asyncio.run(bot.act(turn)).action if seed == 0 else bot.decide(turn).action] += 1
    assert set(counts) <= set(known.actions)
    bot = seated(known.seat, 0)
    bot.observe(known.events)
    for action, p in bot.probabilities(turn).items():
        # Five standard deviations; what has no chance or all of it is exact.
        assert abs(counts[action] - p * draws) <= 5 * (draws * p * (1 - p)) ** 0.5


def test_a_rebuilt_bot_decides_the_same() -> None:
    for seed in range(50):
        for state in STATES:
            one, other = seated(state.seat, seed), seated(state.seat, seed)
            one.observe(state.events)
            for event in state.events:
                other.observe([event])
            assert one.decide(state.turn()) == other.decide(state.turn())


def test_it_never_folds_the_king_nor_calls_with_the_jack() -> None:
    for state in STATES:
        bot = seated(state.seat, 1)
        bot.observe(state.events)
        given_ = bot.probabilities(state.turn())
        held = bot.view.cards[state.seat]
        if FOLD in given_ and held != "queen":
            assert given_[FOLD] == (1.0 if held == "jack" else 0.0)
