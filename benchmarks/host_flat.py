"""Whether a hosted match costs the same at the end of 10,000 as at their beginning: CPU time, memory, what is kept.

Two clients in memory play Kuhn poker match after match on one host, with its records, its store and its hub. After
every block: CPU time a match, resident memory, and how many matches, seats, records and timers the process still
holds (none is what it should be; the hub keeps finished matches at hand up to a fixed number of entries).

    python -m benchmarks.host_flat
    python -m benchmarks.host_flat --matches 200 --blocks 2
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from arena.live import LiveMatch, RemoteAgent
from benchmarks._measure import machine, positive, resident_kib, table
from tests.arena.hosting import House, scenario


def main(argv: Sequence[str] | None = None) -> None:
    """Play and print. Raises `AssertionError` where anything of a finished match is still held by the host."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--matches", type=positive, default=10_000, help="matches in all")
    parser.add_argument("--blocks", type=positive, default=10, help="lines of the table")
    asked = parser.parse_args(argv)
    rows: list[list[str]] = []

    async def work(house: House) -> None:
        peers = [house.peer(seed=seed) for seed in range(2)]
        for block in range(asked.blocks):
            began = time.process_time()
            each = asked.matches // asked.blocks
            for _ in range(each):
                for peer in peers:
                    peer.client.join(game="kuhn")
                await house.settle()
                for peer in peers:
                    assert len(peer.overs) == 1
                    peer.forget()
                house.clock.pass_to(house.clock.now + 200)
            used = time.process_time() - began
            gc.collect()
            held = sum(type(thing) in (LiveMatch, RemoteAgent) for thing in gc.get_objects())
            kept = house.host.kept()
            assert held == 0 and not any(count for name, count in kept.items() if name != "clients"), kept
            rows.append(
                [
                    str((block + 1) * each),
                    f"{used / each * 1e3:.2f}",
                    f"{resident_kib() / 1024:.1f}",
                    str(held),
                    str(len(house.clock.timers)),
                ]
            )

    with tempfile.TemporaryDirectory() as folder:
        scenario(Path(folder), work)
    print(table(["matches", "CPU ms a match", "resident MiB", "matches and seats held", "timers"], rows))
    print(f"\n{machine()}")


if __name__ == "__main__":
    main()
