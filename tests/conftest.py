"""What every test is run with."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Give back the project's logger as it was: a command run in this process sets it up for itself."""
    logger = logging.getLogger("arena")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate
