"""What the back end on vLLM does around it, without one."""

import asyncio
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from agents.policy.guard import Guard
from agents.policy.vllm_local import VllmEngine, VllmSettings


class Core:
    """Stands for vLLM: its shutdown lasts until it is told to end."""

    def __init__(self) -> None:
        self.output_handler = None
        self.engine_core = SimpleNamespace(resources=SimpleNamespace(ctx=SimpleNamespace(term=lambda: None)))
        self.shutting_down = threading.Event()
        self.go_on = threading.Event()
        self.fails = False

    def shutdown(self, timeout: float) -> None:
        self.shutting_down.set()
        self.go_on.wait()
        if self.fails:
            raise OSError("no")


def guarded(core: Core) -> tuple[VllmEngine, Guard]:
    """Return an engine that runs on `core`, and its guard."""
    engine = VllmEngine(VllmSettings("m"))
    guard = Guard([])
    engine._llm, engine._guard = core, guard
    return engine, guard


def test_a_close_that_is_cancelled_ends_all_the_same() -> None:
    core = Core()

    async def main() -> Guard:
        engine, guard = guarded(core)
        closing = asyncio.create_task(engine.close())
        await asyncio.to_thread(core.shutting_down.wait)
        closing.cancel()
        await asyncio.sleep(0)
        assert not closing.done()
        core.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert engine._guard is None
        return guard

    assert asyncio.run(main())._process.returncode == 0


def test_the_guard_is_released_where_the_shutdown_fails() -> None:
    core = Core()
    core.fails = True
    core.go_on.set()

    async def main() -> Guard:
        engine, guard = guarded(core)
        with pytest.raises(OSError, match="no"):
            await engine.close()
        return guard

    assert asyncio.run(main())._process.returncode == 0


LEVEL = "import logging, evoke_arena; print(logging.getLogger('vllm').level)"


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, 0),
        ({"VLLM_LOGGING_LEVEL": "ERROR"}, 40),
        ({"VLLM_LOGGING_LEVEL": "INFO"}, 0),
        ({"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_LOGGING_CONFIG_PATH": "mine.json"}, 0),
    ],
)
def test_the_processes_of_vllm_are_quiet_from_their_first_line(
    environment: dict[str, str], level: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEVEL], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == level
