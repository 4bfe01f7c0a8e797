"""Match jobs: one match from plain data to plain data, its record written on the way.

A job holds all that decides a match, so the same job gives the same record, byte for byte, in whichever
process it runs, where no language model plays. What goes wrong in a match is a report that says so; only a
record that cannot be written (a full disk) ends a run. `arena.pool` runs many jobs of bots on several processes,
`arena.policy_pool` many with language models at the same time in this one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.base import Agent, Seat
from agents.match import DEFAULT_DEADLINE_S, MatchResult, play
from agents.players import Player, make_agent
from agents.policy.spec import is_policy
from arena.report import MatchReport, match_report, result_of
from arena.schedule import MatchPlan
from games.base import State
from games.errors import ArenaError
from games.referee import DEFAULT_RETRIES, Entry, Referee
from games.registry import load_game
from games.rng import derive_seed
from games.text import neutralise
from replays.errors import RecordError, RecordWriteFailed
from replays.reader import read_record
from replays.record import Footer, Header, SeatInfo
from replays.verify import verify
from replays.writer import RecordWriter, write_whole

if TYPE_CHECKING:
    from agents.policy.service import Policies

MakeAgent = Callable[[str, Seat], Agent]


@dataclass(frozen=True, slots=True)
class MatchJob:
    """One match to be played: its plan, and everything else that decides it."""

    match: str
    """Identifies the match within its tournament; stands in the record."""
    plan: MatchPlan
    seats: int
    players: dict[str, str]
    """Spec by name, of the players that the plan names."""
    options: dict[str, Any] = field(default_factory=dict)
    retries: int = DEFAULT_RETRIES
    deadline_s: float = DEFAULT_DEADLINE_S
    record: Path | None = None
    """Where the record goes; None writes none."""


def run_match(job: MatchJob, *, loop: asyncio.Runner, make: MakeAgent | None = None) -> MatchReport:
    """Play `job`, or take its record where a whole and true one is already there; `make` makes its agents.

    Raises `RecordWriteFailed`; anything else that goes wrong is in the report's `error`.
    """
    try:
        table = _Table(job, make or make_agent)
        report = table.adopt()
        return loop.run(table.play()) if report is None else report
    except RecordWriteFailed:
        raise
    except Exception as error:
        return failed(job, _describe(error))


async def run_policy_match(
    job: MatchJob, *, policies: "Policies", make: MakeAgent | None = None
) -> MatchReport:
    """Do as `run_match` does, on the loop that runs, with language models among the players.

    Every adapter is pinned at the start; `make` makes the agents of the other players. Raises `RecordWriteFailed`.
    """
    try:
        specs = {spec for spec in job.players.values() if is_policy(spec)}
        pinned = {spec: await policies.pin(spec) for spec in sorted(specs)}

        def seated(spec: str, seat: Seat) -> Agent:
            if spec in pinned:
                return policies.agent(spec, seat, match=job.match, adapter=pinned[spec])
            return (make or make_agent)(spec, seat)

        table = _Table(job, seated)
        report = await asyncio.to_thread(table.adopt)
        return await table.play() if report is None else report
    except RecordWriteFailed:
        raise
    except Exception as error:
        return failed(job, _describe(error))


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, ArenaError) else f"{type(error).__name__}: {error}"


def failed(job: MatchJob, error: str) -> MatchReport:
    """Return the report of a match that could not be played."""
    return MatchReport(job.match, job.plan.game, job.plan.seed, neutralise(error)[:500])


class _Table:
    """One match set up from a job."""

    def __init__(self, job: MatchJob, make: MakeAgent) -> None:
        self.job = job
        self.game = load_game(job.plan.game)
        self.state: State = self.game.new(seed=job.plan.seed, seats=job.seats, options=job.options)
        self.players = [Player(name, job.players[name]) for name in job.plan.seated(self.state.teams())]
        self.agents: list[Agent] = [
            make(player.spec, self._seat(index)) for index, player in enumerate(self.players)
        ]
        self.header = Header(
            game=self.game.name,
            rules=self.game.version,
            options=self.state.options.model_dump(mode="json"),
            seed=job.plan.seed,
            seats=tuple(
                SeatInfo(player.name, player.spec, f"{type(agent).__name__} {agent.version}", agent.policy)
                for player, agent in zip(self.players, self.agents, strict=True)
            ),
            retries=job.retries,
            match=job.match,
        )

    def _seat(self, index: int) -> Seat:
        # The match is part of the path: the matches of one deal share its cards, not their players' whims,
        # or a player who meets its like would play the same match twice and count it as two.
        # No names: where players sit by side, knowing who plays is knowing the sides.
        return Seat(
            self.game,
            self.state.seats,
            self.state.options,
            index,
            derive_seed(self.job.plan.seed, "agent", self.job.match, index),
        )

    def adopt(self) -> MatchReport | None:
        """Return the report of the record that stands at the job's place, None where none can be used."""
        path = self.job.record
        if path is None or not path.exists():
            return None
        try:
            record = read_record(path)
        except RecordError:
            return None
        if record.footer is None or record.header != self.header or not verify(record).ok:
            return None
        return self._report(result_of(record))

    async def play(self) -> MatchReport:
        referee = Referee(self.state, retries=self.job.retries)
        path = self.job.record
        if path is None:
            return self._report(await play(referee, self.agents, deadline_s=self.job.deadline_s))
        if all(agent.instant for agent in self.agents):
            entries: list[Entry] = []
            result = await play(referee, self.agents, emit=entries.extend)
            write_whole(path, self.header, entries, self._footer(result))
            return self._report(result)
        with await _opened(path, self.header) as writer:
            result = await play(referee, self.agents, emit=writer.write, deadline_s=self.job.deadline_s)
            writer.finish(self._footer(result))
        return await asyncio.to_thread(self._report, result)

    def _footer(self, result: MatchResult) -> Footer:
        return Footer(result.outcome, result.ended, result.counts, 0)

    def _report(self, result: MatchResult) -> MatchReport:
        path = self.job.record
        return match_report(
            self.header,
            result,
            players=[player.name for player in self.players],
            record=path,
            record_bytes=0 if path is None else path.stat().st_size,
        )


async def _opened(path: Path, header: Header) -> RecordWriter:
    """Do as `_open` does, on a thread; where the match is called off meanwhile, what was opened is closed."""
    opening = asyncio.ensure_future(asyncio.to_thread(_open, path, header))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        await asyncio.wait([opening])
        if opening.exception() is None:
            opening.result().close()
        raise


def _open(path: Path, header: Header) -> RecordWriter:
    """Begin a record at `path`, in place of what is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise RecordWriteFailed(f"{path}: cannot replace the record: {error.strerror or error}") from None
    return RecordWriter(path, header)
