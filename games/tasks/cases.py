"""The seed case: the first task there is, from which others are varied."""

from games.tasks.spec import TaskSpec

_SEED = {
    "version": 1,
    "world": "grid",
    "layout": {
        "rows": [
            "########",
            "#..#...#",
            "#..#.#.#",
            "#.##...#",
            "#..#.#.#",
            "#......#",
            "#..#...#",
            "########",
        ],
        "start": [1, 1],
        "things": [
            {"kind": "key", "color": "yellow", "at": [1, 4]},
            {"kind": "door", "color": "yellow", "at": [3, 5]},
            {"kind": "exit", "at": [6, 6]},
        ],
    },
    "goal": {"then": [{"has": "yellow key"}, {"opened": "yellow door"}, {"at": "exit"}]},
    "budget": 30,
    "skills": ["door", "key"],
}


def seed_case() -> TaskSpec:
    """Return the seed case: an 8×8 grid with a key, a locked door, obstacles and an exit."""
    return TaskSpec.from_data(_SEED)
