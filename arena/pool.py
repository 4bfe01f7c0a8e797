"""Many match jobs on several processes: reports stream back as matches end, none is lost.

Each worker has a pipe and at most two chunks of jobs, so that neither side ever blocks on a full pipe while
the other waits. A worker that dies is replaced: its unreported jobs run again, one at a time, so that a job
that kills its worker is told apart from its neighbours; after its second time it is reported as failed. A
worker whose parent dies leaves at once, so nothing writes into a home that another command has taken over.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Self

from arena.errors import WorkerError
from arena.report import MatchReport
from arena.runner import MatchJob, failed, run_match
from replays.errors import RecordWriteFailed

CHUNK_S = 0.05
"""Seconds of work that a chunk aims at: small beside a run, large beside the pipe."""
MAX_CHUNK = 48
MAX_DEATHS_ALONE = 2
"""How often a job may kill the worker that runs it alone, before it is given up."""
MAX_DEATHS_IN_A_ROW = 8
"""Deaths without a single report between them, after which the run is given up."""
SEND_S = 0.05
"""Seconds for which a worker collects reports before it sends them."""
SMOOTHING = 0.2
"""Weight of the newest measurement in the mean time of a match."""

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_log = logging.getLogger("arena.pool")


class _Worker:
    def __init__(self, context: Any) -> None:
        self.connection, theirs = context.Pipe()
        watched, self.life = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(theirs, watched), daemon=True)
        with _one_thread_each():
            self.process.start()
        theirs.close()
        watched.close()
        self.pending: deque[MatchJob] = deque()
        self.chunks: deque[int] = deque()
        """Jobs not yet reported, by chunk."""
        self.seconds = 0.0
        """What the last reports took."""

    def send(self, chunk: list[MatchJob]) -> None:
        self.pending.extend(chunk)
        self.chunks.append(len(chunk))
        try:
            self.connection.send(chunk)
        except OSError:
            pass  # it has died: the sentinel says so and the chunk is still pending

    def take(self) -> list[MatchReport]:
        """Return the reports that have arrived. Raises `EOFError` or `OSError` after its death."""
        message: str | tuple[list[MatchReport], float] = self.connection.recv()
        if isinstance(message, str):
            raise RecordWriteFailed(message)
        reports, self.seconds = message
        for _ in reports:
            self.pending.popleft()
            self.chunks[0] -= 1
            if not self.chunks[0]:
                self.chunks.popleft()
        return reports

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.life.close()
        self.process.close()


class Pool:
    """Processes that play matches. Use it in `with`; leaving it stops them.

    Args:
        concurrency: processes; 1 plays in this one.
    """

    def __init__(self, concurrency: int = 1) -> None:
        self.concurrency = concurrency
        self.careful: deque[MatchJob] = deque()
        """Jobs of workers that died: they run one at a time."""
        self.deaths: Counter[str] = Counter()
        self.in_a_row = 0
        self.each_s = CHUNK_S
        """Mean seconds of a match, lately."""
        self.jobs: Iterator[MatchJob] = iter(())
        self.more = False
        self.workers: list[_Worker] = []

    def __enter__(self) -> Self:
        if self.concurrency > 1:
            self.context = _context()
            self.workers = [_Worker(self.context) for _ in range(self.concurrency)]
        else:
            self.loop = asyncio.Runner()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.concurrency > 1:
            for worker in self.workers:
                worker.stop()
        else:
            self.loop.close()

    def run(self, jobs: Iterable[MatchJob]) -> Iterator[MatchReport]:
        """Yield a report for every job, in the order in which matches end; jobs are taken as workers get free.

        Raises `RecordWriteFailed` where a record cannot be written, `WorkerError` where workers cannot live.
        """
        if self.concurrency == 1:
            for job in jobs:
                yield run_match(job, loop=self.loop)
            return
        self.jobs, self.more = iter(jobs), True
        self._feed()
        while any(worker.pending for worker in self.workers):
            yield from self._listen()
            self._feed()

    def _listen(self) -> Iterator[MatchReport]:
        ready = set(wait([source for w in self.workers for source in (w.connection, w.process.sentinel)]))
        for index, worker in enumerate(self.workers):
            try:
                if worker.connection in ready:
                    yield from self._take(worker)
                if worker.process.sentinel in ready:
                    while worker.connection.poll():
                        yield from self._take(worker)
                    raise EOFError
            except (EOFError, OSError):
                yield from self._bury(index)

    def _take(self, worker: _Worker) -> Iterator[MatchReport]:
        reports = worker.take()
        if reports:
            self.in_a_row = 0
            each = worker.seconds / len(reports)
            self.each_s += SMOOTHING * (each - self.each_s)
        yield from reports

    def _feed(self) -> None:
        for worker in self.workers:
            if self.careful and not worker.pending:
                worker.send([self.careful.popleft()])
        size = max(1, min(MAX_CHUNK, int(CHUNK_S / max(self.each_s, 1e-6))))
        while self.more:
            free = min(self.workers, key=lambda worker: (len(worker.chunks), len(worker.pending)))
            if len(free.chunks) >= 2 or self.careful or self._alone(free):
                return
            chunk = []
            for job in self.jobs:
                chunk.append(job)
                if len(chunk) >= size:
                    break
            else:
                self.more = False
            if chunk:
                free.send(chunk)

    def _alone(self, worker: _Worker) -> bool:
        return any(job.match in self.deaths for job in worker.pending)

    def _bury(self, index: int) -> Iterator[MatchReport]:
        worker = self.workers[index]
        worker.process.join()
        code = worker.process.exitcode
        pending, alone = list(worker.pending), len(worker.pending) == 1
        worker.stop()
        self.in_a_row += 1
        if self.in_a_row > MAX_DEATHS_IN_A_ROW:
            del self.workers[index]
            raise WorkerError(f"worker processes die before a match ends (the last with exit code {code})")
        _log.warning("a worker died with exit code %s; its %d matches run again", code, len(pending))
        for job in pending:
            self.deaths[job.match] += alone
            if self.deaths[job.match] >= MAX_DEATHS_ALONE:
                yield failed(job, f"the worker process died {MAX_DEATHS_ALONE} times (exit code {code})")
            else:
                self.careful.append(job)
        self.workers[index] = _Worker(self.context)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started here keep linear algebra to one thread: the processors are shared out already."""
    added = [name for name in THREAD_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["arena.pool"])
    return context


def _work(connection: "Connection[Any, Any]", life: "Connection[Any, Any]") -> None:
    """Run chunks of jobs until the parent closes the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which gets it too, decides
    threading.Thread(target=_leave_with_parent, args=(life,), daemon=True).start()
    try:
        with asyncio.Runner() as loop:
            while True:
                _run_chunk(connection.recv(), connection, loop)
    except (EOFError, OSError):
        sys.exit(0)


def _run_chunk(chunk: list[MatchJob], connection: "Connection[Any, Any]", loop: asyncio.Runner) -> None:
    reports: list[MatchReport] = []
    began = time.monotonic()
    for job in chunk:
        try:
            reports.append(run_match(job, loop=loop))
        except RecordWriteFailed as error:
            connection.send((reports, time.monotonic() - began))
            connection.send(str(error))
            return
        now = time.monotonic()
        if now >= began + SEND_S:
            connection.send((reports, now - began))
            reports, began = [], now
    if reports:
        connection.send((reports, time.monotonic() - began))


def _leave_with_parent(life: "Connection[Any, Any]") -> None:
    try:
        life.recv()
    except (EOFError, OSError):
        os._exit(1)
