"""What the tests of clients share."""

import os

import pytest

from tests.arena.conftest import no_blocking

__all__ = ["no_blocking"]


@pytest.fixture(autouse=True)
def _no_token_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep settings of whoever runs the tests out of them."""
    for name in list(os.environ):
        if name.startswith("ARENA_"):
            monkeypatch.delenv(name)
