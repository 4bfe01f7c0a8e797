"""Episodes in the batch end as a replay of the same actions does."""

import numpy as np
import pytest

from agents.batch.grid import WAIT
from agents.batch.tasks import OUTCOMES, TaskBatch
from games.errors import BadTask
from games.tasks.check import replay
from games.tasks.generate import Knobs, generate
from games.tasks.grid import ACTIONS
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec

KNOBS = Knobs(side=8, objects=3, rule_depth=3, time_pressure=0.9, patrols=1, avoid=True)


def test_episodes_end_as_their_replay_does_and_begin_anew() -> None:
    specs = [generate(seed, KNOBS) for seed in range(30)]
    plans = [solve_task(spec).plan or () for spec in specs]
    batch = TaskBatch(specs)
    rng = np.random.default_rng(3)
    taken: list[list[str]] = [[] for _ in specs]
    ends = dict.fromkeys(OUTCOMES[1:], 0)
    for _ in range(150):
        legal = batch.worlds.legal()
        acts = np.empty(len(specs), dtype=np.uint8)
        for i, plan in enumerate(plans):
            at = len(taken[i])
            follow = at < len(plan) and taken[i] == list(plan[:at]) and rng.random() < 0.97
            acts[i] = ACTIONS.index(plan[at]) if follow else rng.choice(np.flatnonzero(legal[i]))
            taken[i].append(ACTIONS[acts[i]])
        outcome = batch.step(acts)
        for i, spec in enumerate(specs):
            played = replay(spec, taken[i])
            if outcome[i]:
                assert (played.kind, played.step) == (OUTCOMES[outcome[i]], len(taken[i]))
                ends[played.kind] += 1
                taken[i] = []
                assert batch.worlds.state(i) == specs[i].make_world().initial()
            else:
                assert played.kind == "unmet" and len(taken[i]) < spec.budget
            assert batch.steps[i] == len(taken[i])
    assert all(ends.values()), ends


def test_only_grids_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = generate(0, KNOBS)
    monkeypatch.setattr(TaskSpec, "make_world", lambda self: object())
    with pytest.raises(BadTask, match=r"^batch tasks\[0\]: got the world 'grid'[^\n]*$"):
        TaskBatch([spec])


def test_a_task_left_alone_runs_out_of_steps() -> None:
    spec = generate(0, Knobs(time_pressure=1.0))
    batch = TaskBatch([spec, spec])
    outcomes = [batch.step(np.full(2, WAIT))[0] for _ in range(2 * spec.budget)]
    assert [i + 1 for i, outcome in enumerate(outcomes) if outcome] == [spec.budget, 2 * spec.budget]
