"""What the tests of real engines share: a loop on a thread of its own, matches as jobs, and what their records say."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.base import Agent, Seat
from agents.players import make_agent
from agents.policy.base import BASE, Completion, Constraint, Message, Request
from agents.policy.presets import tiny_folder
from agents.policy.service import Policies
from arena.report import MatchReport
from arena.runner import MatchJob, run_policy_match
from arena.schedule import MatchPlan
from games.referee import Input
from replays.reader import read_record
from replays.verify import verify
from tests.agents.policy.models import save_lora

REAL = [
    pytest.mark.vllm,
    pytest.mark.timeout(600),
    # Neither is ours: both are said while vLLM is imported or let go of.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed context:ResourceWarning"),
]
"""Marks of tests that run vLLM."""

AGREE = 1e-3
"""How far log-probabilities of two back ends may be apart."""


class Loop:
    """An event loop on a thread, so that an engine outlives the test that started it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engines")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any], *, timeout_s: float = 540.0) -> Any:
        """Return what `work` returns, run on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def until(condition: Callable[[], object]) -> None:
    """Return once `condition` holds. The engine is another process, which tells of nothing but its answers."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def job(
    folder: Path, name: str, seating: Sequence[str], *, deadline_s: float = 300.0, **players: str
) -> MatchJob:
    """Return a match of Avalon with a record in `folder`; `players` are the specs of the names in `seating`."""
    plan = MatchPlan(0, "avalon", seed=len(name), deal=0, round=0, seating=tuple(seating))
    return MatchJob(name, plan, len(seating), players, deadline_s=deadline_s, record=folder / f"{name}.arena")


async def played(
    policies: Policies, jobs: Sequence[MatchJob], *, make: Callable[[str, Seat], Agent] = make_agent
) -> list[MatchReport]:
    """Play matches at the same time; each must have a record that verifies."""
    reports = await asyncio.gather(*(run_policy_match(one, policies=policies, make=make) for one in jobs))
    for one, report in zip(jobs, reports, strict=True):
        assert report.error is None, report.error
        assert one.record is not None and verify(read_record(one.record)).ok
    return list(reports)


def traces(job: MatchJob) -> list[dict[str, Any]]:
    """Return the traces of all decisions of a match."""
    assert job.record is not None
    record = read_record(job.record)
    return [entry.trace for entry in record.entries if isinstance(entry, Input) and entry.trace]


def make_adapter(folder: Path, *, seed: int) -> Path:
    """Return a folder with a random LoRA adapter of the embedded model, slight enough to end its speeches."""
    from safetensors.torch import load_file, save_file

    weights = save_lora(tiny_folder(), folder, seed=seed) / "adapter_model.safetensors"
    save_file({name: tensor * 0.5 for name, tensor in load_file(weights).items()}, weights)
    return folder


def some_requests(*, adapter: str, seeds: int = 12) -> list[Request]:
    """Return requests of every kind, each with several seeds: choices that begin each other, and free text."""
    votes = Constraint(choices=("approve", "reject"))
    teams = Constraint(choices=("0, 1", "0, 1, 2", "0, 2", "1", "10", "Merlin’s 1"))
    long = "\n".join(f"quest {i}: seat {i % 5} proposes 0, {i % 4 + 1}" for i in range(12))
    asked = [
        Request((Message("user", "vote on 0, 1"),), votes),
        Request((Message("system", "avalon"), Message("user", f"{long}\nteam ?")), teams, temperature=1.5),
        Request((Message("user", f"{long}\nvote ?"),), votes, temperature=0.7, top_p=0.8),
        Request((Message("user", "say one word"),), max_tokens=4, temperature=0.3, top_p=0.6),
        Request((Message("user", f"{long}\nteam !"),), teams, temperature=0.0),
    ]
    return [
        Request(
            one.messages,
            one.constraint,
            one.max_tokens,
            one.temperature,
            one.top_p,
            seed,
            adapter,
            f"m{seed}",
        )
        for one in asked
        for seed in range(seeds)
    ]


def mixed_requests(*adapters: str) -> list[Request]:
    """Return `some_requests` of several adapters, so ordered that every batch has some of each."""
    return [
        one for like in zip(*(some_requests(adapter=name) for name in adapters), strict=True) for one in like
    ]


def compare(requests: Sequence[Request], ours: Sequence[Any], theirs: Sequence[Any]) -> int:
    """Compare the completions of two back ends token by token where both drew the same, and return how many those are.

    Every constrained text must be one of its choices, and the prompts must be the same tokens.
    """
    drawn: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for request, completion in zip(requests, theirs, strict=True):
        assert isinstance(completion, Completion), completion
        drawn[_key(request, completion)] = completion.logprobs
    same = 0
    for request, completion, other in zip(requests, ours, theirs, strict=True):
        assert isinstance(completion, Completion), completion
        assert completion.prompt_ids == other.prompt_ids
        assert len(completion.logprobs) == len(completion.token_ids) > 0
        if request.constraint is not None:
            assert request.constraint.choices is not None and completion.text in request.constraint.choices
            assert completion.finish_reason == "stop"
        logprobs = drawn.get(_key(request, completion))
        if logprobs is not None:
            assert completion.logprobs == pytest.approx(logprobs, abs=AGREE)
            same += 1
    return same


def apart(requests: Sequence[Request], answers: Sequence[Any], adapter: str) -> float:
    """Return how far an adapter's log-probabilities are at most from the base's, of the same tokens asked alike."""
    base: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for request, answer in zip(requests, answers, strict=True):
        if request.adapter == BASE:
            base[_key(request, answer)] = answer.logprobs
    most = 0.0
    for request, answer in zip(requests, answers, strict=True):
        found = base.get(_key(replace(request, adapter=BASE), answer))
        if request.adapter == adapter and found is not None:
            most = max(most, *(abs(a - b) for a, b in zip(found, answer.logprobs, strict=True)))
    return most


def _key(request: Request, completion: Completion) -> tuple[Any, ...]:
    asked = json.dumps([request.messages, request.temperature, request.top_p])
    return (asked, request.constraint, request.adapter, completion.token_ids)
