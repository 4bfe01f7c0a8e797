"""Golden playthroughs: one match of random play, written line by line as every reader sees it.

A changed line is a changed rule: look at the difference, then raise the game's version and write the file
anew with `python -m tests.games.playthrough NAME…`.
"""

import json
import random
import sys
from pathlib import Path

from games.base import Game
from games.registry import game_names, load_game
from games.rng import derive_seed

FOLDER = Path(__file__).parent.parent / "playthroughs"
SEED = 20


def lines(game: Game) -> list[str]:
    """Return the playthrough: each ply's spaces and actions, each event with its audience and sentence."""
    state = game.new(seed=SEED)
    rng = random.Random(derive_seed(SEED, game.name))
    out = [f"game: {game.name}", f"version: {game.version}", f"seats: {state.seats}", f"seed: {SEED}"]
    out += [f"option {name}: {value}" for name, value in state.options.model_dump(mode="json").items()]
    shown = 0
    ply = 0
    while True:
        for event in state.history[shown:]:
            audience = "everyone" if event.audience is None else event.audience or "record"
            out.append(f"  event {event.kind} {json.dumps(event.data, sort_keys=True)} to {audience}")
            if (sentence := game.narrate(event)) is not None:
                out.append(f"    {sentence}")
        shown = len(state.history)
        turns = state.turns()
        if not turns:
            break
        out.append(f"ply {ply}")
        actions = {}
        for seat, space in turns.items():
            actions[seat] = space.sample(rng)
            out.append(f"  seat {seat} {space.label}: {json.dumps(actions[seat])} out of {space.describe()}")
        state.apply(actions)
        ply += 1
    outcome = state.outcome()
    assert outcome is not None
    out += [f"{name}: {value}" for name, value in outcome._asdict().items()]
    out += [f"view {seat}: {state.view(seat)}" for seat in (None, *range(state.seats))]
    return out


def path(name: str) -> Path:
    """Return where the playthrough of a game is kept."""
    return FOLDER / f"{name}.txt"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for wanted in sys.argv[1:] or game_names():
        path(wanted).write_text("\n".join(lines(load_game(wanted))) + "\n", encoding="utf-8")
