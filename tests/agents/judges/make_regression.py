"""Makes `agents/judges/regression.json`, once: `python -m tests.agents.judges.make_regression`.

The file is not made anew when judges or generators change: it is what they are compared with. It is made anew only
where the rules of a world change on purpose, and then the difference is to be read line by line.
"""

import json
import random
from pathlib import Path

import agents.judges
from agents.judges.base import SOLVED, Case
from agents.judges.evaluator import Evaluator
from games.tasks.cases import seed_case
from games.tasks.check import Attempt, cheats, replay
from games.tasks.generate import Knobs, generate
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec
from games.tasks.text_generate import generate_text

FILE = Path(agents.judges.__file__).with_name("regression.json")


def made() -> list[tuple[str, Case]]:
    """Return the cases by name."""
    seed = seed_case()
    fetch = generate(11, Knobs(objects=3, deliver=True, rule_depth=2))
    patrol = generate(5, Knobs(patrols=2, side=9, objects=2))
    avoid = generate(8, Knobs(rule_depth=3, avoid=True, objects=2))
    text = generate_text(3, Knobs(objects=4))
    found: list[tuple[str, Case]] = []

    def add(name: str, spec: TaskSpec, attempt: Attempt, question: str = SOLVED) -> None:
        found.append((name, Case(spec, attempt, question)))

    for name, spec in (("seed", seed), ("deliver", fetch), ("text", text)):
        add(f"{name}: a shortest plan", spec, Attempt(spec.hash, plan_of(spec)))
    plan = plan_of(seed)
    add("seed: a detour within the budget", seed, Attempt(seed.hash, ("wait", *plan)))
    add("seed: nothing done", seed, Attempt(seed.hash, ()))
    add("seed: given up half way", seed, Attempt(seed.hash, plan[: len(plan) // 2]))
    (skipped,) = kinds(text, "open_skipped")
    add(f"text: cheat {skipped[0]}", text, skipped[1])
    for cheat in kinds(seed, "over_budget", "after_end", "take_skipped", "open_skipped", "not_entered"):
        add(f"seed: cheat {cheat[0]}", seed, cheat[1])
    for cheat in kinds(seed, "teleport", "false_report", "other_task", "unknown_action"):
        add(f"seed: cheat {cheat[0]}", seed, cheat[1])
    for cheat in kinds(fetch, "drop_skipped"):
        add(f"deliver: cheat {cheat[0]}", fetch, cheat[1])
    add("patrol: caught", patrol, ending(patrol, "lost"))
    add("avoid: stands where it must not", avoid, ending(avoid, "broken"))
    (report,) = kinds(seed, "false_report")
    add("seed: a false report shows no purpose", seed, report[1], "purposeful")
    return found


def plan_of(spec: TaskSpec) -> tuple[str, ...]:
    """Return a shortest plan."""
    found = solve_task(spec)
    assert found.plan
    return found.plan


def kinds(spec: TaskSpec, *names: str) -> list[tuple[str, Attempt]]:
    """Return the first cheat of each name."""
    other = generate(11, Knobs(objects=3, deliver=True, rule_depth=2))
    made = cheats(spec, plan_of(spec), other=(other, plan_of(other)))
    return [next((cheat.name, cheat.attempt) for cheat in made if cheat.name == name) for name in names]


def ending(spec: TaskSpec, kind: str) -> Attempt:
    """Return the first random walk that ends as `kind`."""
    world = spec.make_world()
    for seed in range(10_000):
        rng, state, actions = random.Random(seed), world.initial(), []
        for _ in range(spec.budget):
            legal = world.legal(state)
            if not legal:
                break
            actions.append(rng.choice(legal))
            state = world.step(state, actions[-1])
        played = replay(spec, actions, world=world)
        if played.kind == kind:
            return Attempt(spec.hash, tuple(actions[: played.step]))
    raise AssertionError(f"no random walk ends as {kind}")


def main() -> None:
    """Write the file."""
    cases = []
    for name, case in made():
        judgement = Evaluator().by_rules(case)
        assert judgement.answer is not None
        row = {"name": name, "kind": judgement.kind, "answer": judgement.answer, "case": case.to_data()}
        cases.append(row)
    lines = ",\n".join(json.dumps(case) for case in cases)
    FILE.write_text(f'{{"cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
