"""Grid worlds in batches beside the single engine and beside JaxUED's maze: steps per second on one core.

All sides take uniformly random actions, begin anew when an episode ends, and count CPU time. Ours, 4,096 worlds in
512 different levels: 8×8 with a key, its door and an exit, and 13×13 with five objects, three distractors, two
patrols and a goal of four conditions; every step is judged (goal, patrols, budget), and a line apart also makes
the 5×5 window around each actor. The single engine plays the same tasks one after the other. JaxUED's maze, 13×13
with 60 walls, makes its 5×5 view at every step, as its `step` always does; it is compiled, vectorised and scanned
over whole rounds, so that no Python runs in between, with XLA held to one thread.

    python -m benchmarks.tasks_batch
"""

import os
import random
from collections.abc import Callable, Sequence

import numpy as np

from agents.batch.grid import GridBatch
from agents.batch.tasks import TaskBatch
from benchmarks._measure import (
    Side,
    Spread,
    Work,
    arguments,
    interleave,
    machine,
    positive,
    ratios,
    table,
    verdict,
)
from games.tasks.generate import Knobs, generate
from games.tasks.goals import OPEN
from games.tasks.grid import ACTIONS
from games.tasks.spec import TaskSpec

STATED = 433_000
"""Steps per second of JaxUED's maze on a machine like the one that the target was set for."""

SMALL = Knobs(side=8, objects=2, obstacles=0)
LARGE = Knobs(
    side=13, objects=5, rule_depth=4, distractors=3, patrols=2, obstacles=8, deliver=True, avoid=True
)
LAYOUTS = 512
"""How many different levels the worlds of a batch are in; making more takes longer than stepping them."""

SINGLE, PEER = "ours, one world at a time, 8×8", "JaxUED maze, 13×13, 5×5 view"
PEER_HINT = "pip install jaxued six, in an environment of its own if you like"


def batch_side(specs: Sequence[TaskSpec], *, view: bool) -> Callable[[int, int], Work]:
    """Return what plays rounds of so many steps in all the tasks at once."""
    batch = TaskBatch(specs)

    def play(steps: int, seed: int) -> Work:
        rng = np.random.default_rng(seed)
        ended = 0
        for _ in range(steps):
            ended += int(
                np.count_nonzero(batch.step(rng.integers(0, len(ACTIONS), len(batch), dtype=np.uint8)))
            )
            if view:
                batch.worlds.view(2)
        return Work(ended, steps * len(batch))

    return play


def single_side(specs: Sequence[TaskSpec]) -> Callable[[int, int], Work]:
    """Return what plays the tasks one after the other, a hundredth as many steps."""
    worlds = [(spec, spec.make_world()) for spec in specs]

    def play(steps: int, seed: int) -> Work:
        rng = random.Random(seed)
        left = total = max(1_000, steps * len(specs) // 100)
        games = 0
        while left > 0:
            spec, world = worlds[rng.randrange(len(worlds))]
            state = world.initial()
            progress = spec.goal.start(world.facts(state))
            games += 1
            for _ in range(min(left, spec.budget)):
                state = world.step(state, rng.choice(ACTIONS))
                progress = spec.goal.fold(progress, world.facts(state))
                left -= 1
                if world.lost(state) or spec.goal.status(progress) != OPEN:
                    break
        return Work(games, total)

    return play


def peer_side(count: int) -> Callable[[int, int], Work] | None:
    """Return the same for JaxUED's maze; None where it is not installed."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    try:
        import jax
        from jaxued.environments.maze import Maze, make_level_generator
    except ImportError:
        return None
    maze = Maze(max_height=13, max_width=13, agent_view_size=5)
    params = maze.default_params
    levels = jax.vmap(make_level_generator(13, 13, 60))(jax.random.split(jax.random.PRNGKey(0), count))
    reset = jax.vmap(maze.reset_to_level, in_axes=(0, 0, None))
    first_view, first = reset(jax.random.split(jax.random.PRNGKey(1), count), levels, params)
    step = jax.vmap(maze.step_env, in_axes=(0, 0, 0, None))

    def one(carry, key):  # type: ignore[no-untyped-def]
        state, ended, checked = carry
        actions = jax.random.randint(key, (count,), 0, 3)
        view, state, _, done, _ = step(jax.random.split(key, count), state, actions, params)

        def anew(a, b):  # type: ignore[no-untyped-def]
            return jax.numpy.where(done.reshape(done.shape + (1,) * (a.ndim - 1)), a, b)

        state = jax.tree_util.tree_map(anew, first, state)
        view = jax.tree_util.tree_map(anew, first_view, view)
        checked += view.image.sum()  # a view that nobody reads would be compiled away
        return (state, ended + done.sum(), checked), None

    @jax.jit
    def rollout(key, state, keys):  # type: ignore[no-untyped-def]
        return jax.lax.scan(one, (state, 0, 0.0), keys)[0]

    held = {"state": first}

    def play(steps: int, seed: int) -> Work:
        keys = jax.random.split(jax.random.PRNGKey(seed), ROUND)
        ended = 0
        for _ in range(max(1, steps // ROUND)):
            held["state"], done, _ = jax.block_until_ready(rollout(keys[0], held["state"], keys))
            ended += int(done)
        return Work(ended, max(1, steps // ROUND) * ROUND * count)

    return play


ROUND = 20
"""Steps compiled into one call of JaxUED's maze."""


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments("Grid worlds in batches: steps per second.", games=200, rounds=7)
    parser.add_argument("--worlds", type=positive, default=4096, help="worlds in the batch")
    flags = parser.parse_args(args)
    small, large = _tasks(SMALL, flags.worlds), _tasks(LARGE, flags.worlds)
    sides = [
        Side("ours, 8×8", batch_side(small, view=False)),
        Side("ours, 8×8, 5×5 view", batch_side(small, view=True)),
        Side("ours, 13×13", batch_side(large, view=False)),
        Side("ours, 13×13, 5×5 view", batch_side(large, view=True)),
        Side(SINGLE, single_side(small)),
    ]
    peer = peer_side(flags.worlds)
    if peer is not None:
        sides.append(Side(PEER, peer))
    print(
        f"{flags.worlds} worlds, {flags.rounds} rounds of {flags.games} steps each in turns, CPU time of one core"
    )
    print(machine("evoke-arena", "numpy", "jaxued", "jax"))
    samples = interleave(sides, games=flags.games, rounds=flags.rounds)
    rows = []
    for name, taken in samples.items():
        speed = Spread.of(sample.actions_per_s / 1e6 for sample in taken).show(".3f")
        against = [
            ratios(taken, samples[other], per="actions_per_s").show(".1f") if other in samples else "-"
            for other in (SINGLE, PEER)
        ]
        rows.append([name, speed, *against])
    print(table(["side", "million steps/s", "× the single engine", "× JaxUED"], rows))
    for name in ("ours, 8×8", "ours, 13×13, 5×5 view"):
        median = Spread.of(sample.actions_per_s for sample in samples[name]).median
        print(f"{name}: {median:,.0f} steps/s, " + verdict(median, target=STATED))
    if peer is None:
        print(f"JaxUED is not installed, so there is no ratio to it: {PEER_HINT}")
    print(f"one state is compared with the single engine's: {_agrees(small)}")


def _tasks(knobs: Knobs, count: int) -> list[TaskSpec]:
    """Return so many tasks, of which up to `LAYOUTS` are different."""
    made = [generate(seed, knobs) for seed in range(min(count, LAYOUTS))]
    return [made[i % len(made)] for i in range(count)]


def _agrees(specs: Sequence[TaskSpec]) -> bool:
    """Whether both engines are in the same states after a few random steps, once more and here."""
    worlds = [spec.make_world() for spec in specs[:64]]
    batch = GridBatch(worlds)  # type: ignore[arg-type]
    states = [world.initial() for world in worlds]
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = rng.integers(0, len(ACTIONS), len(worlds))
        batch.step(actions)
        states = [w.step(s, ACTIONS[a]) for w, s, a in zip(worlds, states, actions, strict=True)]
    found = zip(batch.cells.tolist(), batch.phases.tolist(), batch.bits.tolist(), strict=True)
    return [tuple(state) for state in states] == list(found)


if __name__ == "__main__":
    main()
