"""A local agent at a server's seats: what `arena join` does. Here agents and the client library meet."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.base import Agent, Decision, Seat
from agents.players import Player, agent_type, check_plays, make_agent
from agents.policy.agent import PolicyAgent
from agents.policy.service import Policies
from clients.errors import ProtocolError, SeatLost
from clients.protocol.messages import Over
from clients.sdk import Arena, Match, Turn
from games.base import Event
from games.errors import ArenaError
from games.referee import Turn as RefereeTurn
from games.rng import derive_seed
from games.text import neutralise

DECLINED = ("unparsed", "ambiguous")
"""Failures that a decision may name; any other is told as `error`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an agent asks a server for: a lobby of `game`, the named `match`, or a `tournament`."""

    game: str = ""
    match: str = ""
    tournament: str = ""
    seats: int | None = None
    options: dict[str, str] | None = None
    name: str = ""
    matches: int = 1
    """How many lobbies, one after another."""

    def ask(self, *, agent: str) -> dict[str, Any]:
        """Return the arguments of `clients.sdk.Arena.ask` for one seat, or for the tournament."""
        who = {"name": self.name, "agent": agent}
        if self.tournament:
            return {"tournament": self.tournament, **who}
        if self.match:
            return {"match": self.match, **who}
        return {"game": self.game, "seats": self.seats, "options": dict(self.options or {}), **who}


@dataclass(frozen=True, slots=True)
class Played:
    """One seat that was played. `error` is one line where it was lost; the end is then unknown."""

    match: str
    game: str
    seat: int
    seats: int
    turns: int
    failures: int
    """Turns in which the agent failed: it raised, or gave no answer that could be sent."""
    error: str | None = None
    over: Over | None = None


async def join(
    arena: Arena,
    player: Player,
    *,
    wanted: Wanted,
    seed: int,
    policies: Policies | None = None,
    seated: Callable[[Match], None] = lambda match: None,
    played: Callable[[Played], None] = lambda played: None,
) -> list[Played]:
    """Seat `player` as often as is wanted, and play.

    Args:
        arena: an open connection.
        player: who is seated.
        wanted: where.
        seed: of the agents' whims; each seat gets its own.
        policies: started for the player's spec, where it is a language model.
        seated, played: told of every seat, at its start and its end.

    Raises a `PlayerError` where the player does not play the game, and `ClientError` where the server refuses or
    the connection is gone for good. A seat that is lost is in the result.
    """
    if wanted.game:
        check_plays(player, game=wanted.game)
    found: list[Played] = []

    async def one(match: Match) -> None:
        seated(match)
        own = derive_seed(seed, "join", match.id, match.seat)
        result = await sit(match, player, seed=own, policies=policies)
        found.append(result)
        played(result)

    agent = ""
    if policies is not None:
        agent = PolicyAgent.__name__
    elif wanted.game:
        agent = agent_type(player.spec, game=wanted.game).__name__
    ask = wanted.ask(agent=f"{player.spec} {agent}".strip())
    if wanted.tournament:
        playing: set[asyncio.Task[None]] = set()
        try:
            async for match in arena.ask(**ask):
                playing.add(asyncio.create_task(one(match)))
            await asyncio.gather(*playing)
        finally:
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)
    elif wanted.match:
        await one(await arena.join(**ask))
    else:
        for _ in range(wanted.matches):
            await one(await arena.join(**ask))
    return found


async def sit(match: Match, player: Player, *, seed: int, policies: Policies | None = None) -> Played:
    """Play one seat to its end with a fresh agent. Whatever the agent does costs it turns, and nothing else.

    Raises a `PlayerError` where the player does not play the game, and a `PolicyError` where its adapter is not to
    be had; the seat is then given up.
    """
    seat = Seat(match.game, match.seats, match.options, match.seat, seed, match.names)
    try:
        if policies is None:
            agent = make_agent(player.spec, seat)
        else:
            pinned = await policies.pin(player.spec)
            agent = policies.agent(player.spec, seat, match=match.id, adapter=pinned)
    except ArenaError:
        match.leave()
        raise
    table = _Table(match, agent)
    error: str | None = None
    try:
        await table.play()
    except SeatLost as lost:
        error = str(lost)
    finally:
        await agent.close()
    return Played(
        match=match.id,
        game=match.game.name,
        seat=match.seat,
        seats=match.seats,
        turns=table.turns,
        failures=table.failures,
        error=error,
        over=match.over,
    )


class _Table:
    """One agent at one seat."""

    def __init__(self, match: Match, agent: Agent) -> None:
        self.match, self.agent = match, agent
        self.turns = self.failures = 0
        self._broken = ""
        self._ply = -1

    async def play(self) -> None:
        told: list[Event] = []
        async for update in self.match.updates():
            if isinstance(update, Event):
                told.append(update)
                continue
            self._observe(told)
            told = []
            if isinstance(update, Turn):
                self._ply += update.attempt == 0
                if update.open:
                    self.turns += 1
                    await self._answer(update)

    def _observe(self, told: list[Event]) -> None:
        if told and not self._broken:
            try:
                self.agent.observe(told)
            except Exception as error:
                self._broken = _describe(error)

    async def _answer(self, turn: Turn) -> None:
        """Answer a turn, or give up when its time is over: an agent that hangs does not hold up the next one."""
        acting = asyncio.ensure_future(self._decide(turn))
        closing = asyncio.ensure_future(turn.wait_closed())
        try:
            await asyncio.wait([acting, closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not acting.done():
                acting.cancel()
            closing.cancel()
            await asyncio.gather(acting, closing, return_exceptions=True)
        if acting.cancelled():
            return
        decision = acting.result()
        try:
            await self._say(turn, decision)
        except ProtocolError as error:
            self.failures += 1
            await turn.decline(str(error), failure="error")

    async def _decide(self, turn: Turn) -> Decision:
        if not self._broken:
            # The server does not tell the match's ply, for it would tell of others' secret deeds: the own turns count.
            asked = RefereeTurn(
                self.match.seat, self._ply, turn.space, turn.attempt, turn.failure, turn.reason
            )
            try:
                return await self.agent.act(asked)
            except Exception as error:
                return Decision(None, failure="error", reason=_describe(error))
        return Decision(None, failure="error", reason=self._broken)

    async def _say(self, turn: Turn, decision: Decision) -> None:
        if decision.failure is None and decision.action is not None:
            await turn.play(decision.action, thought=decision.thought)
        elif decision.failure in (None, *DECLINED):
            failure = "ambiguous" if decision.failure == "ambiguous" else "unparsed"
            await turn.decline(decision.reason, failure=failure, thought=decision.thought)  # type: ignore[arg-type]
        else:
            self.failures += 1
            await turn.decline(decision.reason, failure="error", thought=decision.thought)


def _describe(error: Exception) -> str:
    return neutralise(f"{type(error).__name__}: {error}")[:200]
