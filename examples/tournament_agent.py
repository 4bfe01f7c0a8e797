"""An agent that plays a whole tournament: `python examples/tournament_agent.py ws://127.0.0.1:8420 cup NAME`."""

import os
import random
import sys

from clients.blocking import connect

url, cup, name = sys.argv[1:]
with connect(url, token=os.environ.get("ARENA_TOKEN", "")) as arena:
    for match in arena.tournament(cup, name=name):
        for turn in match:
            turn.play(turn.space.sample(random.Random()))
        print(f"{match.id}: {match.ended} at seat {match.seat} of {match.seats}", flush=True)
