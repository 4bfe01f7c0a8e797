"""The random bot: legal everywhere, uniform, and the same again when rebuilt."""

from collections import Counter

import pytest

from agents.base import Seat
from agents.bots.random import RandomBot
from games.referee import Referee, Turn
from games.registry import game_names, load_game
from games.spaces import ActionSpace, Choice, Subset


def bot(seed: int, game: str = "kuhn", seat: int = 0, seats: int = 2) -> RandomBot:
    rules = load_game(game)
    return RandomBot(Seat(rules, seats, rules.parse_options(None), seat, seed))


@pytest.mark.parametrize("space", (Choice(("a", "b", "c")), Subset(("1", "2", "3"), 2)))
def test_every_action_is_as_likely(space: ActionSpace) -> None:
    draws = 3000
    counts = Counter(bot(seed).decide(Turn(0, 0, space)).action for seed in range(draws))
    assert len(counts) == 3
    for count in counts.values():
        assert abs(count - draws / 3) <= 5 * (draws * 2 / 9) ** 0.5


@pytest.mark.parametrize("name", game_names())
def test_it_plays_every_game_to_the_end(name: str) -> None:
    game = load_game(name)
    for seed in range(5):
        state = game.new(seed=seed)
        referee = Referee(state)
        bots = [bot(seed * 100 + seat, name, seat, state.seats) for seat in range(state.seats)]
        for _ in range(game.max_plies(state.seats, state.options)):
            if referee.over:
                break
            for seat, turn in referee.turns().items():
                view_events = [event for event in state.history if event.visible_to(seat)]
                bots[seat].observe(view_events[bots[seat].events_seen :])
                referee.submit(seat, bots[seat].decide(turn).action or "")
        assert referee.over
        assert referee.counts["forced"] == referee.counts["illegal"] == 0


def test_it_decides_anew_after_each_event_and_the_same_when_rebuilt() -> None:
    space = Choice(tuple(map(str, range(1000))))
    seen = load_game("kuhn").new(seed=0).history
    one, other = bot(7), bot(7)
    picks = []
    for event in seen:
        one.observe([event])
        picks.append(one.decide(Turn(0, 0, space)).action)
    other.observe(seen)
    assert other.decide(Turn(0, 0, space)).action == picks[-1]
    assert len(set(picks)) > 1
