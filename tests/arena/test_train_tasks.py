import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from agents.memory import Memory
from agents.policy.agent import GenerationSettings
from agents.policy.base import Completion, Request
from agents.policy.batcher import Batcher
from agents.policy.chat import ChatTokenizer
from agents.policy.presets import tiny_folder
from agents.training.config import TrainConfig
from arena.errors import TrainError
from arena.train_attempts import Attempts
from arena.train_tasks import STORE, TaskWorld, put_back
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec
from tests.agents.judges.judging import ScriptedEngine
from tests.arena.training import lines, run, small

TASKS: dict[str, Any] = {
    "tasks": 2,
    "attempts": 4,
    "skills": ["navigate", "fetch"],
    "level": 0.5,
    "validation": 1,
    "validation_attempts": 1,
    "questioning": {"pool": 4, "new": 3, "interval": 1},
    "navigating": {"share": 0.5, "floor": 0.0},
}
TOKENIZER = ChatTokenizer(tiny_folder())


class Planner(ScriptedEngine):
    """Solves every other attempt by a shortest plan, and waits through the others; remembers its prompts."""

    def __init__(self) -> None:
        super().__init__({})
        self.specs: dict[str, TaskSpec] = {}
        self.requests: list[Request] = []
        self.taken: dict[str, int] = {}
        self.tasks: dict[str, TaskSpec] = {}

    async def complete(self, requests: Sequence[Request]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Completion:
        self.requests.append(request)
        number = int(request.match.removeprefix("attempt-"))
        step = self.taken.get(request.match, 0)
        self.taken[request.match] = step + 1
        assert request.constraint is not None and request.constraint.choices is not None
        plan = solve_task(self.tasks[request.match]).plan if number % 2 == 0 else None
        action = plan[step] if plan else request.constraint.choices[-1]
        prompt = tuple(TOKENIZER.prompt_ids(request.messages))
        return Completion(action, prompt, (7, 4), (-0.5, 0.0), "stop", adapter=request.adapter)


@asynccontextmanager
async def _world(folder: Path, **changes: Any) -> AsyncIterator[tuple[TaskWorld, Planner]]:
    config: TrainConfig = small(games=[], tasks={**TASKS, **changes})
    engine = Planner()
    batcher = Batcher(engine)
    world = TaskWorld(
        config,
        folder=folder,
        batcher=batcher,
        playing=GenerationSettings(style="compact"),
        tokenizer=TOKENIZER,
    )
    whole = world._all

    async def told(tried: Any, *, adapter: str) -> None:
        engine.tasks |= {f"attempt-{one.number}": one.spec for one in tried}
        engine.taken.clear()  # an attempt that measures has the number of the one before it
        await whole(tried, adapter=adapter)

    world._all = told  # type: ignore[method-assign]
    try:
        yield world, engine
    finally:
        await batcher.close()
        world.close()


def _attempts(
    folder: Path, updates: int, **changes: Any
) -> tuple[list[Attempts], dict[str, Any], list[Request]]:
    async def go() -> tuple[list[Attempts], dict[str, Any], list[Request]]:
        async with _world(folder, **changes) as (world, engine):
            found = []
            for update in range(updates):
                found.append(await world.attempt(update, adapter="x@1"))
                world.commit(found[-1])
            return found, world.state(), engine.requests

    return asyncio.run(go())


def test_basic_attempts_a_fixed_pool_and_nothing_else(tmp_path: Path) -> None:
    found, state, requests = _attempts(tmp_path, 3)
    pool = {key for key, _ in state["pool"]}
    assert len(pool) == 4 and len(state["held_out"]) == 2
    for one in found:
        assert (one.made, one.plain, one.advised) == (8, 8, 0)
        assert {attempt.spec.hash for attempt in one.tried} <= pool
        assert not any(any(labels) for labels in one.labels)
        assert {trajectory.outcome for trajectory in one.trajectories} == {0.0, 1.0}
        assert one.won == 4, "every other attempt succeeded"
    assert not any("advice" in message.content for request in requests for message in request.messages)


@pytest.mark.parametrize("mode", ["basic", "overall"])
def test_what_validates_never_enters_training(mode: str, tmp_path: Path) -> None:
    found, state, _ = _attempts(tmp_path, 4, mode=mode)
    held = {key for key, _ in state["held_out"]}
    trained = {trajectory.deal for one in found for trajectory in one.trajectories}
    assert len(held) == 2 and trained and not {key[:16] for key in held} & trained
    with Memory(tmp_path / STORE) as store:
        entries = store.tasks(limit=1000)
        assert {entry.record.spec.hash for entry in entries if entry.record.status == "test"} >= held
        assert not held & {entry.record.spec.parent for entry in entries}
        assert not held & {one.episode.task for one in store.episodes(limit=1000)}


def test_a_task_that_is_held_out_is_refused_even_where_it_came_into_the_pool(tmp_path: Path) -> None:
    async def go() -> None:
        async with _world(tmp_path) as (world, _):
            await world.begin()
            world.pool = [*world.held_out]
            await world.attempt(0, adapter="x@1")

    with pytest.raises(TrainError, match="is held out and must not be trained on"):
        asyncio.run(go())


def test_questioning_sets_new_tasks_at_its_interval(tmp_path: Path) -> None:
    changes = {"questioning": {"enabled": True, "pool": 4, "new": 3, "interval": 2}}
    found, state, _ = _attempts(tmp_path, 5, **changes)
    assert [bool(one.rows) for one in found] == [True, False, True, False, True]
    proposed = {record.spec.hash for one in found for record in one.proposed}
    assert {attempt.spec.hash for one in found for attempt in one.tried} <= proposed
    assert len(state["pool"]) <= 4 and state["next_task"] == 9


def test_advice_goes_to_a_share_and_is_stripped_from_what_is_learned_from(tmp_path: Path) -> None:
    found, _, requests = _attempts(tmp_path, 4, navigating={"enabled": True, "share": 0.5, "floor": 0.0})
    assert found[0].advised == 0, "nothing was learnt yet"
    later = found[-1]
    assert later.advised == later.plain == 4
    with_advice = {f"attempt-{one.number}" for some in found for one in some.tried if one.advice}
    for request in requests:
        text = request.messages[-1].content
        assert text.startswith("advice\n> ") == (request.match in with_advice)
    hint = TOKENIZER.prompt_ids(requests[0].messages)
    assert hint
    prompts = {request.match: TOKENIZER.prompt_ids(request.messages) for request in requests}
    for some in found:
        for one, trajectory in zip(some.tried, some.trajectories, strict=True):
            assert all(step.stripped == bool(one.advice) for step in trajectory.steps)
            shown = prompts[f"attempt-{one.number}"]
            last = trajectory.steps[-1].prompt_ids
            assert (last == tuple(shown)) == (not one.advice)
            assert len(last) <= len(shown)
    with Memory(tmp_path / STORE) as store:
        offered = [entry for entry in store.lessons(status=None) if entry.offered]
        assert sum(entry.offered for entry in offered) == sum(
            len(one.advice) for s in found for one in s.tried
        )


def test_backing_off_gives_less_advice(tmp_path: Path) -> None:
    async def go() -> tuple[int, int]:
        async with _world(tmp_path, navigating={"enabled": True, "share": 1.0, "floor": 0.0}) as (world, _):
            world.commit(await world.attempt(0, adapter="x@1"))
            half = await world.attempt(1, adapter="x@1", advice=0.5)
            none = await world.attempt(1, adapter="x@1", advice=0.0)
            return half.advised, none.advised

    assert asyncio.run(go()) == (4, 0)


def test_attributing_labels_steps_by_the_rules(tmp_path: Path) -> None:
    (found,), _, _ = _attempts(tmp_path, 1, attributing={"enabled": True})
    for one, labels in zip(found.tried, found.labels, strict=True):
        assert len(labels) == len(one.steps)
        if one.success:
            assert labels == [1] * len(labels), "every step of a shortest plan leads nearer"
        else:
            assert labels and 1 not in labels


def test_the_tasks_that_were_solved_first_are_attempted_again_at_each_evaluation(tmp_path: Path) -> None:
    async def go() -> tuple[list[Any], list[list[tuple[str, str]]], set[str]]:
        measured, solved = [], []
        async with _world(tmp_path, retention=3, validation_attempts=2) as (world, engine):
            for update in range(3):
                measured.append(await world.validate(update, adapter="x@1"))
                solved.append(world.solved)
                world.commit(await world.attempt(update, adapter="x@1"))
            measured.append(await world.validate(3, adapter="x@1"))
            world.restore(json.loads(json.dumps(world.state())))
            solved.append(world.solved)
            return measured, solved, {match for match in engine.taken if match.startswith("attempt--")}

    measured, solved, matches = asyncio.run(go())
    assert "retention" not in measured[0] and solved[0] == []
    assert measured[1]["retention"]["tasks"] == 2, "both tasks of the first update were solved"
    assert len(solved[-1]) == 3 and solved[-1][:2] == solved[1], "the first that were solved stay"
    last = measured[-1]
    assert (last["tasks"], last["attempts"]) == (2, 4)
    assert (last["retention"]["tasks"], last["retention"]["attempts"]) == (3, 6)
    # The planner solves even numbers: as many of the attempts at a task succeed whatever they measure.
    assert last["success"] == last["retention"]["success"] == 0.5
    assert last["retention"]["low"] < 0.5 < last["retention"]["high"]
    assert len(matches) == 4 + 6, "an attempt has the same number, and so the same seeds, at every evaluation"


def test_a_world_that_is_put_back_goes_on_alike(tmp_path: Path) -> None:
    async def go(folder: Path, *, again: bool) -> list[Any]:
        (folder / "checkpoint").mkdir(parents=True)
        found: list[Any] = []
        async with _world(folder, mode="overall") as (world, _):
            for update in range(2):
                world.commit(await world.attempt(update, adapter="x@1"))
            world.save(folder / "checkpoint")
            state = json.loads(json.dumps(world.state()))
            if again:  # what comes after the checkpoint is lost
                world.commit(await world.attempt(2, adapter="x@1"))
        put_back(folder, folder / "checkpoint")
        async with _world(folder, mode="overall") as (world, _):
            world.restore(state)
            for update in range(2, 4):
                some = await world.attempt(update, adapter="x@1")
                world.commit(some)
                found.append([(one.number, one.spec.hash, one.advice, one.actions) for one in some.tried])
            assert world.store.check() == []
        return found

    assert asyncio.run(go(tmp_path / "a", again=True)) == asyncio.run(go(tmp_path / "b", again=False))


def test_a_store_of_an_abandoned_run_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / STORE).write_bytes(b"old")
    put_back(tmp_path, None)
    assert not (tmp_path / STORE).exists()


@pytest.mark.slow
def test_tasks_are_trained_on_beside_games_and_a_killed_loop_goes_on(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "tasks": {
            **TASKS,
            "mode": "overall",
            "tasks": 2,
            "attempts": 2,
            "skills": ["navigate"],
            "level": 0.0,
        },
        "rollout": {"plays": 2, "deals": 2},
        "budget": {"updates": 2},
        "checkpoint_every": 1,
    }
    found = run(small(**changes), tmp_path)
    for line in lines(tmp_path, "update"):
        assert line["tasks"]["attempts"] == 4 and line["trajectories"] == 8 + 4
        assert {role.split()[0] for role in line["by_role"]} == {"kuhn", "task"}
    for line in lines(tmp_path, "evaluation"):
        assert line["tasks"]["attempts"] == 1 and 0 <= line["tasks"]["low"] <= line["tasks"]["high"] <= 1
    assert found.progress.attempts == 8
    more = small(**{**changes, "budget": {"updates": 3}})
    assert run(more, tmp_path, resume=True).progress.attempts == 12
    run(more, tmp_path / "whole")
    whole = lines(tmp_path / "whole", "update")
    assert [row["tasks"] for row in lines(tmp_path, "update")] == [row["tasks"] for row in whole]


@pytest.mark.slow
def test_tasks_alone_are_trained_on(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "games": [],
        "tasks": {**TASKS, "attempts": 2, "skills": ["navigate"], "level": 0.0},
        "budget": {"updates": 1},
    }
    run(small(**changes), tmp_path)
    (line,) = lines(tmp_path, "update")
    assert line["tasks"]["attempts"] == line["trajectories"] == 4
    assert line["failures"] == 0 and {role.split()[0] for role in line["by_role"]} == {"task"}
