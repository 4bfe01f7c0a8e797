"""Kuhn poker, random play: our `State` with its events, beside OpenSpiel's Kuhn poker in Python.

One game is the same on each side: a new state, the deal, uniformly random legal moves to the end, the
returns. Ours keeps the whole stream of events, the deal's chance included, as it always does.

    python -m benchmarks.kuhn_openspiel
"""

import random
from collections.abc import Sequence

from benchmarks._measure import (
    Side,
    Spread,
    Work,
    arguments,
    interleave,
    machine,
    ratios,
    say_missing,
    table,
    verdict,
)
from games.registry import load_game

TARGET = 1.0
OURS, OURS_VIEWS = "ours", "ours, and both seats' views"
PEER, PEER_NUMPY = "OpenSpiel", "OpenSpiel, chance drawn by NumPy"


def play_ours(games: int, seed: int) -> Work:
    """Random play through `State`."""
    rng = random.Random(seed)
    game = load_game("kuhn")
    actions = 0
    for number in range(games):
        state = game.new(seed=seed + number)
        while turns := state.turns():
            state.apply({seat: space.sample(rng) for seat, space in turns.items()})
            actions += 1
        _ = state.outcome().returns
    return Work(games, actions)


def play_ours_views(games: int, seed: int) -> Work:
    """The same, with each seat's view kept up to date."""
    rng = random.Random(seed)
    game = load_game("kuhn")
    actions = 0
    for number in range(games):
        state = game.new(seed=seed + number)
        views = [game.view(seat) for seat in range(state.seats)]
        events = state.history
        while True:
            for event in events:
                for seat in range(state.seats) if event.audience is None else event.audience:
                    views[seat].update(event)
            turns = state.turns()
            if not turns:
                break
            events = state.apply({seat: space.sample(rng) for seat, space in turns.items()})
            actions += 1
        _ = state.outcome().returns
    return Work(games, actions)


def peer_sides() -> list[Side]:
    """OpenSpiel driven in the cheapest way, and as its own example does; empty where it is not installed."""
    try:
        import numpy as np
        import pyspiel
        from open_spiel.python.games import kuhn_poker  # noqa: F401  registers the game
    except ImportError:
        return []
    game = pyspiel.load_game("python_kuhn_poker")

    def play(games: int, seed: int) -> Work:
        rng = random.Random(seed)
        actions = 0
        for _ in range(games):
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    state.apply_action(rng.choice(state.chance_outcomes())[0])
                else:
                    state.apply_action(rng.choice(state.legal_actions()))
                    actions += 1
            _ = state.returns()
        return Work(games, actions)

    def play_numpy(games: int, seed: int) -> Work:
        rng = np.random.RandomState(seed % 2**32)
        actions = 0
        for _ in range(games):
            state = game.new_initial_state()
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(rng.choice(outcomes, p=chances))
                else:
                    state.apply_action(rng.choice(state.legal_actions()))
                    actions += 1
            _ = state.returns()
        return Work(games, actions)

    return [Side(PEER, play), Side(PEER_NUMPY, play_numpy)]


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments("Kuhn poker, random play, beside OpenSpiel's in Python.", games=5000, rounds=11)
    flags = parser.parse_args(args)
    peers = peer_sides()
    sides = [Side(OURS, play_ours), Side(OURS_VIEWS, play_ours_views), *peers]
    samples = interleave(sides, games=flags.games, rounds=flags.rounds)
    print(
        f"Kuhn poker, random play, {flags.rounds} rounds of {flags.games} games of each side in turns, CPU time"
    )
    print(machine("evoke-arena", "open-spiel", "numpy"))
    rows = []
    for name, taken in samples.items():
        speed = Spread.of(sample.games_per_s for sample in taken).show()
        against = [ratios(samples[OURS], samples[name]).show(".2f") if name in (PEER, PEER_NUMPY) else ""]
        rows.append([name, speed, *against])
    print(table(["side", "games/s", "ours is faster by"], rows))
    if peers:
        print(f"against {PEER}: " + verdict(ratios(samples[OURS], samples[PEER]).median, target=TARGET))
    else:
        print(say_missing("open-spiel"))


if __name__ == "__main__":
    main()
