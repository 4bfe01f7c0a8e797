from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.memory import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db") as opened:
        yield opened
