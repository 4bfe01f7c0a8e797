"""Records of Werewolf with 8 seats: how large they are on disk, and what verifying costs beside playing.

A match among scripted bots is played with its record written as it goes; the file is then read and verified
as `arena replay verify` does. Scripted bots think, which makes playing dear; so the same is measured among
random bots, who do not, and beside the rules alone, to which the same random actions are given with no
agent, referee or record (the least that any playing can cost). Time is CPU time.

    python -m benchmarks.record_size
"""

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks._matches import play_recorded
from benchmarks._measure import Spread, arguments, machine, table, verdict
from games.base import Event
from games.registry import load_game
from replays.reader import read_record
from replays.record import Record
from replays.verify import verify_file

GAME, SEATS = "werewolf", 8
MAX_BYTES = 20_000
MAX_VERIFY = 2.0
SPECS = ("scripted", "random")


def sizes(folder: Path, loop: asyncio.Runner, *, spec: str, matches: int) -> list[int]:
    """Return the sizes in bytes of the records of matches among `spec` bots."""
    return [
        play_recorded(loop, folder, game=GAME, spec=spec, seats=SEATS, seed=10_000 + number).stat().st_size
        for number in range(matches)
    ]


def times(
    folder: Path, loop: asyncio.Runner, *, spec: str, matches: int, seed: int
) -> tuple[float, float, float]:
    """Return CPU seconds for playing some recorded matches, for verifying them, and for their rules alone."""
    gc.collect()
    start = time.process_time()
    paths = [
        play_recorded(loop, folder, game=GAME, spec=spec, seats=SEATS, seed=seed + number)
        for number in range(matches)
    ]
    play_s = time.process_time() - start
    gc.collect()
    start = time.process_time()
    verdicts = [verify_file(path) for path in paths]
    verify_s = time.process_time() - start
    for path, found in zip(paths, verdicts, strict=True):
        if not found.ok:
            raise SystemExit(f"{path.name} does not verify: {found.reason}")
    moves = [(record, plies(record)) for record in map(read_record, paths)]
    gc.collect()
    start = time.process_time()
    for record, actions in moves:
        state = load_game(GAME).new(seed=record.header.seed, seats=SEATS)
        for ply in actions:
            state.turns()
            state.apply(ply)
    rules_s = time.process_time() - start
    for path in paths:
        path.unlink()
    return play_s, verify_s, rules_s


def plies(record: Record) -> list[dict[int, object]]:
    """Return what was played, ply by ply; these bots answer every turn legally."""
    found: dict[int, dict[int, object]] = {}
    for entry in record.entries:
        if not isinstance(entry, Event):
            found.setdefault(entry.ply, {})[entry.seat] = entry.action
    return [found[ply] for ply in sorted(found)]


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments("Records of Werewolf with 8: size, and verifying beside playing.", games=20, rounds=11)
    parser.add_argument("--matches", type=int, default=200, help="matches whose records are weighed")
    flags = parser.parse_args(args)
    with tempfile.TemporaryDirectory() as name, asyncio.Runner() as loop:
        folder = Path(name)
        print(f"Werewolf with {SEATS}, recorded; CPU time, {flags.rounds} rounds of {flags.games} matches")
        print(machine("evoke-arena", "msgpack"))
        rows = []
        weighed = {spec: sizes(folder, loop, spec=spec, matches=flags.matches) for spec in SPECS}
        for spec, found in weighed.items():
            near = statistics.quantiles(found, n=20, method="inclusive")[-1] if len(found) > 1 else found[0]
            rows.append(
                [spec, f"{statistics.mean(found):,.0f}", f"{near:,.0f}", f"{max(found):,}", f"{len(found)}"]
            )
        print(table(["bots", "mean bytes", "95th percentile", "greatest", "matches"], rows))
        print(
            "greatest record of scripted bots: "
            + verdict(max(weighed["scripted"]), target=MAX_BYTES, at_most=True)
        )
        rows = []
        ratio = {}
        for spec in SPECS:
            times(folder, loop, spec=spec, matches=2, seed=0)
            rounds = [
                times(folder, loop, spec=spec, matches=flags.games, seed=100 + number * flags.games)
                for number in range(flags.rounds)
            ]
            ratio[spec] = Spread.of(verify / play for play, verify, _ in rounds)
            each = 1000 / flags.games
            rows.append(
                [
                    spec,
                    *(Spread.of(r[i] * each for r in rounds).show(".2f", " ms") for i in range(3)),
                    ratio[spec].show(".2f"),
                    Spread.of(verify / rules for _, verify, rules in rounds).show(".2f"),
                ]
            )
        head = [
            "bots",
            "play and record",
            "read and verify",
            "rules alone",
            "verify / play",
            "verify / rules alone",
        ]
        print(table(head, rows))
        for spec in SPECS:
            print(
                f"verify / play, {spec} bots: " + verdict(ratio[spec].median, target=MAX_VERIFY, at_most=True)
            )


if __name__ == "__main__":
    main()
