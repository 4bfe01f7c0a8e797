import itertools

import pytest

from games.errors import MatchOver
from games.kuhn import CARDS, TERMINAL
from games.registry import load_game

GAME = load_game("kuhn")
DEALS = list(itertools.permutations(range(3), 2))


def draws(first: int, second: int) -> list[int]:
    return [first, second - (second > first)]


@pytest.mark.parametrize("first, second", DEALS)
@pytest.mark.parametrize("line", list(TERMINAL))
def test_every_line_pays_what_the_rules_say(first: int, second: int, line: tuple[str, ...]) -> None:
    plies = [{ply % 2: move} for ply, move in enumerate(line)]
    state = GAME.replay(draws(first, second), plies, seats=2)
    assert state.turns() == {}
    outcome = state.outcome()
    assert outcome is not None
    stake = TERMINAL[line]
    if line[-1] == "fold":
        winner = len(line) % 2
    else:
        winner = int(second > first)
    assert outcome.returns[winner] == stake
    assert sum(outcome.returns) == 0


@pytest.mark.parametrize("line", list(TERMINAL))
def test_one_hand_then_over(line: tuple[str, ...]) -> None:
    state = GAME.replay(draws(0, 1), [{ply % 2: move} for ply, move in enumerate(line)], seats=2)
    events = list(state.history)
    with pytest.raises(MatchOver):
        state.apply({0: "check"})
    assert state.history == events
    assert sum(event.kind == "chance" for event in events) == 2


@pytest.mark.parametrize(
    "line", [(), ("check",), ("bet",), ("check", "bet"), ("bet", "fold"), ("check", "bet", "fold")]
)
def test_the_other_card_stays_hidden_without_a_showdown(line: tuple[str, ...]) -> None:
    state = GAME.replay(draws(2, 0), [{ply % 2: move} for ply, move in enumerate(line)], seats=2)
    assert state.view(0).cards == {0: "king"}
    assert state.view(1).cards == {1: "jack"}
    assert state.view(None).cards == {}


def test_all_deals_come_about_equally_often() -> None:
    seen = dict.fromkeys(DEALS, 0)
    for seed in range(6000):
        seen[GAME.new(seed=seed).cards] += 1
    assert min(seen.values()) > 880
    assert max(seen.values()) < 1120


def test_rules_name_the_cards() -> None:
    assert all(card in GAME.rules for card in CARDS)
