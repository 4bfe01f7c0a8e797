"""Recorded matches among bots, as the record and cost benchmarks play them: agents at a referee, a file each."""

import asyncio
from pathlib import Path

from agents.base import Seat
from agents.match import MatchResult, play
from agents.players import make_agent
from games.referee import DEFAULT_RETRIES, Referee
from games.registry import load_game
from games.rng import derive_seed
from replays.record import SUFFIX, Footer, Header, SeatInfo
from replays.writer import RecordWriter


def play_recorded(
    loop: asyncio.Runner, folder: Path, *, game: str, spec: str, seats: int | None, seed: int
) -> Path:
    """Play one match among `spec` bots and write its record as it goes; return the record's path."""
    rules = load_game(game)
    state = rules.new(seed=seed, seats=seats)
    agents = [
        make_agent(spec, Seat(rules, state.seats, state.options, seat, derive_seed(seed, "agent", seat)))
        for seat in range(state.seats)
    ]
    header = Header(
        game=game,
        rules=rules.version,
        options=state.options.model_dump(mode="json"),
        seed=seed,
        seats=tuple(SeatInfo(spec, spec, f"{type(agent).__name__} {agent.version}") for agent in agents),
        retries=DEFAULT_RETRIES,
        match=str(seed),
    )
    path = folder / f"{game}-{spec}-{seed}{SUFFIX}"
    with RecordWriter(path, header) as writer:
        result: MatchResult = loop.run(play(Referee(state), agents, emit=writer.write))
        writer.finish(Footer(result.outcome, result.ended, result.counts, 0))
    return path
