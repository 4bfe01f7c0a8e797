"""Kuhn poker and its calculators beside OpenSpiel's."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from agents.bots.kuhn import EquilibriumBot
from agents.exploitability import (
    InformationState,
    Policy,
    agent_policy,
    best_response,
    information_states,
    nash_conv,
    tree_size,
    uniform_policy,
    value,
)
from games.kuhn import CARDS
from games.registry import load_game

pyspiel = pytest.importorskip("pyspiel")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

KUHN = load_game("kuhn")
PEER = pyspiel.load_game("kuhn_poker")


def peer_key(state: InformationState) -> str:
    """Return OpenSpiel's information state string: the card, then p (check, fold) and b (bet, call)."""
    (card,) = [event.data["card"] for event in state.events if event.kind == "card"]
    moves = [event.data["move"] for event in state.events if event.kind == "move"]
    return str(CARDS.index(card)) + "".join("b" if move in ("bet", "call") else "p" for move in moves)


def random_policy(seed: int) -> Policy:
    rng = random.Random(seed)
    table = {}
    for state in information_states(KUHN):
        p = rng.choice((0.0, 1.0, rng.random(), rng.random()))
        table[state.key] = [p, 1 - p]
    return lambda state: table[state.key]


def peer_policy(policy: Policy) -> Any:
    table = {peer_key(state): list(enumerate(policy(state))) for state in information_states(KUHN)}
    return pyspiel.TabularPolicy(table)


POLICIES: Mapping[str, Policy] = {
    "uniform": uniform_policy,
    **{
        f"equilibrium {alpha:.3f}": agent_policy(
            KUHN, lambda seat, alpha=alpha: EquilibriumBot(seat, alpha=alpha)
        )
        for alpha in (0.0, 0.2, 1 / 3)
    },
    "always bet": lambda state: [0.0, 1.0],
    "always pass": lambda state: [1.0, 0.0],
    **{f"random {seed}": random_policy(seed) for seed in range(20)},
}


def test_same_tree() -> None:
    counts = {"chance": 0, "decision": 0, "terminal": 0}
    keys: tuple[set[str], set[str]] = (set(), set())

    def walk(state: Any) -> None:
        kind = "terminal" if state.is_terminal() else "chance" if state.is_chance_node() else "decision"
        counts[kind] += 1
        if kind == "decision":
            keys[state.current_player()].add(state.information_state_string())
        if kind != "terminal":
            for action in state.legal_actions():
                walk(state.child(action))

    walk(PEER.new_initial_state())
    size = tree_size(KUHN)
    assert (size.chance, size.decision, size.terminal) == tuple(counts.values())
    ours: tuple[set[str], set[str]] = (set(), set())
    for state in information_states(KUHN):
        ours[state.seat].add(peer_key(state))
    assert ours == keys
    assert size.information_states == (len(keys[0]), len(keys[1]))


@pytest.mark.parametrize("name", POLICIES)
def test_same_values(name: str) -> None:
    policy = POLICIES[name]
    theirs = peer_policy(policy)
    returns = pyspiel.expected_returns(PEER.new_initial_state(), theirs, -1, False)
    assert value(KUHN, policy) == pytest.approx(tuple(returns), abs=1e-12)
    assert nash_conv(KUHN, policy) == pytest.approx(pyspiel.nash_conv(PEER, theirs), abs=1e-9)


@pytest.mark.parametrize("name", POLICIES)
def test_same_best_responses(name: str) -> None:
    policy = POLICIES[name]
    theirs = peer_policy(policy)  # the peer keeps a bare pointer to it
    for seat in (0, 1):
        peer = pyspiel.TabularBestResponse(PEER, seat, theirs)
        expected = peer.value_from_state(PEER.new_initial_state())
        assert best_response(KUHN, policy, seat).value == pytest.approx(expected, abs=1e-9)
