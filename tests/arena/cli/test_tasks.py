"""`arena tasks`: tasks through pipes, and one clear line for whatever is none."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from arena.tasks import MAX_LINE_BYTES
from games.tasks.cases import seed_case
from games.tasks.check import cheats
from games.tasks.similarity import features, similarity
from games.tasks.solver import solve_task
from games.tasks.spec import DIMENSIONS, TaskSpec

SEED = seed_case()
LINE = json.dumps(SEED.to_data())


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def attempt(actions: Any, **more: Any) -> str:
    return json.dumps({"spec": SEED.to_data(), "actions": actions, **more})


def test_generate_gives_proven_tasks_and_the_same_ones_again(arena: Any) -> None:
    call = ("tasks", "generate", "--count", 3, "--seed", 5, "--knob", "side=9", "--knob", "deliver=true")
    found = arena(*call)
    assert found.exit_code == 0, found.stderr
    specs = [TaskSpec.from_data(data) for data in lines(found.stdout)]
    assert len({spec.hash for spec in specs}) == 3
    assert all(solve_task(spec).length == dict(spec.difficulty)["path_length"] for spec in specs)
    assert all("deliver" in spec.skills for spec in specs)
    assert arena(*call).stdout == found.stdout
    assert json.loads(arena(*call, "--json").stdout) == lines(found.stdout)
    assert arena("tasks", "generate", "--count", 3, "--seed", 6).stdout != found.stdout


def test_generate_takes_a_skill_a_world_and_a_bound_on_likeness(arena: Any) -> None:
    (data,) = lines(arena("tasks", "generate", "--skill", "dodge").stdout)
    assert "dodge" in data["skills"]
    (data,) = lines(arena("tasks", "generate", "--world", "text").stdout)
    assert data["world"] == "text"
    found = arena("tasks", "generate", "--count", 6, "--max-similarity", 0.75)
    vectors = [features(TaskSpec.from_data(data)) for data in lines(found.stdout)]
    assert len(vectors) == 6
    assert max(similarity(a, b) for i, a in enumerate(vectors) for b in vectors[:i]) < 0.75
    found = arena("tasks", "generate", "--count", 6, "--max-similarity", 0.1)
    assert found.exit_code == 2
    assert found.stderr.startswith("Error: max-similarity: got 0.1, only 1 of 6 tasks")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--knob", "side=99"), "knob side: got 99, allowed is 6 to 16"),
        (("--knob", "sides=9"), "--knob: got 'sides', allowed are side, objects"),
        (("--knob", "side=nine"), "--knob side: got 'nine', a number is needed"),
        (("--knob", "deliver=1"), "--knob deliver: got '1', allowed are true and false"),
        (("--skill", "fly"), "skill: got 'fly', allowed are navigate"),
        (("--count", "0"), "'--count'"),
        (("--seed", "-1"), "allowed are whole numbers from 0"),
        (("--knob", "time_pressure=nan"), "knob time_pressure"),
    ],
)
def test_generate_refuses_in_one_line(arena: Any, args: tuple[str, ...], said: str) -> None:
    found = arena("tasks", "generate", *args)
    assert found.exit_code == 2 and found.stdout == ""
    assert said in found.stderr and found.stderr.count("\n") == 1


def test_solve_and_check_in_a_pipe(arena: Any) -> None:
    made = arena("tasks", "generate", "--count", 4).stdout
    solved = arena("tasks", "solve", input=made)
    assert solved.exit_code == 0, solved.stderr
    for task, answer in zip(lines(made), lines(solved.stdout), strict=True):
        spec = TaskSpec.from_data(task)
        plan = solve_task(spec)
        assert answer == {
            "task": spec.hash,
            "status": "solvable",
            "length": plan.length,
            "nodes": plan.nodes,
            "actions": list(plan.plan or ()),
            "spec": task,
        }
    checked = arena("tasks", "check", "-", input=solved.stdout)
    assert checked.exit_code == 0
    assert [(entry["line"], entry["ok"]) for entry in lines(checked.stdout)] == [
        (i, True) for i in (1, 2, 3, 4)
    ]
    assert json.loads(arena("tasks", "check", "-", "--json", input=solved.stdout).stdout) == lines(
        checked.stdout
    )


def test_a_task_as_deep_as_may_be_goes_through_the_pipe(arena: Any) -> None:
    goal: dict[str, Any] = {"at": "exit"}
    for word in ("and", "then", "and", "then", "and"):
        goal = {word: [{"has": "yellow key"}, goal]}
    spec = TaskSpec.from_data({**SEED.to_data(), "goal": goal, "skills": [], "difficulty": None})
    solved = arena("tasks", "solve", input=json.dumps(spec.to_data()))
    assert solved.exit_code == 0, solved.stderr
    for said in (solved.stdout, json.dumps(lines(solved.stdout), indent=1)):
        checked = arena("tasks", "check", input=said)
        assert checked.stderr == "" and json.loads(checked.stdout)["task"] == spec.hash


def test_solve_says_unsolvable_and_unknown(arena: Any) -> None:
    tight = json.dumps({**SEED.to_data(), "budget": 3})
    (answer,) = lines(arena("tasks", "solve", input=tight).stdout)
    assert (answer["status"], answer["length"], answer["actions"]) == ("unsolvable", None, None)
    found = arena("tasks", "solve", "--max-nodes", 2, input=LINE)
    assert found.exit_code == 0
    assert lines(found.stdout)[0]["status"] == "unknown"


def test_check_refuses_every_cheat_with_its_reason(arena: Any) -> None:
    plan = solve_task(SEED).plan or ()
    told = [
        json.dumps(json.loads(attempt([])) | cheat.attempt.to_data(), default=list)
        for cheat in cheats(SEED, plan)
    ]
    found = arena("tasks", "check", input="\n".join([attempt(list(plan)), *told]))
    assert found.exit_code == 3
    first, *rest = lines(found.stdout)
    assert first["ok"] and len(rest) > 10
    assert not any(entry["ok"] for entry in rest)
    assert all(entry["reason"] == entry["verdict"]["reason"] for entry in rest)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"budget": 3}, "cannot be solved in 3 steps"),
        ({"difficulty": dict.fromkeys(DIMENSIONS, 9)}, "difficulty objects: says 9, measured is 2"),
        ({"goal": {"visited": "exit"}, "layout": "start at exit"}, "the goal holds at the start"),
    ],
)
def test_check_of_a_task_alone(arena: Any, change: dict[str, Any], reason: str) -> None:
    data = {**SEED.to_data(), **change}
    if data["layout"] == "start at exit":
        data["layout"] = {**SEED.to_data()["layout"], "start": [6, 6]}
    found = arena("tasks", "check", input=json.dumps(data))
    assert found.exit_code == 3
    (entry,) = lines(found.stdout)
    assert (entry["ok"], entry["reason"]) == (False, reason)


BAD = {
    "malformed": ("{", "line 1: task: not JSON"),
    "not json": ("forty-two", "line 1: task: not JSON"),
    "a list": ("[1]", "line 1: task: got a list of 1, an object is needed"),
    "nan": (LINE.replace('"budget": 30', '"budget": NaN'), "line 1: task: got NaN, numbers must be finite"),
    "twice": (LINE[:-1] + ', "budget": 3}', "line 1: task: got the key 'budget' twice in one object"),
    "version": (LINE.replace('"version": 1', '"version": 2'), "line 1: task version: got 2"),
    "deep": ("[" * 100_000 + "]" * 100_000, "line 1: task: nested deeper than 20"),
    "huge": ("x" * (MAX_LINE_BYTES + 1), f"line 1: longer than {MAX_LINE_BYTES} bytes"),
    "large task": (json.dumps({**SEED.to_data(), "text": "x" * 40_000}), "line 1: task: got more than 32768"),
    "bytes": (b"\xff\xfe", "line 1: task: got bytes that are not UTF-8"),
    "beside": (attempt([], plan=[]), "line 1: got the field 'plan' beside 'spec'"),
    "actions": (attempt("up"), "line 1: attempt actions: got 'up'"),
    "an action": (attempt([1]), "line 1: attempt actions: got 1"),
    "too many": (attempt(["wait"] * 2001), "line 1: attempt actions: got a list of 2001"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", ["check", "solve", "show"])
def test_bad_input_gets_one_clear_line(arena: Any, name: str, command: str) -> None:
    text, said = BAD[name]
    found = arena("tasks", command, input=text)
    assert found.exit_code == 2, found.output
    assert found.stderr.startswith(f"Error: {said}") and found.stderr.count("\n") == 1
    assert len(found.stderr) < 300
    if command != "check":
        assert found.stdout == ""


def test_check_looks_at_every_line_and_the_others_stop(arena: Any) -> None:
    text = f"\n{LINE}\n{{}}\n\n{LINE}\nnone\n"
    found = arena("tasks", "check", input=text)
    assert found.exit_code == 2
    assert [(entry["line"], entry["ok"]) for entry in lines(found.stdout)] == [
        (2, True),
        (3, False),
        (5, True),
        (6, False),
    ]
    assert lines(found.stdout)[1]["error"] == "bad_task"
    assert "line 3" in found.stderr and "(and 1 more)" in found.stderr
    found = arena("tasks", "solve", input=text)
    assert found.exit_code == 2 and len(lines(found.stdout)) == 1


def test_a_document_over_many_lines_is_read_as_well(arena: Any) -> None:
    Path("one.json").write_text(json.dumps(SEED.to_data(), indent=2))
    Path("two.json").write_text(arena("tasks", "generate", "--count", 2, "--json").stdout)
    for name, count in (("one.json", 1), ("two.json", 2)):
        found = arena("tasks", "solve", name)
        assert found.exit_code == 0, found.stderr
        assert len(lines(found.stdout)) == count
    Path("bad.json").write_text(json.dumps([SEED.to_data(), {"version": 1}], indent=2))
    found = arena("tasks", "solve", "bad.json")
    assert found.exit_code == 2 and "item 2: task: the field 'world' is missing" in found.stderr
    assert arena("tasks", "solve", "nowhere.json").exit_code == 2


def test_show_renders_the_world_and_plays_a_plan(arena: Any) -> None:
    shown = arena("tasks", "show", input=LINE).stdout
    assert shown.startswith(SEED.text)
    assert "step 0: start (open: hold the yellow key)" in shown and "step 1" not in shown
    assert "## @  .  ## .  .  .  ##" in shown
    plan = list(solve_task(SEED).plan or ())
    played = arena("tasks", "show", "--play", input=attempt(plan)).stdout
    assert f"step {len(plan)}: {plan[-1]} (solved)" in played
    assert arena("tasks", "show", "--solve", input=LINE).stdout == played
    (shown,) = json.loads(arena("tasks", "show", "--solve", "--json", input=LINE).stdout)
    assert shown["task"] == SEED.hash and shown["text"] == SEED.text
    assert [frame["action"] for frame in shown["frames"]] == [None, *plan]
    refused = arena("tasks", "show", "--actions", "up, down", input=LINE).stdout
    assert "step 1: up (refused: something is in the way)" in refused and "step 2" not in refused
    tight = json.dumps({**SEED.to_data(), "budget": 3})
    assert "no plan was found within the budget" in arena("tasks", "show", "--solve", input=tight).stdout


def test_a_real_pipe(command: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    run = " ".join(command)
    script = (
        f"{run} tasks generate --count 3 --seed 2 | {run} tasks solve | tee solved.jsonl "
        f"| {run} tasks check - && head -n 1 solved.jsonl | {run} tasks show --play"
    )
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stderr
    checked, _, shown = found.stdout.partition("\nStand")
    assert [entry["ok"] for entry in lines(checked)] == [True] * 3
    assert "(solved)" in shown
    assert found.stderr == ""
