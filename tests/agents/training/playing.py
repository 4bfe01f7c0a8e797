"""Matches of a small model through the real engine, as records in memory."""

import asyncio
from pathlib import Path
from typing import Any

from agents.base import Agent, Seat
from agents.match import play
from agents.players import make_agent
from agents.policy.agent import GenerationSettings, PolicyAgent
from agents.policy.base import BASE
from agents.policy.batcher import Batcher
from agents.policy.local_model import TransformersSettings
from agents.policy.transformers_engine import TransformersEngine
from games.referee import Entry, Referee
from games.registry import load_game
from replays.record import Footer, Header, Record, SeatInfo


def play_matches(
    model: Path,
    game: str,
    *,
    matches: int = 2,
    seed: int = 1,
    deals: int | None = None,
    published: tuple[str, Path] | None = None,
    others: dict[int, str] | None = None,
    **playing: Any,
) -> list[Record]:
    """Return records of matches in which the model sits at every seat but those of `others`, given by their specs."""

    async def inside() -> list[Record]:
        engine = TransformersEngine(
            TransformersSettings(str(model), threads=1, max_batch=16, prefix_cache_mb=8)
        )
        await engine.start()
        batcher = Batcher(engine)
        try:
            adapter = BASE
            if published is not None:
                adapter, folder = published
                await engine.publish(adapter, str(folder))
            return await asyncio.gather(*(one(batcher, number, adapter) for number in range(matches)))
        finally:
            await batcher.close()
            await engine.close()

    async def one(batcher: Batcher, number: int, adapter: str) -> Record:
        rules = load_game(game)
        deal = seed + (number if deals is None else number % deals)
        state = rules.new(seed=deal)
        settings = GenerationSettings(
            **{"style": "compact", "budget_tokens": 384, "speech_tokens": 8} | playing
        )
        agents: list[Agent] = []
        for seat in range(state.seats):
            place = Seat(rules, state.seats, state.options, seat, 1000 * number + seat)
            if others and seat in others:
                agents.append(make_agent(others[seat], place))
            else:
                agents.append(
                    PolicyAgent(place, batcher=batcher, playing=settings, adapter=adapter, match=f"m{number}")
                )
        header = Header(
            game=rules.name,
            rules=rules.version,
            options=state.options.model_dump(mode="json"),
            seed=deal,
            seats=tuple(
                SeatInfo(others[seat] if others and seat in others else "learner", "policy")
                for seat in range(state.seats)
            ),
            retries=2,
            match=f"m{number}",
        )
        entries: list[Entry] = []
        result = await play(Referee(state), agents, emit=entries.extend)
        return Record(header, entries, footer=Footer(result.outcome, result.ended, result.counts), bodies=[])

    return asyncio.run(inside())
