from typing import Any

import pytest

from games.tasks.cases import seed_case
from games.tasks.difficulty import SKILLS, measure, measured, skills_of
from games.tasks.solver import solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec


def changed(**changes: Any) -> TaskSpec:
    return TaskSpec.from_data({**seed_case().to_data(), **changes})


def with_things(*things: dict[str, Any]) -> TaskSpec:
    data = seed_case().to_data()
    data["layout"]["things"].extend(things)
    return TaskSpec.from_data(data)


def difficulty(spec: TaskSpec) -> dict[str, float]:
    found = measured(spec)
    assert found is not None
    return dict(found.difficulty)


def test_the_seed_case_measured() -> None:
    assert difficulty(seed_case()) == {
        "objects": 2.0,
        "path_length": 12.0,
        "rule_depth": 3.0,
        "time_pressure": 12 / 30,
        "distractors": 0.0,
    }


@pytest.mark.parametrize(
    ("spec", "dimension", "value"),
    [
        (changed(budget=12), "time_pressure", 1.0),
        (changed(goal={"at": "exit"}), "rule_depth", 1.0),
        (changed(goal={"has": "yellow key"}), "path_length", 4.0),
        (changed(goal={"has": "yellow key"}), "objects", 1.0),
        (changed(goal={"has": "yellow key"}), "distractors", 1.0),
        (with_things({"kind": "gem", "color": "red", "at": [2, 1]}), "distractors", 1.0),
        (with_things({"kind": "box", "color": "red", "at": [2, 1]}), "distractors", 1.0),
        (with_things({"kind": "pad", "color": "red", "at": [2, 1]}), "distractors", 0.0),
    ],
)
def test_each_dimension_measures_its_own(spec: TaskSpec, dimension: str, value: float) -> None:
    assert difficulty(spec)[dimension] == value


def test_what_cannot_be_solved_is_not_measured() -> None:
    assert measured(changed(budget=11)) is None


def test_skills_come_from_acts_operators_and_hazards() -> None:
    spec = seed_case()
    plan = solve_task(spec).plan or ()
    world = spec.make_world()
    assert skills_of(world, spec.goal, plan=plan) == ("navigate", "fetch", "open", "order")
    assert list(measure(world, spec.goal, budget=30, plan=plan)) == list(DIMENSIONS)
    data = spec.to_data()
    data["layout"]["things"] += [
        {"kind": "patrol", "path": [[4, 1], [5, 1]]},
        {"kind": "gem", "color": "red", "at": [2, 2]},
    ]
    data["goal"] = {"and": [{"delivered": ["red gem", "exit"]}, {"never": {"has": "blue gem"}}]}
    data["layout"]["things"].append({"kind": "gem", "color": "blue", "at": [2, 1]})
    found = measured(TaskSpec.from_data(data))
    assert found is not None
    assert set(found.skills) == set(SKILLS) - {"order"}
    assert found.hash == TaskSpec.from_data(data).hash
