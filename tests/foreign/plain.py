"""A foreign program: takes part in a tournament with the client library, at random; waits for a word before each match.

It prints `seated MATCH` and goes on when a line comes on its stdin, so that whoever runs it can watch from the start.
"""

import random
import sys

from clients.blocking import connect


def main(url: str, cup: str, name: str, seed: str) -> None:
    """Play to the tournament's end."""
    rng = random.Random(seed)
    with connect(url, client="plain.py") as arena:
        for match in arena.tournament(cup, name=name):
            print("seated", match.id, flush=True)
            sys.stdin.readline()
            for turn in match:
                turn.play(turn.space.sample(rng))
            print("over", match.id, match.ended, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
