"""Spectators of one match that falls at twenty events a second, one of whom never reads.

A round publishes the public events of Avalon among random players with a pause of a twentieth of a second before
each, as if players took it for their moves; so whatever the spectators cost shows in the pace. Rounds with
spectators and without take turns. A spectator's lag is the time from the moment when an event fell to the moment
when the spectator had it; all of them are in one other process. The one that never reads has a small receive
buffer and takes nothing after its snapshot.

    python -m benchmarks.spectator_load
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._load import EVENTS_PER_S, Child
from benchmarks._measure import Spread, machine, positive, table, verdict
from benchmarks.host_load import percentile

PACE = 0.05
LAG_S = 1.0


def main(words: Sequence[str] | None = None) -> None:
    """Run it and print its table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spectators", type=positive, default=500)
    parser.add_argument("--events", type=positive, default=300, help="of one round")
    parser.add_argument("--rounds", type=positive, default=3, help="with spectators, and as many without")
    given = parser.parse_args(words)
    print(machine("websockets", "uvloop"))
    print(f"{given.spectators} spectators, one of them never reads; {given.events} events a round\n")
    alone: list[float] = []
    watched: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as home, Child("server", "--home", Path(home)) as server:
        for number in range(given.rounds):
            rounds = [False, True] if number % 2 == 0 else [True, False]
            for crowd in rounds:
                match = f"match-{number}-{crowd}".lower()
                if crowd:
                    watched.append(_watched(server, match, given))
                else:
                    server.ask(do="pace", match=match, events=given.events, go=False)
                    told = server.ask(do="pace", match=match, events=given.events, go=True)
                    alone.append(given.events / told["wall_s"])
    _report(alone, watched, given)


def _watched(server: Child, match: str, given: argparse.Namespace) -> dict[str, Any]:
    server.ask(do="pace", match=match, events=given.events, go=False)
    before = server.ask(do="stats")
    words = ["--url", server.ready["url"], "--agents", given.spectators, "--deaf", 1, "--match", match]
    with Child("spectators", *words) as crowd:
        there = server.ask(do="stats")
        crowd.tell()
        told = server.ask(do="pace", match=match, events=given.events, go=True)
        seen = crowd.read()
        after = server.ask(do="stats")
    while server.ask(do="stats")["connections"]:
        time.sleep(0.1)
    lags = [
        arrived - fell for times in seen["times"] for arrived, fell in zip(times, told["fell"], strict=False)
    ]
    return {
        "pace": given.events / told["wall_s"],
        "busy": told["cpu_s"] / told["wall_s"],
        "lags": lags,
        "complete": sum(len(times) == given.events for times in seen["times"]),
        "restarts": seen["restarts"],
        "trouble": seen["trouble"],
        "arrived": there["watchers"] - before["watchers"],
        "join_kib": (there["kib"] - before["kib"]) / given.spectators,
        "grew_kib": after["kib"] - there["kib"],
    }


def _report(alone: list[float], watched: list[dict[str, Any]], given: argparse.Namespace) -> None:
    reading = given.spectators - 1
    paces = Spread.of(round_["pace"] for round_ in watched)
    ratio = Spread.of(a["pace"] / b for a, b in zip(watched, alone, strict=True))
    lags = [1000 * lag for round_ in watched for lag in round_["lags"]]
    complete = min(round_["complete"] for round_ in watched)
    rows = [
        ["pace without spectators, events/s", Spread.of(alone).show(".2f")],
        ["pace with them, events/s", paces.show(".2f")],
        ["with / without", ratio.show(".3f")],
        ["spectators that joined", str(min(round_["arrived"] for round_ in watched))],
        ["readers with every event", f"{complete} of {reading}"],
        ["lag p50, ms", f"{percentile(lags, 0.5):.1f}"],
        ["lag p99, ms", f"{percentile(lags, 0.99):.1f}"],
        ["greatest lag, ms", f"{max(lags):.1f}"],
        ["started over", str(sum(round_["restarts"] for round_ in watched))],
        ["server's processor", Spread.of(round_["busy"] for round_ in watched).show(".0%")],
        ["memory of a spectator, KiB", Spread.of(round_["join_kib"] for round_ in watched).show(".1f")],
        ["memory grown during a round, KiB", Spread.of(round_["grew_kib"] for round_ in watched).show(".0f")],
    ]
    print(table([f"{EVENTS_PER_S} events a second asked for", "median (least to greatest)"], rows))
    print(f"pace: {verdict(ratio.median, target=1 - PACE)}")
    print(f"greatest lag, s: {verdict(max(lags) / 1000, target=LAG_S, at_most=True)}")
    print(f"readers with every event: {verdict(complete, target=reading)}")
    for line in [line for round_ in watched for line in round_["trouble"]][:10]:
        print(f"  {line}")


if __name__ == "__main__":
    main()
