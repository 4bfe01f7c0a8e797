"""A run of self-play whose matches are played on a real vLLM."""

import asyncio
from pathlib import Path

from agents.policy.adapters import AdapterStore
from arena.train import train
from tests.agents.policy.engines import AGREE, REAL
from tests.arena.training import lines, settings, small

pytestmark = REAL


def test_a_run_plays_on_vllm_what_it_learns_from(tmp_path: Path) -> None:
    config = small(
        budget={"updates": 3},
        start={"weights": "model"},
        learner={"weights": "lora", "rank": 8, "lr": 0.001},
        league={
            "itself": 1,
            "past": 1,
            "bots": 1,
            "opponents": ["equilibrium", "policy"],
            "snapshot_every": 1,
        },
        evaluation={"every": 0, "nash_conv": False, "opponents": ["equilibrium"], "deals": 3},
    )
    found = asyncio.run(train(config, settings=settings(tmp_path, backend="vllm")))
    assert (found.stopped_by, found.progress.update, found.progress.failed) == ("updates", 3, 0)
    for line in lines(tmp_path, "update"):
        assert line["failures"] == 0 and line["causes"] == {} and line["failed"] == {}
        assert line["learner"]["grad_norm"] > 0
        assert line["learner"]["gap"] < AGREE, (
            "the learner gives what vLLM sampled the probability that vLLM gave it"
        )
    first, last = lines(tmp_path, "evaluation")
    assert first["against"][0]["matches"] == last["against"][0]["matches"] == 6
    store = AdapterStore(tmp_path / "adapters")
    assert {one.kind for one in store.all()} == {"lora"} and store.resolve("small").ref == found.version
