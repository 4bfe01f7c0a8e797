"""Matches over real sockets on a server that is really killed, whose connections are cut and whose disk is full.

Each run has a server of its own (`arena serve`), agents of the client library that play several matches each, and
faults at moments that its seed has drawn: SIGKILL and a new start on the same home, one connection or all of them cut
without a word, a disk on which no file can grow until some seats are lost. Afterwards every match must have ended with
a record that verifies or as a named failure in the store, each seat must have been told exactly what its record lets it
see, each once and in order, and each spectator everything that was public. What is printed are counts.

    python -m benchmarks.fault_sweep
    python -m benchmarks.fault_sweep --runs 2 --faults 4
"""

import argparse
import asyncio
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks._measure import machine, positive, table
from tests.arena.sweep import Fault, Sweep, drawn

KINDS: tuple[Fault, ...] = ("kill", "cut", "cut all")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the sweep and print its table. Raises `AssertionError` where a promise is broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=positive, default=20, help="runs, each with its own seed")
    parser.add_argument("--faults", type=positive, default=10, help="kills and cuts of one run")
    parser.add_argument("--agents", type=positive, default=4, help="connections of one run")
    parser.add_argument("--matches", type=positive, default=4, help="matches of each agent")
    parser.add_argument("--seed", type=int, default=100, help="of the first run")
    asked = parser.parse_args(argv)
    logging.getLogger("stamina").setLevel(logging.ERROR)
    began = time.monotonic()
    total: Counter[str] = Counter()
    rows = []
    for number in range(asked.runs):
        seed = asked.seed + number
        # At least so many moments come: asking, being seated and one answer of two moments, for each match.
        until = 5 * asked.agents * asked.matches
        faults = drawn(seed, faults=min(asked.faults, until // 2), until=until, kinds=KINDS)
        if number % 2:
            # Kills and a full disk do not go together here: a seat that was told of its end does not come back.
            faults = {moment: "cut" if kind == "kill" else kind for moment, kind in faults.items()}
            faults[until // 2] = "full"
        counts = _run(seed, faults, agents=asked.agents, matches=asked.matches)
        total += counts
        rows.append([str(seed), *(str(counts[name]) for name in HEAD)])
    rows.append(["all", *(str(total[name]) for name in HEAD)])
    print(table(["seed", *HEAD], rows))
    print(
        "\nEvery record verifies, every failure is named; no event was lost, doubled, or told to a seat or "
        "a spectator that may not see it."
    )
    print(f"{time.monotonic() - began:.0f} s; {machine('websockets', 'uvloop')}")


HEAD = (
    "kill",
    "cut",
    "cut all",
    "full",
    "matches",
    "verified",
    "failed by name",
    "seats' events",
    "sent again",
    "spectators' events",
)


def _run(seed: int, faults: dict[int, Fault], *, agents: int, matches: int) -> Counter[str]:
    async def work(home: Path) -> Sweep:
        sweep = Sweep(home, seed=seed, faults=faults, agents=agents, matches=matches)
        await sweep.run()
        return sweep

    with tempfile.TemporaryDirectory() as folder:
        sweep = asyncio.run(work(Path(folder) / "home"))
        records = sweep.check()
    if not sweep.done["full"]:
        assert not sweep.named, sweep.named
    told: Counter[tuple[int, str]] = Counter()
    known: dict[tuple[int, str], int] = {}
    for tap in sweep.taps:
        for match, events in tap.heard:
            seat = (id(tap), match)
            told[seat] += len(events.events)
            known[seat] = max(known.get(seat, 0), events.first + len(events.events))
    return Counter(
        {
            **sweep.done,
            "matches": len(records),
            "verified": sum(record.footer is not None for record in records.values()),
            "failed by name": sum(record.footer is None for record in records.values()),
            "seats' events": sum(len(match.events) for match in sweep.played),
            "sent again": told.total() - sum(known.values()),
            "spectators' events": sum(len(seen.rows) for seen in sweep.seen.values()),
        }
    )


if __name__ == "__main__":
    main()
