"""Episodes of many grid tasks at once: step, judge, begin anew."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.batch.goals import GoalBatch
from agents.batch.grid import GridBatch
from games.errors import BadTask
from games.tasks.goals import BROKEN, HOLDS
from games.tasks.grid import Grid
from games.tasks.spec import TaskSpec

OUTCOMES = ("going on", "solved", "unmet", "broken", "lost")
"""What a step can bring, by number; the last four as `games.tasks.check.replay` calls them (unmet: out of steps)."""

GOING_ON, SOLVED, UNMET, TASK_BROKEN, LOST = range(len(OUTCOMES))


class TaskBatch:
    """One episode of each task, begun anew at the step after it ended.

    An action that cannot be done is a wait here, where a verdict would refuse the attempt; `worlds.legal()` says
    which can be done.
    """

    def __init__(self, specs: Sequence[TaskSpec]) -> None:
        grids = []
        for i, spec in enumerate(specs):
            world = spec.make_world()
            if not isinstance(world, Grid):
                raise BadTask(
                    f"batch tasks[{i}]: got the world {spec.world!r}, only 'grid' is stepped in batches"
                )
            grids.append(world)
        self.worlds = GridBatch(grids)
        self.goals = GoalBatch(self.worlds, [spec.goal for spec in specs])
        self.steps = np.zeros(len(specs), dtype=np.int32)
        """How many steps the episode of each task has had; 0 right after one ended."""
        self._budget = np.array([spec.budget for spec in specs], dtype=np.int32)

    def __len__(self) -> int:
        return len(self.worlds)

    def step(self, actions: NDArray[Any]) -> NDArray[np.int8]:
        """Take one step in every task and return what it brought, by the numbers of `OUTCOMES`.

        Episodes that ended are back at their initial state when this returns. Raises as `GridBatch.step` does.
        """
        self.worlds.step(actions)
        self.goals.fold()
        self.steps += 1
        status = self.goals.status
        outcome = np.zeros(len(self), dtype=np.int8)
        outcome[self.steps >= self._budget] = UNMET
        outcome[status == HOLDS] = SOLVED
        outcome[status == BROKEN] = TASK_BROKEN
        outcome[self.worlds.lost] = LOST
        ended = outcome != GOING_ON
        if ended.any():
            self.worlds.reset(ended)
            self.goals.reset(ended)
            self.steps[ended] = 0
        return outcome
