"""Many matches on one server: five-player Avalon among websocket agents, all matches at the same time.

The server as `arena serve` runs it, in one process; all agents, moving at random, in another; and a bare websockets
echo for comparison.

1. Idle: what a connection costs in the server's memory, over as many connections as there are agents.
2. Paced: agents of `clients.protocol`, each of which takes a while for a move, one second in the mean. The server's
   own time runs from the arrival of the last action that a turn waited for to that turn: whatever else it does in
   between, other matches included, but not its waiting for a processor that other programs hold, which the wall clock
   counts as well.
3. Flat out: agents answer at once, and like the echo's clients they do as little as can be, or it would be they who
   decide how fast the whole goes. Messages in and out a second of the server's processor time, beside the same of
   the echo, in turns; frames of the echo are as long as the server's in the mean.

    python -m benchmarks.host_load
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._load import Child
from benchmarks._measure import Spread, machine, positive, table, verdict

P99_MS = 50.0
RATIO = 0.6
SEATS = 5


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of `values` does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main(words: Sequence[str] | None = None) -> None:
    """Run it and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--matches", type=positive, default=200, help="matches at the same time")
    parser.add_argument("--rounds", type=positive, default=3, help="rounds flat out, of each side")
    parser.add_argument("--think-s", type=float, default=1.0, help="mean seconds for a move, when paced")
    parser.add_argument("--echo-s", type=float, default=10.0, help="seconds of one round of the echo")
    given = parser.parse_args(words)
    agents = given.matches * SEATS
    print(machine("websockets", "uvloop", "msgpack", "pydantic"))
    print(f"{given.matches} matches of {SEATS} at the same time, {agents} agents, one server process\n")
    with tempfile.TemporaryDirectory() as home, Child("server", "--home", Path(home)) as server:
        empty = server.ask(do="stats")
        with Child("agents", "--url", server.ready["url"], "--agents", agents) as players:
            idle = server.ask(do="stats")
            each = (idle["kib"] - empty["kib"]) / agents
            print(f"memory of an idle connection: {each:.1f} KiB ({agents} connections)\n")
            trouble = _paced(server, players, given)
        trouble += _flat_out(server, given, agents)
        end = server.ask(do="stats")
        print(f"\nmatches finished {end['finished']:.0f}, failed {end['failed']:.0f}; errors {len(trouble)}")
        for line in trouble[:10]:
            print(f"  {line}")


def _trouble(told: dict[str, Any]) -> list[str]:
    return [f"{what}: {count}" for what, count in told["trouble"].items()]


def _paced(server: Child, players: Child, given: argparse.Namespace) -> list[str]:
    before = server.ask(do="stats", measure=True)
    told = players.ask(matches=1, think_s=given.think_s)
    after = server.ask(do="stats")
    busy = (after["cpu_s"] - before["cpu_s"]) / told["wall_s"]
    rows = []
    for name, which in (("on the wall clock", 0), ("of its processor time", 1)):
        samples = [1000 * pair[which] for pair in after["samples"]]
        shares = [f"{percentile(samples, share):.2f}" for share in (0.5, 0.9, 0.99)]
        rows.append([name, f"{len(samples):,}", *shares, f"{max(samples):.1f}"])
    print("paced: the server's time from the last action to the next turn, in ms")
    print(table(["", "turns", "p50", "p90", "p99", "max"], rows))
    rate = (after["messages"] - before["messages"]) / told["wall_s"]
    print(f"{rate:,.0f} messages/s, the server's processor {busy:.0%} busy")
    own = percentile([1000 * pair[1] for pair in after["samples"]], 0.99)
    print(f"p99 of its own: {verdict(own, target=P99_MS, at_most=True)}\n")
    return _trouble(told)


def _flat_out(server: Child, given: argparse.Namespace, agents: int) -> list[str]:
    trouble: list[str] = []
    ours: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    length = 100
    with (
        Child("bare_agents", "--url", server.ready["url"], "--agents", agents) as players,
        Child("echo") as echo,
        Child("echoers", "--url", echo.ready["url"], "--agents", agents) as echoers,
    ):

        def play() -> None:
            nonlocal length
            before = server.ask(do="stats")
            told = players.ask()
            after = server.ask(do="stats")
            trouble.extend(_trouble(told))
            messages = after["messages"] - before["messages"]
            length = max(1, int((after["bytes"] - before["bytes"]) / messages))
            ours.append((messages / (after["cpu_s"] - before["cpu_s"]), messages / told["wall_s"]))

        def bounce() -> None:
            before = echo.ask(do="stats")
            told = echoers.ask(seconds=given.echo_s, bytes=length)
            after = echo.ask(do="stats")
            bare.append(
                (told["messages"] / (after["cpu_s"] - before["cpu_s"]), told["messages"] / told["wall_s"])
            )

        for number in range(given.rounds):
            for work in (play, bounce) if number % 2 == 0 else (bounce, play):
                work()
    rows = [
        [name, Spread.of(cpu for cpu, _ in side).show(), Spread.of(wall for _, wall in side).show()]
        for name, side in (("arena", ours), (f"bare echo of {length} bytes", bare))
    ]
    print("flat out: messages a second, in and out")
    print(table(["server", "of its processor time", "of wall-clock time"], rows))
    ratio = Spread.of(a[0] / b[0] for a, b in zip(ours, bare, strict=True))
    print(f"arena / echo, processor time: {ratio.show('.2f')}; {verdict(ratio.median, target=RATIO)}")
    return trouble


if __name__ == "__main__":
    main()
