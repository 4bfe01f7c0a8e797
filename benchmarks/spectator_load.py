"""Many spectators on one match, one of whom never reads: what they cost the match, and how far they are behind.

Three processes: the server as `arena serve` runs it, with a match whose public events fall at a pace of 20 a second;
spectators on sockets of their own, in another; and this one. The same events fall with spectators and without, in
turns. A spectator is behind by the time from an event's falling in the server to its arrival; both processes read the
clock of the machine.

    python -m benchmarks.spectator_load
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._load import EVENTS_PER_S, Child
from benchmarks._measure import Spread, machine, positive, table, verdict
from benchmarks.host_load import percentile

SLOWER = 0.05
BEHIND_S = 1.0
DEAF = 1


@dataclass
class Watched:
    """One round with spectators: seconds of each arrival behind its event, and what the server's memory did."""

    behind_s: list[float]
    whole: int
    restarts: int
    kib: int


def main(words: Sequence[str] | None = None) -> None:
    """Run it and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spectators", type=positive, default=500, help="one of them never reads")
    parser.add_argument("--events", type=positive, default=300, help="of one round")
    parser.add_argument("--rounds", type=positive, default=4, help="with spectators, and as many without")
    given = parser.parse_args(words)
    print(machine("websockets", "uvloop", "msgpack"))
    print(
        f"{given.spectators} spectators, {DEAF} of whom never reads, on one match of {given.events} public "
        f"events at {EVENTS_PER_S} a second\n"
    )
    walls: dict[bool, list[float]] = {False: [], True: []}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    seen: list[Watched] = []
    with tempfile.TemporaryDirectory() as home, Child("server", "--home", Path(home)) as server:
        for number in range(given.rounds):
            for crowd in (False, True) if number % 2 == 0 else (True, False):
                match = f"m{number}{'w' if crowd else 'o'}"
                server.ask(do="pace", go=False, match=match, events=given.events)
                if crowd:
                    told, watched = _watched(server, match, given)
                    seen.append(watched)
                else:
                    told = server.ask(do="pace", go=True, match=match, events=given.events)
                walls[crowd].append(told["wall_s"])
                cpu[crowd].append(told["cpu_s"] / told["wall_s"])
        left = server.ask(do="stats")
    rows = [
        [
            f"with {given.spectators}" if crowd else "without",
            Spread.of(given.events / wall for wall in walls[crowd]).show(".2f"),
            Spread.of(cpu[crowd]).show(".0%"),
        ]
        for crowd in (False, True)
    ]
    print(table(["spectators", "events a second", "server's processor"], rows))
    slower = Spread.of(a / b - 1 for a, b in zip(walls[True], walls[False], strict=True))
    print(
        f"the match is slower by {slower.show('.2%')}: {verdict(slower.median, target=SLOWER, at_most=True)}\n"
    )
    lags = [1000 * value for watched in seen for value in watched.behind_s]
    rows = [
        [
            f"{len(lags):,}",
            f"{statistics.median(lags):.1f}",
            f"{percentile(lags, 0.99):.1f}",
            f"{max(lags):.1f}",
            f"{sum(watched.whole for watched in seen)} of {given.rounds * (given.spectators - DEAF)}",
            str(sum(watched.restarts for watched in seen)),
        ]
    ]
    print("how far a reading spectator is behind, in ms")
    print(table(["arrivals", "p50", "p99", "max", "saw everything", "started over"], rows))
    worst = max(lags) / 1000
    print(f"behind by at most {worst:.2f} s: {verdict(worst, target=BEHIND_S, at_most=True)}\n")
    growth = [watched.kib for watched in seen]
    print(
        f"the server's memory after each round with spectators, less that before it, in KiB: "
        f"{', '.join(f'{kib:+,}' for kib in growth)}; watchers left {left['watchers']}"
    )


def _watched(server: Child, match: str, given: argparse.Namespace) -> tuple[dict[str, float], Watched]:
    many = ("--agents", given.spectators, "--deaf", DEAF)
    with Child("spectators", "--url", server.ready["url"], *many, "--match", match) as spectators:
        before = server.ask(do="stats")["kib"]
        spectators.tell(do="read")
        told = server.ask(do="pace", go=True, match=match, events=given.events)
        found = spectators.read()
        after = server.ask(do="stats")["kib"]
    if found["trouble"]:
        raise RuntimeError(f"a spectator failed: {found['trouble'][0]}")
    behind = [
        arrived - fell for times in found["times"] for arrived, fell in zip(times, told["fell"], strict=False)
    ]
    whole = sum(len(times) == given.events for times in found["times"])
    return told, Watched(behind, whole, found["restarts"], after - before)


if __name__ == "__main__":
    main()
