"""Records with language models among the players: rebuilt on an engine, in the version that was recorded."""

import asyncio
from pathlib import Path
from typing import Any

from agents.base import Agent, Seat
from agents.credit.base import make_method
from agents.players import make_agent
from agents.policy.base import Engine
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from agents.policy.spec import PolicySpec
from arena.policy_pool import PolicyPool
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from replays.reader import read_record
from tests.agents.policy.counting import CountingEngine


def engine(spec: PolicySpec, settings: PolicySettings, model: str) -> Engine:
    return CountingEngine(max_batch=64)


def test_a_model_plays_on_where_it_sat(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("agents.policy.service.make_engine", engine)
    path = tmp_path / "m.arena"
    plan = MatchPlan(0, "avalon", 3, 0, 0, ("tiny", "bots") * 2 + ("tiny",))
    job = MatchJob("m", plan, 5, {"tiny": "policy", "bots": "scripted"}, record=path)
    settings = PolicySettings(concurrency=2)
    with PolicyPool(settings, home=tmp_path) as pool:
        (report,) = pool.run([job], specs=["policy"])
    assert report.error is None
    record = read_record(path)
    asked: list[str] = []

    def make(spec: str, seat: Seat) -> Agent:
        asked.append(spec)
        return make_agent(spec, seat)

    async def credit() -> Any:
        policies = Policies(settings, home=tmp_path)
        await policies.start(["policy"])
        try:
            method = make_method(
                "leave-one-out", make=make, policies=policies, most=2, step_replicates=1, reference="random"
            )
            return await method.credit(record, team="good")
        finally:
            await policies.close()

    found = asyncio.run(credit())
    assert found.cost.model_calls > 0 and found.cost.replays > 2
    assert set(asked) <= {"scripted"}
    assert not [note for note in found.notes if "recorded was" in note]
    assert len(found.seats) == 3
