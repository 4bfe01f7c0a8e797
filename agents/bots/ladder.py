"""A fixed ladder of reference bots for tasks: how many of them solve a task says how hard it is.

    random     anything legal, each as likely
    greedy     what brings something that the goal names; else takes and opens whatever there is; else walks about
    near       looks ahead over everything that could be done, at most 15 nodes far; follows what leads to the goal,
               and is greedy where it sees nothing
    middle     the same with 60 nodes
    far        the same with 250 nodes

The three that look ahead slip with probability 0.1 and do anything legal then. The bots know no more of a world
than its contract (`games.tasks.world`), so they stand in every world. The ladder is a measuring rod: no rung is ever
changed.
"""

import random
from dataclasses import dataclass
from typing import Any, NamedTuple

from games.tasks.goals import BROKEN, HOLDS, Goal, Progress
from games.tasks.spec import TaskSpec
from games.tasks.world import WAIT, World

BLIND_STEPS = 4
"""How many steps a bot that saw no way goes before it looks ahead again."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One reference bot: how far it looks ahead, how often it slips, and whether it is greedy where it sees nothing."""

    name: str
    nodes: int = 0
    slip: float = 0.0
    greedy: bool = True


LADDER = (
    Rung("random", greedy=False),
    Rung("greedy"),
    Rung("near", nodes=15, slip=0.1),
    Rung("middle", nodes=60, slip=0.1),
    Rung("far", nodes=250, slip=0.1),
)
"""The rungs, weakest first."""

RUNGS = {rung.name: rung for rung in LADDER}


class Attempted(NamedTuple):
    """How an attempt went."""

    success: bool
    actions: tuple[str, ...]


def look_ahead(
    world: World[Any], goal: Goal, *, state: Any, progress: Progress, nodes: int
) -> tuple[str, ...] | None:
    """Return a shortest way to the goal if one is found among the nearest `nodes` nodes.

    Everything legal is looked at, distractors too, so a cluttered world is seen less far into.
    """
    came: dict[tuple[Any, Progress], tuple[tuple[Any, Progress], str] | None] = {(state, progress): None}
    frontier = [(state, progress)]
    while frontier:
        reached = []
        for node in frontier:
            for action in world.legal(node[0]):
                after = world.step(node[0], action)
                folded = goal.fold(node[1], world.facts(after))
                found = (after, folded)
                status = goal.status(folded)
                if found in came or status == BROKEN or world.lost(after) is not None:
                    continue
                came[found] = (node, action)
                if status == HOLDS:
                    return _way(came, found)
                if len(came) >= nodes:
                    return None
                reached.append(found)
        frontier = reached
    return None


def _way(came: dict[Any, Any], node: Any) -> tuple[str, ...]:
    actions = []
    while came[node] is not None:
        node, action = came[node]
        actions.append(action)
    return tuple(reversed(actions))


def greedy(world: World[Any], goal: Goal, *, state: Any, progress: Progress, rng: random.Random) -> str:
    """Return what brings something the goal names, else something to take or open, else somewhere to go."""
    facts, names = world.facts(state), goal.names()
    bringing, handling, moving = [], [], []
    legal = world.legal(state)
    for action in legal:
        after = world.step(state, action)
        gained = world.facts(after) - facts
        folded = goal.fold(progress, world.facts(after))
        status = goal.status(folded)
        if status == BROKEN or world.lost(after) is not None:
            continue
        kind = world.act_kind(action)
        if status == HOLDS:
            return action
        if any(names.issuperset(fact[1:]) for fact in gained) and kind != "move":
            bringing.append(action)
        elif kind in ("take", "open"):
            handling.append(action)
        elif kind != "wait":
            moving.append(action)
    return rng.choice(bringing or handling or moving or [WAIT])


class Climber:
    """A rung at one task: gives the next action, and remembers only the way it is on."""

    def __init__(self, rung: Rung, world: World[Any], goal: Goal) -> None:
        self.rung, self.world, self.goal = rung, world, goal
        self._way: list[str] = []
        self._blind = 0

    def act(self, state: Any, progress: Progress, rng: random.Random) -> str:
        """Return what this bot does in a state that is not lost, where the goal is still open."""
        rung = self.rung
        if rung.slip and rng.random() < rung.slip:
            self._way, self._blind = [], 0
            return rng.choice(self.world.legal(state))
        if not rung.greedy:
            return rng.choice(self.world.legal(state))
        if not self._way and rung.nodes:
            if self._blind:
                self._blind -= 1
            else:
                way = look_ahead(self.world, self.goal, state=state, progress=progress, nodes=rung.nodes)
                self._way, self._blind = list(way or ()), 0 if way else BLIND_STEPS
        if self._way:
            return self._way.pop(0)
        return greedy(self.world, self.goal, state=state, progress=progress, rng=rng)


def attempt(spec: TaskSpec, rung: Rung, *, seed: int, world: World[Any] | None = None) -> Attempted:
    """Let a rung attempt a task; the same seed gives the same attempt. `world` saves building it again."""
    world = spec.make_world() if world is None else world
    goal, rng = spec.goal, random.Random(seed)
    bot = Climber(rung, world, goal)
    state = world.initial()
    progress = goal.start(world.facts(state))
    actions: list[str] = []
    while (
        goal.status(progress) not in (HOLDS, BROKEN) and len(actions) < spec.budget and not world.lost(state)
    ):
        action = bot.act(state, progress, rng)
        actions.append(action)
        state = world.step(state, action)
        progress = goal.fold(progress, world.facts(state))
    return Attempted(goal.status(progress) == HOLDS and world.lost(state) is None, tuple(actions))
