"""An agent of one's own: it rejects every team it is not on, and otherwise leaves it to chance.

Run it with `python examples/own_agent.py`. It plays Avalon at seat 0 against scripted bots, and the match is
printed as seat 0 saw it.
"""

import asyncio

from agents.base import Bot, Decision, Seat
from agents.match import play
from agents.players import make_agent
from games.base import Event
from games.referee import Entry, Referee, Turn
from games.registry import load_game
from games.rng import derive_seed

SEED = 7


class Proud(Bot):
    """Wants to be on every team."""

    def decide(self, turn: Turn) -> Decision:
        if turn.space.label == "speak":
            return Decision(f"A team without seat {turn.seat} is no team.")
        if turn.space.label == "vote" and turn.seat not in self.view.team:
            return Decision("reject", thought="they left me out")
        return Decision(turn.space.sample(self.rng()))


def main() -> None:
    game = load_game("avalon")
    state = game.new(seed=SEED)
    seats = [
        Seat(game, state.seats, state.options, i, derive_seed(SEED, "seat", i)) for i in range(state.seats)
    ]
    agents = [Proud(seats[0]), *(make_agent("scripted", seat) for seat in seats[1:])]
    entries: list[Entry] = []
    result = asyncio.run(play(Referee(state), agents, emit=entries.extend))
    for entry in entries:
        if isinstance(entry, Event) and entry.visible_to(0) and (sentence := game.narrate(entry)):
            print(sentence)
    print(f"seat 0, {result.outcome.roles[0]}, {result.ended[0]}")


if __name__ == "__main__":
    main()
