"""What records cost: verifying against playing, and bytes per match.

Playing is a whole match among agents in asyncio, recorded in memory and written to a file at its end (which is
the cheapest way to record). Verifying is reading that file and playing it again, every event compared.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from _measure import Side, Spread, Work, arguments, interleave, machine, ratios, table, verdict

from agents.base import Seat
from agents.match import play
from agents.players import make_agent
from games.referee import Referee
from games.registry import load_game
from games.rng import derive_seed
from replays.record import Footer, Header, SeatInfo
from replays.verify import verify_file
from replays.writer import RecordEncoder

TARGET = 2.0
TARGET_BYTES = 20_000
CASES = (
    ("kuhn", 2, "random"),
    ("avalon", 5, "random"),
    ("avalon", 8, "random"),
    ("werewolf", 8, "random"),
    ("avalon", 5, "scripted"),
    ("werewolf", 8, "scripted"),
)


def record(game: str, seats: int, spec: str, seed: int) -> tuple[bytes, int]:
    """Play one match; return its record and how many turns it took."""
    rules = load_game(game)
    names = tuple(f"{spec}-{seat}" for seat in range(seats))
    state = rules.new(seed=seed, seats=seats)
    agents = [
        make_agent(spec, Seat(rules, seats, state.options, seat, derive_seed(seed, "agent", seat), names))
        for seat in range(seats)
    ]
    referee = Referee(state)
    encoder = RecordEncoder()
    info = tuple(SeatInfo(name, spec, agent.version) for name, agent in zip(names, agents, strict=True))
    parts = [encoder.header(Header(game, rules.version, {}, seed, info, referee.retries))]
    result = asyncio.run(play(referee, agents, emit=lambda told: parts.append(encoder.entries(told))))
    parts.append(encoder.footer(Footer(result.outcome, result.ended, result.counts)))
    return b"".join(parts), result.counts["turns"]


def play_some(games: int, seed: int, *, case: tuple[str, int, str], folder: Path) -> Work:
    """Play `games` matches and write each record over the last."""
    turns = 0
    for number in range(games):
        data, taken = record(*case, seed + number)
        (folder / "played.arena").write_bytes(data)
        turns += taken
    return Work(games, turns)


def verify_some(games: int, seed: int, *, folder: Path) -> Work:
    """Verify the records of the same matches."""
    events = 0
    for number in range(games):
        found = verify_file(folder / f"{seed + number}.arena")
        assert found.ok, found.reason
        events += found.events
    return Work(games, events)


def measure(case: tuple[str, int, str], *, games: int, rounds: int) -> tuple[Spread, Spread, Spread]:
    """Return verifying ÷ playing by rounds, milliseconds of playing a match, and bytes by matches."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = []
        for seed in range(1 + games * rounds):
            data, _ = record(*case, seed)
            (folder / f"{seed}.arena").write_bytes(data)
            sizes.append(len(data))
        samples = interleave(
            [
                Side("play", partial(play_some, case=case, folder=folder)),
                Side("verify", partial(verify_some, folder=folder)),
            ],
            games=games,
            rounds=rounds,
        )
    cost = ratios(samples["play"], samples["verify"])
    return cost, Spread.of(1000 / s.games_per_s for s in samples["play"]), Spread.of(sizes)


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    flags = arguments("The cost of verifying records, and their size.", games=20, rounds=15).parse_args(args)
    print(f"{flags.rounds} rounds of {flags.games} matches of each side in turns, CPU time")
    print(machine("evoke-arena", "msgpack"))
    rows, worst, largest = [], 0.0, 0.0
    for game, seats, spec in CASES:
        slow = spec == "scripted"
        games, rounds = (
            (max(1, flags.games // 10), max(3, flags.rounds // 3)) if slow else (flags.games, flags.rounds)
        )
        cost, play_ms, size = measure((game, seats, spec), games=games, rounds=rounds)
        worst = max(worst, cost.median)
        if (game, seats) == ("werewolf", 8):
            largest = max(largest, size.high)
        rows.append([f"{game}, {seats} × {spec}", play_ms.show(".2f"), cost.show(".2f"), size.show()])
    print(table(["match", "play, ms", "verify ÷ play", "bytes"], rows))
    print("verify ÷ play, largest median: " + verdict(worst, target=TARGET, at_most=True))
    print(
        f"largest Werewolf record with 8 seats: {largest:,.0f} bytes, "
        + verdict(largest, target=TARGET_BYTES, at_most=True)
    )


if __name__ == "__main__":
    main()
