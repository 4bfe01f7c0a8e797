"""Hard text tasks made ahead of time, each with a shortest plan, so that nobody who needs one waits on the solver.

They are data of this package, read once by the import system as its modules are, and pinned: `DIGEST` is the
sha-256 of the file, so whoever runs this version has exactly these tasks. `benchmarks/tasks_text_pool.py` makes the
file and prints the digest; it has to be run again when the text world's rules, its generator or the form of a task
change.

Each line of the file is JSON: `task` (`TaskSpec.to_data`), `plan` and `digest` (`TaskSpec.digest`).
"""

import hashlib
import json
import pkgutil
from functools import cache
from typing import NamedTuple

from games.errors import BadTask
from games.rng import Chance, derive_seed
from games.tasks.check import Attempt, check
from games.tasks.spec import TaskSpec

FILE = "text_pool.jsonl"
DIGEST = "b25e1a6661f04e194aa65447c9616578ead820ac96c6444cc8aa82d98baec578"


class PoolTask(NamedTuple):
    """A task with a shortest plan for it."""

    spec: TaskSpec
    plan: tuple[str, ...]


def pool_size() -> int:
    """Return how many hard text tasks there are. Raises `BadTask` if the file is not the one of this version."""
    return len(_lines())


@cache
def pool_task(index: int) -> PoolTask:
    """Return one of them, checked: its hash is as recorded and its plan solves it.

    Raises `BadTask` if the file is not the one of this version, `IndexError` beyond the last.
    """
    return read_line(_lines()[index], where=f"{FILE} line {index + 1}")


def draw_task(seed: int) -> PoolTask:
    """Return the task that a seed gives, each as likely."""
    return pool_task(Chance(derive_seed(seed, FILE)).draw(pool_size()))


def read_line(line: bytes, *, where: str) -> PoolTask:
    """Read and check one line of the file. Raises `BadTask` in one line that begins with `where`."""
    try:
        data = json.loads(line)
        spec, plan, digest = TaskSpec.from_data(data["task"]), tuple(data["plan"]), data["digest"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadTask(f"{where}: no task of the pool, {type(error).__name__}") from None
    except BadTask as error:
        raise BadTask(f"{where}: no task of the pool, {error}") from None
    if spec.digest != digest:
        raise BadTask(f"{where}: recorded with the hash {digest}, the task has {spec.digest}")
    verdict = check(spec, Attempt(spec.hash, plan))
    if not verdict.success:
        raise BadTask(f"{where}: its plan does not solve it, {verdict.reason}")
    return PoolTask(spec, plan)


def split(data: bytes, *, digest: str) -> tuple[bytes, ...]:
    """Return the lines of the file whose sha-256 is `digest`. Raises `BadTask` if it is another."""
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise BadTask(f"{FILE}: got a file with sha-256 {found}, this version has {digest}")
    return tuple(data.splitlines())


@cache
def _lines() -> tuple[bytes, ...]:
    return split(pkgutil.get_data(__package__, FILE) or b"", digest=DIGEST)
