from pathlib import Path

from agents.memory import Memory
from arena.evolve import MEMORY, RUNS
from arena.memory import ROLLED_BACK, export, review
from tests.arena.evolving import left, run, small


def test_review_says_why_a_task_is_in_quarantine(tmp_path: Path) -> None:
    run(small(), tmp_path)
    run(small(), tmp_path, rollback=0)
    with Memory(tmp_path / RUNS / "small" / MEMORY, create=False) as store:
        found = review(store, limit=100)["quarantine"]
        state, _ = left(tmp_path)
        assert state.lineage == [0] and found
        assert {one["reason"] for one in found} == {ROLLED_BACK}
        attempts = list(export(store, "attempts"))
    assert [one["memory"]["id"] for one in attempts] == [f"small-{n:08d}" for n in range(state.next_attempt)]
