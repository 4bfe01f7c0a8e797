"""100,000 frames that no well-behaved client sends, at the sessions of one host in memory.

Malformed, oversized, out of order, replayed, in both encodings, among them many that ask for seats, watch and play.
Every frame must be answered by a message, be taken in silence as the protocol says, or close its connection; none
may raise; every event that a seat was sent must be one that the record lets it see; and every record must verify.
The counts of answers by kind are what is printed; they depend on the seed alone.

    python -m benchmarks.session_fuzz
    python -m benchmarks.session_fuzz --frames 2000
"""

import argparse
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks._measure import machine, positive, table
from clients.protocol.codec import SUBPROTOCOLS
from tests.arena.frames import pelt
from tests.arena.hosting import House, scenario


class Failures(logging.Handler):
    """Notes what a server logs when it failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main(argv: Sequence[str] | None = None) -> None:
    """Throw the frames and print what came back. Raises `AssertionError` where a promise is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--frames", type=positive, default=100_000, help="frames in all")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    answers: dict[str, Counter[str]] = {}
    failures = Failures()
    logging.getLogger("arena").addHandler(failures)
    began = time.process_time()
    records = events = 0
    try:
        for subprotocol in SUBPROTOCOLS:
            count = answers[subprotocol] = Counter()

            async def work(house: House, subprotocol: str = subprotocol, count: Counter[str] = count) -> None:
                frames = asked.frames // len(SUBPROTOCOLS)
                await pelt(house, subprotocol=subprotocol, frames=frames, seed=asked.seed, answers=count)

            with tempfile.TemporaryDirectory() as folder:
                house = scenario(Path(folder), work, deadline_s=5.0, bank_s=0.0, fill_after_s=1.0)
                records += len(house.check())
                events += sum(len(told.events) for peer in house.peers for _, _, told in peer.heard)
    finally:
        logging.getLogger("arena").removeHandler(failures)
    assert not failures.lines, failures.lines[:3]
    assert not any(count["internal"] for count in answers.values())
    kinds = sorted({kind for count in answers.values() for kind in count})
    rows = [[kind, *(str(answers[name][kind]) for name in SUBPROTOCOLS)] for kind in kinds]
    print(table(["answer", *SUBPROTOCOLS], rows))
    print(
        f"\n{asked.frames} frames, none raised; {records} matches were recorded and verify; "
        f"{events} events were sent to seats, each one that its seat may see"
    )
    print(f"{time.process_time() - began:.0f} s of CPU time; {machine()}")


if __name__ == "__main__":
    main()
