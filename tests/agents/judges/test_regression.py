import asyncio
from typing import Any

import pytest

from agents.judges.base import Judgement
from agents.judges.evaluator import Evaluator, JudgeSettings
from agents.judges.model import ModelJudge
from agents.judges.regression import fixed_cases, regress
from agents.policy.batcher import Batcher
from games.tasks.check import KINDS
from tests.agents.judges.judging import ScriptedEngine, completion
from tests.agents.judges.make_regression import made


def test_twenty_fixed_cases_come_out_right_three_times() -> None:
    found = asyncio.run(regress(Evaluator())).to_data()
    assert (found["ok"], found["cases"], found["times"], found["model"]) == (True, 20, 3, None)
    assert all(row["got"] == [row["expected"]] * 3 for row in found["table"])
    assert {row["expected"] for row in found["table"]} >= set(KINDS) - {"machine"}


def test_the_file_holds_the_kinds_of_cases_that_its_maker_makes() -> None:
    # Not the cases themselves: they stay when a generator changes.
    assert [(one.name, one.case.question) for one in fixed_cases()] == [
        (name, case.question) for name, case in made()
    ]


class Careless(Evaluator):
    """Takes an attempt that ends before the exit for a solution, every second time."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0

    def _finish(self, *args: Any) -> Judgement:
        self.turn += 1
        found = super()._finish(*args)
        if found.kind == "unmet" and self.turn % 2:
            return Judgement.from_data({**found.to_data(), "answer": True})
        return found


def test_a_careless_judge_is_seen() -> None:
    found = asyncio.run(regress(Careless())).to_data()
    assert not found["ok"]
    bad = [row for row in found["table"] if not row["right"]]
    assert bad and all(row["expected"] == "unmet" and not row["agrees"] for row in bad)


@pytest.mark.parametrize("fickle", [False, True])
def test_a_model_that_disagrees_with_itself_is_seen(fickle: bool) -> None:
    count = 0

    def reply(_: object) -> Any:
        nonlocal count
        count += 1
        return completion("yes" if fickle and count % 2 else "no", share=0.9)

    async def run() -> dict[str, Any]:
        batcher = Batcher(ScriptedEngine(reply))
        found = await regress(Evaluator(JudgeSettings(ask_decided=True), model=ModelJudge(batcher)))
        await batcher.close()
        return found.to_data()

    found = asyncio.run(run())
    assert found["ok"] is not fickle
    assert found["right"] == 20  # the rules decide, whatever the model says
    assert found["model"]["asked"] == 60
    assert found["model"]["failed"] == 0
