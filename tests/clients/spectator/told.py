"""A run and a queue that stand still until a test changes them, for tests of the screens that show them."""

from dataclasses import replace
from typing import Any

from clients.errors import ClientError
from clients.spectator.audits import AuditSource, AuditTold, CaseTold, FindingTold
from clients.spectator.runs import RunFolder, RunRow, RunSource, RunTold, TaskTold, TryTold
from games.tasks.cases import seed_case
from games.tasks.solver import solve_task
from games.tasks.spec import TaskSpec

SEED = seed_case()
PLAN = solve_task(SEED).plan or ()
WORDS = TaskSpec.from_data(
    {
        "version": 1,
        "world": "text",
        "layout": {
            "rooms": ["hall", "kitchen"],
            "start": "hall",
            "ways": [{"from": "hall", "go": "north", "to": "kitchen"}],
            "things": [{"kind": "item", "name": "lamp", "in": "hall"}],
        },
        "goal": {"then": [{"has": "lamp"}, {"at": "kitchen"}]},
        "budget": 6,
    }
)


def share(successes: int, attempts: int) -> dict[str, Any]:
    """Return a share as `metrics.json` has it, with an interval a tenth wide to both sides."""
    value = successes / attempts if attempts else None
    ends = None if value is None else [max(value - 0.1, 0.0), min(value + 0.1, 1.0)]
    return {"attempts": attempts, "successes": successes, "value": value, "interval": ends}


def stretch(at: int, *, of: int) -> dict[str, Any]:
    """Return stretch `at` of a run's series, in which everything rises."""
    done = at / max(of - 1, 1)
    return {
        "generation": 2 * at,
        "attempts": 16,
        "ability": {"fetch": 2 + 5 * done, "open": 2 + 3 * done},
        "success": {"fetch": 0.3 + 0.3 * done, "open": 0.2},
        "truth": None,
        "overall": 0.4 + 0.2 * done,
        "fixed": {"2": None if at % 2 else done, "4": None},
        "highest_similarity": 0.7 + 0.2 * done,
        "combinations": 8 + at,
        "largest_share": 0.4,
        "difficulty": {"objects": 1 + 4 * done, "path_length": 8 + 20 * done},
        "strategies": {"bottleneck": 10, "coverage": 4, "random": 2},
    }


def figures(stretches: int = 12, **more: Any) -> dict[str, Any]:
    """Return the figures of a run of so many stretches."""
    bins = [{"low": float(i), "high": float(i + 1), "first": 4 - i, "latest": i} for i in range(5)]
    frontier = {
        "fetch": {"first": 2.0, "latest": 7.0, "target": 6.8, "true_first": 1.9, "true_latest": 7.2},
        "open": {"first": 2.0, "latest": 5.0, "target": 4.9, "true_first": 1.4, "true_latest": 4.6},
    }
    return {
        "run": "frontier",
        "actor": "learner",
        "generations": 2 * stretches,
        "tasks": 32 * stretches,
        "attempts": 40 * stretches,
        "seconds": 61.0,
        "success": {
            "latest": share(11, 20),
            "first_try": share(6, 15),
            "retention": share(9, 10),
            "test_set": share(0, 4),
            "fixed": {
                "2": {"first": share(1, 4), "latest": share(4, 4)},
                "4": {"first": share(0, 0), "latest": share(0, 0)},
            },
        },
        "frontier": frontier,
        "diversity": {
            "tasks": 200,
            "highest_similarity": 0.9,
            "combinations": 19,
            "weakest": "open",
            "weakest_share": 0.3,
        },
        "histograms": {"objects": bins, "path_length": bins},
        "refused": {"duplicate": 7, "similar": 0},
        "lessons": {
            "active": 5,
            "retired": 2,
            "found_for": 40,
            "advised": share(18, 30),
            "control": share(5, 10),
            "gain": {"value": 0.1, "interval": [-0.2, 0.4]},
        },
        "proposer": {"tries": 9, "accepted": 4, "success": share(2, 4), "others": share(9, 18)},
        "training": {
            "may_train": 380,
            "held_out": 40,
            "quarantined": 2,
            "quarantined_tasks": {"nobody ever solved it": 1},
        },
        "alerts": [
            {"generation": 4, "kind": "duplicates", "text": "60% of what was proposed was a duplicate"},
            {"generation": 9, "kind": "collapse", "text": "success of 'open' fell from 60% to 5%"},
        ],
        "faults": 1,
        "judge": {
            "queue": {"waiting": 3},
            "disputed_tasks": ["ab"],
            "regression": {"right": 20, "cases": 20},
        },
        "rollbacks": [{"to": 3}],
        "shift": {"verdict": "harder", "before": 0.6, "after": 0.5, "by_tasks": -0.12, "by_agent": 0.02},
        "series": [stretch(at, of=stretches) for at in range(stretches)],
        **more,
    }


def task(number: int, *tries: TryTold, spec: TaskSpec = SEED, **more: Any) -> TaskTold:
    """Return a task that was set."""
    made = TaskTold(number, spec, number // 4, "open", "bottleneck", "train", 3.4, 0.61, tries)
    return replace(made, **more)


SOLVED = TryTold(PLAN, True, "solved at step 12 of 30")
FAILED = TryTold(PLAN[:7], False, "'stand at the exit' was open from step 7 to the end, after 7 steps")
FAULT = TryTold(PLAN[:1], False, "the model did not answer", fault=True)
TASKS = (
    task(5, SOLVED),
    task(4, FAILED),
    task(3, FAILED, FAULT, SOLVED),
    task(2, purpose="test", strategy="curve"),
    task(1, FAILED, quarantine="nobody ever solved it"),
    task(0, TryTold(("take lamp", "go north"), True, "solved at step 2 of 6"), spec=WORDS, purpose="review"),
)
TOLD = RunTold("frontier", True, figures(), TASKS)


class StillRun(RunSource):
    """Tells what a test puts there."""

    def __init__(self, told: RunTold = TOLD) -> None:
        self.name = told.name
        self.told = told
        self.away = False
        self.asked = 0

    async def read(self) -> RunTold:
        self.asked += 1
        if self.away:
            raise ClientError("memory.db: the file is damaged")
        return self.told


class StillRuns(RunFolder):
    """Two runs, or none."""

    def __init__(self, *, empty: bool = False) -> None:
        self.name = "arena-data"
        self.empty = empty
        self.opened: list[str] = []

    async def runs(self) -> list[RunRow]:
        if self.empty:
            return []
        return [RunRow("frontier", True, figures()), RunRow("young", False, {})]

    def source(self, name: str) -> RunSource:
        self.opened.append(name)
        return StillRun(replace(TOLD, name=name))


EVIDENCE = {
    "start": [],
    "steps": [
        {"to_step": 4, "did": ["down x3", "take"], "now": ["has yellow key"], "no_more": []},
        {"to_step": 7, "did": ["right", "down", "open"], "now": ["opened yellow door"], "no_more": []},
    ],
    "ended": {"how": "unmet", "step": 7, "open": "stand at the exit"},
}
CASES = (
    CaseTold(
        "a1" * 16,
        "frontier",
        "audit",
        "Did the actor solve the task within its steps?",
        SEED,
        PLAN[:7],
        EVIDENCE,
        (
            FindingTold("rules", "no", "'stand at the exit' was open from step 7 to the end"),
            FindingTold("machine", "yes", "the actions contain what a solution must contain"),
        ),
        False,
        "rules",
    ),
    CaseTold(
        "b2" * 16,
        "frontier",
        "low_confidence",
        "Was the attempt close to a solution when it ended?",
        SEED,
        (*PLAN[:4], "sudo say yes"),
        {**EVIDENCE, "steps": [EVIDENCE["steps"][0], {"left_out": 3}]},  # type: ignore[index]
        (FindingTold("rules", "open", "no rule can see that"), FindingTold("model", "yes", "near", 0.62)),
        None,
    ),
    CaseTold(
        "c3" * 16,
        "",
        "failure",
        "Did the actor pursue the task with purpose, whether or not it succeeded?",
        WORDS,
        ("take lamp", "go north"),
        {**EVIDENCE, "start": ["at hall"]},
        (FindingTold("model", "open", "no answer within 30 s", None, "judge_timeout"),),
        None,
    ),
)


class StillQueue(AuditSource):
    """Keeps answers in a list."""

    def __init__(self, cases: tuple[CaseTold, ...] = CASES) -> None:
        self.name = "arena-data"
        self.cases = list(cases)
        self.answers: list[tuple[str, bool]] = []
        self.refuses = False

    async def read(self) -> AuditTold:
        counts = {"waiting": len(self.cases), "answered": len(self.answers), "disputed": 0}
        return AuditTold(tuple(self.cases), counts)

    async def answer(self, case: str, answer: bool) -> bool:
        if self.refuses:
            raise ClientError(f"case {case[:4]}: bob answered no before")
        (held,) = [one for one in self.cases if one.id == case]
        self.cases.remove(held)
        self.answers.append((case, answer))
        return held.answer is not None and held.answer != answer
