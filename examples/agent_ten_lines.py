"""An agent in ten lines; run it as `python examples/agent_ten_lines.py ws://127.0.0.1:8420` beside `arena serve`."""

import os
import random
import sys

from clients.blocking import connect

with connect(sys.argv[1], token=os.environ.get("ARENA_TOKEN", "")) as arena:
    match = arena.join(game="avalon", name="ten lines")
    for turn in match:
        turn.play(turn.space.sample(random.Random()))
    print(f"{match.ended} at seat {match.seat} of {match.seats}")
