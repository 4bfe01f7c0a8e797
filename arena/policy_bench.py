"""How fast a policy plays: one match at a time, many at a time, and the back end fed the same requests alone.

Three sides take turns, round after round, in one run of one engine, so that a machine that slows down or is shared
hurts all alike. Before anything is measured, matches are played until the first of them ends.

- *one*: matches one after another;
- *many*: as many at a time as asked for, measured from the first turn until one ends with none left to take its place;
- *direct*: the requests that *many* had answered meanwhile, given to the back end without seats, games, records or the
  queue between matches.

No side may profit from what another left in the caches of prompts. So each message of a side begins with digits of its
own, as many on every side: nothing that is kept by the beginning of a prompt fits, on a server of somebody else too.
"""

import asyncio
import math
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import agents.policy.service
from agents.errors import EngineFailed
from agents.policy.base import Engine, Request
from agents.policy.service import MakeEngine, Policies
from agents.policy.settings import PolicySettings
from agents.policy.spec import POLICY, PolicySpec
from arena.policy_recording import Book, RecordingEngine
from arena.report import MatchReport
from arena.runner import MatchJob, run_policy_match
from arena.schedule import plan
from arena.spread import Spread
from games.errors import BadOption
from games.registry import load_game
from games.rng import derive_seed

DEFAULT_CONCURRENCY = 32
DEFAULT_ROUNDS = 3
SPARE = 4
"""Of the matches that are played many at a time, by default one in so many more than run at once."""
ALONE = 8
"""Matches that are played many at a time, for each that is played alone."""
DIGITS = 3
WRONG = ("unparsed", "ambiguous", "illegal", "timeout", "error", "forced")
"""The referee's counts of what went wrong, as they are told."""

SideName = Literal["one", "many", "direct"]
SIDES: tuple[SideName, ...] = ("one", "many", "direct")
Progress = Callable[[str, int, int, str], None]
"""Takes what is counted, how many are done and planned, and a remark."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What is measured.

    Args:
        game: the game; its seats are all the policy's.
        concurrency: matches at a time.
        matches: of the side *many* in a round; at least `concurrency`.
        rounds: of all three sides.
        seed: of the matches, which are the same in every round.
        deadline_s: of a turn.
    """

    game: str = "avalon"
    concurrency: int = DEFAULT_CONCURRENCY
    matches: int | None = None
    rounds: int = DEFAULT_ROUNDS
    seed: int = 0
    deadline_s: float = 60.0

    def check(self) -> tuple[int, int]:
        """Return the matches that are played many at a time, and alone. Raises `BadOption`."""
        many = self.concurrency + self.concurrency // SPARE if self.matches is None else self.matches
        if many < self.concurrency:
            raise BadOption(
                f"matches: got {many}, needed are {self.concurrency} or more: so many are to run at a time"
            )
        return many, max(1, many // ALONE)


@dataclass(frozen=True, slots=True)
class _Round:
    """One side in one round; what is per second is of the time in which it was measured."""

    decisions_per_s: float
    computed_per_s: float
    """Prompt tokens that were computed."""
    cached_per_s: float
    """Prompt tokens that were not, because an earlier prompt began with them."""
    completion_per_s: float
    cached_share: float
    """Of all prompt tokens of the side."""
    waited_p50_s: float | None
    waited_p99_s: float | None
    under_way: float
    pass_rows: float | None
    """Sequences in a forward pass, where the back end tells."""


@dataclass(slots=True)
class BenchResult:
    """What was measured; `as_dict` tells it whole."""

    asked: BenchPlan
    backend: str
    model: str = ""
    seats: int = 0
    many: int = 0
    alone: int = 0
    call: int = 0
    """Requests in one call, of the side *direct*."""
    rounds: dict[SideName, list[_Round]] = field(default_factory=lambda: {side: [] for side in SIDES})
    sizes: dict[SideName, Counter[int]] = field(default_factory=lambda: {side: Counter() for side in SIDES})
    wrong: Counter[str] = field(default_factory=Counter)
    failed_requests: int = 0
    decisions: int = 0
    load: tuple[float, float] = (0.0, 0.0)
    """Of the machine, at the beginning and at the end."""
    wall_s: float = 0.0

    def spread(self, side: SideName, figure: str) -> Spread | None:
        """Return a figure of a side over the rounds; None where it is not known."""
        values = [getattr(one, figure) for one in self.rounds[side]]
        return None if any(value is None for value in values) else Spread.of(values)

    def ratio(self, side: SideName, other: SideName) -> Spread:
        """Return how many times the decisions per second of `other` those of `side` are, round by round."""
        pairs = zip(self.rounds[side], self.rounds[other], strict=True)
        return Spread.of(one.decisions_per_s / two.decisions_per_s for one, two in pairs)

    def histogram(self, side: SideName) -> list[tuple[int, int, float]]:
        """Return (from, to, share) of requests by how many were under way, in powers of two."""
        counts: Counter[int] = Counter()
        for size, count in self.sizes[side].items():
            counts[size.bit_length() - 1] += count
        total = sum(counts.values())
        return [(1 << power, (2 << power) - 1, counts[power] / total) for power in sorted(counts)]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON-compatible data; figures are median, least and greatest over the rounds."""

        def told(side: SideName, figure: str) -> dict[str, float] | None:
            spread = self.spread(side, figure)
            return None if spread is None else spread.as_dict()

        def of(figure: str, sides: Iterable[SideName] = SIDES) -> dict[str, Any]:
            return {side: told(side, figure) for side in sides}

        played: tuple[SideName, ...] = ("one", "many")
        return {
            "backend": self.backend,
            "model": self.model,
            "game": self.asked.game,
            "seats": self.seats,
            "concurrency": self.asked.concurrency,
            "matches": {"many": self.many, "one": self.alone},
            "requests_per_call": self.call,
            "rounds": self.asked.rounds,
            "ratios": {
                "many_to_one": self.ratio("many", "one").as_dict(),
                "arena_to_direct": self.ratio("many", "direct").as_dict(),
            },
            "decisions_per_s": of("decisions_per_s"),
            "tokens_per_s": {
                "prompt_computed": of("computed_per_s"),
                "prompt_cached": of("cached_per_s"),
                "completion": of("completion_per_s"),
            },
            "prefix_cache_hit_rate": of("cached_share"),
            "queue_s": {"p50": of("waited_p50_s", played), "p99": of("waited_p99_s", played)},
            "batch": {
                side: {
                    "mean": told(side, "under_way"),
                    "forward_pass": told(side, "pass_rows"),
                    "histogram": [
                        {"from": low, "to": high, "share": share} for low, high, share in self.histogram(side)
                    ],
                }
                for side in SIDES
            },
            "decisions": self.decisions,
            "failures": {
                **{name: self.wrong[name] for name in WRONG},
                "requests": self.failed_requests,
            },
            "load": list(self.load),
            "wall_s": round(self.wall_s, 3),
        }


def measure(
    asked: BenchPlan,
    *,
    policy: PolicySettings,
    home: Path,
    make: MakeEngine | None = None,
    progress: Progress | None = None,
) -> BenchResult:
    """Measure a policy.

    Args:
        asked: what is measured.
        policy: which policy, and how it runs.
        home: the directory of the state, for models that are kept there.
        make: makes the engine, see `Policies`.
        progress: told now and then.

    Raises `BadOption`, a `GameError`, and a `PolicyError` where the engine does not start or answers nothing.
    """
    asked.check()
    bench = _Bench(asked, policy, home, make or agents.policy.service.make_engine, progress or _silent)
    return asyncio.run(bench.run())


def _silent(what: str, done: int, planned: int, remark: str) -> None:
    return


class _Bench:
    def __init__(
        self, asked: BenchPlan, policy: PolicySettings, home: Path, make: MakeEngine, progress: Progress
    ) -> None:
        self.asked = asked
        self.policy = policy
        self.home = home
        self.make = make
        self.progress = progress
        self.book = Book()
        self.requests: list[Request] = []
        """What *many* had answered last."""
        self.sides = 0
        self.result = BenchResult(asked, policy.backend)

    async def run(self) -> BenchResult:
        began, load = time.monotonic(), _load()
        result, asked = self.result, self.asked
        result.many, result.alone = asked.check()
        jobs = self._jobs(result.many)
        result.seats = jobs[0].seats
        self.progress("rounds", 0, asked.rounds, "loading the model")

        def make(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
            return RecordingEngine(self.make(spec, settings, model), lambda: self.book)

        policies = Policies(self.policy, home=self.home, make=make)
        await policies.start([POLICY])
        try:
            batcher = policies.batcher(POLICY)
            batcher.on_completion = lambda completion: self.book.waited(completion)
            result.model = batcher.engine.model
            result.call = batcher.engine.max_batch
            await self._side(policies, "many", jobs[: asked.concurrency], "warming up", measured=False)
            for number in range(asked.rounds):
                for side in SIDES if number % 2 == 0 else reversed(SIDES):
                    await self._side(policies, side, jobs, f"round {number + 1} of {asked.rounds}")
        finally:
            await policies.close()
        result.load = (load, _load())
        result.wall_s = time.monotonic() - began
        return result

    def _jobs(self, matches: int) -> list[MatchJob]:
        """Return the matches of a round, every seat of which is the policy's."""
        game = load_game(self.asked.game)
        state = game.new(seed=derive_seed(self.asked.seed, "check"))
        plans = plan(
            [POLICY],
            game=game.name,
            seats=state.seats,
            team_names=game.team_names,
            matches=matches,
            seed=self.asked.seed,
        )
        options = state.options.model_dump(mode="json")
        return [
            MatchJob(
                f"bench-{one.index}",
                one,
                state.seats,
                {POLICY: POLICY},
                options,
                deadline_s=self.asked.deadline_s,
            )
            for one in plans
        ]

    async def _side(
        self,
        policies: Policies,
        side: SideName,
        jobs: Sequence[MatchJob],
        remark: str,
        *,
        measured: bool = True,
    ) -> None:
        self.book = book = Book(digits=" ".join(f"{self.sides % 10**DIGITS:0{DIGITS}d}"))
        self.sides += 1
        before = policies.facts()[POLICY]
        began = time.monotonic()
        if side == "direct":
            await self._direct(policies, remark)
            answered, ended, middle = book.close(), time.monotonic(), policies.facts()[POLICY]
        else:
            at_once = 1 if side == "one" else self.asked.concurrency
            wanted = jobs[: self.result.alone] if side == "one" else jobs
            answered, ended, middle = await self._play(policies, wanted, at_once, remark, whole=measured)
        if not answered:
            raise EngineFailed(f"the model answered no request; the last failure: {book.reason or 'none'}")
        if side == "many":
            self.requests = answered
        if measured:
            told = self._told(len(answered), ended - began, before, middle, policies.facts()[POLICY])
            self.result.rounds[side].append(told)
            self.result.sizes[side] += book.sizes
            self.result.failed_requests += book.failed

    async def _play(
        self, policies: Policies, jobs: Sequence[MatchJob], at_once: int, remark: str, *, whole: bool
    ) -> tuple[list[Request], float, dict[str, float]]:
        """Play, `at_once` at a time; return what was answered while so many ran, its end, and the facts of then.

        Whole, the matches that still run then are played out.
        """
        marked: tuple[list[Request], float, dict[str, float]] | None = None
        what = "matches one at a time" if at_once == 1 else f"matches, {at_once} at a time"
        waiting = iter(jobs)
        played = 0
        with tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
            running = {self._begin(policies, job, folder) for job in islice(waiting, at_once)}
            try:
                while running and (whole or marked is None):
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        self._note(task.result(), count=whole)
                        played += 1
                        job = next(waiting, None)
                        if job is not None:
                            running.add(self._begin(policies, job, folder))
                        elif marked is None:
                            marked = (self.book.close(), time.monotonic(), policies.facts()[POLICY])
                    self.progress(what, played, len(jobs), remark)
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        assert marked is not None
        return marked

    def _begin(self, policies: Policies, job: MatchJob, folder: str) -> asyncio.Task[MatchReport]:
        # Records are part of play, and written as a tournament writes them.
        written = replace(job, record=Path(folder) / f"{job.match}.arena")
        return asyncio.create_task(run_policy_match(written, policies=policies))

    def _note(self, report: MatchReport, *, count: bool) -> None:
        if report.error is not None:
            raise EngineFailed(f"a match could not be played: {report.error}")
        if count:
            for name in WRONG:
                self.result.wrong[name] += report.counts.get(name, 0)

    async def _direct(self, policies: Policies, remark: str) -> None:
        engine = policies.batcher(POLICY).engine
        for first in range(0, len(self.requests), self.result.call):
            await engine.complete(self.requests[first : first + self.result.call])
            self.progress("requests directly", first, len(self.requests), remark)

    def _told(
        self,
        answered: int,
        seconds: float,
        before: dict[str, float],
        middle: dict[str, float],
        after: dict[str, float],
    ) -> _Round:
        def made(name: str, until: dict[str, float]) -> float:
            return until.get(f"engine_{name}", 0.0) - before.get(f"engine_{name}", 0.0)

        cached = made("cached_tokens", middle)
        prompt, passes = made("prompt_tokens", after), made("passes", middle)
        decisions = answered / (2 if self.policy.mode == "two" else 1)
        self.result.decisions += round(decisions)
        return _Round(
            decisions_per_s=decisions / seconds,
            computed_per_s=(made("prompt_tokens", middle) - cached) / seconds,
            cached_per_s=cached / seconds,
            completion_per_s=made("completion_tokens", middle) / seconds,
            cached_share=made("cached_tokens", after) / prompt if prompt else 0.0,
            waited_p50_s=percentile(self.book.waited_s, 0.5),
            waited_p99_s=percentile(self.book.waited_s, 0.99),
            under_way=self.book.mean_under_way,
            pass_rows=made("pass_rows", middle) / passes if passes else None,
        )


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the least value that `share` of all values do not exceed; None where there are none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
