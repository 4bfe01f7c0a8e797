"""A server that is really killed, and whose disk is really full, in the middle of matches."""

import asyncio
import resource
from pathlib import Path

import pytest

from tests.arena.sweep import Sweep, drawn

needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="the limit of another process can be set on Linux alone"
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_moments_no_match_and_no_event_is_lost_or_doubled(tmp_path: Path, seed: int) -> None:
    faults = drawn(seed, faults=7, until=60, kinds=("kill", "cut", "cut all"))

    async def main() -> Sweep:
        sweep = Sweep(tmp_path / "home", seed=seed, faults=faults)
        await sweep.run()
        return sweep

    sweep = asyncio.run(main())
    records = sweep.check()
    assert sweep.done["kill"] >= 2 and sweep.done.total() == 7
    assert not sweep.named and not any(record.footer is None for record in records.values())
    for record in records.values():
        assert record.footer is not None
        spoilt = ("timeout", "disconnect", "forfeit", "forced", "error", "illegal")
        assert not any(record.footer.counts.get(name) for name in spoilt)


@pytest.mark.slow
@needs_prlimit
@pytest.mark.parametrize("seed", range(1))
def test_a_full_disk_in_mid_match_is_a_named_failure_and_with_room_it_goes_on(
    tmp_path: Path, seed: int
) -> None:
    async def main() -> Sweep:
        sweep = Sweep(tmp_path / "home", seed=seed, faults={25: "full", 40: "cut"})
        await sweep.run()
        return sweep

    sweep = asyncio.run(main())
    records = sweep.check()
    assert sweep.named.keys() <= {"internal", "unavailable"} and sweep.named["internal"]
    failed = [record for record in records.values() if record.footer is None]
    assert failed and len(sweep.played) == sweep.agents * sweep.matches
