"""The game made for credit, registered for these tests."""

from collections.abc import Iterator

import pytest

from games import registry
from tests.agents.credit.works import NAME


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the game known by its name."""
    monkeypatch.setitem(registry._OURS, NAME, "tests.agents.credit.works:Works")
    registry.load_game.cache_clear()
    yield
    registry.load_game.cache_clear()
