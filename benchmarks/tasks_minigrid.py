"""The grid world beside MiniGrid's DoorKey-8x8: steps per second, and levels per second.

Steps: uniformly random actions, no rendering; an episode ends when the goal holds or after 640 steps (DoorKey's
own limit), then the next one starts on a new level, whose making counts on both sides. Ours folds the facts of
every step into the goal and asks whether it holds; MiniGrid makes its observation, as its `step` always does.

Levels: ours are proven solvable and come with a shortest plan, MiniGrid's are not. A line apart says what it costs
to write ours down as tasks as well, with hash-ready data and measured difficulty.

    python -m benchmarks.tasks_minigrid
"""

import random
from collections.abc import Sequence

from benchmarks._measure import (
    Side,
    Spread,
    Work,
    arguments,
    interleave,
    machine,
    ratios,
    say_missing,
    table,
    verdict,
)
from games.tasks.generate import Knobs, generate, level
from games.tasks.goals import HOLDS
from games.tasks.grid import ACTIONS

STEPS_TARGET, LEVELS_TARGET = 10.0, 1.0
MAX_STEPS = 640
KNOBS = Knobs(side=8, objects=2, obstacles=0)
"""A key, its door in a wall across, an exit: what DoorKey-8x8 is made of."""

OURS, OURS_TASKS, PEER = "ours", "ours, as tasks", "MiniGrid DoorKey-8x8"


def step_ours(games: int, seed: int) -> Work:
    """Random play, the goal judged at every step."""
    rng = random.Random(seed)
    steps = 0
    for number in range(games):
        spec = generate(seed + number, KNOBS)
        world, goal = spec.make_world(), spec.goal
        state = world.initial()
        progress = goal.start(world.facts(state))
        for _ in range(MAX_STEPS):
            state = world.step(state, rng.choice(ACTIONS))
            progress = goal.fold(progress, world.facts(state))
            steps += 1
            if goal.status(progress) == HOLDS:
                break
    return Work(games, steps)


def levels_ours(games: int, seed: int) -> Work:
    """Levels with their proof."""
    return Work(games, sum(bool(level(seed + number, KNOBS).plan) for number in range(games)))


def tasks_ours(games: int, seed: int) -> Work:
    """The same, as tasks."""
    return Work(games, sum(bool(generate(seed + number, KNOBS).difficulty) for number in range(games)))


def peer_sides() -> tuple[list[Side], list[Side]]:
    """MiniGrid's steps and levels; nothing where it is not installed."""
    try:
        import gymnasium
        import minigrid  # noqa: F401  registers the environments
    except ImportError:
        return [], []
    env = gymnasium.make("MiniGrid-DoorKey-8x8-v0", disable_env_checker=True).unwrapped

    def step(games: int, seed: int) -> Work:
        rng = random.Random(seed)
        steps = 0
        for number in range(games):
            env.reset(seed=seed + number)
            for _ in range(MAX_STEPS):
                _, _, terminated, truncated, _ = env.step(rng.randrange(7))
                steps += 1
                if terminated or truncated:
                    break
        return Work(games, steps)

    def levels(games: int, seed: int) -> Work:
        for number in range(games):
            env.reset(seed=seed + number)
        return Work(games, games)

    return [Side(PEER, step)], [Side(PEER, levels)]


LEVEL_SIDES = [Side(OURS, levels_ours), Side(OURS_TASKS, tasks_ours)]


def main(args: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments("Task worlds beside MiniGrid: steps and levels per second.", games=20, rounds=7)
    flags = parser.parse_args(args)
    peer_steps, peer_levels = peer_sides()
    print(f"The grid world, {flags.rounds} rounds of each side in turns, CPU time")
    print(machine("evoke-arena", "minigrid", "numpy"))
    for what, ours, peers, games, target in (
        ("steps/s", [Side(OURS, step_ours)], peer_steps, flags.games, STEPS_TARGET),
        ("levels/s", LEVEL_SIDES, peer_levels, 20 * flags.games, LEVELS_TARGET),
    ):
        samples = interleave([*ours, *peers], games=games, rounds=flags.rounds)
        rows = []
        for name, taken in samples.items():
            speed = Spread.of(sample.actions_per_s for sample in taken).show()
            against = ratios(samples[OURS], taken, per="actions_per_s").show(".2f") if name == PEER else ""
            rows.append([name, speed, against])
        print(table(["side", what, "ours is faster by"], rows))
        if peers:
            figure = ratios(samples[OURS], samples[PEER], per="actions_per_s").median
            print(f"{what} against {PEER}: " + verdict(figure, target=target))
    if not peer_steps:
        print(say_missing("minigrid"))


if __name__ == "__main__":
    main()
