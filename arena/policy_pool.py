"""Many matches with language models at the same time, in this process, on one event loop, over shared engines.

The engines are started with the first match. A match that ends makes room for the next; its report is yielded
while the others go on.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.spec import is_policy
from arena.pool import Pool
from arena.report import MatchReport
from arena.runner import MakeAgent, MatchJob, run_policy_match

_log = logging.getLogger("arena.policy_pool")


def has_policy(job: MatchJob) -> bool:
    """Whether a language model may sit in the job's match."""
    return any(is_policy(spec) for spec in job.players.values())


class PolicyPool:
    """Plays matches with language models. Use it in `with`; leaving it calls off what runs.

    Args:
        settings: of the engines, and how many matches run at the same time.
        home: the directory of the state, for adapters.
        make: makes the agents of the other players; by default the bots that their specs name.
    """

    def __init__(self, settings: PolicySettings, *, home: Path, make: MakeAgent | None = None) -> None:
        self.settings = settings
        self._make = make
        self.home = home
        self._runner = asyncio.Runner()
        self._policies: Policies | None = None
        self._running: set[asyncio.Task[MatchReport]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._policies is not None:
                self._runner.run(self._close(self._policies))
        finally:
            self._runner.close()

    def run(self, jobs: Iterable[MatchJob], *, specs: Sequence[str]) -> Iterator[MatchReport]:
        """Yield a report for every job, in the order in which matches end; jobs are taken as there is room.

        Args:
            jobs: matches with language models among their players.
            specs: the models that may sit in them.

        Raises a `PolicyError` where an engine does not start, `RecordWriteFailed` where a record cannot be written.
        """
        source = iter(jobs)
        more = True
        while more or self._running:
            while more and len(self._running) < self.settings.concurrency:
                job = next(source, None)
                if job is None:
                    more = False
                    break
                self._runner.run(self._begin(job, specs))
            if self._running:
                yield from self._runner.run(self._some())

    async def _begin(self, job: MatchJob, specs: Sequence[str]) -> None:
        if self._policies is None:
            _log.info("starting the models of %s", ", ".join(specs))
            policies = Policies(self.settings, home=self.home)
            await policies.start(specs)
            self._policies = policies
        task = asyncio.create_task(run_policy_match(job, policies=self._policies, make=self._make))
        self._running.add(task)

    async def _some(self) -> list[MatchReport]:
        """Return the reports of the matches that ended, at least one."""
        done, self._running = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        return [task.result() for task in done]

    def facts(self) -> dict[str, dict[str, float]]:
        """Return the counters and gauges of queues and engines, by engine; see `Policies.facts`."""
        return {} if self._policies is None else self._policies.facts()

    async def _close(self, policies: Policies) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await policies.close()


class Pools:
    """Plays matches where they belong: bots among themselves on several processes, language models here.

    Args:
        concurrency: processes.
        settings: of the language models.
        home: the directory of the state.
        specs: of all players; without a language model among them the processes start at once, else when needed.
    """

    def __init__(
        self, concurrency: int, *, settings: PolicySettings, home: Path, specs: Iterable[str]
    ) -> None:
        self.concurrency = concurrency
        self._settings = settings
        self._home = home
        self._models = sorted({spec for spec in specs if is_policy(spec)})
        self._stack = ExitStack()
        self._bots: Pool | None = None
        self._policies: PolicyPool | None = None

    def __enter__(self) -> Self:
        if not self._models:
            self._of_bots()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, jobs: Iterable[MatchJob], *, models: bool) -> Iterator[MatchReport]:
        """Yield a report for every job; `models` says whether language models sit in them, see `has_policy`."""
        if not models:
            return self._of_bots().run(jobs)
        if self._policies is None:
            self._policies = self._stack.enter_context(PolicyPool(self._settings, home=self._home))
        return self._policies.run(jobs, specs=self._models)

    def facts(self) -> dict[str, dict[str, float]]:
        """Return what the engines of language models counted so far, by engine; nothing where none ran."""
        return {} if self._policies is None else self._policies.facts()

    def _of_bots(self) -> Pool:
        if self._bots is None:
            self._bots = self._stack.enter_context(Pool(self.concurrency))
        return self._bots


def play_one(
    job: MatchJob, *, settings: PolicySettings, home: Path, make: MakeAgent | None = None
) -> MatchReport:
    """Play one match with language models; see `PolicyPool` for the arguments, and `run` for what is raised."""
    with PolicyPool(settings, home=home, make=make) as pool:
        (report,) = pool.run([job], specs=sorted(filter(is_policy, job.players.values())))
        return report
